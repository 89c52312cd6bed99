"""A selection of subnets may stand wherever a subnet may."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template

import ultracluster as uc

pytestmark = pytest.mark.slow

ALL = {
    **{name: getattr(uc, name) for name in uc.__all__},
    "ParallelCluster.add_queue": uc.ParallelCluster.add_queue,
}
NODES = uc.ComputeResource(name="c7i", instance_type="c7i.8xlarge", max_count=2)


def cluster(stack: cdk.Stack, vpc: ec2.Vpc, *, queue: Any = None, **arguments: Any) -> uc.ParallelCluster:
    queue = {"name": "cpu", "compute_resources": [NODES], **(queue or {})}
    return uc.ParallelCluster(stack, "It", vpc=vpc, cluster_name="it", queues=[uc.Queue(**queue)], **arguments)


def adds(stack: cdk.Stack, vpc: ec2.Vpc, subnet: Any) -> None:
    cluster(stack, vpc).add_queue(uc.Queue(name="further", compute_resources=[NODES], subnet=subnet))


MAKE: dict[tuple[str, str], Callable[[cdk.Stack, ec2.Vpc, Any], Any]] = {
    ("AccountingDatabase", "subnets"): lambda stack, vpc, each: uc.AccountingDatabase(
        stack, "It", vpc=vpc, subnets=each if isinstance(each, ec2.SubnetSelection) else [each, vpc.private_subnets[0]]
    ),
    ("ElasticFileSystem", "subnet"): lambda stack, vpc, each: uc.ElasticFileSystem(stack, "It", vpc=vpc, subnet=each),
    ("HeadNode", "subnet"): lambda stack, vpc, each: cluster(stack, vpc, head_node=uc.HeadNode(subnet=each)),
    ("LoginPool", "subnet"): lambda stack, vpc, each: cluster(
        stack, vpc, login_nodes=[uc.LoginPool(name="login", subnet=each)]
    ),
    ("LustreFileSystem", "subnet"): lambda stack, vpc, each: uc.LustreFileSystem(stack, "It", vpc=vpc, subnet=each),
    ("OpenZfsFileSystem", "subnet"): lambda stack, vpc, each: uc.OpenZfsFileSystem(stack, "It", vpc=vpc, subnet=each),
    ("ParallelCluster", "private_subnet"): lambda stack, vpc, each: cluster(stack, vpc, private_subnet=each),
    ("ParallelCluster", "public_subnet"): lambda stack, vpc, each: cluster(stack, vpc, public_subnet=each),
    ("Queue", "subnet"): lambda stack, vpc, each: cluster(stack, vpc, queue={"subnet": each}),
    ("ParallelCluster.add_queue", "queue"): adds,
}


def takers() -> Iterator[tuple[str, str]]:
    """Yield what of the library takes a subnet: classes, or methods, with the names of arguments."""
    for name, each in ALL.items():
        for argument, parameter in inspect.signature(each).parameters.items():
            if "subnet" in argument and "ISubnet" in str(parameter.annotation) and name != "UltraClusterNetwork":
                yield name, argument


def template(make: Callable[[cdk.Stack, ec2.Vpc, Any], Any], select: Callable[[ec2.Vpc], Any]) -> Any:
    stack = cdk.Stack(cdk.App(), "Training", env=cdk.Environment(region="us-west-2"))
    kinds = {
        "public": ec2.SubnetType.PUBLIC,
        "first": ec2.SubnetType.PRIVATE_WITH_EGRESS,
        "second": ec2.SubnetType.PRIVATE_WITH_EGRESS,
    }
    groups = [ec2.SubnetConfiguration(name=name, subnet_type=kind) for name, kind in kinds.items()]
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=1, subnet_configuration=groups)
    make(stack, vpc, select(vpc))
    return Template.from_stack(stack).to_json()


def test_everything_that_takes_a_subnet_is_tried() -> None:
    assert {*takers()} | {("ParallelCluster.add_queue", "queue")} == MAKE.keys()


@pytest.mark.parametrize("taker", MAKE, ids=".".join)
def test_a_selection_stands_for_its_first_subnet(taker: tuple[str, str]) -> None:
    selection = ec2.SubnetSelection(subnet_group_name="second")
    selected = template(MAKE[taker], lambda _: selection)
    if taker != ("AccountingDatabase", "subnets"):  # which takes all
        assert selected == template(MAKE[taker], lambda vpc: vpc.select_subnets(subnet_group_name="second").subnets[0])
    assert "VpcsecondSubnet1" in str({name: each for name, each in selected["Resources"].items() if name[:2] == "It"})


@pytest.mark.parametrize("taker", MAKE, ids=".".join)
def test_one_that_the_vpc_does_not_have_is_refused(taker: tuple[str, str]) -> None:
    with pytest.raises(uc.InvalidArguments, match=r"There are no subnet groups with name 'third'") as refused:
        template(MAKE[taker], lambda _: ec2.SubnetSelection(subnet_group_name="third"))
    [wrong] = refused.value.violations
    assert "subnet" in str(wrong.path)
    assert wrong.allowed == "subnets of Training/Vpc"
