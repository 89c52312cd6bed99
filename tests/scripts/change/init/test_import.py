"""A configuration of ParallelCluster becomes settings that lead to all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import load
from scripts.change.init.additions import DEFAULTS, REASONS
from scripts.change.init.changes import typed
from scripts.change.init.imported import Imported, imported
from scripts.change.init.mapping import covered
from scripts.change.init.source import Source, SourceError, read
from tests.constructs.domain.sample_overrides import LEAVES, override_of
from tests.constructs.domain.specs import cluster
from ultracluster.domain import override_rules
from ultracluster.domain.cluster import LoginPoolSpec
from ultracluster.domain.cluster_configuration import Bindings, Mount, render
from ultracluster.domain.overrides import at, without_indices

PLAIN = """\
Region: us-east-2
Image:
  Os: ubuntu2204
HeadNode:
  InstanceType: m5.4xlarge
  Networking:
    SubnetId: subnet-0123456789abcdef0
  Ssh:
    KeyName: ours
    AllowedIps: 203.0.113.0/24
  Iam:
    AdditionalIamPolicies:
      - Policy: arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore
      - Policy: arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess
Scheduling:
  Scheduler: slurm
  SlurmQueues:
    - Name: batch
      ComputeResources:
        - Name: large
          Instances: [{InstanceType: c6i.8xlarge}]
          DisableSimultaneousMultithreading: true
      Networking:
        SubnetIds: [subnet-0123456789abcdef1]
        PlacementGroup: {Enabled: true}
      CustomActions:
        OnNodeConfigured:
          Script: s3://ours/setup.sh
          Args: [4]
SharedStorage:
  - {Name: data, MountDir: /fsx, StorageType: FsxLustre, FsxLustreSettings: {FileSystemId: fs-0123456789abcdef0}}
Tags:
  - {Key: team, Value: a}
  - {Key: "parallelcluster:custom_resource", Value: cluster}
