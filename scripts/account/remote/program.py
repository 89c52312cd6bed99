"""Programs of this project that run on the head node: how they are called, and how their answers are read.

What users of a cluster write comes through here alone. Programs get arguments as words, which no shell and no option
parser interprets, and answer in JSON; each value is checked against its type (`scripts.account.remote.values`) when it
is read.
"""

from __future__ import annotations

import ast
import json
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from scripts.account.remote.head_node import SECONDS, HeadNode
from scripts.core.errors import HeadNodeError

_PROGRAMS = Path(__file__).with_name("programs")
_PACKAGE = "scripts.account.remote.programs."
_FUTURE = "from __future__ import annotations"
T = TypeVar("T")
_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)
"""Returns what checks a type: to make it takes longer than to check the state of a cluster of some nodes."""


def as_user(user: str, words: list[str]) -> list[str]:
    """Return the command that runs words as a user, without a login shell: nothing of the user's runs but the words.

    https://man7.org/linux/man-pages/man1/runuser.1.html
    """
    return ["runuser", f"--user={user}", "--", *words]


def words(program: str, *arguments: str) -> list[str]:
    """Return the command that runs one of `scripts.account.remote.programs`."""
    return of_file(_PROGRAMS / f"{program}.py", *arguments)


def of_file(path: Path, *arguments: str) -> list[str]:
    """Return the command that runs a program, which goes along as text: Python, or shell for /bin/sh.

    Python looks for no modules where it runs, and in no home: those of `scripts.account.remote.programs` that the
    program imports names from stand before it in its text.
    """
    if path.suffix == ".sh":
        return ["sh", "-c", path.read_text(encoding="utf-8"), path.name, *arguments]
    text = "".join(dict(_modules(path)).values())
    return ["python3", "-I", "-c", f"{_FUTURE}\n{text}", *arguments]


def _modules(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the texts of the modules that a program consists of, as they stand in one text, itself last."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    for statement in ast.parse(text).body:
        module = statement.module or "" if isinstance(statement, ast.ImportFrom) else ""
        if module.startswith(_PACKAGE):
            yield from _modules(_PROGRAMS / f"{module.removeprefix(_PACKAGE)}.py")
            of_import = slice(statement.lineno - 1, statement.end_lineno)
            lines[of_import] = [""] * len(lines[of_import])
    yield path, "".join(lines).replace(f"{_FUTURE}\n", "")


def read(text: str, name: str, kind: type[T], errors: str = "") -> T:
    """Return the answer of a name among those that programs printed, a line each.

    Args:
        text: What they printed.
        name: What was asked for.
        kind: Its type.
        errors: What they said beside it.

    Raises:
        ValueError: It is not there, or has another type; the message says what is there.
    """
    answers: dict[str, Any] = {}
    for line in text.splitlines():
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        answers |= answer if isinstance(answer, dict) else {}
    if name not in answers:
        raise ValueError(errors.strip() or text.strip() or "no answer")
    try:
        value: T = _adapter(kind).validate_python(answers[name])
        return value
    except ValidationError as error:
        found = "; ".join(
            f"{'.'.join([name, *map(str, each['loc'])])}: got {str(each['input'])[:80]!r}; {each['msg']}"
            for each in error.errors()[:3]
        )
        raise ValueError(f"it answers what was not asked for: {found}") from None


def ask(head_node: HeadNode, command: list[str], name: str, kind: type[T], *, seconds: int = SECONDS) -> T:
    """Run a program on the head node, and return its answer.

    Args:
        head_node: Where it runs.
        command: `words`, or `as_user` of them.
        name: What is asked for.
        kind: The type of the answer.
        seconds: How long it may take.

    Raises:
        HeadNodeError: The head node or the program did not answer, or not as it should.
    """
    answer = head_node.run(shlex.join(command), seconds=seconds)
    try:
        return read(answer.output, name, kind, answer.errors)
    except ValueError as error:
        raise HeadNodeError(f"The head node {head_node.instance_id} did not say {name}: {error}") from None
