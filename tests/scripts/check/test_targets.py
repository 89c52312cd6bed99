"""Files and directories that users name for results: nothing of theirs is overwritten."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from scripts.check import targets
from scripts.core import options
from scripts.main import cli
from tests.command_line import ultracluster

READ = {
    ("env create", "file"),
    ("init", "source"),
    ("plan", "against"),
    ("plan", "assembly"),
    ("ssh", "identity"),
    ("runs show", "directories"),
}
WRITTEN = {("synth", "directory"): ["--directory"], ("review", "file"): ["--file"]}
"""Options of commands that are paths here, and the words before the path."""


def paths(group: click.Group, *words: str) -> Iterator[tuple[str, str | None]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from paths(command, *words, name)
        elif command is not None:
            given = (each for each in command.params if isinstance(each.type, click.Path | click.File))
            yield from ((" ".join((*words, name)), each.name) for each in given)


def test_every_path_of_a_command_is_read_or_checked_before_it_is_written() -> None:
    assert set(paths(cli)) == READ | WRITTEN.keys()


def other_files(path: Path) -> None:
    path.mkdir()
    for name in ("passwd", "hosts", "fstab", "group"):
        (path / name).write_text("mine", encoding="utf-8")


def file(path: Path) -> None:
    path.write_text("mine", encoding="utf-8")


def link_to_nothing(path: Path) -> None:
    path.symlink_to(path.with_name("nothing"))


def link_to_directory(path: Path) -> None:
    path.with_name("elsewhere").mkdir()
    path.symlink_to(path.with_name("elsewhere"))


def pipe(path: Path) -> None:
    os.mkfifo(path)


OTHERS: list[tuple[Callable[[Path], None], str]] = [
    (other_files, "a directory with "),
    (file, "which is a file"),
    (link_to_nothing, "a symbolic link to "),
    (link_to_directory, "a symbolic link to "),
    (pipe, "which is no file"),
]


def tree(path: Path) -> dict[str, bytes | None]:
    return {str(each): each.read_bytes() if each.is_file() else None for each in sorted(path.rglob("*"))}


@pytest.mark.parametrize("key", WRITTEN, ids=lambda key: key[0])
@pytest.mark.parametrize(("make", "there"), OTHERS, ids=lambda each: getattr(each, "__name__", ""))
def test_what_is_not_an_earlier_result_stays(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    key: tuple[str, str],
    make: Callable[[Path], None],
    there: str,
) -> None:
    path = tmp_path / "target"
    make(path)
    before = tree(tmp_path)
    assert ultracluster(key[0], "dev", *WRITTEN[key], str(path)) == 2
    [line] = [each for each in capsys.readouterr().err.splitlines() if each.startswith("error: ")]
    assert line.startswith(f"error: {WRITTEN[key][0]}: got {path}, {there}")
    assert "; allowed: a new or empty " in line
    assert tree(tmp_path) == before


@pytest.mark.parametrize("key", WRITTEN, ids=lambda key: key[0])
def test_a_place_where_nothing_can_be_made_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, key: tuple[str, str]
) -> None:
    (tmp_path / "file").touch()
    assert ultracluster(key[0], "dev", *WRITTEN[key], str(tmp_path / "file" / "below" / "target")) == 2
    reported = capsys.readouterr().err
    assert f"Not a directory: {tmp_path}/file/below; allowed: a place that can be written" in reported
    monkeypatch.setattr(os, "access", lambda path, _: path != tmp_path)  # the superuser may write anywhere
    assert ultracluster(key[0], "dev", *WRITTEN[key], str(tmp_path / "target")) == 2
    assert f"{tmp_path} cannot be written; allowed: a place that can be" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def write(path: Path, name: str) -> None:
    with targets.assembly(path, "--directory") as written:
        written.mkdir()
        (written / "cdk.out").touch()
        (written / name).mkdir()


def test_an_assembly_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "a" / "cdk.out"
    write(path, "first")
    write(path, "second")
    assert sorted(each.name for each in path.iterdir()) == ["cdk.out", "second"]
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize("earlier", [None, "nothing", "assembly"])
def test_an_assembly_that_fails_leaves_what_was_there(tmp_path: Path, earlier: str | None) -> None:
    path = tmp_path / "cdk.out"
    if earlier == "nothing":
        path.mkdir()
    elif earlier == "assembly":
        write(path, "first")
    before = tree(tmp_path)
    with pytest.raises(OSError, match="disk"), targets.assembly(path, "--directory") as written:  # noqa: PT012
        written.mkdir()
        raise OSError("the disk is full")
    assert tree(tmp_path) == before


def test_a_page_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    for text in ("", (options.ROOT / "scripts/check/review/page.html").read_text(encoding="utf-8")):
        (tmp_path / "page.html").write_text(text, encoding="utf-8")
        targets.check_page(tmp_path / "page.html", "--file")
