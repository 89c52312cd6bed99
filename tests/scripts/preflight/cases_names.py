"""Names that are free, ours or taken, and stacks in all states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scripts.preflight import names
from scripts.preflight.check import Status
from tests.emulator.stacks import Stacks, parameter
from tests.scripts.preflight.answers import Patch, answering
from tests.scripts.preflight.cases import Case
from tests.scripts.preflight.conftest import GoodAccount

Spoil = Callable[[GoodAccount], None]

REFUSED = parameter(Name="aws/refused")
"""A resource that cannot be created: Systems Manager keeps such names to itself."""
NETWORK = "trn1-16-network"
OURS = {"Description": "Trn1 UltraCluster trn1-16: network"}
OUR_CLUSTER = {"Description": "Trn1 UltraCluster trn1-16: cluster"}
CLUSTER = "trn1-16"


def stacks(account: GoodAccount) -> Stacks:
    return Stacks(account.aws, account.settings.region)


def has_stack(name: str, template: Any = None, value: Any = None, **arguments: Any) -> Spoil:
    def make(account: GoodAccount) -> None:
        stacks(account).create(name, {"R": value or parameter()}, template=template, **arguments)

    return make


def has_failed_update(account: GoodAccount) -> None:
    stacks(account).create(NETWORK, {"R": parameter()}, template=OURS)
    stacks(account).update(NETWORK, {"R": parameter(), "S": REFUSED}, template=OURS, DisableRollback=True)


def has_undone_update(account: GoodAccount) -> None:
    stacks(account).create(NETWORK, {"R": parameter()}, template=OURS)
    stacks(account).update(NETWORK, {"R": parameter(), "S": REFUSED}, template=OURS)


def has_change_set(account: GoodAccount) -> None:
    stacks(account).change_set(NETWORK, {"R": parameter()}, template=OURS, ChangeSetType="CREATE")


def is_busy(account: GoodAccount) -> None:
    """Have a stack that waits for somebody who never comes."""
    wait = {"Type": "AWS::CloudFormation::WaitCondition", "Properties": {"Handle": {"Ref": "H"}, "Timeout": 3600}}
    handle = {"Type": "AWS::CloudFormation::WaitConditionHandle"}
    stacks(account).create(NETWORK, {"H": handle, "W": wait}, template=OURS)


def has_cluster(account: GoodAccount) -> None:
    """Have the stacks of a cluster; a parameter with the cluster's name stands for the Custom::PclusterCluster."""
    stacks(account).create("trn1-16-cluster", {"Cluster": parameter(Name=CLUSTER)})
    stacks(account).create(CLUSTER, {"HeadNode": parameter()})


def in_state(status: str, name: str = NETWORK) -> Patch:
    def alter(answer: Any) -> None:
        for stack in answer["Stacks"]:
            if stack["StackName"] == name:
                stack["StackStatus"] = status

    return answering("describe_stacks", alter)


def in_generation(number: int) -> Callable[[dict[str, Any]], None]:
    return lambda raw: raw["cluster"].update(generation=number)


def with_key(name: str, **facts: object) -> Callable[[dict[str, Any]], None]:
    def edit(raw: dict[str, Any]) -> None:
        raw["cluster"]["head_node"].update(ssh_key_name=name, ssh_cidr="203.0.113.0/24")
        raw["cluster"].update(facts)

    return edit


def without_key(account: GoodAccount) -> None:
    account.client("ec2").delete_key_pair(KeyName="mine")


def with_rsa_key(account: GoodAccount) -> None:
    without_key(account)
    account.client("ec2").create_key_pair(KeyName="mine", KeyType="rsa")


def in_group(raw: dict[str, Any]) -> None:
    raw["cluster"]["queues"][0].update(placement_group=None, existing_placement_group="near")


def without_group(account: GoodAccount) -> None:
    account.client("ec2").delete_placement_group(GroupName="near")


