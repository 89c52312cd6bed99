"""What a job runs: a program's ``program.toml``, read and checked.

``python -m ultracluster_job.program DIRECTORY`` prints it as JSON; with ``--shell`` as assignments of bash, for job.sh.
Exit code 0: printed; 2: it cannot be used.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .errors import BAD_INPUT, DIVERGED, STOPPED, BadInputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "program.toml"
STALLED = 76
"""The watchdog's exit code, which is no program's."""
PLACEHOLDERS = ("output", "nodes", "workers_per_node")
EXPORTED = ("output", "checkpoint", "directory")
"""What stands in the words of ``export``."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_WORKERS = 1024
_MOST_CODE = 125  # above, shells have meanings of their own
_MEANINGS = {"bad_input": BAD_INPUT, "diverged": DIVERGED, "stopped": STOPPED}


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of a folder.

    Attributes:
        name: The folder's.
        directory: The folder, absolute: the working directory of all that is run.
        run: What each worker runs, as arguments of Python: a file of the folder or ``-m`` with a module, and options.
            In a word, {output}, {nodes} and {workers_per_node} stand for the run's.
        check: The same, of what looks at the options before anything is submitted; empty: nothing does.
        export: The same, of what makes a directory that other programs load of a checkpoint; {output}, {checkpoint} and
            {directory} stand for those of the run and the new one. Empty: nothing does.
        compile: Options with which it makes all graphs of a run in a few steps; None: nothing is compiled.
        workers_per_node: Processes on each node; None: one for each NeuronCore.
        checkpoints: The pattern of their names in the run's directory; the last number in a name is its step.
        stop_file: A file in the run's directory that asks for a checkpoint and an end with ``stopped``.
        environment: Variables of all that is run, unless they are set already.
        exit_codes: By meaning: bad_input, diverged, stopped.
    """

    name: str
    directory: str
    run: Sequence[str]
    check: Sequence[str] = ()
    export: Sequence[str] = ()
    compile: Sequence[str] | None = None
    workers_per_node: int | None = None
    checkpoints: str = "checkpoints/step-*"
    stop_file: str = "stop"
    environment: Mapping[str, str] = field(default_factory=dict)
    exit_codes: Mapping[str, int] = field(default_factory=lambda: dict(_MEANINGS))


def load(directory: Path) -> Program:
    """Return the program of a folder. One without program.toml is what its train.py is, run as it is.

    Raises:
        BadInputError: With all that is wrong with it.
    """
    path = directory / FILE
    if not directory.is_dir():
        raise BadInputError([f"--program: got {directory}; allowed: a folder"])
    if not path.exists():
        if not (directory / "train.py").is_file():
            raise BadInputError([f"--program: got {directory}; allowed: a folder with {FILE} or train.py"])
        return Program(name=directory.name, directory=str(directory), run=["train.py"])
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInputError([f"{path}: {error}"]) from None
    problems = _problems(said, directory)
    if problems:
        raise BadInputError([f"{path}: {problem}" for problem in problems])
    codes = {**_MEANINGS, **said.pop("exit_codes", {})}
    return Program(name=directory.name, directory=str(directory), exit_codes=codes, **said)


def filled(words: Sequence[str], **values: object) -> list[str]:
    """Return words with what their placeholders stand for."""
    for name, value in values.items():
        words = [word.replace(f"{{{name}}}", str(value)) for word in words]
    return list(words)


def _is_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) and "\0" not in word for word in value)


def _is_path(value: Any) -> bool:
    """Return whether a value is a path in the run's directory."""
    return isinstance(value, str) and value not in ("", ".") and value[0] != "/" and ".." not in value.split("/")


def _is_environment(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _VARIABLE.fullmatch(name) and isinstance(text, str) and "\0" not in text for name, text in value.items()
    )


def _is_codes(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(name in _MEANINGS and type(code) is int for name, code in value.items())
        and all(1 <= code <= _MOST_CODE and code != STALLED for code in value.values())
        and len({**_MEANINGS, **value}.values()) == len(set({**_MEANINGS, **value}.values()))
    )


_KEYS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "run": (lambda value: _is_words(value) and bool(value), 'a list of words, such as ["train.py"]'),
    "check": (_is_words, 'a list of words, such as ["check.py"]'),
    "compile": (_is_words, 'a list of options, such as ["--steps", "5"]'),
    "export": (_is_words, 'a list of words, such as ["export.py", "{checkpoint}", "{directory}"]'),
    "workers_per_node": (
        lambda value: type(value) is int and 1 <= value <= _MOST_WORKERS, f"a whole number, 1 to {_MOST_WORKERS}",
    ),
    "checkpoints": (_is_path, "a pattern of paths in the run's directory, such as checkpoints/step-*"),
    "stop_file": (_is_path, "a path in the run's directory"),
    "environment": (_is_environment, "a table of variables and their texts"),
    "exit_codes": (
        _is_codes, f"a table of {', '.join(_MEANINGS)}: different numbers, 1 to {_MOST_CODE} but for {STALLED}",
    ),
}  # fmt: skip


def _problems(said: Mapping[str, Any], directory: Path) -> list[str]:
    problems = []
    for key, value in said.items():
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            problems.append(f"got {key}; allowed: {', '.join(_KEYS)}{hint}")
        elif not _KEYS[key][0](value):
            problems.append(f"{key}: got {json.dumps(value)}; allowed: {_KEYS[key][1]}")
    if "run" not in said:
        problems.append(f"run: got nothing; allowed: {_KEYS['run'][1]}")
    for key in ("run", "check", "export"):
        words = said.get(key)
        if _is_words(words) and words and words[0] != "-m" and not (directory / words[0]).is_file():
            problems.append(f"{key}: got {words[0]}; allowed: a file of {directory}, or -m and a module")
    for key, known in (("run", PLACEHOLDERS), ("check", PLACEHOLDERS), ("export", EXPORTED)):
        for word in said.get(key) or () if _is_words(said.get(key) or []) else ():
            for name in re.findall(r"\{(\w+)\}", word):
                if name not in known:
                    allowed = ", ".join(f"{{{each}}}" for each in known)
                    problems.append(f"{key}: got {{{name}}}; allowed: {allowed}")
    return problems


def _assignments(program: Program) -> str:
    """Return what job.sh evaluates; the text of a program.toml becomes words of bash and nothing else."""
    arrays = {
        "program_run": program.run,
        "program_compile": program.compile or (),
        "program_environment": [f"{name}={value}" for name, value in program.environment.items()],
    }
    values = {
        "program_name": program.name,
        "program_workers": program.workers_per_node or "",
        "program_checkpoints": program.checkpoints,
        "program_stop_file": program.stop_file,
        **{f"code_{name}": code for name, code in program.exit_codes.items()},
    }
    lines = [f"{name}=({' '.join(map(shlex.quote, words))})" for name, words in arrays.items()]
    return "\n".join([*lines, *(f"{name}={shlex.quote(str(value))}" for name, value in values.items())])


def main(arguments: Sequence[str]) -> int:
    """Print the program of a folder, and return the exit code."""
    *options, directory = arguments
    try:
        program = load(Path(directory))
    except BadInputError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    print(_assignments(program) if options == ["--shell"] else json.dumps(asdict(program)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
