"""Propose newer versions of what is pinned, as Markdown for an issue.

It covers what `make update-deps` resolves: requirements.txt, requirements-dev.txt, requirements-pcluster.txt,
requirements-docs.txt and package.json. Not covered are the pins of the training program, which follow the nodes'
(docs/explanation/nodes.md), and these the release of Neuron that the settings name. The versions are those of the
indexes that pip and npm are configured for; pip names only what this Python can install. Exit code 0: printed; 2:
neither pip nor npm answered.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from scripts.core.markdown import table

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ("requirements.txt", "requirements-dev.txt", "requirements-docs.txt", "requirements-pcluster.txt")
PACKAGES = "package.json"
MARKER = "<!-- ultracluster:pins -->"
NOTHING = "<!-- nothing newer -->"
"""Tells the workflow that there is nothing to propose."""
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+)$", re.MULTILINE)
_LATEST = re.compile(r"^\S+ \((\S+)\)")
_ADVICE = """\
Edit the pins, then `make update-deps PYTHON=python3.11`, and open a pull request: its checks and comments tell what a
newer version changes. Another aws-parallelcluster than the settings' `parallelcluster_version` needs that key changed,
too, and existing clusters `./ultracluster upgrade`."""


class Pin(NamedTuple):
    """A package that is pinned to a version in a file."""

    name: str
    version: str
    file: str


def pins(root: Path) -> list[Pin]:
    """Return what the files of a checkout pin."""
    pinned = [
        Pin(name, version, file)
        for file in REQUIREMENTS
        for name, version in _PIN.findall((root / file).read_text(encoding="utf-8"))
    ]
    document = json.loads((root / PACKAGES).read_text(encoding="utf-8"))
    for section in ("dependencies", "devDependencies"):
        pinned += [Pin(name, version, PACKAGES) for name, version in document.get(section, {}).items()]
    return pinned


def newest(pin: Pin) -> str | None:
    """Return the newest version of a package, None where it is unknown.

    `pip index` is called experimental by pip: it may change (https://pip.pypa.io/en/stable/cli/pip_index/).
    """
    try:
        if pin.file == PACKAGES:
            return _ask(["npm", "view", pin.name, "version"]).strip() or None
        answer = _LATEST.match(_ask([sys.executable, "-m", "pip", "index", "versions", pin.name]))
    except subprocess.CalledProcessError:
        return None
    return answer[1] if answer else None


def proposal(pinned: Sequence[Pin], versions: Sequence[str | None]) -> str:
    """Return what to propose as Markdown.

    A newest version is None where it is unknown.
    """
    pairs = list(zip(pinned, versions, strict=True))
    rows = [
        (pin.name, pin.version, version, pin.file)
        for pin, version in pairs
        if version is not None and _numbers(version) > _numbers(pin.version)
    ]
    lines = [MARKER]
    if rows:
        lines += ["", table(("Package", "Pinned", "Newest", "In"), rows), "", _ADVICE]
    else:
        lines += [NOTHING, "", "Nothing that is pinned has a newer version."]
    if unknown := [pin.name for pin, version in pairs if version is None]:
        lines += ["", f"Nobody answered for {', '.join(unknown)}."]
    return "\n".join(lines) + "\n"


def _numbers(version: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", version)]


def _ask(command: Sequence[str]) -> str:
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> int:
    """Print a proposal, and return the exit code."""
    argparse.ArgumentParser(prog="make outdated", description=__doc__).parse_args()
    pinned = pins(ROOT)
    with ThreadPoolExecutor(max_workers=4) as pool:
        versions = list(pool.map(newest, pinned))
    if not any(versions):
        print("Neither pip nor npm answered for any package; standard error above says why.", file=sys.stderr)
        return 2
    print(proposal(pinned, versions), end="")
    return 0
