"""Golden templates, made of what was synthesized."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonpatch

from tests.stacks.small_app import read_template
from toolchain.golden import DIFFERENCES, renamed

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"


def golden_templates(directory: Path, stacks: Iterable[str]) -> dict[str, Any]:
    """Return the templates of an assembly by stack. Assets have their names in place of their hashes."""
    templates = {}
    for stack in stacks:
        assets = json.loads((directory / f"{stack}.assets.json").read_text(encoding="utf-8"))["files"]
        text = json.dumps(read_template(directory, stack).body)
        for asset_hash, asset in assets.items():
            text = text.replace(asset_hash, f"<{asset['displayName']}>")
        templates[stack] = json.loads(text, object_hook=_in_order)
    return templates


def _in_order(member: dict[str, Any]) -> dict[str, Any]:
    """Sort the resources of a policy's statement: the CDK does so by their texts, hashes of assets included."""
    if isinstance(member.get("Resource"), list):
        member["Resource"].sort(key=json.dumps)
    return member


def write_golden(directory: Path, templates: Mapping[str, Any], base: str | None = None) -> None:
    """Write templates to a directory that holds nothing else, whole or as differences from another configuration."""
    directory.mkdir(parents=True, exist_ok=True)
    for path in directory.iterdir():
        path.unlink()
    for stack, template in templates.items() if base is None else ():
        _write(directory / f"{stack}.json", template)
    if base is not None:
        others = renamed(directory.parent / base, directory.name)
        patches = {
            stack: jsonpatch.make_patch(others.get(stack, {}), template).patch
            for stack, template in sorted(templates.items())
        }
        _write(directory / DIFFERENCES, {"base": base, "stacks": patches})


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
