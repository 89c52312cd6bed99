"""The database of accounting, and a cluster that uses it."""

from __future__ import annotations

import dataclasses
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk.assertions import Template

from emulator.moto_patches import rds
from ultracluster import (
    AccountingDatabase,
    ComputeResource,
    InvalidArguments,
    LoginPool,
    ParallelCluster,
    Queue,
    SlurmAccounting,
)

CPU = Queue(name="cpu", compute_resources=[ComputeResource(name="c6i", instance_type="c6i.4xlarge", max_count=4)])


@pytest.fixture
def stack() -> cdk.Stack:
    app = cdk.App(builtin_cloud_formation_validation=False, analytics_reporting=False)
    return cdk.Stack(app, "Team", env=cdk.Environment(region="us-west-2"))


@pytest.fixture
def vpc(stack: cdk.Stack) -> ec2.Vpc:
    return ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a", "us-west-2b"])


def test_it_is_protected_and_takes_no_connections_but_from_the_client_group(stack: cdk.Stack, vpc: ec2.Vpc) -> None:
    AccountingDatabase(stack, "Accounting", vpc=vpc, subnets=vpc.private_subnets)
    template = Template.from_stack(stack)

    template.has_resource(
        "AWS::RDS::DBInstance",
        {
            "Properties": {
                "DeletionProtection": True,
                "EngineLifecycleSupport": "open-source-rds-extended-support-disabled",
                "PubliclyAccessible": False,
                "StorageEncrypted": True,
            },
            "DeletionPolicy": "RetainExceptOnCreate",
        },
    )
    [(_, rule)] = template.find_resources("AWS::EC2::SecurityGroupIngress").items()
    assert (rule["Properties"]["FromPort"], rule["Properties"]["ToPort"]) == (3306, 3306)
    assert "AccountingClients" in str(rule["Properties"]["SourceSecurityGroupId"])
    for kind in ("AWS::SecretsManager::Secret", "AWS::RDS::DBSubnetGroup"):
        template.has_resource(kind, {"DeletionPolicy": "RetainExceptOnCreate"})
    [secret] = template.find_resources("AWS::SecretsManager::Secret").values()
    generated = secret["Properties"]["GenerateSecretString"]
    assert generated.keys() == {"ExcludeCharacters", "PasswordLength"}, "plain text, not JSON"
    assert set("\"'/@\\# ") <= set(generated["ExcludeCharacters"])


def test_rds_allows_its_parameters(stack: cdk.Stack, vpc: ec2.Vpc) -> None:
    AccountingDatabase(stack, "Accounting", vpc=vpc, subnets=vpc.private_subnets)
    [group] = Template.from_stack(stack).find_resources("AWS::RDS::DBParameterGroup").values()
    family, parameters = group["Properties"]["Family"], group["Properties"]["Parameters"]
    assert [rds.refusal(family, name, value) for name, value in parameters.items()] == [""] * len(parameters)
    assert parameters["require_secure_transport"] == "1", "TLS alone"


def test_it_goes_with_its_stack_if_it_is_told_to(stack: cdk.Stack, vpc: ec2.Vpc) -> None:
    policy = cdk.RemovalPolicy.DESTROY
    AccountingDatabase(stack, "Accounting", vpc=vpc, subnets=vpc.private_subnets, removal_policy=policy)

    Template.from_stack(stack).has_resource(
        "AWS::RDS::DBInstance",
        {"Properties": {"DeletionProtection": False, "DeleteAutomatedBackups": True}, "DeletionPolicy": "Delete"},
    )


def test_invalid_arguments_are_named_together(stack: cdk.Stack, vpc: ec2.Vpc) -> None:
    with pytest.raises(InvalidArguments) as refused:
        AccountingDatabase(
            stack, "Accounting", vpc=vpc, subnets=vpc.private_subnets[:1], instance_class="t4g.micro", storage_gib=1
        )
    assert {each.path[0] for each in refused.value.violations} == {"subnets", "instance_class", "storage_gib"}
    assert stack.node.try_find_child("Accounting") is None


def configuration(template: Template) -> dict[str, Any]:
    [cluster] = template.find_resources("Custom::PclusterCluster").values()
    return dict(cluster["Properties"]["ClusterConfiguration"])


