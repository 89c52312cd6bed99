"""Submit a program to Slurm: check, compile, train. On a head or login node.

The program's options come after `--`. They are checked first, where the program can do that, together with the data and
the space they need. What cannot work is told at once, and nothing is submitted. A run belongs to its directory, which
keeps a copy of the program: submit the same again, and it resumes from the newest checkpoint.
Exit code 0: submitted; 1: Slurm refused; 2: the arguments or the input cannot be used.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from operator import mul
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).resolve().parent
NODE_CORES = 32
"""NeuronCores of a trn1.32xlarge."""
MOST_WORKERS = 1024
SHORTEST_TIME = 3600
"""Seconds. A job that starts, takes up a checkpoint and stops 300 s before its limit must have time left to train."""
TIME = re.compile(r"[0-9]+(:[0-9]+){0,2}|[0-9]+-[0-9]+(:[0-9]+){0,2}")
"""Minutes, minutes:seconds, hours:minutes:seconds, days-hours and so on (https://slurm.schedmd.com/sbatch.html#OPT_time)."""

LEFT_OUT = (".git", ".venv", "__pycache__", "node_modules")
"""Folders that are not copied with a program."""
MOST_BYTES = 64 * 1024 * 1024
"""Of a program's folder: data belongs beside it."""
KEPT = "program"
"""The folder, in that of a run, with a copy of each version of its program."""
OUTPUT = re.compile(r"/[A-Za-z0-9 ._/+=@-]+")
"""Other characters mean something to Slurm, to Python's path or in patterns."""
ARRAY = re.compile(r"[0-9]+(-[0-9]+(:[0-9]+)?)?(,[0-9]+(-[0-9]+(:[0-9]+)?)?)*(%[0-9]+)?")
"""https://slurm.schedmd.com/sbatch.html#OPT_array"""

PROGRAMS = """\
PROGRAM is one of these:
  bert             BERT pre-training, the default; docs/reference/training.md has its options, and so has
                   cd "$ULTRACLUSTER_JOBS" && "$ULTRACLUSTER_PYTHON/bin/python" -m programs.bert check --help
  a folder         with program.toml, or with train.py, which each worker runs (docs/guides/own-program.md)
  a file .py       which each worker runs
  a batch script   that begins with #!; it is submitted as it is, and its first argument is the directory of its run
  -                the folder in a tar archive on standard input
"""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser. What comes after `--` is the program's."""
    command_line = argparse.ArgumentParser(
        prog="submit.py", description=__doc__, epilog=PROGRAMS, usage="%(prog)s [options] [-- OPTION...]",
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )  # fmt: skip
    command_line.add_argument("--program", default="bert", help="what to run (default: bert)")
    command_line.add_argument(
        "--env", help="Python environment of the program, as environments.py lists it, or its directory"
    )
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
        "--workers-per-node", type=int, help="processes on each node (default: the program's, or --node-cores)"
    )
    command_line.add_argument(
        "--array", help="tasks as Slurm writes them, such as 0-7%%2: a run each, in the directory OUTPUT/TASK"
    )
    command_line.add_argument("--after", type=Path, help="directory of a run that must end well before this one starts")
    command_line.add_argument(
        "--no-compile", action="store_true", help="train at once: nodes compile what is not in the cache"
    )
    command_line.add_argument(
        "--fifo-priority", type=int,
        help="train under the kernel's real-time policy SCHED_FIFO with this priority, 1 to 99 (default: not)",
    )  # fmt: skip
    command_line.add_argument(
        "--node-dollars", type=float, help="price of a node-hour, for what the job tells of its costs (default: none)"
    )
    command_line.add_argument(
        "--node-tflops", type=float, help="dense BF16 of a node, TFLOPS, for the MFU that the job tells (default: none)"
    )
    command_line.add_argument(
        "--node-cores", type=int, default=NODE_CORES, help="NeuronCores of a node (default: %(default)s)"
    )
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


