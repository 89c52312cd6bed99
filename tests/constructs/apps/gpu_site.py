"""A site of GPU and CPU nodes in a VPC of its own: login nodes, Amazon EFS, an image, a key, budgets and alarms."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs

import ultracluster as uc

app = cdk.App()
stack = cdk.Stack(app, "Site", env=cdk.Environment(region="us-west-2"))
vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a"])
key = kms.Key(stack, "Key", enable_key_rotation=True)
image = cdk.CfnParameter(stack, "Image", type="AWS::EC2::Image::Id").value_as_string
tags = {"team": "vision"}

homes = uc.ElasticFileSystem(stack, "Homes", vpc=vpc, kms_key=key)
data = uc.LustreFileSystem(
    stack,
    "Data",
    vpc=vpc,
    kms_key=key,
    capacity_gib=cdk.Size.gibibytes(2400),
    backup_retention_days=cdk.Duration.days(14),
    log_retention=logs.RetentionDays.ONE_MONTH,
)
gpu = uc.ComputeResource(
    name="p5",
    instance_type=ec2.InstanceType("p5.48xlarge"),
    max_count=4,
    capacity_reservation_id="cr-0123456789abcdef0",
)
cpu = [
    uc.ComputeResource(name=f"c7i-{size}", instance_type=f"c7i.{size}", min_count=0, max_count=20)
    for size in ("8xlarge", "24xlarge")
]
cluster = uc.ParallelCluster(
    stack,
    "Cluster",
    vpc=vpc,
    cluster_name="vision",
    custom_ami=image,
    head_node=uc.HeadNode(instance_type="m7i.2xlarge", root_volume_gib=cdk.Size.gibibytes(100), public=False),
    login_nodes=[uc.LoginPool(name="login", instance_type="c7i.xlarge", grace_minutes=cdk.Duration.minutes(10))],
    queues=[
        uc.Queue(name="gpu", compute_resources=[gpu]),
        uc.Queue(name="cpu", capacity_type="SPOT", exclusive_jobs=False, compute_resources=cpu),
    ],
    slurm=uc.Slurm(idle_minutes=cdk.Duration.minutes(30), custom_settings={"JobRequeue": "0"}),
    monitoring=uc.MonitoringOptions(log_retention_days=logs.RetentionDays.THREE_MONTHS, retain_logs=False),
    shared_storage=[uc.SharedStorage.lustre(data), uc.SharedStorage.efs(homes, "/home")],
    tags=tags,
)
key.grant_encrypt_decrypt(cluster.compute_nodes)
spec = uc.BudgetSpec(monthly_usd=20_000, max_idle_minutes=cdk.Duration.hours(1))
uc.MonthlyBudget(stack, "Budget", budget=spec, emails=["vision@example.com"], tags=tags)
monitoring = uc.ClusterMonitoring(stack, "Monitoring", cluster=cluster, file_system=data, emails=["vision@example.com"])
data.metric_write_bytes().create_alarm(stack, "Busy", threshold=10**12, evaluation_periods=5)
cdk.CfnOutput(stack, "HeadNode", value=cluster.head_node_instance_id)
app.synth()
