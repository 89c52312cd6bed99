"""`logs --job`: the output of a job and the logs of its nodes, while Slurm knows it and afterwards."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripts.account.remote import nodes
from tests.scripts.operated import Operated
from tests.scripts.watch.logs.conftest import Follow
from tests.scripts.watch.logs.log_lines import head_prefix, log_at, without_times

Logs = Callable[..., int]


SLURM = """\
runuser() { printf '%s\\n' "${1#--user=}" >DIRECTORY/user; shift 2; "$@"; }
PATH=DIRECTORY:$PATH
source /dev/stdin
"""
PROGRAMS = {
    "scontrol": """\
#!/bin/sh
case "$*" in
"show job 12"* | "show job 15"*) cat DIRECTORY/jobs;;
"show hostnames"*) echo trn1-dy-trn1-32xl-1;;
"show node"*) echo '{"nodes":[{"name":"trn1-dy-trn1-32xl-1","address":"ADDRESS"}]}';;
*) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1;;
esac
""",
    "squeue": """\
#!/bin/sh
case "$*" in *"--name=train "*"--sort=-i "*) printf '12\\n7\\n';; esac
mark=$(printf %s "$SQUEUE_FORMAT" | cut -c 1-32)
case "$*" in *--array*)
    printf "$mark%s" 15 12 3 RUNNING a sweep 12_3
    for task in 4 5 6 7 8 9; do printf "$mark%s" 12 12 $task PENDING a sweep 12_$task; done
esac
""",
    "sacct": """\
#!/bin/sh
case "$*" in *--jobs=8*) ;; *) exit 0;; esac
mark=$(printf %s "$*" | sed 's/.*--delimiter=\\([^ ]*\\).*/\\1/')
for value in 8 8 somebody trn1 FAILED 1 00:00:10 a 01:00:00 n-1 3:0 2026-11-20T01:00:00 2026-11-20T01:00:10 \\
    2026-11-20T01:00:00 DIRECTORY/log /fsx 'sbatch a' '' '' ''; do printf "%s$mark" "$value"; done
""",
}


def job(number: int, output: Path, *, nodes: str = "", array: tuple[int, int] | None = None) -> dict[str, Any]:
    """Return a job as Slurm's JSON has it: https://slurm.schedmd.com/rest_api.html#v0_0_42_job_info."""
    master, task = array or (0, 0)
    return {
        "job_id": number, "array_job_id": {"number": master}, "array_task_id": {"number": task},
        "job_state": ["RUNNING"], "user_name": "somebody", "user_id": 1000, "nodes": nodes,
        "standard_output": str(output),
    }  # fmt: skip


def slurm(operated: Operated, directory: Path, *jobs: dict[str, Any], address: str = "10.0.0.1") -> None:
    """Have Slurm know jobs, on a node with an address."""
    (directory / "jobs").write_text(json.dumps({"jobs": jobs}), encoding="utf-8")
    for name, text in PROGRAMS.items():
        replaced = text.replace("DIRECTORY", str(directory)).replace("ADDRESS", address)
        (directory / name).write_text(replaced, encoding="utf-8")
        (directory / name).chmod(0o755)
    operated.shell(SLURM.replace("DIRECTORY", str(directory)))


