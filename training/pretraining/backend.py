"""All that differs between NeuronCores and a CPU, behind one interface."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol


@dataclass(frozen=True)
class Place:
    """Which of the workers this process is, as torchrun tells.

    Attributes:
        rank: Its number among all, from 0.
        ranks: All workers.
        local_rank: Its number on its node.
        nodes: Nodes.
        node: The number of its node.
    """

    rank: int
    ranks: int
    local_rank: int
    nodes: int
    node: int

    @property
    def workers_per_node(self) -> int:
        """Workers of each node."""
        return self.ranks // self.nodes


def place(environment: Mapping[str, str] = os.environ) -> Place:
    """Return the place that torchrun's variables tell; without them, the process is alone.

    https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables
    """
    return Place(
        rank=int(environment.get("RANK", "0")),
        ranks=int(environment.get("WORLD_SIZE", "1")),
        local_rank=int(environment.get("LOCAL_RANK", "0")),
        nodes=int(environment.get("GROUP_WORLD_SIZE", "1")),
        node=int(environment.get("GROUP_RANK", "0")),
    )


class Backend(Protocol):
    """What training needs of the hardware and of the other ranks.

    Attributes:
        name: ``neuron`` or ``cpu``.
        device: torch's device of this rank.
        capturable: Whether the optimizer keeps its count of steps on the device.
        ahead: Steps that the host may be ahead of the device; 0 where it computes itself.
        extracting: Whether graphs are only collected for a compiler, so that all results are zeros.
        peak_flops: What one rank's hardware could do, FLOP/s; None where it is not known.
        place: Which of the ranks this is.
    """

    name: str
    device: Any
    capturable: bool
    ahead: int
    extracting: bool
    peak_flops: float | None
    place: Place

    def send(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tensors on the device, without waiting for it."""

    def seed(self, number: int) -> None:
        """Start the device's random numbers anew."""

    def execute(self) -> None:
        """Hand what was computed since the last call to the device, without waiting for it."""

    def wait(self) -> None:
        """Wait until the device has done all that was handed to it."""

    def reduce(self, tensors: Sequence[Any]) -> None:
        """Replace each of the tensors on the device by its sum over all ranks: the one way in which ranks add up."""

    def fetch(self, vector: Any) -> list[float]:
        """Wait for a tensor that was handed to the device, and return its numbers."""

    def to_host(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of nested tensors in host memory."""


def create(name: str, place: Place) -> Backend:
    """Return a back end that is connected to the other ranks."""
    if name == "neuron":
        from .neuron_backend import NeuronBackend

        return NeuronBackend(place)
    from .cpu_backend import CpuBackend

    return CpuBackend(place)


def leave(code: int) -> NoReturn:
    """End the process at once, with its output written.

    Python's own end may abort while threads of gloo are at work, which would turn a finished job into a failed one.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def gather_hosts(backend: Backend, host: str) -> Sequence[str]:
    """Return the names of all nodes, in the order of their ranks; all ranks must call it."""
    import torch

    width = 64  # Linux: HOST_NAME_MAX
    letters = torch.zeros(backend.place.nodes * width)
    if backend.place.local_rank == 0:
        name = host.encode()[:width]
        start = backend.place.node * width
        letters[start : start + len(name)] = torch.tensor(list(name), dtype=letters.dtype)
    total = backend.send({"letters": letters})["letters"]
    backend.reduce([total])
    backend.execute()
    numbers = [int(number) for number in backend.fetch(total)]
    names = (bytes(numbers[first : first + width]) for first in range(0, len(numbers), width))
    return [name.rstrip(b"\0").decode() for name in names]