"""
BINDINGS = Bindings(
    public_subnet_id="subnet-0123456789abcdef0",
    private_subnet_id="subnet-0123456789abcdef1",
    security_group_ids=["sg-0123456789abcdef0"],
    shared_storage=[Mount("Efs", "data", "/data", "fs-0123456789abcdef0")],
)
KNOWN = {
    "region": "us-east-2",
    "zone_id": "use2-az1",
    "network.cidr": "10.0.0.0/16",
    "network.public_subnet_cidr": "10.0.0.0/24",
    "network.private_subnet_cidr": "10.0.64.0/18",
    "network.existing.vpc_id": "vpc-0123456789abcdef0",
}


ANSWERS = {**KNOWN, "region": "us-west-2", "zone_id": "usw2-az4", "cluster.os": "ubuntu2404"}


def source(text: str, answers: Mapping[str, str] = KNOWN) -> Source:
    return read(text.encode(), "ours.yaml", answers)


def take(text: str, answers: Mapping[str, str] = KNOWN, *, new_network: bool = False) -> Imported:
    return imported(source(text, answers), "mine", answers, new_network=new_network)


def settings(text: str, **answers: str) -> dict[str, Any]:
    result = take(text, {**KNOWN, **answers})
    assert result.questions == []
    values: dict[str, Any] = yaml.safe_load(result.text)
    return values


def test_a_plain_configuration_becomes_short_settings(tmp_path: Path) -> None:
    """Keys that settings have go there, others to overrides, and a change is told with its reason."""
    result = take(PLAIN)
    assert yaml.safe_load(result.text) == {
        "name": "mine",
        "region": "us-east-2",
        "zone_id": "use2-az1",
        "tags": {"team": "a"},
        "network": {
            "cidr": "10.0.0.0/16",
            "public_subnet_cidr": "10.0.0.0/24",
            "private_subnet_cidr": "10.0.64.0/18",
            "existing": {
                "vpc_id": "vpc-0123456789abcdef0",
                "public_subnet_id": "subnet-0123456789abcdef0",
                "private_subnet_id": "subnet-0123456789abcdef1",
            },
        },
        "storage": {"file_system": {"capacity_gib": 1200, "mount_dir": "/lustre"}},
        "cluster": {
            "parallelcluster_version": "3.16.1",
            "neuron_sdk": None,
            "os": "ubuntu2204",
            "head_node": {"instance_type": "m5.4xlarge", "ssh_key_name": "ours", "ssh_cidr": "203.0.113.0/24"},
            "queues": [
                {
                    "name": "batch",
                    "compute_resources": [
                        {
                            "name": "large",
                            "instance_type": "c6i.8xlarge",
                            "max_count": 10,
                            "simultaneous_multithreading": False,
                        }
                    ],
                    "placement_group": "batch",
                    "exclusive_jobs": False,
                    "custom_actions": {"on_node_configured": [{"script": "s3://ours/setup.sh", "args": ["4"]}]},
                }
            ],
            "shared_storage": [
                {"name": "data", "mount_dir": "/fsx", "fsx_lustre": {"file_system_id": "fs-0123456789abcdef0"}}
            ],
            "overrides": {
                "HeadNode": {
                    "Iam": {"AdditionalIamPolicies": [{"Policy": "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"}]}
                },
            },
        },
    }
    assert [without_indices(each.path) for each in result.changes] == [
        "HeadNode.Iam.AdditionalIamPolicies.Policy",
        "Scheduling.SlurmQueues.ComputeResources.Instances",
        "Scheduling.SlurmQueues.Networking.PlacementGroup",
        "Tags",
    ]
    path = tmp_path / "mine.yaml"
    path.write_text(result.text, encoding="utf-8")
    assert load(path).cluster.queues[0].scratch_dir == "/scratch"


AS_OVERRIDES = (
    "LoginNodes.Pools.CustomActions.OnNodeStart",
    "LoginNodes.Pools.CustomActions.OnNodeConfigured",
    "LoginNodes.Pools.CustomActions.OnNodeUpdated",
    "Scheduling.SlurmQueues.ComputeResources.Instances",
    "Scheduling.SlurmQueues.Networking.SubnetIds",
    "SharedStorage.MountDir",
    "DirectoryService.",
    "Iam.",  # `roles` is of the stacks and the provider, too
)
"""Keys whose sample no setting takes, or that one has for another purpose."""
REFUSED = {"Scheduling.SlurmQueues.ComputeSettings.LocalStorage.EphemeralVolume.MountDir"}
REFUSED |= {path for path in LEAVES if path.endswith(".InstanceType")}
"""Keys whose sample ParallelCluster's schema takes, and its validators do not."""
NO_VALUE = "sg-0123456789abcdef0"
"""A sample that the schema takes for any text, and no setting."""


def with_key(path: str) -> dict[str, Any]:
    """Return a configuration that has a key, as ParallelCluster takes it."""
    spec = cluster(login_nodes=[LoginPoolSpec(name="login")], overrides=override_of(path))
    configuration = render(spec, BINDINGS)
    if path.startswith("DevSettings"):
        configuration["DevSettings"] |= override_of(path)["DevSettings"]
    return configuration


@pytest.mark.parametrize("path", [path for path in LEAVES if path not in REFUSED])
def test_no_key_that_parallelcluster_knows_is_lost(path: str) -> None:
    """Each is in what the settings lead to, or among the changes; one that a setting has is no override."""
    configuration = with_key(path)
    answers = dict(ANSWERS)
    if path == "Scheduling.SlurmQueues.Networking.SubnetIds":  # the sample is that of the head node
        answers["network.existing.public_subnet_id"] = "subnet-0123456789abcdef9"
    configuration = in_sequences(configuration)
    result = imported(Source("ours.yaml", configuration, {}), "mine", answers, new_network=False)
    assert result.questions == []
    changed = {without_indices(each.path) for each in result.changes}
    lost = {without_indices(each) for each in covered(typed(configuration), result.configuration, ())}
    assert {each for each in lost if not any(each.startswith((one, f"{one}.")) for one in changed)} == set()
    overrides = yaml.safe_load(result.text)["cluster"].get("overrides", {})
    if path in override_rules.FIELDS and not path.startswith(AS_OVERRIDES):
        assert at_leaf(overrides, path) in (None, NO_VALUE)