def jobs_of(run: Path) -> list[str]:
    """Return the numbers of the jobs in the queue that have this run's directory."""
    found = []
    wanted = Path(os.path.realpath(run))
    for line in ask("squeue", "--me", "--noheader", "--format=%A %k").splitlines():
        job, _, comment = line.partition(" ")
        # A path of ours is absolute; other jobs may have any comment. Below that of an array are its tasks'.
        if comment.startswith("/") and Path(os.path.realpath(comment)) in (wanted, wanted.parent):
            found.append(job)
    return list(dict.fromkeys(found))


def check_directory(output: Path) -> None:
    """Refuse the directory of a run that is in the queue already, and one into which somebody else may write."""
    if output.exists():
        there = output.stat()
        if there.st_uid != os.getuid() or there.st_mode & 0o002:
            refuse(f"--output: got {output}, where others write; allowed: a directory of yours, or a new one")
    for job in jobs_of(output):
        refuse(f"--output: got {output}, which job {job} uses; allowed: another directory, or: scancel {job}")


def dependencies(after: Path | None) -> list[str]:
    """Return what sbatch is told of a run that must end well before."""
    if after is None:
        return []
    if not after.is_absolute():
        refuse(f"--after: got {after}; allowed: an absolute path on the shared file system")
    jobs = jobs_of(after)
    tasks = [each for each in after.iterdir() if each.name.isdigit()] if after.is_dir() else []
    is_finished = (after / "finished").exists() or (tasks and all((each / "finished").exists() for each in tasks))
    if not jobs and not is_finished:
        refuse(
            f"--after: got {after}, with no job in the queue and not finished; allowed: a run that is one of these (a "
            "batch script leaves no sign that it is finished)"
        )
    return [f"afterok:{job}" for job in jobs]


def environment_directory(named: str | None) -> str:
    """Return the directory of the Python environment, or say why there is none."""
    if named is not None:
        own = Path(named) if "/" in named else HERE.parents[1] / "envs" / named
        if not own.is_absolute() or not (own / "bin/python").exists():
            refuse(f"--env: got {named}; allowed: what environments.py lists, or an absolute path with bin/python")
        return str(own)
    environment = os.environ.get("ULTRACLUSTER_PYTHON")
    if not environment:
        refuse("ULTRACLUSTER_PYTHON is not set; log in again, or set it to the directory of the Python environment")
    if not Path(environment).is_dir():
        # nodes/software.sh on the head node writes it while it builds the environment.
        file = Path(f"{environment}.state")
        state = " ".join(file.read_text(encoding="utf-8").split()) if file.is_file() else "see the head node"
        refuse(f"there is no Python environment {environment} yet: {state}; its log: {environment}.log")
    return environment


def is_script(path: Path) -> bool:
    """Return whether a file is a batch script."""
    with path.open("rb") as file:
        return file.read(2) == b"#!" and path.suffix != ".py"


@contextlib.contextmanager
def found(program: str) -> Iterator[Path]:
    """Yield the folder or the batch script that is meant; the folder of a file of Python is made for it."""
    if re.fullmatch(r"[a-z][a-z0-9_]*", program) and (HERE / "programs" / program / "program.toml").is_file():
        yield HERE / "programs" / program
        return
    path = Path(program).resolve()
    if program != "-" and (path.is_dir() or (path.is_file() and is_script(path))):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="submit-") as directory:
        if program == "-":
            try:
                folder = unpacked(Path(directory))
            except (tarfile.TarError, EOFError, OSError) as error:
                refuse(f"--program: got no archive on standard input; allowed: one of tar ({error})")
            yield folder
        elif path.is_file() and path.suffix == ".py":
            folder = Path(directory) / path.stem
            folder.mkdir()
            shutil.copy(path, folder)
            (folder / "program.toml").write_text(f"run = [{json.dumps(path.name)}]\n", encoding="utf-8")
            print(f"of {path.parent}, {path.name} alone is copied; --program {path.parent} takes all")
            yield folder
        else:
            known = ", ".join(sorted(each.parent.name for each in (HERE / "programs").glob("*/program.toml")))
            refuse(
                f"--program: got {program}; allowed: {known}, a folder, a file .py, a batch script that begins with #!"
            )


