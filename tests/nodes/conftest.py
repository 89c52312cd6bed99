"""Machines to run the real scripts on. They take root, Debian's packages and half a minute, once for all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
def machine(base: bases.Base) -> Iterator[Callable[..., Machine]]:
    """Return a function that makes a machine as ParallelCluster leaves it: operating system, instance type, name."""
    made: list[Machine] = []

    def make(os_name: str = "ubuntu2404", instance_type: str = "trn1.32xlarge", **options: str) -> Machine:
        made.append(Machine(base, os_name, instance_type, **options))
        return made[-1]

    yield make
    for each in made:
        each.discard()


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
def compute_node(_compute_nodes: Callable[[str], Machine]) -> Iterator[Callable[..., Machine]]:
    """Return a function that gives a copy of a trn1.32xlarge on which the script has run: operating system, type."""
    made: list[Machine] = []

    def copy(os_name: str = "ubuntu2404", instance_type: str | None = None) -> Machine:
        made.append(_compute_nodes(os_name).clone(instance_type=instance_type))
        return made[-1]

    yield copy
    for each in made:
        each.discard()
