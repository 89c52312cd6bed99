"""The steps of an upgrade with a fake backend: order, rejections, and kills at every point."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from config.settings import Settings, load
from scripts.account.stack_state import StackState
from scripts.change.candidate import Candidate
from scripts.change.upgrade.backend import HeadNodeState, UpgradeBackend
from scripts.change.upgrade.upgrade import Upgrade, UpgradeResult, edit
from scripts.check.plan.model import ClusterChange, ClusterPlan, Effect, Kind, ResourceChange, Source, StackPlan
from scripts.check.plan.report import Plan
from scripts.core.errors import OperationError, UnusableError
from scripts.core.findings import CheckStatus, Finding
from scripts.core.options import CONFIG

OTHER_OS = "cluster.os=ubuntu2204"
STEPS = ["settings", "deploy", "verify", "drain", "destroy", "monitoring"]


class KilledError(Exception):
    pass


class FakeBackend(UpgradeBackend):
    """An account without AWS, and a settings file; an upgrade is killed after `points_left` points."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "dev.yaml"
        self.path.write_bytes((CONFIG / "dev.yaml").read_bytes())
        self.statuses = {1: "CREATE_COMPLETE"}
        self.systems = {1: "ubuntu2404"}  # the OS that each cluster was made with
        self.alarms = "dev"
        self.done: list[str] = []
        self.blockers: list[Finding] = []
        self.said: list[str] = []
        self.asked: list[str] = []
        self.points_left = 10**6
        self.agrees = True
        self.heads: dict[int, HeadNodeState] = {1: "answers"}
        self.has_other_homes = False
        self.has_snapshots = True
        self._runs = 0

    @property
    def settings(self) -> Settings:
        return load(self.path)

    @property
    def generation(self) -> int:
        return self.settings.cluster.generation

    def point(self) -> None:
        """Be killed here if it is time."""
        self.points_left -= 1
        if self.points_left < 0:
            raise KilledError

    def upgrade(self, *edits: str, anyway: bool = False, dry_run: bool = False) -> Upgrade:
        self._runs += 1
        directory = self.path.parent / f"run-{self._runs}"
        directory.mkdir()

        def agreed(text: str) -> bool:
            self.point()
            self.asked.append(text)
            return self.agrees

        values = dict(map(edit, edits))
        return Upgrade(self.path, self.settings, directory, self, agreed, self.said.append, values, anyway, dry_run)

    def run(self, *edits: str, abandon: bool = False, **options: bool) -> str:
        return self.upgrade(*edits, **options).run(abandon=abandon).outcome

    def run_until(self, point: int, *edits: str, **options: bool) -> None:
        self.points_left = point
        with pytest.raises(KilledError):
            self.run(*edits, **options)
        self.points_left = 10**6

    def clusters(self, _: Settings) -> Mapping[int, StackState]:
        return {generation: StackState(status) for generation, status in self.statuses.items()}

    def metric_sources(self, _: Settings) -> set[str]:
        return {self.alarms}

    def plan(self, candidate: Candidate) -> Plan:
        settings, generation = candidate.settings, candidate.settings.cluster.generation
        exists = self.statuses.get(generation) == "CREATE_COMPLETE"
        stack = StackPlan(settings.stack_name("cluster"), Source.SAME if exists else Source.NEW)
        if not exists:
            stack = StackPlan(stack.name, stack.source, changes=(ResourceChange("Cluster", "T", Effect.ADDED),))
        made_with, wanted = self.systems.get(generation), settings.cluster.os
        change = ClusterChange("Image.Os", made_with, wanted, Kind.REFUSED, passes_now=False, needs=("Look at it.",))
        refused = exists and made_with != wanted
        cluster = ClusterPlan(settings.cluster_spec.name, exists, "", changes=(change,) if refused else ())
        return Plan(
            deployment="dev",
            region="us-west-2",
            against="",
            stacks=(stack,),
            cluster=cluster,
            findings=tuple(self.blockers),
        )

    def show(self, plan: Plan) -> None:
        self.said.append(f"plan of {plan.cluster.name}")

    def check(self, candidate: Candidate) -> None:
        self.said.append(f"check of {candidate.settings.cluster_spec.name}")

    def deploy(self, candidate: Candidate, *stacks: str) -> None:
        settings, generation = candidate.settings, candidate.settings.cluster.generation
        self.point()
        assert load(self.path).model_dump() == settings.model_dump()
        if not stacks:
            self.alarms = settings.cluster_spec.name
        else:
            assert stacks == (settings.stack_name("cluster"),)
            self.statuses[generation] = "CREATE_IN_PROGRESS"
            self.point()
            self.statuses[generation], self.systems[generation] = "CREATE_COMPLETE", settings.cluster.os
            self.heads[generation] = "answers"
        self.point()

    def verify(self, new: Settings) -> None:
        self.point()
        assert self.statuses[new.cluster.generation] == "CREATE_COMPLETE"

    def moves_homes(self, old: Settings, new: Settings) -> bool:
        return self.has_other_homes

    def copy_homes(self, old: Settings, new: Settings, *, last: bool) -> None:
        self.point()
        assert self.statuses == {1: "CREATE_COMPLETE", 2: "CREATE_COMPLETE"}
        self.done.append(f"copied {old.cluster_spec.name}{' to the last file' if last else ''}")

    def drain(self, old: Settings) -> None:
        self.point()
        assert self.statuses[old.cluster.generation] == "CREATE_COMPLETE"
        self.done.append(f"drained {old.cluster_spec.name}")

    def resume(self, old: Settings) -> None:
        self.point()
        self.done.append(f"resumed {old.cluster_spec.name}")

    def head_node(self, settings: Settings) -> HeadNodeState:
        return self.heads.get(settings.cluster.generation, "lost")

    def revive(self, settings: Settings, state: HeadNodeState) -> None:
        self.point()
        self.done.append(f"revived {settings.cluster_spec.name}, which was {state}")
        self.heads[settings.cluster.generation] = "answers"

    def home_left(self, lost: Settings, snapshot: str | None) -> str:
        return f"Of /home of {lost.cluster_spec.name} remains {snapshot}."

    def has_snapshot(self, settings: Settings) -> bool:
        return self.has_snapshots

    def last_copy(self, old: Settings) -> str:
        return f"A last snapshot of {old.cluster_spec.name}."

    def restore(self, settings: Settings, snapshot: str | None) -> None:
        self.point()
        assert self.heads[settings.cluster.generation] == "answers"
        self.done.append(f"restored {snapshot} to {settings.cluster_spec.name}")
        self.point()

    def destroy(self, old: Settings, *, force: bool = False) -> None:
        generation, name = old.cluster.generation, old.cluster_spec.name
        self.point()
        assert force == (self.head_node(old) == "lost")
        assert old.stack_name("cluster").removeprefix("dev-cluster") == name.removeprefix("dev")
        self.statuses[generation] = "DELETE_IN_PROGRESS"
        self.point()
        del self.statuses[generation]
        self.done.append(f"destroyed {name}")
        self.point()


