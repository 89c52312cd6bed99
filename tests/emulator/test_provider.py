"""A cluster as a resource of a stack: what the provider makes of requests, of warnings and of failures.

What AWS's provider does is in aws/aws-parallelcluster, cloudformation/custom_resource/cluster.yaml; what a head node
does in pcluster/resources/head_node/user_data.sh of the package.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import WaiterError

from tests.deployed import DeployedAccount, update_stack
from tests.emulator.clusters import REGION, Clusters
from tests.emulator.stacks import Stacks
from tests.stacks.deployments import Deployment, deploy, edited

pytestmark = [pytest.mark.validation, pytest.mark.slow]

STACK = "trn1-16-cluster"
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


def test_what_warnings_do_to_an_update(deployed: Callable[[str], DeployedAccount], tmp_path: Path) -> None:
    def synthesized(max_count: int) -> Deployment:
        def edit(raw: dict[str, Any]) -> None:
            raw["cluster"]["accepted_warnings"] = [{"validator": ACCEPTED, "reason": "a copied image"}]
            raw["cluster"]["queues"][0]["compute_resources"][0]["max_count"] = max_count

        return deploy(edited("trn1-16", edit), tmp_path / f"{max_count}")

    with deployed("trn1-16").clone() as aws:
        stacks = Stacks(aws, REGION)
        for max_count, validator in enumerate((TRANSIENT, ACCEPTED), 17):
            aws.inject("warning", validator)
            update_stack(aws, synthesized(max_count), "cluster")
        aws.inject("warning", BROKEN)
        with pytest.raises(WaiterError):
            update_stack(aws, synthesized(20), "cluster")
        # What is wrong with the cluster as it was, too, stops the way back until it is fixed.
        assert stacks.status(STACK) == "UPDATE_ROLLBACK_FAILED"
        assert f'"type": "{BROKEN}"' in stacks.reasons(STACK, "UPDATE_FAILED")[0]
        aws.clear_faults()
        stacks.client.continue_update_rollback(StackName=STACK)
        stacks.client.get_waiter("stack_rollback_complete").wait(StackName=STACK, WaiterConfig={"Delay": 1})
        assert stacks.status("trn1-16") == "UPDATE_COMPLETE", "nothing was asked of the cluster's own stack"
