"""Stacks are known by what every version of this project has written into them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from config.settings import PARTS, Part
from config.stack_identity import StackIdentity

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", ["trn1-16", "ab", "a-cluster", "x" * 40])
def test_what_is_written_is_read_where_stacks_are_described_and_where_they_are_listed(name: str, part: Part) -> None:
    identity = StackIdentity(name, part)
    for key in ("Description", "TemplateDescription"):
        assert StackIdentity.of({key: identity.description}) == identity


def test_stacks_of_earlier_versions_are_known() -> None:
    assert StackIdentity.of({"Description": "Trn1 UltraCluster trn1-16: cluster"}) == ("trn1-16", "cluster")


@pytest.mark.parametrize(
    "text",
    ["", "somebody's", "Trn1 UltraCluster x1: x", "Trn1 UltraCluster A: cluster", "x Trn1 UltraCluster x1: cluster"],
)
def test_stacks_of_others_are_not(text: str) -> None:
    assert StackIdentity.of({"Description": text}) is None
    assert StackIdentity.of({}) is None


def test_the_templates_of_a_deployment_say_whose_they_are() -> None:
    paths = [*(ROOT / "tests/snapshots/trn1-16").glob("*.json")]
    identities = {path.stem: StackIdentity.of(json.loads(path.read_text("utf-8"))) for path in paths}
    assert identities == {f"trn1-16-{part}": ("trn1-16", part) for part in PARTS if part != "team"}
