"""Python environments of users' programs: made once, never changed, named by what is in them. On a head or login node.

    environments.py create [--alone] [--python VERSION] [REQUIREMENTS]    a requirements file, or standard input
    environments.py list [--format json]
    environments.py remove NAME

One stands on the cluster's own environment, which it takes as it is but for what the requirements want otherwise; or,
with --alone, by itself, with any Python that uv finds or downloads. `submit --env NAME` runs a program in it.
Exit code 0: done; 1: it was not made, and nothing is left; 2: arguments or requirements cannot be used.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

FACTS = "environment.json"
"""The file in an environment that says what it is; it is written last."""
LOCK = "requirements.lock"
"""The file in an environment with the exact versions that were installed into it."""
NAME = re.compile(r"[A-Za-z0-9._-]+\.env-[0-9a-f]{12}")
VERSION = re.compile(r"3\.[0-9]{1,2}(\.[0-9]{1,2})?")
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;+]+)", re.MULTILINE)
_OTHER_FILE = re.compile(r"-[rce]|--requirement|--constraint|--editable")
_BUILD = ".build-"


class NotMadeError(Exception):
    """An environment was not made; the message is for the user."""


def refuse(message: str) -> NoReturn:
    """End with exit code 2."""
    print(f"environments.py: {message}", file=sys.stderr)
    sys.exit(2)


def home() -> Path:
    """Return where environments of users are: beside the programs of jobs, on the file system that all nodes share."""
    return Path(__file__).resolve().parents[2] / "envs"


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    command_line = argparse.ArgumentParser(
        prog="environments.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )  # fmt: skip
    command_line.add_argument("--directory", type=Path, default=None, help=argparse.SUPPRESS)
    commands = command_line.add_subparsers(dest="command", required=True)
    create_command = commands.add_parser("create", help="make an environment, unless it is there")
    create_command.add_argument(
        "requirements", nargs="?", default="-", help="a requirements file (default: standard input)"
    )
    create_command.add_argument("--alone", action="store_true", help="not on the cluster's environment")
    create_command.add_argument("--python", help="version of Python, such as 3.11; with --alone")
    list_command = commands.add_parser("list", help="list the environments")
    list_command.add_argument("--format", choices=("text", "json"), default="text", help="json for programs")
    remove_command = commands.add_parser("remove", help="remove an environment of yours")
    remove_command.add_argument("name", help="its name, as listed")
    return command_line


# --- create ---


def create(directory: Path, requirements: str, *, alone: bool, python: str | None) -> Path:
    """Make an environment, unless it is there, and return the link that names it.

    Raises:
        NotMadeError: It could not be made; nothing is left of it.
    """
    base = None if alone else cluster_environment()
    lines = [line for each in requirements.splitlines() if (line := re.sub(r"(^|\s)#.*", "", each).strip())]
    wanted = {
        "requirements": lines,
        "base": base.name.partition(_BUILD)[0] if base else None,
        "python": python,
    }
    digest = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:12]
    link = directory / f"{wanted['base'] or 'python' + (python or '')}.env-{digest}"
    with locked(directory, link.name):
        if (link / FACTS).is_file():
            print(f"{link.name} is there")
            return link
        place = Path(tempfile.mkdtemp(prefix=f"{link.name}{_BUILD}", dir=directory))
        place.chmod(0o755)
        try:
            build(place, "\n".join(lines) + "\n", base, python)
            facts = {**wanted, "created": time.time(), "on": str(base) if base else None}
            (place / FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
            new = directory / f".{place.name}"
            new.symlink_to(place.name)
            new.replace(link)
        except BaseException as error:
            shutil.rmtree(place, ignore_errors=True)
            if isinstance(error, OSError):
                raise NotMadeError(str(error)) from None
            raise
    return link


def cluster_environment() -> Path:
    """Return the cluster's environment, whichever release its link leads to just now."""
    environment = Path(os.environ.get("ULTRACLUSTER_PYTHON") or refuse("ULTRACLUSTER_PYTHON is not set; log in again"))
    if not (environment / "bin/python").exists():
        refuse(f"there is no Python environment {environment}; with --alone it needs none")
    return environment.resolve()


