"""The course of an upgrade, through a site without an account: order, refusals, and kills at every point."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from config.settings import Settings, load
from scripts.command import CONFIG, OperationError, UnusableError
from scripts.plan.model import ClusterChange, ClusterPlan, Effect, Kind, Plan, ResourceChange, Source, StackPlan
from scripts.preflight.check import Finding, Status
from scripts.upgrade.file import Candidate, edit
from scripts.upgrade.steps import Options, Upgrade

SCHEMA = CONFIG.parent / "docs/schemas/upgrade.json"
OTHER_OS = "cluster.os=ubuntu2204"
STEPS = ["settings", "deploy", "verify", "drain", "destroy", "monitoring"]


class KilledError(Exception):
    """The program was killed."""


class World:
    """A site and a settings file; what is done can be cut off at any point.

    Attributes:
        path: The settings file.
        statuses: Those of clusters' stacks by generation.
        systems: The OS that each was made with.
        alarms: The cluster that alarms are set on.
        done: What was done to what.
        faults: What stands against any deployment.
        said: What the person was told.
        asked: What the person was asked.
        points_left: After how many points the program is killed.
        agrees: What the person answers.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / "dev.yaml"
        self.path.write_bytes((CONFIG / "dev.yaml").read_bytes())
        self.statuses = {1: "CREATE_COMPLETE"}
        self.systems = {1: "ubuntu2404"}
        self.alarms = "dev"
        self.done: list[str] = []
        self.faults: list[Finding] = []
        self.said: list[str] = []
        self.asked: list[str] = []
        self.points_left = 10**6
        self.agrees = True
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

        options = Options(agreed, self.said.append, [edit(each) for each in edits], anyway, dry_run)
        return Upgrade(self.path, self.settings, directory, self, options)

    def document(self, work: Upgrade, outcome: str) -> dict[str, object]:
        found = work.document(outcome)
        jsonschema.validate(found, json.loads(SCHEMA.read_text(encoding="utf-8")))
        return found

    # What an upgrade calls

    def clusters(self, _: Settings) -> Mapping[int, str]:
        return dict(self.statuses)

    def watched(self, _: Settings) -> set[str]:
        return {self.alarms}

    def plan(self, found: Candidate) -> Plan:
        settings, generation = found.settings, found.settings.cluster.generation
        exists = self.statuses.get(generation) == "CREATE_COMPLETE"
        stack = StackPlan(settings.stack_name("cluster"), Source.SAME if exists else Source.NEW)
        if not exists:
            stack = StackPlan(stack.name, stack.source, changes=(ResourceChange("Cluster", "T", Effect.ADDED),))
        made_with, wanted = self.systems.get(generation), settings.cluster.os
        change = ClusterChange("Image.Os", made_with, wanted, Kind.REFUSED, passes_now=False)
        refused = exists and made_with != wanted
        cluster = ClusterPlan(settings.cluster_spec.name, exists, "", changes=(change,) if refused else ())
        return Plan(
            environment="dev",
            region="us-west-2",
            against="",
            stacks=(stack,),
            cluster=cluster,
            findings=tuple(self.faults),
        )

    def show(self, plan: Plan) -> None:
        self.said.append(f"plan of {plan.cluster.name}")

    def check(self, new: Settings) -> None:
        self.said.append(f"check of {new.cluster_spec.name}")

    def deploy(self, found: Candidate, stack: str | None) -> None:
        generation = found.settings.cluster.generation
        self.point()
        assert load(self.path) == found.settings
        if stack is None:
            self.alarms = found.settings.cluster_spec.name
        else:
            assert stack == found.settings.stack_name("cluster")
            self.statuses[generation] = "CREATE_IN_PROGRESS"
            self.point()
            self.statuses[generation], self.systems[generation] = "CREATE_COMPLETE", found.settings.cluster.os
        self.point()

    def verify(self, new: Settings) -> None:
        self.point()
        assert self.statuses[new.cluster.generation] == "CREATE_COMPLETE"

    def drain(self, old: Settings) -> None:
        self.point()
        assert self.statuses[old.cluster.generation] == "CREATE_COMPLETE"
        self.done.append(f"drained {old.cluster_spec.name}")

    def resume(self, old: Settings) -> None:
        self.point()
        self.done.append(f"resumed {old.cluster_spec.name}")

    def destroy(self, old: Settings) -> None:
        generation, name = old.cluster.generation, old.cluster_spec.name
        self.point()
        assert old.stack_name("cluster").removeprefix("dev-cluster") == name.removeprefix("dev")
        self.statuses[generation] = "DELETE_IN_PROGRESS"
        self.point()
        del self.statuses[generation]
        self.done.append(f"destroyed {name}")
        self.point()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def names(work: Upgrade) -> list[str]:
    return [each.name for each in work.steps]


