"""What ParallelCluster's provider is asked for, and every trap on the way there."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stacks import cluster_stack
from tests.stacks.deployments import Deployment, Raw, deploy, edited
from tests.stacks.small_app import flat
from ultracluster import parallel_cluster

Synth = Callable[[str], Deployment]

CLUSTER = "Custom::PclusterCluster"
PROVIDER = "AWS::CloudFormation::Stack"
PLACEMENT_GROUP = "AWS::EC2::PlacementGroup"
POLICY = "AWS::IAM::ManagedPolicy"
PARAMETER = "AWS::SSM::Parameter"
BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-us-west-2"
SESSION_MANAGER = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"


def with_login_nodes(raw: Raw) -> None:
    raw["cluster"]["login_nodes"] = [{"name": "login", "count": 2}]


@pytest.fixture(scope="module")
def with_logins(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    return deploy(edited("trn1-16", with_login_nodes), tmp_path_factory.mktemp("logins"))


def scalars(value: Any) -> Iterator[object]:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if children is None:
        yield value
    else:
        for child in children:
            yield from scalars(child)


def script_keys(node: dict[str, Any]) -> dict[str, str]:
    """Return the object key of a node's script by event."""
    uris = {event: action["Script"]["Fn::Sub"] for event, action in node["CustomActions"].items()}
    assert all(uri.startswith(f"s3://{BUCKET}/") for uri in uris.values())
    return {event: uri.rpartition("/")[2] for event, uri in uris.items()}


def launched(deployment: Deployment, node: dict[str, Any]) -> dict[str, Any]:
    """Return what the parameter of a node's launcher names: script and arguments. Compute nodes have no launcher."""
    [parameter] = [
        item["Properties"]
        for item in deployment.cluster.of_type(PARAMETER).values()
        if item["Properties"]["Name"] == node["CustomActions"]["OnNodeConfigured"]["Args"][0]
    ]
    return dict(json.loads(flat(parameter["Value"])))


def key_of(deployment: Deployment, node: dict[str, Any]) -> str:
    """Return the object key of the script that a node's launcher runs."""
    return str(launched(deployment, node)["script"]).removeprefix(f"s3://{BUCKET}/")


def policies(node: dict[str, Any]) -> list[Any]:
    return [entry["Policy"] for entry in node["Iam"]["AdditionalIamPolicies"]]


def nodes(deployment: Deployment) -> list[dict[str, Any]]:
    return [deployment.configuration["HeadNode"], *deployment.queues, *pools(deployment)]


def pools(deployment: Deployment) -> list[dict[str, Any]]:
    return list(deployment.configuration.get("LoginNodes", {}).get("Pools", []))


# --- the custom resource and its provider ---


def test_only_what_works_on_creation_and_on_update_is_asked_for(deployment: Deployment) -> None:
    assert deployment.request.keys() == {
        *("ServiceToken", "ClusterName", "ClusterConfiguration", "SuppressValidators", "ValidationFailureLevel"),
    }


def test_warnings_stop_a_deployment_but_for_those_that_are_meant(deployment: Deployment) -> None:
    expected = ["type:KeyPairValidator"]
    if deployment.settings.name == "reserved":
        expected.append("type:EfaPlacementGroupValidator")

    assert deployment.request["ValidationFailureLevel"] == "WARNING"
    assert deployment.request["SuppressValidators"] == expected


def test_the_cluster_has_a_name_unlike_its_stacks(deployment: Deployment) -> None:
    assert deployment.request["ClusterName"] == deployment.settings.name
    assert deployment.request["ClusterName"] not in deployment.templates


def test_the_cluster_goes_with_its_stack(deployment: Deployment) -> None:
    _, cluster = deployment.cluster.one(CLUSTER)

    assert (cluster["DeletionPolicy"], cluster["UpdateReplacePolicy"]) == ("Delete", "Delete")


