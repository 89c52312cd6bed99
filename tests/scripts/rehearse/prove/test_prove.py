"""What a walk decides: with rungs that do nothing, and an AWS that is a number of nodes."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml

from config.settings import load
from scripts.check.estimate.prices import Prices
from scripts.core import interrupts, options
from scripts.core.errors import ExitCode, OperationError, UnusableError
from scripts.core.interrupts import listening
from scripts.rehearse.prove import ladder, money, prove, store
from scripts.rehearse.prove.assumptions import assumptions
from scripts.rehearse.prove.ladder import MANY, NAMES, RUNGS, Choices, Raw, settings_of, violations
from scripts.rehearse.prove.money import Span
from scripts.rehearse.prove.prove import Climb, Request, answered, raw_of
from scripts.rehearse.prove.redact import Redactor
from scripts.rehearse.prove.report import Proof, RungRecord, unseen
from scripts.rehearse.prove.rungs import CLIMBED
from scripts.rehearse.prove.walk import Ran, RungError, TimeUpError, Walk
from scripts.watch.inventory import leftovers
from scripts.watch.inventory.model import Leftover

END = timedelta(minutes=2)
"""What a command takes to end when its time is over."""
START = datetime(2026, 1, 1, tzinfo=UTC)
PRIVATE = "123456789012 at 10.1.2.3, ada@example.com, fs-0123456789abcdef0"


def raw() -> Raw:
    """Return settings of which a ladder can be made."""
    made: Raw = yaml.safe_load((options.CONFIG / "dev.yaml").read_text(encoding="utf-8"))
    made["monitoring"] = {"emails": ["ada@example.com"]}
    return made


class Time:
    """A clock that goes when somebody waits."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)

    def until(self, condition: Callable[[], bool], *, every: float, limit: float) -> bool:
        end = self.time + timedelta(seconds=limit)
        while not condition():
            if self.time >= end:
                return False
            self.sleep(every)
        return True


class FakeWalk(Walk):
    """A walk whose commands do nothing but to start, stop and delete."""

    nodes = 0
    stacks = False
    stuck = 0
    """How many nodes `fleet stop` does not stop."""
    left: tuple[Leftover, ...] = ()

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.commands: list[str] = []
        self.nodes_then: list[int] = []
        self.jobs_end = True

    def _run(self, shown: list[str], words: list[str]) -> Ran:
        interrupts.check()
        self.check_time()
        self.commands.append(" ".join(shown[1:3]))
        self.nodes_then.append(self.nodes)
        if shown[1:3] == ["fleet", "stop"]:
            self._stop()
        if shown[1] == "destroy":
            self.nodes, self.stacks = 0, False
        self.keep(Path("logs") / f"{len(self.commands):03}.txt", PRIVATE)
        return Ran(ExitCode.DONE, "{}", "", 1.0, f"logs/{len(self.commands):03}.txt")

    def _stop(self) -> None:
        if self.nodes != self.stuck:
            self.nodes = 0
            return
        assert self.deadline is not None, "a command that may wait for ever has a time limit"
        self.clock.sleep((self.deadline + END - self.clock.now()).total_seconds())
        self.check_time()

    def copy_checkout(self) -> None:
        pass

    def terminate_nodes(self) -> None:
        self.commands.append("terminate")
        self.nodes = 0

    def kept(self) -> list[Leftover]:
        return list(self.left)

    def end_jobs(self, minutes: int) -> None:
        self.commands.append(f"end-jobs {minutes}")
        if not minutes and not self.jobs_end:
            raise RungError("no answer")

    def compute_nodes(self) -> list[dict[str, Any]]:
        return [{"InstanceId": str(each)} for each in range(self.nodes)]

    def status_of(self, part: str) -> str:
        return "CREATE_COMPLETE" if self.stacks else ""


