"""What ParallelCluster's provider is asked for, what nodes may read, and what lasts for a cluster's life."""

import json
import re
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stacks import cluster_stack
from tests.stacks.choices import use_arm
from tests.stacks.deployments import Deployment, Raw, deploy, edited
from tests.stacks.small_app import flat
from ultracluster import neuron_software

CLUSTER = "Custom::PclusterCluster"
PROVIDER = "AWS::CloudFormation::Stack"
POLICY = "AWS::IAM::ManagedPolicy"
PARAMETER = "AWS::SSM::Parameter"


def with_login_nodes(raw: Raw) -> None:
    raw["cluster"]["login_nodes"] = [{"name": "login", "count": 2}]


@pytest.fixture(scope="module")
def with_logins(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    return deploy(edited("trn1-16", with_login_nodes), tmp_path_factory.mktemp("logins"))


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


def test_the_cluster_comes_after_everything_that_it_needs_and_goes_before(deployment: Deployment) -> None:
    resources = deployment.cluster.body["Resources"]

    def needs(name: str) -> set[str]:
        item = resources[name]
        direct = {other for other in resources if f'"{other}"' in json.dumps(item["Properties"])} - {name}
        direct |= set(item.get("DependsOn", []))
        return direct | {further for other in direct for further in needs(other)}

    [name] = deployment.cluster.of_type(CLUSTER)

    assert needs(name) == resources.keys() - {name}
    assert {resources[other]["Type"] for other in needs(name)} >= {PROVIDER, POLICY, PARAMETER}


def files(directory: Path) -> dict[str, bytes]:
    paths = [path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def uploaded(deployment: Deployment, address: Any) -> dict[str, bytes]:
    """Return what is in the zip file that a deployment uploads to an S3 address."""
    key = flat(address).rpartition("/")[2]
    path = deployment.directory / f"{deployment.stack_name('cluster')}.assets.json"
    [source] = [
        asset["source"]
        for asset in json.loads(path.read_text(encoding="utf-8"))["files"].values()
        if key in [target["objectKey"] for target in asset["destinations"].values()]
    ]
    assert source["packaging"] == "zip"
    return files(deployment.directory / source["path"])


def test_nodes_have_the_scripts_and_the_head_node_alone_the_training_programs(with_logins: Deployment) -> None:
    head_node, *others = nodes(with_logins)

    for node in nodes(with_logins):
        assert uploaded(with_logins, run_with(with_logins, node)[0]) == files(neuron_software.SCRIPTS)
    assert uploaded(with_logins, arguments_of(with_logins, head_node)["jobs"]) == files(cluster_stack._JOB_SCRIPTS)
    assert all("jobs" not in arguments_of(with_logins, node) for node in others)


def test_without_a_neuron_sdk_nodes_have_all_that_needs_none(tmp_path: Path) -> None:
    arm = deploy(edited("trn1-16", use_arm), tmp_path)
    head_node, *others = (arguments_of(arm, node).keys() for node in nodes(arm))

    assert {"team", "budget", "metrics", "deployment"} <= head_node
    assert not {"jobs", "sdk", "python"} & {name for each in (head_node, *others) for name in each}


def test_scripts_get_the_arguments_that_they_require_and_none_that_they_refuse(with_logins: Deployment) -> None:
    for node in nodes(with_logins):
        script = (neuron_software.SCRIPTS / run_with(with_logins, node)[2]).read_text(encoding="utf-8")
        for name, text in re.findall(r'^readonly (\w+)="(.*)"$', script, re.MULTILINE):
            script = script.replace(f"${name}", text)
        declared = re.search(r'^parse_arguments "(.*?)"[\s\\]+"(.*?)"', script, re.MULTILINE)
        assert declared is not None
        required, optional = (set(names.split()) for names in declared.groups())
        assert required <= arguments_of(with_logins, node).keys() <= required | optional


def for_life(deployment: Deployment) -> list[Any]:
    """Return what ParallelCluster never changes of scripts while there are such nodes."""
    on_configured = deployment.configuration["HeadNode"]["CustomActions"]["OnNodeConfigured"]
    return [on_configured, *(pool["CustomActions"] for pool in pools(deployment))]


def deploy_with_another_file(
    deployment: Deployment, module: ModuleType, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    """Return the same deployment with one more file in a folder of scripts, a constant of a module."""
    copy = tmp_path / folder
    shutil.copytree(getattr(module, folder), copy)
    (copy / "more.sh").write_text("true\n", encoding="utf-8")
    monkeypatch.setattr(module, folder, copy)
    return deploy(deployment.settings, tmp_path / "cdk.out")


def test_a_change_of_scripts_leaves_what_is_for_life(
    with_logins: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = deploy_with_another_file(with_logins, neuron_software, "SCRIPTS", tmp_path, monkeypatch)

    assert for_life(after) == for_life(with_logins)
    for old, new in zip(nodes(with_logins), nodes(after), strict=True):
        assert run_with(after, new)[0] != run_with(with_logins, old)[0]
        assert run_with(after, new)[1:] == run_with(with_logins, old)[1:]


def test_a_changed_job_runs_the_head_nodes_script_again_and_concerns_no_other_node(
    with_logins: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = deploy_with_another_file(with_logins, cluster_stack, "_JOB_SCRIPTS", tmp_path, monkeypatch)
    (old_head, *old), (new_head, *new) = nodes(with_logins), nodes(after)

    assert for_life(after) == for_life(with_logins)
    assert new == old
    assert new_head["CustomActions"]["OnNodeUpdated"] != old_head["CustomActions"]["OnNodeUpdated"]
    assert launched(after, new_head) != launched(with_logins, old_head)
