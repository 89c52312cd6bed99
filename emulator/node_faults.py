"""Faults of nodes: they act on the machine of an instance, or on what EC2 says of it, and end as they began."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from emulator.faults import FAULTS
from emulator.moto_patches import lives

_SECONDS: Final = 30.0


class RunningNodes(Protocol):
    """The nodes that run, as `emulator.machines.fleet.Fleet` knows them."""

    def nodes(self, kind: str) -> dict[str, str]:
        """Return the Region of each instance of a kind of node that runs, oldest first."""

    def shell(self, instance_id: str) -> list[str] | None:
        """Return the beginning of what runs a command on an instance, as root; None: it does not run."""


class NodeFaults:
    """The faults of nodes that are in force."""

    def __init__(self, nodes: RunningNodes | None) -> None:
        """Take notice of the nodes; None: there are only played ones, which have no such faults."""
        self._nodes = nodes
        self._ends: list[Callable[[], object]] = []

    def begin(self, name: str, target: str) -> str:
        """Let a fault of `emulator.faults.FAULTS` begin, if it is one of nodes.

        Returns:
            The instance that it concerns; empty: all, or none.

        Raises:
            ValueError: There are no machines, no such node runs, or the fault cannot begin on it.
        """
        node = FAULTS[name].node
        if node is None or (self._nodes is None and node.is_played):
            return ""
        if self._nodes is None:
            raise ValueError(f"fault {name}: it needs nodes that run, and these are only played")
        if node.boot:
            return ""
        running = self._nodes.nodes(node.kind)
        if not running:
            raise ValueError(f"fault {name}: no {node.kind} node runs")
        if target and target not in running:
            raise ValueError(f"fault {name}: got {target}; allowed: {', '.join(running)}")
        instance_id = target or next(iter(running))
        region = running[instance_id]
        if node.commands[0]:
            self._run(instance_id, node.commands[0])
            self._ends.append(partial(self._run, instance_id, node.commands[1]))
        if node.events[0]:
            lives.afflict(region, instance_id, node.events[0])
            if node.events[1]:
                self._ends.append(partial(lives.afflict, region, instance_id, node.events[1]))
        return instance_id

    def end(self) -> None:
        """Let all of them end, on nodes that still run."""
        ends, self._ends = self._ends, []
        for end in ends:
            end()

    def _run(self, instance_id: str, script: str) -> None:
        prefix: Sequence[str] | None = self._nodes.shell(instance_id) if self._nodes else None
        if prefix is None:  # it has ended meanwhile
            return
        done = subprocess.run(
            [*prefix, "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False, timeout=_SECONDS,
        )  # fmt: skip
        if done.returncode and self._nodes and self._nodes.shell(instance_id):
            raise ValueError(f"{instance_id}: {script}: exit code {done.returncode}: {done.stdout}")