def in_sequences(value: Any, key: str = "") -> Any:
    """Return a configuration whose scripts are sequences, which means the same."""
    if key.startswith("OnNode") and "Sequence" not in value:
        return {"Sequence": [value]}
    if isinstance(value, dict):
        return {name: in_sequences(each, name) for name, each in value.items()}
    return [in_sequences(each) for each in value] if isinstance(value, list) else value


def at_leaf(value: Any, path: str) -> Any:
    """Return what is at a path, in any item of lists."""
    for key in path.split("."):
        items = value if isinstance(value, list) else [value]
        value = next((found for item in items if (found := at(item, (key,))) is not None), None)
    return value


def test_each_key_that_is_added_has_a_reason_or_is_the_default_of_parallelcluster() -> None:
    rendered = with_key("DirectoryService.DomainName")
    keys = {without_indices(path) for path, _ in leaves(rendered)}
    given = ("Name", "InstanceType", "SubnetId", "SubnetIds", "Os", "Region", "Scheduler", "Count", "Key", "Value")
    others = {key for key in keys if key.rpartition(".")[2] not in given}
    told = (*REASONS, *DEFAULTS, "SharedStorage", "HeadNode.CustomActions", "HeadNode.Iam", "DirectoryService.", "Tags")
    assert {key for key in others if not key.startswith(told) and "SecurityGroups" not in key} == set()


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [leaf for key, each in members for leaf in leaves(each, (*path, key))]
    return found or [(path, value)]


@pytest.mark.parametrize(
    ("given", "was", "key", "now"),
    [
        ("AllowedIps: 203.0.113.0/24", "AllowedIps: 0.0.0.0/0", "HeadNode.Ssh", {"AllowedIps": "127.0.0.1/32"}),
        ("Image:", "Imds: {ImdsSupport: v1.0}\nImage:", "Imds", {"ImdsSupport": "v2.0"}),
        ("  Ssh:", "  Imds: {Secured: false}\n  Ssh:", "HeadNode.Imds", {"Secured": True}),
        (
            "  Ssh:",
            "  LocalStorage: {RootVolume: {Size: 30, Encrypted: false}}\n  Ssh:",
            "HeadNode.LocalStorage.RootVolume",
            {"Size": 45, "Encrypted": True, "VolumeType": "gp3"},
        ),
        (
            "  Ssh:",
            "  Dcv: {Enabled: true}\n  Ssh:",
            "HeadNode.Dcv",
            {"Enabled": True, "AllowedIps": "127.0.0.1/32"},
        ),
    ],
)
def test_what_breaks_a_promise_is_changed_and_told(given: str, was: str, key: str, now: object) -> None:
    result = take(PLAIN.replace(given, was))
    assert at(result.configuration, key.split(".")) == now
    told = {without_indices(each.path) for each in [*result.changes, *result.additions]}
    assert any(each.startswith(key) for each in told)


def test_roles_that_the_provider_may_not_use_are_asked_for() -> None:
    role = "arn:aws:iam::123456789012:role/ours"
    given = "      - Policy: arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore\n"
    policies = given + given.replace("AmazonSSMManagedInstanceCore", "AmazonS3ReadOnlyAccess")
    text = PLAIN.replace(f"    AdditionalIamPolicies:\n{policies}", f"    InstanceRole: {role}\n")
    text = text.replace("Tags:", "Iam: {ResourcePrefix: /ours/}\nTags:")
    assert {each.key for each in take(text).questions} == {role, "/ours/"}
    own = "arn:aws:iam::123456789012:role/parallelcluster/ours"
    result = take(text, {**KNOWN, role: own, "/ours/": "none"})
    assert at(result.configuration, ("HeadNode", "Iam", "InstanceRole")) == own
    assert "Iam" not in result.configuration


