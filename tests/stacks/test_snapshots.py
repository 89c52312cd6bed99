"""Golden templates: a change of the code shows as a change of what AWS gets. Rewrite them with `make snapshots`."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.stacks import pipelines
from tests.stacks.choices import CHOICES, chosen
from tests.stacks.deployments import CONFIGURATIONS, Deployment, deploy
from tests.stacks.golden import SNAPSHOTS, golden_templates, write_golden
from toolchain.golden import read_golden

BASES = {
    **dict.fromkeys(("dev", "reserved", "team", "two-queues", "ultracluster", *CHOICES), "trn1-16"),
    "little": "team",
}
"""Configurations whose golden templates are kept as differences from another's."""
PIPELINE = "pipeline"
REWRITE = "If that is meant, run `make snapshots` and review the difference."


def compare(directory: Path, expected: Mapping[str, Any], config: pytest.Config) -> None:
    """Compare golden templates with what they should be, or write them."""
    if config.getoption("update_snapshots") and (not directory.exists() or read_golden(directory) != expected):
        write_golden(directory, expected, BASES.get(directory.name))
    golden = read_golden(directory)

    assert golden.keys() == expected.keys(), f"{directory} has other templates than there are stacks. {REWRITE}"
    for stack, template in expected.items():
        old, new = (json.dumps(each, indent=2, sort_keys=True).splitlines() for each in (golden[stack], template))
        changes = islice(unified_diff(old, new, "golden", "now", n=2, lineterm=""), 80)
        assert golden[stack] == template, "\n".join([f"{directory}: {stack} is out of date. {REWRITE}", *changes])


@pytest.mark.parametrize("environment", [*CONFIGURATIONS, *CHOICES])
def test_templates_are_as_their_golden_files(
    environment: str, synth: Callable[[str], Deployment], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    deployment = deploy(chosen(environment), tmp_path) if environment in CHOICES else synth(environment)
    templates = golden_templates(deployment.directory, deployment.templates)
    assert re.search(r"[0-9a-f]{64}", json.dumps(templates)) is None, "the hash of an asset changes with its content"
    compare(SNAPSHOTS / environment, templates, pytestconfig)


def test_templates_of_the_pipeline_are_as_their_golden_files(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    directory = pipelines.synthesize(pipelines.pipeline(), tmp_path)
    stacks = [pipelines.ACCESS_STACK, pipelines.PIPELINE_STACK]
    compare(SNAPSHOTS / PIPELINE, golden_templates(directory, stacks), pytestconfig)


def test_there_are_golden_files_of_the_deployments_alone(pytestconfig: pytest.Config) -> None:
    superfluous = [path for path in SNAPSHOTS.iterdir() if path.name not in (*CONFIGURATIONS, *CHOICES, PIPELINE)]
    if pytestconfig.getoption("update_snapshots"):
        while superfluous:
            shutil.rmtree(superfluous.pop())

    assert superfluous == [], f"There is nothing in config/ of that name. {REWRITE}"
