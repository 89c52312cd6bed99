"""A change of the settings, carried through synth, before ParallelCluster's update check: the fleet runs, nothing stops.

References of the changed template are taken to stand for what they stood for before.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal.cluster import as_strings
from rehearsal.parallelcluster import ParallelCluster, Update
from rehearsal.synthesis import synthesize
from rehearsal.templates import Assembly
from scripts.validate import CONFIG

pytestmark = pytest.mark.validation

Settings = dict[str, Any]
Edit = Callable[[Settings], object]
Check = Callable[[Edit], Update]


def queues(settings: Settings) -> list[Settings]:
    found: list[Settings] = settings["cluster"]["queues"]
    return found


def configuration(assembly: Assembly) -> Settings:
    """Return the ClusterConfiguration of the templates, references as they stand there."""
    resources = assembly.stacks["trn1-16-cluster"].resources.values()
    [found] = [each["Properties"] for each in resources if each["Type"] == "Custom::PclusterCluster"]
    template: Settings = found["ClusterConfiguration"]
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


@pytest.fixture
def check(deployment: Callable[[str], Any], parallelcluster: ParallelCluster, tmp_path: Path) -> Check:
    """Return the answer to an edit of config/trn1-16.yaml while the fleet runs."""
    settings = yaml.safe_load((CONFIG / "trn1-16.yaml").read_text(encoding="utf-8"))
    old = deployment("trn1-16").request.configuration
    known = references(configuration(deployment("trn1-16").assembly), old)
    path = tmp_path / "changed.yaml"

    def checked(edit: Edit) -> Update:
        edit(settings)
        path.write_text(yaml.safe_dump(settings), encoding="utf-8")
        new = resolved(configuration(synthesize(str(path.with_suffix("")), tmp_path / "cdk.out")), known)
        return parallelcluster.check_update(as_strings(old), as_strings(new), fleet_running=True)

    return checked


CHANGES: dict[str, tuple[Edit, set[str]]] = {
    "no change": (lambda s: None, set()),
    "more nodes": (
        lambda s: queues(s)[0]["compute_resources"][0].update(max_count=20),
        {"Scheduling.SlurmQueues[trn1].ComputeResources[trn1-32xl].MaxCount"},
    ),
    "another queue": (lambda s: queues(s).append({**queues(s)[0], "name": "second"}), {"Scheduling.SlurmQueues"}),
    "a tag": (lambda s: s["tags"].update(team="blue"), {"Tags"}),
    "the Neuron SDK": (
        lambda s: s["cluster"].update(neuron_sdk="2.27.1"),
        {
            "HeadNode.CustomActions.OnNodeUpdated.Args",
            "Scheduling.SlurmQueues[trn1].CustomActions.OnNodeConfigured.Args",
        },
    ),
}


@pytest.mark.parametrize(("edit", "changed"), CHANGES.values(), ids=CHANGES)
def test_passes_on_a_running_fleet_and_changes_nothing_else(edit: Edit, changed: set[str], check: Check) -> None:
    update = check(edit)
    assert update.allowed, [change for change in update.changes if not change.allowed]
    assert {change.path for change in update.changes} == changed
