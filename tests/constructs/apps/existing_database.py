"""Accounting in a database that exists, and one that the app makes for another cluster."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager

import ultracluster as uc
from ultracluster.domain.accounting import AccountingSpec, slurm_settings

app = cdk.App()
stack = cdk.Stack(app, "Accounted", env=cdk.Environment(region="us-west-2"))
vpc = ec2.Vpc(stack, "Vpc", max_azs=2)
group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0")
database = rds.DatabaseInstance.from_database_instance_attributes(
    stack,
    "Database",
    instance_identifier="accounting",
    instance_endpoint_address="db.example.com",
    port=3306,
    security_groups=[group],
)
password = secretsmanager.Secret.from_secret_complete_arn(
    stack, "Password", "arn:aws:secretsmanager:us-west-2:123456789012:secret:db-AbCdEf"
)
existing = uc.SlurmAccounting(
    uri=f"{database.db_instance_endpoint_address}:3306",
    user="slurm",
    password=password,
    database_name="research",
    security_groups=[group],
    slurm_settings=slurm_settings(AccountingSpec(enforce=False), cluster_name="research"),
)
cpu = uc.Queue(name="cpu", compute_resources=[uc.ComputeResource(name="c7i", instance_type="c7i.large", max_count=2)])
uc.ParallelCluster(stack, "Existing", vpc=vpc, queues=[cpu], accounting=existing)
made = uc.AccountingDatabase(stack, "Made", vpc=vpc, subnets=vpc.private_subnets)
uc.ParallelCluster(stack, "Own", vpc=vpc, queues=[cpu], accounting=made.accounting("own"))
app.synth()
