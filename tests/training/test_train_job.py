"""What train.sbatch makes of the end of its program, with fakes of Slurm's commands."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.fake_commands import write_commands

JOBS = Path(__file__).parents[2] / "training"
COMMANDS = {
    "scontrol": f'if [[ $1 == show ]]; then echo "   Command={JOBS}/train.sbatch"; else echo "asked to $1 job $2"; fi',
    "srun": '[[ $6 == train ]] && echo "$CODE" >"$7"; eval "${LEFT:-}"; echo "a step ran: ${@:8}"; exit 143',
    "sinfo": "echo 8",
    "scancel": "true",
}

FULL = "trap '' XFSZ; ulimit -f 0;"
"""A limit of 0 bytes for files stands in for a full file system."""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    write_commands(tmp_path / "bin", COMMANDS)
    return {
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "SLURM_JOB_ID": "12",
        "SLURM_JOB_NAME": "train",
        "SLURM_JOB_NODELIST": "trn1-st-trn1-32xl-[1-2]",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_JOB_PARTITION": "trn1",
    }


def train(environment: dict[str, str], output: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    script = f'{before} exec bash "{JOBS}/train.sbatch" "${{PROGRAM:-{JOBS}/programs/bert}}" "{output}" --phase 2'
    return subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("code", "message", "requeued"),
    [
        (0, "the program has ended well", False),
        (2, "the input cannot be used, see the lines above: not requeued", False),
        (3, "a number of step ? is not finite: tried once more: back into the queue", True),
        (75, "failed (75), 1 times in a row without a new checkpoint: back into the queue", True),
        (1, "failed (1), 1 times in a row without a new checkpoint: back into the queue", True),
    ],
)
def test_what_happens_after_each_exit_code(
    tmp_path: Path, environment: dict[str, str], code: int, message: str, requeued: bool
) -> None:
    done = train({**environment, "CODE": str(code)}, tmp_path / "run")
    assert done.returncode == code, done.stderr
    assert f"train: {message}" in done.stdout
    assert ("asked to requeue job 12" in done.stdout) == requeued
    assert f"a step ran: 75 -m bert train --output {tmp_path}/run --phase 2" in done.stdout
    assert (tmp_path / "run/finished").exists() == (code == 0)


# What the starts before left of a step that is not finite, what this one leaves, and how it is judged.
DIVERGENCES = {
    "first": ("", "7 trn1-1", "step 7 is not finite, first on trn1-1: tried once more: back into the queue", True),
    "a rank before the others": ("", "8 trn1-2\n7 trn1-1\n8 trn1-1", "step 7 is not finite, first on trn1-1", True),
    "all at once": ("", "7 trn1-1\n7 trn1-2", "step 7 is not finite: tried once more", True),
    "on no known node": ("", "7 ", "a number of step 7 is not finite: tried once more", True),
    "of no known step": ("? ", "", "step ? is not finite, and before, of step ?: not requeued", False),
    "the same": (
        "7 trn1-1",
        "7 trn1-2",
        "step 7 is not finite again: it is the run's, not a node's; not requeued",
        False,
    ),
    "another": ("7 trn1-1", "9 trn1-2", "not finite, first on trn1-2, and before, of step 7: not requeued", False),
    "of a forger": ("7 x;id #", "9 $(id)", "step 9 is not finite, and before, of step 7: not requeued", False),
}


@pytest.mark.parametrize("case", DIVERGENCES)
def test_a_number_that_is_not_finite_is_tried_once_more_elsewhere(
    tmp_path: Path, environment: dict[str, str], case: str
) -> None:
    before, now, message, requeued = DIVERGENCES[case]
    (tmp_path / "run").mkdir()
    if before:
        (tmp_path / "run/diverged").symlink_to(before)
    left = f"printf %s '{now}\n' >'{tmp_path}/run/.diverged'"
    start = {"CODE": "3", "LEFT": left, "SLURM_RESTART_COUNT": "1" if before else "0"}
    done = train({**environment, **start}, tmp_path / "run")
    assert done.returncode == 3
    assert message in done.stdout
    assert ("asked to requeue job 12" in done.stdout) == requeued
    assert ("this job does not run on trn1-1 any more" in done.stdout) == (
        case in ("first", "a rank before the others")
    )
    roots = re.findall(r"as root: (.*)", done.stdout)
    assert roots == (["scontrol update nodename=trn1-1 state=drain reason=stalled"] if case == "another" else [])


def test_a_program_has_codes_checkpoints_and_a_stop_file_of_its_own(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    program = tmp_path / "mine"
    (program / "sub").mkdir(parents=True)
    (program / "fit.py").touch()
    (program / "program.toml").write_text(
        'run = ["fit.py", "--at", "{output}", "$(id)"]\ncheckpoints = "saved/epoch_*"\nstop_file = "please stop"\n'
        '[environment]\nONE = "a b $(id)"\n[exit_codes]\nstopped = 9\n',
        encoding="utf-8",
    )
    for name in ("epoch_9", "epoch_10", "epoch_12.tmp.4711"):
        (tmp_path / f"run/saved/{name}").mkdir(parents=True)
    (tmp_path / "run/please stop").touch()
    left = f'mkdir "{tmp_path}/run/saved/epoch_11"; echo "ONE is $ONE, a checkpoint is $ULTRACLUSTER_CHECKPOINTS"'
    start = {"CODE": "9", "PROGRAM": str(program), "LEFT": left, "ULTRACLUSTER_RUN": "/elsewhere"}
    done = train({**environment, **start}, tmp_path / "run")
    assert f"a step ran: 9 fit.py --at {tmp_path}/run $(id) --phase 2" in done.stdout, done.stderr
    assert "ONE is a b $(id), a checkpoint is saved/epoch_*" in done.stdout
    assert "stopped with a checkpoint: back into the queue, newest on disk: epoch_11" in done.stdout
    assert not (tmp_path / "run/please stop").exists()


def test_a_program_that_cannot_be_used_ends_the_job(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/program.toml").write_text(
        'run = ["fit.py"]\nrnu = 1\nstop_file = "/etc/passwd"\nexport = ["-m", "a", "{nodes}"]\n', encoding="utf-8"
    )
    done = train({**environment, "PROGRAM": str(tmp_path / "mine")}, tmp_path / "run")
    assert (done.returncode, "a step ran" in done.stdout) == (2, False)
    assert "got rnu; allowed: run, check, compile," in done.stderr
    assert "export: got {nodes}; allowed: {output}, {checkpoint}, {directory}" in done.stderr
    assert 'stop_file: got "/etc/passwd"; allowed: a name in the run\'s directory' in done.stderr
    assert "run: got fit.py; allowed: a file of " in done.stderr


# Nodes that were named at each stall, those excluded at submission, how many there are beside those of the job; which
# are excluded then, "" if the queue has too few others, None if no node was named twice.
EXCLUSIONS: dict[str, tuple[list[list[str]], str, int, str | None]] = {
    "once each": ([["trn1-1"], ["trn1-2"]], "trn1-[7-8]", 3, None),
    "one twice": ([["trn1-1"], [], ["trn1-2", "trn1-1"]], "trn1-[7-8]", 3, "trn1-1,trn1-[7-8]"),
    "one excluded before": ([["trn1-1", "trn1-7"]] * 2, "trn1-[7-8]", 3, "trn1-1,trn1-7,trn1-[7-8]"),
    "none excluded before": ([["trn1-1", "trn1-2"]] * 2, "(null)", 2, "trn1-1,trn1-2"),
    "too few besides those excluded before": ([["trn1-1"]] * 2, "trn1-[7-8]", 2, ""),
}


@pytest.mark.parametrize("case", EXCLUSIONS)
def test_a_node_that_was_named_twice_is_excluded_if_the_queue_has_others(
    tmp_path: Path, environment: dict[str, str], case: str
) -> None:
    """An exclusion that the job was submitted with stays."""
    named, before, spare, excluded = EXCLUSIONS[case]
    of_other_job = {"11.0": ["trn1-1", "trn1-2"]}
    starts = of_other_job | {f"12.{restart}": nodes for restart, nodes in enumerate(named)}
    for start, nodes in starts.items():
        records = tmp_path / f"run/stalls/{start}"
        records.mkdir(parents=True)
        (records / "named").write_text("".join(f"{node}\n" for node in nodes), encoding="utf-8")
    commands = {
        "scontrol": f"""\
