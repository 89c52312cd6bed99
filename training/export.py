"""Export a checkpoint of a run to a directory that other programs load. On a head or login node, as the run's owner.

The program of the run does it (`export` in its program.toml), on the CPU, and this adds README.md: what was trained on
what. DIRECTORY must not exist, and is there whole or not at all.
Exit code 0: exported; 1: it failed; 2: the arguments or the checkpoint cannot be used.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from submit import KEPT, read_program

HERE = Path(__file__).resolve().parent


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    command_line = argparse.ArgumentParser(
        prog="export.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    command_line.add_argument("run", type=Path, metavar="RUN", help="directory of the run")
    command_line.add_argument("directory", type=Path, metavar="DIRECTORY", help="where to; it must not exist")
    command_line.add_argument("--step", type=int, help="the step of the checkpoint (default: the newest)")
    command_line.add_argument(
        "--env", help="Python environment of the program, as environments.py lists it, or its directory"
    )
    return command_line


def refuse(message: str) -> NoReturn:
    """End with exit code 2."""
    print(f"export.py: {message}", file=sys.stderr)
    sys.exit(2)


def facts_of(run: Path) -> dict[str, Any]:
    """Return what the run's run.json says; nothing where a program records nothing."""
    try:
        said = json.loads((run / "run.json").read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        refuse(f"RUN: got {run}; allowed: the directory of a run ({error})")
    return said if isinstance(said, dict) else {}


def folder_of(run: Path, facts: Mapping[str, Any]) -> Path:
    """Return the folder of a run's program: one that is shipped, or the run's own copy.

    A copy must be of who runs this, or somebody else's program would run in their name.
    """
    copies = sorted((run / KEPT).glob("*/*"), key=lambda path: path.stat().st_mtime)
    named, version = str(facts.get("program") or ""), dict(facts.get("versions") or {}).get("program")
    copy = next((each for each in copies if (each.name, each.parent.name) == (named, version)), None)
    shipped = HERE / "programs" / named
    if copy is None and shipped.parent == HERE / "programs" and (shipped / "program.toml").is_file():
        return shipped
    copy = copy or (copies[-1] if copies else None)
    if copy is None:
        refuse(f"RUN: got {run}; allowed: the directory of a run, with run.json or a copy of its program")
    for path in (run, run / KEPT, copy.parent, copy, *copy.rglob("*")):
        if path.is_symlink() or path.lstat().st_uid != os.getuid():
            refuse(f"RUN: got {run} with {path}, which is not yours; allowed: a program of your own")
    return copy


def checkpoint_of(run: Path, pattern: str, step: int | None) -> tuple[Path, int]:
    """Return a checkpoint and its step, the last number in its name: the newest, or that of a step."""
    from ultracluster_job.files import numbered

    found = dict(numbered(run, pattern))
    if not found:
        refuse(f"RUN: got {run}; allowed: the directory of a run with a checkpoint, {pattern}")
    chosen = max(found) if step is None else step
    if chosen not in found:
        refuse(f"--step: got {step}; allowed: {', '.join(map(str, sorted(found)))}")
    return found[chosen], chosen


def card(name: str, run: Path, step: int, facts: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> str:
    """Return README.md: what was trained on what.

    Args:
        name: The program's.
        run: The directory of the run.
        step: Of the checkpoint.
        facts: Of run.json.
        lines: The steps of metrics.jsonl up to this one.
    """
    last = next((line for line in lines if line["step"] == step), {})
    evaluated: Mapping[str, Any] = next((line for line in reversed(lines) if "evaluation_loss" in line), {})
    attempts = facts.get("attempts") or [{}]
    rows = [
        ("program", name),
        ("run", run),
        ("steps", f"{step}{f' of {wanted:.0f}' if (wanted := last.get('steps')) else ''}"),
        ("loss", last.get("loss")),
        ("evaluation loss", f"{evaluated['evaluation_loss']}, after step {evaluated['step']}" if evaluated else None),
        ("sequences", sum(line.get("sequences") or 0 for line in lines) or None),
        ("tokens, padding counted", sum(line.get("tokens") or 0 for line in lines) or None),
        ("trained", " to ".join(_day(moment) for moment in (attempts[0].get("started"), last.get("time")) if moment)),
        ("attempts, nodes and workers of the last", _attempts(attempts)),
        ("exported", _day(time.time())),
    ]
    blocks = [f"# {name}, step {step}", _table(rows)]
    for title, key in (("Data and sizes", "identity"), ("Options", "options"), ("Versions", "versions")):
        if isinstance(given := facts.get(key), dict) and given:
            blocks += [f"## {title}", _table(list(given.items()))]
    return "\n\n".join(blocks) + "\n"


def _attempts(attempts: Sequence[Mapping[str, Any]]) -> str | None:
    last = attempts[-1]
    return f"{len(attempts)}, {last['nodes']}, {last['workers']}" if last else None


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(moment))


def _table(rows: Sequence[tuple[str, Any]]) -> str:
    """Return a table of what is known; nothing in it can end a cell."""
    cells = [
        (name, " ".join(str(value).split()).replace("|", "\\|")) for name, value in rows if value not in (None, "")
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in cells)])