def with_spread_group(account: GoodAccount) -> None:
    without_group(account)
    account.client("ec2").create_placement_group(GroupName="near", Strategy="spread")


def vanishing(answer: Any) -> None:
    answer["PlacementGroups"][0]["State"] = "deleting"


CASES = (
    Case(names.stack_names, Status.PASS, ("there is no stack trn1-16-network yet",)),
    Case(
        names.stack_names,
        Status.PASS,
        ("trn1-16-network is CREATE_COMPLETE, and ours to update",),
        has_stack(NETWORK, OURS),
        name="deployed",
    ),
    Case(
        names.stack_names,
        Status.PASS,
        ("trn1-16-network is UPDATE_ROLLBACK_COMPLETE, and ours to update",),
        has_undone_update,
        name="rolled-back",
    ),
    Case(
        names.stack_names,
        Status.WARN,
        ("trn1-16-cluster still holds a cluster of an earlier generation", "make upgrade ENV=trn1-16"),
        has_stack("trn1-16-cluster", OUR_CLUSTER),
        edit=in_generation(2),
        name="older-generation",
    ),
    Case(
        names.stack_names,
        Status.FAIL,
        ("trn1-16-cluster-3 holds a cluster of a later generation than config/trn1-16.yaml names (1)", "--abandon"),
        has_stack("trn1-16-cluster-3", OUR_CLUSTER),
        name="later-generation",
    ),
    Case(
        names.stack_names,
        Status.FAIL,
        ("taken by a stack that is not ours: somebody's VPC", "choose another `name`"),
        has_stack(NETWORK, {"Description": "somebody's VPC"}),
        name="taken",
    ),
    Case(names.stack_names, Status.FAIL, ("without description",), has_stack(NETWORK), name="taken-silently"),
    Case(names.stack_names, Status.FAIL, ("CREATE_IN_PROGRESS", "wait"), is_busy, name="busy"),
    Case(
        names.stack_names,
        Status.WARN,
        ("REVIEW_IN_PROGRESS", "go ahead, unless somebody else is deploying"),
        has_change_set,
        name="reviewed",
    ),
    Case(
        names.stack_names,
        Status.WARN,
        ("ROLLBACK_COMPLETE", "the next deployment deletes it", "describe-stack-events --stack-name trn1-16-network"),
        has_stack(NETWORK, OURS, REFUSED),
        name="never-created",
    ),
    Case(
        names.stack_names,
        Status.FAIL,
        ("ROLLBACK_COMPLETE", "update-termination-protection --no-enable-termination-protection --stack-name trn1-16"),
        has_stack(NETWORK, OURS, REFUSED, EnableTerminationProtection=True),
        name="never-created-and-protected",
    ),
    Case(
        names.stack_names,
        Status.FAIL,
        ("CREATE_FAILED", "aws cloudformation rollback-stack --stack-name trn1-16-network"),
        has_stack(NETWORK, OURS, REFUSED, DisableRollback=True),
        name="left-as-failed",
    ),
    Case(
        names.stack_names,
        Status.FAIL,
        ("UPDATE_FAILED", "aws cloudformation rollback-stack --stack-name trn1-16-network"),
        has_failed_update,
        name="left-as-updated",
    ),
    Case(
        names.stack_names,
        Status.FAIL,
        ("UPDATE_ROLLBACK_FAILED", "aws cloudformation continue-update-rollback --stack-name trn1-16-network"),
        has_stack(NETWORK, OURS),
        patch=in_state("UPDATE_ROLLBACK_FAILED"),
        name="stuck",
    ),
    Case(
        names.stack_names,
        Status.FAIL,
        ("DELETE_FAILED", "aws cloudformation delete-stack --stack-name trn1-16-network"),
        has_stack(NETWORK, OURS),
        patch=in_state("DELETE_FAILED"),
        name="not-deleted",
    ),
    Case(
        names.stack_names,
        Status.FAIL,
        ("IMPORT_ROLLBACK_FAILED", "its events tell", "describe-stack-events"),
        has_stack(NETWORK, OURS),
        patch=in_state("IMPORT_ROLLBACK_FAILED"),
        name="not-imported",
    ),
    Case(names.cluster_name, Status.PASS, ("there is no cluster or stack trn1-16 yet",)),
    Case(names.cluster_name, Status.PASS, ("CREATE_COMPLETE, and ours to update",), has_cluster, name="deployed"),
    Case(
        names.cluster_name,
        Status.FAIL,
        ("UPDATE_IN_PROGRESS", "wait"),
        has_cluster,
        patch=in_state("UPDATE_IN_PROGRESS", CLUSTER),
        name="busy",
    ),
    Case(
        names.cluster_name,
        Status.FAIL,
        ("which is ours, is UPDATE_ROLLBACK_FAILED", "continue-update-rollback --stack-name trn1-16 "),
        has_cluster,
        patch=in_state("UPDATE_ROLLBACK_FAILED", CLUSTER),
        name="stuck",
    ),
    Case(
        names.cluster_name,
        Status.FAIL,
        ("a stack that is no cluster (CREATE_COMPLETE)", "choose another `cluster.name` in config/trn1-16.yaml"),
        has_stack(CLUSTER),
        name="taken-by-a-stack",
    ),
    Case(
        names.cluster_name,
        Status.FAIL,
        (
            "a cluster that trn1-16-cluster did not make (CREATE_COMPLETE)",
            "choose another `cluster.name`",
            "pcluster delete-cluster --cluster-name trn1-16 --region us-west-2",
        ),
        has_stack(CLUSTER, Tags=[{"Key": "parallelcluster:version", "Value": "3.16.1"}]),
        name="taken-by-a-cluster",
    ),
    Case(
        names.cluster_name,
        Status.FAIL,
        ("is being deleted", "wait until it is gone"),
        has_stack(CLUSTER),
        patch=in_state("DELETE_IN_PROGRESS", CLUSTER),
        name="on-its-way-out",
    ),
    Case(names.ssh_key, Status.SKIP, name="none"),
    Case(names.ssh_key, Status.PASS, ("mine is of type ed25519, which ubuntu2404 takes",), edit=with_key("mine")),
    Case(
        names.ssh_key,
        Status.FAIL,
        ("no key pair mine in us-west-2", "aws ec2 create-key-pair --key-type ed25519 --key-name mine "),
        without_key,
        edit=with_key("mine"),
        name="missing",
    ),
    Case(
        names.ssh_key,
        Status.FAIL,
        ("type rsa; allowed with ubuntu2404: ed25519", "--key-name mine-ed25519", "`cluster.head_node.ssh_key_name`"),
        with_rsa_key,
        edit=with_key("mine"),
        name="rsa",
    ),
    Case(
        names.ssh_key,
        Status.PASS,
        ("type rsa, which alinux2023 takes",),
        with_rsa_key,
        edit=with_key("mine", os="alinux2023", pytorch="2.8"),
        name="rsa-on-amazon-linux",
    ),
    Case(names.placement_group, Status.SKIP, name="none"),
    Case(names.placement_group, Status.PASS, ("near has strategy cluster and is available",), edit=in_group),
    Case(
        names.placement_group,
        Status.FAIL,
        ("there is no placement group near", "`cluster.queues[0].existing_placement_group`"),
        without_group,
        edit=in_group,
        name="missing",
    ),
    Case(
        names.placement_group,
        Status.FAIL,
        ("strategy spread", "allowed: strategy cluster", "`cluster.queues[0].existing_placement_group`"),
        with_spread_group,
        edit=in_group,
        name="spread",
    ),
    Case(
        names.placement_group,
        Status.FAIL,
        ("is deleting; allowed: available",),
        edit=in_group,
        patch=answering("describe_placement_groups", vanishing),
        name="vanishing",
    ),
)
