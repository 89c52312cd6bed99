"""Programs of root write to no file that a user has put into /tmp: all nodes undo what ParallelCluster does to that."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tests.nodes.facts import COMPUTE_NODE, HEAD_NODE, LOGIN_NODE
from tests.nodes.machine import NO_INTERNET, Machine
from tests.nodes.packages import PYTHON

pytestmark = [pytest.mark.slow, pytest.mark.system]

Machines = Callable[..., Machine]
SCRIPTS: Mapping[str, Mapping[str, str]] = {
    "compute_node.sh": COMPUTE_NODE,
    "head_node.sh": HEAD_NODE | {"python": PYTHON},
    "login_node.sh": LOGIN_NODE,
}
"""Arguments of each script that ParallelCluster runs after its recipes, and on the head node after updates."""
CHEF = "/etc/sysctl.d/99-chef-fs.protected_regular.conf"
"""What the recipe leaves for the next start (https://github.com/chef/chef, lib/chef/resource/sysctl.rb)."""
OF_THE_SYSTEM = "/usr/lib/sysctl.d/99-protect-links.conf"
"""Debian's, which would come after Chef's; nothing rests on an image that has it."""
AT_A_START = "/usr/lib/systemd/systemd-sysctl --cat-config | grep ^fs.protected_regular | tail -n 1"


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_node_protects_root_from_files_of_others_now_after_an_update_and_at_its_next_start(
    script: str, machine: Machines
) -> None:
    node = machine("ubuntu2404")
    node.output_of(f"rm {OF_THE_SYSTEM}")
    node.write(CHEF, "fs.protected_regular = 0\n")
    assert (node.protected_regular, node.output_of(AT_A_START)) == (0, "fs.protected_regular = 0\n")
    first = node.run(script, SCRIPTS[script])
    assert (first.code, node.protected_regular) == (0, 2), first.output
    assert node.output_of(AT_A_START) == "fs.protected_regular = 2\n"
    node.protected_regular = 0
    again = node.run(script, SCRIPTS[script], sites=NO_INTERNET)
    assert (again.code, node.protected_regular) == (0, 2), again.output


def test_amazon_linux_keeps_its_own_setting(machine: Machines) -> None:
    node = machine("alinux2023", "t3.large")
    node.protected_regular = 1
    outcome = node.run("login_node.sh", LOGIN_NODE)
    assert (outcome.code, node.protected_regular) == (0, 1), outcome.output
