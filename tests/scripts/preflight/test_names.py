"""A deployment that exists already is ours to update."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.deployment import PARTS
from scripts.preflight import names
from tests.emulator.stacks import Stacks, parameter
from tests.scripts.preflight.conftest import GoodAccount
from toolchain.golden import read_golden

SNAPSHOTS = Path(__file__).parents[2] / "snapshots"


@pytest.mark.parametrize("environment", ["two-queues", "ultracluster"])
def test_stacks_are_known_by_their_descriptions(environment: str, good_account: Callable[..., GoodAccount]) -> None:
    account = good_account(environment)
    stacks = Stacks(account.aws, account.settings.region)
    for part in PARTS:
        template = read_golden(SNAPSHOTS / environment)[f"{environment}-{part}"]
        described = {"Description": template["Description"]}
        stacks.create(f"{environment}-{part}", {"R": parameter()}, template=described)
    assert [finding.sentence for finding in account.look(names.stack_names)] == [
        f"{environment}-{part} is CREATE_COMPLETE, and ours to update" for part in PARTS
    ]