class Walked:
    """A walk in which each step takes minutes, with the answers of a person."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch, self.clock, self.folder = monkeypatch, Time(), folder
        self.minutes = dict.fromkeys(NAMES, 10)
        self.errors: dict[str, BaseException] = {}
        self.answers: list[str] | None = None
        self.asked: list[str] = []
        self.rungs: list[str] = []
        self.earlier: Proof | None = None
        for name in NAMES:
            monkeypatch.setitem(CLIMBED, name, self._rung(name))
        monkeypatch.setattr(prove, "answered", self._answer)
        monkeypatch.setattr(money, "find_prices", lambda region, *_: Prices(region))
        monkeypatch.setattr("scripts.watch.status.cost.kept_prices", lambda *_: None)

    def walk(self, limit: int, until: str = "destroy") -> Proof:
        request = Request("dev", Decimal(limit), until, is_emulated=False)
        self.made = FakeWalk(
            "dev", raw(), self.folder, Choices(Decimal(limit)), False, Redactor("salt", self.words), lambda _: None,
            lambda _: None, self.clock,
        )  # fmt: skip
        self.made.stacks = bool(self.earlier)
        self.made.nodes = self.nodes
        self.made.stuck = self.stuck
        self.made.jobs_end = self.jobs_end
        proof = self.earlier or Proof(
            deployment="dev", region="us-west-2", zone_id="usw2-az4", cloud="aws", versions={},
            limit_usd=Decimal(limit), observations=unseen("aws"),
        )  # fmt: skip
        self.climb = Climb(request, self.made, proof)
        return self.climb.climb()

    stuck = 0
    jobs_end = True
    words: tuple[str, ...] = ("ada",)
    nodes = 0
    """That run when it starts."""

    def _rung(self, name: str) -> Callable[[Walk], None]:
        rung = RUNGS[NAMES.index(name)]

        def climb(walk: Walk) -> None:
            assert isinstance(walk, FakeWalk)
            self.rungs.append(name)
            walk.stacks = name != "destroy"
            walk.nodes = sum(rung.nodes.values()) or (0 if name == "destroy" else walk.nodes)
            left = timedelta.max if walk.deadline is None else walk.deadline + END - self.clock.now()
            self.clock.sleep(min(timedelta(minutes=self.minutes[name]), left).total_seconds())
            walk.check_time()
            if error := self.errors.get(name):
                raise error

        return climb

    def _answer(self, question: str, seconds: float | None) -> str:
        self.asked.append(question)
        if self.answers is None:
            return question.split()[1] if question.startswith("Type") else "y"
        answer = self.answers.pop(0)
        if answer == "sleeps":
            assert seconds is not None, "nothing stands, so nothing is spent"
            self.clock.sleep(seconds)
            return ""
        if answer == "late":
            self.clock.sleep(max((seconds or 0) - 1, 0))
            return question.split()[1] if question.startswith("Type") else "y"
        return answer

    def continues(self) -> None:
        """Let another command continue, of which nothing is done and nothing was asked yet."""
        kept = store.read(self.folder)
        assert kept is not None
        self.earlier, self.errors, self.rungs, self.asked, self.answers = kept.proof, {}, [], [], None

    @property
    def report(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads((self.folder / "report" / "report.json").read_text(encoding="utf-8"))
        return read


@pytest.fixture
def walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Walked]:
    return Walked(tmp_path, monkeypatch)  # type: ignore[return-value]


def states(report: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["state"] for each in report["rungs"]}


def test_all_rungs_in_their_order_each_after_a_question(walked: Walked) -> None:
    proof = walked.walk(2000)
    assert walked.rungs == list(NAMES)
    assert [each.split()[1] for each in walked.asked[:-1]] == list(NAMES[:-1])
    assert states(walked.report) == dict.fromkeys(NAMES, "done")
    assert proof.ok
    assert not proof.is_standing
    assert 80 < proof.spent_usd < 110, "ten minutes of sixteen nodes, of two, and some cents"
    assert {each["id"] for each in walked.report["observations"]} == {each.id for each in assumptions()}


@pytest.mark.parametrize("limit", [5, 9, 20, 170, 1300])
@pytest.mark.parametrize(
    ("pace", "slow"), [(0.1, ""), (1.0, ""), (3.0, ""), *((3.0, each.name) for each in RUNGS if each.nodes)]
)
@pytest.mark.parametrize("answer", ["at once", "sleeps", "late"])
def test_the_limit_holds_whatever_rungs_and_people_do(
    walked: Walked, limit: int, pace: float, slow: str, answer: str
) -> None:
    """All rungs or one may take longer than they may, its `fleet stop` may not end, people may answer late or never."""
    paces = {each.name: pace if slow in ("", each.name) else 0.1 for each in RUNGS}
    walked.minutes = {each.name: int(each.minutes * paces[each.name]) for each in RUNGS}
    walked.minutes["destroy"] = money.MINUTES_TO_DESTROY
    walked.stuck = sum(ladder.rung(slow).nodes.values()) if slow else 0
    if answer == "sleeps":
        walked.answers = ["storage", "head-node", "sleeps", "sleeps"]
    if answer == "late":
        walked.answers = ["late"] * 9
    cost = walked.walk(limit)
    assert cost.spent_usd + Decimal("0.73") <= limit, "an hour that was started"
    assert not cost.is_standing
    assert walked.made.nodes == 0


def test_a_rung_without_room_is_refused_and_everything_is_destroyed(walked: Walked) -> None:
    walked.walk(100)
    assert walked.rungs == ["storage", "head-node", "roll-back", "one-chip", "destroy"]
    assert states(walked.report)["two-nodes"] == "refused"
    assert "--max-usd" in next(each["reason"] for each in walked.report["rungs"] if each["name"] == "two-nodes")


def test_only_the_name_of_a_rung_starts_it_and_only_no_keeps_what_stands(
    walked: Walked, capsys: pytest.CaptureFixture[str]
) -> None:
    walked.answers = ["storage", "yes", "n"]
    proof = walked.walk(100)
    assert walked.rungs == ["storage"]
    assert proof.is_standing
    said = capsys.readouterr().err
    assert "ULTRACLUSTER_CONFIG=" in said
    assert "destroy dev --all" in said
    assert "$0.73 an hour" in said


@pytest.mark.parametrize("error", [RungError("x"), OperationError("x"), KeyError("x"), TimeUpError("x")])
def test_nodes_of_a_failed_rung_are_stopped_and_evidence_is_kept(walked: Walked, error: BaseException) -> None:
    walked.errors = {"two-nodes": error}
    walked.walk(2000)
    assert walked.rungs[-2:] == ["two-nodes", "destroy"]
    commands = walked.made.commands
    kept = [each.split()[0] for each in commands if each.endswith(" dev")]
    assert kept[:3] == ["status", "diagnose", "inventory"]
    at = commands.index("status dev")
    assert "fleet stop" in commands[:at], "evidence waits: the nodes cost"
    assert set(walked.made.nodes_then[-3:]) == {0}
    state = "stopped" if isinstance(error, TimeUpError) else "failed"
    assert states(walked.report) == {
        **dict.fromkeys(NAMES[:4], "done"), "two-nodes": state, "destroy": "done",
    }  # fmt: skip


def test_jobs_are_cancelled_by_the_head_node_at_the_end_of_each_rung_with_nodes(walked: Walked) -> None:
    walked.walk(2000)
    armed = [each for each in walked.made.commands if each.startswith("end-jobs")]
    limits = [each.minutes for each in RUNGS if each.nodes]
    assert armed == [f"end-jobs {minutes}" for limit in limits for minutes in (limit, 0)]


def test_ctrl_c_says_what_stands_and_the_same_command_continues(
    walked: Walked, capsys: pytest.CaptureFixture[str]
) -> None:
    walked.errors = {"head-node": KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        walked.walk(100)
    said = capsys.readouterr().err
    assert "These stacks exist: dev-network" in said
    assert "./ultracluster prove dev --max-usd 100" in said
    assert states(walked.report) == {"storage": "done", "head-node": "stopped"}
    walked.continues()
    assert walked.earlier is not None
    walked.clock.sleep(3600)
    proof = walked.walk(2000)
    assert walked.rungs[0] == "head-node"
    assert proof.ok
    assert proof.spent_usd > walked.earlier.spent_usd + Decimal("0.7"), "it cost meanwhile, too"


def test_a_deployment_of_somebody_else_is_not_touched(walked: Walked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeWalk, "status_of", lambda *_: "CREATE_COMPLETE")
    with pytest.raises(OperationError, match=r"dev-network.*not made by this walk"):
        walked.walk(100)
    assert walked.rungs == []


@pytest.mark.parametrize(
    ("type_", "on_purpose", "is_refused"),
    [
        ("AWS::FSx::FileSystem", True, True),
        ("AWS::RDS::DBInstance", True, True),
        ("AWS::EFS::FileSystem", False, True),
        ("AWS::EC2::Snapshot", True, True),
        ("AWS::Logs::LogGroup", True, False),
        ("AWS::EC2::LaunchTemplate", False, False),
    ],
)  # fmt: skip
def test_what_a_deleted_deployment_of_the_name_has_kept_is_not_deleted(
    walked: Walked, monkeypatch: pytest.MonkeyPatch, type_: str, on_purpose: bool, is_refused: bool
) -> None:
    left = Leftover(type=type_, id="left-1", reason="kept", kept_on_purpose=on_purpose)
    monkeypatch.setattr(FakeWalk, "kept", Walk.kept)
    monkeypatch.setattr(leftovers, "find", lambda _: [left])
    with pytest.raises(OperationError, match=r"left-1: left by an earlier") if is_refused else nullcontext():
        walked.walk(100)
    assert bool(walked.rungs) is not is_refused


def test_a_walk_that_has_no_room_any_more_destroys_nothing_before_somebody_can_answer(walked: Walked) -> None:
    walked.answers = ["storage", "head-node", "no", "n"]
    walked.walk(20, until="two-nodes")
    for until in ("two-nodes", "storage"):
        walked.continues()
        walked.clock.sleep(7 * 86_400)
        with pytest.raises(OperationError, match=r"--max-usd \d+") as raised:
            walked.walk(20, until=until)
        assert "destroy dev --all" in raised.value.hint
        assert (walked.asked, walked.rungs, walked.made.stacks) == ([], [], True)


def test_nodes_count_until_the_head_node_has_ended_them_and_longer_only_if_they_run(walked: Walked) -> None:
    walked.errors = {"sixteen-nodes": KeyboardInterrupt()}
    walked.stuck = 16
    monkeypatch = walked.monkeypatch
    with monkeypatch.context() as killed:
        killed.setattr(Climb, "_stop_nodes_despite_signals", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            walked.walk(2000)
    walked.continues()
    walked.stuck = 0
    assert walked.earlier is not None
    start = next(each.started for each in walked.earlier.rungs if each.name == "sixteen-nodes")
    assert start is not None
    walked.clock.time = start + timedelta(hours=48)
    ended = money.spent(walked.earlier.spans, walked.clock.now())
    assert 1200 < ended < 1450, "three hours and a half of sixteen nodes, and those of the earlier rungs"
    walked.nodes = 16
    with pytest.raises(OperationError, match="--max-usd"):
        walked.walk(2000)
    assert walked.made.nodes == 0, "they are stopped, and then it is asked"
    assert walked.climb.proof.spent_usd > 48 * 340


def test_ctrl_c_in_a_rung_with_nodes_stops_them(walked: Walked, capsys: pytest.CaptureFixture[str]) -> None:
    def rung(_: Walk) -> None:
        walked.made.nodes = 2
        os.kill(os.getpid(), signal.SIGINT)

    walked.monkeypatch.setitem(CLIMBED, "two-nodes", rung)
    with listening(), pytest.raises(KeyboardInterrupt):
        walked.walk(2000)
    assert walked.made.commands[-1] == "fleet stop"
    assert walked.made.nodes == 0
    assert "fleet stop dev" not in capsys.readouterr().err
    assert money.rate(walked.climb.proof.spans, walked.clock.now()) < 1


def test_nodes_that_run_are_the_first_that_is_said(walked: Walked, capsys: pytest.CaptureFixture[str]) -> None:
    walked.errors = {"two-nodes": KeyboardInterrupt()}
    walked.monkeypatch.setattr(Climb, "_stop_nodes_despite_signals", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        walked.walk(2000, until="two-nodes")
    said = capsys.readouterr().err
    assert said.index("fleet stop dev --force") < said.index("prove dev --max-usd") < said.index("destroy dev --all")
    assert "disable --now ultracluster-prove" in said
    assert re.search(r"costs \$4\d", said), "what runs, not what will"


def test_a_head_node_that_does_not_answer_ends_the_walk_with_the_question(walked: Walked) -> None:
    walked.jobs_end = False
    walked.walk(2000)
    assert walked.rungs[-2:] == ["one-chip", "destroy"]
    assert walked.asked[-1].startswith("Destroy everything now?")


def test_a_price_that_is_not_known_prevents_no_destruction(walked: Walked) -> None:
    walked.answers = ["storage", "", "y"]

    def forget(*_: object) -> None:
        raise UnusableError("no price is known of X")

    def destroy(_: Walk) -> None:
        walked.rungs.append("destroy")
        walked.made.stacks = False

    def storage(walk: Walk) -> None:
        walked.made.stacks = True
        walked.monkeypatch.setattr(money, "rates_of", forget)

    walked.monkeypatch.setitem(CLIMBED, "storage", storage)
    walked.monkeypatch.setitem(CLIMBED, "destroy", destroy)
    walked.walk(100, until="storage")
    assert walked.rungs == ["destroy"]
    assert not walked.climb.proof.is_standing


def test_a_walk_is_continued_from_what_is_not_redacted_and_nobody_else_can_read(walked: Walked) -> None:
    """A user may be called as a rung, a state, a field or a word of the report's JSON."""
    words = ("node", "head", "done", "storage", "running", "aws", "dev", "expected")
    walked.answers = ["storage", "head-node", "", "n"]
    walked.words = words
    walked.walk(2000)
    assert states(walked.report) == {"storage": "done", "head-node": "done", "roll-back": "declined"}
    assert Proof.model_validate({key: each for key, each in walked.report.items() if key not in prove._COMPUTED})
    assert (walked.folder / "private.json").stat().st_mode & 0o777 == 0o600
    walked.continues()
    assert walked.walk(2000).ok
    assert walked.rungs == [*NAMES[2:]]


