"""Queues of GPUs and CPUs: one in a Capacity Block, one on Spot, one in a placement group that exists."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2

from ultracluster import ComputeResource, HeadNode, ParallelCluster, Queue, Slurm, UltraClusterNetwork

app = cdk.App()
stack = cdk.Stack(app, "Research", env=cdk.Environment(region="us-west-2"))
network = UltraClusterNetwork(stack, "Network", zone_id="usw2-az4", nat_addresses=2)
prefixes = ec2.PrefixList(stack, "Office", entries=[ec2.CfnPrefixList.EntryProperty(cidr="203.0.113.0/24")])
block = ComputeResource(
    name="p5",
    instance_type="p5.48xlarge",
    min_count=2,
    max_count=2,
    capacity_reservation_id=ec2.CfnCapacityReservation(
        stack,
        "Reserved",
        availability_zone="us-west-2d",
        instance_count=2,
        instance_platform="Linux/UNIX",
        instance_type="p5.48xlarge",
    ).attr_id,
)
small = [ComputeResource(name=f"c7i-{size}", instance_type=f"c7i.{size}", max_count=20) for size in ("large", "xlarge")]
queues = [
    Queue(name="gpu", capacity_type="CAPACITY_BLOCK", compute_resources=[block]),
    Queue(name="spot", capacity_type="SPOT", exclusive_jobs=False, compute_resources=small),
    Queue(
        name="near",
        compute_resources=[ComputeResource(name="c7i", instance_type="c7i.48xlarge", max_count=8)],
        existing_placement_group=ec2.PlacementGroup.from_placement_group_name(stack, "Group", "theirs"),
    ),
]
key = ec2.KeyPair.from_key_pair_name(stack, "Key", "me")
ParallelCluster(
    stack,
    "Cluster",
    vpc=network.vpc,
    head_node=HeadNode(
        instance_type=ec2.InstanceType.of(ec2.InstanceClass.M7I, ec2.InstanceSize.XLARGE4),
        ssh_key_name=key,
        ssh_cidr=prefixes.prefix_list_id,
    ),
    queues=queues,
    slurm=Slurm(idle_minutes=cdk.Duration.minutes(15), custom_settings={"JobRequeue": "0"}),
)
app.synth()
