"""What ParallelCluster's provider is asked for, and every trap on the way there."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stacks import cluster_stack
from tests.stacks.deployments import Deployment, Raw, deploy, edited
from tests.stacks.small_app import flat
from ultracluster import node_scripts

Synth = Callable[[str], Deployment]

CLUSTER = "Custom::PclusterCluster"
PROVIDER = "AWS::CloudFormation::Stack"
PLACEMENT_GROUP = "AWS::EC2::PlacementGroup"
POLICY = "AWS::IAM::ManagedPolicy"
PARAMETER = "AWS::SSM::Parameter"
BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-us-west-2"


def with_login_nodes(raw: Raw) -> None:
    raw["cluster"]["login_nodes"] = [{"name": "login", "count": 2}]


@pytest.fixture(scope="module")
def with_logins(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    return deploy(edited("trn1-16", with_login_nodes), tmp_path_factory.mktemp("logins"))


def scalars(value: Any) -> Iterator[object]:
    if isinstance(value, dict) and any(key.startswith("Fn::") for key in value):
        value = flat(value)
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if children is None:
        yield value
    else:
        for child in children:
            yield from scalars(child)


def script_keys(node: dict[str, Any]) -> dict[str, str]:
    """Return the object key of a node's script by event."""
    return {event: key_of(action["Script"]) for event, action in node["CustomActions"].items()}


def key_of(address: Any) -> str:
    """Return the object key of an S3 address in the bucket of assets."""
    bucket, _, key = flat(address).removeprefix("s3://").rpartition("/")
    assert bucket == BUCKET
    return key


def launched(deployment: Deployment, node: dict[str, Any]) -> dict[str, Any]:
    """Return what the parameter of a node's launcher names: script and arguments. Compute nodes have no launcher."""
    [parameter] = [
        item["Properties"]
        for item in deployment.cluster.of_type(PARAMETER).values()
        if item["Properties"]["Name"] == node["CustomActions"]["OnNodeConfigured"]["Args"][0]
    ]
    return dict(json.loads(flat(parameter["Value"])))


def run_with(deployment: Deployment, node: dict[str, Any]) -> list[str]:
    """Return the arguments of run_bundle.sh on a node: bundle, Region, script and the script's facts."""
    if node in deployment.queues:
        return [flat(argument) for argument in node["CustomActions"]["OnNodeConfigured"]["Args"]]
    return list(launched(deployment, node)["arguments"])


def facts_of(deployment: Deployment, node: dict[str, Any]) -> dict[str, str]:
    """Return what a node's script is told."""
    return dict(argument.split("=", 1) for argument in run_with(deployment, node)[3:])


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
    expected = ["type:AsyncTimedUrlValidator", "type:KeyPairValidator"]
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


def test_the_provider_may_do_nothing_more_where_no_secret_is_named(deployment: Deployment) -> None:
    assert "Parameters" not in deployment.cluster.properties(PROVIDER)


def test_the_provider_may_see_the_secrets_that_the_settings_name_as_its_validators_do(tmp_path: Path) -> None:
    password, munge_key = (f"arn:aws:secretsmanager:us-west-2:123456789012:secret:{name}" for name in ("db-a", "mk-b"))

    def name_secrets(raw: Raw) -> None:
        database = {"Uri": "db", "UserName": "u", "PasswordSecretArn": password}
        raw["cluster"]["overrides"] = {
            "Scheduling": {"SlurmSettings": {"Database": database, "MungeKeySecretArn": munge_key}}
        }

    deployment = deploy(edited("trn1-16", name_secrets), tmp_path)
    parameters = deployment.cluster.properties(PROVIDER)["Parameters"]
    policy = deployment.cluster.of_type(POLICY)[parameters["AdditionalIamPolicies"]["Ref"]]

    assert parameters.keys() == {"AdditionalIamPolicies"}
    assert policy["Properties"]["PolicyDocument"]["Statement"] == [
        {"Effect": "Allow", "Action": "secretsmanager:DescribeSecret", "Resource": password},
        {"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": munge_key},
    ]


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
    assert deployment.request["SuppressValidators"] == ["type:AsyncTimedUrlValidator"]