def test_nothing_private_is_in_any_file_of_the_report(walked: Walked) -> None:
    walked.errors = {"one-chip": RungError(PRIVATE)}
    walked.walk(2000)
    files = [each for each in (walked.folder / "report").rglob("*") if each.is_file()]
    assert len(files) > 5
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not [word for word in PRIVATE.replace(",", "").split() if word != "at" and word in text], file


def test_settings_without_a_ladder_are_refused_with_all_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnusableError) as raised:
        raw_of("reserved")
    said = str(raised.value)
    assert "capacity_reservation_id: got cr-" in said
    assert "monitoring.emails: got none" in said
    other = raw() | {"network": {"existing": {}}}
    other["cluster"]["queues"][0] |= {"capacity_type": "SPOT"}
    other["cluster"]["queues"][0]["compute_resources"][0]["instance_type"] = "trn2.48xlarge"
    assert [each.partition(":")[0] for each in violations(other)] == [
        "network.existing", "cluster.queues[0].capacity_type", "cluster.queues[0].compute_resources[0].instance_type",
    ]  # fmt: skip
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(raw()), encoding="utf-8")
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    assert raw_of("mine")["monitoring"] == {"emails": ["ada@example.com"]}


def test_people_in_a_file_of_their_own_are_taken_along_and_are_in_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = yaml.safe_load((options.CONFIG / "team.yaml").read_text(encoding="utf-8"))
    people = {key: team.pop(key) for key in ("groups", "users")}
    role = "arn:aws:iam::123456789012:role/people/auditors"
    team["cluster"]["overrides"] = {"Iam": {"Roles": {"LambdaFunctionsRole": role}}}
    (tmp_path / "our.users.yaml").write_text(yaml.safe_dump(people), encoding="utf-8")
    (tmp_path / "team.yaml").write_text(yaml.safe_dump({**team, "users": "our.users.yaml"}), encoding="utf-8")
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    monkeypatch.setattr(options, "BUILD", tmp_path / "build")
    arn = "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Admin_0a1b2c/jane.doe"
    monkeypatch.setattr(prove, "_caller", lambda _: {"Account": "123456789012", "Arn": arn})
    climb = Climb.of(Request("team", Decimal(100), "destroy", is_emulated=False), raw_of("team"), starts_again=False)
    assert [each.name for each in climb.walk.write("storage").users] == ["ada", "grace", "alan"]
    shown = climb.walk.redactor.text(f"{arn}: grace, alan; jane.doe; platform@example.com; auditors; of {tmp_path}")
    for word in ("grace", "alan", "jane", "platform", "AWSReservedSSO", "auditors", "123456789012"):
        assert word not in shown


