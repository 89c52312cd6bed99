"""A custom image by a parameter of Systems Manager, grants, and keys of KMS."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_ssm as ssm

import ultracluster as uc

app = cdk.App()
stack = cdk.Stack(app, "Secure", env=cdk.Environment(region="us-west-2"))
vpc = ec2.Vpc(stack, "Vpc", max_azs=1)
key = kms.Key(stack, "Key")
data = uc.LustreFileSystem(stack, "Data", vpc=vpc, kms_key=key, vpc_cidr=vpc.vpc_cidr_block, backup_retention_days=0)
buckets = [s3.Bucket(stack, f"Corpus{number}", encryption_key=key) for number in range(20)]
data.add_data_repository("/corpus", bucket=buckets[0], prefix="text")
nodes = uc.ComputeResource(name="c7i", instance_type=ec2.InstanceType("c7i.4xlarge"), max_count=4)
cluster = uc.ParallelCluster(
    stack,
    "Cluster",
    vpc=vpc,
    queues=[uc.Queue(name="cpu", compute_resources=[nodes])],
    shared_storage=[uc.SharedStorage.lustre(data)],
    custom_ami=ssm.StringParameter.value_for_string_parameter(stack, "/images/cluster"),
    tags={"team": "vision"},
    overrides={"HeadNode": {"Dcv": {"Enabled": True, "AllowedIps": "10.0.0.0/16"}}},
)
for bucket in buckets:
    bucket.grant_read_write(cluster.compute_nodes)
secretsmanager.Secret(stack, "Token", encryption_key=key).grant_read(cluster.head_node)
app.synth()
