"""A program that the project does not know, under the launcher: the four functions, and what the job sees by them."""

from __future__ import annotations

import json
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
    place = ["--nnodes", "1", "--node-rank", "0", "--nproc-per-node", str(ranks), "--max-restarts", "0"]
    address = ["--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    environment = {
        **ENVIRONMENT,
        "ULTRACLUSTER_RUN": str(output),
        "ULTRACLUSTER_PROGRAM": "/a/165b/mine",
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


def test_a_killed_rank_ends_the_run_which_continues_from_its_newest_checkpoint(
    tmp_path: Path, undisturbed: dict[int, float]
) -> None:
    dying = changed(
        tmp_path, "optimizer.zero_grad()", "if step == 8 and os.environ['RANK'] == '1': os.kill(os.getpid(), 9)"
    )
    assert run(tmp_path / "run", dying).returncode == 137
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


@pytest.mark.parametrize("damage", [b"", b"half"])
def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, undisturbed: dict[int, float], damage: bytes) -> None:
    assert run(tmp_path / "run").returncode == 0
    newest = tmp_path / "run/checkpoints/step-10"
    content = newest.read_bytes()
    newest.write_bytes(content[: len(content) // 2] if damage else b"")
    done = run(tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert f"Checkpoint {newest} is passed over: step-10" in done.stderr
    assert losses(tmp_path / "run") == undisturbed
    assert json.loads((tmp_path / "run/run.json").read_text())["attempts"][1]["resumed_step"] == 5


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
    assert (tmp_path / "run/.diverged").read_text().split() == ["3"]
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


@pytest.mark.parametrize("numbers", [(0, 1.0), (1, "2"), (1, 2.0, {"tokens": "many"})])
def test_what_is_no_step_is_refused(numbers: tuple[object, ...]) -> None:
    from ultracluster_job import log

    step, loss, *further = numbers
    with pytest.raises(ValueError, match="allowed: a step from 1 on, and numbers"):
        log(step, loss, **(further[0] if further else {}))  # type: ignore[arg-type]
