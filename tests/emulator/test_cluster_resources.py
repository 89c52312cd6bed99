"""Resource types that only the stacks of clusters have: made, changed in place, deleted; boto3 looks."""

from collections.abc import Iterator
from typing import Any

import pytest

from emulator.aws import EmulatedAws
from emulator.inventory import inventory
from tests.emulator.account import REGION, Account, Resource

TRN1 = "trn1.32xlarge"


class Network(Account):
    """An account with a network, an image and a group of instances."""

    def __init__(self, aws: EmulatedAws) -> None:
        super().__init__(aws)
        self.ec2 = self.client("ec2")
        self.vpc_ = self.vpc()
        self.subnet_ = self.subnet(self.vpc_)
        self.group_ = self.group(self.vpc_)
        device = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 45}}
        self.image = self.ec2.register_image(
            Name="image", Architecture="x86_64", RootDeviceName="/dev/sda1", BlockDeviceMappings=[device]
        )["ImageId"]

    def interface(self, **properties: Any) -> Resource:
        groups = [self.group_.ref]
        return self.create("AWS::EC2::NetworkInterface", SubnetId=self.subnet_.ref, GroupSet=groups, **properties)

    def launch_template(self, **data: Any) -> Resource:
        data = {"ImageId": self.image, "InstanceType": "c6i.large", **data}
        return self.create("AWS::EC2::LaunchTemplate", LaunchTemplateName="template", LaunchTemplateData=data)

    def instance(self, template: Resource, **properties: Any) -> Resource:
        by = {"LaunchTemplateId": template.ref, "Version": template["LatestVersionNumber"]}
        return self.create("AWS::EC2::Instance", LaunchTemplate=by, **properties)

    def described(self, instance_id: str) -> dict[str, Any]:
        instance: dict[str, Any] = self.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0][
            "Instances"
        ][0]
        return instance

    def cards(self) -> list[dict[str, Any]]:
        """Return the interfaces of a trn1.32xlarge as ParallelCluster asks for them."""
        common = {"SubnetId": self.subnet_.ref, "Groups": [self.group_.ref]}
        first = {"DeviceIndex": 0, "NetworkCardIndex": 0, **common}
        efa = {"DeviceIndex": 1, "InterfaceType": "efa-only", "AssociatePublicIpAddress": False, **common}
        return [first, *({**efa, "NetworkCardIndex": card} for card in range(8))]


@pytest.fixture
def network(rehearsed_aws: EmulatedAws) -> Iterator[Network]:
    before = inventory(rehearsed_aws, REGION)
    network = Network(rehearsed_aws)
    yield network
    # What each test deletes leaves nothing behind.
    network.delete(network.group_)
    network.delete(network.subnet_)
    network.delete(network.vpc_)
    assert inventory(rehearsed_aws, REGION) == before


def test_a_node_has_an_interface_per_network_card_and_one_address(network: Network) -> None:
    template = network.launch_template(InstanceType=TRN1, NetworkInterfaces=network.cards())
    free = network.ec2.describe_subnets(SubnetIds=[network.subnet_.ref])["Subnets"][0]["AvailableIpAddressCount"]
    instance = network.instance(template)
    interfaces = network.described(instance.ref)["NetworkInterfaces"]
    kinds = [each["InterfaceType"] for each in interfaces]
    assert (kinds.count("interface"), kinds.count("efa-only")) == (1, 8)
    assert sum(len(each["PrivateIpAddresses"]) for each in interfaces) == 1
    left = network.ec2.describe_subnets(SubnetIds=[network.subnet_.ref])["Subnets"][0]["AvailableIpAddressCount"]
    assert free - left == 1
    network.delete(instance)
    network.delete(template)
