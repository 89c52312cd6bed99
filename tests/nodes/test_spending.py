"""What the head node counts that nodes cost, and what it does at the limit; tests/end_to_end/slurm has Slurm itself."""

from __future__ import annotations

from calendar import timegm
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodes.metrics.cloudwatch import CloudWatch, Metric
from nodes.metrics.head_node import HeadNode, Node, guard, price_of
from nodes.metrics.spending import DIRECTORY, OVERRULED, Budget, Spending, changes
from tests.fake_commands import write_commands
from ultracluster.domain import budget
from ultracluster.domain.budget import BudgetSpec

NOVEMBER = timegm((2026, 11, 1, 0, 0, 0))
HOUR = 3600.0


def test_the_head_node_reads_what_the_settings_write() -> None:
    spec = BudgetSpec(monthly_usd=1_234_567.5, action="drain", usd_per_hour={"c6i.large": 0.00001})
    argument = budget.argument(spec, "us-west-2", ["trn1.32xlarge", "c6i.large"])
    assert Budget.of(argument) == Budget(1_234_567.5, "drain", {"trn1.32xlarge": 21.5, "c6i.large": 0.00001})


def test_nodes_that_have_instances_cost(tmp_path: Path) -> None:
    def node(state: str, address: str = "10.0.0.1") -> Node:
        return Node("a-dy-b-1", address, frozenset(state.split("+")), frozenset({"dynamic", "trn1.32xlarge", "b"}))

    running = ("IDLE+CLOUD+POWERING_UP", "IDLE+CLOUD+POWER_DOWN", "DOWN+CLOUD", "IDLE+CLOUD+DRAIN", "ALLOCATED+CLOUD")
    assert all(node(state).is_running for state in running)
    assert not any(node(state).is_running for state in ("IDLE+CLOUD+POWERED_DOWN", "IDLE+CLOUD+POWERING_DOWN"))
    without = ("DOWN+CLOUD", "DOWN+CLOUD+NOT_RESPONDING+POWERING_UP", "IDLE+CLOUD+POWERING_UP")
    assert not any(node(state, "a-dy-b-1").is_running for state in without), "EC2 had no capacity for it"
    assert [state for state in (*running, "IDLE+CLOUD") if node(state).is_idle] == [
        "IDLE+CLOUD+POWER_DOWN",
        "IDLE+CLOUD",
    ]
    assert price_of(node("IDLE"), {"trn1.32xlarge": 21.5, "trn1.2xlarge": 1.3}) == 21.5


def test_it_counts_through_restarts_months_and_clusters(tmp_path: Path) -> None:
    def add(timestamp: float, rate: float, cluster: str = "a") -> float | None:
        return Spending(tmp_path / DIRECTORY, cluster).add(timestamp, rate)  # each time after a restart

    assert add(NOVEMBER - 60, 60) == 0, "nobody knows what was before"
    assert add(NOVEMBER + 60, 120) == pytest.approx(1), "the last minute of October is another month's"
    assert add(NOVEMBER + 120, 120) == pytest.approx(3)
    assert add(NOVEMBER + 120, 60, "b") == pytest.approx(3)
    assert add(NOVEMBER + 180, 60, "b") == pytest.approx(4), "of both clusters"
    assert add(NOVEMBER + 120 + HOUR, 20) == pytest.approx(4 + 20), "of an hour of silence what ran before and after"
    assert add(NOVEMBER, 20) == pytest.approx(24), "a clock that is set back costs nothing"
    december = NOVEMBER + 30 * 24 * HOUR
    assert add(december + 360, 20) == pytest.approx(2), "in the next month all clusters start again"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"month": 1}', "\xff"])
