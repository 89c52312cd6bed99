"""Golden templates: a change of the code shows as a change of what AWS gets. Rewrite them with `make snapshots`."""

import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.stacks import pipelines
from tests.stacks.deployments import CONFIGURATIONS, Deployment
from tests.stacks.small_app import read_template

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
PIPELINE = "pipeline"
REWRITE = "If that is meant, run `make snapshots` and review the difference."


def golden(deployment: Deployment) -> dict[str, str]:
    """Return the text of each golden file by its name."""
    return golden_texts(deployment.directory, deployment.templates)


def golden_texts(directory: Path, stacks: Iterable[str]) -> dict[str, str]:
    """Return the text of each stack's golden file by its name. Assets have their names in place of their hashes."""
    texts = {}
    for stack in stacks:
        assets = json.loads((directory / f"{stack}.assets.json").read_text(encoding="utf-8"))["files"]
        text = json.dumps(read_template(directory, stack).body)
        for asset_hash, asset in assets.items():
            text = text.replace(asset_hash, f"<{asset['displayName']}>")
        texts[f"{stack}.json"] = json.dumps(json.loads(text, object_hook=_in_order), indent=2) + "\n"
    return texts


def _in_order(member: dict[str, Any]) -> dict[str, Any]:
    """Sort the resources of a policy's statement: the CDK does so by their texts, hashes of assets included."""
    if isinstance(member.get("Resource"), list):
        member["Resource"].sort(key=json.dumps)
    return member


def compare(folder: Path, expected: Mapping[str, str], *, update: bool) -> None:
    """Compare golden files with what they should be, or write them anew."""
    if update:
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.iterdir():
            stale.unlink()
        for name, text in expected.items():
            (folder / name).write_text(text, encoding="utf-8")
    found = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*")}

    assert found.keys() == expected.keys(), f"{folder} has other files than there are stacks. {REWRITE}"
    for name, text in expected.items():
        changes = unified_diff(found[name].splitlines(), text.splitlines(), "golden", "now", n=2, lineterm="")
        assert found[name] == text, "\n".join([f"{folder / name} is out of date. {REWRITE}", *islice(changes, 80)])


@pytest.mark.parametrize("environment", CONFIGURATIONS)
def test_templates_are_as_their_golden_files(
    environment: str, synth: Callable[[str], Deployment], pytestconfig: pytest.Config
) -> None:
    update = bool(pytestconfig.getoption("update_snapshots"))

    compare(SNAPSHOTS / environment, golden(synth(environment)), update=update)


def test_templates_of_the_pipeline_are_as_their_golden_files(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    directory = pipelines.synthesize(pipelines.pipeline(), tmp_path)
    expected = golden_texts(directory, [pipelines.ACCESS_STACK, pipelines.PIPELINE_STACK])

    compare(SNAPSHOTS / PIPELINE, expected, update=bool(pytestconfig.getoption("update_snapshots")))


def test_there_are_golden_files_of_the_deployments_alone(pytestconfig: pytest.Config) -> None:
    superfluous = [path for path in SNAPSHOTS.iterdir() if path.name not in (*CONFIGURATIONS, PIPELINE)]
    if pytestconfig.getoption("update_snapshots"):
        while superfluous:
            shutil.rmtree(superfluous.pop())

    assert superfluous == [], f"There is nothing in config/ of that name. {REWRITE}"


def test_golden_files_hold_no_hash_of_an_asset(deployment: Deployment) -> None:
    for text in golden(deployment).values():
        assert re.search(r"[0-9a-f]{64}", text) is None
