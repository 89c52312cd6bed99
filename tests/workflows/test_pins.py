"""What is resolved agrees with the pins, of which Dependabot proposes newer ones, and has hashes."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.core import environments
from tests.workflows.workflows import GITHUB, ROOT

OF_NODES = ("training", "xla")
"""Environments with the versions of the nodes."""
PROPOSED = {"dev": "constraints.txt", **{name: f"constraints-{name}.txt" for name in ("docs", "machines", "pcluster")}}
RESOLVED = {**PROPOSED, **{name: f"constraints-{name}.txt" for name in ("recordings", *OF_NODES)}}
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
        *(f"requirements-{name}.txt" for name in PROPOSED),
    }


INSTALLED = [*ROOT.glob("constraints*.txt"), *(ROOT / "nodes").glob("requirements-*.txt")]
"""All that packages are installed from, here and on nodes."""


@pytest.mark.parametrize("path", INSTALLED, ids=lambda path: path.name)
def test_every_package_has_hashes_but_torch_where_it_may_be_a_build_for_cpus(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    requirements = [line for line in lines if line and not line.startswith("#")]
    assert requirements
    without = [
        line for line in requirements if not re.search(r"^[A-Za-z0-9._-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line)
    ]
    pinned = [] if path.stem.removeprefix("constraints-") not in OF_NODES else [f"torch=={pins(path.name)['torch']}"]
    assert without == pinned


def test_nothing_is_installed_from_anything_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nor built with what no file pins."""
    commands = list[str]()

    def run(*command: str | Path) -> None:
        commands.append(" ".join(map(str, command)))

    monkeypatch.setattr(environments, "is_complete", lambda _: False)
    monkeypatch.setattr(environments, "link_checkout", lambda _: None)
    monkeypatch.setattr(environments, "building", lambda name: nullcontext(tmp_path / name))
    monkeypatch.setattr(environments, "run", run)
    environments.build(list(environments.PINS))
    installing = [command for command in commands if " install " in command]
    assert len(installing) == len(environments.PINS)  # the library, too, but npm has another word
    files = {path.relative_to(ROOT).as_posix() for path in INSTALLED}
    for command in installing:
        if "--editable ./constructs" in command:
            assert "--no-deps --no-build-isolation" in command
            continue
        [file] = re.findall(r"--requirements? (\S+)", command)
        assert file in files
        assert "--require-hashes" in command or file.startswith(tuple(f"constraints-{name}" for name in OF_NODES))
        assert not re.findall(r"\s[\w-]+[=<>]=", command)
    assert "setuptools" in pins("constraints.txt")
    assert "npm ci --loglevel=error" in commands
