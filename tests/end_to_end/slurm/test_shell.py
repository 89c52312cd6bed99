"""`shell --node` on a real Slurm, in a terminal."""

from __future__ import annotations

import re
import shlex

import pytest

from scripts.use import sessions
from tests.end_to_end.slurm.base import USER
from tests.end_to_end.slurm.cluster import SlurmCluster

TERMINALS = """\
mountpoint --quiet /dev/pts || { mkdir -p /dev/pts && mount -t devpts -o newinstance,ptmxmode=666 devpts /dev/pts; }
ln -sf pts/ptmx /dev/ptmx
"""
"""Lets a machine have terminals."""

pytestmark = [pytest.mark.slow, pytest.mark.system]


def test_a_shell_on_a_node_is_a_job_that_ends_with_it(cluster: SlurmCluster) -> None:
    cluster.run(TERMINALS)
    for node in cluster.nodes:
        node.sh(TERMINALS)
    [command] = sessions.job_of(USER, sessions.job(None, "5")).parameters["command"]
    typed = "printf '%s\\n' tty 'echo on $(hostname)' 'scontrol show job $SLURM_JOB_ID' 'exit 7'"
    terminal = f"script --quiet --return --command {shlex.quote(command.removeprefix('sudo '))} /dev/null"
    shown = cluster.run(f"{typed} | {terminal}; echo code $?")
    assert re.search(r"^/dev/pts/", shown, re.MULTILINE), shown
    assert any(f"on {node.name}\n" in shown for node in cluster.nodes), shown
    for fact in ("JobName=shell", "TimeLimit=00:05:00", f"UserId={USER}(", "OverSubscribe=NO"):
        assert fact in shown
    assert shown.endswith("code 7\n"), shown
    cluster.wait_until(lambda: cluster.run("squeue --noheader") == "")