def test_a_reservation_of_a_queue_is_one_of_its_compute_resources() -> None:
    target = "      CapacityReservationTarget: {CapacityReservationId: cr-0123456789abcdef0}\n"
    block = f"    - Name: batch\n      CapacityType: CAPACITY_BLOCK\n{target}"
    text = PLAIN.replace("    - Name: batch\n", block).replace("{Enabled: true}", "{Enabled: false}")
    text = text.replace("          DisableS", "          MinCount: 4\n          MaxCount: 4\n          DisableS")
    [queue] = settings(text)["cluster"]["queues"]
    assert queue["compute_resources"][0]["capacity_reservation_id"] == "cr-0123456789abcdef0"


def test_another_value_may_be_given_for_any_key() -> None:
    values = settings(PLAIN, **{"Scheduling.SlurmQueues[0].Name": "other", "HeadNode.InstanceType": "c5.2xlarge"})
    assert values["cluster"]["queues"][0]["name"] == "other"
    assert values["cluster"]["head_node"]["instance_type"] == "c5.2xlarge"


def test_settings_of_slurm_on_one_line_stay_together() -> None:
    lines = "[{MessageTimeout: 60}, {NodeSet: some, Nodes: batch-dy-large-1}, {PartitionName: small, Nodes: some}]"
    text = PLAIN.replace("  SlurmQueues:", f"  SlurmSettings: {{CustomSlurmSettings: {lines}}}\n  SlurmQueues:")
    found = at(take(text).configuration, ("Scheduling", "SlurmSettings", "CustomSlurmSettings"))
    assert {"NodeSet": "some", "Nodes": "batch-dy-large-1"} in found
    with pytest.raises(SourceError, match="Nodez"):
        take(text.replace("small, Nodes", "small, Nodez"))
    apart = settings(text.replace("Nodes: some", "MaxTime: 60").replace(", Nodes: batch-dy-large-1", ""))
    assert "slurm" not in apart["cluster"]
    text = text.replace(", {PartitionName: small, Nodes: some}", "")
    single = settings(text.replace("NodeSet: some, Nodes: batch-dy-large-1", "KillWait: 3"))
    assert single["cluster"]["slurm"]["custom_settings"] == {"MessageTimeout": "60", "KillWait": "3"}


def test_several_types_and_subnets_stay_a_fleet() -> None:
    text = PLAIN.replace("[{InstanceType: c6i.8xlarge}]", "[{InstanceType: c6i.8xlarge}, {InstanceType: c6a.8xlarge}]")
    [queue] = settings(text)["cluster"]["queues"]
    assert queue["compute_resources"][0]["instance_type"] == "c6i.8xlarge"
    [resource] = at_leaf(take(text).configuration, "Scheduling.SlurmQueues.ComputeResources")
    assert [each["InstanceType"] for each in resource["Instances"]] == ["c6i.8xlarge", "c6a.8xlarge"]


@pytest.mark.parametrize(
    ("storage", "taken"),
    [
        ("StorageType: Ebs, EbsSettings: {Size: 50}", {"ebs": {"size_gib": 50, "retention": "delete"}}),
        ("StorageType: Ebs", {"ebs": {"retention": "delete"}}),
        ("StorageType: Ebs, EbsSettings: {Raid: {Type: 0}}", None),
        ("StorageType: Ebs, EbsSettings: {Encrypted: false}", None),
        (
            "StorageType: Efs, EfsSettings: {FileSystemId: fs-01234567, IamAuthorization: true}",
            {"efs": {"file_system_id": "fs-01234567", "iam_authorization": True}},
        ),
        ("StorageType: Efs, EfsSettings: {Encrypted: true}", None),
        (
            "StorageType: FsxOntap, FsxOntapSettings: {VolumeId: fsvol-0123456789abcdef0}",
            {"fsx_ontap": {"volume_id": "fsvol-0123456789abcdef0"}},
        ),
    ],
)
def test_storage_that_a_setting_takes_is_no_override(storage: str, taken: dict[str, Any] | None) -> None:
    cluster = settings(
        PLAIN.replace("StorageType: FsxLustre, FsxLustreSettings: {FileSystemId: fs-0123456789abcdef0}", storage)
    )["cluster"]
    given = [] if taken is None else [{"name": "data", "mount_dir": "/fsx", **taken}]
    assert cluster.get("shared_storage", []) == given
    assert ("SharedStorage" in cluster.get("overrides", {})) == (taken is None)


