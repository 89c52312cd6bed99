"""Tokens of each encoding in each argument: where they are no use they are called so, where they are, they arrive."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ssm as ssm

import ultracluster as uc
from ultracluster.domain.cluster import ClusterSpec
from ultracluster.domain.spec import Spec

ENV = cdk.Environment(region="us-west-2")
PARTS: dict[str, Any] = {
    "head_node": uc.HeadNode(ssh_cidr="10.0.0.0/8"),
    "login_nodes": uc.LoginPool(name="login"),
    "queues": uc.Queue(
        name="cpu", compute_resources=[uc.ComputeResource(name="nodes", instance_type="c7i.large", max_count=2)]
    ),
    "queues.compute_resources": uc.ComputeResource(name="nodes", instance_type="c7i.large", max_count=2),
    "slurm": uc.Slurm(),
    "monitoring": uc.MonitoringOptions(),
    "directory": uc.DirectorySpec(
        domain_name="corp.example.com",
        domain_addr="ldaps://ldap.corp.example.com",
        domain_read_only_user="cn=ReadOnly,dc=corp,dc=example,dc=com",
        password_secret_arn="arn:aws:secretsmanager:us-west-2:123456789012:secret:ldap-AbCdEf",  # noqa: S106
    ),
}
ARRIVE = {
    "custom_ami",
    "head_node.instance_role_arn",
    "head_node.security_group_ids",
    "login_nodes.instance_role_arn",
    "login_nodes.security_group_ids",
    "queues.further_subnet_ids",
    "queues.instance_role_arn",
    "queues.security_group_ids",
    "directory.additional_sssd_configs",
    "directory.domain_addr",
    "directory.domain_name",
    "directory.domain_read_only_user",
    "directory.password_secret_arn",
    "head_node.ssh_cidr",
    "head_node.ssh_key_name",
    "login_nodes.ssh_cidr",
    "munge_key_secret_arn",
    "overrides",
    "queues.compute_resources.capacity_reservation_group_arn",
    "queues.compute_resources.capacity_reservation_id",
    "queues.custom_slurm_settings",
    "queues.existing_placement_group",
    "slurm.custom_settings",
    "tags",
}
"""Where a token of text is as good as a value."""
KEYS = {"custom_slurm_settings": "MaxTime", "custom_settings": "PriorityMaxAge"}
"""Keys of mappings that do not take any."""


@pytest.fixture(scope="module")
def stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(analytics_reporting=False), "Training", env=ENV)


@pytest.fixture(scope="module")
def vpc(stack: cdk.Stack) -> ec2.Vpc:
    return ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a", "us-west-2b"])


@pytest.fixture(scope="module")
def tokens(stack: cdk.Stack) -> list[Any]:
    """Return tokens as a text, within one, a number, a list, in a list, in a mapping, an object, and an interface."""
    text = cdk.CfnParameter(stack, "Text").value_as_string
    number = cdk.CfnParameter(stack, "Number", type="Number").value_as_number
    several = cdk.CfnParameter(stack, "Several", type="CommaDelimitedList").value_as_list
    chosen = cdk.Fn.condition_if("Chosen", text, "other")
    return [text, f"a{text}", number, several, [text], {"key": text}, cdk.Token.as_any(number), chosen]


def called_by_name(error: Exception) -> bool:
    message = str(error)
    return "a token" in message and "Token[" not in message and "e+289" not in message


def with_value(place: str, field: str, value: object) -> dict[str, Any]:
    """Return arguments of a cluster in which one field of a part has a value."""
    if field == "overrides" and isinstance(value, dict):
        value = {"Iam": {"PermissionsBoundary": value["key"]}}
    if not place:
        return {field: value}
    part = PARTS[place]
    if isinstance(value, dict):
        value = {KEYS.get(field, "key"): value["key"]}
    options = type(part)(**{**{name: getattr(part, name) for name in part.model_fields_set}, field: value})
    if place == "queues.compute_resources":
        return {"queues": [uc.Queue(name="cpu", compute_resources=[options])]}
    return {place: [options] if place in ("queues", "login_nodes") else options}


def places() -> Iterator[tuple[str, str]]:
    """Yield the fields of a cluster that are its arguments, with the part that they are of."""
    arguments = inspect.signature(uc.ParallelCluster.__init__).parameters
    yield from (("", name) for name in ClusterSpec.model_fields if name in arguments)
    for place, part in PARTS.items():
        yield from ((place, name) for name in type(part).model_fields)


@pytest.mark.slow
def test_a_token_in_a_field_of_a_cluster_arrives_or_is_called_a_token(
    stack: cdk.Stack, vpc: ec2.Vpc, tokens: list[Any]
) -> None:
    queues = [PARTS["queues"]]
    unclear, arrived = [], {"munge_key_secret_arn"}
    for place, field in places():
        for index, token in enumerate(tokens):
            name = f"{place}.{field}".removeprefix(".")
            try:
                arguments = {"queues": queues, **with_value(place, field, token)}
                cluster = uc.ParallelCluster(stack, f"{name.replace('.', '-')}{index}", vpc=vpc, **arguments)
            except (uc.InvalidArguments, TypeError) as error:
                if not called_by_name(error):
                    unclear.append(f"{name}: {error}")
            else:
                text = json.dumps(stack.resolve(cluster._configuration()))
                assert "Token[" not in text, name
                if '{"Ref": "Text"}' in text:
                    arrived.add(name)
                else:
                    unclear.append(f"{name} takes a token, which is lost: {token!r}")
    assert not unclear, "\n".join(unclear)
    assert arrived == ARRIVE


@pytest.mark.slow
def test_a_token_in_an_argument_of_another_construct_arrives_or_is_called_a_token(
    stack: cdk.Stack, vpc: ec2.Vpc, tokens: list[Any]
) -> None:
    subnets = {"vpc": vpc, "subnets": vpc.private_subnets}
    budget = {"budget": uc.BudgetSpec(monthly_usd=1.0), "emails": ["me@example.com"], "tags": {"a": "b"}}
    cluster = uc.ParallelCluster.from_cluster_attributes(stack, "Known", cluster_name="research")
    constructs: dict[type[Any], dict[str, Any]] = {
        uc.AccountingDatabase: subnets,
        uc.ClusterMonitoring: {"cluster": cluster},
        uc.ElasticFileSystem: {"vpc": vpc},
        uc.HeadNodeSnapshots: {"deployment": "research"},
        uc.IsolatedSubnet: {"vpc": vpc, "zone_id": "usw2-az1", "cidr": "10.0.64.0/24"},
        uc.LustreFileSystem: {"vpc": vpc},
        uc.MonthlyBudget: budget,
        uc.OpenZfsFileSystem: {"vpc": vpc},
        uc.UltraClusterNetwork: {"zone_id": "usw2-az4"},
    }
    app = cdk.App(builtin_cloud_formation_validation=False, analytics_reporting=False)
    unclear, arrived = [], set()
    for construct, good in constructs.items():
        for field in list(inspect.signature(construct.__init__).parameters)[3:]:
            for index, each in enumerate(tokens):
                token = {"NodesDrained": each["key"]} if field == "advice" and isinstance(each, dict) else each
                name = f"{construct.__name__}.{field}"
                place = cdk.Stack(app, f"{name.replace('.', '-').replace('_', '-')}{index}", env=ENV)
                alone = {"alarm_prefix": f"{field}{index}"} if construct is uc.ClusterMonitoring else {}
                try:
                    construct(place, "It", **{**good, **alone, field: token})
                except (uc.InvalidArguments, TypeError) as error:
                    if not called_by_name(error):
                        unclear.append(f"{name}: {error}")
                else:
                    arrived.add(name)
    assert not unclear, "\n".join(unclear)
    assert sorted(arrived) == [
        "AccountingDatabase.instance_class",
        "ClusterMonitoring.advice",
        "ClusterMonitoring.alarm_prefix",
        "ClusterMonitoring.emails",
        "ClusterMonitoring.file_system_name",
        "ElasticFileSystem.vpc_cidr",
        "HeadNodeSnapshots.deployment",
        "IsolatedSubnet.cidr",
        "LustreFileSystem.log_group_name",
        "LustreFileSystem.vpc_cidr",
        "MonthlyBudget.emails",
        "MonthlyBudget.tags",
        "OpenZfsFileSystem.vpc_cidr",
    ]


@pytest.mark.parametrize("values", [uc.UserSpec, uc.TeamSpec, uc.AccountSpec, uc.QosSpec, uc.BudgetSpec])
def test_a_token_in_values_of_people_and_money_is_called_a_token(values: type[Spec], tokens: list[Any]) -> None:
    unclear = []
    for field in values.model_fields:
        for token in tokens:
            try:
                values(**{field: token})
            except uc.InvalidArguments as error:
                told = [each for each in str(error).splitlines() if each.startswith(f"  {field}")]
                unclear += [each for each in told if not called_by_name(ValueError(each))]
    assert unclear == []


def test_an_app_is_synthesized_until_the_cdk_has_asked_for_what_it_looks_up() -> None:
    app = cdk.App(builtin_cloud_formation_validation=False, analytics_reporting=False)
    stack = cdk.Stack(app, "Training", env=cdk.Environment(account="123456789012", region="us-west-2"))
    vpc = ec2.Vpc.from_lookup(stack, "Vpc", tags={"name": "training"})
    read = {
        each: ssm.StringParameter.value_from_lookup(stack, f"/{each}") for each in ("vpc", "subnet", "ami", "fs", "sg")
    }
    group = ec2.SecurityGroup.from_lookup_by_id(stack, "Group", read["sg"])
    theirs = ec2.SecurityGroup.from_security_group_id(stack, "Theirs", read["sg"])
    subnet = ec2.Subnet.from_subnet_id(stack, "Subnet", read["subnet"])
    image = ec2.MachineImage.lookup(name="ours").get_image(stack).image_id
    by_id = ec2.Vpc.from_vpc_attributes(stack, "Read", vpc_id=read["vpc"], availability_zones=["us-west-2a"])
    data = uc.LustreFileSystem(stack, "Data", vpc=vpc, vpc_cidr=vpc.vpc_cidr_block)
    known = uc.LustreFileSystem.from_lustre_file_system_attributes(
        stack, "Known", file_system_id=read["fs"], security_group=theirs
    )
    for index, ami in enumerate((image, read["ami"])):
        uc.ParallelCluster(
            stack,
            f"Cluster{index}",
            vpc=[vpc, by_id][index],
            private_subnet=[None, subnet][index],
            security_groups=[group, theirs],
            queues=[PARTS["queues"]],
            head_node=uc.HeadNode(ssh_cidr=vpc.vpc_cidr_block),
            custom_ami=ami,
            shared_storage=[uc.SharedStorage.lustre([data, known][index])],
        )
    manifest = json.loads(Path(app.synth().directory, "manifest.json").read_text(encoding="utf-8"))
    assert {each["provider"] for each in manifest["missing"]} == {"vpc-provider", "ssm", "security-group", "ami"}
    with pytest.raises(uc.InvalidArguments, match="cluster_name: got a token; allowed: a value that is known"):
        uc.ParallelCluster(stack, "Named", vpc=vpc, queues=[PARTS["queues"]], cluster_name=read["subnet"])
