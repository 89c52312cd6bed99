"""Overrides: what is merged how, what is refused, and what is warned of."""

from __future__ import annotations

from typing import Any

import pytest

from tests.constructs.domain.sample_overrides import LEAVES, OFFICE, POLICY, ROLE, override_of
from tests.constructs.domain.specs import cluster
from ultracluster.domain import override_rules, overrides
from ultracluster.domain.cluster import LoginPoolSpec, SlurmSpec
from ultracluster.domain.cluster_configuration import Bindings, Mount, render
from ultracluster.domain.cluster_rules import violations
from ultracluster.domain.violations import dotted

OURS = "arn:aws:iam::123456789012:policy/parallelcluster/ours"
OUR_GROUP = "sg-0123456789abcdef0"
QUEUE = "Scheduling.SlurmQueues[0]"
NETWORK = {"SubnetIds": ["subnet-0123456789abcdef2"]}
OWN_QUEUE = {
    "Name": "own",
    "Networking": NETWORK,
    "ComputeResources": [{"Name": "c", "InstanceType": "c7i.large"}],
}
ENDLESS: dict[str, Any] = {}
ENDLESS["Iam"] = ENDLESS
SUBNET = "subnet-0123456789abcdef0"
OF_HEAD: dict[str, Any] = {
    "CustomActions": {"OnNodeConfigured": {"Script": "s3://ours/a"}, "OnNodeUpdated": {"Script": "s3://ours/b"}},
    "Iam": {"AdditionalIamPolicies": [{"Policy": OURS}], "S3Access": [{"BucketName": "ours"}]},
}
BINDINGS = Bindings(
    public_subnet_id=SUBNET,
    private_subnet_id="subnet-0123456789abcdef1",
    security_group_ids=[OUR_GROUP],
    shared_storage=[Mount("Efs", "data", "/data", "fs-0123456789abcdef0")],
    head_node=OF_HEAD,
)
SSM_POLICY = {"Policy": "arn:aws-us-gov:iam::aws:policy/AmazonSSMManagedInstanceCore"}
LOGIN = LoginPoolSpec(name="login")


def test_each_key_that_parallelcluster_knows_may_be_an_override() -> None:
    for path in LEAVES:
        spec = cluster(login_nodes=[LOGIN], overrides=override_of(path))
        assert list(map(str, violations(spec))) == [], path


def in_queue(**values: Any) -> dict[str, Any]:
    return {"Scheduling": {"SlurmQueues": [{"Name": "trn1", **values}]}}


def in_resource(**values: Any) -> dict[str, Any]:
    return in_queue(ComputeResources=[{"Name": "trn1-32xl", **values}])


def in_head(**values: Any) -> dict[str, Any]:
    return {"HeadNode": values}


