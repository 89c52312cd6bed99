"""Login nodes, with Amazon EFS and FSx for OpenZFS: of the library, and of the CDK."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs

from ultracluster import (
    ComputeResource,
    ElasticFileSystem,
    LoginPool,
    OpenZfsFileSystem,
    ParallelCluster,
    Queue,
    SharedStorage,
)

app = cdk.App()
stack = cdk.Stack(app, "Homes", env=cdk.Environment(region="us-west-2"))
vpc = ec2.Vpc(stack, "Vpc", max_azs=1)
tools = efs.FileSystem(stack, "Tools", vpc=vpc)
tools.connections.allow_internally(ec2.Port.NFS)
homes = OpenZfsFileSystem(stack, "Homes", vpc=vpc, capacity_gib=512, quotas={2001: 100})
shared = ElasticFileSystem(stack, "Shared", vpc=vpc)
storage = [SharedStorage.openzfs(homes), SharedStorage.efs(tools, "/tools"), SharedStorage.efs(shared, "/shared")]
pools = [LoginPool(name="login", count=2, grace_minutes=cdk.Duration.minutes(5))]
cpu = Queue(name="cpu", compute_resources=[ComputeResource(name="c7i", instance_type="c7i.large", max_count=2)])
ParallelCluster(stack, "Cluster", vpc=vpc, queues=[cpu], login_nodes=pools, shared_storage=storage)
app.synth()
