"""Read files that users may have made, on the head node as one of them, never as root.

    files.py tail PATH LINES [follow]   the last lines of a file, and new ones
    files.py runs DIRECTORY MOST        the newest training runs below a directory, as JSON
    files.py spending DIRECTORY         the records of what nodes cost, as JSON
    files.py software LINES             the software of jobs, and nodes that failed, as JSON

Who may write to a directory can put there a link to another file, a pipe that never has anything to say, or a
device that never ends. So links are not followed, only regular files are read, and no more than a limit of them.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

MOST_BYTES = 1024 * 1024
"""Of a file, but of one whose new lines are followed."""
MOST_FILES = 10_000
_LARGEST = 1e15
"""Of a number in a record."""
_SECONDS = 1.0
_WIDTH = 200
_BY_HAND = "/opt/slurm/etc/ultracluster/team.by-hand"
"""What nodes/team/accounting.py has found at the last update."""
_UNIT = "ultracluster-software"
_NODE_FACTS = "/var/lib/ultracluster/node.env"
"""Arguments of head_node.sh, once it has ended (nodes/lib/common.sh)."""
_DAY = 86_400
_BY_HAND_LINES = 10
_NODES = 5


def open_regular(path: str) -> BinaryIO:
    """Open a regular file.

    Raises:
        OSError: It is something else, or cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path}: not a regular file")
    return os.fdopen(descriptor, "rb")