def test_a_new_os_means_a_second_cluster_and_the_end_of_the_first(world: World) -> None:
    work = world.upgrade(OTHER_OS)

    outcome = work.run()

    assert world.document(work, outcome)["outcome"] == "complete"
    assert names(work) == STEPS
    assert {each.outcome for each in work.steps} == {"done"}
    assert (world.statuses, world.systems[2], world.alarms) == ({2: "CREATE_COMPLETE"}, "ubuntu2204", "dev-2")
    assert world.done == ["drained dev", "destroyed dev"]
    assert (world.generation, world.settings.cluster.os) == (2, "ubuntu2204")


def test_comments_and_layout_of_the_file_stay(world: World) -> None:
    before = world.path.read_text(encoding="utf-8")

    world.upgrade(OTHER_OS).run()

    expected = before.replace("generation: 1 ", "generation: 2 ").replace("os: ubuntu2404", "os: ubuntu2204")
    assert world.path.read_text(encoding="utf-8") == expected


def test_nothing_is_done_where_nothing_needs_a_new_cluster(world: World) -> None:
    before = world.path.read_bytes()
    work = world.upgrade("cluster.slurm.idle_minutes=20")

    outcome = work.run()

    assert world.document(work, outcome) == {
        "environment": "dev",
        "outcome": "nothing to do",
        "cluster": "dev",
        "steps": [],
    }
    assert world.path.read_bytes() == before


def test_a_second_cluster_is_made_anyway_if_asked_for(world: World) -> None:
    assert world.upgrade(anyway=True).run() == "complete"
    assert world.statuses == {2: "CREATE_COMPLETE"}


def test_a_third_follows_the_second(world: World) -> None:
    world.upgrade(OTHER_OS).run()

    assert world.upgrade("cluster.os=ubuntu2404").run() == "complete"

    assert (world.statuses, world.generation, world.alarms) == ({3: "CREATE_COMPLETE"}, 3, "dev-3")


def test_a_dry_run_tells_the_steps_and_changes_nothing(world: World) -> None:
    before, statuses = world.path.read_bytes(), dict(world.statuses)
    work = world.upgrade(OTHER_OS, dry_run=True)

    outcome = work.run()

    found = world.document(work, outcome)
    assert found["outcome"] == "dry run"
    assert names(work) == STEPS
    assert {each.outcome for each in work.steps} == {"planned"}
    assert (world.path.read_bytes(), world.statuses, world.done) == (before, statuses, [])
    assert "check of dev-2" in world.said


def test_no_is_an_answer(world: World) -> None:
    before = world.path.read_bytes()
    world.agrees = False
    work = world.upgrade(OTHER_OS)

    assert world.document(work, work.run())["outcome"] == "stopped"

    assert (world.path.read_bytes(), names(work)) == (before, [])
    assert "The same command goes on here" in world.said[-1]


def test_the_person_is_asked_before_each_step_that_changes_something(world: World) -> None:
    world.upgrade(OTHER_OS).run()

    assert [text.split()[0] for text in world.asked] == ["Write", "Deploy", "Let", "Destroy", "Deploy"]
    assert "/home" in world.asked[3]


def points_of(directory: Path, start: Callable[[World], Upgrade]) -> int:
    """Return at how many points an upgrade can be killed."""
    directory.mkdir()
    world = World(directory)
    start(world).run()
    return 10**6 - world.points_left


