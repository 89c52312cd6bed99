"""Golden templates that are kept as differences from those of another configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolchain.golden import read_golden


def write(path: Path, content: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_differences_are_applied_after_the_name_is_replaced(tmp_path: Path) -> None:
    template = {"Resources": {"A": {"Name": "one-network"}, "B": {}}}
    patch = [{"op": "remove", "path": "/Resources/B"}]
    write(tmp_path / "one" / "one-network.json", template)
    write(tmp_path / "two" / "differences.json", {"base": "one", "stacks": {"two-network": patch}})

    assert read_golden(tmp_path / "two") == {"two-network": {"Resources": {"A": {"Name": "two-network"}}}}

    write(tmp_path / "one" / "one-network.json", {"Resources": {}})
    with pytest.raises(ValueError, match=r"differences\.json does not fit the templates in .*/one"):
        read_golden(tmp_path / "two")
