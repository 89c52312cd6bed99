"""Submit a training run to Slurm: compile, then train. On a head or login node.

The arguments are checked first, together with the data and the space they need. What cannot work is told at once, and
nothing is submitted. A run belongs to its directory: submit the same again, and it resumes from the newest checkpoint.
Exit code 0: submitted; 1: Slurm refused; 2: the arguments or the input cannot be used.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from operator import mul
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).resolve().parent
WORKERS_PER_NODE = 32
"""NeuronCores of a trn1.32xlarge."""
SHORTEST_TIME = 3600
"""Seconds. A job that starts, takes up a checkpoint and stops 300 s before its limit must have time left to train."""
TIME = re.compile(r"[0-9]+(:[0-9]+){0,2}|[0-9]+-[0-9]+(:[0-9]+){0,2}")
"""Minutes, minutes:seconds, hours:minutes:seconds, days-hours and so on (https://slurm.schedmd.com/sbatch.html#OPT_time)."""

PROGRAM_OPTIONS = """\
All other options are the training program's, among them --phase, --optimizer, --scaling strong|weak, --data, --steps,
--checkpoint-interval, --keep and --reference. docs/reference/training.md describes them, and this lists all:
  cd "$ULTRACLUSTER_JOBS" && "$ULTRACLUSTER_PYTHON/bin/python" -m pretraining check --help"""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser. It leaves the program's options to the program."""
    command_line = argparse.ArgumentParser(
        prog="submit.py", description=__doc__, epilog=PROGRAM_OPTIONS,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )  # fmt: skip
    command_line.add_argument("--nodes", type=int, required=True, help="whole nodes to train on")
    command_line.add_argument(
        "--output", type=Path, required=True, help="directory of the run, on the shared file system"
    )
    command_line.add_argument("--queue", help="queue of the cluster (default: Slurm's default partition)")
    command_line.add_argument(
        "--time",
        help="limit of the training job, an hour or more; it stops before, and starts again (default: the queue's)",
    )
    command_line.add_argument(
        "--no-compile", action="store_true", help="train at once: nodes compile what is not in the cache"
    )
    command_line.add_argument(
        "--fifo-priority", type=int,
        help="train under the kernel's real-time policy SCHED_FIFO with this priority, 1 to 99 (default: not)",
    )  # fmt: skip
    command_line.add_argument("--dry-run", action="store_true", help="check, and print the commands only")
    return command_line


def refuse(message: str) -> NoReturn:
    """End with exit code 2."""
    print(f"submit.py: {message}", file=sys.stderr)
    sys.exit(2)


def ask(*command: str) -> str:
    """Return what a command of Slurm prints; its failure ends this program with exit code 1."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stderr.strip()}", file=sys.stderr)
        sys.exit(1)
    return done.stdout


def seconds(time: str) -> int:
    """Return what a time of the form TIME comes to, as Slurm reads it."""
    days, _, rest = time.rpartition("-")
    units = (60, 1) if not days and rest.count(":") in (0, 1) else (3600, 60, 1)
    total: int = sum(map(mul, map(int, rest.split(":")), units))
    return total + int(days or 0) * 86_400


def check_time(time: str) -> None:
    """Refuse a limit that leaves no time to train: the job would start and stop again and again."""
    if not TIME.fullmatch(time) or seconds(time) < SHORTEST_TIME:
        refuse(f"--time: got {time!r}; allowed: an hour or more, such as 60 (minutes), 8:00:00 or 2-12 (days-hours)")


def check_queue(queue: str | None, nodes: int) -> None:
    """Refuse a queue that there is not, and more nodes than it has."""
    sizes: dict[str, int] = {}
    for line in ask("sinfo", "--noheader", "--format=%P %D").splitlines():
        name, size = line.split()
        sizes[name] = sizes.get(name, 0) + int(size)
    # sinfo marks the default partition.
    queues = {name.rstrip("*"): size for name, size in sizes.items()}
    default = next((name.rstrip("*") for name in sizes if name.endswith("*")), None)
    chosen = queue or default
    if chosen not in queues:
        refuse(f"--queue: got {queue!r}; allowed: {', '.join(sorted(queues))}")
    if not 1 <= nodes <= queues[chosen]:
        refuse(f"--nodes: got {nodes}; allowed: 1 to {queues[chosen]}, the size of queue {chosen}")


def check_directory(output: Path) -> None:
    """Refuse the directory of a run that is in the queue already."""
    for line in ask("squeue", "--noheader", "--format=%i %k").splitlines():
        job, _, comment = line.partition(" ")
        # A path of ours is absolute; other jobs may have any comment.
        if comment.startswith("/") and os.path.realpath(comment) == os.path.realpath(output):
            refuse(f"--output: got {output}, which job {job} uses; allowed: another directory, or: scancel {job}")


def check_program(nodes: int, options: list[str]) -> None:
    """Let the program check its options and input; its exit code ends this program unless it is 0."""
    environment = os.environ.get("ULTRACLUSTER_PYTHON")
    if not environment:
        refuse("ULTRACLUSTER_PYTHON is not set; log in again, or set it to the directory of the Python environment")
    if not Path(environment).is_dir():
        # nodes/software.sh on the head node writes it while it builds the environment.
        file = Path(f"{environment}.state")
        state = " ".join(file.read_text(encoding="utf-8").split()) if file.is_file() else "see the head node"
        refuse(f"there is no Python environment {environment} yet: {state}; its log: {environment}.log")
    workers = os.environ.get("WORKERS_PER_NODE", str(WORKERS_PER_NODE))
    command = [f"{environment}/bin/python", "-m", "pretraining", "check", "--nodes", str(nodes)]
    command += ["--workers-per-node", workers, *options]
    code = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(HERE)}, check=False).returncode
    if code:
        sys.exit(code)


def batch(script: str, given: argparse.Namespace, further: list[str], options: list[str]) -> list[str]:
    """Return the command that submits a job."""
    name = script.partition(".")[0]
    command = ["sbatch", "--parsable", f"--nodes={given.nodes}", f"--output={given.output}/{name}-%j.log"]
    command += [f"--comment={given.output}", *further]
    command += [f"--partition={given.queue}"] if given.queue else []
    return [*command, str(HERE / script), *options]


def submit(given: argparse.Namespace, options: list[str]) -> None:
    """Submit the jobs, or print how, and tell where to look."""
    further = [f"--time={given.time}"] if given.time else []
    further += [f"--export=ALL,WORKER_FIFO_PRIORITY={given.fifo_priority}"] if given.fifo_priority else []
    compile_command = batch("compile.sbatch", given, [], options)
    train_command = batch("train.sbatch", given, further, options)
    chained = ["--dependency=afterok:{}", "--kill-on-invalid-dep=yes"]
    if given.dry_run:
        if not given.no_compile:
            print(shlex.join(compile_command))
            train_command[1:1] = [chained[0].format("JOB"), chained[1]]
        print(shlex.join(train_command))
        return
    given.output.mkdir(parents=True, exist_ok=True)
    jobs = []
    if not given.no_compile:
        jobs.append(ask(*compile_command).strip())
        train_command[1:1] = [chained[0].format(jobs[0]), chained[1]]
        print(f"compile      job {jobs[0]}, log {given.output}/compile-{jobs[0]}.log")
    try:
        jobs.append(ask(*train_command).strip())
    except SystemExit:
        for job in jobs:
            ask("scancel", job)
        raise
    tell(given.output, jobs)


def tell(output: Path, jobs: list[str]) -> None:
    """Print where to look."""
    log = f"{output}/train-{jobs[-1]}.log"
    print(f"train        job {jobs[-1]}, log {log}")
    print(f"metrics      {output}/metrics.jsonl, a line for each step; for TensorBoard {output}/tensorboard")
    print(f"checkpoints  {output}/checkpoints")
    print(f"watch        squeue --jobs {','.join(jobs)}; tail -F {log}")
    print(f"report       ./ultracluster runs show DEPLOYMENT {output}, on your machine")


def main() -> int:
    """Submit what the command line asks for, and return the exit code."""
    given, options = parser().parse_known_args()
    if not given.output.is_absolute():
        refuse(f"--output: got {given.output}; allowed: an absolute path on the shared file system")
    options += ["--output", str(given.output)]
    if given.time is not None:
        check_time(given.time)
    if given.fifo_priority not in (None, *range(1, 100)):
        refuse(f"--fifo-priority: got {given.fifo_priority}; allowed: 1 to 99")
    check_queue(given.queue, given.nodes)
    check_directory(given.output)
    check_program(given.nodes, options)
    submit(given, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
