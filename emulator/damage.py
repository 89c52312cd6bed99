"""What can be done to an account to spoil it, given the account and what the settings name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from config.settings import Settings
from emulator import stand_ins
from emulator.aws import EmulatedAws
from emulator.resources import make_bucket

_OTHER_REGION = "eu-west-1"
_TRN_VCPUS = {"ServiceCode": "ec2", "QuotaCode": "L-2C3B7624"}
_ADDRESSES = ("ec2", "L-0263D0A3")


@dataclass(frozen=True)
class Account:
    """The emulated account of a deployment.

    Attributes:
        aws: The emulated AWS.
        settings: Those of the deployment.
        environment: The variables with which it is to be looked at.
        stack: What ends with it.
    """

    aws: EmulatedAws
    settings: Settings
    environment: dict[str, str]
    stack: ExitStack

    def client(self, service: str) -> Any:
        """Return a client of a service in the deployment's Region."""
        return self.aws.client(service, self.settings.region)


def sign_out(spoilt: Account, _: str) -> None:
    """Give no credentials to who looks."""
    spoilt.environment.update({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""})


def take_rights(spoilt: Account, _: str) -> None:
    """Let who looks describe stacks, and nothing else."""
    left = {"Effect": "Allow", "Action": "cloudformation:DescribeStacks", "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [left]}
    spoilt.environment.update(spoilt.stack.enter_context(spoilt.aws.restricted(policy)))


def withhold_type(spoilt: Account, _: str) -> None:
    """Have the zone offer the first compute resource's type no longer."""
    instance_type = spoilt.settings.cluster.queues[0].compute_resources[0].instance_type
    spoilt.aws.inject("offering", f"{spoilt.settings.zone_id}/{instance_type}")


def grant_little(spoilt: Account, _: str) -> None:
    """Raise the quota of on-demand Trn instances to 8 vCPUs."""
    spoilt.client("service-quotas").request_service_quota_increase(**_TRN_VCPUS, DesiredValue=8)


def take_addresses(spoilt: Account, __: str) -> None:
    """Use up the Elastic IP addresses."""
    for _ in range(stand_ins.RAISED_QUOTAS[_ADDRESSES]):
        spoilt.client("ec2").allocate_address(Domain="vpc")


def shrink_reservation(spoilt: Account, reservation_id: str) -> None:
    """Take an instance off a reservation."""
    _remake_reservation(spoilt, reservation_id, lambda old: {"InstanceCount": old["TotalInstanceCount"] - 1})


def end_block(spoilt: Account, reservation_id: str) -> None:
    """Let a Capacity Block have ended yesterday."""
    now = datetime.now(UTC)
    period = {"StartDate": now - timedelta(days=15), "EndDate": now - timedelta(days=1)}
    _remake_reservation(spoilt, reservation_id, lambda _: period)


def _remake_reservation(
    spoilt: Account, reservation_id: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> None:
    """Put another reservation in the place of one, under the same id."""
    ec2 = spoilt.client("ec2")
    [old] = ec2.describe_capacity_reservations(CapacityReservationIds=[reservation_id])["CapacityReservations"]
    arguments = {
        **{key: old[key] for key in ("InstanceType", "InstancePlatform", "AvailabilityZoneId")},
        "InstanceMatchCriteria": old["InstanceMatchCriteria"],
        "InstanceCount": old["TotalInstanceCount"],
        **change(old),
    }
    ec2.create_capacity_reservation(**arguments, **_tagged("capacity-reservation", reservation_id, old["Tags"]))


def make_rsa_key(spoilt: Account, name: str) -> None:
    """Put an RSA key in the place of an SSH key."""
    spoilt.client("ec2").delete_key_pair(KeyName=name)
    spoilt.client("ec2").create_key_pair(KeyName=name, KeyType="rsa")


def take_name(spoilt: Account, _: str) -> None:
    """Give a stack of something else the cluster's name."""
    resource = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "somebody else's"}}
    spoilt.client("cloudformation").create_stack(
        StackName=spoilt.settings.cluster_spec.name, TemplateBody=json.dumps({"Resources": {"Parameter": resource}})
    )


def remove_images(spoilt: Account, _: str) -> None:
    """Take ParallelCluster's images away."""
    ec2 = spoilt.client("ec2")
    for image in ec2.describe_images(Owners=["amazon"])["Images"]:
        ec2.deregister_image(ImageId=image["ImageId"])


def remove_provider(spoilt: Account, _: str) -> None:
    """Take the template of ParallelCluster's provider away."""
    version = spoilt.settings.cluster.parallelcluster_version
    spoilt.client("s3").delete_object(
        Bucket=f"{spoilt.settings.region}-aws-parallelcluster",
        Key=f"parallelcluster/{version}/templates/custom_resource/cluster.yaml",
    )


def switch_dns_off(spoilt: Account, vpc_id: str) -> None:
    """Have a VPC give no DNS names."""
    spoilt.client("ec2").modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})


def shrink_subnet(spoilt: Account, subnet_id: str) -> None:
    """Put the smallest subnet that there is in the place of one, under the same id."""
    ec2 = spoilt.client("ec2")
    [old] = ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"]
    table = _route_table(spoilt, subnet_id)
    [association] = [each for each in table["Associations"] if each.get("SubnetId") == subnet_id]
    ec2.disassociate_route_table(AssociationId=association["RouteTableAssociationId"])
    ec2.delete_subnet(SubnetId=subnet_id)
    ec2.create_subnet(
        VpcId=old["VpcId"],
        CidrBlock=f"{old['CidrBlock'].partition('/')[0]}/28",
        AvailabilityZoneId=old["AvailabilityZoneId"],
        **_tagged("subnet", subnet_id, old["Tags"]),
    )
    ec2.associate_route_table(RouteTableId=table["RouteTableId"], SubnetId=subnet_id)


def remove_route(spoilt: Account, subnet_id: str) -> None:
    """Take the way out away from a subnet."""
    table_id = _route_table(spoilt, subnet_id)["RouteTableId"]
    spoilt.client("ec2").delete_route(RouteTableId=table_id, DestinationCidrBlock="0.0.0.0/0")


def _route_table(spoilt: Account, subnet_id: str) -> dict[str, Any]:
    inside = [{"Name": "association.subnet-id", "Values": [subnet_id]}]
    [table] = spoilt.client("ec2").describe_route_tables(Filters=inside)["RouteTables"]
    found: dict[str, Any] = table
    return found


def move_bucket(spoilt: Account, name: str) -> None:
    """Put a bucket of the same name in another Region."""
    spoilt.client("s3").delete_bucket(Bucket=name)
    make_bucket(spoilt.aws.client("s3", _OTHER_REGION), name, _OTHER_REGION)


def schedule_deletion(spoilt: Account, key_arn: str) -> None:
    """Schedule the deletion of a key."""
    spoilt.client("kms").schedule_key_deletion(KeyId=key_arn.rpartition("/")[2])


def _tagged(resource_type: str, chosen_id: str, tags: list[dict[str, str]]) -> dict[str, Any]:
    """Return tags with the one that chooses an id here, which only some resources keep."""
    others = [tag for tag in tags if tag["Key"] != "_custom_id_"]
    listed = [*others, {"Key": "_custom_id_", "Value": chosen_id}]
    return {"TagSpecifications": [{"ResourceType": resource_type, "Tags": listed}]}