@pytest.fixture
def backend(tmp_path: Path) -> FakeBackend:
    return FakeBackend(tmp_path)


def test_a_new_os_needs_a_second_cluster_which_replaces_the_first(backend: FakeBackend) -> None:
    result = backend.upgrade(OTHER_OS).run()

    assert (result.outcome, [each.name for each in result.steps]) == ("complete", STEPS)
    assert {each.outcome for each in result.steps} == {"done"}
    assert (backend.statuses, backend.systems[2], backend.alarms) == ({2: "CREATE_COMPLETE"}, "ubuntu2204", "dev-2")
    assert backend.done == ["drained dev", "destroyed dev"]
    assert "- Look at it." in backend.said
    assert (backend.generation, backend.settings.cluster.os) == (2, "ubuntu2204")


def test_two_clusters_on_one_accounting_database_are_told_of(backend: FakeBackend) -> None:
    backend.path.write_text(backend.path.read_text(encoding="utf-8") + "accounting: {}\n", encoding="utf-8")

    assert backend.run(OTHER_OS) == "complete"
    assert "AWS warns of deadlocks between two slurmdbd" in "".join(backend.said)


def test_home_is_copied_while_people_work_and_once_more_when_jobs_have_ended(backend: FakeBackend) -> None:
    backend.has_other_homes = True
    result = backend.upgrade(OTHER_OS).run()
    steps = ["settings", "deploy", "verify", "copy", "drain", "copy", "destroy", "monitoring"]
    assert [each.name for each in result.steps] == steps
    assert backend.done == ["copied dev", "drained dev", "copied dev to the last file", "destroyed dev"]


@pytest.mark.parametrize("point", range(14))
def test_killed_anywhere_nothing_is_destroyed_that_is_not_copied(backend: FakeBackend, point: int) -> None:
    backend.has_other_homes = True
    backend.run_until(point, OTHER_OS)
    assert backend.run(OTHER_OS) == "complete"
    assert backend.done.index("copied dev to the last file") < backend.done.index("destroyed dev")


def test_nothing_is_done_if_nothing_needs_a_new_cluster(backend: FakeBackend) -> None:
    before = backend.path.read_bytes()
    result = backend.upgrade("cluster.slurm.idle_minutes=20").run()
    assert result == UpgradeResult(deployment="dev", outcome="nothing to do", cluster="dev", steps=())
    assert backend.path.read_bytes() == before


def test_a_dry_run_says_the_steps_and_changes_nothing(backend: FakeBackend) -> None:
    before, statuses = backend.path.read_bytes(), dict(backend.statuses)
    result = backend.upgrade(OTHER_OS, dry_run=True).run()
    assert (result.outcome, [each.name for each in result.steps]) == ("dry run", STEPS)
    assert {each.outcome for each in result.steps} == {"planned"}
    assert (backend.path.read_bytes(), backend.statuses, backend.done) == (before, statuses, [])
    assert "check of dev-2" in backend.said