@pytest.fixture
def of_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Climb]:
    """Return a function that makes the walk of a command, with the credentials of an account."""
    monkeypatch.setattr(options, "BUILD", tmp_path)

    def make(account: str, *, starts_again: bool = False, **others: Any) -> Climb:
        arn = f"arn:aws:sts::{account}:assumed-role/AWSReservedSSO_Admin_0a1b2c/jane.doe"
        monkeypatch.setattr(prove, "_caller", lambda _: {"Account": account, "Arn": arn})
        request = Request("dev", Decimal(100), "destroy", is_emulated=False)
        return Climb.of(request, {**raw(), **others}, starts_again=starts_again)

    return make


def kept(climb: Climb, *, usd_per_hour: int, **states: str) -> None:
    """Keep a report in which something stands, or nothing."""
    climb.proof = climb.proof.model_copy(
        update={
            "spans": (Span(since=START, usd_per_hour=Decimal(usd_per_hour)),),
            "rungs": tuple(
                RungRecord.model_validate({"name": name, "state": state, "worst_usd": 0})
                for name, state in states.items()
            ),
        }
    )
    climb._save()


def test_a_walk_continues_in_its_account_alone(of_account: Callable[..., Climb]) -> None:
    first = of_account("111111111111")
    kept(first, usd_per_hour=1, storage="done")
    again = of_account("111111111111")
    assert again.proof.rung("storage") is not None
    assert again.walk.redactor.salt == first.walk.redactor.salt
    with pytest.raises(OperationError, match="account: got 222222222222; allowed: 111111111111"):
        of_account("222222222222")
    for others in ({"name": "other"}, {"zone_id": "usw2-az1"}, {"region": "us-east-1", "zone_id": "use1-az6"}):
        with pytest.raises(OperationError) as raised:
            of_account("111111111111", **others)
        assert [line.split(":")[0].strip() for line in str(raised.value).splitlines()[1:]] == [*others]
    with pytest.raises(OperationError, match="still exists"):
        of_account("111111111111", starts_again=True)
    assert (first.walk.report / "report.json").exists()


