"""Each setting of a resource that changes in place is changed there and back: plan, emulated AWS and reference agree.

What AWS refuses the plan refuses, nothing else, and the reference says so of the setting.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import WaiterError

from config.settings import Settings
from emulator.aws import EmulatedAws
from emulator.templates import publish_files
from scripts.check.plan import refusals
from scripts.check.plan.comparison import Comparison
from scripts.check.plan.model import Source, StackPlan
from scripts.emulated import accounts
from tests.config.settings_files import put
from tests.deployed import create_stack, update_stack
from tests.stacks.deployments import Deployment, Raw, deploy, raw_settings
from tests.toolchain.test_changes_of_settings import SETTINGS, VALUES
from toolchain.assembly import Assembly
from ultracluster.domain.spec import Change

WITHOUT = ("storage.data_repositories",)
"""Sections that exclude others, of which the settings below have the others."""
PLACES = [
    place
    for place, node in SETTINGS.items()
    if not place.startswith(WITHOUT)
    and node.get("x-aws", "").startswith("AWS::")
    and node["x-change"] == Change.AT_ONCE
]


class Walk:
    """A deployment whose settings change one after the other; a refused change leaves it as it was."""

    def __init__(self, aws: EmulatedAws, directory: Path) -> None:
        self._aws, self._directory, self._made = aws, directory, dict[str, Deployment]()
        self.raw: Raw = raw_settings("trn1-16")
        self.raw.update(homes={"type": "fsx-openzfs"}, accounting={}, users=[{"name": "alice", "uid": 2001}])
        self.raw["budget"] = {"monthly_usd": 9000, "emails": ["a@example.com"], "max_usd_per_hour": 400}
        self.raw = Settings.model_validate(self.raw).model_dump()
        self._now = self._synthesized(self.raw)
        accounts.create_prerequisites(aws, self._now.settings)
        accounts.bootstrap(aws, self._now.settings)
        publish_files(Assembly(self._now.directory), aws)
        for part in self._now.settings.parts:
            create_stack(aws, self._now, part)

    def change(self, values: dict[str, Any]) -> tuple[bool, bool]:
        """Return whether the plan refuses a change of settings by their places, and whether AWS does."""
        raw = copy.deepcopy(self.raw)
        for place, value in values.items():
            put(raw, place, value)
        after = self._synthesized(raw)
        comparison = Comparison(Assembly(self._now.directory).stacks, Assembly(after.directory).stacks)
        changed = {name: each for name, each in comparison.changes.items() if each}
        plans = [StackPlan(name, Source.FILES, changes=changes) for name, changes in changed.items()]
        planned = [each for stack in plans for each in refusals.of_stack(stack, comparison)]
        parts = [part for part in after.settings.parts if after.stack_name(part) in changed]
        assert parts, "the setting reaches no stack"
        try:
            for part in parts:
                update_stack(self._aws, after, part)
        except WaiterError:
            return bool(planned), True
        self.raw, self._now = raw, after
        return bool(planned), False

    def _synthesized(self, raw: Raw) -> Deployment:
        key = json.dumps(raw, sort_keys=True)
        if key not in self._made:
            self._made[key] = deploy(Settings.model_validate(raw), self._directory / str(len(self._made)))
        return self._made[key]


@pytest.fixture(scope="module")
def walk(rehearsal_server: EmulatedAws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    rehearsal_server.reset()
    yield Walk(rehearsal_server, tmp_path_factory.mktemp("walk"))
    rehearsal_server.reset()


def value_of(raw: Raw, place: str) -> Any:
    value: Any = raw
    for name in place.split("."):
        value = value[name]
    return value


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_plan_emulated_aws_and_reference_agree_on_both_directions_of_a_setting(walk: Walk, place: str) -> None:
    before = value_of(walk.raw, place)

    there = walk.change({place: VALUES[place]})
    back = walk.change({place: before})

    assert there == (False, False), "VALUES has the larger one of what only grows"
    assert back == (("x-growth" in SETTINGS[place],) * 2)


@pytest.mark.slow
def test_plan_and_emulated_aws_refuse_what_cannot_change_at_once_or_grows_too_little(walk: Walk) -> None:
    lustre, openzfs = "storage.file_system", "homes.openzfs.capacity_gib"

    assert walk.change({f"{lustre}.metadata_iops": 192_000, f"{lustre}.capacity_gib": 384_000}) == (True, True)
    assert walk.change({openzfs: value_of(walk.raw, openzfs) + 1}) == (True, True)
