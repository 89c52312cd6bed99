"""What the training program is tested with is what nodes run it with."""

import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def pins(path: str) -> dict[str, str]:
    text = (PROJECT / path).read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def test_the_versions_are_those_of_the_nodes_but_for_torch() -> None:
    nodes, tests = pins("scripts/nodes/requirements-training.txt"), pins("requirements-training.txt")
    assert len(nodes) > 20
    assert {name: tests.get(name) for name in nodes} == nodes
    assert "torch" in tests.keys() - nodes.keys()


def test_the_tests_run_with_the_same_pytest() -> None:
    ours, tests = pins("constraints.txt"), pins("requirements-training.txt")
    for name in ("coverage", "pytest", "pytest-cov", "pluggy", "iniconfig"):
        assert tests[name] == ours[name]


def test_every_requirement_is_exact() -> None:
    for line in (PROJECT / "requirements-training.txt").read_text(encoding="utf-8").splitlines():
        assert line.startswith("#") or re.fullmatch(r"[a-z\d-]+==[\d.]+(\.post\d+)?", line), line
