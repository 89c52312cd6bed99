"""A change of the settings, through synth and ParallelCluster's update check: the fleet runs and nothing stops it.

References of the changed template are taken to stand for what they stood for before.
"""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import load
from scripts.options import CONFIG
from tests.stacks.deployments import deploy
from toolchain.assembly import Assembly
from toolchain.cluster import CLUSTER_TYPE, as_strings
from toolchain.parallelcluster import ParallelCluster, Update

pytestmark = [pytest.mark.slow, pytest.mark.validation]

Settings = dict[str, Any]


def raw_settings() -> Settings:
    settings: Settings = yaml.safe_load((CONFIG / "trn1-16.yaml").read_text(encoding="utf-8"))
    return settings


def configuration(assembly: Assembly) -> Settings:
    """Return the ClusterConfiguration of the templates, references as they stand there."""
    resources = [each for stack in assembly.stacks.values() for each in stack.resources.values()]
    [properties] = [each["Properties"] for each in resources if each["Type"] == CLUSTER_TYPE]
    template: Settings = properties["ClusterConfiguration"]
    return template


def references(template: Any, resolved: Any) -> dict[str, Any]:
    """Return what each reference of a template was resolved to."""
    if isinstance(template, dict) and isinstance(resolved, dict) and template.keys() == resolved.keys():
        pairs = [(template[key], resolved[key]) for key in template]
    elif isinstance(template, list) and isinstance(resolved, list):
        pairs = list(zip(template, resolved, strict=True))
    else:
        return {} if template == resolved else {json.dumps(template): resolved}
    return {name: value for pair in pairs for name, value in references(*pair).items()}


def resolved(template: Any, known: dict[str, Any]) -> Any:
    if json.dumps(template) in known:
        return known[json.dumps(template)]
    if isinstance(template, dict):
        assert not any(key == "Ref" or key.startswith("Fn::") for key in template), f"a new reference: {template}"
        return {key: resolved(value, known) for key, value in template.items()}
    return [resolved(value, known) for value in template] if isinstance(template, list) else template


def whatever_a_running_fleet_takes(settings: Settings) -> None:
    """Change nodes, a queue, a tag, the Neuron SDK, and by the mount point the scripts' arguments on all nodes."""
    [queue] = settings["cluster"]["queues"]
    settings["cluster"]["queues"].append({**copy.deepcopy(queue), "name": "second"})
    queue["compute_resources"][0].update(max_count=20)
    settings["tags"].update(team="blue")
    settings["cluster"].update(neuron_sdk="2.27.1", pytorch="2.8")
    settings["storage"]["file_system"]["mount_dir"] = "/lustre"


def test_passes_while_fleet_and_login_nodes_run_and_changes_nothing_else(
    deployment: Callable[[str], Any], parallelcluster: ParallelCluster, tmp_path: Path
) -> None:
    settings = raw_settings()
    settings["name"] = "logins"
    settings["cluster"]["login_nodes"] = [{"name": "login", "count": 2}]
    path = tmp_path / "logins.yaml"
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    before = deployment(str(path.with_suffix("")))
    old = before.request.configuration
    assert old["LoginNodes"]["Pools"][0]["CustomActions"]

    whatever_a_running_fleet_takes(settings)
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    assembly = Assembly(deploy(load(path), tmp_path / "cdk.out").directory)
    new = resolved(configuration(assembly), references(configuration(before.assembly), old))
    update = parallelcluster.check_update(as_strings(old), as_strings(new), login_nodes_running=True)

    assert update.allowed, [change for change in update.changes if not change.allowed]
    assert {change.path for change in update.changes} == {
        "HeadNode.CustomActions.OnNodeUpdated.Args",
        "Scheduling.SlurmQueues",
        "Scheduling.SlurmQueues[trn1].ComputeResources[trn1-32xl].MaxCount",
        "Scheduling.SlurmQueues[trn1].CustomActions.OnNodeConfigured.Args",
        "SharedStorage",  # under another name
        "Tags",
    }


def test_another_bundle_of_scripts_drains_the_queues_and_changes_nothing_else_but_the_head_nodes_update(
    deployment: Callable[[str], Any], parallelcluster: ParallelCluster
) -> None:
    """Nodes are replaced for it: under the strategy that does not drain them, the fleet has to be stopped."""

    def update(strategy: str) -> Update:
        old = json.dumps(as_strings(deployment("two-queues").request.configuration)).replace("DRAIN", strategy)
        [bundle] = set(re.findall(r"[0-9a-f]{64}\.zip(?=\", \"us-west-2\", \"compute_node)", old))
        return parallelcluster.check_update(json.loads(old), json.loads(old.replace(bundle, "another.zip")))

    queues = {f"Scheduling.SlurmQueues[{name}].CustomActions.OnNodeConfigured.Args" for name in ("trn1-a", "trn1-b")}
    drained, refused = update("DRAIN"), update("COMPUTE_FLEET_STOP")

    assert drained.allowed
    assert {change.path for change in drained.changes} == queues | {"HeadNode.CustomActions.OnNodeUpdated.Args"}
    assert {change.path for change in refused.changes if not change.allowed} == queues