def read(path: str, most: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: It is something else, cannot be read, or is larger.
    """
    with open_regular(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(f"{path}: larger than {most:,} bytes")
    return content


def end_of(file: BinaryIO, most: int) -> bytes:
    """Return the last bytes of a file, from the start of a line."""
    size = file.seek(0, os.SEEK_END)
    start = file.seek(max(0, size - most))
    content = file.read(most)
    return content.partition(b"\n")[2] if start else content


# --- tail ---


def tail(path: str, lines: int, *, follow: bool, wait: Callable[[float], object] = time.sleep) -> None:
    """Write the last lines of a file; to follow it, also new ones, of a new file of that name, too."""
    said = ""
    file: BinaryIO | None = None
    try:
        while True:
            try:
                file, is_new = _current(path, file)
                if is_new:
                    content = end_of(file, MOST_BYTES)
                    _write(b"".join(content.splitlines(keepends=True)[-lines:]))
                else:
                    while chunk := file.read(65536):
                        _write(chunk)
                said = ""
            except OSError as error:
                if not follow:
                    sys.exit(f"{error.strerror or error}: {path}" if error.strerror else str(error))
                if said != (said := str(error)):
                    print(said, file=sys.stderr, flush=True)
            if not follow:
                return
            wait(_SECONDS)
    finally:
        if file:
            file.close()


def _current(path: str, file: BinaryIO | None) -> tuple[BinaryIO, bool]:
    """Return the file of a name, and whether it is another one, or starts again, since the last look."""
    new = open_regular(path)
    if file is not None:
        now, before = os.fstat(new.fileno()), os.fstat(file.fileno())
        if (now.st_dev, now.st_ino) == (before.st_dev, before.st_ino) and now.st_size >= file.tell():
            new.close()
            return file, False
        file.close()
    return new, True


def _write(content: bytes) -> None:
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


# --- runs ---


def runs(directory: str, most: int) -> dict[str, Any]:
    """Return the runs below a directory: those with a run.json, up to three levels deep; the newest first.

    What cannot be looked at is a run with a problem, and so is the rest of more than `MOST_FILES`.
    """
    rows: list[dict[str, Any]] = []
    _collect(directory, 3, rows)
    rows.sort(key=lambda row: row.get("updated") or 0.0, reverse=True)
    if len(rows) >= MOST_FILES:
        rows.insert(0, {"directory": cut(directory), "problem": f"more than {MOST_FILES:,} runs: name one below"})
    return {"total": len(rows), "runs": rows[:most]}


def _collect(directory: str, depth: int, rows: list[dict[str, Any]]) -> None:
    try:
        with os.scandir(directory) as entries:
            found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    except OSError as error:
        rows.append({"directory": shown(directory), "problem": f"{error.strerror}"})
        return
    if any(name == "run.json" for name, _ in found):
        rows.append(_run(directory))
    for name, is_directory in found:
        if is_directory and depth and len(rows) < MOST_FILES:
            _collect(f"{directory}/{name}", depth - 1, rows)


def shown(path: str) -> str:
    """Return a path as text, cut."""
    return cut(os.fsencode(path).decode(errors="replace"))


def _run(directory: str) -> dict[str, Any]:
    try:
        record = json.loads(read(f"{directory}/run.json"))
        with open_regular(f"{directory}/metrics.jsonl") as file:
            lines = [line for line in end_of(file, 8192).splitlines(keepends=True) if line.endswith(b"\n")]
        last = json.loads(lines[-1]) if lines else {}
        attempt = record["attempts"][-1]
        return {
            "directory": shown(directory),
            "program": cut(str(record.get("program", ""))),
            "nodes": _number(attempt["nodes"], int),
            "attempts": len(record["attempts"]),
            "job": _job(attempt["job"]),
            "step": _number(last.get("step", 0), int),
            "steps": _number(record["options"].get("steps") or last.get("steps"), int),
            "loss": _number(last.get("loss"), float),
            "updated": _moment(last.get("time", attempt["started"])),
        }
    except Exception as error:  # whatever somebody wrote into these files
        return {"directory": shown(directory), "problem": f"{type(error).__name__}: {error}"[:100]}


def _number(value: object, kind: Callable[[Any], Any]) -> Any:
    """Return a number of a record; None: it has none.

    Raises:
        ValueError: It is something else.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < _LARGEST:
        raise ValueError(f"{str(value)[:20]!r} is no number")
    return kind(value)


def _job(value: object) -> str | None:
    if value is None or value == "" or re.fullmatch(r"[0-9]{1,12}(_[0-9]{1,9})?", str(value), re.ASCII):
        return str(value) if value else None
    raise ValueError(f"{str(value)[:20]!r} is no number of a job")


def _moment(value: object) -> float:
    moment = float(_number(value, float))
    if not 0 <= moment < time.time() + _DAY:
        raise ValueError(f"{moment:g} is no time that has been")
    return moment


# --- what nodes cost, the software of jobs ---


def spending(directory: str) -> dict[str, Any]:
    """Return the records by cluster, and the month in which the guard is overruled."""
    records = {}
    for path in sorted(Path(directory).glob("*.json"))[:MOST_FILES]:
        try:
            record = json.loads(read(str(path), 4096))
        except (OSError, ValueError, RecursionError):  # one that is damaged
            continue
        if isinstance(record, dict):
            records[path.stem] = record
    return {"records": records, "overruled": "".join(_lines(f"{directory}/overruled", 1))}


def software(log_lines: int) -> dict[str, Any]:
    """Return the state of the software of jobs, the end of its log, and the newest nodes that failed in a day."""
    profile = '. /etc/profile.d/ultracluster.sh && printf %s "$ULTRACLUSTER_PYTHON"'
    python = subprocess.run(["sh", "-c", profile], capture_output=True, text=True, check=False).stdout
    unit = subprocess.run(["systemctl", "is-active", _UNIT], capture_output=True, text=True, check=False).stdout
    facts = dict(line.partition("=")[::2] for line in _lines(f"{python}.state", 10))
    told = _lines(_NODE_FACTS, 100)
    has_none = bool(told) and not any(each.startswith("sdk=") for each in told)
    if has_none:  # another release may have left its own
        facts = {"state": "none"}
    folder = Path(python).parents[1] / "nodes" / Path(python).name[len("current-") :] if python else Path()
    failed = []
    try:
        found = [(each.lstat().st_mtime, each) for each in folder.iterdir()] if python else []
    except OSError:
        found = []
    for moment, path in sorted(found, reverse=True)[:_NODES]:
        lines = _lines(str(path), 1)
        if moment > time.time() - _DAY and lines:
            failed.append([path.name[:64], time.strftime("%Y-%m-%dT%H:%M", time.gmtime(moment)), *lines])
    return {
        **{key: facts.get(key, "") for key in ("state", "environment", "since", "reason")},
        "unit": unit.strip(),
        "log": [] if has_none else _lines(f"{python}.log", log_lines, last=True),
        "failed_nodes": failed,
        "by_hand": _lines(_BY_HAND, _BY_HAND_LINES),
    }


def _lines(path: str, count: int, *, last: bool = False) -> list[str]:
    """Return the first or last lines of a file, cut; none if it cannot be read."""
    try:
        with open_regular(path) as file:
            content = end_of(file, 65536) if last else file.read(65536)
    except OSError:
        return []
    lines = content.decode(errors="replace").splitlines()
    return [cut(line) for line in (lines[-count:] if last else lines[:count])]


def cut(text: str) -> str:
    """Return text, cut to a length in JSON: an answer has a limit."""
    shown = text[:_WIDTH]
    while len(json.dumps(shown)) > _WIDTH + 2:
        shown = shown[:-1]
    return shown


def main(what: str, *arguments: str) -> None:
    """Do what is asked for; JSON is printed under its name, on one line."""
    if what == "tail":
        tail(arguments[0], int(arguments[1]), follow="follow" in arguments[2:])
        return
    programs: dict[str, Callable[[Sequence[str]], object]] = {
        "runs": lambda words: runs(words[0], int(words[1])),
        "spending": lambda words: spending(words[0]),
        "software": lambda words: software(int(words[0])),
    }
    print(json.dumps({what: programs[what](arguments)}, separators=(",", ":")))


if __name__ == "__main__":
    main(*sys.argv[1:])