def steps_until(run: Path, step: int) -> list[dict[str, Any]]:
    """Return the lines of metrics.jsonl up to a step; what is damaged is left out."""
    from ultracluster_job.records import METRICS, parse_step

    try:
        lines = (run / METRICS).read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    return [each.line() for line in lines if (each := parse_step(line)) and each.step <= step]


def export(python: str, run: Path, directory: Path, step: int | None) -> int:
    """Export a checkpoint, and return the exit code."""
    facts = facts_of(run)
    folder = folder_of(run, facts)
    program = read_program(python, folder)
    name = program["name"]
    if not program["export"]:
        refuse(f"RUN: got {run} of {name}, whose program.toml has no export; allowed: a program that has one")
    checkpoint, chosen = checkpoint_of(run, program["checkpoints"], step)
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent) as parent:
        new = Path(parent) / directory.name
        words = program["export"]
        for placeholder, value in (("output", run), ("checkpoint", checkpoint), ("directory", new)):
            words = [word.replace(f"{{{placeholder}}}", str(value)) for word in words]
        variables = {**program["environment"], **os.environ, "PYTHONPATH": f"{HERE}:{folder.parent}"}
        code = subprocess.run([python, *words], env=variables, cwd=folder, check=False).returncode
        if code:
            return 2 if code == program["exit_codes"]["bad_input"] else 1
        if not new.is_dir():
            print(f"export.py: {name} ended well and made no directory", file=sys.stderr)
            return 1
        text = card(name, run, chosen, facts, steps_until(run, chosen))
        if not (new / "README.md").exists():
            (new / "README.md").write_text(text, encoding="utf-8")
        new.rename(directory)
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    print(f"step {chosen} of {run} is in {directory}: {size / 1e6:,.1f} MB")
    return 0


def main() -> int:
    """Export what the command line asks for, and return the exit code."""
    given = parser().parse_args()
    environment = os.environ.get("ULTRACLUSTER_PYTHON", "")
    if given.env:
        environment = given.env if "/" in given.env else str(HERE.parents[1] / "envs" / given.env)
    python = f"{environment}/bin/python"
    if not environment.startswith("/") or not Path(python).exists():
        name = "--env" if given.env else "ULTRACLUSTER_PYTHON"
        refuse(
            f"{name}: got {given.env or environment or 'nothing'}; allowed: a Python environment, by a new login or "
            "as environments.py lists it"
        )
    for name, path in (("RUN", given.run), ("DIRECTORY", given.directory)):
        if not path.is_absolute():
            refuse(f"{name}: got {path}; allowed: an absolute path on the shared file system")
    if not given.run.is_dir():
        refuse(f"RUN: got {given.run}; allowed: the directory of a run")
    if os.path.lexists(given.directory):
        refuse(f"DIRECTORY: got {given.directory}, which exists; allowed: another")
    if not os.access(given.directory.parent, os.W_OK | os.X_OK):
        refuse(f"DIRECTORY: got {given.directory}; allowed: one below a directory that you may write to")
    return export(python, given.run, given.directory, given.step)


if __name__ == "__main__":
    sys.exit(main())
