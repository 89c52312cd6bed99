"""How a run starts: all ranks alike, alone in its directory, and with one line if it cannot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from subprocess import PIPE, Popen
from sys import executable
from typing import Any

import pytest

from bert.__main__ import main
from tests.training.programs.bert.runs import arguments, error_lines, in_ranks
from ultracluster_job import files

ROOT = Path(__file__).parents[4]


# Each of the following runs in a process of its own, where it may change what it likes.


def without_patience(command: Sequence[str]) -> int:
    files._LOCK_TIMEOUT = 0
    return main(command)


@pytest.fixture
def holder(tmp_path: Path) -> Any:
    """A process that has the directory, as a run of job 12."""
    program = "import pathlib, sys; from ultracluster_job import files; files.lock(pathlib.Path(sys.argv[1])); "
    command = [executable, "-c", program + "print(flush=True); input()", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "training"), "SLURM_JOB_ID": "12"}
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        yield process
        process.kill()


def test_a_directory_is_for_one_run_and_the_other_ends_with_one_line(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, holder: Popen[str]
) -> None:
    errors = tmp_path_factory.mktemp("errors") / "errors"
    assert in_ranks(2, without_patience, arguments(tmp_path), errors=errors) == [2, 2]
    who = f"job 12, process {holder.pid} on {os.uname().nodename}"
    assert error_lines(errors) == [f"--output: got {tmp_path}, where a run is at work ({who}); allowed: another"]
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_run_waits_for_the_end_of_the_one_before(tmp_path: Path, holder: Popen[str]) -> None:
    run = get_context("fork").Process(target=files.lock, args=(tmp_path,))
    run.start()
    run.join(0.5)
    assert run.is_alive()
    holder.kill()
    run.join()
    assert run.exitcode == 0
    assert (tmp_path / files.LOCK).read_text() == f"process {run.pid} on {os.uname().nodename}\n"


@pytest.mark.parametrize("full", [".lock", ".run.json.new"])
def test_a_full_file_system_is_reported_in_one_line(tmp_path: Path, full: str) -> None:
    output, errors = tmp_path / "run", tmp_path / "errors"
    output.mkdir()
    (output / full).symlink_to("/dev/full")
    assert in_ranks(2, main, arguments(output), errors=errors) == [2, 2]
    allowed = "a directory that can be written to and locked ([Errno 28] No space left on device)"
    assert error_lines(errors) == [f"--output: got {output}; allowed: {allowed}"]
