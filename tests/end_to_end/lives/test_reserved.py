"""The life of reserved capacity: a job survives what befalls its static nodes, and diagnose says what that was."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.faults import FAULTS
from tests.end_to_end.lives.life import END, assert_in_order, edited, rehearse
from tests.end_to_end.lives.test_dev import FAULTS as OF_STARTING_NODES
from tests.end_to_end.lives.test_roll_back import SEEN as OF_UPDATES
from tests.end_to_end.lives.test_team import SEEN as OF_A_TEAM
from tests.stacks.deployments import Raw

SEEN = {
    # aws/aws-parallelcluster 2340: a node fails EC2's reachability check
    "unhealthy": r"EC2 found the hardware of nodes unfit\n.*?odcr-st-trn1-32xl-\d",
    # aws/aws-parallelcluster 4057: Lustre is not mounted on a node
    "lustre": r"The health checks drained nodes\n.*?SHARED_STORAGE: nothing is\s+mounted\s+on\s+/fsx",
    # aws-neuron/aws-neuron-sdk 8391: fewer EFA devices than the type has
    "efa": r"The health checks drained nodes\n.*?EFA_DEVICES: 7 of 8 EFA devices",
    # aws/aws-parallelcluster 2146: a node stops to respond under a job
    "network": r"Slurm lost contact with nodes",
}
"""What diagnose says, as a pattern; beside it is a public issue whose reporter saw the same on AWS."""


@pytest.mark.scenario
@pytest.mark.slow
@pytest.mark.system
@pytest.mark.validation
def test_reserved_capacity(tmp_path: Path) -> None:
    """In the shipped configuration only the second queue has static nodes, and jobs take the first."""

    def keep_two(raw: Raw) -> None:
        raw["cluster"]["queues"][0]["compute_resources"][0]["min_count"] = 2

    said = rehearse("reserved", faults=SEEN, variables=edited(tmp_path, "reserved", keep_two))
    assert_in_order((r" block +4 ", *END), said)
    running = r"\$ ./ultracluster jobs list reserved\n  1 running.*? RUNNING +2 .*?done in"
    for fault, seen in SEEN.items():
        assert_in_order((f"While {FAULTS[fault].what}", seen, running), said)
    replaced = r"unhealthy: (i-\w+), odcr-st-trn1-32xl-\d\n.*?odcr-st-trn1-32xl-\d is static: i-\w+ has taken its place"
    assert_in_order((replaced,), said)


def test_each_fault_of_nodes_is_in_a_life() -> None:
    lived = {each.partition(":")[0] for each in OF_STARTING_NODES}
    assert {name for name, fault in FAULTS.items() if fault.node} == {*SEEN, *OF_A_TEAM, *OF_UPDATES, *lived} - {
        "capacity"
    }
