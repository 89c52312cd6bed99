"""A cluster and a file system of other apps: connections, alarms, a mount, a grant."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secretsmanager

import ultracluster as uc

app = cdk.App()
stack = cdk.Stack(app, "Beside", env=cdk.Environment(account="123456789012", region="us-west-2"))
vpc = ec2.Vpc.from_vpc_attributes(
    stack,
    "Vpc",
    vpc_id="vpc-0123456789abcdef0",
    availability_zones=["us-west-2a"],
    private_subnet_ids=["subnet-0123456789abcdef0"],
    private_subnet_route_table_ids=["rtb-0123456789abcdef0"],
)
group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0")
theirs = uc.ParallelCluster.from_cluster_attributes(stack, "Theirs", cluster_name="research", security_groups=[group])
database = ec2.SecurityGroup(stack, "Database", vpc=vpc)
database.connections.allow_from(theirs, ec2.Port.tcp(5432))
data = uc.LustreFileSystem.from_lustre_file_system_attributes(
    stack, "Data", file_system_id="fs-0123456789abcdef0", security_group=group
)
tools = uc.ElasticFileSystem.from_file_system_attributes(
    stack, "Tools", file_system_id="fs-0123456789abcdef1", security_group=group
)
network = uc.UltraClusterNetwork.from_network_attributes(
    stack,
    "Network",
    vpc_id="vpc-0123456789abcdef0",
    availability_zone="us-west-2a",
    public_subnet_id="subnet-0123456789abcdef1",
    private_subnet_id="subnet-0123456789abcdef0",
    nat_gateway_id="nat-0123456789abcdef0",
)
accounting = uc.AccountingDatabase.from_database_attributes(
    stack,
    "Accounting",
    host="db.example.com",
    password=secretsmanager.Secret.from_secret_complete_arn(
        stack, "Password", "arn:aws:secretsmanager:us-west-2:123456789012:secret:db-AbCdEf"
    ),
    client_group=group,
)
homes = uc.OpenZfsFileSystem.from_volume_attributes(
    stack, "Homes", volume_id="fsvol-0123456789abcdef0", security_group=group
)
uc.ClusterMonitoring(
    stack,
    "Monitoring",
    cluster=theirs,
    queues=["trn1"],
    file_system=data,
    file_system_capacity_gib=4800,
    network=network,
)
cpu = uc.Queue(name="cpu", compute_resources=[uc.ComputeResource(name="c7i", instance_type="c7i.large", max_count=2)])
storage = [uc.SharedStorage.lustre(data), uc.SharedStorage.openzfs(homes), uc.SharedStorage.efs(tools)]
mine = uc.ParallelCluster(
    stack, "Mine", vpc=network.vpc, queues=[cpu], shared_storage=storage, accounting=accounting.accounting("mine")
)
data.grant(mine.head_node, "fsx:CreateDataRepositoryTask")
iam.ManagedPolicy.from_aws_managed_policy_name("ReadOnlyAccess")
app.synth()
