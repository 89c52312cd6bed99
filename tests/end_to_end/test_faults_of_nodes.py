"""A job survives all that befalls the nodes that it runs on, and diagnose says what it was."""

import pytest

from emulator.faults import FAULTS
from tests.end_to_end.lives import assert_in_order, rehearse
from tests.end_to_end.test_life_of_a_team import FAULTS as OF_A_TEAM
from tests.end_to_end.test_life_of_nodes import FAULTS as OF_STARTING_NODES

SEEN = {
    # aws/aws-parallelcluster 6572: a disk of the head node fills up
    "disk": r"A disk is full\n.*?slurmctld\n.*?No space left on device",
    # aws/aws-parallelcluster 2701 ended so: nobody answers until the instance is started again
    "head-node-lost": r"The head node is stopped\n.*?\$ ./ultracluster recover trn1-16 ",
    # aws/aws-parallelcluster 2340: a node fails EC2's reachability check
    "unhealthy": r"EC2 found the hardware of nodes unfit\n.*?trn1-dy-trn1-32xl-\d",
    # aws/aws-parallelcluster 4057: Lustre is not mounted on a node
    "lustre": r"The health checks drained nodes\n.*?SHARED_STORAGE: nothing is\s+mounted\s+on\s+/fsx",
    # aws-neuron/aws-neuron-sdk 8391: fewer EFA devices than the type has
    "efa": r"The health checks drained nodes\n.*?EFA_DEVICES: 7 of 8 EFA devices",
    # aws/aws-parallelcluster 2146: a node stops to respond under a job
    "network": r"Slurm lost contact with nodes",
    # aws/aws-parallelcluster 114: the clock of a node is wrong
    "clock": r"A clock is wrong\n.*?slurmd\n.*?Munge decode failed: Expired credential",
}
"""What diagnose says, as a pattern; beside it is a public issue whose reporter saw the same on AWS."""


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.validation
def test_a_job_survives_faults_of_its_nodes() -> None:
    said = rehearse("trn1-16", faults=SEEN)
    running = r"\$ ./ultracluster jobs list trn1-16\n  1 running.*? RUNNING +2 .*?done in"
    for fault, seen in SEEN.items():
        assert_in_order((f"While {FAULTS[fault].what}", seen, running), said)
    assert "  Nothing else.\n" in said


def test_each_fault_of_nodes_is_in_a_life() -> None:
    lived = {each.partition(":")[0] for each in OF_STARTING_NODES}
    assert {name for name, fault in FAULTS.items() if fault.node} == {*SEEN, *OF_A_TEAM, *lived} - {"capacity"}
