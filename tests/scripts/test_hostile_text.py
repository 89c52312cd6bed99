"""What users of a cluster write reaches no terminal, option or table as anything but text.

tests/end_to_end/slurm/test_hostile_jobs.py has what runs, and as whom, with a real Slurm.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from config.settings import load
from scripts.account.causes import COMMAND, filled, table
from scripts.account.deployment import Deployment
from scripts.account.remote import program
from scripts.account.remote.head_node import Answer, HeadNode
from scripts.account.remote.programs import asking, files, jobs
from scripts.account.remote.values import Address, FilePath, JobNumber, Name, State, User
from scripts.account.slurm import parse
from scripts.check.review import page as review
from scripts.check.review.deployment import Review
from scripts.check.review.drawing import Box
from scripts.core import spreadsheet, terminal
from scripts.core.document import Document
from scripts.core.findings import CheckStatus, Finding
from scripts.core.options import CONFIG
from scripts.core.report import (
    Block,
    Changes,
    Column,
    Command,
    Conclusion,
    Facts,
    Folded,
    Line,
    Link,
    Table,
    Title,
    Toned,
    columns,
)
from scripts.core.text import fit
from scripts.core.view import Page, View
from scripts.use.costs import costs, summary
from scripts.use.costs.report import CostReport, as_csv
from scripts.use.runs import ListedRun, RunList
from scripts.watch.logs.jobs import KnownJob
from scripts.watch.status.software import parse as parse_software
from tests.properties import QUICK
from tests.scripts.reports import as_markdown
from tests.scripts.slurm_samples import answer

ROOT = Path(__file__).parents[2]
PIECES = (
    "\n", "\r\n", "\0", "\x1b[2J", "\x1b]52;c;eA==\x07", "\x1b]0;title\x1b\\", "\x9b31m", "\x7f", "\u202e", "\u2066",
    "\u2028", "\ud800", "=1+1", "@A1", ";=1", "\t", "<b id=x>", "</td>", "<!--",
    "&lt;", "[/b]", "[bold]", "[link=http://evil.example]x[/link]", "--shell=/home/grace/evil", "-x", "'",
    '"', "`id`", "`` <b> ``", "`", "\n```\n", "# ", "1. ",
    "$(id)", "; id", "|", "\\", "{{ssm:x}}", "UserId=root(0)", "é", "👩\u200d💻", " ", "x" * 65536,
)  # fmt: skip
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), min_size=1, max_size=6).map("".join)
SETTINGS = load(CONFIG / "trn1-16.yaml")
CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_a_terminal_gets_no_character_that_it_obeys() -> None:
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        category = unicodedata.category(character)
        fitted = fit(character)
        if category in CONTROLS and character not in "\n\t":
            assert fitted != character, hex(number)
            assert unicodedata.category(fitted) in {"So", "Sm"}
        elif category[0] in "LNPS" or category == "Zs" or character in "\n\t":
            assert fitted == character, hex(number)


def blocks_with(text: str) -> list[Block]:
    """Return a block of each kind, in which users wrote what they like."""
    rows = [(text, "1", Toned(text, "bad")), ("a", text, "b")]
    changes = [Changes(text, [text], [text]), Changes("b", [], [text])]
    return [
        Title(text),
        Line([Toned("label ", "source"), text, Toned(f" {text}", "strong")]),
        Line(text),
        Line(text, item=True),
        Line(text, level=1),
        Command(text),
        Facts([(text, text), ("", Toned(text, "bad"))]),
        Finding(CheckStatus.FAIL, text, text, text, text),
        Finding(CheckStatus.PASS, text),
        Table(text, columns("one", ">two", "three"), rows, notes=[text]),
        Folded(text, [*changes, Link(text, f"https://example.org/{text}")]),
        Conclusion([Line(text)]),
    ]


def printed(blocks: Sequence[Block]) -> str:
    """Return what a console prints that is no terminal."""
    console = terminal.console(width=4000)
    console.file = written = io.StringIO()
    View(console).show(blocks)
    return written.getvalue()


def one_line(hostile: str) -> str:
    return " ".join(re.sub("[\x07\x08\x0b\x0c\r]", "", hostile).split())[:40] or "-"  # rich leaves these out itself


@QUICK
@given(HOSTILE)
def test_reports_have_the_shape_of_those_with_harmless_text(hostile: str) -> None:
    line = one_line(hostile)
    if any(unicodedata.east_asian_width(each) in "WF" or unicodedata.combining(each) for each in fit(line)):
        return  # they are as wide as they are
    text = printed(blocks_with(line))
    assert fit(text) == text
    harmless = printed(blocks_with(re.sub(r"\S", "x", fit(line))))
    assert [re.sub(r"[^\s─]", "x", each).rstrip() for each in text.splitlines()] == [
        re.sub(r"[^\s─]", "x", each).rstrip() for each in harmless.splitlines()
    ]


def structure(text: str) -> list[str]:
    """Return the kinds of what Markdown has, without its text."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inline = [child for token in tokens if token.children for child in token.children]
    return [
        f"{token.type} {token.tag} {token.content.count('<') if token.type.startswith('html') else ''}"
        for token in (*tokens, *inline)
        if token.type not in ("text", "softbreak")
    ]