def test_buckets_are_settings() -> None:
    access = (
        "[{BucketName: ours, KeyName: a/*, EnableWriteAccess: false}, {BucketName: yours, EnableWriteAccess: true}]"
    )
    taken = [{"bucket": "ours", "key": "a/*"}, {"bucket": "yours", "write": True}]
    text = PLAIN.replace("  Iam:\n", f"  Iam:\n    S3Access: {access}\n", 1)
    text = text.replace("      CustomActions:", f"      Iam: {{S3Access: {access}}}\n      CustomActions:")
    cluster = settings(text)["cluster"]
    assert (cluster["head_node"]["s3_access"], cluster["queues"][0]["s3_access"]) == (taken, taken)
    assert "S3Access" not in str(cluster["overrides"])
    with pytest.raises(
        SourceError, match=r"ours.yaml:12: HeadNode.Iam.S3Access\[0\].BucketName: got 'ours'; allowed: each"
    ):
        take(text.replace("{BucketName: yours", "{BucketName: ours"))


def test_a_mount_point_without_a_slash_is_below_the_root() -> None:
    text = PLAIN.replace("MountDir: /fsx", "MountDir: shared")
    assert settings(text)["cluster"]["shared_storage"][0]["mount_dir"] == "/shared"
    assert [(each.path, each.now) for each in take(text).changes if each.was == "shared"] == [
        (("SharedStorage", 0, "MountDir"), "/shared")
    ]


def test_a_directory_becomes_settings_if_they_take_all_of_it() -> None:
    directory = """\
DirectoryService:
  DomainName: corp.example.com
  DomainAddr: ldaps://corp.example.com
  PasswordSecretArn: arn:aws:secretsmanager:us-east-2:123456789012:secret:s-AbCdEf
  DomainReadOnlyUser: cn=ReadOnly,dc=corp
  AdditionalSssdConfigs: {ldap_auth_disable_tls_never_use_in_production: True}
"""
    taken = settings(f"{PLAIN}{directory}")["cluster"]["directory"]
    assert taken["additional_sssd_configs"] == {"ldap_auth_disable_tls_never_use_in_production": "true"}
    addresses = settings(f"{PLAIN}{directory.replace('ldaps://corp.example.com', '10.0.0.4,10.0.0.5')}")["cluster"]
    assert addresses["overrides"]["DirectoryService"]["DomainName"] == "corp.example.com"


def test_a_file_system_of_parallelcluster_becomes_the_deployments() -> None:
    made = "FsxLustreSettings: {StorageCapacity: 2400, DeploymentType: PERSISTENT_2, PerUnitStorageThroughput: 500}"
    text = PLAIN.replace("FsxLustreSettings: {FileSystemId: fs-0123456789abcdef0}", made)
    values = settings(text)
    assert values["storage"] == {
        "file_system": {"capacity_gib": 2400, "throughput_mbps_per_tib": 500},
        "retain": False,
    }
    assert "SharedStorage" not in values["cluster"]["overrides"]


def test_nodes_of_arm_are_taken_as_all_others() -> None:
    text = PLAIN.replace("m5.4xlarge", "m7g.4xlarge").replace("c6i.8xlarge", "hpc7g.16xlarge")
    result = take(text)
    cluster_of = yaml.safe_load(result.text)["cluster"]
    assert (cluster_of["neuron_sdk"], cluster_of["head_node"]["instance_type"]) == (None, "m7g.4xlarge")
    assert any(each.startswith("no Neuron SDK") for each in result.further)


