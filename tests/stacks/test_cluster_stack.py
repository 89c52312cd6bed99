"""What ParallelCluster's provider is asked for, what nodes may read, and what lasts for a cluster's life."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stacks import cluster_stack
from tests.stacks.deployments import Deployment, Raw, deploy, edited
from tests.stacks.small_app import flat

Synth = Callable[[str], Deployment]

CLUSTER = "Custom::PclusterCluster"
PROVIDER = "AWS::CloudFormation::Stack"
POLICY = "AWS::IAM::ManagedPolicy"
PARAMETER = "AWS::SSM::Parameter"
BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-us-west-2"


def with_login_nodes(raw: Raw) -> None:
    raw["cluster"]["login_nodes"] = [{"name": "login", "count": 2}]


@pytest.fixture(scope="module")
def with_logins(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    return deploy(edited("trn1-16", with_login_nodes), tmp_path_factory.mktemp("logins"))


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
    """Return the arguments of run_bundle.sh on a node: bundle, Region, script and the script's arguments."""
    if node in deployment.queues:
        return [flat(argument) for argument in node["CustomActions"]["OnNodeConfigured"]["Args"]]
    return list(launched(deployment, node)["arguments"])


def arguments_of(deployment: Deployment, node: dict[str, Any]) -> dict[str, str]:
    """Return the arguments of a node's script."""
    return dict(argument.split("=", 1) for argument in run_with(deployment, node)[3:])


def nodes(deployment: Deployment) -> list[dict[str, Any]]:
    return [deployment.configuration["HeadNode"], *deployment.queues, *pools(deployment)]


def pools(deployment: Deployment) -> list[dict[str, Any]]:
    return list(deployment.configuration.get("LoginNodes", {}).get("Pools", []))


# --- the custom resource and its provider ---


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


# --- scripts ---


def assets(deployment: Deployment) -> list[dict[str, Any]]:
    """Return the assets that a deployment of the cluster's stack uploads."""
    path = deployment.directory / f"{deployment.stack_name('cluster')}.assets.json"
    return list(json.loads(path.read_text(encoding="utf-8"))["files"].values())


def object_keys(asset: dict[str, Any]) -> set[str]:
    return {target["objectKey"] for target in asset["destinations"].values()}


def files(directory: Path) -> dict[str, bytes]:
    paths = [path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def unpacked(deployment: Deployment, key: str) -> dict[str, bytes]:
    """Return what is in the zip file that a deployment uploads under an object key."""
    [asset] = [each for each in assets(deployment) if key in object_keys(each)]
    assert asset["source"]["packaging"] == "zip"
    return files(deployment.directory / asset["source"]["path"])


def test_the_bundle_is_the_directory_of_scripts(with_logins: Deployment) -> None:
    [key] = {key_of(run_with(with_logins, node)[0]) for node in nodes(with_logins)}

    assert unpacked(with_logins, key) == files(cluster_stack._NODE_SCRIPTS)


def test_only_the_head_node_has_the_training_programs(with_logins: Deployment) -> None:
    head_node, *others = nodes(with_logins)
    key = key_of(arguments_of(with_logins, head_node)["jobs"])

    assert unpacked(with_logins, key) == files(cluster_stack._JOB_SCRIPTS)
    assert all("jobs" not in arguments_of(with_logins, node) for node in others)


def test_scripts_get_the_arguments_that_they_require_and_none_that_they_refuse(with_logins: Deployment) -> None:
    for node in nodes(with_logins):
        script = (cluster_stack._NODE_SCRIPTS / run_with(with_logins, node)[2]).read_text(encoding="utf-8")
        declared = re.search(r'^parse_arguments "(.*?)"[\s\\]+"(.*?)"', script, re.MULTILINE)
        assert declared is not None
        required, optional = (set(names.split()) for names in declared.groups())
        assert required <= arguments_of(with_logins, node).keys() <= required | optional


# --- the head node is for life ---


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
