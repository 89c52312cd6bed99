"""A value of a settings file can be changed, and nothing else of the file changes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from config.edit import EditError, set_values
from config.yaml_text import parse
from tests.config.settings_files import put
from tests.configurations import CONFIG

FILES = [CONFIG / f"{name}.yaml" for name in ("reserved", "two-queues")]
Place = tuple[str | int, ...]


def parsed(text: str) -> Any:
    return parse(text).value


def scalars(value: Any, place: Place = ()) -> Iterator[Place]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from scalars(child, (*place, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from scalars(child, (*place, index))
    else:
        yield place


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings.yaml"


def edited(path: Path, text: str, place: Place, value: Any) -> str:
    path.write_text(text, encoding="utf-8", newline="")
    set_values(path, {place: value})
    assert list(path.parent.iterdir()) == [path]
    return path.read_bytes().decode("utf-8")


VALUES = (None, True, 7, "x", "null", "1", "a: b", "a #b", "- a", "'", '"', "[", "a,b", " a ", "a\nb", "\U0001f600")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_scalar_of_every_file_can_be_set(file: Path, path: Path) -> None:
    text = file.read_text(encoding="utf-8")
    for place, value in zip(scalars(parsed(text)), cycle(VALUES)):
        changed, expected = edited(path, text, place, value), parsed(text)
        put(expected, place, value)
        assert repr(parsed(changed)) == repr(expected)
        changes = [lines for lines in zip(text.splitlines(), changed.splitlines(), strict=True) if lines[0] != lines[1]]
        assert len(changes) <= 1
        for old, new in changes:
            _, mark, comment = old.rpartition("  #")
            assert new.endswith(mark + comment) or not mark


@pytest.mark.parametrize(
    ("text", "place", "value", "expected"),
    [
        ("a: [1, 2, 3]  # c\n", ("a", 1), 20, "a: [1, 20, 3]  # c\n"),
        ("a: [x, y]\n", ("a", 0), "p, q", 'a: ["p, q", y]\n'),
        ('a: "2.9"  # c\n', ("a",), "2.8", 'a: "2.8"  # c\n'),
        ("a: '2.9'\n", ("a",), "it's", 'a: "it\'s"\n'),
        ("a: 1\r\nb: 2\r\n", ("a",), 3, "a: 3\r\nb: 2\r\n"),
        ("ä: 1 # ö \U0001f600\nb: 2", ("b",), "ü", "ä: 1 # ö \U0001f600\nb: ü"),
        ("- n: x\n  b: 1\n", (0, "m"), 2, "- n: x\n  m: 2\n  b: 1\n"),
        ("a:\n  b: 1\n\n  # of c,\n  # which is 2\n  c: 2  # c\n", ("a", "d"), 3,
         "a:\n  b: 1\n\n  d: 3\n  # of c,\n  # which is 2\n  c: 2  # c\n"),
        ("# all\n\n# of b\nb: 1\n", ("a",), 2, "# all\n\na: 2\n# of b\nb: 1\n"),
        ("a: {b: 1, c: 2}\n", ("a", "d"), True, "a: {b: 1, d: true, c: 2}\n"),
        ("a: {}\n", ("a", "d"), True, "a: {d: true}\n"),
        ("a: {b: 1}\n", ("a", "d", "e"), 2, "a: {d: {e: 2}, b: 1}\n"),
        ("a:\n  b: 1  # c\n", ("a", "d", "e", "f"), 2, "a:\n  d:\n    e:\n      f: 2\n  b: 1  # c\n"),
    ],
)  # fmt: skip
def test_how_it_is_written(path: Path, text: str, place: Place, value: Any, expected: str) -> None:
    assert edited(path, text, place, value) == expected


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("a: 1\n", ("a", "c"), "a.c: there is no such value"),
        ("a: 1\n", ("b", 0), "b[0]: there is no such value"),
        ("a: [1]\n", ("a",), "a: there is no such value"),
        ("a: &x 1\nb: *x\n", ("b",), "line 2: got the alias *x; allowed: the value itself"),
        ("a: [\n", ("a",), "line 2: not YAML"),
        ("a: 1\n", ("b: c",), "b: c: cannot be set to 5 without changing more than that"),
    ],
)
def test_what_cannot_be_set_is_refused(path: Path, text: str, place: Place, said: str) -> None:
    with pytest.raises(EditError) as refused:
        edited(path, text, place, 5)
    assert str(refused.value).startswith(said)
    assert path.read_text(encoding="utf-8") == text
    assert list(path.parent.iterdir()) == [path]


def test_of_a_link_what_it_leads_to_changes_and_keeps_its_mode(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "shared.yaml"
    target.write_text("a: 1\n", encoding="utf-8")
    target.chmod(0o640)
    path.symlink_to(target)
    set_values(path, {("a",): 2})
    assert path.is_symlink()
    assert target.read_text(encoding="utf-8") == "a: 2\n"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_write_that_fails_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text("a: 1\n", encoding="utf-8")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        set_values(path, {("a",): 2})
    assert path.read_text(encoding="utf-8") == "a: 1\n"
    assert list(path.parent.iterdir()) == [path]