def test_a_complete_report_is_replaced_only_if_that_is_asked(of_account: Callable[..., Climb]) -> None:
    first = of_account("111111111111")
    kept(first, usd_per_hour=0, storage="done", destroy="done")
    with pytest.raises(OperationError, match="complete"):
        of_account("111111111111")
    assert of_account("222222222222", starts_again=True).proof.rungs == ()


def test_a_report_that_is_none_is_not_overwritten(of_account: Callable[..., Climb]) -> None:
    first = of_account("111111111111")
    kept(first, usd_per_hour=1)
    (first.walk.folder / "private.json").write_text("[]", encoding="utf-8")
    with pytest.raises(UnusableError, match=r"private\.json"):
        of_account("111111111111")


def test_a_question_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "w") as person:
        monkeypatch.setattr("sys.stdin", stdin)
        assert answered("? ", 0) == ""
        person.write(" Storage\n")
        person.flush()
        assert answered("? ", None) == "storage"


def test_what_was_typed_before_a_question_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    person, terminal = pty.openpty()
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        os.write(person, b"storage\n")
        assert answered("? ", 0) == ""
        monkeypatch.setattr(prove, "tell", lambda *_, **__: os.write(person, b"head-node\n"))
        assert answered("? ", None) == "head-node"
    os.close(person)


