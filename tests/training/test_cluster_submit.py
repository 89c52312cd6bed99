"""The cluster's submit.py, with fakes of Slurm's commands and the training program."""

from __future__ import annotations

import io
import os
import re
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

import submit
from scripts.core.errors import UnusableError
from scripts.use.submission import packed
from tests.fake_commands import write_commands

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
        "--nodes", "16", "--output", str(run), "--time", "8:00:00", "--fifo-priority=99",
        "--node-dollars=21.5", "--", "--phase", "2", "--optimizer=lamb",
    )  # fmt: skip
    assert submitted.code == 0, submitted.error
    program, options = jobs / "programs/bert", "--phase 2 --optimizer=lamb"
    words = f"{program} {run} {options}"
    assert submitted.calls == [
        f"--parsable --nodes=16 --output={run}/compile-%j.log --comment={run} "
        f"--export=ALL,WORKERS_PER_NODE=32 {jobs}/compile.sbatch {words}",
        f"--dependency=afterok:1 --kill-on-invalid-dep=yes --parsable --nodes=16 --output={run}/train-%j.log "
        f"--comment={run} --time=8:00:00 --export=ALL,WORKERS_PER_NODE=32,WORKER_FIFO_PRIORITY=99,"
        f"ULTRACLUSTER_NODE_DOLLARS=21.5 {jobs}/train.sbatch {words}",
    ]
    assert submitted.output.splitlines() == [
        f"plan: -m bert check --nodes 16 --workers-per-node 32 --output {run} {options}",
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
        (["--nodes=3", "--", "--phase", "3"], "--phase: got 3\n"),
        (["--nodes=3", "--phase", "3"], "unrecognized arguments: --phase 3"),
        (["--nodes=3", "--output=/fsx/runs/50%u"], "--output: got '/fsx/runs/50%u'; allowed: letters, digits, "),
        (["--nodes=3", "--output=/fsx/runs/taken/3"], "got /fsx/runs/taken/3, which job 7 uses; "),
        (["--nodes=3", "--program=."], "--program: got "),
        (["--nodes=3", "--array=a"], "--array: got 'a'; allowed: tasks as Slurm writes them"),
        (
            ["--nodes=3", "--after=/fsx/runs/old"],
            "--after: got /fsx/runs/old, with no job in the queue and not finished",
        ),
        (["--nodes=3", "--program=nothing"], "--program: got nothing; allowed: bert, a folder, a file .py, a batch"),
        (["--nodes=3", "--workers-per-node=0"], "--workers-per-node: got 0; allowed: 1 to 1024"),
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


def folder(directory: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
    return directory


def kept(cluster: Cluster) -> list[Path]:
    return sorted(cluster.run.glob("program/*/*"))


def test_the_run_keeps_each_version_of_a_program_and_runs_that(cluster: Cluster, tmp_path: Path) -> None:
    """Another version has another folder, so that what runs or waits is never changed; nothing compiles it."""
    files = {"train.py": "print(1)", "lib/a.py": "", ".git/config": "", "lib/__pycache__/a": ""}
    mine = folder(tmp_path / "mine", files)
    arguments = ("--nodes=2", f"--output={cluster.run}", f"--program={mine}", "--", "--lr", "1e-4")
    submitted = cluster.submit(*arguments)
    assert submitted.code == 0, submitted.error
    [first] = kept(cluster)
    assert {str(path.relative_to(first)) for path in first.rglob("*")} == {"train.py", "lib", "lib/a.py"}
    [call] = submitted.calls
    assert call.endswith(f"/train.sbatch {first} {cluster.run} --lr 1e-4")
    assert "mine has no check: its options are taken as they are" in submitted.output
    cluster.submit(*arguments)
    assert kept(cluster) == [first]
    (mine / "train.py").write_text("print(2)", encoding="utf-8")
    cluster.submit(*arguments)
    assert len(kept(cluster)) == 2
    assert (first / "train.py").read_text(encoding="utf-8") == "print(1)"


def test_a_run_directory_that_others_may_have_prepared_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    mine = folder(tmp_path / "mine", {"train.py": "print(1)"})
    arguments = ("--nodes=2", f"--output={cluster.run}", f"--program={mine}")
    theirs = cluster.run / "program" / submit.digest(mine) / "mine"
    folder(theirs, {"train.py": "print('theirs')"})
    submitted = cluster.submit(*arguments)
    assert (submitted.code, submitted.calls) == (2, [])
    assert f"whose copy {theirs} has changed" in submitted.error
    cluster.run.chmod(0o777)
    assert "where others write; allowed: a directory of yours" in cluster.submit(*arguments).error


def test_the_same_files_under_another_name_are_another_program(cluster: Cluster, tmp_path: Path) -> None:
    for name in ("one", "two"):
        mine = folder(tmp_path / name, {"train.py": "print(1)"})
        (mine / "train.py").chmod(0o4755)
        assert cluster.submit("--nodes=2", f"--output={cluster.run}", f"--program={mine}").code == 0
    assert [path.name for path in kept(cluster)] == ["one", "two"]
    assert {(path / "train.py").stat().st_mode & 0o7777 for path in kept(cluster)} == {0o555}


def test_a_file_of_python_is_a_program_and_a_batch_script_is_submitted_as_it_is(
    cluster: Cluster, tmp_path: Path
) -> None:
    script = folder(tmp_path, {"fit.py": "", "job.sh": "#!/bin/bash\n"})
    submitted = cluster.submit("--nodes=2", f"--output={cluster.run}", f"--program={script}/fit.py", "--array=0-3%2")
    [program] = kept(cluster)
    assert (program.name, sorted(path.name for path in program.iterdir())) == ("fit", ["fit.py", "program.toml"])
    assert f"--output={cluster.run}/train-%A_%a.log" in submitted.calls[-1]
    assert "--array=0-3%2" in submitted.calls[-1]
    submitted = cluster.submit("--nodes=2", f"--output={cluster.run}", f"--program={script}/job.sh", "--", "a b")
    [copy] = cluster.run.glob("program/*/job.sh")
    assert submitted.calls[-1].endswith(f" {copy} {cluster.run} a b")
    assert "job          job 2, log " in submitted.output


def test_a_run_waits_for_another_in_the_queue_and_not_for_one_that_is_finished(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old/finished").touch()
    submitted = cluster.submit("--nodes=2", f"--output={cluster.run}", "--after=/fsx/runs/taken")
    assert submitted.calls[0].startswith("--dependency=afterok:7 ")
    assert submitted.calls[1].startswith("--dependency=afterok:1 ")
    submitted = cluster.submit("--nodes=2", f"--output={cluster.run}", f"--after={tmp_path}/old", "--no-compile")
    assert "--dependency" not in submitted.calls[-1]


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "link"])
def test_an_archive_with_a_path_of_its_own_is_refused(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = (tarfile.SYMTYPE, "/etc/passwd") if name == "link" else (tarfile.REGTYPE, "")
        archive.addfile(member)
    (tmp_path / "archive").write_bytes(buffer.getvalue())
    with (tmp_path / "archive").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        submitted = cluster.submit("--nodes=2", f"--output={cluster.run}", "--program=-")
    assert (submitted.code, submitted.calls) == (2, [])
    assert f"--program: got {name} in the archive; allowed: files and folders" in submitted.error


def test_a_program_travels_as_it_is(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What `./ultracluster submit` packs, submit.py unpacks: names, contents, permissions."""
    mine = folder(tmp_path / "mine", {"train.py": "print(1)", "run.sh": "", ".venv/x": "", "a/b": "1"})
    (mine / "run.sh").chmod(0o755)
    archive = tmp_path / "archive"
    archive.write_bytes(packed(mine))
    assert packed(mine) == archive.read_bytes()
    with archive.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        submitted = cluster.submit("--nodes=2", f"--output={cluster.run}", "--program=-")
    assert submitted.code == 0, submitted.error
    [program] = kept(cluster)
    assert program.parent.name == submit.digest(mine)
    assert os.access(program / "run.sh", os.X_OK)


def test_a_folder_that_cannot_travel_is_refused(tmp_path: Path) -> None:
    mine = folder(tmp_path / "mine", {"train.py": ""})
    (mine / "data").write_bytes(os.urandom(40_000))
    with pytest.raises(UnusableError, match="allowed: up to 32,768"):
        packed(mine)
    (mine / "data").unlink()
    (mine / "data").symlink_to("/etc")
    with pytest.raises(UnusableError, match="a link or special file"):
        packed(mine)
