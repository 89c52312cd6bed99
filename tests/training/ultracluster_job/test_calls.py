"""A program that the project does not know, under the launcher: the four functions, and what the job sees by them."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.training.ultracluster_job.test_launch import ENVIRONMENT, LAUNCH
from ultracluster_job import calls, heartbeat
from ultracluster_job.watchdog import STALLED

MINE = Path(__file__).parents[1] / "mine/train.py"
STEPS = 12


def run(output: Path, program: Path = MINE, ranks: int = 2, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program as a node does."""
    output.mkdir(exist_ok=True)
    folder = output.parent / "165b/mine"
    folder.mkdir(parents=True, exist_ok=True)
    place = ["--nnodes", "1", "--node-rank", "0", "--nproc-per-node", str(ranks), "--max-restarts", "0"]
    address = ["--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    environment = {
        **ENVIRONMENT,
        "ULTRACLUSTER_RUN": str(output),
        "ULTRACLUSTER_PROGRAM": str(folder),
        "OMP_NUM_THREADS": "1",
        **variables,
    }
    command = [*LAUNCH, *place, *address, str(program), str(STEPS)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def changed(directory: Path, old: str, new: str) -> Path:
    """Return the program with a change."""
    text = MINE.read_text(encoding="utf-8")
    assert old in text
    program = directory / "train.py"
    program.write_text(text.replace(old, f"{new}\n    {old}"), encoding="utf-8")
    return program


def losses(output: Path) -> dict[int, float]:
    lines = (output / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return {line["step"]: line["loss"] for line in map(json.loads, lines)}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    output = tmp_path_factory.mktemp("undisturbed")
    done = run(output)
    assert done.returncode == 0, done.stderr
    return losses(output)


@pytest.mark.scenario
def test_a_killed_rank_ends_the_run_which_continues_from_its_newest_checkpoint(
    tmp_path: Path, undisturbed: dict[int, float]
) -> None:
    dying = changed(
        tmp_path, "optimizer.zero_grad()", "if step == 8 and os.environ['RANK'] == '1': os.kill(os.getpid(), 9)"
    )
    assert run(tmp_path / "run", dying).returncode in (1, 134, 137)  # what its end does to the other may be seen first
    assert list(losses(tmp_path / "run")) == list(range(1, 8))
    done = run(tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert losses(tmp_path / "run") == undisturbed
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert [each["resumed_step"] for each in record["attempts"]] == [0, 5]
    assert (record["program"], record["versions"], record["options"]) == (
        "mine", {"program": "165b"}, {"arguments": [str(STEPS)]},
    )  # fmt: skip
    assert "step 12 of 12: loss " in done.stdout


@pytest.mark.scenario
@pytest.mark.parametrize("damage", [b"", b"half"])
def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, undisturbed: dict[int, float], damage: bytes) -> None:
    assert run(tmp_path / "run").returncode == 0
    newest = tmp_path / "run/checkpoints/step-10"
    content = newest.read_bytes()
    newest.write_bytes(content[: len(content) // 2] if damage else b"")
    done = run(tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert f"Checkpoint {newest} is passed over: " in done.stderr
    assert losses(tmp_path / "run") == undisturbed
    assert json.loads((tmp_path / "run/run.json").read_text())["attempts"][1]["resumed_step"] == 5


@pytest.mark.scenario
def test_all_ranks_stop_at_the_same_step_and_lose_none(tmp_path: Path, undisturbed: dict[int, float]) -> None:
    asking = changed(
        tmp_path, "stop = stop_requested()", "if step == 7 and os.environ['RANK'] == '1': (output / 'stop').touch()"
    )
    done = run(tmp_path / "run", asking)
    assert done.returncode == 75, done.stderr
    assert max(losses(tmp_path / "run")) in (7, 8)
    (tmp_path / "run/stop").unlink()
    assert run(tmp_path / "run").returncode == 0
    assert losses(tmp_path / "run") == undisturbed


def test_a_loss_that_is_not_finite_is_no_step_and_ends_the_run(tmp_path: Path) -> None:
    bad = changed(tmp_path, "optimizer.zero_grad()", "if step == 3: loss = loss * float('nan')")
    done = run(tmp_path / "run", bad)
    assert done.returncode == 3
    assert "Step 3: the loss is nan." in done.stderr
    assert (tmp_path / "run/.diverged").read_text().split() == ["3", os.uname().nodename] * 2
    assert list(losses(tmp_path / "run")) == [1, 2]


@pytest.mark.parametrize(
    ("step", "start", "told"), [(11, "7200", "after step 10 it "), (1, "2", "it has not told anything yet")]
)
def test_a_rank_that_hangs_is_named(tmp_path: Path, step: int, start: str, told: str) -> None:
    hanging = changed(tmp_path, "beat()", f"if step == {step} and os.environ['RANK'] == '1': os.kill(os.getpid(), 19)")
    done = run(tmp_path / "run", hanging, ULTRACLUSTER_STALL_SECONDS="2", ULTRACLUSTER_START_SECONDS=start)
    assert done.returncode == STALLED
    [line, *_] = [line for line in done.stderr.splitlines() if line.startswith("stalled: rank 1 on ")]
    assert told in line


def test_a_program_that_only_asks_is_not_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(heartbeat.DIRECTORY, str(tmp_path))
    monkeypatch.setenv("ULTRACLUSTER_RUN", str(tmp_path))
    beats = heartbeat.Beats(tmp_path, workers=1)
    monkeypatch.setattr(calls, "_job", cache(calls._Job))
    assert (calls.resume_directory(), calls.stop_requested()) == (None, False)
    assert beats.read()[0].count == 0
    calls.beat()
    assert beats.read()[0].limit > 0


def test_outside_of_a_job_the_functions_do_nothing(tmp_path: Path) -> None:
    text = (
        "from ultracluster_job import *\n"
        "beat(); log(1, 2.0, any_name=3); assert not stop_requested() and resume_directory() is None\n"
        "import sys; assert 'torch' not in sys.modules\n"
    )
    program = "from ultracluster_job import beat, log, resume_directory, stop_requested\n" + text.partition("\n")[2]
    done = subprocess.run(
        [LAUNCH[0], "-c", program], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr, list(tmp_path.iterdir())) == (0, "", [])


@pytest.mark.parametrize(
    "numbers",
    [(-1, 1.0), (1.5, 1.0), (1, "2"), (1, 2.0, {"tokens": "many"}), (1, 2.0, {"a": 10**400}), (1, 2.0, {"time": 1})],
)
def test_what_is_no_step_is_refused(numbers: tuple[object, ...]) -> None:
    from ultracluster_job import log

    step, loss, *further = numbers
    with pytest.raises(ValueError, match=r"^log: got .*; allowed: "):
        log(step, loss, **(further[0] if further else {}))  # type: ignore[arg-type]


SAVING = """\
import os, sys, time
from pathlib import Path
from ultracluster_job import log, stop_requested
rank, output = os.environ["RANK"], Path(os.environ["ULTRACLUSTER_RUN"])
for step in range(1, 100):
    log(step, 1.0)
    (output / "stop").touch()
    if stop_requested():
        if rank == "0":
            time.sleep(2)
            (output / "checkpoints").mkdir()
            (output / f"checkpoints/step-{step}").write_text("whole")
        sys.exit(75)
"""


def test_a_rank_that_saves_at_the_stop_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SAVING, encoding="utf-8")
    done = run(tmp_path / "run", tmp_path / "train.py")
    assert done.returncode == 75, done.stderr
    assert [path.name for path in (tmp_path / "run/checkpoints").iterdir()] == ["step-1"]


ENDING = """\
import os, time
from ultracluster_job import beat, log
for step in range(1, 13):
    time.sleep(0.05)
    log(step, 1.0, steps=int(os.environ["TOLD"]))
if os.environ["RANK"] == "0":
    for _ in range(int(os.environ["BEATS"])):
        time.sleep(0.1)
        beat()
    time.sleep(float(os.environ["SILENT"]))
"""


@pytest.mark.parametrize(("told", "beats", "silent"), [(12, 0, 4), (99, 40, 0)])
def test_a_rank_that_works_on_after_the_last_step_or_another_ends_is_not_stalled(
    tmp_path: Path, told: int, beats: int, silent: int
) -> None:
    (tmp_path / "train.py").write_text(ENDING, encoding="utf-8")
    variables = {"TOLD": str(told), "BEATS": str(beats), "SILENT": str(silent)}
    done = run(tmp_path / "run", tmp_path / "train.py", 2, ULTRACLUSTER_STALL_SECONDS="2", **variables)
    assert done.returncode == 0, done.stderr


def test_what_is_logged_now_and_then_and_from_another_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of one are numbers; a loop that counts from 0, and logs every hundredth, resumed at its checkpoint."""
    program = """\
import torch
from ultracluster_job import log, resume_directory
checkpoint = resume_directory()
first = int(checkpoint.name[5:]) if checkpoint else 0
for step in range(first, first + 300, 100):
    log(torch.tensor(step), torch.tensor([2.0]), anything=torch.tensor(3.0), lost=float("inf"))
"""
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    assert run(tmp_path / "run", tmp_path / "train.py", ranks=1).returncode == 0
    (tmp_path / "run/checkpoints").mkdir()
    (tmp_path / "run/checkpoints/step-250").write_text("whole")
    (tmp_path / "run/checkpoints/step-4.tmp.4711").write_text("half")
    done = run(tmp_path / "run", tmp_path / "train.py", ranks=1)
    assert done.returncode == 0, done.stderr
    assert list(losses(tmp_path / "run")) == [0, 100, 200, 250, 350, 450]
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert [each["resumed_step"] for each in record["attempts"]] == [0, 250]
    line = json.loads((tmp_path / "run/metrics.jsonl").read_text().splitlines()[-1])
    assert (line["anything"], "lost" in line) == (3.0, False)
