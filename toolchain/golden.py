"""Golden templates: what the CDK makes of a configuration, kept in tests/snapshots and compared at each change.

A directory holds the templates of a configuration, a file for each stack, or one file that tells how they differ from
those of another configuration: JSON Patch (RFC 6902) by stack, after the other's name is replaced; of a stack that the
other lacks, from nothing.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonpatch

DIFFERENCES = "differences.json"


def read_golden(directory: Path) -> dict[str, dict[str, Any]]:
    """Return the templates of a directory, by stack.

    Raises:
        ValueError: A file is no JSON, or the differences do not fit what they are from.
    """
    if not (directory / DIFFERENCES).exists():
        return {path.stem: _read(path) for path in sorted(directory.glob("*.json"))}

    differences = _read(directory / DIFFERENCES)
    base, patches = directory.parent / differences["base"], differences["stacks"]
    templates = renamed(base, directory.name)
    try:
        return {stack: jsonpatch.apply_patch(templates.get(stack, {}), patch) for stack, patch in patches.items()}
    except (KeyError, jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        raise ValueError(f"{directory / DIFFERENCES} does not fit the templates in {base}: {error}") from None


def renamed(directory: Path, name: str) -> dict[str, dict[str, Any]]:
    """Return the templates of a configuration as if it had another name."""
    text = re.sub(rf"(?<![\w-]){directory.name}(?!\w)", name, json.dumps(read_golden(directory)))
    return dict(json.loads(text))


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