def stored(**values: Any) -> dict[str, Any]:
    return {"SharedStorage": [{"Name": "s", "MountDir": "/s", **values}]}


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    # promises
    (in_head(Imds={"Secured": False}), "HeadNode.Imds.Secured", "true"),
    (in_head(Imds=None), "HeadNode.Imds", "true in Secured"),
    ({"Imds": {"ImdsSupport": "v1.0"}}, "Imds.ImdsSupport", "v2.0"),
    (in_head(Ssh={"AllowedIps": "0.0.0.0/0"}), "HeadNode.Ssh.AllowedIps", "a block of /8 or smaller"),
    (in_head(Ssh=None), "HeadNode.Ssh", "a block such as 203.0.113.0/24 in AllowedIps"),
    (in_head(Dcv={"Enabled": True}), "HeadNode.Dcv", "a block such as 203.0.113.0/24 in AllowedIps"),
    (in_head(Dcv={"Enabled": "yes", "AllowedIps": "::/0"}), "HeadNode.Dcv.AllowedIps", "an IPv4 block"),
    (
        {"LoginNodes": {"Pools": [{"Name": "p", "InstanceType": "c7i.large", "Count": 1, "Networking": NETWORK}]}},
        "LoginNodes.Pools[0]",
        "a block such as 203.0.113.0/24 in Ssh.AllowedIps",
    ),
    (
        in_head(Iam={"AdditionalIamPolicies": [POLICY, SSM_POLICY]}),
        "HeadNode.Iam.AdditionalIamPolicies[1].Policy",
        "leave",
    ),
    # what ParallelCluster or its provider refuses or cannot do
    ({"Region": "us-east-1"}, "Region", "us-west-2"),
    ({"Iam": {"ResourcePrefix": "/mine/"}}, "Iam.ResourcePrefix", "a prefix without /"),
    (
        in_queue(Iam={"InstanceRole": "arn:aws:iam::123456789012:role/mine"}),
        f"{QUEUE}.Iam.InstanceRole",
        "the ARN of a role",
    ),
    (in_head(Iam={"AdditionalIamPolicies": None}), "HeadNode.Iam.AdditionalIamPolicies", "a list, whose policies"),
    *[
        (
            in_queue(Iam={"AdditionalIamPolicies": [POLICY, {"Policy": f"arn:aws:iam::{policy}"}]}),
            f"{QUEUE}.Iam.AdditionalIamPolicies[1].Policy",
            "the ARN of a policy of yours whose name begins with parallelcluster",
        )
        for policy in (
            "aws:policy/AmazonEC2ContainerRegistryReadOnly",
            "aws:policy/parallelcluster-x",
            "123456789012:policy/mine",
            "123456789012:policy/path/parallelcluster-x",
        )
    ],
    ({"HeadNode": None}, "HeadNode", "HeadNode"),
    (in_queue(Name="trn2"), QUEUE, "Networking"),
    ({"Scheduling": {"SlurmQueues": [{"AllocationStrategy": "lowest-price"}]}}, f"{QUEUE}.Name", "its Name"),
    (
        {"Scheduling": {"SlurmQueues": [OWN_QUEUE | {"ComputeResources": []}]}},
        f"{QUEUE}.ComputeResources",
        "at least one",
    ),
    (in_resource(Name="other"), f"{QUEUE}.ComputeResources[0]", "InstanceType or Instances in Instances"),
    (
        in_resource(
            Instances=[{"InstanceType": "c7i.large"}], CapacityReservationTarget={"CapacityReservationId": "cr-1"}
        ),
        f"{QUEUE}.ComputeResources[0].CapacityReservationTarget.CapacityReservationId",
        "CapacityReservationResourceGroupArn",
    ),
    (stored(StorageType="FsxOntap"), "SharedStorage[0]", "FsxOntapSettings"),
    (stored(StorageType="FsxOntap", FsxOntapSettings={}), "SharedStorage[0].FsxOntapSettings", "VolumeId"),
    (stored(StorageType="Ebs", EfsSettings={}), "SharedStorage[0].EfsSettings", "EbsSettings"),
    (in_head(Dcv={"AllowedIps": OFFICE}), "HeadNode.Dcv", "true or false in Enabled"),
    (stored(), "SharedStorage[0]", "StorageType"),
    (
        in_head(CustomActions={"OnNodeUpdated": {"Sequence": []}}),
        "HeadNode.CustomActions.OnNodeUpdated.Sequence",
        "at least",
    ),
    (
        {"AdditionalPackages": {"IntelSoftware": {"IntelHpcPlatform": True}}},
        "AdditionalPackages.IntelSoftware.IntelHpcPlatform",
        "false",
    ),
    # Slurm
    (in_resource(CustomSlurmSettings={"Weight": 1}), f"{QUEUE}.ComputeResources[0].CustomSlurmSettings.Weight", "any"),
    (
        in_queue(CustomSlurmSettings={"MaxTimes": 1}),
        f"{QUEUE}.CustomSlurmSettings.MaxTimes",
        "a parameter of a partition",
    ),
    (
        {"Scheduling": {"SlurmSettings": {"CustomSlurmSettings": [{"Prolog": "/x"}]}}},
        "Scheduling.SlurmSettings.CustomSlurmSettings[0].Prolog",
        "any parameter that ParallelCluster does not set",
    ),
    # what only CloudFormation knows hides nothing that rules look at
    (in_head(Ssh={"AllowedIps": "${Token[AWS.NoValue.7]}"}), "HeadNode.Ssh.AllowedIps", "a block such as"),
    ({"LoginNodes": {"Pools": {"Fn::Transform": {"Name": "AWS::Include"}}}}, "LoginNodes.Pools", "a list"),
    ({"LoginNodes": {"Pools": {"Ref": "Pools"}}}, "LoginNodes.Pools", "a list"),
    (in_head(Networking={"Ref": "Networking"}), "HeadNode.Networking.Ref", "one of AdditionalSecurityGroups"),
    ({"HeadNode": "${Token[TOKEN.7]}"}, "HeadNode", "a mapping"),
    (in_queue(Iam={"InstanceRole": {"Ref": "Role"}}), f"{QUEUE}.Iam.InstanceRole", "the ARN of a role"),
    ({"Iam": {"ResourcePrefix": {"Ref": "Prefix"}}}, "Iam.ResourcePrefix", "a prefix without /"),
    (
        {"DevSettings": {"Cookbook": {"ExtraChefAttributes": '{"cluster":{"head_node_imds_secured":"false"}}'}}},
        "DevSettings.Cookbook.ExtraChefAttributes",
        "attributes other than those",
    ),
    # names tell items of lists apart
    *[
        (stored(Name=name, StorageType="Ebs"), "SharedStorage[0].Name", "its Name, as text")
        for name in (1, True, ["x"], {"Ref": "Name"})
    ],
    (in_head(Dcv={}), "HeadNode.Dcv", "true or false in Enabled"),
    # no JSON
    *[
        ({"Iam": value}, f"Iam{place}", "text, numbers, true, false or null, and keys")
        for value, place in (
            ({1: "x"}, ""),
            ({"PermissionsBoundary": b"x"}, ".PermissionsBoundary"),
            ({"PermissionsBoundary": float("nan")}, ".PermissionsBoundary"),
            ({"PermissionsBoundary": 10**5000}, ".PermissionsBoundary"),
        )
    ],
    ({"Iam": ENDLESS}, "Iam.Iam.Iam", "at most 40 levels"),
]