def unpacked(directory: Path) -> Path:
    """Return the one folder or script that a tar archive on standard input has, unpacked."""
    size = 0
    with tarfile.open(fileobj=sys.stdin.buffer, mode="r|*") as archive:
        for member in archive:
            size += member.size
            if size > MOST_BYTES:
                refuse(f"--program: got more than {MOST_BYTES:,} bytes; data belongs beside a program")
            parts = Path(member.name).parts
            if member.name.startswith("/") or ".." in parts or not (member.isfile() or member.isdir()):
                refuse(f"--program: got {member.name} in the archive; allowed: files and folders below one of them")
            target = directory / member.name
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            target.write_bytes(content.read() if content else b"")
            target.chmod(0o755 if member.mode & 0o100 else 0o644)
    entries = list(directory.iterdir())
    if len(entries) != 1:
        refuse(f"--program: got an archive of {len(entries)} folders; allowed: one")
    return entries[0]


def files_of(folder: Path) -> list[Path]:
    """Return the files of a program, relative to its folder, in order; a single file is its own."""
    if folder.is_file():
        return [Path(folder.name)]
    files, size = [], 0
    for directory, below, names in os.walk(folder):
        below[:] = sorted(set(below) - set(LEFT_OUT))
        for name in [*names, *below]:
            path = Path(directory) / name
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                refuse(f"--program: got {path}, a link or special file; allowed: files and folders")
        files += [(Path(directory) / name).relative_to(folder) for name in sorted(names)]
        size += sum((Path(directory) / name).stat().st_size for name in names)
    if size > MOST_BYTES:
        refuse(f"--program: got {folder} with {size:,} bytes; allowed: {MOST_BYTES:,}; data belongs beside it")
    return sorted(files)


def digest(folder: Path) -> str:
    """Return 12 digits that name what a program consists of: the names, contents and permissions of its files."""
    whole = hashlib.sha256()
    for name in files_of(folder):
        path = folder if folder.is_file() else folder / name
        executable = bool(path.stat().st_mode & 0o100)
        head = json.dumps([str(name), executable, path.stat().st_size]).encode()
        whole.update(head + b"\n" + path.read_bytes())
    return whole.hexdigest()[:12]


def keep(folder: Path, output: Path) -> Path:
    """Copy a program into the directory of its run, where each version has a folder, and return the copy."""
    target = output / KEPT / digest(folder) / folder.name
    if target.exists():
        if digest(target) != target.parent.name:
            refuse(f"--output: got {output}, whose copy {target} has changed; remove that, or take another directory")
        return target
    try:
        target.parent.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=target.parent.parent) as directory:
            new = Path(directory) / "files"
            copy = new / folder.name
            new.mkdir()
            for name in files_of(folder):
                source, place = (folder, copy) if folder.is_file() else (folder / name, copy / name)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, place)
                place.chmod(0o555 if source.stat().st_mode & 0o100 else 0o444)
            target.parent.mkdir(exist_ok=True)
            try:
                copy.rename(target)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # another submission was first
                    raise
    except OSError as error:
        refuse(f"--output: got {output}; allowed: a directory that takes a copy of {folder.name} ({error})")
    return target


def read_program(python: str, folder: Path) -> dict[str, Any]:
    """Return what program.toml says, read by a Python that has what reads TOML: from 3.11 on, or an environment's."""
    command = [python, "-m", "ultracluster_job.program", str(folder)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(HERE)}, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    program: dict[str, Any] = json.loads(done.stdout)
    return program


