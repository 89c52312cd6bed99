"""The run on one node that another is compared with, for the scaling efficiency. Standard library alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .summary import Run

_SAME_WORK = ("phase", "sequence_length", "layers", "hidden", "heads", "intermediate", "vocabulary")
"""Options that a sequence's work follows from."""

_SAME_WAY = ("optimizer", "global_batch", "micro_batch", "precision")
"""Options that speed depends on, too. The global batch is that of a node with weak scaling, of all with strong."""


def obstacles(options: Mapping[str, Any], reference: Run) -> list[tuple[str, str]]:
    """Return why a run of these options cannot be compared with a reference: what that is, and what it must be."""
    found = []
    nodes = max(attempt.nodes for attempt in reference.attempts)
    if nodes > 1:
        found.append((f"on {nodes} nodes", "a run on one node"))
    for name in _SAME_WORK:
        if reference.options.get(name) != options.get(name):
            option = f"--{name.replace('_', '-')}"
            found.append((f"with {option} {reference.options.get(name)}", f"one with {option} {options.get(name)}"))
    return found


def differences(options: Mapping[str, Any], reference: Run) -> list[str]:
    """Return what else differs, in lines: the efficiency is then not that of the number of nodes alone."""
    return [
        f"note: --{name.replace('_', '-')} is {options.get(name)}, and {reference.options.get(name)} in --reference"
        for name in _SAME_WAY
        if reference.options.get(name) != options.get(name)
    ]
