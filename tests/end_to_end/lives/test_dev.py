"""The life that README's first command shows, after all that can keep a cluster and its nodes from starting.

Stacks, nodes with the real Slurm, a job, a lost node, nothing left.
"""

import pytest

from tests.end_to_end.lives.life import assert_in_order, rehearse

FAULTS = ("head-node", "capacity:trn1.32xlarge/1", "node-names", "node-script")
IN_ORDER = (
    # aws/aws-parallelcluster 6353: the head node fails its wait condition, as it cannot mount the file system
    r"FsxMountFailure.*?exit code 1\n",
    r"\$ ./ultracluster diagnose dev\n.*?A file system cannot be mounted\n.*?'Failed to mount FSX\.",
    r"\$ ./ultracluster deploy dev .*?exit code 0",
    r"\$ ./ultracluster status dev\n.*?Fleet +RUNNING.*?Software +ready.*?  Healthy\.\n.*?  exit code 0",
    # aws/aws-parallelcluster-node 560: a placement group has room for some of a job's nodes
    r"\$ ./ultracluster diagnose dev\n  EC2 has no capacity\n.*?InsufficientInstanceCapacity",
    # aws/aws-parallelcluster 4364: the job stays in CF, its nodes never join
    r"\$ ./ultracluster diagnose dev\n  A starting node gets no answer from DynamoDB\n",
    # aws/aws-parallelcluster 3993: protected mode
    r"While the start-up script .*?\$ ./ultracluster diagnose dev\n.*?The cluster is in PROTECTED mode",
    r"\$ ./ultracluster fleet start dev\n.*?RUNNING",
    r"\$ ./ultracluster jobs list dev\n  \d running.*? first[ \n]",
    # an update replaces nodes by QueueUpdateStrategy DRAIN
    r"RootVolume\.Size .*? drains nodes\n.*?exit code 0",
    r"\$ ./ultracluster status dev\n.*?Nodes +2 running.*? trn1 +- +- +1 +- +2 +- +- +1 .*?Healthy\.\n.*?  exit code 0",
    r"job \d output \| [01]: trn1-dy-trn1-32xl-[12]\n",
    # aws/aws-parallelcluster 4172: the instance of a node ends under a job
    r"EC2 terminates (i-\w+), which is (trn1-dy-trn1-32xl-\d)\n",
    r"The instance of a node is gone\n.*?is gone; the job waits",
    r"HeadNode.InstanceType .*? refused.*?exit code 1",
    r"\$ ./ultracluster jobs list dev\n  1 running.*? RUNNING +2 .*?-\d: a root volume of 300 GiB, ",
    r"\$ ./ultracluster destroy dev .*?exit code 0",
    r"  Nothing else\.\n",
)
"""What is printed, as patterns; beside them are public issues whose reporters saw the same on AWS."""


@pytest.mark.scenario
@pytest.mark.slow
@pytest.mark.system
@pytest.mark.validation
def test_a_whole_life_on_this_computer() -> None:
    said = rehearse("dev", faults=FAULTS)
    assert_in_order(IN_ORDER, said)
