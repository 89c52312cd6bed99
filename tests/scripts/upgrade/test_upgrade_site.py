"""An upgrade in an emulated account, with the CDK, preflight and ParallelCluster's own code."""

from __future__ import annotations

import io
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from rich.console import Console

from config.settings import Settings, load
from scripts import deploy
from scripts.clock import Clock
from scripts.command import CONFIG, OperationError
from scripts.deployment import Deployment
from scripts.destroy import destroy as destruction
from scripts.destroy.outcome import Outcome
from scripts.fleet import control as fleet
from scripts.plan import cdk
from scripts.preflight.catalog import CATALOG
from scripts.remote.head_node import Answer, HeadNode, HeadNodeError
from scripts.stacks import all_resources
from scripts.upgrade.file import Candidate, candidate, edit, write
from scripts.upgrade.site import AwsSite
from scripts.upgrade.steps import Options, Upgrade
from tests.scripts.account import Operated
from tests.stacks.deployments import Raw, edited

HEAD_NODE = """
sinfo() { :; }
squeue() { :; }
findmnt() { echo fs-1.fsx.us-west-2.amazonaws.com@tcp:/abc; }
export -f sinfo squeue findmnt
exec bash
"""
"""A head node without queues and jobs, that mounts a file system."""


OTHER_OS = "cluster.os=ubuntu2204"


class QuickClock(Clock):
    """A clock of which waiting takes next to no time."""

    def __init__(self) -> None:
        self._passed = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self._passed

    def sleep(self, seconds: float) -> None:
        time.sleep(0.05)
        self._passed += timedelta(seconds=seconds)


