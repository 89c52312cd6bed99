"""What a stack of anybody's gets from `ParallelCluster`; test_accepted_clusters.py has whether AWS's code takes it."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager

import ultracluster
from ultracluster import (
    ComputeResource,
    EbsVolume,
    HeadNode,
    InstanceTypeFacts,
    InvalidArguments,
    LoginPool,
    MonitoringOptions,
    NeuronSoftware,
    ParallelCluster,
    Queue,
    SharedStorage,
    Slurm,
)
from ultracluster.domain import neuron
from ultracluster.domain.cluster import ClusterOptions
from ultracluster.domain.violations import dotted

CLUSTER = "Custom::PclusterCluster"
POLICY = "AWS::IAM::ManagedPolicy"


@pytest.fixture
def stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(analytics_reporting=False), "Training")


@pytest.fixture
def vpc(stack: cdk.Stack) -> ec2.IVpc:
    return ec2.Vpc(stack, "Vpc", max_azs=1)


def queue(name: str = "cpu", instance_type: str = "c7i.8xlarge", **values: Any) -> Queue:
    nodes = ComputeResource(name="nodes", instance_type=instance_type, max_count=4)
    return Queue(name=name, compute_resources=[nodes], **values)


def file_system(stack: cdk.Stack) -> fsx.IFileSystem:
    group = ec2.SecurityGroup.from_security_group_id(stack, "DataGroup", "sg-0123456789abcdef0")
    return fsx.LustreFileSystem.from_lustre_file_system_attributes(
        stack, "Data", dns_name="fs.example.com", file_system_id="fs-0123456789abcdef0", security_group=group
    )


def template(stack: cdk.Stack) -> dict[str, Any]:
    return dict(assertions.Template.from_stack(stack).to_json())


def configurations(stack: cdk.Stack) -> list[dict[str, Any]]:
    """Return the ParallelCluster configurations of a stack."""
    resources = template(stack)["Resources"].values()
    return [each["Properties"]["ClusterConfiguration"] for each in resources if each["Type"] == CLUSTER]


def queues(stack: cdk.Stack) -> list[dict[str, Any]]:
    [configuration] = configurations(stack)
    return list(configuration["Scheduling"]["SlurmQueues"])


def test_a_vpc_and_queues_are_enough_in_a_stack_of_any_account_and_region(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    cluster = ParallelCluster(stack, "Cluster", vpc=vpc, queues=[queue()])
    resources = template(stack)["Resources"]
    [configuration] = configurations(stack)
    head_node, [nodes] = configuration["HeadNode"], queues(stack)

    assert cluster.spec.name == "Training-Cluster"
    assert configuration["Region"] == {"Ref": "AWS::Region"}
    assert "PublicSubnet" in head_node["Networking"]["SubnetId"]["Ref"]
    assert "PrivateSubnet" in nodes["Networking"]["SubnetIds"][0]["Ref"]
    assert [each for each in (head_node, nodes) if "CustomActions" in each] == []
    assert {each["Type"] for each in resources.values()} >= {CLUSTER, POLICY, "AWS::CloudFormation::Stack"}
    assert "Asset" not in str(resources.keys())


def test_nodes_are_where_their_options_say(stack: cdk.Stack) -> None:
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["a"],
        isolated_subnet_ids=["subnet-0123456789abcdef0"],
    )
    mine = ec2.Subnet.from_subnet_id(stack, "Mine", "subnet-0123456789abcdef1")
    ParallelCluster(
        stack,
        "Cluster",
        vpc=vpc,
        head_node=HeadNode(subnet=mine),
        queues=[queue("there", subnet=mine), queue("here")],
        login_nodes=[LoginPool(name="login", public=True)],
    )
    [configuration] = configurations(stack)

    there, here = (each["Networking"]["SubnetIds"] for each in queues(stack))
    assert configuration["HeadNode"]["Networking"]["SubnetId"] == "subnet-0123456789abcdef1"
    assert (there, here) == (["subnet-0123456789abcdef1"], ["subnet-0123456789abcdef0"])
    assert configuration["LoginNodes"]["Pools"][0]["Networking"]["SubnetIds"] == ["subnet-0123456789abcdef0"]


def test_options_take_values_of_the_cdk_and_hold_what_they_stand_for(stack: cdk.Stack) -> None:
    head_node = HeadNode(
        instance_type=ec2.InstanceType.of(ec2.InstanceClass.M7I, ec2.InstanceSize.XLARGE2),
        root_volume_gib=cdk.Size.tebibytes(1),
        ssh_key_name=ec2.KeyPair.from_key_pair_name(stack, "Key", "mine"),
    )
    nodes = ComputeResource(name="nodes", instance_type=ec2.InstanceType("c7i.large"), max_count=1)
    group = ec2.PlacementGroup.from_placement_group_name(stack, "Group", "theirs")

    assert (head_node.instance_type, head_node.root_volume_gib) == ("m7i.2xlarge", 1024)
    assert head_node.ssh_key_name == "mine"
    assert Queue(name="cpu", compute_resources=[nodes], existing_placement_group=group).placement_group_label is None
    assert MonitoringOptions(log_retention_days=logs.RetentionDays.ONE_YEAR).log_retention_days == 365
    assert Slurm(idle_minutes=cdk.Duration.hours(1)).idle_minutes == 60
    assert LoginPool(name="login", grace_minutes=cdk.Duration.minutes(5)).grace_minutes == 5


@pytest.mark.parametrize(
    ("place", "value", "allowed"),
    [
        ("vpc", "vpc-0123456789abcdef0", "an ec2.IVpc"),
        ("queues", queue(), "a list"),
        ("queues", "cpu", "a list"),
        ("security_groups[0]", "sg-1", "an ec2.ISecurityGroup"),
        ("queues[0].subnet", "subnet-1", "an ec2.ISubnet"),
        ("private_subnet", "subnet-1", "an ec2.ISubnet"),
        ("software", "2.28.1", "a NeuronSoftware"),
        ("shared_storage[0]", "fs-1", "SharedStorage.lustre(...), SharedStorage.openzfs(...) or "),
        ("overrides", [1], "a mapping"),
        ("monitoring.log_retention_days", logs.RetentionDays.INFINITE, "1, 3, 5, 7, 14"),
        ("monitoring.log_retention_days", cdk.RemovalPolicy.DESTROY, "1, 3, 5, 7, 14"),
        ("slurm.idle_minutes", cdk.Duration.seconds(90), "a whole number of minutes"),
    ],
)
def test_wrong_types_are_refused_in_one_look(
    stack: cdk.Stack, vpc: ec2.IVpc, place: str, value: Any, allowed: str
) -> None:
    others: dict[str, dict[str, Any]] = {
        "queues[0].subnet": {"queues": [queue(subnet=value)]},
        "monitoring.log_retention_days": {"monitoring": MonitoringOptions(log_retention_days=value)},
        "slurm.idle_minutes": {"slurm": Slurm(idle_minutes=value)},
        "shared_storage[0]": {"shared_storage": [value]},
        "security_groups[0]": {"security_groups": [value]},
    }
    arguments: dict[str, Any] = {"vpc": vpc, "queues": [queue()], **others.get(place, {place: value})}
    with pytest.raises(InvalidArguments) as refused:
        ParallelCluster(stack, "Cluster", **arguments)
    assert f"\n  {place}: got " in str(refused.value)
    assert f"; allowed: {allowed}" in str(refused.value)


def test_wrong_types_hide_no_other_violations(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    wrong: dict[str, Any] = {"vpc": "vpc-1", "software": 3, "shared_storage": "x", "security_groups": "sg-1"}
    with pytest.raises(InvalidArguments) as refused:
        ParallelCluster(stack, "Cluster", queues=[queue(name="Gpu", subnet="subnet-1")], os="centos", **wrong)  # type: ignore[arg-type]
    places = ["vpc", "shared_storage", "software", "security_groups", "queues[0].subnet", "os", "queues[0].name"]
    assert [dotted(each.path) for each in refused.value.violations] == places
    cluster = ParallelCluster(stack, "Cluster", vpc=vpc, queues=[queue()])
    with pytest.raises(InvalidArguments, match=r"queue\.subnet: got 'subnet-1'[^$]*queue\.name: got 'Gpu'"):
        cluster.add_queue(queue(name="Gpu", subnet="subnet-1"))


def test_mappings_and_tuples_are_options_too(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    nodes: Any = ({"name": "nodes", "instance_type": "c7i.8xlarge", "max_count": 4},)
    mapping: Any = {"name": "more", "compute_resources": list(nodes)}
    cluster = ParallelCluster(stack, "Cluster", vpc=vpc, queues=[Queue(name="cpu", compute_resources=nodes)])
    cluster.add_queue(mapping)
    assert [each["Name"] for each in queues(stack)] == ["cpu", "more"]


def test_nodes_without_neuron_software_may_have_actions_of_their_own(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    action = {"CustomActions": {"OnNodeConfigured": {"Script": "s3://mine/boot.sh"}}}
    ParallelCluster(stack, "Cluster", vpc=vpc, queues=[queue()], overrides={"HeadNode": action})
    [configuration] = configurations(stack)
    assert configuration["HeadNode"]["CustomActions"] == action["CustomActions"]


def test_one_exception_names_all_violations_and_leaves_nothing_in_the_tree(stack: cdk.Stack) -> None:
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["a"])
    before = [each.node.path for each in stack.node.find_all()]

    with pytest.raises(InvalidArguments) as refused:
        ParallelCluster(
            stack,
            "Cluster",
            vpc=vpc,
            cluster_name="1",
            os="centos",  # type: ignore[arg-type]
            head_node=HeadNode(ssh_cidr="0.0.0.0/0", root_volume_gib=20),
            queues=[
                Queue(
                    name="Gpu",
                    compute_resources=[
                        ComputeResource(name="p5", instance_type=5, max_count=0),  # type: ignore[arg-type]
                        ComputeResource(instance_type="p5.48xlarge", maximum=4),  # type: ignore[call-arg]
                    ],
                )
            ],
            software=NeuronSoftware(neuron_sdk="1.0"),
        )

    lines = [line.strip().split("; allowed: ")[0] for line in str(refused.value).splitlines()]
    assert lines == [
        "invalid arguments of ParallelCluster Training/Cluster:",
        "vpc: got 'Training/Vpc'",
        "os: got 'centos'",
        "head_node.root_volume_gib: got 20",
        "queues[0].compute_resources[0].instance_type: got 5",
        "queues[0].compute_resources[0].max_count: got 0",
        "queues[0].compute_resources[1].name: got None",
        "queues[0].compute_resources[1].max_count: got None",
        "queues[0].compute_resources[1].maximum: got 4",
        "cluster_name: got '1'",
        "software.neuron_sdk: got '1.0'",
        "head_node.ssh_cidr: got '0.0.0.0/0'",
        "queues[0].name: got 'Gpu'",
        "shared_storage: got []",
        "not all rules of head_node, queues and the rest are checked yet; correct the values above first",
    ]
    assert "max_count: got 0; allowed: at least 1" in str(refused.value)
    assert [each.node.path for each in stack.node.find_all()] == before


def test_software_reaches_all_nodes_and_needs_a_file_system(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    storage = SharedStorage.lustre(file_system(stack), "/data")
    ParallelCluster(
        stack,
        "Cluster",
        vpc=vpc,
        queues=[queue("trn1", "trn1.32xlarge")],
        login_nodes=[LoginPool(name="login")],
        shared_storage=[storage],
        software=NeuronSoftware(neuron_sdk="2.27.1", pytorch="2.8"),
    )
    [configuration] = configurations(stack)

    [nodes] = queues(stack)
    arguments = nodes["CustomActions"]["OnNodeConfigured"]["Args"]
    assert {"compute_node.sh", "sdk=2.27.1", "mount_dir=/data"} <= {each for each in arguments if isinstance(each, str)}
    assert "CustomActions" in configuration["HeadNode"]
    assert "CustomActions" in configuration["LoginNodes"]["Pools"][0]
    groups = nodes["Networking"]["AdditionalSecurityGroups"]
    assert len(groups) == len(["the cluster's", "the file system's"])
    assert "sg-0123456789abcdef0" in groups
    with pytest.raises(InvalidArguments, match=r"shared_storage: got \[\]; allowed: at least one"):
        ParallelCluster(stack, "Other", vpc=vpc, queues=[queue()], software=NeuronSoftware())


def test_chips_that_no_release_is_verified_on_are_warned_of_where_there_is_one(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    """Nodes are told of chips that the library does not know, and those of the queue beside them of no release."""
    facts = InstanceTypeFacts(
        vcpus=192,
        memory_gib=cdk.Size.gibibytes(2048),
        network_cards=16,
        efa_devices=8,
        neuron_devices=16,
        neuron_cores=64,
    )
    nodes = ComputeResource(name="nodes", instance_type="trn9.48xlarge", max_count=4, type_facts=facts)
    new = [Queue(name="new", compute_resources=[nodes]), queue()]
    said = assertions.Match.string_like_regexp("trn9.48xlarge.*Neuron SDK")
    storage = SharedStorage.lustre(file_system(stack), "/data")
    ParallelCluster(stack, "Cluster", vpc=vpc, queues=new, shared_storage=[storage], software=NeuronSoftware())
    other = cdk.Stack(stack.node.root, "Other")  # type: ignore[arg-type]
    ParallelCluster(other, "Plain", vpc=vpc, queues=new)
    assertions.Annotations.from_stack(stack).has_warning("/Training/Cluster", said)
    assertions.Annotations.from_stack(other).has_no_warning("*", said)
    described, plain = queues(stack)
    told, others = ({*map(str, each["CustomActions"]["OnNodeConfigured"]["Args"])} for each in (described, plain))
    assert {"types=trn9.48xlarge:16:64:8", f"sdk={neuron.DEFAULT_SDK}"} <= told
    assert not [each for each in others if each.startswith(("sdk=", "driver=", "types="))]
    assert described["ComputeResources"][0]["Efa"]["Enabled"]


def test_grants_reach_the_policy_of_the_nodes_that_they_are_for(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    cluster = ParallelCluster(
        stack, "Cluster", vpc=vpc, queues=[queue("gpu"), queue("cpu")], login_nodes=[LoginPool(name="login")]
    )
    bucket = s3.Bucket(stack, "Bucket")
    for grant in (
        bucket.grant_delete(cluster.head_node),
        bucket.grant_read(cluster.compute_nodes),
        bucket.grant_put_acl(cluster.login_nodes),
        bucket.grant_write(cluster.queue("gpu")),
    ):
        assert grant.success
    resources = template(stack)["Resources"]
    [configuration] = configurations(stack)

    def granted(nodes: dict[str, Any]) -> set[str]:
        policies = [resources[each["Policy"]["Ref"]] for each in nodes["Iam"]["AdditionalIamPolicies"]]
        assert {each["Properties"]["Path"] for each in policies} == {"/parallelcluster/"}
        statements = [each for policy in policies for each in policy["Properties"]["PolicyDocument"]["Statement"]]
        actions = [each["Action"] for each in statements if each["Resource"] != "*"]
        return {action for each in actions for action in ([each] if isinstance(each, str) else each)}

    gpu, cpu = (granted(each) for each in queues(stack))
    assert granted(configuration["HeadNode"]) == {"s3:DeleteObject*"}
    assert granted(configuration["LoginNodes"]["Pools"][0]) == {"s3:PutObjectAcl", "s3:PutObjectVersionAcl"}
    assert cpu == {"s3:GetObject*", "s3:GetBucket*", "s3:List*"}
    assert gpu > cpu
    assert "s3:PutObject" in gpu - cpu
    with pytest.raises(ValueError, match=r"no queue 'trn1'; there are: gpu, cpu"):
        cluster.queue("trn1")


def test_a_secret_lets_nodes_use_its_key(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    cluster = ParallelCluster(stack, "Cluster", vpc=vpc, queues=[queue()], cluster_name="research")
    secret = secretsmanager.Secret(stack, "Secret", encryption_key=kms.Key(stack, "Key"))
    assert secret.grant_read(cluster.compute_nodes).success
    [key] = [each for each in template(stack)["Resources"].values() if each["Type"] == "AWS::KMS::Key"]

    granted = key["Properties"]["KeyPolicy"]["Statement"][-1]
    assert granted["Action"] == "kms:Decrypt"
    assert "role/parallelcluster/research/*" in str(granted["Condition"]["ArnLike"]["aws:PrincipalArn"])
    assert granted["Condition"]["StringEquals"].keys() == {"kms:ViaService", "aws:PrincipalAccount"}


def test_placement_groups_have_no_tags_because_other_tags_would_be_other_groups(
    stack: cdk.Stack, vpc: ec2.IVpc
) -> None:
    cdk.Tags.of(stack.node.root).add("project", "mine")
    ParallelCluster(stack, "Cluster", vpc=vpc, queues=[queue("trn1", "trn1.32xlarge")], tags={"team": "mine"})
    resources = list(template(stack)["Resources"].values())

    [group] = [each for each in resources if each["Type"] == "AWS::EC2::PlacementGroup"]
    assert group["Properties"] == {"Strategy": "cluster"}
    [own] = [each for each in resources if "Nodes of" in str(each["Properties"].get("GroupDescription"))]
    assert {"project", "team"} <= {tag["Key"] for tag in own["Properties"]["Tags"]}


def test_the_head_node_and_the_provider_may_read_a_munge_key_and_use_its_key(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    secret = secretsmanager.Secret(stack, "MungeKey", encryption_key=kms.Key(stack, "Key"))
    ParallelCluster(stack, "Cluster", vpc=vpc, queues=[queue()], munge_key=secret)
    resources = template(stack)["Resources"]

    def allowed(policy: dict[str, str]) -> set[str]:
        statements = resources[policy["Ref"]]["Properties"]["PolicyDocument"]["Statement"]
        actions = [each["Action"] for each in statements if each["Resource"] != "*"]
        return {action for each in actions for action in ([each] if isinstance(each, str) else each)}

    [provider] = [each["Properties"] for each in resources.values() if each["Type"] == "AWS::CloudFormation::Stack"]
    assert allowed(provider["Parameters"]["AdditionalIamPolicies"]) == {"secretsmanager:GetSecretValue", "kms:Decrypt"}
    [configuration] = configurations(stack)
    [policy] = configuration["HeadNode"]["Iam"]["AdditionalIamPolicies"]
    assert "secretsmanager:GetSecretValue" in allowed(policy["Policy"])
    assert configuration["Scheduling"]["SlurmSettings"]["MungeKeySecretArn"] == stack.resolve(secret.secret_arn)


def test_a_munge_key_by_its_name_alone_is_refused(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    by_name = secretsmanager.Secret.from_secret_name_v2(stack, "MungeKey", "munge")
    with pytest.raises(InvalidArguments, match=r"munge_key: got 'Training/MungeKey'; allowed: an ISecret with"):
        ParallelCluster(stack, "Cluster", vpc=vpc, queues=[queue()], munge_key=by_name)


def test_other_constructs_let_nodes_in_and_are_let_in(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    cluster = ParallelCluster(stack, "Cluster", vpc=vpc, queues=[queue()])
    database = ec2.SecurityGroup(stack, "Database", vpc=vpc)
    database.connections.allow_from(cluster, ec2.Port.tcp(5432))
    cluster.connections.allow_from(database, ec2.Port.tcp(8000))
    resources = template(stack)["Resources"]

    rules = [each["Properties"] for each in resources.values() if each["Type"] == "AWS::EC2::SecurityGroupIngress"]
    [group] = queues(stack)[0]["Networking"]["AdditionalSecurityGroups"]
    assert {each["FromPort"]: each["SourceSecurityGroupId"] == group for each in rules} == {5432: True, 8000: False}
    assert {each["FromPort"]: each["GroupId"] == group for each in rules} == {5432: False, 8000: True}


def test_without_groups_of_its_own_a_cluster_has_those_of_its_storage(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    storage = SharedStorage.lustre(file_system(stack))
    cluster = ParallelCluster(stack, "Cluster", vpc=vpc, queues=[queue()], shared_storage=[storage], security_groups=[])

    assert [each.security_group_id for each in cluster.connections.security_groups] == ["sg-0123456789abcdef0"]
    assert queues(stack)[0]["Networking"]["AdditionalSecurityGroups"] == ["sg-0123456789abcdef0"]


def test_a_reservation_of_the_same_stack_is_a_token(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    reserved = ec2.CfnCapacityReservation(
        stack,
        "Reserved",
        availability_zone="us-west-2d",
        instance_count=4,
        instance_platform="Linux/UNIX",
        instance_type="p5.48xlarge",
    )
    nodes = ComputeResource(
        name="nodes", instance_type="p5.48xlarge", max_count=4, capacity_reservation_id=reserved.ref
    )
    ParallelCluster(stack, "Cluster", vpc=vpc, queues=[Queue(name="gpu", compute_resources=[nodes])])

    [target] = [each["CapacityReservationTarget"] for each in queues(stack)[0]["ComputeResources"]]
    assert target == {"CapacityReservationId": {"Ref": "Reserved"}}


def test_queues_and_storage_are_added_until_synthesis_and_refused_without_a_trace(
    stack: cdk.Stack, vpc: ec2.IVpc
) -> None:
    cluster = ParallelCluster(stack, "Cluster", vpc=vpc, queues=[queue()])
    added = cluster.add_queue(queue("gpu", "p5.48xlarge"))
    s3.Bucket(stack, "Bucket").grant_read(added)
    storage = SharedStorage.lustre(file_system(stack))
    cluster.add_shared_storage(storage)
    with pytest.raises(InvalidArguments, match=r"queue\.name: got 'gpu'"):
        cluster.add_queue(queue("gpu"))
    with pytest.raises(InvalidArguments, match=r"storage\.mount_dir: got '/fsx'"):
        cluster.add_shared_storage(storage)
    cluster.add_queue(queue("last"))
    [configuration] = configurations(stack)

    _, gpu, _ = queues(stack)
    assert cluster.placement_groups.keys() == {"gpu"}
    assert "GroupName" in str(gpu["Networking"]["PlacementGroup"]["Name"])
    assert gpu["ComputeResources"][0]["Efa"] == {"Enabled": True}
    assert [each["MountDir"] for each in configuration["SharedStorage"]] == ["/fsx"]


def test_two_clusters_share_a_file_system_in_one_stack(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    storage = SharedStorage.lustre(file_system(stack))
    ParallelCluster(
        stack,
        "Train",
        vpc=vpc,
        queues=[queue("trn1", "trn1.32xlarge")],
        shared_storage=[storage],
        software=NeuronSoftware(),
    )
    ParallelCluster(stack, "Prepare", vpc=vpc, queues=[queue()], shared_storage=[storage])
    resources = template(stack)["Resources"].values()

    names = [each["Properties"]["ClusterName"] for each in resources if each["Type"] == CLUSTER]
    tokens = [str(each["Properties"]["ServiceToken"]) for each in resources if each["Type"] == CLUSTER]
    assert sorted(names) == ["Training-Prepare", "Training-Train"]
    assert len(set(tokens)) == len(names)
    one, other = configurations(stack)
    assert one["SharedStorage"] == other["SharedStorage"]


def test_a_cluster_of_another_app_has_connections_and_metrics(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    group = ec2.SecurityGroup.from_security_group_id(stack, "Nodes", "sg-0123456789abcdef0")
    cluster = ParallelCluster.from_cluster_attributes(stack, "Cluster", cluster_name="trn1-16", security_groups=[group])
    database = ec2.SecurityGroup(stack, "Database", vpc=vpc)
    database.connections.allow_from(cluster, ec2.Port.tcp(5432))
    metric = cluster.metric("NodesReporting", queue="trn1", statistic="Sum")

    assert cluster.cluster_name == "trn1-16"
    assert dict(metric.dimensions or {}) == {"Cluster": "trn1-16", "Queue": "trn1"}
    assert metric.namespace == "UltraCluster"
    assert "sg-0123456789abcdef0" in str(template(stack)["Resources"])


def test_every_setting_of_a_cluster_is_an_argument() -> None:
    arguments = inspect.signature(ParallelCluster.__init__).parameters.keys()
    of_software = {"neuron_sdk", "neuron_driver", "pytorch"}

    fields = {"munge_key" if field == "munge_key_secret_arn" else field for field in ClusterOptions.model_fields}
    assert fields - of_software <= arguments
    assert of_software <= inspect.signature(NeuronSoftware).parameters.keys()
    for field, options in {"head_node": HeadNode, "slurm": Slurm, "monitoring": MonitoringOptions}.items():
        model = ClusterOptions.model_fields[field].annotation
        assert isinstance(model, type)
        assert issubclass(options, model)


def test_names_are_imported_when_they_are_used() -> None:
    program = "import sys, ultracluster.domain.cluster; assert not {'aws_cdk', 'jsii'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", program], check=True)

    assert {name: getattr(ultracluster, name).__name__ for name in ultracluster.__all__} == {
        name: name for name in ultracluster.__all__
    }
    with pytest.raises(AttributeError, match="no attribute 'Cluster'"):
        ultracluster.Cluster  # type: ignore[attr-defined]  # noqa: B018


def test_tags_of_what_it_is_in_reach_its_nodes(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    """Those of the cluster win."""
    cluster = ParallelCluster(stack, "Cluster", vpc=vpc, queues=[queue()], tags={"team": "own"})
    cdk.Tags.of(stack).add("project", "bert")
    cdk.Tags.of(stack).add("team", "other")
    cdk.Tags.of(cluster).add("owner", "ada")
    [configuration] = configurations(stack)
    assert {each["Key"]: each["Value"] for each in configuration["Tags"]} == {
        "project": "bert",
        "team": "own",
        "owner": "ada",
    }


def test_a_tag_of_what_it_is_in_that_parallelcluster_refuses_is_an_error(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    cluster = ParallelCluster(stack, "Cluster", vpc=vpc, queues=[queue()])
    cdk.Tags.of(cluster).add("parallelcluster:x", "y")
    with pytest.raises(RuntimeError, match=r"tags\.parallelcluster:x: got 'parallelcluster:x'"):
        configurations(stack)


def test_volumes_of_ontap_and_ebs_are_mounted(stack: cdk.Stack, vpc: ec2.IVpc) -> None:
    """Their names stay the same in each synthesis, also of ids that only CloudFormation knows."""
    volume = ec2.Volume(stack, "Volume", availability_zone="us-west-2a", size=cdk.Size.gibibytes(20))
    token = cdk.Fn.import_value("volume")
    storage = [
        SharedStorage.ontap("fsvol-0123456789abcdef0", "/a"),
        SharedStorage.ontap(token, "/b"),
        SharedStorage.ebs("/c", volume=volume, name="mine"),
        SharedStorage.ebs("/d", options=EbsVolume(size_gib=cdk.Size.gibibytes(50), retention="delete")),
    ]
    ParallelCluster(stack, "Cluster", vpc=vpc, queues=[queue()], shared_storage=storage)
    [configuration] = configurations(stack)
    mounts = {each["MountDir"]: each for each in configuration["SharedStorage"]}
    assert mounts["/b"]["Name"] == SharedStorage.ontap(cdk.Fn.import_value("other"), "/b").mount.name
    assert mounts["/a"]["FsxOntapSettings"] == {"VolumeId": "fsvol-0123456789abcdef0"}
    assert mounts["/c"]["EbsSettings"]["VolumeId"] == {"Ref": stack.get_logical_id(volume.node.default_child)}  # type: ignore[arg-type]
    assert mounts["/d"]["EbsSettings"] == {
        "Size": 50,
        "VolumeType": "gp3",
        "Encrypted": True,
        "DeletionPolicy": "Delete",
    }
    for wrong in ({"options": EbsVolume(type="gp2", iops=3000)}, {"volume": volume, "options": EbsVolume()}):
        with pytest.raises(InvalidArguments, match=r"invalid arguments of SharedStorage.ebs:\n  options"):
            SharedStorage.ebs("/e", **wrong)
    with pytest.raises(InvalidArguments, match="volume_id: got 7"):
        SharedStorage.ontap(7, "/f")  # type: ignore[arg-type]
