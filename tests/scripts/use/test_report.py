"""What `runs show` and `runs list` print of runs: finished, in progress, resumed, missing or damaged."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from scripts.account.remote.head_node import Answer
from scripts.core.report import Table
from scripts.use import runs as on_cluster
from scripts.use.report import compare
from tests.command_line import Call, ultracluster
from ultracluster_job.records import METRICS, RUN, Attempt, Step

START = 1_790_000_000.0
FIRST = Attempt(started=START, resumed_step=0, nodes=1, workers=32, hosts=["trn1-st-1"], job="17", restarts=0)
STEP = Step(
    step=1,
    time=START + 10,
    loss=11.0,
    seconds=4.0,
    further={
        "mlm_loss": 10.3,
        "compute_seconds_mean": 3.1,
        "compute_seconds_max": 3.2,
        "slowest_rank": 5,
        "slowest_host": "trn1-st-1",
        "waited_for_devices": True,
        "data_seconds": 0.04,
        "checkpoint_seconds": 0.02,
        "sequences": 16384,
        "tokens": 2097152,
        "sequences_per_second": 4096.0,
        "sequences_per_second_per_node": 4096.0,
        "tokens_per_second": 524288.0,
        "mfu": 0.319,
    },
)


def step(number: int, **further: Any) -> Step:
    known = {**STEP.further, **further}
    return replace(STEP, step=number, time=START + 10 * number, loss=11 - number / 1000, further=known)


def write(
    directory: Path,
    steps: Sequence[Step],
    attempts: Sequence[Attempt] = (FIRST,),
    options: Mapping[str, Any] | None = None,
) -> Path:
    directory.mkdir(parents=True)
    noted = [asdict(attempt) for attempt in attempts]
    facts = {"program": "bert", "options": options or {"steps": 100}, "attempts": noted}
    (directory / RUN).write_text(json.dumps(facts))
    (directory / METRICS).write_text("".join(json.dumps(each.line()) + "\n" for each in steps))
    return directory


def rows(*runs: Path) -> dict[str, list[list[str]]]:
    tables = (each for each in compare(runs).blocks() if isinstance(each, Table))
    return {table.title: [list(row) for row in table.rows] for table in tables if table.rows}


@pytest.fixture
def run(call: Call) -> Call:
    return lambda *runs: call("runs", "show", *map(str, runs))


def test_slower_steps_have_a_table(tmp_path: Path) -> None:
    steps = [step(number, sequences_per_second=4096.0 if number < 40 else 1024.0) for number in range(1, 80)]
    assert rows(write(tmp_path / "one", steps))["Slower than before"] == [["one", "40", "25.0%"]]


def test_the_tables_have_the_summary_of_a_run(tmp_path: Path) -> None:
    slow = step(7, compute_seconds_max=4.1, evaluation_loss=9.5)
    printed = rows(write(tmp_path / "one", [slow if number == 7 else step(number) for number in range(1, 11)]))
    assert printed["Speed"] == [
        ["one", "bert", "1", "32", *["4,096.0"] * 3, "524,288", "31.9%", "100.0%", "9.0%", "1.0%", "0.5%"]
    ]
    progress = ["one", "10 of 100", "163,840", "20,971,520", "10.9990", "10.9900", "9.5000, 7", "0:00:40", "1"]
    assert printed["Progress"] == [[*progress, "2026-09-21 14:15:00"]]
    assert printed["Attempts"] == [["one", "1", "2026-09-21 14:13:20", "0", "1", "32", "17", "0"]]
    assert printed["Stragglers"] == [["one", "5", "trn1-st-1", "1", "1.0"]]
    assert "Stragglers" not in rows(write(tmp_path / "two", [step(1)]))


def test_runs_are_compared_with_one_of_the_same_work_on_one_node(tmp_path: Path) -> None:
    of_phases = [write(tmp_path / f"phase-{phase}", [step(1)], options={"phase": phase}) for phase in (1, 2)]
    wide = replace(FIRST, nodes=4)
    four = write(tmp_path / "four", [step(1, sequences_per_second_per_node=1024.0)], [wide], {"phase": 2})
    three = write(tmp_path / "three", [step(1)], [wide, FIRST], {"phase": 3})
    assert [row[9] for row in rows(*of_phases, four, three)["Speed"]] == ["100.0%", "100.0%", "25.0%", "-"]


def test_runs_of_the_same_name_go_by_their_paths(tmp_path: Path) -> None:
    same = [write(tmp_path / parent / "run", [step(1)]) for parent in ("a", "b")]
    assert [each.name for each in compare(same).runs] == [str(path) for path in same]
    assert [each.name for each in compare(same[:1]).runs] == ["run"]


def test_the_output_compares_runs_and_names_the_command_that_shows_curves(run: Call, tmp_path: Path) -> None:
    runs = [write(tmp_path / "runs" / name, [step(1)]) for name in ("one", "[b]two")]
    code, text, _ = run(*runs)
    assert code == 0
    assert "[b]two" in text
    assert text.splitlines()[-1] == f"  tensorboard --logdir {tmp_path / 'runs'}"
    assert run(runs[0])[1].endswith(f"tensorboard --logdir {runs[0]}\n")


def test_programs_get_the_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = write(tmp_path / "one", [step(1), step(2)])
    assert ultracluster("runs", "show", str(directory), "--output", "json") == 0
    [compared] = json.loads(capsys.readouterr().out)["runs"]
    assert (compared["name"], compared["wanted_steps"], compared["summary"]["steps"]) == ("one", 100, 2)
    assert compared["attempts"] == [asdict(FIRST)]


def test_damaged_and_missing_runs_are_refused(run: Call, tmp_path: Path) -> None:
    good, bad = write(tmp_path / "good", [step(1)]), write(tmp_path / "bad", [])
    code, text, error = run(good, bad, tmp_path / "missing")
    assert (code, text) == (2, "")
    first, second = error.splitlines()[:2]
    assert "has no step yet" in first
    assert str(bad) in first
    assert second.startswith(f"{tmp_path / 'missing'} is not the directory of a run")


class LocalHeadNode:
    """Runs scripts on this machine."""

    instance_id = "i-1"

    def run(self, script: str, **_: Any) -> Answer:
        local = f'runuser() {{ shift 2; "$@"; }}; {script}'
        done = subprocess.run(["sh", "-c", local], capture_output=True, text=True, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def head_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.use.report.HeadNode", lambda _: LocalHeadNode())


@pytest.mark.usefixtures("head_node")
def test_runs_on_a_cluster_are_compared_as_those_on_this_machine(tmp_path: Path, run: Call) -> None:
    runs = [write(tmp_path / name, [step(number) for number in range(1, 9)]) for name in ("one", "two")]
    here, there = (run(*words, "--output", "json") for words in (runs, ("trn1-16", *runs)))
    assert (there.code, json.loads(there.output)) == (0, json.loads(here.output))
    assert (
        'Curves, on the head node:\n  "$ULTRACLUSTER_PYTHON/bin/tensorboard" --logdir' in run("trn1-16", *runs).output
    )


@pytest.mark.usefixtures("head_node")
def test_a_run_that_is_not_on_this_machine_is_looked_for_on_the_cluster(
    tmp_path: Path, run: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "missing"
    assert run(missing).error.endswith("hint: of a run on a cluster, ./ultracluster runs show DEPLOYMENT RUN\n")
    monkeypatch.setenv("ULTRACLUSTER_DEPLOYMENT", "trn1-16")
    moved = write(tmp_path / "moved", [step(1)])
    is_dir = Path.is_dir
    monkeypatch.setattr(Path, "is_dir", lambda path: path != moved and is_dir(path))
    assert "Curves, on the head node" in run(moved).output
    code, text, error = run(moved, missing)
    assert (code, text) == (2, "")
    assert f"{missing} is not the directory of a run: [Errno 2]" in error
    assert run("runs/a").code == 2


@pytest.mark.usefixtures("head_node")
def test_records_that_somebody_else_wrote_are_read_with_care(tmp_path: Path, run: Call) -> None:
    """No link, pipe or device is opened, and an answer has a length."""
    linked, piped = write(tmp_path / "linked", [step(1)]), write(tmp_path / "piped", [step(1)])
    (linked / METRICS).rename(tmp_path / "elsewhere")
    (linked / METRICS).symlink_to(tmp_path / "elsewhere")
    (piped / METRICS).unlink()
    os.mkfifo(piped / METRICS)
    code, _, error = run("trn1-16", linked, piped)
    assert code == 2
    assert "Too many levels of symbolic links" in error
    assert "not a regular file" in error
    wide = replace(FIRST, hosts=[f"trn1-st-trn1-32xl-{number}" for number in range(1875)])
    many = write(tmp_path / "many", [step(1)], [wide] * 200)
    answered = run("trn1-16", many, "--output", "json")
    [compared] = json.loads(answered.output)["runs"]
    assert compared["summary"]["attempts"] == 200
    assert 1 < len(compared["attempts"]) < 200
    text = write(tmp_path / "text", [step(1)], options={"steps": "x" * 9})
    assert run("trn1-16", text).code == 2


def test_the_runs_of_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(on_cluster, "HeadNode", lambda _: LocalHeadNode())
    write(tmp_path / "a", [step(1), step(2)])
    write(tmp_path / "team" / "b", [step(1), step(2), step(3)])
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / RUN).write_text("{", encoding="utf-8")
    with (tmp_path / "a" / METRICS).open("a", encoding="utf-8") as metrics:
        metrics.write('{"step": 3')  # still being written
    words = ["runs", "list", "trn1-16", "--directory", str(tmp_path)]
    assert ultracluster(*words, "--output", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["total"] == 3
    assert [(Path(each["directory"]).name, each["step"]) for each in document["runs"]] == [
        ("b", 3),
        ("a", 2),
        ("c", None),
    ]
    assert "JSONDecodeError" in document["runs"][2]["problem"]
    assert ultracluster(*words) == 0
    assert "3 of 100" in capsys.readouterr().out


def test_an_answer_that_is_no_list_of_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(LocalHeadNode, "run", lambda *_, **__: Answer(0, "Stale file handle\n", ""))
    monkeypatch.setattr(on_cluster, "HeadNode", lambda _: LocalHeadNode())
    assert ultracluster("runs", "list", "trn1-16") == 1
    assert capsys.readouterr().err == "error: The head node i-1 did not say runs: Stale file handle\n"
