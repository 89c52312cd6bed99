"""What the training program is tested with is what nodes run it with."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
TESTS = ["requirements-training.txt", "requirements-xla.txt"]


def pins(path: str) -> dict[str, str]:
    text = (PROJECT / path).read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)(?=\s|$)", text, re.MULTILINE))  # of all Pythons


@pytest.mark.parametrize("path", TESTS)
def test_the_versions_are_those_of_the_nodes_but_for_torch(path: str) -> None:
    nodes, tests = pins("nodes/requirements-training.txt"), pins(path)
    assert len(nodes) > 20
    assert {name: tests.get(name) for name in nodes} == nodes
    assert "torch" in tests.keys() - nodes.keys()


def test_pytorch_xla_is_tested_with_the_same_but_for_torch() -> None:
    training, xla = (pins(path) for path in TESTS)
    assert xla["torch"] == xla["torch-xla"]
    assert {name for name, version in xla.items() if training.get(name) != version} == {"torch", "torch-xla"}


def test_the_tests_run_with_the_same_pytest() -> None:
    ours, tests = pins("constraints.txt"), pins("requirements-training.txt")
    for name in ("coverage", "execnet", "pytest", "pytest-cov", "pytest-xdist", "pluggy", "iniconfig"):
        assert tests[name] == ours[name]


@pytest.mark.parametrize("path", TESTS)
def test_every_requirement_is_exact(path: str) -> None:
    for line in (PROJECT / path).read_text(encoding="utf-8").splitlines():
        assert line.startswith("#") or re.fullmatch(r"[a-z\d-]+==[\d.]+(\.post\d+)?", line), line