def test_each_cluster_has_one_provider_of_its_version_and_region(deployment: Deployment) -> None:
    name, provider = deployment.cluster.one(PROVIDER)
    version = deployment.settings.cluster.parallelcluster_version

    assert flat(provider["Properties"]["TemplateURL"]) == (
        "https://us-west-2-aws-parallelcluster.s3.us-west-2.AWS::URLSuffix"
        f"/parallelcluster/{version}/templates/custom_resource/cluster.yaml"
    )
    assert deployment.request["ServiceToken"] == {"Fn::GetAtt": [name, "Outputs.ServiceToken"]}


def test_the_provider_follows_the_region(tmp_path: Path) -> None:
    def move(raw: Raw) -> None:
        raw.update(region="us-east-2", zone_id="use2-az3")

    deployment = deploy(edited("trn1-16", move), tmp_path)

    url = flat(deployment.cluster.properties(PROVIDER)["TemplateURL"])
    assert url.startswith("https://us-east-2-aws-parallelcluster.s3.us-east-2.")
    assert deployment.configuration["Region"] == "us-east-2"


def test_the_provider_may_read_the_scripts_and_nothing_else_of_ours(deployment: Deployment) -> None:
    parameters = deployment.cluster.properties(PROVIDER)["Parameters"]
    policy = deployment.cluster.of_type(POLICY)[parameters["AdditionalIamPolicies"]["Ref"]]

    [statement] = policy["Properties"]["PolicyDocument"]["Statement"]

    assert parameters.keys() == {"AdditionalIamPolicies"}
    assert (statement["Effect"], statement["Action"]) == ("Allow", "s3:GetObject")
    assert flat(statement["Resource"]) == f"arn:aws:s3:::{BUCKET}/*.sh"


def test_the_cluster_comes_after_everything_that_it_needs_and_goes_before(deployment: Deployment) -> None:
    resources = deployment.cluster.body["Resources"]

    def needs(name: str) -> set[str]:
        item = resources[name]
        direct = {found for found in resources if f'"{found}"' in json.dumps(item["Properties"])} - {name}
        direct |= set(item.get("DependsOn", []))
        return direct | {further for found in direct for further in needs(found)}

    name, _ = deployment.cluster.one(CLUSTER)

    assert needs(name) == resources.keys() - {name}
    assert {resources[found]["Type"] for found in needs(name)} >= {PROVIDER, POLICY, PARAMETER}


# --- access ---


def test_port_22_is_closed_on_every_node_that_has_a_rule_for_it(
    deployment: Deployment, with_logins: Deployment
) -> None:
    closed = {"AllowedIps": "127.0.0.1/32"}
    head_node, _, pool = nodes(with_logins)

    assert deployment.configuration["HeadNode"]["Ssh"] == closed
    assert (head_node["Ssh"], pool["Ssh"]) == (closed, closed)


def test_port_22_is_opened_to_the_block_that_is_given(tmp_path: Path) -> None:
    def open_to_office(raw: Raw) -> None:
        raw["cluster"]["head_node"].update(ssh_key_name="office", ssh_cidr="203.0.113.0/24")

    deployment = deploy(edited("trn1-16", open_to_office), tmp_path)

    assert deployment.configuration["HeadNode"]["Ssh"] == {"KeyName": "office", "AllowedIps": "203.0.113.0/24"}
    assert deployment.request["SuppressValidators"] == []


def test_nodes_take_the_second_version_of_instance_metadata_alone(deployment: Deployment) -> None:
    assert deployment.configuration["Imds"] == {"ImdsSupport": "v2.0"}
    assert deployment.configuration["HeadNode"]["Imds"] == {"Secured": True}


def test_nodes_have_only_policies_that_the_provider_may_attach(deployment: Deployment, with_logins: Deployment) -> None:
    for cluster in (deployment, with_logins):
        own = cluster.cluster.of_type(POLICY)
        for node in nodes(cluster):
            aws_policy, *further = policies(node)
            assert aws_policy == SESSION_MANAGER
            for policy in further:
                properties = own[policy["Ref"]]["Properties"]
                assert properties["Path"] == "/parallelcluster/"
                assert [statement["Action"] for statement in properties["PolicyDocument"]["Statement"]] == [
                    "s3:GetObject"
                ]


# --- scripts ---