@pytest.mark.parametrize(
    "start", [lambda world: world.upgrade(OTHER_OS), lambda world: world.upgrade(anyway=True)], ids=["set", "anyway"]
)
def test_killed_anywhere_the_same_command_goes_on(tmp_path: Path, start: Callable[[World], Upgrade]) -> None:
    points = points_of(tmp_path / "counted", start)
    assert points == 15
    for kill in range(points - 1):  # after the last point all is done
        (tmp_path / str(kill)).mkdir()
        world = World(tmp_path / str(kill))
        world.points_left = kill
        with pytest.raises(KilledError):
            start(world).run()
        assert 1 <= len(world.statuses) <= 2
        assert world.generation in (max(world.statuses), max(world.statuses) + 1)
        world.points_left = 10**6

        assert start(world).run() == "complete"

        assert (world.statuses, world.generation, world.alarms) == ({2: "CREATE_COMPLETE"}, 2, "dev-2")
        assert world.done[-1] == "destroyed dev" or world.done == ["drained dev", "destroyed dev"]
        assert world.done.index("drained dev") < world.done.index("destroyed dev")


def test_until_the_first_is_being_destroyed_there_is_a_way_back(tmp_path: Path) -> None:
    for kill in range(14):
        (tmp_path / str(kill)).mkdir()
        world = World(tmp_path / str(kill))
        world.points_left = kill
        with pytest.raises(KilledError):
            world.upgrade(OTHER_OS).run()
        world.points_left = 10**6
        back = world.upgrade("cluster.os=ubuntu2404")
        if world.statuses.get(1) == "CREATE_COMPLETE" and world.generation == 2:
            drained = world.done == ["drained dev"]
            assert world.document(back, back.abandon())["outcome"] == "abandoned"
            assert world.statuses == {1: "CREATE_COMPLETE"}
            assert (world.generation, world.settings.cluster.os) == (1, "ubuntu2404")
            assert not drained or "resumed dev" in world.done
        else:
            with pytest.raises(OperationError, match=r"there is no way back|There is no upgrade to go back from"):
                back.abandon()


def test_killed_while_it_goes_back_the_same_command_goes_on(tmp_path: Path) -> None:
    for kill in range(6):
        (tmp_path / str(kill)).mkdir()
        world = World(tmp_path / str(kill))
        world.points_left = 6  # the second cluster is there
        with pytest.raises(KilledError):
            world.upgrade(OTHER_OS).run()
        assert sorted(world.statuses) == [1, 2]
        world.points_left = kill
        with pytest.raises(KilledError):
            world.upgrade().abandon()
        world.points_left = 10**6

        assert world.upgrade().abandon() == "abandoned"

        assert (world.statuses, world.generation) == ({1: "CREATE_COMPLETE"}, 1)


@pytest.mark.parametrize(
    ("statuses", "says"),
    [
        ({}, "There is no cluster of config/dev.yaml yet. First: make deploy ENV=dev"),
        ({1: "CREATE_COMPLETE", 2: "CREATE_COMPLETE"}, "there is dev-cluster, dev-cluster-2; allowed: two clusters"),
        ({2: "CREATE_COMPLETE"}, "has cluster.generation 1, and there is dev-cluster-2"),
    ],
)
def test_what_does_not_fit_together_is_told(world: World, statuses: dict[int, str], says: str) -> None:
    world.statuses = statuses
    with pytest.raises(OperationError, match=re.escape(says)):
        world.upgrade(OTHER_OS).run()


@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "REVIEW_IN_PROGRESS"])
@pytest.mark.parametrize("anyway", [False, True])
def test_a_cluster_that_failed_to_come_up_is_not_replaced(world: World, status: str, anyway: bool) -> None:
    world.statuses = {1: status}
    before = world.path.read_bytes()

    with pytest.raises(
        OperationError, match=r"dev-cluster has no cluster: .*make diagnose ENV=dev\. Then: make deploy"
    ):
        world.upgrade(anyway=anyway).run()

    assert world.path.read_bytes() == before


def test_what_was_changed_in_the_file_meanwhile_stays(world: World) -> None:
    work = world.upgrade(OTHER_OS)

    def agreed(text: str) -> bool:
        if text.startswith("Write"):
            changed = world.path.read_text(encoding="utf-8").replace(
                "idle_minutes: 10", "idle_minutes: 17  # mine\n   "
            )
            world.path.write_text(changed, encoding="utf-8")
        return text.startswith("Write")

    work.options = replace(work.options, agreed=agreed)
    assert work.run() == "stopped"

    assert "idle_minutes: 17  # mine" in world.path.read_text(encoding="utf-8")
    assert (world.generation, world.settings.cluster.os) == (2, "ubuntu2204")


