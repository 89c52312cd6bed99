"""What is refused of a YAML text before any value is made, with its line; and that nothing else reads YAML of users."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from config import pipeline, settings, yaml_text
from config.messages import SettingsError
from config.yaml_source import YamlSource
from config.yaml_text import MAX_BYTES, MAX_DEPTH, NotYamlError, decode, parse
from tests.config.settings_files import GOOD, NOT_YET

ROOT = Path(__file__).parents[2]

REFUSED: list[tuple[str | bytes, list[tuple[int, str]]]] = [
    ("a: &x 1\nb: *x\nc:\n  - *x\n", [(2, "got the alias *x; allowed: the value"), (4, "got the alias *x; allowed")]),
    ("a: &x {b: 1}\nc:\n  <<: *x\n", [(3, "got the alias *x; allowed: the value itself, written again")]),
    ("a: &x [*x]\n", [(1, "got the alias *x")]),
    ("a: !!bool maybe\nb: !!python/name:os.system\n", [(1, "got the tag !!bool; allowed: values without"), (2, "got")]),
    ("a: 1\nb: !x 2\n--- \n", [(2, "got the tag !x; allowed: values without tags"), (3, "a second document")]),
    ("!!map\na: 1\n", [(1, "got the tag !!map; ")]),
    ("%TAG ! tag:example.com,2000:\n---\na: !b 1\n", [(3, "got the tag tag:example.com,2000:b; ")]),
    ("a: ! 1\n", [(1, "got the tag !; ")]),
    ("a: 1\n---\nb: 2\n", [(2, "a second document starts here; allowed: one document in a file")]),
    ("a:\n " + "[" * 30_000, [(2, "nested more than 50 levels deep; allowed: up to 50")]),
    ("{" * 30_000, [(1, "nested more than 50 levels deep")]),
    ("- " * 30_000, [(1, "nested more than 50 levels deep")]),
    ("? " * 30_000, [(1, "nested more than 50 levels deep")]),
    ("a: 1\nb: 2\na: 3\nb: 4\n", [(3, "a: given twice, first on line 1"), (4, "b: given twice, first on line 2")]),
    ("a: 1\n? [b]\n: 2\n", [(2, "got a sequence as a key; allowed: text")]),
    ("a: 1\n? {b: c}\n: 2\n", [(2, "got a mapping as a key; allowed: text")]),
    ("a: 1\nb: " + "9" * 400, [(2, "got a number of 400 characters, '99999999999999999999'...; allowed: up to 100")]),
    ("a: 0x" + "f" * 5000, [(1, "got a number of 5002 characters")]),
    ("a: " + "1:" * 5000 + "1", [(1, "got a number of 10001 characters")]),
    ("9" * 400 + ": a", [(1, "got a number of 400 characters")]),
    ("a: [.nan, -.inf, 1.0e+999]", [(1, f"got '{each}'; allowed: finite") for each in (".nan", "-.inf", "1.0e+999")]),
    ("a: 1\nb: 2026-13-45\n", [(2, "got 2026-13-45, which YAML 1.1 alone takes for a date; allowed: quotes")]),
    ("a: 0b_", [(1, "got 0b_, which YAML 1.1 alone takes for another number; allowed: quotes around it, or a")]),
    ("a:\n\t- b\n", [(2, "not YAML: found character that cannot start any token; indent by spaces, not tabs")]),
    ("a: 1\nb: [1,\n\n", [(4, "not YAML: did not find expected node content")]),
    ("a: &x 1\nb: &x 2\n", [(2, "not YAML: second occurrence")]),
    ("a: 1\n<<: {b: 2}\n", [(2, "got the key <<; allowed: the keys themselves")]),
    ("a: =\n", [(1, "got =, which YAML 1.1 alone takes for value; allowed: quotes around it")]),
    ("a: 010\nb: 012345670123\n", [(1, "got 010, which YAML 1.1 alone takes for another number; allowed: quotes"),
                                   (2, "got 012345670123, which YAML 1.1 alone takes for another number; allowed: q")]),
    ("a: 012345678901\n", [(1, "got 012345678901, a text here and a number to others; allowed: quotes around it, or")]),
    ("a: 1e3\nb: 0o7\n", [(1, "got 1e3, a text here and a number to others"), (2, "got 0o7, a text here")]),
    ("on: 1\nb: [No]\n", [(1, "got on, which YAML 1.1 alone takes for true or false; allowed: quotes around it, or"),
                          (2, "got No, ")]),
    ("a: 1:30\nb: 2012-10-17\n", [(1, "got 1:30, which"), (2, "got 2012-10-17, which YAML 1.1 alone takes for a")]),
    ("a: 1\nb: '\x1b[31m'\n", [(2, r"got the character '\x1b'; allowed: printable characters")]),
    ("a: 1\nb: \x00\n", [(2, r"got the character '\x00'; allowed")]),
    ("a: 1\nb: \ud800\n".encode("utf-8", "surrogatepass"), [(2, "byte 8 of the file, 0xed, is not UTF-8; save")]),
    ("a: 1\nb: \xe9\n".encode("latin-1"), [(2, "byte 8 of the file, 0xe9, is not UTF-8; save the file as UTF-8")]),
    ("a: 1\n".encode("utf-16"), [(1, "byte 0 of the file, 0xff, is not UTF-8; save the file as UTF-8")]),
    (b"#" * (MAX_BYTES + 1), [(1, "the file is larger than 1048576 bytes; allowed: up to 1 MiB")]),
]  # fmt: skip


def value_in_1_2(text: str) -> Any:
    """Return what a plain scalar is in YAML 1.2: https://yaml.org/spec/1.2.2/#1032-tag-resolution."""
    tables: list[tuple[str, Callable[[str], Any]]] = [
        ("null|Null|NULL|~|", lambda _: None),
        ("true|True|TRUE|false|False|FALSE", lambda each: each.lower() == "true"),
        ("[-+]?[0-9]+", int),
        ("0o[0-7]+", lambda each: int(each[2:], 8)),
        ("0x[0-9a-fA-F]+", lambda each: int(each, 16)),
        (r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", float),
        (r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", lambda each: float(each.replace(".", ""))),
    ]
    return next((convert(text) for pattern, convert in tables if re.fullmatch(pattern, text)), text)


WORDS = ["yes", "No", "on", "OFF", "y", "true", "null", "~", "0x", "0o", "0b", "1e", ".5", "-", "2012-10-17", "1:30"]
SCALARS = [first + second for first in WORDS for second in ("", *WORDS)]


@hypothesis.settings(max_examples=2000, deadline=None, derandomize=True, database=None)
@given(st.text("0123456789_:.-+eExobaf", min_size=1, max_size=8) | st.sampled_from(SCALARS))
def test_what_is_read_is_the_same_value_in_yaml_1_1_and_1_2(text: str) -> None:
    try:
        value = parse(f"a: {text}").value["a"]
    except NotYamlError:
        return
    if isinstance(value, str | int | float | bool | None):
        assert (type(value), value) == (type(value_in_1_2(text)), value_in_1_2(text))


@pytest.mark.parametrize(("text", "expected"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(text: str | bytes, expected: list[tuple[int, str]]) -> None:
    with pytest.raises(NotYamlError) as refused:
        parse(decode(text if isinstance(text, bytes) else text.encode("utf-8")))
    problems = refused.value.problems
    assert [line for line, _ in problems] == [line for line, _ in expected], problems
    for (_, reported), (_, start) in zip(problems, expected, strict=True):
        assert reported.startswith(start)
    assert str(refused.value).isprintable() or len(problems) > 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("\ufeffa: 1\n", {"a": 1}),
        ("a: &unused 1\r\nb:\t2\r\n", {"a": 1, "b": 2}),
        ("%YAML 1.1\n---\na: 1\n...\n", {"a": 1}),
        ("[" * MAX_DEPTH + "]" * MAX_DEPTH, None),
        ("a: " + "9" * 100, {"a": int("9" * 100)}),
        ('a: "' + "9" * 400 + '"', {"a": "9" * 400}),
        ('a: "\\0\\e"', {"a": "\0\x1b"}),
        ("a: é \U0001f600\n", {"a": "é \U0001f600"}),
    ],
)
def test_what_is_read(text: str, value: object) -> None:
    read = parse(decode(text.encode("utf-8"))).value
    assert read == value or (value is None and str(read).startswith("[[["))


@pytest.mark.parametrize("name", ["pipe", "directory", "missing", "endless"])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    (tmp_path / "endless").symlink_to("/dev/zero")
    with pytest.raises(SettingsError, match="cannot be read: ") as refused:
        YamlSource.read(tmp_path / name)
    assert str(refused.value).startswith(f"{tmp_path}/{name}: ")


def test_without_libyaml_the_same_is_refused() -> None:
    """PyYAML is built without it where there is no C compiler."""
    program = """
import sys, yaml
del yaml.CSafeLoader
from config.yaml_text import _LOADER, NotYamlError, parse
assert _LOADER is yaml.SafeLoader
for text in ("a: &x 1\\nb: *x", "a: !x 1", "a:\\n---\\nb:", "[" * 3000, "a: 1\\na: 2", "a: " + "9" * 400):
    try:
        parse(text)
    except NotYamlError as error:
        print(error)
assert parse("a: [1, {b: c}]").value == {"a": [1, {"b": "c"}]}
"""
    path = f"{ROOT}:{ROOT / 'constructs'}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONPATH": path}
    )
    assert [line.split("; ")[0].split(", ")[0] for line in done.stdout.splitlines()] == [
        "line 2: got the alias *x",
        "line 1: got the tag !x",
        "line 2: a second document starts here",
        "line 1: nested more than 50 levels deep",
        "line 2: a: given twice",
        "line 1: got a number of 400 characters",
    ]