def test_a_question_ends_by_the_clock_although_the_computer_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """https://man7.org/linux/man-pages/man2/clock_gettime.2.html: CLOCK_MONOTONIC does not count time asleep."""
    waited: list[float] = []

    def select(*given: Any) -> tuple[list[int], list[int], list[int]]:
        waited.append(given[3])
        return [], [], []

    now = iter([START, START, START + timedelta(days=2)])
    monkeypatch.setattr("select.select", select)
    monkeypatch.setattr(prove, "datetime", Mock(now=lambda _: next(now)))
    assert answered("? ", 7200) == ""
    assert [each <= 60 for each in waited] == [True, True]


@pytest.mark.usefixtures("walked")
def test_the_guide_has_what_rungs_may_take_and_cost(tmp_path: Path) -> None:
    rows = []
    for rung in RUNGS[:-1]:
        choices = Choices(Decimal(2000))
        (tmp_path / "dev.yaml").write_text(yaml.safe_dump(settings_of(raw(), rung.name, choices)), encoding="utf-8")
        rates = money.rates_of(
            load(tmp_path / "dev.yaml"), rung, choices.nodes_of(rung, ("trn1", "trn1-32xl"))
        )  # fmt: skip
        rows.append(f"| `{rung.name}` | {rung.minutes / 60:g} | {money.worst(rates, rung.minutes):,.0f} |")
    assert "\n".join(rows) in (options.ROOT / "docs/guides/prove.md").read_text(encoding="utf-8")


def test_rungs_grow_the_cluster_and_never_beyond_their_nodes() -> None:
    counts = {}
    for rung in RUNGS:
        queues = settings_of(raw(), rung.name, Choices(Decimal(100)))["cluster"]["queues"]
        counts[rung.name] = {each["name"]: each["compute_resources"][0]["max_count"] for each in queues}
        assert all(each["compute_resources"][0]["min_count"] == 0 for each in queues)
    assert counts["head-node"] == {"trn1": 2}
    assert counts["one-chip"] == {"trn1": 2, "small": 1}
    assert counts["sixteen-nodes"] == {"trn1": MANY, "small": 1}


@pytest.mark.parametrize(("given", "minutes"), [(None, 10), (-1, 10), (525_600, 10), (5, 5), (11, 10), (0, 0)])
def test_nodes_end_when_they_are_idle_whatever_the_settings_say(tmp_path: Path, given: object, minutes: int) -> None:
    made = raw()
    made["cluster"]["slurm"] = {} if given is None else {"idle_minutes": given}
    path = tmp_path / "dev.yaml"
    path.write_text(yaml.safe_dump(settings_of(made, "two-nodes", Choices(Decimal(100)))), encoding="utf-8")
    assert load(path).cluster.slurm.idle_minutes == minutes
