"""The emulated AWS rejects what ParallelCluster and AWS would: good configurations are broken on purpose."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from emulator.aws import EmulatedAws
from toolchain.cluster import ClusterRequest
from toolchain.parallelcluster import Message, ParallelCluster

pytestmark = [pytest.mark.slow, pytest.mark.validation]

Configuration = dict[str, Any]
Edit = Callable[[Configuration], object]
LAUNCH = "ComputeResourceLaunchTemplateValidator"


def queue(configuration: Configuration) -> Configuration:
    first: Configuration = configuration["Scheduling"]["SlurmQueues"][0]
    return first


def use_subnet(subnet_id: str) -> Edit:
    return lambda c: queue(c)["Networking"].update(SubnetIds=[subnet_id])


@pytest.fixture(scope="module")
def request_(deployment: Callable[[str], Any]) -> ClusterRequest:
    request: ClusterRequest = deployment("trn1-16").request
    return request


@pytest.fixture(scope="module")
def ec2(aws: EmulatedAws, request_: ClusterRequest) -> Any:
    return aws.client("ec2", request_.region)


@pytest.fixture(scope="module")
def make_subnet(ec2: Any, request_: ClusterRequest) -> Callable[..., str]:
    """Return a function that makes a subnet without automatic public addresses, by default in the cluster's VPC."""
    head_subnet = request_.configuration["HeadNode"]["Networking"]["SubnetId"]
    [head] = ec2.describe_subnets(SubnetIds=[head_subnet])["Subnets"]

    def make(cidr: str, zone_id: str = "usw2-az4", vpc_id: str = head["VpcId"]) -> str:
        made = ec2.create_subnet(VpcId=vpc_id, CidrBlock=cidr, AvailabilityZoneId=zone_id)
        subnet_id = str(made["Subnet"]["SubnetId"])
        ec2.modify_subnet_attribute(SubnetId=subnet_id, MapPublicIpOnLaunch={"Value": False})
        return subnet_id

    return make


@pytest.fixture(scope="module")
def problems(parallelcluster: ParallelCluster, request_: ClusterRequest) -> Callable[[Edit], list[Message]]:
    """Return a function that breaks the configuration and gives the messages that the good one does not have."""
    good = parallelcluster.validate(request_.configuration)

    def broken(edit: Edit) -> list[Message]:
        configuration = copy.deepcopy(request_.configuration)
        edit(configuration)
        return [each for each in parallelcluster.validate(configuration) if each not in good and each.level != "INFO"]

    return broken


BROKEN: dict[str, tuple[Edit, str, str]] = {
    "nodes in a subnet that assigns public addresses": (
        lambda c: use_subnet(c["HeadNode"]["Networking"]["SubnetId"])(c),
        "ERROR MultiNetworkInterfacesInstancesValidator",
        "auto-assign public IPs",
    ),
    "script that is not there": (
        lambda c: queue(c).update(CustomActions={"OnNodeConfigured": {"Script": "s3://nowhere/script.sh"}}),
        "WARNING AsyncTimedUrlValidator",
        "'script.sh' not found in 'nowhere'",
    ),
    "OS without an official image": (
        lambda c: c["Image"].update(Os="rocky9"),
        "ERROR Request",
        "Cannot find official ParallelCluster AMI",
    ),
}


@pytest.mark.parametrize(("edit", "kind", "text"), BROKEN.values(), ids=BROKEN)
def test_a_broken_configuration_is_caught(
    edit: Edit, kind: str, text: str, problems: Callable[[Edit], list[Message]]
) -> None:
    assert any(f"{each.level} {each.validator}" == kind and text in each.text for each in problems(edit))


def test_an_rsa_key_is_refused_on_ubuntu(ec2: Any, problems: Callable[[Edit], list[Message]]) -> None:
    ec2.create_key_pair(KeyName="rsa", KeyType="rsa")
    [refusal] = problems(lambda c: c["HeadNode"]["Ssh"].update(KeyName="rsa"))
    assert (refusal.level, refusal.validator) == ("ERROR", "KeyPairValidator")


def test_subnets_that_nodes_cannot_launch_in_are_caught(
    ec2: Any, make_subnet: Callable[..., str], problems: Callable[[Edit], list[Message]]
) -> None:
    other_vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    full = make_subnet("10.0.2.0/28")  # 11 addresses, 8 of them asked for
    assert problems(use_subnet(full)) == []
    for _ in range(4):
        ec2.create_network_interface(SubnetId=full)

    for subnet_id, text in (
        (make_subnet("10.9.0.0/24", vpc_id=other_vpc), "belong to different networks"),
        (make_subnet("10.0.1.0/24", zone_id="usw2-az2"), "trn1.32xlarge) is not supported in the Availability Zone"),
        (full, "does not contain enough free private IP addresses"),
    ):
        messages = problems(use_subnet(subnet_id))
        assert any(each.validator == LAUNCH and text in each.text for each in messages), messages


def test_stack_tags_count_as_tags_of_the_cluster(parallelcluster: ParallelCluster, request_: ClusterRequest) -> None:
    stack_tags = {"parallelcluster:mine": "reserved prefix"}
    verdict = parallelcluster.create(ClusterRequest(request_.region, request_.properties, stack_tags), strings=True)
    assert not verdict.accepted
    assert "parallelcluster:" in str(verdict.messages)
