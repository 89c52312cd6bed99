"""The life of a team: people, homes and accounting, which outlive a head node."""

import pytest

from emulator.faults import FAULTS
from tests.end_to_end.lives.life import END, assert_in_order, rehearse

SEEN = {
    # aws/aws-parallelcluster 6572: a disk of the head node fills up
    "disk": r"A disk is full\n.*?slurmctld\n.*?No space left on device",
    # aws/aws-parallelcluster 114: the clock of a node is wrong
    # which is seen in its line, or once the node is replaced
    "clock": r"A clock is wrong\n.*?(Munge decode failed: Expired credential|It is over: the instance that wrote it)",
    "head-node-reboot": "",
    # aws/aws-parallelcluster 2701 ended so: nobody answers until the instance is started again
    "head-node-lost": r"The head node is stopped\n.*?\$ ./ultracluster recover team ",
    # aws/aws-parallelcluster 2442: there is no second head node
    "head-node-terminated": r"The head node is gone\n.*?\$ ./ultracluster recover .*?The cluster is team-2\.",
}
"""What diagnose says, as a pattern; beside it is a public issue whose reporter saw the same on AWS."""


@pytest.mark.scenario
@pytest.mark.slow
@pytest.mark.system
@pytest.mark.validation
def test_a_team() -> None:
    """Its head node suffers, then is lost: the next generation has homes and history of the one before."""
    said = rehearse("team", faults=SEEN)
    running = r"\$ ./ultracluster jobs list team\n  1 running.*? first[ \n]"
    for fault, seen in SEEN.items():
        assert_in_order((f"While {FAULTS[fault].what}", seen, running), said)
    costs = r"\$ ./ultracluster costs team --by user\n.*?  ubuntu +2 +3 .*?nodes that ran"
    assert_in_order((r"Homes +fs-\w+, AVAILABLE", costs, *END), said)
