"""Trn1 nodes in a VPC of the app, with a file system."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2

import ultracluster as uc

app = cdk.App()
stack = cdk.Stack(app, "Training", env=cdk.Environment(region="us-west-2"))
vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2d"])
data = uc.LustreFileSystem(stack, "Data", vpc=vpc, capacity_gib=cdk.Size.tebibytes(4.6875), kms_key=None)
nodes = [uc.ComputeResource(name="trn1-32xl", instance_type="trn1.32xlarge", max_count=4)]
queues = [uc.Queue(name="trn1", compute_resources=nodes, subnet=vpc.private_subnets[0])]
storage = [uc.SharedStorage.lustre(data)]
uc.ParallelCluster(stack, "Cluster", vpc=vpc, queues=queues, shared_storage=storage, software=uc.NeuronSoftware())
app.synth()