@pytest.mark.parametrize(("overridden", "place", "allowed"), REFUSED, ids=range(len(REFUSED)))
def test_refused(overridden: dict[str, Any], place: str, allowed: str) -> None:
    [broken] = violations(cluster(overrides=overrides.plain(overridden)))
    assert (dotted(broken.path[1:]), broken.allowed[: len(allowed)]) == (place, allowed)
    assert str(broken)


def test_a_key_that_parallelcluster_knows_not_is_refused_with_what_it_may_mean() -> None:
    """One that is refused for another reason is refused once. Other versions know what we do not."""
    unknown = {"HeadNod": {"Dcv": {}}, "HeadNode": {"Dcv": {"Enabled": "maybe", "Prt": 8443}, "InstanceType": [1]}}
    broken = {dotted(each.path[1:]): each.allowed for each in violations(cluster(overrides=unknown))}
    assert broken == {
        "HeadNod": "HeadNode",
        "HeadNode.Dcv.Enabled": "true or false",
        "HeadNode.Dcv.Prt": "Port",
        "HeadNode.InstanceType": "text",
    }
    assert violations(cluster(overrides={"HeadNod": {}}, parallelcluster_version="3.16.3")) == []


def test_what_cloudformation_the_cdk_or_json_makes_of_values_is_right() -> None:
    ours = {
        "CustomS3Bucket": {"Ref": "Bucket"},
        "Iam": {"PermissionsBoundary": {"Fn::Sub": "arn:${AWS::Partition}:iam::aws:policy/x"}},
        "DeploymentSettings": {
            "LambdaFunctionsVpcConfig": {"SubnetIds": ["#{Token[TOKEN.7]}"], "SecurityGroupIds": ["${Token[TOKEN.8]}"]}
        },
        "HeadNode": {"LocalStorage": {"RootVolume": {"Iops": 4500.0}}, "Ssh": {"AllowedIps": "${Token[TOKEN.9]}"}},
    }
    assert list(map(str, violations(cluster(overrides=ours)))) == []


TWICE = {"Tags": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]}
HIDDEN = {"AdditionalIamPolicies": [{"Policy": {"Fn::Sub": SSM_POLICY["Policy"]}}]}


def test_two_items_of_one_name_are_refused_and_a_function_in_the_place_of_one() -> None:
    assert [dotted(each.path[1:]) for each in violations(cluster(overrides=TWICE))] == ["Tags[0].Key", "Tags[1].Key"]
    hidden = {dotted(each.path[1:]) for each in violations(cluster(overrides=in_queue(Iam=HIDDEN)))}
    assert hidden == {f"{QUEUE}.Iam.AdditionalIamPolicies[0].Policy"}


@pytest.mark.parametrize("version", ["3.16.1", "3.16.2"])
@pytest.mark.parametrize("value", ["x", [], True, 1, ["x"], {"Dcv": True}, {"Dcv": ["x"]}, {"Imds": "x"}, {"Ssh": []}])
@pytest.mark.parametrize("key", ["HeadNode", "Imds", "LoginNodes", "Scheduling", "SharedStorage", "Tags"])
def test_no_shape_of_an_override_is_more_than_a_violation(version: str, key: str, value: Any) -> None:
    spec = cluster(parallelcluster_version=version, overrides={key: value})
    assert all(map(str, violations(spec)))
    list(override_rules.warnings(spec))


