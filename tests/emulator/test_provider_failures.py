"""Clusters that fail to be created: what the stack says, and that nothing is left."""

from collections.abc import Iterator

import pytest

from emulator.aws import EmulatedAws
from tests.emulator.clusters import Clusters

pytestmark = [pytest.mark.validation, pytest.mark.slow]


@pytest.fixture(scope="module")
def account(rehearsal_server: EmulatedAws, tmp_path_factory: pytest.TempPathFactory) -> Clusters:
    return Clusters(rehearsal_server, tmp_path_factory.mktemp("cdk.out"))


@pytest.fixture
def clusters(account: Clusters) -> Iterator[Clusters]:
    yield account
    assert account.stacks.status("parent") == "ROLLBACK_COMPLETE"
    account.delete()
    assert account.left_over() == set()


def test_what_the_validators_refuse_fails_the_stack_with_the_end_of_their_words(clusters: Clusters) -> None:
    wrong = clusters.with_max_count(16)
    wrong["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]["MinCount"] = 17
    clusters.create(wrong)
    reason = clusters.failure("Cluster", "CREATE_FAILED")
    assert "Max count must be greater than or equal to min count." in reason


def test_a_head_node_whose_script_fails_takes_the_stacks_down(clusters: Clusters) -> None:
    clusters.aws.inject("head-node")
    try:
        clusters.create()
    finally:
        clusters.aws.clear_faults()
    reason = clusters.failure("Cluster", "CREATE_FAILED")
    assert f"{clusters.name}: OnNodeConfiguredExecutionFailure (LogGroup: /aws/lambda/pcluster-cfn-" in reason


def test_a_provider_out_of_time_says_so(clusters: Clusters) -> None:
    clusters.aws.inject("provider")
    try:
        clusters.create()
    finally:
        clusters.aws.clear_faults()
    assert "Message returned: Execution timed out" in clusters.failure("Cluster", "CREATE_FAILED")