class Person:
    """Runs upgrades of a file, and says no after some steps."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.screen = io.StringIO()
        self._runs = 0

    def upgrade(self, *edits: str, steps: int = 99) -> Upgrade:
        self._runs += 1
        directory = self.path.parent / f"run-{self._runs}"
        directory.mkdir()
        answers = iter([True] * steps)
        console = Console(file=self.screen, width=80)
        site = AwsSite("dev", console, QuickClock(), self._say)
        options = Options(lambda _: next(answers, False), self._say, [edit(each) for each in edits])
        return Upgrade(self.path, load(self.path), directory, site, options)

    def _say(self, sentence: str) -> None:
        self.screen.write(f"{sentence}\n")
        print(sentence)


@pytest.fixture
def person(tmp_path: Path) -> Person:
    path = tmp_path / "dev.yaml"
    path.write_bytes((CONFIG / "dev.yaml").read_bytes())
    return Person(path)


def clusters(account: Operated) -> set[str]:
    """Return the stacks of clusters, and those that ParallelCluster made."""
    stacks = account.client("cloudformation").describe_stacks()["Stacks"]
    wanted = {"dev", "dev-2", "dev-cluster", "dev-cluster-2"}
    return {each["StackName"] for each in stacks} & wanted


def things(account: Operated, *stacks: str) -> set[tuple[str, str]]:
    """Return the types and ids of all that some stacks hold, but for labels that ParallelCluster gives to actions."""
    deployment = account.deployment()
    found = [each for stack in stacks for each in all_resources(deployment, stack)]
    return {(each.type, each.physical_id) for each in found if each.type != "AWS::CloudFormation::CustomResource"}


def kill_while_the_second_cluster_is_made(account: Operated, work: Upgrade) -> None:
    """Write the second generation, let the CDK begin to deploy it, and kill it then: CloudFormation goes on."""
    write(work.path, work.options.edits, 2)
    directory = work.directory / "begun"
    directory.mkdir()
    work.site.plan(candidate(work.path, directory, [], 2))
    arguments = ("deploy", "dev-cluster-2", "--app", str(directory / "cdk.out"), "--require-approval", "never")
    with subprocess.Popen(cdk.command(*arguments), cwd=cdk.ROOT, env=cdk.environment()) as process:
        while "dev-2" not in clusters(account):
            time.sleep(0.05)
        process.kill()


@pytest.mark.thorough
@pytest.mark.slow
def test_blue_green_with_two_interruptions(deploy_operated: Callable[[Settings], Operated], person: Person) -> None:
    account = deploy_operated(load(person.path))
    account.shell(HEAD_NODE)
    first = {"dev", "dev-cluster"}
    second = {"dev-2", "dev-cluster-2"}
    of_the_first = things(account, *first)

    kill_while_the_second_cluster_is_made(account, person.upgrade(OTHER_OS))
    assert clusters(account) == first | second

    assert person.upgrade(OTHER_OS, steps=2).run() == "stopped"
    assert person.screen.getvalue().count("dev-cluster-2 is CREATE_IN_PROGRESS: waiting for its end.") == 1
    assert clusters(account) == second
    assert things(account, *second) & of_the_first == set()
    with pytest.raises(OperationError, match=r"There is no upgrade to go back from|there is no way back"):
        person.upgrade().abandon()

    last = person.upgrade(OTHER_OS)
    assert last.run() == "complete"
    assert [each.name for each in last.steps] == ["monitoring"]
    assert last.site.watched(last.settings) == {"dev-2"}
    assert load(person.path).cluster.os == "ubuntu2204"


@pytest.fixture
def site(operated: Operated) -> AwsSite:
    return AwsSite("trn1-16", Console(file=io.StringIO(), width=80), QuickClock(), print)


def test_clusters_are_found_by_their_stacks(operated: Operated, site: AwsSite) -> None:
    assert site.clusters(operated.settings) == {1: "CREATE_COMPLETE"}
    assert site.clusters(operated.settings.of_generation(3)) == {1: "CREATE_COMPLETE"}
    assert site.watched(operated.settings) == {"trn1-16"}


def test_the_limit_of_a_drain_holds_for_the_destruction_too(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, object] = {}

    def stop(_: Deployment, **options: object) -> None:
        given.update(options)
        raise OperationError("jobs are left")

    monkeypatch.setattr(fleet, "stop", stop)
    site = AwsSite("trn1-16", Console(file=io.StringIO()), QuickClock(), print, drain_limit=7200)

    with pytest.raises(OperationError, match="jobs are left"):
        site.destroy(operated.settings)

    assert (given["drain"], given["drain_limit"]) == (True, 7200)


@pytest.mark.parametrize(("stack", "stacks"), [("trn1-16-cluster-2", ("trn1-16-cluster-2",)), (None, ("--all",))])
def test_the_cdk_deploys_what_was_planned(
    site: AwsSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stack: str | None, stacks: tuple[str, ...]
) -> None:
    codes, calls = iter([0, 1]), []

    def run(environment: str, assembly: Path, *_: object, stacks: tuple[str, ...], output: object) -> int:
        calls.append((environment, assembly, stacks, output))
        return next(codes)

    monkeypatch.setattr(deploy, "deploy", run)
    found = Candidate(tmp_path / "trn1-16.yaml", load(CONFIG / "trn1-16.yaml"))

    site.deploy(found, stack)
    with pytest.raises(OperationError, match=r"exit code 1\. Why: make diagnose ENV=trn1-16\. The same command"):
        site.deploy(found, stack)

    assert calls == [("trn1-16", tmp_path / "cdk.out", stacks, None)] * 2


def test_a_stack_that_is_busy_is_told_of_once(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses = iter(["UPDATE_IN_PROGRESS"] * 3 + ["UPDATE_ROLLBACK_IN_PROGRESS"] * 2 + ["UPDATE_COMPLETE"])
    monkeypatch.setattr(Deployment, "stack", lambda *_: {"StackStatus": next(statuses)})
    monkeypatch.setattr(destruction, "destroy", lambda *_, **__: Outcome(datetime.now(UTC)))

    AwsSite("trn1-16", Console(file=io.StringIO()), QuickClock(), print).destroy(operated.settings)

    assert capsys.readouterr().out.splitlines() == [
        "trn1-16-cluster is UPDATE_IN_PROGRESS: waiting for its end.",
        "trn1-16-cluster is UPDATE_ROLLBACK_IN_PROGRESS: waiting for its end.",
    ]


HICCUPS = [
    EndpointConnectionError(endpoint_url="https://cloudformation.us-west-2.amazonaws.com"),
    ClientError({"Error": {"Code": "Throttling", "Message": "Rate exceeded"}}, "DescribeStacks"),
]


def answering(*answers: Any) -> Callable[..., Any]:
    """Return what gives one answer after the other, and raises those that are errors."""
    left = iter(answers)

    def answer(*_: object) -> Any:
        found = next(left)
        if isinstance(found, Exception):
            raise found
        return found

    return answer


@pytest.mark.parametrize("error", HICCUPS, ids=lambda error: type(error).__name__)
def test_a_moment_without_an_answer_ends_no_wait(
    operated: Operated,
    site: AwsSite,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(destruction, "destroy", lambda *_, **__: Outcome(datetime.now(UTC)))
    with monkeypatch.context() as patch:
        patch.setattr(Deployment, "stack", answering(error, error, {"StackStatus": "CREATE_COMPLETE"}))
        site.destroy(operated.settings)
    assert capsys.readouterr().out == f"No answer, which is asked for again: {error}\n"

    monkeypatch.setattr(fleet, "status", answering("STARTING", error, "RUNNING"))
    monkeypatch.setattr(HeadNode, "run", lambda *_: Answer(0, "fs-1", ""))
    site.verify(operated.settings)
    assert capsys.readouterr().out.startswith(f"No answer, which is asked for again: {error}\ntrn1-16 is RUNNING")


def test_a_cluster_of_another_name_is_refused(operated: Operated, site: AwsSite) -> None:
    cluster = operated.settings.cluster.model_copy(update={"name": "other"})

    with pytest.raises(OperationError, match=r"trn1-16-cluster is called trn1-16, by config/trn1-16\.yaml other"):
        site.clusters(operated.settings.model_copy(update={"cluster": cluster}))


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("sinfo() { echo no contact >&2; false; }; export -f sinfo; exec bash", "no contact"),
        (
            "sinfo() { :; }; findmnt() { false; }; export -f sinfo findmnt; exec bash",
            "no Lustre file system is mounted",
        ),
    ],
)
def test_a_head_node_that_does_not_work_is_told(operated: Operated, site: AwsSite, program: str, says: str) -> None:
    operated.shell(program)

    with pytest.raises(OperationError, match=says):
        site.verify(operated.settings)


def test_a_head_node_that_is_silent_for_a_moment_is_asked_again(
    operated: Operated, site: AwsSite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: Iterator[HeadNodeError | Answer] = iter([HeadNodeError("no contact"), Answer(0, "fs-1", "")])

    def run(*_: object) -> Answer:
        answer = next(answers)
        if isinstance(answer, HeadNodeError):
            raise answer
        return answer

    monkeypatch.setattr(HeadNode, "run", run)

    site.verify(operated.settings)

    assert "No answer, which is asked for again: no contact\ntrn1-16 is RUNNING" in capsys.readouterr().out


def test_a_fleet_that_does_not_run_is_told(operated: Operated, site: AwsSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "status", lambda _: "PROTECTED")

    with pytest.raises(OperationError, match="The fleet of trn1-16 is PROTECTED; allowed: RUNNING"):
        site.verify(operated.settings)


def test_an_account_without_room_for_both_is_told(operated: Operated, site: AwsSite) -> None:
    def grow(raw: Raw) -> None:
        raw["cluster"]["generation"] = 2
        raw["cluster"]["queues"][0]["compute_resources"][0]["max_count"] = 2500

    with pytest.raises(OperationError, match="not ready for a second cluster: quota-"):
        site.check(edited("trn1-16", grow))


def test_nodes_that_always_run_are_told_before(operated: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    def keep_two(raw: Raw) -> None:
        raw["cluster"]["generation"] = 2
        raw["cluster"]["queues"][0]["compute_resources"][0]["min_count"] = 2

    skip = [each.id for each in CATALOG[1:]]
    site = AwsSite("trn1-16", Console(file=io.StringIO()), QuickClock(), print, skip=skip)

    site.check(edited("trn1-16", keep_two))

    assert "2 nodes of trn1-16-2 always run (min_count)" in capsys.readouterr().out
