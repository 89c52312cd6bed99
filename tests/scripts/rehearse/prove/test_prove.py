"""What a walk decides: with rungs that do nothing, and an AWS that is a number of nodes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import load
from scripts.check.estimate.prices import Prices
from scripts.core import options
from scripts.core.errors import ExitCode, OperationError, UnusableError
from scripts.rehearse.prove import money, prove
from scripts.rehearse.prove.assumptions import assumptions
from scripts.rehearse.prove.ladder import MANY, NAMES, RUNGS, Choices, Raw, settings_of, violations
from scripts.rehearse.prove.money import Span
from scripts.rehearse.prove.prove import Climb, Request, answered, raw_of
from scripts.rehearse.prove.redact import Redactor
from scripts.rehearse.prove.report import Proof, RungRecord, unseen
from scripts.rehearse.prove.rungs import CLIMBED
from scripts.rehearse.prove.walk import Ran, RungError, TimeUpError, Walk

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
    stops = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.commands: list[str] = []

    def _run(self, shown: list[str], words: list[str]) -> Ran:
        self.check_time()
        self.commands.append(" ".join(shown[1:3]))
        if shown[1:3] == ["fleet", "stop"] and self.stops:
            self.nodes = 0
        if shown[1] == "destroy":
            self.nodes, self.stacks = 0, False
        self.keep(Path("logs") / f"{len(self.commands):03}.txt", PRIVATE)
        return Ran(ExitCode.DONE, "{}", "", 1.0, f"logs/{len(self.commands):03}.txt")

    def copy_checkout(self) -> None:
        pass

    def end_jobs(self, minutes: int) -> None:
        self.commands.append(f"end-jobs {minutes}")

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
            "dev", raw(), self.folder, Choices(Decimal(limit)), False, Redactor("salt", ("ada",)), lambda _: None,
            lambda _: None, self.clock,
        )  # fmt: skip
        self.made.stacks = bool(self.earlier)
        self.made.stops = self.stops
        proof = self.earlier or Proof(
            deployment="dev", region="us-west-2", zone_id="usw2-az4", cloud="aws", versions={},
            limit_usd=Decimal(limit), observations=unseen("aws"),
        )  # fmt: skip
        self.climb = Climb(request, self.made, proof)
        return self.climb.climb()

    stops = True

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
        return answer

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


@pytest.mark.parametrize("limit", [5, 7, 9, 12, 20, 170, 1000, 1300])
@pytest.mark.parametrize("pace", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("answer", ["at once", "sleeps"])
def test_the_limit_holds_whatever_rungs_and_people_do(walked: Walked, limit: int, pace: float, answer: str) -> None:
    """Rungs may take longer than they may, nodes may not stop, and nobody may answer."""
    walked.minutes = {each.name: int(each.minutes * pace) for each in RUNGS} | {"destroy": money.MINUTES_TO_DESTROY}
    walked.stops = pace < 3
    if answer == "sleeps":
        walked.answers = ["storage", "head-node", "sleeps", "sleeps"]
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
    assert "fleet stop" in commands
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
    walked.errors, walked.rungs, walked.asked = {}, [], []
    walked.earlier = prove._earlier(walked.folder)
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


@pytest.fixture
def of_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Climb]:
    """Return a function that makes the walk of a command, with the credentials of an account."""
    monkeypatch.setattr(options, "BUILD", tmp_path)

    def make(account: str, *, starts_again: bool = False) -> Climb:
        monkeypatch.setattr(prove, "_account", lambda _: account)
        return Climb.of(Request("dev", Decimal(100), "destroy", is_emulated=False), raw(), starts_again=starts_again)

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
    with pytest.raises(OperationError, match="another account"):
        of_account("222222222222")
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
    (first.walk.report / "report.json").write_text("[]", encoding="utf-8")
    with pytest.raises(UnusableError, match=r"report\.json"):
        of_account("111111111111")


def test_a_question_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "w") as person:
        monkeypatch.setattr("sys.stdin", stdin)
        assert answered("? ", 0) == ""
        person.write(" Storage\n")
        person.flush()
        assert answered("? ", None) == "storage"


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