@pytest.mark.parametrize("types", ["trn1.32xlarge", "trn1.32xlarge}, {InstanceType: trn1n.32xlarge"])
def test_nodes_with_neuron_devices_keep_their_software(types: str) -> None:
    result = take(PLAIN.replace("c6i.8xlarge", types).replace("        PlacementGroup: {Enabled: true}\n", ""))
    assert "neuron_sdk" not in yaml.safe_load(result.text)["cluster"]
    assert not any("Neuron" in each for each in result.further)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("  Ssh:", "  Sssh: {}\n  Ssh:", "ours.yaml:8: HeadNode.Sssh: got {}; allowed: Ssh"),
        (
            "Scheduler: slurm",
            "Scheduler: awsbatch",
            "ours.yaml:16: Scheduling.Scheduler: got 'awsbatch'; ParallelClust",
        ),
        ("    - Name: batch", "    - Name: Batch_1", "ours.yaml:18: Scheduling.SlurmQueues[0].Name: got 'Batch_1'"),
        (
            "  Scheduler:",
            "  AwsBatchQueues: []\n  Scheduler:",
            "Scheduling.AwsBatchQueues: got []; ParallelCluster 3.16.0",
        ),
        ("  Ssh:", "  Iam: {}\n  Ssh:", "ours.yaml:12: HeadNode.Iam: given twice"),
        ("  InstanceType: m5.4xlarge", "  # none", "HeadNode.InstanceType: missing"),
        (
            "m5.4xlarge",
            "c7g.4xlarge",
            "ours.yaml:20: Scheduling.SlurmQueues[0].ComputeResources[0].InstanceType: got 'c6i.8xlarge'; allowed: an",
        ),
        ("MountDir: /fsx", "MountDir: /usr", "ours.yaml:31: SharedStorage[0].MountDir: got '/usr'"),
        ("Tags:", "Tags: [\n", "not YAML"),
        ("Tags:", "{% if x %}\nTags:", "render it first"),
    ],
)
def test_what_cannot_be_taken_is_named_with_its_line_and_reason(old: str, new: str, said: str) -> None:
    with pytest.raises(SourceError) as refused:
        take(PLAIN.replace(old, new, 1))
    assert said in str(refused.value)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in members:
        yield (*path, key)
        yield from places(each, (*path, key))


@pytest.mark.slow
@pytest.mark.parametrize("odd", [None, "x", [], {}, "${Q}", [None]], ids=repr)
def test_a_value_of_any_shape_anywhere_is_taken_asked_for_or_refused(odd: Any) -> None:
    for *above, last in places(yaml.safe_load(PLAIN)):
        configuration = yaml.safe_load(PLAIN)
        holder = configuration
        for key in above:
            holder = holder[key]
        holder[last] = odd
        with suppress(SourceError):
            take(yaml.safe_dump(configuration), new_network=True)


def test_all_that_is_missing_is_asked_at_once() -> None:
    text = (
        PLAIN.replace("subnet-0123456789abcdef0", "${HEAD}")
        .replace("subnet-0123456789abcdef1", "<compute-subnet>")
        .replace("KeyName: ours", "KeyName: {your-key}")
        .replace("m5.4xlarge", "{{ head_type }}")
        .replace("fs-0123456789abcdef0", "fs-xxxxxxxx")
        .replace("s3://ours/setup.sh", "s3://${BUCKET}/setup.sh")
        .replace("ubuntu2204", "alinux2")
        .replace("AmazonS3ReadOnlyAccess", "CloudWatchFullAccess")
        .replace("Region: us-east-2", "Region: $REGION")
    )
    answers = {
        "HEAD": "subnet-0123456789abcdef0",
        "compute-subnet": "subnet-0123456789abcdef1",
        "your-key": "ours",
        "head_type": "m5.4xlarge",
        "fs-xxxxxxxx": "fs-0123456789abcdef0",
        "BUCKET": "ours",
        "cluster.os": "ubuntu2204",
        "CloudWatchFullAccess": "none",
        "REGION": "us-east-2",
    }
    asked = {each.key for each in take(text, {}).questions}
    assert asked == {*answers, *(KNOWN.keys() - {"region"})}
    of_text = settings(text, **answers)
    of_plain = settings(PLAIN)
    del of_plain["cluster"]["overrides"]  # its policy, which is not attached
    assert of_text == of_plain