@pytest.mark.parametrize("point", range(14))  # all but the last, at which everything is done
def test_killed_anywhere_the_same_command_continues(backend: FakeBackend, point: int) -> None:
    backend.run_until(point, OTHER_OS)
    assert 1 <= len(backend.statuses) <= 2
    assert backend.generation in (max(backend.statuses), max(backend.statuses) + 1)

    assert backend.run(OTHER_OS) == "complete"

    assert (backend.statuses, backend.generation, backend.alarms) == ({2: "CREATE_COMPLETE"}, 2, "dev-2")
    assert backend.done[-1] == "destroyed dev" or backend.done == ["drained dev", "destroyed dev"]
    assert backend.done.index("drained dev") < backend.done.index("destroyed dev")


@pytest.mark.parametrize("point", range(0, 14, 2))
def test_until_the_first_is_being_destroyed_abandon_goes_back(backend: FakeBackend, point: int) -> None:
    backend.run_until(point, OTHER_OS)
    if backend.statuses.get(1) == "CREATE_COMPLETE" and backend.generation == 2:
        drained = backend.done == ["drained dev"]
        assert backend.run("cluster.os=ubuntu2404", abandon=True) == "abandoned"
        assert backend.statuses == {1: "CREATE_COMPLETE"}
        assert (backend.generation, backend.settings.cluster.os) == (1, "ubuntu2404")
        assert not drained or "resumed dev" in backend.done
    else:
        with pytest.raises(OperationError, match=r"there is no way back|There is no upgrade to go back from"):
            backend.run(abandon=True)


@pytest.mark.parametrize("point", range(6))
def test_killed_while_it_goes_back_the_same_command_continues(backend: FakeBackend, point: int) -> None:
    backend.run_until(6, OTHER_OS)
    assert sorted(backend.statuses) == [1, 2]
    backend.run_until(point, abandon=True)
    assert backend.run(abandon=True) == "abandoned"
    assert (backend.statuses, backend.generation) == ({1: "CREATE_COMPLETE"}, 1)


@pytest.mark.parametrize(
    ("statuses", "says"),
    [
        ({}, "/dev.yaml yet"),
        ({1: "CREATE_COMPLETE", 2: "CREATE_COMPLETE"}, "there is dev-cluster, dev-cluster-2; allowed: two clusters"),
        ({2: "CREATE_COMPLETE"}, "has cluster.generation 1, and there is dev-cluster-2"),
    ],
)
def test_clusters_that_do_not_match_the_settings_are_an_error(
    backend: FakeBackend, statuses: dict[int, str], says: str
) -> None:
    backend.statuses = statuses
    with pytest.raises(OperationError, match=re.escape(says)):
        backend.run(OTHER_OS)


def test_a_cluster_that_failed_to_come_up_is_not_replaced(backend: FakeBackend) -> None:
    backend.statuses = {1: "ROLLBACK_COMPLETE"}
    before = backend.path.read_bytes()
    with pytest.raises(OperationError, match="dev-cluster has no cluster: "):
        backend.run(anyway=True)
    assert backend.path.read_bytes() == before


def test_changes_of_the_file_meanwhile_stay(backend: FakeBackend) -> None:
    work = backend.upgrade(OTHER_OS)

    def agreed(text: str) -> bool:
        if text.startswith("Write"):
            before = backend.path.read_text(encoding="utf-8")
            changed = before.replace("max_count: 2", "max_count: 1  # mine")
            backend.path.write_text(changed, encoding="utf-8")
        return text.startswith("Write")

    work.agreed = agreed
    assert work.run().outcome == "stopped"
    assert "max_count: 1  # mine" in backend.path.read_text(encoding="utf-8")
    assert (backend.generation, backend.settings.cluster.os) == (2, "ubuntu2204")


def test_a_blocked_second_cluster_leaves_the_file_unchanged(backend: FakeBackend) -> None:
    before = backend.path.read_bytes()
    backend.blockers = [Finding(CheckStatus.FAIL, "no")]
    with pytest.raises(OperationError, match="The settings file is unchanged"):
        backend.run(OTHER_OS)
    assert (backend.path.read_bytes(), backend.statuses) == (before, {1: "CREATE_COMPLETE"})


def test_the_second_cluster_keeps_its_values_once_it_exists(backend: FakeBackend) -> None:
    backend.run_until(6, OTHER_OS)
    with pytest.raises(UnusableError, match="dev-2 exists already; allowed: its values, or --abandon first"):
        backend.run("cluster.slurm.idle_minutes=20")


def test_a_second_cluster_that_failed_is_created_with_other_values(backend: FakeBackend) -> None:
    backend.run_until(4, anyway=True)
    backend.statuses[2] = "ROLLBACK_COMPLETE"
    assert backend.run(OTHER_OS) == "complete"
    assert backend.systems[2] == "ubuntu2204"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cluster.os", "allowed: cluster.KEY=VALUE"),
        ("region=us-east-1", "allowed: cluster.KEY=VALUE"),
        ("cluster.generation=7", "allowed: other keys"),
        ("cluster.name=other", "allowed: other keys"),
        ("cluster.overrides={a: b}", "allowed: one value, no list and no mapping"),
        ("cluster.os=[", "allowed: a value in YAML"),
    ],
)
def test_a_value_that_cannot_be_set_is_rejected(text: str, says: str) -> None:
    with pytest.raises(UnusableError, match=says):
        edit(text)