def readable(deployment: Deployment, node: dict[str, Any]) -> set[str]:
    """Return the object keys that a node may read, all of them in the bucket of assets."""
    access = node["Iam"].get("S3Access", [])
    assert all(entry["BucketName"] == {"Fn::Sub": BUCKET} for entry in access)
    assert len(access) <= 1  # ParallelCluster's update check sees changes that are none in two of one bucket.
    keys = {entry["KeyName"] for entry in access}
    for policy in policies(node)[1:]:
        document = deployment.cluster.of_type(POLICY)[policy["Ref"]]["Properties"]["PolicyDocument"]
        for statement in document["Statement"]:
            resources = statement["Resource"]
            for resource in resources if isinstance(resources, list) else [resources]:
                bucket, _, key = flat(resource).rpartition("/")
                assert bucket == f"arn:aws:s3:::{BUCKET}"
                keys.add(key)
    return keys


def test_each_node_may_read_its_scripts_and_no_others(deployment: Deployment, with_logins: Deployment) -> None:
    for cluster in (deployment, with_logins):
        for node in nodes(cluster):
            keys = set(script_keys(node).values())
            if node not in cluster.queues:
                keys.add(key_of(cluster, node))
            assert keys
            assert readable(cluster, node) == keys


def test_nodes_run_the_files_of_this_project(with_logins: Deployment) -> None:
    scripts = cluster_stack._NODE_SCRIPTS
    launcher = parallel_cluster._LAUNCHER.read_bytes()
    head_node, _, pool = nodes(with_logins)

    def content(key: str) -> bytes:
        return (with_logins.directory / f"asset.{key}").read_bytes()

    contents = [{event: content(key) for event, key in script_keys(node).items()} for node in nodes(with_logins)]

    assert contents == [
        {"OnNodeConfigured": launcher, "OnNodeUpdated": (scripts / "head_node.sh").read_bytes()},
        {"OnNodeConfigured": (scripts / "compute_node.sh").read_bytes()},
        {"OnNodeConfigured": launcher},
    ]
    assert content(key_of(with_logins, head_node)) == (scripts / "head_node.sh").read_bytes()
    assert content(key_of(with_logins, pool)) == (scripts / "login_node.sh").read_bytes()


def test_each_script_is_an_asset_that_a_deployment_uploads(deployment: Deployment) -> None:
    stack = deployment.stack_name("cluster")
    assets = json.loads((deployment.directory / f"{stack}.assets.json").read_text(encoding="utf-8"))["files"].values()
    uploaded = {target["objectKey"] for asset in assets for target in asset["destinations"].values()}

    for node in nodes(deployment):
        assert set(script_keys(node).values()) <= uploaded


def test_scripts_are_told_the_facts_as_text(synth: Synth) -> None:
    facts = ["neuron_sdk=2.28.1", "pytorch=2.9", "mount_dir=/fsx"]
    deployment = synth("two-queues")
    head_node, *queues = nodes(deployment)

    assert head_node["CustomActions"]["OnNodeConfigured"]["Args"] == [
        "/ultracluster/two-queues/HeadNode",
        "us-west-2",
    ]
    assert head_node["CustomActions"]["OnNodeUpdated"]["Args"] == facts
    assert [queue["CustomActions"]["OnNodeConfigured"]["Args"] for queue in queues] == [
        [f"queue={name}", *facts, "scratch_dir=/scratch"] for name in ("trn1-a", "trn1-b")
    ]


def test_the_parameter_names_the_script_that_a_new_head_node_runs(deployment: Deployment) -> None:
    head_node = deployment.configuration["HeadNode"]
    updated = head_node["CustomActions"]["OnNodeUpdated"]

    assert deployment.cluster.properties(PARAMETER)["Name"] == f"/ultracluster/{deployment.settings.name}/HeadNode"
    assert launched(deployment, head_node) == {"script": flat(updated["Script"]), "arguments": updated["Args"]}


def test_a_parameter_names_the_script_that_new_login_nodes_run(with_logins: Deployment) -> None:
    head_node, _, pool = nodes(with_logins)
    action = pool["CustomActions"]["OnNodeConfigured"]

    assert action["Args"] == ["/ultracluster/trn1-16/LoginNodes", "us-west-2"]
    assert action["Script"] == head_node["CustomActions"]["OnNodeConfigured"]["Script"]
    assert launched(with_logins, pool)["arguments"] == ["mount_dir=/fsx"]


