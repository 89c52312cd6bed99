"""Each fault leads where it leads on AWS, and what failed succeeds once the cause is fixed."""

from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws
from emulator.faults import Faults
from emulator.node_faults import NodeFaults
from tests.emulator.account import Account
from tests.emulator.stacks import REGION, code_and_message


@pytest.fixture
def impatient(aws: EmulatedAws) -> Callable[[str], Any]:
    """Return a function that makes a client which never tries again."""

    def client(service: str) -> Any:
        session = boto3.Session(aws.key, "testing")
        once = Config(retries={"total_max_attempts": 1})
        return session.client(service, REGION, endpoint_url=aws.endpoint, config=once)

    return client


@pytest.mark.parametrize(
    ("service", "action", "refusal"),
    [
        # https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
        ("ec2", "describe_vpcs", ("RequestLimitExceeded", "Request limit exceeded.")),
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/CommonErrors.html
        ("cloudformation", "describe_stacks", ("Throttling", "Rate exceeded")),
    ],
)
def test_the_first_call_is_throttled(
    service: str, action: str, refusal: tuple[str, str], aws: EmulatedAws, impatient: Callable[[str], Any]
) -> None:
    client = impatient(service)
    aws.inject("throttling")
    with pytest.raises(ClientError) as refused:
        getattr(client, action)()
    assert code_and_message(refused.value) == refusal
    getattr(client, action)()


def test_a_zone_does_not_offer_a_type(aws: EmulatedAws) -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html
    account = Account(aws)
    ec2 = account.client("ec2")

    def offering(location_type: str) -> set[str]:
        wanted = [{"Name": "instance-type", "Values": ["c6i.xlarge"]}]
        offers = ec2.describe_instance_type_offerings(LocationType=location_type, Filters=wanted)
        return {offer["Location"] for offer in offers["InstanceTypeOfferings"]}

    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    names = {zone["ZoneId"]: zone["ZoneName"] for zone in zones}
    launch: dict[str, Any] = {"InstanceType": "c6i.xlarge", "SubnetId": account.subnet(account.vpc()).ref}
    ids, by_name = offering("availability-zone-id"), offering("availability-zone")
    aws.inject("offering", "usw2-az4/c6i.xlarge")
    assert ids - offering("availability-zone-id") == {"usw2-az4"}
    assert by_name - offering("availability-zone") == {names["usw2-az4"]}
    with pytest.raises(ClientError, match=r"\(Unsupported\)"):
        account.launch(**launch)
    aws.clear_faults()
    account.launch(**launch)


def test_an_account_has_no_elastic_ip_address_left(aws: EmulatedAws) -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
    ec2 = Account(aws).client("ec2")
    aws.inject("quota")
    with pytest.raises(ClientError) as refused:
        ec2.allocate_address(Domain="vpc")
    assert code_and_message(refused.value) == (
        "AddressLimitExceeded",
        "The maximum number of addresses has been reached.",
    )
    aws.clear_faults()
    ec2.allocate_address(Domain="vpc")


def test_compute_nodes_can_be_slow_to_stop(aws: EmulatedAws) -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/delete-placement-group.html
    account = Account(aws)
    ec2 = account.client("ec2")
    ec2.create_placement_group(GroupName="group", Strategy="cluster")

    def launch(node_type: str) -> str:
        tags = [{"Key": "parallelcluster:node-type", "Value": node_type}]
        tagged = [{"ResourceType": "instance", "Tags": tags}]
        return account.launch(Placement={"GroupName": "group"}, TagSpecifications=tagged)[0]

    def states() -> dict[str, str]:
        return {each["InstanceId"]: each["State"]["Name"] for each in account.instances()}

    compute, head_node = launch("Compute"), launch("HeadNode")
    aws.inject("stopping")
    for _ in range(2):  # EC2 takes it twice
        ec2.terminate_instances(InstanceIds=[compute, head_node])
    assert states() == {compute: "shutting-down", head_node: "terminated"}
    with pytest.raises(ClientError, match=r"InvalidPlacementGroup\.InUse"):
        ec2.delete_placement_group(GroupName="group")
    aws.clear_faults()
    assert set(states().values()) == {"terminated"}
    ec2.delete_placement_group(GroupName="group")


class Nodes:
    """Nodes that run, and whose shells this computer has."""

    def __init__(self, *instance_ids: str) -> None:
        self.instance_ids = instance_ids

    def nodes(self, kind: str) -> dict[str, str]:
        return dict.fromkeys(self.instance_ids, REGION) if kind == "Compute" else {}

    def shell(self, instance_id: str) -> list[str] | None:
        return ["false"] if instance_id in self.instance_ids else None


@pytest.mark.parametrize(
    ("nodes", "name", "target", "complaint"),
    [
        (None, "clock", "", "fault clock: it needs nodes that run, and these are only played"),
        (Nodes("i-1"), "disk", "", "fault disk: no HeadNode node runs"),
        (Nodes("i-1", "i-2"), "clock", "i-3", "fault clock: got i-3; allowed: i-1, i-2"),
        (Nodes("i-1"), "clock", "", "i-1: kill .*: exit code 1: "),
    ],
)
def test_a_fault_of_nodes_that_cannot_begin(nodes: Nodes | None, name: str, target: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        NodeFaults(nodes).begin(name, target)


def test_nodes_that_are_only_played_have_faults_of_their_own(aws: EmulatedAws) -> None:
    assert aws.inject("head-node") == ""
    with pytest.raises(HTTPError, match="400"):
        aws.inject("clock")


def test_only_nodes_of_a_kind_that_start_meanwhile_have_its_faults() -> None:
    faults = Faults()
    faults.inject("node-script")
    assert "modprobe" in faults.at_boot("Compute")
    assert faults.at_boot("HeadNode") == ""
    faults.clear()
    assert faults.at_boot("Compute") == ""