def test_a_damaged_record_ends_nothing_and_is_kept(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text(text, encoding="latin-1")
    spending = Spending(tmp_path, "a")
    assert [spending.add(NOVEMBER, 60), spending.add(NOVEMBER + 60, 0)] == pytest.approx([0, 1])
    said = capsys.readouterr().out
    assert "a.json tells nothing" in said
    assert f"from now on; {tmp_path}/a.damaged" in said
    assert "`scontrol update partition=QUEUE state=up` opens one" in said
    assert (tmp_path / "a.damaged").read_text(encoding="latin-1") == text


def test_what_cannot_be_read_is_not_zero_and_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of an error of the file system, of this cluster's file or another's, and of one that is not mounted."""
    directory, mounts = tmp_path / DIRECTORY, {tmp_path}
    monkeypatch.setattr(Path, "is_mount", lambda path: path in mounts)
    for cluster in ("a", "b"):
        Spending(directory, cluster).add(NOVEMBER, 60)
        assert Spending(directory, cluster).add(NOVEMBER + 60, 60)
    restarted = Spending(directory, "a", tmp_path)
    for name in ("a.json", "b.json"):
        kept = (directory / name).rename(directory / "kept")
        (directory / name).mkdir()  # so that reading it is an error
        assert restarted.add(NOVEMBER + 120, 60) is None
        (directory / name).rmdir()
        kept.rename(directory / name)
    mounts.clear()
    away = directory.rename(tmp_path / "away")
    assert restarted.add(NOVEMBER + 120, 60) is None
    assert not directory.exists(), "nothing is written below the mount point"
    assert "is not mounted" in capsys.readouterr().out
    away.rename(directory)
    mounts.add(tmp_path)
    assert restarted.add(NOVEMBER + 180, 60) == pytest.approx(1 + 3), "the minutes between are counted"
    mounts.clear()
    assert restarted.add(NOVEMBER + 240, 60) is None, "others' spending is not zero either"


def test_on_a_full_file_system_it_counts_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    spending = Spending(tmp_path, "a")
    assert [spending.add(NOVEMBER, 60), spending.add(NOVEMBER + 60, 0)] == pytest.approx([0, 1])
    assert "is not kept" in capsys.readouterr().out


STATES = {"a": "UP", "b": "DRAIN", "c": "INACTIVE", "d": "DOWN"}


@pytest.mark.parametrize(
    ("action", "spent", "closed", "changed"),
    [
        ("drain", 99, [], {}),
        ("drain", 100, [], {"a": "DOWN", "b": "DOWN"}),
        ("stop", 100, ["d"], {"a": "DOWN", "b": "DOWN"}),
        ("none", 100, [], {}),
        ("drain", 99, ["a", "d"], {"d": "UP"}),
        ("none", 100, ["d"], {"d": "UP"}),
    ],
)
def test_queues_are_closed_at_the_limit_and_those_open_again_below_it(
    action: str, spent: float, closed: list[str], changed: dict[str, str]
) -> None:
    assert changes(Budget(100, action, {}), spent, STATES, closed) == changed


def test_a_person_overrules_it_for_a_month(tmp_path: Path) -> None:
    spending = Spending(tmp_path, "a")
    spending.add(NOVEMBER, 0)
    assert not spending.is_overruled()
    (tmp_path / OVERRULED).write_text("2026-11\n", encoding="ascii")
    assert spending.is_overruled()
    spending.add(NOVEMBER + 31 * 24 * HOUR, 0)
    assert not spending.is_overruled()


class Recorder(CloudWatch):
    """Keeps what it is to send."""

    def __init__(self) -> None:
        super().__init__("us-west-2")
        self.sent: list[dict[str, float]] = []

    def send(self, metrics: Sequence[Metric], timestamp: float) -> bool:
        self.sent.append({metric.name: metric.value for metric in metrics})
        return True


class Slurm:
    """Commands of the guard, which are written down; those that match a pattern fail."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.fails("nothing")

    def fails(self, pattern: str) -> None:
        """Let commands fail."""
        text = f'echo "${{0##*/}} $*" >>{self._directory}/called; [[ "$*" != *"{pattern}"* ]]'
        write_commands(self._directory, {"scontrol": text, "scancel": text})

    def called(self) -> list[str]:
        """Return what was called since the last time."""
        calls = self._directory / "called"
        lines = calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        return lines


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return Slurm(tmp_path / "bin")


def test_a_queue_that_slurm_does_not_open_is_opened_later(
    tmp_path: Path, slurm: Slurm, capsys: pytest.CaptureFixture[str]
) -> None:
    spending, budget = Spending(tmp_path, "a"), Budget(100, "drain", {})
    spending.add(NOVEMBER, 0)
    guard(budget, spending, 100, {"a": "UP", "b": "UP", "c": "DOWN"})
    assert (spending.closed, len(slurm.called())) == (["a", "b"], 2)
    slurm.fails("=a State=UP")
    guard(budget, spending, 1, {"a": "DOWN", "b": "DOWN", "c": "DOWN"})
    assert slurm.called() == ["scontrol update PartitionName=a State=UP", "scontrol update PartitionName=b State=UP"]
    spending = Spending(tmp_path, "a")  # a restart
    spending.add(NOVEMBER, 0)
    assert spending.closed == ["a"]
    assert "PartitionName=a" in capsys.readouterr().out
    slurm.fails("nothing")
    guard(budget, spending, 1, {"a": "DOWN", "b": "UP", "c": "DOWN"})
    assert (slurm.called(), spending.closed) == (["scontrol update PartitionName=a State=UP"], [])


def test_a_queue_that_slurm_does_not_close_is_closed_later_and_the_others_at_once(tmp_path: Path, slurm: Slurm) -> None:
    spending, budget = Spending(tmp_path, "a"), Budget(100, "drain", {})
    spending.add(NOVEMBER, 0)
    slurm.fails("=a State=DOWN")
    guard(budget, spending, 100, {"a": "UP", "b": "UP"})
    assert len(slurm.called()) == 2
    slurm.fails("nothing")
    guard(budget, spending, 100, {"a": "UP", "b": "DOWN"})
    assert (slurm.called(), spending.closed) == (["scontrol update PartitionName=a State=DOWN"], ["a", "b"])
    guard(budget, spending, 1, {"a": "INACTIVE", "b": "DRAIN"})
    assert (slurm.called(), spending.closed) == ([], ["a"]), "the fleet is stopped; somebody has changed the other"


def test_jobs_that_run_or_are_suspended_are_cancelled_in_all_queues(tmp_path: Path, slurm: Slurm) -> None:
    """Also in one that a person has closed, which is not opened later."""
    spending, budget = Spending(tmp_path, "a"), Budget(100, "stop", {})
    spending.add(NOVEMBER, 0)
    slurm.fails("--state=RUNNING")
    guard(budget, spending, 100, {"a": "UP", "c": "DOWN"})
    assert slurm.called()[1:] == ["scancel --state=RUNNING", "scancel --state=SUSPENDED"]
    guard(budget, spending, 1, {"a": "DOWN", "c": "DOWN"})
    assert slurm.called() == ["scontrol update PartitionName=a State=UP"]


def test_a_queue_that_a_person_closes_after_it_was_open_stays_closed(tmp_path: Path, slurm: Slurm) -> None:
    """The guard had closed both, a person overruled it and opened one; what that person closes then is no guard's."""
    spending, budget = Spending(tmp_path, "a"), Budget(100, "drain", {})
    spending.add(NOVEMBER, 0)
    guard(budget, spending, 100, {"a": "UP", "b": "UP"})
    (tmp_path / OVERRULED).write_text("2026-11\n", encoding="ascii")
    for states in ({"a": "UP", "b": "DOWN"}, {"a": "DOWN", "b": "DOWN"}):
        guard(budget, spending, 100, states)
    slurm.called()
    spending.add(NOVEMBER + 31 * 24 * HOUR, 0)
    guard(budget, spending, 0, {"a": "DOWN", "b": "DOWN"})
    assert slurm.called() == ["scontrol update PartitionName=b State=UP"]


def test_what_nodes_cost_is_told_although_slurm_closes_no_queue(tmp_path: Path, slurm: Slurm) -> None:
    cloudwatch = Recorder()
    shown = """
        [[ $1 != update ]] || exit 1
        echo "PartitionName=a State=UP"
    """
    nodes = "[[ $* == *drain* ]] || echo a-dy-b-1 10.0.0.1 allocated+cloud dynamic,trn1.32xlarge,b"
    write_commands(tmp_path / "bin", {"scontrol": shown, "sinfo": nodes, "scancel": "exit 1"})
    budget = Budget(20, "stop", {"trn1.32xlarge": 21.5})
    head = HeadNode(cloudwatch, "a", (budget, Spending(tmp_path, "a")))
    for hour in (0, 1):
        head.report(NOVEMBER + hour * HOUR)
    assert [each["NodeUsdThisMonth"] for each in cloudwatch.sent] == [0, 21.5]


def test_what_is_not_known_is_neither_told_nor_opens_queues(tmp_path: Path, slurm: Slurm) -> None:
    cloudwatch = Recorder()
    shown = 'echo "PartitionName=a State=DOWN"'
    write_commands(tmp_path / "bin", {"scontrol": shown, "sinfo": ""})
    spending = Spending(tmp_path / DIRECTORY, "a", tmp_path / "no mount")
    HeadNode(cloudwatch, "a", (Budget(20, "drain", {}), spending)).report(NOVEMBER)
    assert "NodeUsdPerHour" in cloudwatch.sent[0]
    assert "NodeUsdThisMonth" not in cloudwatch.sent[0]