def test_only_the_head_node_carries_the_group_and_the_provider_may_see_that_one_secret(
    stack: cdk.Stack, vpc: ec2.Vpc
) -> None:
    database = AccountingDatabase(stack, "Accounting", vpc=vpc, subnets=vpc.private_subnets)
    accounting = database.accounting("research", {"ClusterName": "research"})
    pools = [LoginPool(name="login")]
    ParallelCluster(stack, "Cluster", vpc=vpc, queues=[CPU], login_nodes=pools, accounting=accounting)
    template = Template.from_stack(stack)

    made = configuration(template)
    nodes = [made["HeadNode"], made["LoginNodes"]["Pools"][0], made["Scheduling"]["SlurmQueues"][0]]
    carried = ["AccountingClients" in str(each["Networking"]["AdditionalSecurityGroups"]) for each in nodes]
    assert carried == [True, False, False]
    slurm = made["Scheduling"]["SlurmSettings"]
    secret = {"Ref": next(iter(template.find_resources("AWS::SecretsManager::Secret")))}
    assert slurm["Database"]["PasswordSecretArn"] == secret
    assert (slurm["Database"]["DatabaseName"], slurm["Database"]["UserName"]) == ("research", "slurm")
    assert {"ClusterName": "research"} in slurm["CustomSlurmSettings"]
    statement = {"Action": "secretsmanager:DescribeSecret", "Effect": "Allow", "Resource": secret}
    template.has_resource_properties(
        "AWS::IAM::ManagedPolicy", {"PolicyDocument": {"Statement": [statement], "Version": "2012-10-17"}}
    )


def test_a_password_is_named_in_full_and_its_key_is_the_head_nodes_too(stack: cdk.Stack, vpc: ec2.Vpc) -> None:
    def of(password: secretsmanager.ISecret) -> SlurmAccounting:
        return SlurmAccounting(uri="db:3306", user="slurm", password=password, database_name="research")

    partial = secretsmanager.Secret.from_secret_name_v2(stack, "Partial", "db")
    with pytest.raises(InvalidArguments, match=r"accounting\.password: .*complete ARN"):
        ParallelCluster(stack, "Refused", vpc=vpc, queues=[CPU], accounting=of(partial))
    own = secretsmanager.Secret(stack, "Own", encryption_key=kms.Key(stack, "Key"))
    ParallelCluster(stack, "Cluster", vpc=vpc, queues=[CPU], accounting=of(own))

    policies = Template.from_stack(stack).find_resources("AWS::IAM::ManagedPolicy")
    [head_node] = [each for name, each in policies.items() if "HeadNodePolicy" in name]
    assert "secretsmanager:GetSecretValue" in str(head_node)


def test_its_subnets_are_in_two_zones(stack: cdk.Stack) -> None:
    agnostic = cdk.Stack(stack.node.root, "Agnostic")  # type: ignore[arg-type]
    for place in (stack, agnostic):
        vpc = ec2.Vpc(place, "Here", max_azs=2)
        one, other = vpc.private_subnets
        with pytest.raises(InvalidArguments, match=r"PrivateSubnet1, .*PublicSubnet1'; allowed: subnets in two zones"):
            AccountingDatabase(place, "InOneZone", vpc=vpc, subnets=[one, vpc.public_subnets[0]])
        AccountingDatabase(place, "InTwoZones", vpc=vpc, subnets=[one, other])
        unknown = ec2.Subnet.from_subnet_id(place, "Unknown", "subnet-0123456789abcdef0")
        AccountingDatabase(place, "Unclear", vpc=vpc, subnets=[one, unknown])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("uri", "https://db.example.com"),
        ("user", "a b"),
        ("database_name", "My-research"),
        ("slurm_settings", {"Nope": "1"}),
        ("slurm_settings", {"FirstJobId": "abc"}),
        ("slurm_settings", {"AccountingStorageHost": "db.example.com"}),
        ("slurm_settings", {"SlurmctldHost": "head"}),
    ],
)
def test_what_slurm_or_parallelcluster_refuses_of_accounting_is_refused(
    stack: cdk.Stack, vpc: ec2.Vpc, field: str, value: Any
) -> None:
    database = AccountingDatabase(stack, "Accounting", vpc=vpc, subnets=vpc.private_subnets)
    if field in ("database_name", "slurm_settings"):
        with pytest.raises(InvalidArguments) as early:
            database.accounting(**{"database_name": "research", field: value})
        assert [each.path[0] for each in early.value.violations] == [field]
    wrong = dataclasses.replace(database.accounting("research"), **{field: value})
    with pytest.raises(InvalidArguments) as refused:
        ParallelCluster(stack, "Cluster", vpc=vpc, queues=[CPU], accounting=wrong)
    assert [each.path[:2] for each in refused.value.violations] == [("accounting", field)]
    assert stack.node.try_find_child("Cluster") is None