def check_program(
    environment: str, folder: Path, program: dict[str, Any], given: argparse.Namespace, options: Sequence[str]
) -> None:
    """Let the program check its options and input; its exit code ends this program unless it is 0."""
    if not program["check"]:
        print(f"{program['name']} has no check: its options are taken as they are")
        return
    values = {
        "{output}": str(given.output), "{nodes}": str(given.nodes), "{workers_per_node}": str(given.workers_per_node),
    }  # fmt: skip
    words = program["check"]
    for name, value in values.items():
        words = [word.replace(name, value) for word in words]
    variables = {**program["environment"], **os.environ, "PYTHONPATH": f"{HERE}:{folder.parent}"}
    command = [f"{environment}/bin/python", *words, *options]
    code = subprocess.run(command, env=variables, cwd=folder, check=False).returncode
    if code:
        sys.exit(code)


def batch(name: str, given: argparse.Namespace, further: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the command that submits a job of this name."""
    log = "%A_%a" if "--array" in " ".join(further) else "%j"
    command = ["sbatch", "--parsable", f"--nodes={given.nodes}", f"--output={given.output}/{name}-{log}.log"]
    command += [f"--comment={given.output}", *further]
    command += [f"--partition={given.queue}"] if given.queue else []
    return [*command, *words]


def make_directory(output: Path) -> None:
    """Make the directory of a run, where Slurm writes the logs."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse(f"--output: got {output}; allowed: a directory that you may make ({error})")


def submit(given: argparse.Namespace, commands: dict[str, list[str]], wait_for: Sequence[str]) -> None:
    """Submit jobs, each after the one before, or print how, and tell where to look."""
    jobs: list[str] = []
    if not given.dry_run:
        make_directory(given.output)
    for command in commands.values():
        if dependency := [f"afterok:{jobs[-1]}"] if jobs else wait_for:
            command[1:1] = [f"--dependency={','.join(dependency)}", "--kill-on-invalid-dep=yes"]
        if given.dry_run:
            print(shlex.join(command))
            jobs.append("JOB")
            continue
        try:
            jobs.append(ask(*command).strip())
        except SystemExit:
            for job in jobs:
                ask("scancel", job)
            raise
    if not given.dry_run:
        for name, job in zip(commands, jobs):  # noqa: B905 - Python 3.9
            print(f"{name:12} job {job}, log {log_of(given, name, job)}")
        tell(given, jobs, list(commands)[-1])


def log_of(given: argparse.Namespace, name: str, job: str) -> str:
    """Return the path of a job's log."""
    return f"{given.output}/{name}-{job}{'_TASK' if given.array and name != 'compile' else ''}.log"


def tell(given: argparse.Namespace, jobs: Sequence[str], name: str) -> None:
    """Print where to look."""
    output = f"{given.output}/TASK" if given.array else str(given.output)
    if name == "train":
        print(f"metrics      {output}/metrics.jsonl, a line for each step; for TensorBoard {output}/tensorboard")
        print(f"checkpoints  {output}/checkpoints")
    print(f"watch        squeue --jobs {','.join(jobs)}; tail -F {log_of(given, name, jobs[-1])}")
    if name == "train":
        print(f"report       ./ultracluster runs show DEPLOYMENT {output}, on your machine")


def check_arguments(given: argparse.Namespace) -> None:
    """Refuse what cannot be meant."""
    if not given.output.is_absolute():
        refuse(f"--output: got {given.output}; allowed: an absolute path on the shared file system")
    if not OUTPUT.fullmatch(str(given.output)):
        refuse(f"--output: got {str(given.output)!r}; allowed: letters, digits, spaces and . _ / + = @ -")
    if given.fifo_priority not in (None, *range(1, 100)):
        refuse(f"--fifo-priority: got {given.fifo_priority}; allowed: 1 to 99")
    if given.workers_per_node is not None and not 1 <= given.workers_per_node <= MOST_WORKERS:
        refuse(f"--workers-per-node: got {given.workers_per_node}; allowed: 1 to {MOST_WORKERS}")
    if given.array is not None and not ARRAY.fullmatch(given.array):
        refuse(f"--array: got {given.array!r}; allowed: tasks as Slurm writes them, such as 0-7 or 1,3,5%2")
    for option, value in (("--node-dollars", given.node_dollars), ("--node-tflops", given.node_tflops)):
        if value is not None and not 0 <= value < float("inf"):
            refuse(f"{option}: got {value}; allowed: a number from 0 on")
    if not 1 <= given.node_cores <= MOST_WORKERS:
        refuse(f"--node-cores: got {given.node_cores}; allowed: 1 to {MOST_WORKERS}")


def check_script(given: argparse.Namespace) -> None:
    """Refuse options that a batch script does not get."""
    ignored = {
        "--workers-per-node": given.workers_per_node, "--fifo-priority": given.fifo_priority, "--env": given.env,
        "--no-compile": given.no_compile or None,
    }  # fmt: skip
    for option, value in ignored.items():
        if value is not None:
            refuse(f"{option}: got it with a batch script, which is submitted as it is; allowed: with a program")


def further_options(given: argparse.Namespace, program: dict[str, Any], environment: str = "") -> list[str]:
    """Return what sbatch is told of the training job alone."""
    exported = [f"WORKERS_PER_NODE={given.workers_per_node}"] if program else []
    exported += [f"ULTRACLUSTER_PYTHON={environment}"] if given.env else []
    exported += [f"WORKER_FIFO_PRIORITY={given.fifo_priority}"] if given.fifo_priority else []
    exported += [f"ULTRACLUSTER_NODE_DOLLARS={given.node_dollars:g}"] if given.node_dollars is not None else []
    exported += [f"ULTRACLUSTER_NODE_TFLOPS={given.node_tflops:g}"] if given.node_tflops else []
    further = [f"--time={given.time}"] if given.time else []
    further += [f"--array={given.array}"] if given.array else []
    return [*further, *([f"--export=ALL,{','.join(exported)}"] if exported else [])]


def main() -> int:
    """Submit what the command line asks for, and return the exit code."""
    arguments = sys.argv[1:]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    given, options = parser().parse_args(arguments[:end]), arguments[end + 1 :]
    check_arguments(given)
    check_queue(given.queue, given.nodes)
    check_directory(given.output)
    wait_for = dependencies(given.after)
    with found(given.program) as folder:
        if folder.is_file():
            check_script(given)
            files = keep(folder, given.output) if not given.dry_run else folder
            further = ["--open-mode=append", *further_options(given, {})]
            command = batch("job", given, further, [str(files), str(given.output), *options])
            submit(given, {"job": command}, wait_for)
            return 0
        if given.time is not None:
            check_time(given.time)
        environment = environment_directory(given.env)
        python = sys.executable if sys.version_info >= (3, 11) else f"{environment}/bin/python"
        program = read_program(python, folder)
        workers = os.environ.get("WORKERS_PER_NODE") or str(program["workers_per_node"] or given.node_cores)
        if not re.fullmatch(r"[1-9][0-9]{0,3}", workers):
            refuse(f"WORKERS_PER_NODE: got {workers!r}; allowed: 1 to {MOST_WORKERS}")
        given.workers_per_node = given.workers_per_node or int(workers)
        check_program(environment, folder, program, given, options)
        is_shipped = folder.parent == HERE / "programs"
        if not is_shipped:
            files_of(folder)  # refuses what cannot be copied
        place = folder if is_shipped or given.dry_run else keep(folder, given.output)
        words = [str(place), str(given.output), *options]
        commands = {}
        if program["compile"] is not None and not given.no_compile:
            exported = f"--export=ALL,WORKERS_PER_NODE={given.workers_per_node}"
            exported += f",ULTRACLUSTER_PYTHON={environment}" if given.env else ""
            commands["compile"] = batch("compile", given, [exported], [str(HERE / "compile.sbatch"), *words])
        further = further_options(given, program, environment)
        commands["train"] = batch("train", given, further, [str(HERE / "train.sbatch"), *words])
        submit(given, commands, wait_for)
    return 0


if __name__ == "__main__":
    sys.exit(main())
