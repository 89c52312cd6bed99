"""A cluster as a resource of a stack: what the provider makes of requests, of warnings and of failures.

What AWS's provider does is in aws/aws-parallelcluster, cloudformation/custom_resource/cluster.yaml; what a head node
does in pcluster/resources/head_node/user_data.sh of the package.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.deployed import DeployedAccount
from tests.emulator.clusters import Clusters

pytestmark = [pytest.mark.validation, pytest.mark.slow]

BROKEN, ACCEPTED, TRANSIENT = "DuplicateMountDirValidator", "CustomAmiTagValidator", "AsyncTimedUrlValidator"
"""Validators whose warnings mean a broken cluster, are accepted by the settings, or pass by themselves."""


@pytest.fixture(scope="module")
def clusters(deployed: Callable[[str], DeployedAccount]) -> Iterator[Clusters]:
    with deployed("trn1-16").clone() as aws:
        yield Clusters(aws)


@pytest.mark.parametrize(
    ("fault", "nodes", "reason"),
    [
        (None, {"MinCount": 17}, "Max count must be greater than or equal to min count."),
        (("warning", BROKEN), {}, f'"type": "{BROKEN}"'),
        (("head-node",), {}, "second: OnNodeConfiguredExecutionFailure (LogGroup: /aws/lambda/pcluster-cfn-"),
        (("provider",), {}, "Message returned: Execution timed out"),
    ],
    ids=["refused", "warning", "head node", "time"],
)
def test_a_cluster_that_fails_takes_its_stack_down_and_leaves_nothing(
    clusters: Clusters, fault: tuple[str, ...] | None, nodes: dict[str, int], reason: str
) -> None:
    configuration = clusters.configuration()
    configuration["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0].update(nodes)
    if fault:
        clusters.aws.inject(*fault)
    try:
        clusters.create(configuration)
    finally:
        clusters.aws.clear_faults()
    assert clusters.stacks.status("parent") == "ROLLBACK_COMPLETE"
    [said] = clusters.stacks.reasons("parent", "CREATE_FAILED")
    assert reason in said
    clusters.delete()


NUMBERS = itertools.count(31)
"""For each update a setting that the second cluster has not had."""


@pytest.fixture(scope="module")
def second(deployed: Callable[[str], DeployedAccount]) -> Iterator[Clusters]:
    """Return an account with a second cluster, which tests leave with nothing in progress or failed."""
    with deployed("trn1-16").clone() as aws:
        clusters = Clusters(aws)
        clusters.create(clusters.configuration())
        assert clusters.stacks.status("parent") == "CREATE_COMPLETE", clusters.stacks.reasons("parent", "CREATE_FAILED")
        yield clusters


@dataclass(frozen=True)
class Way:
    """A way in which an update of a cluster fails.

    Attributes:
        said: What the provider says of the update.
        faults: Which are in force meanwhile.
        is_refused: Whether more nodes are to run than there may be.
        is_head_node_stopped: Whether the cluster's own stack waits for its head node.
        own: What the cluster's own stack is then; empty: what it was.
        said_on_return: What the provider says of the roll-back; empty: nothing that fails it.
    """

    said: str
    faults: tuple[tuple[str, ...], ...] = ()
    is_refused: bool = False
    is_head_node_stopped: bool = False
    own: str = "UPDATE_ROLLBACK_COMPLETE"
    said_on_return: str = "second:  (LogGroup: /aws/lambda/pcluster-cfn-"


WAYS = {
    "refused before it starts": Way(
        "Max count must be greater than or equal to min count.", is_refused=True, own="", said_on_return=""
    ),
    "the head node reports a failure": Way("second:  (LogGroup: ", faults=(("head-node",),)),
    "a resource of the cluster's own stack": Way(
        "second:  (LogGroup: ", faults=(("resource", "AWS::CloudFormation::WaitCondition"),)
    ),
    "CloudFormation gives up first": Way(
        "Message returned: Execution timed out",
        faults=(("provider",),),
        is_head_node_stopped=True,
        own="UPDATE_IN_PROGRESS",
        said_on_return="Cannot execute update while stack is in UPDATE_IN_PROGRESS status.",
    ),
}


IN_CI = ("refused before it starts", "the head node reports a failure")
"""The others take a minute more, and tests/end_to_end/lives/test_roll_back.py has lives of them."""


@pytest.mark.parametrize(
    "way",
    [pytest.param(way, id=name, marks=() if name in IN_CI else pytest.mark.scenario) for name, way in WAYS.items()],
)
def test_an_update_that_fails_and_its_roll_back(
    second: Clusters, wait_for: Callable[[Callable[[], bool]], None], way: Way
) -> None:
    # cloudformation/custom_resource/cluster.yaml: `create_or_update` takes "No changes found" for a success and passes
    # all else on; `poll` fails at UPDATE_FAILED, which pcluster/api/converters.py makes of a stack that rolled back.
    stacks, before = second.stacks, second.stacks.status("second")
    events = len(stacks.events("parent"))
    if way.is_head_node_stopped:
        second.stop_head_node()
    for fault in way.faults:
        second.aws.inject(*fault)
    try:
        second.update(second.changed(next(NUMBERS), MinCount=100 if way.is_refused else 0))
    finally:
        second.aws.clear_faults()
    reasons = [reason for _, status, reason in stacks.events("parent")[events:] if status == "UPDATE_FAILED"]
    assert way.said in reasons[0]
    assert stacks.status("second") == (way.own or before)
    if not way.said_on_return:
        assert stacks.status("parent") == "UPDATE_ROLLBACK_COMPLETE"
    else:
        assert way.said_on_return in reasons[1]
        wait_for(lambda: not stacks.status("second").endswith("IN_PROGRESS"))
        second.start_head_node()
        second.roll_back()
        assert stacks.status("parent") == "UPDATE_ROLLBACK_FAILED", "what is rolled back counts as failed"
        second.roll_back("Cluster")
        assert stacks.status("parent") == "UPDATE_ROLLBACK_COMPLETE"
    second.update(second.changed(next(NUMBERS)))
    assert (stacks.status("parent"), stacks.status("second")) == ("UPDATE_COMPLETE", "UPDATE_COMPLETE")


def test_tags_of_a_cluster_change_in_place(second: Clusters) -> None:
    for value in ("bert", "llama"):
        second.update({**second.configuration(), "Tags": [{"Key": "project", "Value": value}]})
        assert second.stacks.status("parent") == "UPDATE_COMPLETE", second.stacks.reasons("second", "UPDATE_FAILED")
    second.update(second.configuration())
    assert second.stacks.status("parent") == "UPDATE_COMPLETE", second.stacks.reasons("second", "UPDATE_FAILED")


def test_what_is_no_change_of_the_configuration_fails_after_a_roll_back(second: Clusters) -> None:
    before = second.deployed()
    second.aws.inject("head-node")
    second.update(second.changed(next(NUMBERS)))
    second.aws.clear_faults()
    second.roll_back("Cluster")
    second.update(before, SuppressValidators=["type:CustomAmiTagValidator"])
    assert second.stacks.status("parent") == "UPDATE_ROLLBACK_FAILED", "the provider looks again, and changes nothing"
    second.roll_back("Cluster")
    assert second.stacks.status("parent") == "UPDATE_ROLLBACK_COMPLETE"


def test_what_warnings_do_to_an_update(second: Clusters) -> None:
    stacks, suppressed = second.stacks, [*second.properties["SuppressValidators"], f"type:{ACCEPTED}"]

    def update(validator: str) -> str:
        second.aws.inject("warning", validator)
        second.update(second.changed(next(NUMBERS)), SuppressValidators=suppressed)
        return stacks.status("parent")

    assert [update(validator) for validator in (TRANSIENT, ACCEPTED)] == ["UPDATE_COMPLETE"] * 2
    events = len(stacks.events("parent"))
    # What is wrong with the cluster as it was, too, stops the way back until it is fixed.
    assert update(BROKEN) == "UPDATE_ROLLBACK_FAILED"
    said = [reason for _, status, reason in stacks.events("parent")[events:] if status == "UPDATE_FAILED"]
    assert f'"type": "{BROKEN}"' in said[0]
    second.aws.clear_faults()
    second.roll_back()
    assert stacks.status("parent") == "UPDATE_ROLLBACK_COMPLETE"
    assert stacks.status("second") == "UPDATE_COMPLETE", "nothing was asked of the cluster's own stack"