TEMPLATE = """\
Parameters:
  Head: {Type: String, Default: m5.4xlarge, AllowedValues: [m5.4xlarge, m5.8xlarge]}
  Subnets: {Type: "List<AWS::EC2::Subnet::Id>"}
  Most: {Type: Number, Default: 4}
  Kind: {Type: String, Default: x86}
  Size: {Type: String}
Conditions:
  IsLarge: !Not [!Equals [!Ref Size, small]]
  IsX86: !Equals [!Ref Kind, x86]
Mappings:
  Types: {x86: {Compute: c6i.8xlarge}}
Resources:
  Cluster:
    Type: Custom::PclusterCluster
    Properties:
      ClusterConfiguration:
        Image: {Os: ubuntu2204}
        HeadNode:
          InstanceType: !Ref Head
          Networking:
            SubnetId:
              {"Fn::Select": [0, {"Fn::Split": [",", {"Fn::ImportValue": {"Fn::Sub": "${AWS::StackName}-net"}}]}]}
          Iam:
            AdditionalIamPolicies:
              - Policy: !Sub arn:${AWS::Partition}:iam::aws:policy/AmazonS3ReadOnlyAccess
              - !If [IsX86, !Ref AWS::NoValue, {Policy: x}]
        Scheduling:
          Scheduler: slurm
          SlurmQueues:
            - Name: !Join ["-", [batch, !GetAtt Other.Name]]
              ComputeResources:
                - {Name: large, InstanceType: !FindInMap [Types, !Ref Kind, Compute], MaxCount: !Ref Most}
              Networking: {SubnetIds: !Ref Subnets}
              JobExclusiveAllocation: !If [IsLarge, true, false]
"""


def test_a_template_is_evaluated_and_asked_for_what_it_does_not_have() -> None:
    given = {**KNOWN, "AWS::StackName": "mine"}
    assert {each.key for each in take(TEMPLATE, given).questions} == {"mine-net", "Subnets", "Other.Name", "Size"}
    answers = {
        "mine-net": "subnet-0123456789abcdef0,subnet-0123456789abcdef9",
        "Subnets": "subnet-0123456789abcdef1",
        "Other.Name": "one",
        "Size": "small",
    }
    of_template = take(TEMPLATE, {**given, **answers})
    values = yaml.safe_load(of_template.text)
    assert values["network"]["existing"]["public_subnet_id"] == "subnet-0123456789abcdef0"
    [queue] = values["cluster"]["queues"]
    [resource] = queue["compute_resources"]
    assert (queue["name"], resource["instance_type"], resource["max_count"]) == ("batch-one", "c6i.8xlarge", 4)
    assert at(of_template.configuration, ("HeadNode", "Iam", "AdditionalIamPolicies")) == [
        {"Policy": "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"}
    ]


def test_a_template_may_have_the_configuration_as_text() -> None:
    inline = "".join(
        f"          {line}\n" for line in PLAIN.replace("subnet-0123456789abcdef1", "${Subnet}").splitlines()
    )
    text = (
        "Parameters: {Subnet: {Type: String, Default: subnet-0123456789abcdef1}}\nResources:\n  Cluster:\n"
        "    Type: Custom::PclusterCluster\n    Properties:\n      ClusterConfiguration:\n        Fn::Sub: |\n" + inline
    )
    assert settings(text) == settings(PLAIN)
    with pytest.raises(SourceError, match=r"ours.yaml:15: HeadNode.Sssh"):
        take(text.replace("  Ssh:", "  Sssh:"))


def test_without_its_subnets_the_deployment_makes_a_network() -> None:
    known = {"region": "us-east-2", "zone_id": "use2-az1"}
    text = PLAIN.replace("subnet-0123456789abcdef0", "${HEAD}").replace("subnet-0123456789abcdef1", "<compute>")
    result = take(text, known, new_network=True)
    assert result.questions == []
    assert "network" not in yaml.safe_load(result.text)
    told = {without_indices(each.path) for each in result.changes}
    assert {"HeadNode.Networking.SubnetId", "Scheduling.SlurmQueues.Networking.SubnetIds"} <= told