def test_a_file_that_is_broken_meanwhile_is_told_and_left_alone(world: World) -> None:
    work = world.upgrade(OTHER_OS)

    def agreed(_: str) -> bool:
        world.path.write_text("cluster: [\n", encoding="utf-8")
        return True

    work.options = replace(work.options, agreed=agreed)
    with pytest.raises(UnusableError, match=r"config/dev\.yaml was changed meanwhile: not YAML"):
        work.run()

    assert world.path.read_text(encoding="utf-8") == "cluster: [\n"


def test_three_clusters_are_too_many(world: World) -> None:
    world.upgrade(anyway=True).run()
    world.statuses = dict.fromkeys((1, 2, 3), "CREATE_COMPLETE")

    for act in (world.upgrade().run, world.upgrade().abandon):
        with pytest.raises(OperationError, match="there is dev-cluster, dev-cluster-2, dev-cluster-3; allowed: two"):
            act()


def test_what_is_there_is_not_made_again(world: World) -> None:
    world.points_left = 6
    with pytest.raises(KilledError):
        world.upgrade(OTHER_OS).run()
    world.points_left = 10**6
    work = world.upgrade(OTHER_OS)

    work.run()

    assert [each.name for each in work.steps if each.outcome == "already"] == ["settings", "deploy"]
    assert world.said.count("check of dev-2") == 1


def test_what_stands_against_the_second_cluster_leaves_the_file_alone(world: World) -> None:
    before = world.path.read_bytes()
    world.faults = [Finding(Status.FAIL, "no")]

    with pytest.raises(OperationError, match="The settings file is as it was"):
        world.upgrade(OTHER_OS).run()

    assert (world.path.read_bytes(), world.statuses) == (before, {1: "CREATE_COMPLETE"})


def test_the_second_cluster_keeps_its_values_once_it_is_there(world: World) -> None:
    world.points_left = 6
    with pytest.raises(KilledError):
        world.upgrade(OTHER_OS).run()
    world.points_left = 10**6

    with pytest.raises(UnusableError, match="dev-2 is there already; allowed: its values, or --abandon first"):
        world.upgrade("cluster.slurm.idle_minutes=20").run()


def test_a_second_cluster_that_failed_is_made_with_other_values(world: World) -> None:
    world.points_left = 4
    with pytest.raises(KilledError):
        world.upgrade(anyway=True).run()
    world.points_left = 10**6
    world.statuses[2] = "ROLLBACK_COMPLETE"

    assert world.upgrade(OTHER_OS).run() == "complete"
    assert world.systems[2] == "ubuntu2204"


def test_all_faults_of_new_values_are_told_at_once_and_the_file_stays(world: World) -> None:
    before = world.path.read_bytes()

    with pytest.raises(UnusableError) as told:
        world.upgrade("cluster.os=windows", "cluster.head_node.instance_type=c7g.large").run()

    assert "cluster.os: got 'windows'" in str(told.value)
    assert "cluster.head_node.instance_type: got 'c7g.large'" in str(told.value)
    assert world.path.read_bytes() == before


def test_another_version_of_parallelcluster_is_first_to_be_known_to_the_project(world: World) -> None:
    with pytest.raises(
        UnusableError, match=r"cluster.parallelcluster_version: got '9.9.9'[^\0]*CONTRIBUTING.md, Versions"
    ):
        world.upgrade("cluster.parallelcluster_version=9.9.9").run()


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
def test_a_value_that_cannot_be_set_is_refused(text: str, says: str) -> None:
    with pytest.raises(UnusableError, match=says):
        edit(text)


def test_values_of_lists_can_be_set() -> None:
    found = edit("cluster.queues[0].compute_resources[1].min_count=0")

    assert found == (("cluster", "queues", 0, "compute_resources", 1, "min_count"), 0)


def test_a_key_that_is_not_there_is_told(world: World) -> None:
    with pytest.raises(UnusableError, match=r"cluster\.queues\[7\]\.name: there is no such value"):
        world.upgrade("cluster.queues[7].name=x").run()