def assert_harmless_on_a_page(hostile: str) -> None:
    """Check that Markdown as GitHub reads it has no heading, list, tag, link or code that a user wrote."""
    if fit(hostile).strip():
        pages = [as_markdown(blocks_with(fit(each))) for each in (re.sub(r"https?:", "x", hostile)[:200], "x")]
        assert structure(pages[0]) == structure(pages[1])


@QUICK
@given(HOSTILE)
def test_pages_have_the_structure_of_those_with_harmless_text(hostile: str) -> None:
    assert_harmless_on_a_page(hostile)


@pytest.mark.parametrize("piece", PIECES)
def test_no_start_of_a_line_changes_the_structure_of_a_page(piece: str) -> None:
    assert_harmless_on_a_page(f"{piece}x")


@QUICK
@given(st.lists(st.sampled_from(("::add-mask::x", "##[error]", " ", "\n", "x" * 70)), max_size=9).map("".join))
def test_no_text_of_users_is_a_command_to_a_runner(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as echoed:
        patch.setenv("GITHUB_ACTIONS", "true")
        patch.setenv("COLUMNS", "80")
        Page("x").show(blocks_with(text))
        print(ListedRun(directory=text.replace("\n", " ")[:150] or "-").to_json())
        lines = [*printed(blocks_with(text)).splitlines(), *echoed.getvalue().splitlines()]
    assert not [each for each in lines if each.lstrip().startswith("::") or "##[" in each]


def test_markup_is_text() -> None:
    text = printed(blocks_with("[/b] [link=http://evil.example]x[/link] [red]"))
    assert "[/b]" in text
    assert "[link=http://evil.example]x[/link]" in text


def is_json(argument: ast.expr | None) -> bool:
    return (
        isinstance(argument, ast.Call)
        and isinstance(argument.func, ast.Attribute)
        and argument.func.attr in {"to_json", "to_line", "dumps"}
    )


def test_everything_is_printed_by_what_makes_it_fit() -> None:
    """Only documents of JSON, which are ASCII, are printed otherwise, and what `exec` relays to a file or pipe."""
    own = {
        "scripts/core/text.py",
        "scripts/core/terminal.py",
        "scripts/account/remote/streamed_command.py",
        "scripts/core/environments.py",
    }
    of_head_node = ("scripts/account/remote/programs", "scripts/use/costs/summary.py")
    for path in sorted((ROOT / "scripts").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if name in own or name.startswith((*of_head_node, "scripts/upkeep/bench", "scripts/upkeep/imports")):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            assert called not in {
                "sys.stdout.write",
                "sys.stderr.write",
                "Console",
                "Text.from_markup",
                "click.echo",
                "click.secho",
            }, name
            if called == "print" and isinstance(node, ast.Call):
                assert is_json(node.args[0] if node.args else None), f"{name}:{node.lineno}: scripts.core.text.echo"


class Anything(Document):
    """A document with a text of users."""

    text: str


@QUICK
@given(HOSTILE)
def test_json_has_the_text_and_is_ascii(hostile: str) -> None:
    text = hostile.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for printed in (Anything(text=text).to_json(), Anything(text=text).to_line()):
        assert json.loads(printed) == {"text": text}
        assert printed.isascii()
        assert fit(printed) == printed or "\x7f" in text


# --- files for spreadsheets and browsers ---


@QUICK
@given(HOSTILE)
def test_a_text_is_one_cell_of_csv_and_starts_no_formula(hostile: str) -> None:
    hostile = hostile[: 2**16]  # csv.reader has a limit
    for text in (hostile, f"={hostile}", f"\uff1d{hostile}", f'";={hostile}', f'x|" =1{hostile}'):
        printed = spreadsheet.as_csv([["a", "b"], [text, Decimal("-0.5")], [None, text]])
        assert fit(printed) == printed
        assert len(printed.splitlines()) == 3
        [_, [cell, number], [empty, last]] = csv.reader(printed.splitlines())
        assert (number, empty, last) == ("-0.5", "", cell)
        assert cell.replace("'", "") == fit(" ".join(text.split())).replace("'", "")
        for separator in (",", ";", "|"):
            cells = {cell for row in csv.reader(printed.splitlines(), delimiter=separator) for cell in row}
            assert not [
                each for each in cells - {"-0.5"} if re.match("[=+@\t\r\uff1d\uff0b\uff0d\uff20-]", each.lstrip())
            ]


class Elements(HTMLParser):
    """All of a page but its text: elements with their attributes, comments, declarations."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[Any] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, [(name, value) for name, value in attrs if name != "data-title"]))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(tag)

    def handle_comment(self, data: str) -> None:
        self.found.append(data)

    def handle_decl(self, decl: str) -> None:
        self.found.append(decl)


def harmless(hostile: str) -> str:
    """Return a text as long, which no format can misunderstand."""
    return re.sub(r"\S", "x", " ".join(hostile.split()))


@QUICK
@given(HOSTILE)
def test_a_page_of_a_review_has_the_elements_of_one_with_harmless_text(hostile: str) -> None:
    line = " ".join(hostile.split())

    def elements(text: str) -> list[Any]:
        table = Table(text, [Column(text, right=False)], [[text]], notes=[text])
        drawing = "\n".join(Box("box", text).lines())
        assert re.fullmatch(r'box\["[\w ,.:/()@#;-]*"\]', drawing)
        return Elements(review.page(Review(text, (text,), True, drawing, (table,), (text,)))).found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(review, "MERMAID", ROOT / "package.json")  # not 3 MB
        assert elements(line) == elements(harmless(line))


def test_cells_and_pages_are_written_in_one_place() -> None:
    for path in (ROOT / "scripts").rglob("*.py"):
        imported = set(re.findall(r"^ *(?:from|import) (csv|jinja2)\b", path.read_text(encoding="utf-8"), re.MULTILINE))
        assert imported <= {"spreadsheet.py": {"csv"}, "page.py": {"jinja2"}, "imports.py": {"jinja2"}}.get(
            path.name, set()
        ), path
    for path in (ROOT / "scripts").rglob("*.html"):
        safe = re.findall(r"{{ (\w+)[^}]*\| *safe", path.read_text(encoding="utf-8"))
        assert {*safe} <= {"scripts", "mermaid", "start"}, path


# --- values ---


@QUICK
@given(HOSTILE.filter(lambda text: not re.fullmatch(r"[\w.@+,-]*", text, re.ASCII)))
def test_what_goes_into_commands_has_a_type(hostile: str) -> None:
    for kind in (User, Name, State, Address, JobNumber):
        with pytest.raises(ValueError, match=r"got '|what was not asked for"):
            program.read(json.dumps({"value": hostile}), "value", kind)


@pytest.mark.parametrize("user", ["--shell=/home/grace/evil", "-", "", "root\n", "a b", "x" * 200, "@"])
def test_no_user_is_an_option(user: str) -> None:
    with pytest.raises(ValueError, match="value: got"):
        program.read(json.dumps({"value": user}), "value", User)


@pytest.mark.parametrize("user", ["ubuntu", "p001", "ann.b-c", "ann@corp.example.com", "CORP\\ann", "1000", "svc_x"])
def test_users_of_directories_are_users(user: str) -> None:
    assert program.read(json.dumps({"value": user}), "value", User) == user


@QUICK
@given(HOSTILE)
def test_texts_of_jobs_and_nodes_stay_on_their_line(hostile: str) -> None:
    nodes = (1, "drained", hostile, hostile, hostile)
    row = (7, hostile, hostile, "RUNNING", 1, hostile, hostile, hostile)
    state = parse(answer({"trn1": "up"}, problems=[nodes], jobs=[row]))
    assert len(state.jobs) == len(state.problems) == 1
    job, problem = state.jobs[0], state.problems[0]
    assert (job.number, job.state) == (7, "RUNNING")
    for text in (job.user, job.queue, job.reason, job.name, problem.since, problem.nodes, problem.reason):
        assert text == " ".join(text.split())


@QUICK
@given(HOSTILE)
def test_what_diagnose_says_to_type_has_the_words_of_its_table(hostile: str) -> None:
    """Lines of logs, which users of Slurm can forge, fill placeholders: each stays a word, or a part of one."""
    for line in {line for cause in table() for line in cause.do if line.startswith(COMMAND)}:
        names = re.findall(r"{(\w+)}", line)
        words = filled(line, dict.fromkeys(names, hostile))
        usual = filled(line, dict.fromkeys(names, "word"))
        if names and words:
            assert re.fullmatch(r"[\w.,:/@=+\[\]-]+", hostile, re.ASCII)
            assert len(shlex.split(words)) == len(shlex.split(usual))
            assert not hostile.startswith("-")


# --- the programs of the head node ---


@QUICK
@given(HOSTILE, HOSTILE)
def test_fields_of_slurm_cannot_be_forged(name: str, reason: str) -> None:
    """However Slurm prints names and reasons, they are what stands between two marks that nobody could know."""

    def slurm(_: Any, **variables: str) -> str:
        [form] = variables.values()
        return form.replace("%r", reason).replace("%j", name).replace("%A", "7") + "\n"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking, "call", slurm)
        assert asking.records(("%A", "%r", "%j"), "squeue") == [["7", reason, f"{name}\n"]]


def costs_of(by: Any, name: str) -> CostReport:
    """Return what jobs cost, of which one has this user, account and queue."""
    runs = [
        ("1", "ada", "research", "trn1", "1", "1", "4", "3600", "trn1-dy-trn1-1", "COMPLETED"),
        ("2", name, name, name, "1", "2", "8", "7200", "trn1-dy-trn1-[2-3]", "COMPLETED"),
        ("3", "bob", "ops", "cpu", "1", "4", "16", "14400", "trn1-dy-trn1-[4-7]", "COMPLETED"),
    ]

    def slurm(*command: str) -> Any:
        [mark] = [each.partition("=")[2] for each in command if each.startswith("--delimiter=")] or ["-"]
        text = "".join(mark.join((*run, "\n")) for run in runs) if command[0] == "sacct" else ""
        printed = io.BytesIO(text.encode("utf-8", "surrogatepass"))
        stdout = io.TextIOWrapper(printed, encoding="utf-8", errors="replace")
        return SimpleNamespace(stdout=stdout, wait=lambda: 0, communicate=lambda: ("", None))

    def head_node(script: str, **_: int) -> Answer:
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
            patch.setattr(summary, "run", slurm)
            patch.setattr(sys, "argv", shlex.split(script)[3:])
            summary.main()
        return Answer(0, printed.getvalue(), "")

    deployment = cast(Deployment, SimpleNamespace(settings=SETTINGS))
    window = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
    found = costs.summarize(deployment, cast(HeadNode, SimpleNamespace(run=head_node)), *window, by)
    return costs.report(SETTINGS.name, SETTINGS, {}, found, ({}, timedelta()), window=window, by=by)


@pytest.mark.slow
@QUICK
@given(HOSTILE)
def test_costs_are_those_with_harmless_names(hostile: str) -> None:
    """As numbers, and as rows and columns of CSV."""
    hostile = hostile[: 2**16]  # csv.reader has a limit
    for by in ("user", "account", "queue", "job"):
        report, other = costs_of(by, hostile), costs_of(by, harmless(hostile))
        assert report.notes == other.notes
        for one, two in zip(report.costs, other.costs, strict=True):
            assert (one.jobs, one.runs, one.node_hours) == (two.jobs, two.runs, two.node_hours)
        assert [each.node_hours for each in report.costs] == [16, 4, 1]
        assert {"bob", "ops", "cpu", "3"} & {report.costs[0].name}
        rows, other_rows = (csv.reader(as_csv(each).splitlines()) for each in (report, other))
        assert [row[-4:] for row in rows] == [row[-4:] for row in other_rows]


@QUICK
@given(HOSTILE)
def test_a_job_is_its_users_or_nobodys(hostile: str) -> None:
    """Of each field that Slurm may print: the user and what leads to a command has its type, or there is no job."""
    text = json.dumps(hostile.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    for field in ("user_name", "standard_output", "comment", "name", "state", "host"):
        described = {
            "job_id": 7, "array_job_id": {"number": 0}, "array_task_id": {"number": 0}, "job_state": ["RUNNING"],
            "user_name": "ann", "user_id": 1, "nodes": "n", "standard_output": "/out", "comment": "",
        }  # fmt: skip
        described |= {"job_state": [json.loads(text)]} if field == "state" else {field: json.loads(text)}
        name = "n" if field != "host" else json.loads(text)
        node = json.dumps({"nodes": [{"name": name, "address": "10.0.0.1"}]})
        done = subprocess.CompletedProcess([], 0, json.dumps({"jobs": [described]}).encode(), b"")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(subprocess, "run", lambda *_, done=done, **__: done)
            patch.setattr(jobs, "call", lambda command, node=node: node if "node" in command else "n\n")
            answered = json.dumps({"job": jobs.job("7", 1)})
        try:
            job = program.read(answered, "job", KnownJob)
        except ValueError:
            assert field not in ("comment", "name"), "what goes into no command ends nothing"
            continue
        assert re.fullmatch(r"[A-Za-z0-9_][\w.@\\+-]*", job.user, re.ASCII)
        assert job.output == "" or (job.output.startswith("/") and "\0" not in job.output)
        assert all(re.fullmatch(r"[\w.-]+", each, re.ASCII) for each in job.nodes)


def test_a_path_of_a_file_is_absolute() -> None:
    for path in ("/a\nb --x", "", "/é"):
        assert program.read(json.dumps({"value": path}), "value", FilePath) == path
    for path in ("a", "--x", "/a\0b"):
        with pytest.raises(ValueError, match="value: got"):
            program.read(json.dumps({"value": path}), "value", FilePath)


def test_files_of_software_and_spending_are_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python = tmp_path / "python" / "current-x"
    (tmp_path / "nodes" / "x" / "\x1b[2J").mkdir(parents=True)
    python.parent.mkdir()
    os.mkfifo(f"{python}.state")
    Path(f"{python}.log").symlink_to("/dev/zero")
    (tmp_path / "nodes" / "x" / "node-1").write_text("\x1b]52;c;eA==\x07" * 9999, encoding="utf-8")
    done = subprocess.CompletedProcess([], 0, str(python), "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    files.main("software", "5")
    text = capsys.readouterr().out
    assert len(text) < 5_600
    [failed] = parse_software(text).failed_nodes  # type: ignore[union-attr]
    assert failed.name == "node-1"
    facts = tmp_path / "node.env"
    monkeypatch.setattr(files, "_NODE_FACTS", str(facts))
    for written, state in (("cluster=x\nsdk=2.28.1\n", ""), ("cluster=x\n", "none")):
        facts.write_text(written, encoding="utf-8")
        files.main("software", "5")
        assert parse_software(capsys.readouterr().out).state == state  # type: ignore[union-attr]
    for name, written in {"a": "[1]", "b": '{"month": 1}', "c": "[" * 3000, "d": "x"}.items():
        (tmp_path / f"{name}.json").write_text(written, encoding="utf-8")
    (tmp_path / "e.json").symlink_to("/etc/shadow")
    os.mkfifo(tmp_path / "overruled")
    files.main("spending", str(tmp_path))
    assert json.loads(capsys.readouterr().out) == {"spending": {"records": {"b": {"month": 1}}, "overruled": ""}}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Directories as users may leave them, one of them with a run."""
    for number, name in enumerate(("[/x]", "\x1b]52;c;eA==\x07", "a\nb", "--x", "\u202e", "n" * 200)):
        (tmp_path / name).mkdir(parents=True)
        record: Any = [1, [], {"attempts": "x"}, {"attempts": [{}]}, "\ud800", {"attempts": [], "options": 5}][number]
        (tmp_path / name / "run.json").write_text(json.dumps(record), encoding="utf-8")
    undecodable = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    undecodable.mkdir()
    (undecodable / "run.json").touch()
    made: dict[str, Callable[[Path], object]] = {
        "fifo": os.mkfifo,
        "zero": lambda path: path.symlink_to("/dev/zero"),
        "shadow": lambda path: path.symlink_to("/etc/shadow"),
        "directory": lambda path: path.mkdir(),
        "deep": lambda path: path.write_text("[" * 100_000, encoding="utf-8"),
        "large": lambda path: path.write_bytes(b"1" * (files.MOST_BYTES + 1)),
        "number": lambda path: path.write_text(f'{{"attempts": [{{"nodes": {"9" * 400}, "job": 1, "started": 1}}]}}'),
    }
    for name, make in made.items():
        (tmp_path / name).mkdir()
        make(tmp_path / name / "run.json")
    attempts = [{"nodes": 1, "job": "1;sh /fsx/x", "started": 1.0}, {"nodes": 1, "job": "1", "started": 9e10}]
    for number, attempt in enumerate(attempts):
        (tmp_path / f"command-{number}").mkdir()
        record = {"attempts": [attempt], "options": {}}
        (tmp_path / f"command-{number}" / "run.json").write_text(json.dumps(record), encoding="utf-8")
        (tmp_path / f"command-{number}" / "metrics.jsonl").touch()
    good = tmp_path / "team" / "good"
    good.mkdir(parents=True)
    record = {"program": "a" * 999, "attempts": [{"nodes": 2, "job": "7", "started": 1.5}], "options": {"steps": 9}}
    (good / "run.json").write_text(json.dumps(record), encoding="utf-8")
    (good / "metrics.jsonl").write_text('{"step": 3, "loss": 2.5, "time": 7.0}\n', encoding="utf-8")
    return tmp_path


def test_files_of_users_end_no_list_of_runs(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe, a device, a link, a file without end or a record of another kind is a run with a problem."""
    files.main("runs", str(runs), "50")
    text = capsys.readouterr().out
    assert len(text) < 24_000
    listed = program.read(text, "runs", RunList)
    good, *others = listed.runs
    assert (good.job, good.nodes, good.step, good.steps, good.loss) == ("7", 2, 3, 9, 2.5)
    assert listed.total == 17
    assert all(each.problem for each in others)


@pytest.mark.parametrize("what", ["fifo", "zero", "link", "directory", "missing"])
def test_only_a_regular_file_is_shown_as_output(tmp_path: Path, what: str) -> None:
    path = tmp_path / "out"
    make: dict[str, Callable[[Path], object]] = {
        "fifo": os.mkfifo,
        "zero": lambda each: each.symlink_to("/dev/zero"),
        "directory": Path.mkdir,
    }
    if what == "link":
        (tmp_path / "other").write_text("secret", encoding="utf-8")
        path.symlink_to(tmp_path / "other")
    elif what in make:
        make[what](path)
    with pytest.raises(SystemExit) as ended:
        files.tail(str(path), 10, follow=False)
    assert str(path) in str(ended.value)


def test_the_end_of_a_large_file_is_its_last_lines(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"x" * (2 * files.MOST_BYTES) + b"\nlast but one\nlast")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", os.fdopen(os.dup(1), "w"))
        files.tail(str(path), 2, follow=False)
    assert capfdbinary.readouterr().out == b"last but one\nlast"
