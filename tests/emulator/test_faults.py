"""Each fault leads where it leads on AWS, and what failed succeeds once the cause is fixed."""

from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws
from tests.emulator.stacks import REGION, code_and_message

GROUP = {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}}


@pytest.fixture
def impatient(aws: EmulatedAws) -> Callable[[str], Any]:
    """Return a function that makes a client which never tries again."""

    def client(service: str) -> Any:
        session = boto3.Session("testing", "testing")
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
    ec2 = aws.client("ec2", REGION)

    def offering(location_type: str) -> set[str]:
        wanted = [{"Name": "instance-type", "Values": ["c6i.xlarge"]}]
        offers = ec2.describe_instance_type_offerings(LocationType=location_type, Filters=wanted)
        return {offer["Location"] for offer in offers["InstanceTypeOfferings"]}

    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    names = {zone["ZoneId"]: zone["ZoneName"] for zone in zones}
    image_id = ec2.register_image(Name="image", RootDeviceName="/dev/xvda")["ImageId"]
    vpc_id = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc_id, CidrBlock="10.0.0.0/24", AvailabilityZoneId="use1-az4")["Subnet"]
    once = {"MinCount": 1, "MaxCount": 1}
    launch = {"ImageId": image_id, "InstanceType": "c6i.xlarge", "SubnetId": subnet["SubnetId"], **once}
    ids, by_name = offering("availability-zone-id"), offering("availability-zone")
    aws.inject("offering", "use1-az4/c6i.xlarge")
    assert ids - offering("availability-zone-id") == {"use1-az4"}
    assert by_name - offering("availability-zone") == {names["use1-az4"]}
    with pytest.raises(ClientError) as refused:
        ec2.run_instances(**launch)
    assert refused.value.response["Error"]["Code"] == "Unsupported"
    aws.clear_faults()
    ec2.run_instances(**launch)
