"""What is resolved agrees with the pins, of which Dependabot proposes newer ones."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from tests.workflows.workflows import GITHUB, ROOT

RESOLVED = {"dev": "constraints.txt", **{name: f"constraints-{name}.txt" for name in ("docs", "machines", "pcluster")}}
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)


def pins(path: str) -> dict[str, str]:
    """Return the pins of a file, and of those that it includes."""
    text = (ROOT / path).read_text(encoding="utf-8")
    included = [pins(name) for name in re.findall(r"^-r (\S+)", text, re.MULTILINE)]
    own = {re.sub("[._-]+", "-", name).lower(): version for name, version in PIN.findall(text)}
    return {name: version for each in (*included, own) for name, version in each.items()}


@pytest.mark.parametrize("name", RESOLVED)
def test_constraints_have_every_pin(name: str) -> None:
    pinned, resolved = pins(f"requirements-{name}.txt"), pins(RESOLVED[name])
    assert pinned
    assert pinned.items() - resolved.items() == set(), "make update-deps"


def test_the_lock_of_npm_has_every_pin() -> None:
    package = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    packages = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    pinned = package["dependencies"] | package["devDependencies"]
    assert {name: packages[f"node_modules/{name}"]["version"] for name in pinned} == pinned, "make update-deps"


def test_newer_versions_are_proposed_of_all_that_is_pinned_but_what_is_resolved_or_follows_the_nodes() -> None:
    document = yaml.safe_load((GITHUB / "dependabot.yml").read_text(encoding="utf-8"))
    updates: dict[str, Any] = {each["package-ecosystem"]: each for each in document["updates"]}
    assert set(updates) == {"github-actions", "pip", "npm"}
    assert {each["schedule"]["interval"] for each in updates.values()} == {"weekly"}
    assert all("*" in list(each["groups"].values())[-1]["patterns"] for each in updates.values())
    excluded = {path.name for pattern in updates["pip"]["exclude-paths"] for path in ROOT.glob(pattern)}
    assert {path.name for path in ROOT.glob("[!.]*.txt")} - excluded == {
        "requirements.txt",
        *(f"requirements-{name}.txt" for name in RESOLVED),
    }
