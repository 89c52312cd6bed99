"""Machines to run the real scripts on. They take root, Debian's packages and half a minute, once for all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from tests.nodes import base as bases
from tests.nodes.facts import COMPUTE_NODE
from tests.nodes.machine import Machine
from tests.shared import shared_directory


@pytest.fixture(scope="session")
def base() -> Iterator[bases.Base]:
    """What all machines share."""
    with shared_directory("nodes", bases.create) as workspace:
        yield bases.Base(workspace)


@pytest.fixture
def use() -> Iterator[Callable[[Machine], Machine]]:
    """Return a function that has a machine deleted after the test."""
    with ExitStack() as used:

        def use(machine: Machine) -> Machine:
            used.callback(machine.discard)
            return machine

        yield use


@pytest.fixture
def machine(base: bases.Base, use: Callable[[Machine], Machine]) -> Callable[..., Machine]:
    """Return a function that makes a machine as ParallelCluster leaves it: operating system, instance type, name."""
    return lambda *given, **options: use(Machine(base, *given, **options))


@pytest.fixture(scope="session")
def _compute_nodes(base: bases.Base) -> Callable[[str], Machine]:
    @cache
    def ready(os_name: str) -> Machine:
        machine = Machine(base, os_name)
        outcome = machine.run("compute_node.sh", COMPUTE_NODE)
        assert outcome.code == 0, outcome.output
        return machine

    return ready


@pytest.fixture
def compute_node(_compute_nodes: Callable[[str], Machine], use: Callable[[Machine], Machine]) -> Callable[..., Machine]:
    """Return a function that gives a copy of a trn1.32xlarge on which the script has run: operating system, type."""
    return lambda os_name="ubuntu2404", **options: use(_compute_nodes(os_name).clone(**options))