READERS = {
    "config/yaml_text.py": "the reader itself",
    "scripts/change/init/source.py": "configurations of ParallelCluster, with tags of CloudFormation",
    "scripts/account/causes.py": "a table of the project",
    "scripts/account/job_reasons.py": "a table of the project",
    "scripts/rehearse/prove/assumptions.py": "a table of the project",
    "scripts/upkeep/imports.py": "settings that the project has written",
    "toolchain/bootstrap.py": "the CDK's template",
    "toolchain/pcluster_runner.py": "what ParallelCluster has rendered",
}
"""Modules that may load YAML, and what."""
LOADING = {"load", "load_all", "safe_load", "safe_load_all", "full_load", "unsafe_load", "compose", "compose_all"} | {
    *("parse", "scan", "SafeLoader", "CSafeLoader", "Loader", "FullLoader", "BaseLoader", "CLoader", "CParser")
}


def loaded(tree: ast.AST) -> Iterator[str]:
    """Yield what a module uses of PyYAML, or of another library that reads YAML, to load something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.startswith(("ruamel", "yaml.", "oyaml")))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in {"yaml", "ruamel"}:
            yield node.module or ""
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "yaml":
            yield from {node.attr} & LOADING


def test_nothing_else_reads_yaml_of_users() -> None:
    """The emulator reads what the toolchain makes, and tests what they have written."""
    modules = [ROOT / "app.py", ROOT / "pipeline_app.py"]
    modules += [each for name in ("config", "scripts", "stacks", "toolchain") for each in (ROOT / name).rglob("*.py")]
    readers = {
        str(path.relative_to(ROOT))
        for path in modules
        if "yaml" in (text := path.read_text(encoding="utf-8")) and [*loaded(ast.parse(text))]
    }
    assert readers == READERS.keys()
    assert {each for each in readers if each.startswith("config/")} == {f"config/{Path(yaml_text.__file__).name}"}


KEY = r'"\x1b[31m\n\u202e' + "k" * 300 + '"'


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"key{number}: 1\n" for number in range(4000)),
        "groups:\n" + "".join(f"  {'A' * 40}{number}: 1\n" for number in range(4000)),
        f"{KEY}: 1\ncluster: {{{KEY}: 1}}\n",
        f"{KEY}: 1\n{KEY}: 2\n",
        f"tags: {{{KEY}: 1}}\ngroups: {{{KEY}: 1}}\n",
        "users:\n" + "- {name: root, uid: 2000, groups: [x, y]}\n" * 300,
        "a: &x 1\n" + "".join(f"b{number}: *x\n" for number in range(4000)),
        "a: 1\n" * 4000,
        "a: !" + "x" * 300_000 + " 1\n",
        "users: " + "x" * 300_000 + "users.yaml\n",
        "region: " + "é" * 300_000 + "\n",
        f"cluster: {{overrides: {{SharedStorage: [{'{MountDir: /home}, ' * 1000}]}}}}\n",
    ],
    ids=range(12),
)
def test_messages_are_short_and_print_what_they_name(tmp_path: Path, text: str) -> None:
    """As settings, as a file of people and as pipeline.yaml."""
    for name, load, content in (
        ("settings.yaml", settings.load, text),
        ("settings.yaml", settings.load, f"{text}\n{GOOD}"),
        ("with-users.yaml", settings.load, f"users: some-users.yaml\n{GOOD}"),
        ("pipeline.yaml", pipeline.load, text),
    ):
        (tmp_path / "some-users.yaml").write_text(text, encoding="utf-8")
        (tmp_path / name).write_text(content, encoding="utf-8")
        with pytest.raises(SettingsError) as refused:
            load(tmp_path / name)
        lines = str(refused.value).split("\n")
        assert len(str(refused.value).encode()) < 20_000
        assert all(line.isprintable() for line in lines)
        assert all(line.startswith((str(tmp_path), "... and ")) for line in lines), lines
        counts = [int(line.split()[2]) for line in lines if line.startswith("... and ")]
        *_, last = (line for line in lines if NOT_YET not in line)
        assert len(counts) == last.startswith("... and ")


def test_an_integer_that_python_does_not_write_is_reported() -> None:
    from ultracluster.domain.violations import shape_violations

    with pytest.raises(ValidationError) as error:
        TypeAdapter(settings.Settings).validate_python({"name": 10**5000, "cluster": {"generation": 10**5000}})
    assert "a number that is too long to show" in "".join(map(str, shape_violations(error.value)))
