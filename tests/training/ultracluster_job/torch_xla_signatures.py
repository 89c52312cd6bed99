"""Signatures of what the Neuron back end calls of PyTorch/XLA, in its package's source, without importing it.

python -m tests.training.ultracluster_job.torch_xla_signatures .venv-xla/lib/python3.11/site-packages/torch_xla
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[3]
BACKEND = PROJECT / "training/ultracluster_job/neuron_backend.py"
RECORDED = Path(__file__).with_suffix(".json")
FILES = {"torch_xla": "torch_xla.py", "xm": "core/xla_model.py", "xr": "runtime.py"}
"""Files of the package by the name that the back end has for what they define."""


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of PyTorch/XLA in the back end, such as ``xm.wait_device_ops``."""
    for node in ast.walk(ast.parse(BACKEND.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ) and node.func.value.id in FILES:
            yield f"{node.func.value.id}.{node.func.attr}", node


def signatures(package: Path) -> dict[str, list[str]]:
    """Return the parameters of each function that is called: those with a default end with =, keywords begin with *."""
    found = {}
    for name in sorted({name for name, _ in calls()}):
        module, _, function = name.partition(".")
        tree = ast.parse((package / FILES[module]).read_text(encoding="utf-8"))
        [given] = [each.args for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == function]
        names = [each.arg for each in (*given.posonlyargs, *given.args)]
        first = len(names) - len(given.defaults)
        found[name] = [f"{each}{'=' if place >= first else ''}" for place, each in enumerate(names)]
        for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            found[name].append(f"*{each.arg}{'=' if default else ''}")
    return found


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(signatures(Path(sys.argv[1])), indent=1) + "\n", encoding="utf-8")
