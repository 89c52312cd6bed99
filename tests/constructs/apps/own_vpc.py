"""Trn1 nodes in a VPC of the app, with a file system and people."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2

import ultracluster as uc

app = cdk.App()
stack = cdk.Stack(app, "Training", env=cdk.Environment(region="us-west-2"))
vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2d"])
data = uc.LustreFileSystem(stack, "Data", vpc=vpc, capacity_gib=cdk.Size.tebibytes(4.6875))
nodes = [uc.ComputeResource(name="trn1-32xl", instance_type="trn1.32xlarge", max_count=4)]
queues = [uc.Queue(name="trn1", compute_resources=nodes, subnet=vpc.private_subnets[0])]
storage = [uc.SharedStorage.lustre(data)]
users = [uc.UserSpec(name="ada", uid=2001, groups=("vision",), admin=True)]
software = uc.NeuronSoftware(team=uc.TeamSpec(groups={"vision": 3001}, users=users), metrics=True)
uc.ParallelCluster(stack, "Cluster", vpc=vpc, queues=queues, shared_storage=storage, software=software)
app.synth()