# --- places ---


def test_head_nodes_stand_in_the_public_subnet_and_all_others_in_the_private_one(with_logins: Deployment) -> None:
    head_node, queue, pool = nodes(with_logins)

    assert "PublicSubnet" in flat(head_node["Networking"]["SubnetId"])
    for node in (queue, pool):
        [subnet] = node["Networking"]["SubnetIds"]
        assert "PrivateSubnet" in flat(subnet)


def test_every_node_carries_the_security_group_of_the_file_system(with_logins: Deployment) -> None:
    for node in nodes(with_logins):
        [group] = node["Networking"]["AdditionalSecurityGroups"]
        assert flat(group).startswith("trn1-16-storage|")
        assert "LustreSecurityGroup" in flat(group)


@pytest.mark.parametrize("environment", ["dev", "trn1-16", "two-queues", "ultracluster"])
def test_all_queues_share_a_placement_group_of_ours(environment: str, synth: Synth) -> None:
    deployment = synth(environment)
    name, group = deployment.cluster.one(PLACEMENT_GROUP)

    assert group["Properties"] == {"Strategy": "cluster"}
    for queue in deployment.queues:
        assert queue["Networking"]["PlacementGroup"] == {"Name": {"Fn::GetAtt": [name, "GroupName"]}}


def test_reserved_nodes_are_in_no_placement_group_and_a_capacity_block_says_nothing_of_one(synth: Synth) -> None:
    deployment = synth("reserved")
    reservation, block = deployment.queues

    assert deployment.cluster.of_type(PLACEMENT_GROUP) == {}
    assert reservation["Networking"]["PlacementGroup"] == {"Enabled": False}
    assert "PlacementGroup" not in block["Networking"]


# --- the file system ---


def test_nodes_mount_the_file_system_of_the_storage_stack(deployment: Deployment) -> None:
    [storage] = deployment.configuration["SharedStorage"]

    assert storage["MountDir"] == "/fsx"
    assert flat(storage["FsxLustreSettings"]["FileSystemId"]).startswith(f"{deployment.stack_name('storage')}|")


@pytest.mark.parametrize(
    ("setting", "value", "another"),
    [
        ("throughput_mbps_per_tib", 500, True),
        ("kms_key_arn", "arn:aws:kms:us-west-2:123456789012:key/01234567-89ab-cdef-0123-456789abcdef", True),
        ("mount_dir", "/lustre", True),
        ("capacity_gib", 9600, False),
        ("backup_retention_days", 0, False),
    ],
)
def test_another_file_system_or_mount_point_has_another_name(
    setting: str, value: object, another: bool, synth: Synth, tmp_path: Path
) -> None:
    after = deploy(edited("trn1-16", lambda raw: raw["storage"]["file_system"].update({setting: value})), tmp_path)

    names = {item.configuration["SharedStorage"][0]["Name"] for item in (synth("trn1-16"), after)}

    assert len(names) == (2 if another else 1)


# --- what CloudFormation does to values ---


def test_free_mappings_hold_strings_because_parallelcluster_does_not_read_them_back(tmp_path: Path) -> None:
    def set_slurm(raw: Raw) -> None:
        raw["cluster"]["slurm"]["custom_settings"] = {"MessageTimeout": "60"}
        raw["cluster"]["queues"][0]["custom_slurm_settings"] = {"GraceTime": "30"}

    deployment = deploy(edited("trn1-16", set_slurm), tmp_path)
    slurm = deployment.configuration["Scheduling"]["SlurmSettings"]["CustomSlurmSettings"]
    [queue] = deployment.queues

    assert slurm == [{"MessageTimeout": "60"}]
    assert queue["CustomSlurmSettings"] == {"GraceTime": "30"}


def test_nothing_in_the_configuration_is_empty_or_a_number_that_loses_digits(deployment: Deployment) -> None:
    for value in scalars(deployment.configuration):
        assert value not in (None, "")
        assert isinstance(value, str | int)


# --- the head node is for life ---


