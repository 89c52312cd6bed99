"""The comments on six real changes. Rewrite them with `make snapshots`, and read them as a reviewer would."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.check.review.checkouts import find
from scripts.check.review.comment import comment
from tests.scripts.check.review.checkouts import checkout

GOLDEN = Path(__file__).parent / "golden"
SECOND_QUEUE = """\
    - name: long
      placement_group: fleet
      compute_resources:
        - name: trn1-32xl
          instance_type: trn1.32xlarge
          max_count: 4
  slurm:
"""
CHANGES = {
    "max-count": [("max_count: 16", "max_count: 32")],
    "new-queue": [("  slurm:\n", SECOND_QUEUE)],
    "bigger-file-system": [("capacity_gib: 4800", "capacity_gib: 9600")],
    "subnet": [("private_subnet_cidr: 10.0.64.0/18", "private_subnet_cidr: 10.0.128.0/18")],
    "ssh": [("ssh_cidr: null ", "ssh_cidr: 203.0.113.0/24 ")],
    "head-node-type": [("instance_type: c6i.4xlarge", "instance_type: c6i.8xlarge")],
}

pytestmark = pytest.mark.validation


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout(tmp_path_factory.mktemp("before"))


@pytest.mark.parametrize("change", CHANGES)
def test_comment_is_as_its_golden_file(before: Path, change: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    after = checkout(tmp_path, "trn1-16", *CHANGES[change])
    text = comment("trn1-16", find(before, "trn1-16"), find(after, "trn1-16"), None)
    text = re.sub(r"```mermaid.*?```", "DRAWING", text, flags=re.DOTALL)
    path = GOLDEN / f"{change}.md"
    if pytestconfig.getoption("update_snapshots"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path} is out of date; if that is meant: make snapshots"
    assert {each.stem for each in GOLDEN.iterdir()} == set(CHANGES)