def test_nodes_take_the_second_version_of_instance_metadata_alone(deployment: Deployment) -> None:
    assert deployment.configuration["Imds"] == {"ImdsSupport": "v2.0"}
    assert deployment.configuration["HeadNode"]["Imds"] == {"Secured": True}


def test_nodes_have_only_policies_that_the_provider_may_attach(deployment: Deployment, with_logins: Deployment) -> None:
    for cluster in (deployment, with_logins):
        for node in nodes(cluster):
            [policy] = policies(node)
            assert cluster.cluster.of_type(POLICY)[policy["Ref"]]["Properties"]["Path"] == "/parallelcluster/"


def test_an_assets_key_of_ones_own_is_for_all_who_read_assets_by_way_of_s3(tmp_path: Path) -> None:
    key = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"

    def encrypt(raw: Raw) -> None:
        with_login_nodes(raw)
        raw["bootstrap"] = {"kms_key_arn": key}

    policies = deploy(edited("trn1-16", encrypt), tmp_path).cluster.of_type(POLICY).values()

    via_s3 = {"StringEquals": {"kms:ViaService": "s3.us-west-2.amazonaws.com"}}
    expected = {"Action": "kms:Decrypt", "Condition": via_s3, "Effect": "Allow", "Resource": key}
    assert [policy["Properties"]["PolicyDocument"]["Statement"][-1] for policy in policies] == [expected] * 3


# --- scripts ---


def readable(deployment: Deployment, node: dict[str, Any]) -> set[str]:
    """Return the object keys that a node may read, all of them in the bucket of assets."""
    access = node["Iam"].get("S3Access", [])
    assert all(entry["BucketName"] == {"Fn::Sub": BUCKET} for entry in access)
    assert len(access) <= 1  # ParallelCluster's update check sees changes that are none in two of one bucket.
    keys = {entry["KeyName"] for entry in access}
    for policy in policies(node):
        document = deployment.cluster.of_type(POLICY)[policy["Ref"]]["Properties"]["PolicyDocument"]
        for statement in document["Statement"]:
            resources = statement["Resource"] if statement["Action"] == "s3:GetObject" else []
            for resource in resources if isinstance(resources, list) else [resources]:
                bucket, _, key = flat(resource).rpartition("/")
                assert bucket == f"arn:aws:s3:::{BUCKET}"
                keys.add(key)
    return keys


def test_each_node_may_read_its_scripts_and_no_others(deployment: Deployment, with_logins: Deployment) -> None:
    for cluster in (deployment, with_logins):
        for node in nodes(cluster):
            keys = {*script_keys(node).values(), key_of(run_with(cluster, node)[0])}
            if node not in cluster.queues:
                keys.add(key_of(launched(cluster, node)["script"]))
            if node is cluster.configuration["HeadNode"]:
                keys.add(key_of(facts_of(cluster, node)["jobs"]))
            assert readable(cluster, node) == keys
            assert len(keys) == (2 if node in cluster.queues else 3 if node in pools(cluster) else 4)


def test_nodes_run_the_files_of_this_project(with_logins: Deployment) -> None:
    launcher, runner = node_scripts._LAUNCHER.read_bytes(), node_scripts._RUNNER.read_bytes()
    head_node, _, pool = nodes(with_logins)

    def content(key: str) -> bytes:
        return (with_logins.directory / f"asset.{key}").read_bytes()

    contents = [{event: content(key) for event, key in script_keys(node).items()} for node in nodes(with_logins)]

    assert contents == [
        {"OnNodeConfigured": launcher, "OnNodeUpdated": runner},
        {"OnNodeConfigured": runner},
        {"OnNodeConfigured": launcher},
    ]
    for node in (head_node, pool):
        assert content(key_of(launched(with_logins, node)["script"])) == runner


def assets(deployment: Deployment) -> list[dict[str, Any]]:
    """Return the assets that a deployment of the cluster's stack uploads."""
    path = deployment.directory / f"{deployment.stack_name('cluster')}.assets.json"
    return list(json.loads(path.read_text(encoding="utf-8"))["files"].values())


def object_keys(asset: dict[str, Any]) -> set[str]:
    return {target["objectKey"] for target in asset["destinations"].values()}


def test_each_script_is_an_asset_that_a_deployment_uploads(deployment: Deployment) -> None:
    uploaded = set().union(*map(object_keys, assets(deployment)))

    for node in nodes(deployment):
        assert set(script_keys(node).values()) <= uploaded