MERGED: list[tuple[dict[str, Any], str, Any]] = [
    (in_head(Imds={"Secured": "true"}), "HeadNode.Imds", {"Secured": "true"}),
    ({"HeadNode": {"Ssh": {"KeyName": None}}}, "HeadNode.Ssh", {"AllowedIps": "127.0.0.1/32"}),
    ({"Monitoring": {"Dashboards": None}}, "Monitoring.Dashboards", None),
    ({"Monitoring": {"Logs": {"Rotation": {"Enabled": None}}}}, "Monitoring.Logs.Rotation", {}),
    (
        in_head(Iam={"AdditionalIamPolicies": [POLICY]}),
        "HeadNode.Iam.AdditionalIamPolicies",
        [{"Policy": OURS}, POLICY],
    ),
    (
        in_head(Iam={"S3Access": [{"BucketName": "mine"}]}),
        "HeadNode.Iam.S3Access",
        [{"BucketName": "ours"}, {"BucketName": "mine"}],
    ),
    (in_head(Iam={"InstanceRole": ROLE}), "HeadNode.Iam", {"InstanceRole": ROLE}),
    (
        in_head(CustomActions={"OnNodeConfigured": {"Script": "s3://mine"}}),
        "HeadNode.CustomActions.OnNodeConfigured",
        {"Sequence": [{"Script": "s3://ours/a"}, {"Script": "s3://mine"}]},
    ),
    (
        in_head(CustomActions={"OnNodeUpdated": {"Sequence": [{"Script": "s3://a"}, {"Script": "s3://b"}]}}),
        "HeadNode.CustomActions.OnNodeUpdated",
        {"Sequence": [{"Script": "s3://ours/b"}, {"Script": "s3://a"}, {"Script": "s3://b"}]},
    ),
    (
        in_head(Networking={"AdditionalSecurityGroups": ["sg-1", OUR_GROUP]}),
        "HeadNode.Networking.AdditionalSecurityGroups",
        [OUR_GROUP, "sg-1"],
    ),
    (in_head(Networking={"SecurityGroups": ["sg-1"]}), "HeadNode.Networking.SecurityGroups", ["sg-1", OUR_GROUP]),
    (in_head(Networking={"SecurityGroups": ["sg-1"]}), "HeadNode.Networking.AdditionalSecurityGroups", None),
    (in_head(Iam={"InstanceRole": None}), "HeadNode.Iam", OF_HEAD["Iam"]),
    (
        in_queue(Networking={"PlacementGroup": {"Enabled": False}}),
        "Scheduling.SlurmQueues.0.Networking.PlacementGroup",
        {"Enabled": False},
    ),
    *[
        (in_head(Networking=dict(given)), "HeadNode.Networking", {"SubnetId": SUBNET, "SecurityGroups": groups})
        for given, groups in (
            ([("SecurityGroups", ["sg-1"]), ("AdditionalSecurityGroups", ["sg-2"])], ["sg-1", OUR_GROUP, "sg-2"]),
            ([("AdditionalSecurityGroups", ["sg-2"]), ("SecurityGroups", ["sg-1"])], ["sg-1", OUR_GROUP, "sg-2"]),
        )
    ],
    (
        in_queue(Networking={"PlacementGroup": {"Id": "mine"}}),
        "Scheduling.SlurmQueues.0.Networking.PlacementGroup",
        {"Id": "mine"},
    ),
    (
        in_resource(Instances=[{"InstanceType": "c7i.large"}]),
        "Scheduling.SlurmQueues.0.ComputeResources.0.InstanceType",
        None,
    ),
    ({"Scheduling": {"SlurmQueues": [OWN_QUEUE]}}, "Scheduling.SlurmQueues.1", OWN_QUEUE),
    (
        {"Scheduling": {"SlurmSettings": {"CustomSlurmSettings": [{"messagetimeout": "9"}, {"MaxJobCount": "1"}]}}},
        "Scheduling.SlurmSettings.CustomSlurmSettings.1",
        {"messagetimeout": "9"},
    ),
    ({"Tags": [{"Key": "a", "Value": "2"}]}, "Tags", [{"Key": "a", "Value": "2"}, {"Key": "b", "Value": "1"}]),
    (
        {"SharedStorage": [{"Name": "data", "EfsSettings": {"IamAuthorization": True}}]},
        "SharedStorage.0.EfsSettings.EncryptionInTransit",
        True,
    ),
    (
        {"SharedStorage": [{"Name": "data", "MountDir": "/d", "StorageType": "Ebs"}]},
        "SharedStorage.0",
        {"Name": "data", "MountDir": "/d", "StorageType": "Ebs"},
    ),
]


