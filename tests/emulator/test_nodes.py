"""Many nodes, and nodes that are slow to end."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws
from tests.emulator.stacks import code_and_message

REGION = "us-west-2"


class Nodes:
    """Instances of one image, in a placement group."""

    def __init__(self, aws: EmulatedAws) -> None:
        self.aws = aws
        self.ec2 = aws.client("ec2", REGION)
        self.ec2.create_placement_group(GroupName="group", Strategy="cluster")
        self._image: str = self.ec2.register_image(Name="image", RootDeviceName="/dev/sda1")["ImageId"]

    def launch(self, count: int, node_type: str = "Compute") -> list[str]:
        launched = self.ec2.run_instances(
            ImageId=self._image,
            InstanceType="c6i.4xlarge",
            Placement={"GroupName": "group"},
            MinCount=count,
            MaxCount=count,
            TagSpecifications=[
                {"ResourceType": "instance", "Tags": [{"Key": "parallelcluster:node-type", "Value": node_type}]}
            ],
        )
        return [each["InstanceId"] for each in launched["Instances"]]

    def states(self) -> dict[str, str]:
        reservations = self.ec2.describe_instances()["Reservations"]
        return {
            each["InstanceId"]: each["State"]["Name"]
            for reservation in reservations
            for each in reservation["Instances"]
        }


@pytest.fixture
def nodes(aws: EmulatedAws) -> Nodes:
    return Nodes(aws)


def test_compute_nodes_can_be_slow_to_stop(nodes: Nodes) -> None:
    compute, head_node = nodes.launch(2), nodes.launch(1, "HeadNode")
    nodes.aws.inject("stopping")
    nodes.ec2.terminate_instances(InstanceIds=[*compute, *head_node])
    nodes.ec2.terminate_instances(InstanceIds=[*compute, *head_node])  # EC2 takes it twice
    assert nodes.states() == {**dict.fromkeys(compute, "shutting-down"), head_node[0]: "terminated"}
    with pytest.raises(ClientError) as refusal:
        nodes.ec2.delete_placement_group(GroupName="group")
    assert code_and_message(refusal.value)[0] == "InvalidPlacementGroup.InUse"
    nodes.aws.clear_faults()
    assert set(nodes.states().values()) == {"terminated"}
    nodes.ec2.delete_placement_group(GroupName="group")
