"""The cluster's submit.py, with fakes of Slurm's commands and the training program."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fake_commands import write_commands
from training import submit

FAKES = {
    "sinfo": "echo 'trn1* 12'; echo 'trn1* 4'; echo 'small 2'",
    "squeue": 'echo "7 /fsx/runs/taken"; echo "8 (null)"',
    "sbatch": 'printf "%s\\n" "$*" >>"$CALLS"; [[ "$*" != *"${REFUSED:-nothing}"* ]] || exit 1; wc -l <"$CALLS"',
    "scancel": 'echo "scancel $*" >>"$CALLS"',
    "python": '[[ " $* " != *" --phase 3 "* ]] || { echo "--phase: got 3" >&2; exit 2; }; echo "plan: $*"',
}


class Submitted(NamedTuple):
    """What a call of submit.py left behind."""

    code: int
    output: str
    error: str
    calls: list[str]


class Cluster:
    """A login shell on a cluster."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd, self._patch = capfd, patch
        self.calls = directory / "calls"
        self.run = directory / "runs/phase1"
        bin_directory = directory / "environment/bin"
        write_commands(bin_directory, FAKES)
        patch.setenv("PATH", f"{bin_directory}:/usr/bin:/bin")
        patch.setenv("CALLS", str(self.calls))
        patch.setenv("ULTRACLUSTER_PYTHON", str(bin_directory.parent))

    def submit(self, *arguments: str) -> Submitted:
        self._patch.setattr(sys, "argv", ["submit.py", *arguments])
        try:
            code = submit.main()
        except SystemExit as end:
            code = int(end.code or 0)
        output, error = self._capfd.readouterr()
        calls = self.calls.read_text(encoding="utf-8").splitlines() if self.calls.exists() else []
        return Submitted(code, output, error, calls)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cluster:
    return Cluster(tmp_path, monkeypatch, capfd)


def test_training_waits_for_the_compilation(cluster: Cluster) -> None:
    run, jobs = cluster.run, submit.HERE
    submitted = cluster.submit(
        "--nodes", "16", "--output", str(run), "--time", "8:00:00", "--fifo-priority=99", "--phase", "2",
        "--optimizer=lamb",
    )  # fmt: skip
    assert submitted.code == 0, submitted.error
    options = f"--phase 2 --optimizer=lamb --output {run}"
    assert submitted.calls == [
        f"--parsable --nodes=16 --output={run}/compile-%j.log --comment={run} {jobs}/compile.sbatch {options}",
        f"--dependency=afterok:1 --kill-on-invalid-dep=yes --parsable --nodes=16 --output={run}/train-%j.log "
        f"--comment={run} --time=8:00:00 --export=ALL,WORKER_FIFO_PRIORITY=99 {jobs}/train.sbatch {options}",
    ]
    assert submitted.output.splitlines() == [
        f"plan: -m pretraining check --nodes 16 --workers-per-node 32 {options}",
        f"compile      job 1, log {run}/compile-1.log",
        f"train        job 2, log {run}/train-2.log",
        f"metrics      {run}/metrics.jsonl, a line for each step; for TensorBoard {run}/tensorboard",
        f"checkpoints  {run}/checkpoints",
        f"watch        squeue --jobs 1,2; tail -F {run}/train-2.log",
        f"report       ./ultracluster runs show DEPLOYMENT {run}, on your machine",
    ]
    assert run.is_dir()


@pytest.mark.parametrize("time", ["60", "59:60", "1:00:00", "0-1", "0-0:60", "0-0:59:60"])
def test_without_compilation_training_waits_for_nothing_and_has_its_time_and_queue(cluster: Cluster, time: str) -> None:
    submitted = cluster.submit("--nodes=2", f"--output={cluster.run}", "--no-compile", "--time", time, "--queue=small")
    assert submitted.code == 0, submitted.error
    [call] = submitted.calls
    assert f" --time={time} " in call
    assert "--dependency" not in call
    assert "--partition=small" in call


@pytest.mark.parametrize("time", ["", "59", "59:59", "0:59:59", "0-0:59", "0-0:59:59", "1-", "1:2:3:4", "1h", "-1"])
def test_a_time_that_leaves_none_for_training_is_refused(cluster: Cluster, time: str) -> None:
    submitted = cluster.submit("--nodes=2", f"--output={cluster.run}", f"--time={time}")
    assert (submitted.code, submitted.calls) == (2, [])
    assert submitted.error.startswith(f"submit.py: --time: got {time!r}; allowed: an hour or more, such as 60 ")


def test_a_dry_run_prints_the_commands_and_leaves_nothing(cluster: Cluster) -> None:
    submitted = cluster.submit("--nodes=2", f"--output={cluster.run}", "--dry-run")
    assert (submitted.code, submitted.calls) == (0, [])
    _, first, second = submitted.output.splitlines()
    assert first.startswith("sbatch --parsable --nodes=2 ")
    assert second.startswith("sbatch --dependency=afterok:JOB --kill-on-invalid-dep=yes --parsable ")
    assert not cluster.run.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nodes=0"], "submit.py: --nodes: got 0; allowed: 1 to 16, the size of queue trn1\n"),
        (["--nodes=3", "--queue=small"], "submit.py: --nodes: got 3; allowed: 1 to 2, the size of queue small\n"),
        (["--nodes=3", "--queue=gpu"], "submit.py: --queue: got 'gpu'; allowed: small, trn1\n"),
        (["--nodes=3", "--output=run"], "submit.py: --output: got run; allowed: an absolute path "),
        (["--nodes=3", "--output=/fsx/runs/new/../taken/"], "got /fsx/runs/new/../taken, which job 7 uses; "),
        (["--nodes=3", "--phase", "3"], "--phase: got 3\n"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_submitted(
    cluster: Cluster, arguments: list[str], message: str
) -> None:
    submitted = cluster.submit(f"--output={cluster.run}", *arguments)
    assert (submitted.code, submitted.calls) == (2, [])
    assert message in submitted.error
    assert not cluster.run.exists()


def test_an_environment_that_is_being_built_is_reported(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ULTRACLUSTER_PYTHON", f"{tmp_path}/current-trn1-16")
    (tmp_path / "current-trn1-16.state").write_text("state=failed\nreason=failed (10): no network.\n", encoding="utf-8")
    submitted = cluster.submit("--nodes=2", f"--output={cluster.run}")
    assert (submitted.code, submitted.calls) == (2, [])
    assert "current-trn1-16 yet: state=failed reason=failed (10): no network.; its log: " in submitted.error


def test_a_compilation_is_not_left_alone(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFUSED", "train.sbatch")
    submitted = cluster.submit("--nodes=2", f"--output={cluster.run}")
    assert submitted.code == 1
    assert re.search(r"sbatch .*train.sbatch .*: exit code 1", submitted.error)
    assert submitted.calls[-1] == "scancel 1"