def test_a_job_is_its_output_and_if_asked_for_its_nodes(
    operated: Operated, run_logs: Logs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [instance_id] = operated.launch(1)
    host = next(each.host for each in nodes.list_present(operated.deployment()) if each.instance_id == instance_id)
    output = tmp_path / "my run.log"
    output.write_text("step 1\nstep 2", encoding="utf-8")
    address = host.removeprefix("ip-").replace("-", ".")
    slurm(operated, tmp_path, job(12, output, nodes="trn1-dy-trn1-32xl-1"), address=address)
    operated.log(f"{host}.{instance_id}.slurmd", "launch task StepId=12.0")
    assert run_logs("--job", "12") == 0
    assert capsys.readouterr().out == "job 12 output | step 1\njob 12 output | step 2\n"
    assert run_logs("--job", "12", "--nodes") == 0
    printed, errors = capsys.readouterr()
    assert without_times(printed) == (
        "trn1-dy-trn1-32xl-1 slurmd | launch task StepId=12.0\njob 12 output | step 1\njob 12 output | step 2\n"
    )
    assert f"Job 12 is RUNNING; its output: {output}" in errors
    assert (tmp_path / "user").read_text(encoding="utf-8") == "somebody\n"


def test_a_name_is_that_of_the_newest_job(
    operated: Operated, run_logs: Logs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").write_text("step 1\n", encoding="utf-8")
    slurm(operated, tmp_path, job(12, tmp_path / "log"))
    assert run_logs("--job", "train") == 0
    output, errors = capsys.readouterr()
    assert output == "job 12 output | step 1\n"
    assert "Job 12 is RUNNING" in errors
    assert run_logs("--job", "other") == 1
    assert "Slurm knows no job called other, or none any more\n\nhint: its number shows" in capsys.readouterr().err


@pytest.mark.parametrize("asked", ["15", "12_3"])
def test_one_of_an_array_of_jobs(
    operated: Operated, run_logs: Logs, tmp_path: Path, asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also by the number that it has beside."""
    (tmp_path / "third").write_text("third\n", encoding="utf-8")
    slurm(operated, tmp_path, job(15, tmp_path / "third", array=(12, 3)))
    assert run_logs("--job", asked) == 0
    assert capsys.readouterr().out == "job 12_3 output | third\n"


def test_the_number_of_an_array_is_no_job(
    operated: Operated, run_logs: Logs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Slurm shows all jobs of an array by it, and the number of the tasks that wait is no task."""
    waiting = job(12, tmp_path / "slurm-12_4294967294.out", array=(12, 0)) | {"array_task_string": "4-9"}
    slurm(operated, tmp_path, job(15, tmp_path / "third", array=(12, 3)), waiting)
    assert run_logs("--job", "12") == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert "12 is an array of jobs: RUNNING 12_[3], PENDING 12_[4-9]" in errors
    assert "hint: one of them, such as 12_3" in errors


def test_a_job_that_waits_has_no_output_yet(
    operated: Operated, run_logs: Logs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = job(12, tmp_path / "none") | {"job_state": ["PENDING"], "state_reason": "JobHeldUser"}
    slurm(operated, tmp_path, waiting)
    assert run_logs("--job", "12") == 0
    output, errors = capsys.readouterr()
    assert output == ""
    assert "Job 12 is PENDING, JobHeldUser" in errors
    assert "Its user held it" in errors
    assert "none: No such file" not in errors


def test_the_output_of_a_job_that_accounting_alone_knows(
    operated: Operated, run_logs: Logs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With how it ended."""
    (tmp_path / "log").write_text("its last words\n", encoding="utf-8")
    slurm(operated, tmp_path)
    assert run_logs("--job", "8") == 0
    output, errors = capsys.readouterr()
    assert output == "job 8 output | its last words\n"
    assert "Job 8 is FAILED, exit code 3:0; its output: " in errors


def test_new_lines_of_the_output_are_shown_once_they_are_complete(
    operated: Operated, run_logs: Logs, follow: Follow, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing continues on the head node afterwards."""
    file = tmp_path / "job.log"
    file.write_text("1\n2\n3\n", encoding="utf-8")
    slurm(operated, tmp_path, job(12, file))

    def append() -> None:
        with file.open("a", encoding="utf-8") as opened:
            opened.write("4\n5")

    wait = [lambda: time.sleep(0.2)] * 5
    follow(*wait, append, *wait)
    assert run_logs("--job", "12", "--follow", "--lines", "2") == 130
    output, errors = capsys.readouterr()
    assert output == "".join(f"job 12 output | {number}\n" for number in (2, 3, 4))
    assert "is cancelled" in errors
    sent = operated.client("ssm").list_command_invocations()["CommandInvocations"][-1]
    assert sent["Status"] in ("Cancelling", "Cancelled")


def test_a_job_that_slurm_has_forgotten(
    operated: Operated, run_logs: Logs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its lines are older than the hour before the newest one."""
    slurm(operated, tmp_path)
    stream = f"{head_prefix(operated)}slurmctld"
    for age, text in ((2000, "Allocate JobId=7 NodeList=x"), (1990, "Time limit for JobId=7"), (1980, "at JobId=77 x")):
        log_at(operated, stream, age, text=text)
    operated.log(stream, "now")
    assert run_logs("--job", "7", "--grep", "limit") == 0
    assert without_times(capsys.readouterr().out) == "head-node slurmctld | Time limit for JobId=7\n"
    assert run_logs("--job", "7") == 0
    output, errors = capsys.readouterr()
    assert without_times(output) == (
        "head-node slurmctld | Allocate JobId=7 NodeList=x\nhead-node slurmctld | Time limit for JobId=7\n"
    )
    assert "Slurm knows no job 7" in errors
