"""The life of two queues with a login node, without any privilege on this computer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.lives.life import END, assert_in_order, edited, rehearse
from tests.stacks.deployments import Raw

NOBODY = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
"""Runs a command as a user who has the files of this one, and nothing else."""


@pytest.mark.scenario
@pytest.mark.slow
@pytest.mark.system
@pytest.mark.validation
def test_two_queues(tmp_path: Path) -> None:
    """An update waits for the login node, too, which starts while the head node does."""

    def add(raw: Raw) -> None:
        raw["cluster"]["login_nodes"] = [{"name": "login", "instance_type": "c6i.xlarge", "count": 1}]

    said = rehearse("two-queues", by=NOBODY, variables=edited(tmp_path, "two-queues", add))
    jobs = r"\$ ./ultracluster jobs list two-queues\n  1 running.*? RUNNING +2 "
    assert_in_order((r" drains nodes\n.*?exit code 0", r"EC2 terminates i-", jobs, *END), said)
