"""What is kept of a compilation when the program ends on a node, with fakes of environment and program."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.fake_commands import write_commands
from tests.training.step import PROJECT, Step

MODULE = "neuronxcc-2.23.6484.0+3b612583/MODULE_graph+1"
PROGRAM = f"""\
# Compiles one graph, starts another, and ends with $CODE.
mkdir --parents "$NEURON_COMPILE_CACHE_URL/{MODULE}" "$NEURON_COMPILE_CACHE_URL/{MODULE}-half"
echo graph | tee "$NEURON_COMPILE_CACHE_URL/{MODULE}/model.neff" >"$NEURON_COMPILE_CACHE_URL/{MODULE}-half/model.neff"
touch "$NEURON_COMPILE_CACHE_URL/{MODULE}/model.done"
echo "seconds to start: $ULTRACLUSTER_START_SECONDS"
exit "$CODE"
"""
STUCK = """\
# Once it hangs, the time is up: timeout's own alarm rings.
[[ "$*" == *shared* ]] || exec /bin/cp "$@"
kill -s ALRM "$(tail --lines 1 "$GIVEN")"
exec /usr/bin/sleep 20
"""
NOTING_TIMEOUT = 'printf "%s\\n" "$1" "$$" >"$GIVEN"\nexec /usr/bin/timeout "$@"\n'


def run(step: Step, directory: Path, purpose: str, code: int, **fakes: str) -> subprocess.CompletedProcess[str]:
    """Run the node's part of a job whose program ends with a code. The graph goes to the directory "shared"."""
    write_commands(step.bin, {"python": PROGRAM, "neuron_parallel_compile": 'exec "$@"', **fakes})
    settings = {
        "CODE": str(code),
        "GIVEN": str(directory / "given"),
        "NEURON_COMPILE_CACHE_URL": str(directory / "local"),
        "SLURM_JOB_ID": "12",
        "ULTRACLUSTER_GRAPHS": "graphs",
        "ULTRACLUSTER_PROGRAM": str(PROJECT / "training/programs/bert"),
        "WORKERS_PER_NODE": "2",
        "ULTRACLUSTER_COMPILE_CACHE": str(directory / "shared"),
    }
    return step.run(f'bash "$ULTRACLUSTER_JOBS/run_node.sh" {purpose} {directory}/outcome 75 -m bert train', **settings)


@pytest.mark.parametrize(
    ("purpose", "code", "ends_with"), [("compile", 0, 0), ("compile", 137, 137), ("train", 1, 1), ("train", 75, 0)]
)
def test_what_was_compiled_is_kept_however_the_program_ends(
    step: Step, tmp_path: Path, purpose: str, code: int, ends_with: int
) -> None:
    done = run(step, tmp_path, purpose, code)
    kept, outcome = tmp_path / "shared" / MODULE, tmp_path / "outcome"
    assert done.returncode == ends_with, done.stderr
    assert sorted(path.name for path in kept.parent.iterdir()) == [kept.name]
    assert sorted(path.name for path in kept.iterdir()) == ["model.done", "model.neff"]
    assert not outcome.exists() if code == 0 else outcome.read_text(encoding="utf-8") == f"{code}\n"
    assert "seconds to start: 7200\n" in done.stdout


@pytest.mark.parametrize(("code", "gone", "seconds"), [(0, "", 1200), (1, "", 7200), (0, "shared", 7200)])
def test_a_start_has_less_time_once_all_graphs_are_there(
    step: Step, tmp_path: Path, code: int, gone: str, seconds: int
) -> None:
    run(step, tmp_path, "compile", code)
    if gone:
        shutil.rmtree(tmp_path / gone / MODULE)
        shutil.rmtree(tmp_path / "local")
    assert f"seconds to start: {seconds}\n" in run(step, tmp_path, "train", 1).stdout


def test_a_training_job_does_not_wait_for_a_copy_that_hangs(step: Step, tmp_path: Path) -> None:
    done = run(step, tmp_path, "train", 75, cp=STUCK, timeout=NOTING_TIMEOUT)
    assert done.returncode == 0
    assert "run_node.sh: not all graphs were kept: other nodes may compile them again" in done.stdout
    assert (tmp_path / "given").read_text(encoding="utf-8").startswith("60\n")
    for _ in range(200):  # who copies cleans up by itself, and may be a moment later than who waited for it
        if not list((tmp_path / "shared").rglob("*MODULE*")):
            break
        time.sleep(0.1)
    assert not list((tmp_path / "shared").rglob("*MODULE*"))


@pytest.mark.parametrize(("code", "ends_with"), [(0, 1), (137, 137)])
def test_a_compile_job_that_keeps_nothing_has_failed(step: Step, tmp_path: Path, code: int, ends_with: int) -> None:
    assert run(step, tmp_path, "compile", code, cp="exit 1").returncode == ends_with
