"""Lives of the configurations that no other life has: 1,875 nodes in Slurm, static nodes, login nodes, without root."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.configurations import CONFIG
from tests.end_to_end.lives import assert_in_order, rehearse
from tests.stacks.deployments import Raw

pytestmark = [pytest.mark.slow, pytest.mark.system, pytest.mark.validation]

NOBODY = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
"""Runs a command without any privilege on this computer, as a user who has the files of this one."""
END = (r"\$ ./ultracluster destroy .*?exit code 0", r"  Nothing else\.\n")


def edited(directory: Path, name: str, edit: Callable[[Raw], None]) -> dict[str, str]:
    """Write a shipped configuration, edited, and return the variable by which commands find it."""
    raw = yaml.safe_load((CONFIG / f"{name}.yaml").read_text(encoding="utf-8"))
    edit(raw)
    (directory / f"{name}.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    return {"ULTRACLUSTER_CONFIG": str(directory)}


def test_a_whole_ultracluster() -> None:
    said = rehearse("ultracluster")
    jobs = r"\$ ./ultracluster jobs list ultracluster\n  1 running.*? RUNNING +2 "
    assert_in_order((r" trn1 +- +- +1 +- +1,873 +2 ", r"EC2 terminates i-", jobs, *END), said)


def test_a_team() -> None:
    """A head node that is rebooted, and one that is lost: the next generation has homes and history of the first."""
    said = rehearse("team", "--fault", "head-node-reboot", "--fault", "head-node-terminated")
    again = r"\$ ./ultracluster jobs list team\n  1 running.*? first\n"
    costs = r"\$ ./ultracluster costs team --by user\n.*?  ubuntu +2 +2 .*?nodes that ran"
    assert_in_order((r"Homes +fs-\w+, AVAILABLE", r"The cluster is team-2\.", again, costs, *END), said)


def test_two_queues_with_a_login_node_and_without_root(tmp_path: Path) -> None:
    """An update waits for the login node, too, which starts while the head node does."""

    def add(raw: Raw) -> None:
        raw["cluster"]["login_nodes"] = [{"name": "login", "instance_type": "c6i.xlarge", "count": 1}]

    said = rehearse("two-queues", by=NOBODY, variables=edited(tmp_path, "two-queues", add))
    jobs = r"\$ ./ultracluster jobs list two-queues\n  1 running.*? RUNNING +2 "
    assert_in_order((r" drains nodes\n.*?exit code 0", r"EC2 terminates i-", jobs, *END), said)


def test_a_static_node_is_replaced(tmp_path: Path) -> None:
    """In the shipped configuration only the second queue has static nodes, and jobs take the first."""

    def keep_two(raw: Raw) -> None:
        raw["cluster"]["queues"][0]["compute_resources"][0]["min_count"] = 2

    said = rehearse("reserved", "--fault", "unhealthy", variables=edited(tmp_path, "reserved", keep_two))
    replaced = r"unhealthy: (i-\w+), odcr-st-trn1-32xl-\d\n.*?odcr-st-trn1-32xl-\d is static: i-\w+ has taken its place"
    assert_in_order((r" block +4 ", replaced, *END), said)