def files(directory: Path) -> dict[str, bytes]:
    paths = [path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def unpacked(deployment: Deployment, key: str) -> dict[str, bytes]:
    """Return what is in the zip file that a deployment uploads under an object key."""
    [asset] = [each for each in assets(deployment) if key in object_keys(each)]
    assert asset["source"]["packaging"] == "zip"
    return files(deployment.directory / asset["source"]["path"])


def test_the_bundle_is_the_directory_of_scripts(deployment: Deployment) -> None:
    [key] = {key_of(run_with(deployment, node)[0]) for node in nodes(deployment)}
    bundle = unpacked(deployment, key)

    assert bundle == files(cluster_stack._NODE_SCRIPTS)
    assert {run_with(deployment, node)[2] for node in nodes(deployment)} <= bundle.keys()


def test_the_head_node_alone_is_told_of_the_jobs(with_logins: Deployment) -> None:
    head_node, *others = nodes(with_logins)
    key = key_of(facts_of(with_logins, head_node)["jobs"])

    assert unpacked(with_logins, key) == files(cluster_stack._JOB_SCRIPTS)
    assert all("jobs" not in facts_of(with_logins, node) for node in others)


def test_scripts_are_told_the_facts_as_text(synth: Synth) -> None:
    deployment = synth("two-queues")
    head_node, *queues = nodes(deployment)
    everywhere = {"cluster": "two-queues", "region": "us-west-2", "sdk": "2.28.1", "mount_dir": "/fsx", "metrics": "on"}

    assert head_node["CustomActions"]["OnNodeConfigured"]["Args"] == [
        "/ultracluster/two-queues/HeadNode",
        "us-west-2",
    ]
    assert run_with(deployment, head_node)[1:3] == ["us-west-2", "head_node.sh"]
    assert facts_of(deployment, head_node) == {
        **everywhere,
        "deployment": "two-queues",
        "jobs": flat(head_node["CustomActions"]["OnNodeUpdated"]["Args"][-1]).removeprefix("jobs="),
        "python": "3.12",
        "pytorch": "2.9.0",
        "torch_xla": "2.9.0",
        "torch_neuronx": "2.9.0.2.12.22436",
        "compiler": "2.23.6484.0",
        "libneuronxla": "2.2.15515.0",
        "user": "ubuntu",
    }
    for queue, name in zip(queues, ("trn1-a", "trn1-b"), strict=True):
        assert run_with(deployment, queue)[1:3] == ["us-west-2", "compute_node.sh"]
        assert facts_of(deployment, queue) == {
            **everywhere,
            "queue": name,
            "driver": "2.26.10.0",
            "runtime": "2.30.51.0",
            "collectives": "2.30.59.0",
            "tools": "2.28.23.0",
            "kernels": "6.14",
            "python": "3.12",
            "scratch_dir": "/scratch",
        }


def test_scripts_are_told_what_they_ask_for_and_nothing_that_they_refuse(with_logins: Deployment) -> None:
    for node in nodes(with_logins):
        script = (cluster_stack._NODE_SCRIPTS / run_with(with_logins, node)[2]).read_text(encoding="utf-8")
        declared = re.search(r'^parse_arguments "(.*?)"[\s\\]+"(.*?)"', script, re.MULTILINE)
        assert declared is not None
        required, optional = (set(names.split()) for names in declared.groups())
        assert required <= facts_of(with_logins, node).keys() <= required | optional


def test_versions_are_those_of_the_release_and_of_the_system(tmp_path: Path) -> None:
    def older(raw: Raw) -> None:
        raw["cluster"].update(os="alinux2023", neuron_sdk="2.27.1", pytorch="2.8", login_nodes=[{"name": "login"}])

    deployment = deploy(edited("trn1-16", older), tmp_path)
    head_node, queue, pool = (facts_of(deployment, node) for node in nodes(deployment))

    assert (head_node["torch_neuronx"], head_node["torch_xla"]) == ("2.8.0.2.11.19912", "2.8.1")
    assert (head_node["user"], head_node["python"]) == ("ec2-user", "3.12")
    assert (queue["driver"], queue["runtime"], queue["kernels"]) == ("2.25.4.0", "2.29.40.0", "6.12")
    assert pool["python"] == "3.12"


def test_nodes_are_not_told_to_send_metrics_where_nobody_wants_them(tmp_path: Path) -> None:
    deployment = deploy(edited("trn1-16", lambda raw: raw["monitoring"].update(node_metrics=False)), tmp_path)

    assert all("metrics" not in facts_of(deployment, node) for node in nodes(deployment))


def test_a_queue_is_told_where_efa_is_off_on_a_type_that_has_it(tmp_path: Path) -> None:
    def mixed(raw: Raw) -> None:
        [queue] = raw["cluster"]["queues"]
        [resource] = queue["compute_resources"]
        queue["compute_resources"] = [
            {**resource, "name": "on", "efa": True},
            {**resource, "name": "off", "efa": False},
            {**resource, "name": "left-out", "efa": None},
            {**resource, "name": "off-too", "efa": False},
            {**resource, "name": "none", "efa": False, "instance_type": "trn1.2xlarge"},
        ]

    deployment = deploy(edited("trn1-16", mixed), tmp_path)
    _, queue = nodes(deployment)

    assert facts_of(deployment, queue)["without_efa"] == "off,off-too"


def test_the_parameter_names_the_script_that_a_new_head_node_runs(deployment: Deployment) -> None:
    head_node = deployment.configuration["HeadNode"]
    updated = head_node["CustomActions"]["OnNodeUpdated"]

    assert deployment.cluster.properties(PARAMETER)["Name"] == f"/ultracluster/{deployment.settings.name}/HeadNode"
    assert launched(deployment, head_node) == {
        "script": flat(updated["Script"]),
        "arguments": [flat(argument) for argument in updated["Args"]],
    }


def test_a_parameter_names_the_script_that_new_login_nodes_run(with_logins: Deployment) -> None:
    head_node, _, pool = nodes(with_logins)
    action = pool["CustomActions"]["OnNodeConfigured"]

    assert action["Args"] == ["/ultracluster/trn1-16/LoginNodes", "us-west-2"]
    assert action["Script"] == head_node["CustomActions"]["OnNodeConfigured"]["Script"]
    assert run_with(with_logins, pool)[2] == "login_node.sh"
    assert facts_of(with_logins, pool) == {"cluster": "trn1-16", "python": "3.12", "mount_dir": "/fsx"}


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

    assert slurm[1:] == [{"MessageTimeout": "60"}]
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
    "ParallelCluster's monitoring": no_alarms,
    "monitoring": lambda raw: raw["monitoring"].update(node_metrics=False, emails=["a@example.com"]),
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
    shutil.copytree(cluster_stack._NODE_SCRIPTS, scripts)
    with (scripts / "compute_node.sh").open("a", encoding="utf-8") as script:
        script.write("# changed\n")
    monkeypatch.setattr(cluster_stack, "_NODE_SCRIPTS", scripts)

    after = deploy(with_logins.settings, tmp_path / "cdk.out")

    assert json.dumps(for_life(after)) == json.dumps(for_life(with_logins))
    for old, new in zip(nodes(with_logins), nodes(after), strict=True):
        assert run_with(after, new)[0] != run_with(with_logins, old)[0]
        assert run_with(after, new)[1:] == run_with(with_logins, old)[1:]
        assert readable(after, new) != readable(with_logins, old)


def test_a_changed_job_runs_the_head_nodes_script_again_and_concerns_no_other_node(
    with_logins: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = tmp_path / "jobs"
    shutil.copytree(cluster_stack._JOB_SCRIPTS, jobs)
    (jobs / "changed.sh").write_text("true\n", encoding="utf-8")
    monkeypatch.setattr(cluster_stack, "_JOB_SCRIPTS", jobs)

    after = deploy(with_logins.settings, tmp_path / "cdk.out")
    (old_head, *old), (new_head, *new) = nodes(with_logins), nodes(after)

    assert json.dumps(for_life(after)) == json.dumps(for_life(with_logins))
    assert json.dumps(new) == json.dumps(old)
    assert new_head["CustomActions"]["OnNodeUpdated"] != old_head["CustomActions"]["OnNodeUpdated"]
    assert launched(after, new_head) != launched(with_logins, old_head)