if [[ $2 == hostnames ]]; then [[ $3 == "trn1-[7-8]" ]] && printf 'trn1-%s\\n' 7 8 || echo "what are '$3'?"
elif [[ $1 == show ]]; then echo "   Command={JOBS}/train.sbatch"; echo "   ReqNodeList=(null) ExcNodeList={before}"
else echo "asked to $*"; fi""",
        "sinfo": f"echo 1; echo {1 + spare}",
    }
    write_commands(tmp_path / "slurm", commands)
    settings = {"CODE": "76", "SLURM_JOB_PARTITION": "trn1", "PATH": f"{tmp_path}/slurm:{environment['PATH']}"}
    done = train({**environment, **settings}, tmp_path / "run")
    assert done.returncode == 76
    assert "asked to requeue 12" in done.stdout
    assert ("state=drain reason=stalled" in done.stdout) == (excluded is not None)
    assert ("too few other nodes" in done.stdout) == (excluded == "")
    asked = [line for line in done.stdout.splitlines() if line.startswith("asked to update")]
    assert asked == ([f"asked to update jobid=12 excnodelist={excluded}"] if excluded else [])


def test_a_file_system_that_is_full_is_bad_input_and_waited_for_at_three_restarts(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    done = train(environment, tmp_path / "run", FULL)
    assert done.returncode == 2
    assert f"got '{tmp_path}/run'; allowed: a directory of yours on the shared file system" in done.stdout
    assert "a step ran" not in done.stdout
    assert "asked to requeue" not in done.stdout
    (tmp_path / "run/checkpoints/step-00000008").mkdir(parents=True)
    for restart in (1, 2, 3):
        done = train({**environment, "SLURM_RESTART_COUNT": str(restart)}, tmp_path / "run", FULL)
        again = f"failed (2), {restart} times in a row without a new checkpoint: back into the queue, newest on disk: "
        assert f"{again}step-00000008\nasked to requeue job 12\n" in done.stdout
    done = train({**environment, "SLURM_RESTART_COUNT": "4"}, tmp_path / "run", FULL)
    assert "failed (2) without a new checkpoint, as at 3 starts before: no further restart" in done.stdout
    assert (done.returncode, "asked to requeue" in done.stdout) == (2, False)
    submitted_again = train({**environment, "CODE": "1"}, tmp_path / "run")
    assert "failed (1), 1 times in a row" in submitted_again.stdout


def test_failures_that_cannot_be_counted_are_not_repeated(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "run/failures").mkdir(parents=True)
    done = train({**environment, "CODE": "2", "SLURM_RESTART_COUNT": "1"}, tmp_path / "run")
    assert done.returncode == 2
    assert "asked to requeue" not in done.stdout


@pytest.mark.parametrize("target", ["status[$(touch forged)0]", "unset_name", "-1", "9999999999999999999", "1 + 1"])
def test_a_count_that_somebody_forged_is_none(tmp_path: Path, environment: dict[str, str], target: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/failures").symlink_to(target)
    done = train({**environment, "CODE": "1", "SLURM_RESTART_COUNT": "1"}, tmp_path / "run", f"cd '{tmp_path}';")
    assert "failed (1), 1 times in a row without a new checkpoint: back into the queue" in done.stdout, done.stderr
    assert not (tmp_path / "forged").exists()


def test_a_task_of_an_array_means_itself(tmp_path: Path, environment: dict[str, str]) -> None:
    """The id of the last one is that of the array, of which Slurm tells all tasks."""
    task = {"SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "3"}
    done = train({**environment, **task, "CODE": "1"}, tmp_path / "run")
    assert "asked to requeue job 12_3" in done.stdout
    assert (tmp_path / "run/3/failures").is_symlink()


def test_a_program_that_does_not_stop_is_ended_before_the_time_limit(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """By Slurm's signal to the job, and a moment later by the job itself."""
    srun = 'trap "exit 143" TERM; echo a step runs; kill -USR1 $PPID; sleep 60 >/dev/null 2>&1 & wait $!'
    write_commands(tmp_path / "slow", {"srun": srun})
    settings = {"PATH": f"{tmp_path}/slow:{environment['PATH']}", "ULTRACLUSTER_STOP_SECONDS": "0.2"}
    done = train({**environment, **settings}, tmp_path / "run")
    assert (tmp_path / "run/stop").exists()
    assert "it has not stopped: it is ended now, and continues from its newest checkpoint" in done.stdout, done.stdout
    assert "failed (143), 1 times in a row without a new checkpoint: back into the queue" in done.stdout
