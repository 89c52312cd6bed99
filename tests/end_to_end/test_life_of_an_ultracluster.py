"""The life of a cluster with 1,875 nodes in Slurm; in a module of its own, so that it runs beside other lives."""

import pytest

from tests.end_to_end.lives import END, assert_in_order, rehearse


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.validation
def test_a_whole_ultracluster() -> None:
    said = rehearse("ultracluster")
    jobs = r"\$ ./ultracluster jobs list ultracluster\n  1 running.*? RUNNING +2 "
    # off; then two that the update drains, and the others off, or still on their way there
    nodes = (r" trn1 +- +- +1,875 +- ", r" trn1 +- +- +\S+ +- +\S+ +2 ")
    assert_in_order((*nodes, r"EC2 terminates i-", jobs, *END), said)