def add_queue(raw: Raw) -> None:
    raw["cluster"]["queues"].append({**raw["cluster"]["queues"][0], "name": "second"})


def grow(raw: Raw) -> None:
    raw["cluster"]["queues"][0]["compute_resources"][0].update(min_count=4, max_count=32)


def no_alarms(raw: Raw) -> None:
    raw["cluster"]["monitoring"].update(alarms=False, dashboard=False, log_retention_days=30)


CHANGES: dict[str, Callable[[Raw], object]] = {
    "Neuron SDK": lambda raw: raw["cluster"].update(neuron_sdk="2.27.1"),
    "PyTorch": lambda raw: raw["cluster"].update(pytorch="2.8"),
    "another queue": add_queue,
    "more nodes": grow,
    "more login nodes": lambda raw: raw["cluster"]["login_nodes"][0].update(count=3),
    "tags": lambda raw: raw["tags"].update(team="blue"),
    "file system": lambda raw: raw["storage"]["file_system"].update(throughput_mbps_per_tib=500),
    "mount point": lambda raw: raw["storage"]["file_system"].update(mount_dir="/lustre"),
    "monitoring": no_alarms,
    "SSH source": lambda raw: raw["cluster"]["head_node"].update(ssh_cidr="203.0.113.0/24"),
    "EFA interfaces": lambda raw: raw["cluster"].update(efa_interface_type="efa"),
    "interface endpoints": lambda raw: raw["network"].update(interface_endpoints=["ssm"]),
    "idle time": lambda raw: raw["cluster"]["slurm"].update(idle_minutes=30),
    "protection": lambda raw: raw.update(termination_protection=["cluster"]),
}


def for_life(deployment: Deployment) -> dict[str, Any]:
    """Return what ParallelCluster never changes in a cluster that exists (``update_policy`` in its schema)."""
    configuration = deployment.configuration
    head_node = configuration["HeadNode"]
    return {
        "ClusterName": deployment.request["ClusterName"],
        "ServiceToken": deployment.request["ServiceToken"],
        "TemplateURL": deployment.cluster.properties(PROVIDER)["TemplateURL"],
        **{key: configuration[key] for key in ("Region", "Image", "Imds")},
        "OnNodeConfigured": head_node["CustomActions"]["OnNodeConfigured"],
        "LoginNodes": {pool["Name"]: pool["CustomActions"] for pool in pools(deployment)},
        "SubnetId": head_node["Networking"]["SubnetId"],
        "KeyName": head_node["Ssh"].get("KeyName"),
        **{f"HeadNode.{key}": head_node[key] for key in ("InstanceType", "LocalStorage", "Imds")},
    }


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_settings_leaves_what_is_for_life(change: str, with_logins: Deployment, tmp_path: Path) -> None:
    def edit(raw: Raw) -> None:
        with_login_nodes(raw)
        CHANGES[change](raw)

    after = deploy(edited("trn1-16", edit), tmp_path)

    assert after.settings != with_logins.settings
    assert json.dumps(for_life(after)) == json.dumps(for_life(with_logins))


def test_login_nodes_come_and_go_without_a_change_of_what_is_for_life(synth: Synth, with_logins: Deployment) -> None:
    without, having = for_life(synth("trn1-16")), for_life(with_logins)

    assert (without.pop("LoginNodes"), list(having.pop("LoginNodes"))) == ({}, ["login"])
    assert json.dumps(without) == json.dumps(having)


def test_a_change_of_scripts_leaves_what_is_for_life(
    with_logins: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = tmp_path / "nodes"
    scripts.mkdir()
    for script in cluster_stack._NODE_SCRIPTS.glob("*.sh"):
        (scripts / script.name).write_text(script.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    monkeypatch.setattr(cluster_stack, "_NODE_SCRIPTS", scripts)

    after = deploy(with_logins.settings, tmp_path / "cdk.out")

    assert json.dumps(for_life(after)) == json.dumps(for_life(with_logins))
    for old, new in zip(nodes(with_logins), nodes(after), strict=True):
        if old in pools(with_logins):
            assert key_of(after, new) != key_of(with_logins, old)
        else:
            assert old["CustomActions"] != new["CustomActions"]