@contextlib.contextmanager
def locked(directory: Path, name: str) -> Iterator[None]:
    """Let one process at a time make an environment; Lustre is mounted with flock, so the lock holds on all nodes."""
    with (directory / f".{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(place: Path, requirements: str, base: Path | None, python: str | None) -> None:
    """Fill a directory with an environment.

    What stands on another takes from it what has the version that the requirements want, or want none of: its packages
    come after the own ones on Python's path. Of its commands there are links, which run with its own Python.
    """
    (place / "requirements.txt").write_text(requirements, encoding="utf-8")
    uv(
        "venv",
        "--quiet",
        "--allow-existing",
        "--python",
        str(base / "bin/python") if base else python or "3",
        str(place),
    )
    if base is None:
        uv("pip", "install", "--quiet", "--python", str(place), "--requirements", str(place / "requirements.txt"))
        (place / LOCK).write_text(uv("pip", "freeze", "--python", str(place)), encoding="utf-8")
        return
    there = frozen(base)
    (place / LOCK).write_text(there, encoding="utf-8")  # uv prefers the versions of a file that it writes again
    uv(
        "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", str(base / "bin/python"),
        "--output-file", str(place / LOCK), str(place / "requirements.txt"),
    )  # fmt: skip
    lock = (place / LOCK).read_text(encoding="utf-8")
    known = {normal(name): version for name, version in _PIN.findall(there)}
    own = [line for line in lock.splitlines() if (pin := _PIN.match(line)) and known.get(normal(pin[1])) != pin[2]]
    (place / LOCK).write_text("".join(f"{line}\n" for line in own), encoding="utf-8")
    if own:
        options = [line for line in requirements.splitlines() if line.startswith("-") and not _OTHER_FILE.match(line)]
        (place / "own.txt").write_text("\n".join([*options, *own]) + "\n", encoding="utf-8")
        uv("pip", "install", "--quiet", "--no-deps", "--python", str(place), "--requirements", str(place / "own.txt"))
    [packages] = place.glob("lib/python*/site-packages")
    [of_base] = base.glob("lib/python*/site-packages")
    (packages / "cluster.pth").write_text(f"{of_base}\n", encoding="utf-8")
    for command in (base / "bin").iterdir():
        if not (place / "bin" / command.name).exists():
            (place / "bin" / command.name).symlink_to(command)


def frozen(base: Path) -> str:
    """Return the versions in the cluster's environment, a line each."""
    installed = base / "installed.txt"  # as nodes/install/python_environment.sh leaves it
    text = installed.read_text(encoding="utf-8") if installed.exists() else uv("pip", "freeze", "--python", str(base))
    return "".join(f"{name}=={version}\n" for name, version in _PIN.findall(text))


def normal(name: str) -> str:
    """Return a name as https://packaging.python.org/en/latest/specifications/name-normalization/ has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def uv(*arguments: str) -> str:
    """Run uv, which the cluster's environment brings, and return what it prints.

    Raises:
        NotMadeError: It failed; the message is its own.
    """
    beside = Path(os.environ.get("ULTRACLUSTER_PYTHON", "")) / "bin/uv"
    program = str(beside) if beside.is_file() else shutil.which("uv")
    if program is None:
        raise NotMadeError(f"there is no uv, neither {beside} nor on PATH")
    cache = os.environ.get("UV_CACHE_DIR") or str(
        home() / f".cache-{os.getuid()}"
    )  # same file system: links, no copies
    environment = {**os.environ, "UV_CACHE_DIR": cache}
    done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotMadeError(f"uv {' '.join(arguments[:2])}: {(done.stderr or done.stdout).strip()[-3000:]}")
    return done.stdout


# --- list and remove ---


def listed(directory: Path) -> list[dict[str, Any]]:
    """Return what is known of each environment, the newest first; one that cannot be read says why."""
    found = []
    for link in sorted(directory.glob("*.env-*")) if directory.is_dir() else []:
        if not NAME.fullmatch(link.name) or not link.is_symlink():
            continue
        row: dict[str, Any] = {"name": link.name, "user": owner(link), "problem": ""}
        try:
            facts = json.loads((link / FACTS).read_text(encoding="utf-8")[:100_000])
            on = facts["on"]
            row |= {
                "created": float(facts["created"]),
                "base": facts["base"],
                "python": facts["python"],
                "requirements": [str(each) for each in facts["requirements"]],
            }
            if on and not Path(str(on)).is_dir():
                row["problem"] = f"{on}, on which it stands, is gone"
        except (OSError, ValueError, KeyError, TypeError) as error:
            row["problem"] = f"{type(error).__name__}: {error}"[:200]
        found.append(row)
    return sorted(found, key=lambda row: -row.get("created", 0.0))


def owner(path: Path) -> str:
    """Return the name of who owns a file, or the number."""
    number = path.lstat().st_uid
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def remove(directory: Path, name: str) -> None:
    """Remove an environment.

    Raises:
        NotMadeError: It is not there, or somebody else's.
    """
    link = directory / name
    if not NAME.fullmatch(name) or not link.is_symlink():
        raise NotMadeError(f"there is no environment {name}")
    place = link.resolve()
    try:
        link.unlink()
        (directory / f".{name}.lock").unlink(missing_ok=True)
        if place.parent == directory.resolve() and place.name.startswith(f"{name}{_BUILD}"):
            shutil.rmtree(place)
    except OSError as error:
        raise NotMadeError(f"{name} is {owner(place)}'s, and was not removed: {error}") from None


def main() -> int:
    """Do what the command line asks, and return the exit code."""
    given = parser().parse_args()
    directory = given.directory or home()
    try:
        if given.command == "create":
            if given.python and not (given.alone and VERSION.fullmatch(given.python)):
                refuse(f"--python: got {given.python}; allowed: a version such as 3.11, with --alone")
            text = (
                sys.stdin.read() if given.requirements == "-" else Path(given.requirements).read_text(encoding="utf-8")
            )
            if not text.strip():
                refuse("got no requirements; allowed: a requirements file")
            link = create(directory, text, alone=given.alone, python=given.python)
            print(f"environment  {link.name}, {link}")
            print(f"use          submit ... --env {link.name}")
        elif given.command == "list" and given.format == "json":
            print(json.dumps({"environments": listed(directory)[:100]}))
        elif given.command == "list":
            for row in listed(directory):
                print(row["name"], row["user"], row["problem"] or ", ".join(row["requirements"])[:80], sep="  ")
        else:
            remove(directory, given.name)
            print(f"{given.name} is removed; jobs that run in it fail")
    except (UnicodeDecodeError, FileNotFoundError) as error:
        refuse(f"got {given.requirements}; allowed: a requirements file ({error})")
    except NotMadeError as error:
        print(f"environments.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
