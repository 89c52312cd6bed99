"""Compare training runs by their records, on the head node as its own user, and print that as JSON.

    records.py SUMMARY DIRECTORY...     SUMMARY is the text of training/ultracluster_job/records.py, which reads records

Records may be megabytes, so they are read where they are. What is printed fits into an answer of Systems Manager.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import types
from pathlib import Path
from typing import Any

MOST_BYTES = 256 * 1024 * 1024
"""Of a file of records: those of a million steps."""
LARGEST = 20_000
"""Characters of what is printed."""


def read(path: Path) -> bytes:
    """Return the content of a regular file; its directory is a user's, who may have put anything there.

    Raises:
        OSError: It is something else, cannot be read, or is larger.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path}: not a regular file")
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(f"{path}: larger than {MOST_BYTES:,} bytes")
    return content


def loaded(text: str) -> Any:
    """Return records.py of the job as a module."""
    module = types.ModuleType("summary")
    sys.modules["summary"] = module  # where its dataclasses look for their types
    exec(compile(text, "summary.py", "exec"), module.__dict__)  # noqa: S102 - it comes with this program
    return module


def compared(summary: Any, directories: list[str]) -> dict[str, Any]:
    """Return the comparison, or why there is none; if long, without hosts, and then without the first attempts."""
    runs, problems = [], []
    for directory in directories:
        try:
            runs.append(summary.read_run(Path(directory), read))
        except (summary.RunError, RecursionError, OverflowError) as error:
            problems.append(str(error)[:300])
    if problems:
        return {"problems": problems[:50], "runs": []}
    try:
        rows = [summary.described(run, reference) for run, reference in zip(runs, summary.references(runs))]
    except (ValueError, TypeError, ArithmeticError) as error:  # of numbers that no program of ours has written
        return {"problems": [f"a record is damaged: {error}"[:300]], "runs": []}
    answer: dict[str, Any] = {"problems": [], "runs": rows}
    if len(json.dumps(answer)) > LARGEST:
        for row in rows:
            row["attempts"] = [{**each, "hosts": []} for each in row["attempts"]]
    while len(json.dumps(answer)) > LARGEST and any(len(row["attempts"]) > 1 for row in rows):
        for row in rows:
            row["attempts"] = row["attempts"][len(row["attempts"]) // 2 :]
    return answer


if __name__ == "__main__":
    print(json.dumps({"compared": compared(loaded(sys.argv[1]), sys.argv[2:])}, separators=(",", ":")))