@pytest.mark.parametrize(("overridden", "place", "value"), MERGED, ids=range(len(MERGED)))
def test_merged(overridden: dict[str, Any], place: str, value: Any) -> None:
    slurm = SlurmSpec(custom_settings={"MessageTimeout": "60"})
    found: Any = render(cluster(slurm=slurm, tags={"a": "1", "b": "1"}, overrides=overridden), BINDINGS)
    for key in place.split("."):
        found = found[int(key)] if isinstance(found, list) else found.get(key)
    assert found == value


WARNED: list[tuple[dict[str, Any], str, str]] = [
    (in_head(InstanceType="m6i.large"), "HeadNode.InstanceType", "head_node.instance_type sets it"),
    (in_resource(MaxCount=4), f"{QUEUE}.ComputeResources[0].MaxCount", "queues.compute_resources.max_count sets it"),
    ({"Tags": [{"Key": "a", "Value": "b"}]}, "Tags", "tags sets it"),
    ({"Scheduling": {"SlurmQueues": [OWN_QUEUE]}}, f"{QUEUE}.Name", "one of trn1, or a queue of queues"),
    (
        in_resource(Name="more", InstanceType="c7i.large"),
        f"{QUEUE}.ComputeResources[0].Name",
        "one of trn1-32xl, or a compute resource of queues",
    ),
    ({"Monitoring": {"Logs": {"CloudWatch": {"Enabled": False}}}}, "Monitoring.Logs.CloudWatch.Enabled", "true"),
    (in_head(Iam={"InstanceRole": ROLE}), "HeadNode.Iam.InstanceRole", "AdditionalIamPolicies, which are added"),
    (in_head(LocalStorage={"RootVolume": {"Encrypted": False}}), "HeadNode.LocalStorage.RootVolume.Encrypted", "true"),
    ({"DevSettings": {"NodePackage": "s3://x"}}, "DevSettings.NodePackage", "none"),
    (in_queue(AllocationStrategy="lowest-price"), f"{QUEUE}.AllocationStrategy", "with Instances in each"),
    (
        in_queue(Networking={"SecurityGroups": ["sg-1"]}),
        f"{QUEUE}.Networking.SecurityGroups",
        "AdditionalSecurityGroups",
    ),
    (in_head(CustomActions=None), "HeadNode.CustomActions", "leave it"),
    (in_queue(Iam=None), f"{QUEUE}.Iam", "leave it"),
    ({"SharedStorage": None}, "SharedStorage", "leave it"),
    ({"Monitoring": None}, "Monitoring", "leave it"),
    (
        in_head(LocalStorage={"RootVolume": {"Encrypted": "false"}}),
        "HeadNode.LocalStorage.RootVolume.Encrypted",
        "true",
    ),
    (stored(StorageType="Efs", EfsSettings={}), "SharedStorage[0].EfsSettings", "Encrypted: true"),
    (stored(StorageType="Ebs", EbsSettings={"Encrypted": 0}), "SharedStorage[0].EbsSettings.Encrypted", "true"),
    (stored(StorageType="Ebs"), "SharedStorage[0].StorageType", "shared_storage, which has most kinds"),
    ({"AdditionalResources": "https://x"}, "AdditionalResources", "none"),
    (
        in_resource(LaunchTemplateOverrides={"LaunchTemplateId": "lt-0", "Version": 1}),
        f"{QUEUE}.ComputeResources[0].LaunchTemplateOverrides",
        "none",
    ),
    (in_head(Networking={"ElasticIp": True}), "", ""),
    (in_head(LocalStorage={"RootVolume": {"Encrypted": True}}), "", ""),
]


@pytest.mark.parametrize(("overridden", "place", "allowed"), WARNED, ids=range(len(WARNED)))
def test_what_disables_a_feature_is_warned_of(overridden: dict[str, Any], place: str, allowed: str) -> None:
    found = [(dotted(each.path), each.allowed) for each in override_rules.warnings(cluster(overrides=overridden))]
    if place:
        assert [each[1][: len(allowed)] for each in found if each[0] == place] == [allowed], found
    else:
        assert found == []


def test_what_takes_the_database_from_accounting_is_warned_of() -> None:
    settings = {"ExternalSlurmdbd": {"Host": "db"}, "Database": None}
    spec = cluster(overrides={"Scheduling": {"SlurmSettings": settings}})
    assert [each.path[-1] for each in override_rules.accounting_warnings(spec)] == ["Database", "ExternalSlurmdbd"]
