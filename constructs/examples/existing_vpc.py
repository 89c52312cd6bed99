"""A cluster in a VPC that exists: its zones and subnets are given, so that synthesis asks no account."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2

from ultracluster import ComputeResource, HeadNode, ParallelCluster, Queue

app = cdk.App()
stack = cdk.Stack(app, "Simulation", env=cdk.Environment(region="us-west-2"))
vpc = ec2.Vpc.from_vpc_attributes(
    stack,
    "Vpc",
    vpc_id="vpc-0123456789abcdef0",
    availability_zones=["us-west-2a"],
    public_subnet_ids=["subnet-0123456789abcdef0"],
    public_subnet_route_table_ids=["rtb-0123456789abcdef0"],
    private_subnet_ids=["subnet-0123456789abcdef1"],
    private_subnet_route_table_ids=["rtb-0123456789abcdef1"],
)
cluster = ParallelCluster(
    stack,
    "Cluster",
    vpc=vpc,
    head_node=HeadNode(instance_type=ec2.InstanceType("m6i.xlarge"), public=False),
    queues=[
        Queue(
            name="cpu",
            compute_resources=[ComputeResource(name="c7i", instance_type="c7i.48xlarge", max_count=8)],
        )
    ],
)
cdk.CfnOutput(stack, "HeadNode", value=cluster.head_node_instance_id)
app.synth()
