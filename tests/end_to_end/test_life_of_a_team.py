"""The life of a team: people, homes and accounting, which outlive a head node."""

import pytest

from tests.end_to_end.lives import END, assert_in_order, rehearse

FAULTS = ("head-node-reboot", "head-node-terminated")


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.validation
def test_a_team() -> None:
    """Its head node is rebooted, then lost: the next generation has homes and history of the one before."""
    said = rehearse("team", faults=FAULTS)
    # aws/aws-parallelcluster 2442: there is no second head node
    gone = r"The head node is gone\n.*?\$ ./ultracluster recover .*?The cluster is team-2\."
    again = r"\$ ./ultracluster jobs list team\n  1 running.*? first\n"
    costs = r"\$ ./ultracluster costs team --by user\n.*?  ubuntu +2 +2 .*?nodes that ran"
    assert_in_order((r"Homes +fs-\w+, AVAILABLE", gone, again, costs, *END), said)
