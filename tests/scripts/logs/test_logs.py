"""`logs`: the logs of nodes and jobs by the names that people have for them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from scripts.clock import Clock
from scripts.commands import logs
from scripts.deployment import Deployment
from scripts.logs import show as program
from scripts.logs import streams
from scripts.remote import head_node, nodes
from tests.scripts.account import Operated
from tests.scripts.logs.log_lines import ASSIGNED, GONE, GONE_HOST, head_prefix, log_at, untimed

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/schemas/logs.json").read_text(encoding="utf-8"))
Logs = Callable[..., int]


@pytest.fixture
def shown(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> Logs:
    """Call the program with arguments."""
    monkeypatch.setattr(head_node, "SECONDS_BETWEEN_LOOKS", 0.05)

    def call(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["logs", "trn1-16", *arguments])
        return logs.main()

    return call


def test_a_file_of_the_head_node(operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    operated.log(f"{head_prefix(operated)}slurmctld", "first", "second")
    operated.log(f"{head_prefix(operated)}slurmctld_other", "no")
    assert shown("slurmctld") == 0
    assert untimed(capsys.readouterr().out) == "head-node slurmctld | first\nhead-node slurmctld | second\n"


def test_the_files_of_a_node_are_merged_by_time(
    operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix = head_prefix(operated)
    for kind, text in (("slurmctld", "one"), ("clustermgtd", "two"), ("slurmctld", "three")):
        operated.log(f"{prefix}{kind}", text)
    assert shown() == 0
    assert [line.split(" | ")[1] for line in capsys.readouterr().out.splitlines()] == ["one", "two", "three"]


def test_the_last_lines_and_those_with_a_text(
    operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    operated.log(f"{head_prefix(operated)}slurmctld", "a 1", "b 2", 'a "3"', "a 4")
    assert shown("slurmctld", "--lines", "2") == 0
    assert untimed(capsys.readouterr().out).splitlines() == ['head-node slurmctld | a "3"', "head-node slurmctld | a 4"]
    assert shown("slurmctld", "--grep", "a ", "--lines", "2") == 0
    assert untimed(capsys.readouterr().out).splitlines() == ['head-node slurmctld | a "3"', "head-node slurmctld | a 4"]
    assert shown("slurmctld", "--grep", "b 2") == 0
    assert untimed(capsys.readouterr().out).splitlines() == ["head-node slurmctld | b 2"]


def test_health_is_what_the_checks_found(operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    operated.log(f"{head_prefix(operated)}slurmctld", "else", "reason set to: ultracluster: ECC_ERRORS")
    assert shown("health") == 0
    assert untimed(capsys.readouterr().out) == "head-node slurmctld | reason set to: ultracluster: ECC_ERRORS\n"
    assert shown("health", "--grep", "x") == 2


@pytest.mark.parametrize("name", [GONE, "10.0.99.9", GONE_HOST, "trn1-dy-trn1-32xl-1"])
def test_a_node_that_is_gone_by_each_of_its_names(
    operated: Operated, shown: Logs, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    operated.log(f"{head_prefix(operated)}slurm_resume", ASSIGNED)
    operated.log(f"{GONE_HOST}.{GONE}.slurmd", "its last words")
    operated.log("ip-10-0-99-10.i-0fedcba9876543210.slurmd", "another's")
    assert shown(name) == 0
    shown_as = GONE_HOST if name in ("10.0.99.9", GONE_HOST) else "trn1-dy-trn1-32xl-1"
    assert untimed(capsys.readouterr().out) == f"{shown_as} slurmd | its last words\n"


def test_a_name_in_slurm_of_a_node_that_nothing_was_logged_of(
    operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    [instance_id] = operated.launch(1)
    host = next(each.host for each in nodes.present(operated.deployment()) if each.instance_id == instance_id)
    operated.shell(
        f"grep -q 'show node trn1-st-trn1-32xl-2' && echo 'NodeName=x NodeAddr={host[3:].replace('-', '.')} X=1'"
    )
    operated.log(f"{host}.{instance_id}.slurmd", "here")
    assert shown("trn1-st-trn1-32xl-2") == 0
    assert untimed(capsys.readouterr().out) == "trn1-st-trn1-32xl-2 slurmd | here\n"


def test_names_that_mean_nothing_are_refused(
    operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown("slurmdd") == 2
    assert "got slurmdd; allowed: head-node, an instance id" in capsys.readouterr().err
    assert shown("ip-10-0-1-250") == 1
    assert "has no logs of ip-10-0-1-250" in capsys.readouterr().err
    assert shown("slurmdbd") == 1
    assert "has no logs of slurmdbd" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--since", "1y"],
        ["--lines", "0"],
        ["--job", "x;y"],
        ["--job", "1_"],
        ["slurmd", "--list"],
        ["slurmd", "--job", "1"],
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused(shown: Logs, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        shown(*arguments)
    assert end.value.code == 2


def test_a_window(operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    """Narrower, and wider, than the hour before the newest line."""
    log_at(operated, f"{head_prefix(operated)}slurmctld", 300, 90, 30, 5)
    for arguments, ages in (((), [30, 5]), (("--since", "10m"), [5]), (("--since", "2h"), [90, 30, 5])):
        assert shown("slurmctld", *arguments) == 0
        output = untimed(capsys.readouterr().out)
        assert output == "".join(f"head-node slurmctld | {age}\n" for age in ages)


def test_a_window_without_a_line_is_told(operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    log_at(operated, f"{head_prefix(operated)}slurmctld", 30)
    assert shown("slurmctld", "--since", "10m") == 0
    output, errors = capsys.readouterr()
    assert output == ""
    assert re.fullmatch(r"No line from [\d: -]+ to [\d: -]+ UTC\. To look at other times: --since 7d\n", errors)


def test_the_last_lines_are_those_of_all_times_back(
    operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are looked for from the newest back, in longer and longer windows."""
    ages = [6000, 3000, 1000, 300, 90, 30, 26, 24, 6, 4, 1]
    log_at(operated, f"{head_prefix(operated)}slurmctld", *ages)
    for count in (1, 5, 7, 11):
        assert shown("slurmctld", "--since", "7d", "--lines", str(count)) == 0
        output = untimed(capsys.readouterr().out)
        assert output == "".join(f"head-node slurmctld | {age}\n" for age in ages[-count:])


def test_what_is_too_much_is_cut_off_and_told(
    operated: Operated, shown: Logs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(streams, "EVENTS_PER_CALL", 10)
    monkeypatch.setattr(streams, "MOST_CALLS", 4)
    log_at(operated, f"{head_prefix(operated)}slurmctld", *(15 - number / 100 for number in range(100)), 3)
    operated.calls()
    assert shown("slurmctld", "--lines", "100") == 0
    output, errors = capsys.readouterr()
    assert operated.calls().count("logs:FilterLogEvents") == 4
    assert len(output.splitlines()) == 31
    assert "There is too much from " in errors
    assert shown("slurmctld", "--lines", "1") == 0
    assert capsys.readouterr().err == "", "what is wanted was found"


def test_following_looks_at_the_last_minutes_alone(
    operated: Operated, shown: Logs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is old is not read again, also when nothing new was found."""
    monkeypatch.setattr(streams, "EVENTS_PER_CALL", 10)
    operated.log(f"{head_prefix(operated)}slurmctld", *["x"] * 100)
    ahead, now = timedelta(), Clock.now

    def pass_time() -> None:
        nonlocal ahead
        ahead += timedelta(minutes=10)

    monkeypatch.setattr(Clock, "now", lambda self: now(self) + ahead)
    following(monkeypatch, pass_time, operated.calls, lambda: None)
    assert shown("slurmctld", "--follow") == 130
    assert operated.calls().count("logs:FilterLogEvents") == 2
    assert len(capsys.readouterr().out.splitlines()) == 100


def following(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], Any]) -> None:
    """Let each sleep of the program do a step, and the one after the last be Ctrl-C."""
    left = list(steps)

    def sleep(_: Clock, seconds: float) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    monkeypatch.setattr(Clock, "sleep", sleep)


def test_following_shows_each_line_once(
    operated: Operated, shown: Logs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = f"{head_prefix(operated)}slurmctld"
    operated.log(stream, "one")
    following(monkeypatch, lambda: operated.log(stream, "two"), lambda: None, lambda: operated.log(stream, "three"))
    assert shown("slurmctld", "--follow", "--json") == 130
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["message"] for line in lines] == ["one", "two", "three"]
    for line in lines:
        Draft202012Validator(SCHEMA).validate(line)


def test_following_goes_on_after_a_moment_without_an_answer(
    operated: Operated, shown: Logs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = f"{head_prefix(operated)}slurmctld"
    operated.log(stream, "one")
    error = EndpointConnectionError(endpoint_url="https://logs.us-west-2.amazonaws.com")
    events = streams.Source.events

    def unanswered(*_: object, **__: object) -> None:
        raise error

    def fail() -> None:
        monkeypatch.setattr(streams.Source, "events", unanswered)

    def mend() -> None:
        monkeypatch.setattr(streams.Source, "events", events)
        operated.log(stream, "two")

    following(monkeypatch, fail, lambda: None, mend, lambda: None)
    assert shown("slurmctld", "--follow") == 130
    output, errors = capsys.readouterr()
    assert untimed(output) == "head-node slurmctld | one\nhead-node slurmctld | two\n"
    assert errors.count(f"No answer, trying again: {error}") == 1


def test_following_finds_nodes_that_join(
    operated: Operated, shown: Logs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    operated.log(f"{GONE_HOST}.{GONE}.slurmd", "one")
    monkeypatch.setattr(program, "LOOKS_BEFORE_RENEWAL", 1)
    following(monkeypatch, lambda: operated.log("ip-10-0-99-10.i-0fedcba9876543210.slurmd", "two"))
    assert shown("slurmd", "--follow") == 130
    assert untimed(capsys.readouterr().out) == "ip-10-0-99-9 slurmd | one\nip-10-0-99-10 slurmd | two\n"


@pytest.mark.parametrize("arguments", [["slurmctld"], ["head-node"], ["--job", "7"], ["--list"], [GONE_HOST]])
def test_logs_are_shown_without_the_right_to_see_instances(
    operated: Operated, shown: Logs, arguments: list[str], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def refused(_: Deployment) -> list[dict[str, Any]]:
        raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}, "DescribeInstances")

    operated.log(f"{GONE_HOST}.{GONE}.slurmctld", "JobId=7 its words")
    monkeypatch.setattr(Deployment, "nodes", refused)
    assert shown(*arguments) == 0
    output, errors = capsys.readouterr()
    assert "its words" in output or GONE in output
    assert errors.count("ec2:DescribeInstances is not allowed") == 1


def test_what_there_is(operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    operated.log(f"{head_prefix(operated)}slurmctld", "x")
    operated.log(f"{GONE_HOST}.{GONE}.slurmd", "x")
    assert shown("--list") == 0
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80
    assert "head-node" in output
    assert GONE in output
    assert shown("--list", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(document)
    assert [(each["node"], each["runs"], each["kinds"]) for each in document["nodes"]] == [
        ("head-node", True, ["slurmctld"]),
        (GONE_HOST, False, ["slurmd"]),
    ]


def test_the_document_is_as_its_schema_says(
    operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    operated.log(f"{head_prefix(operated)}slurmctld", "x")
    assert shown("slurmctld", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(document)
    assert [line["message"] for line in document["lines"]] == ["x"]


def test_calls_do_not_grow_with_the_nodes_and_their_lines(operated: Operated, shown: Logs) -> None:
    for number in range(60):
        operated.log(f"ip-10-0-98-{number}.i-{number:017x}.slurmd", *["x"] * 300)
    operated.calls()
    assert shown("slurmd") == 0
    assert len(operated.calls()) <= 12


def test_that_there_are_more_streams_is_told(
    operated: Operated, shown: Logs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The head node, which wrote before all others, is listed with its logs."""
    monkeypatch.setattr(streams, "MOST_LOOKED_AT", 3)
    log_at(operated, f"{head_prefix(operated)}slurmctld", 500)
    for number in range(4):
        operated.log(f"ip-10-0-98-{number}.i-{number:017x}.slurmd", "x")
    assert shown("--list", "--json") == 0
    output, errors = capsys.readouterr()
    assert json.loads(output)["nodes"][0]["kinds"] == ["slurmctld"]
    assert len(json.loads(output)["nodes"]) == 4
    assert "There are more than 3 log streams" in errors
    assert shown("slurmd") == 0
    assert "There are more than 3 log streams. Of those written to last, 3 are slurmd" in capsys.readouterr().err
    monkeypatch.setattr(streams, "MOST_LOOKED_AT", 500)
    assert shown("--list") == 0
    assert capsys.readouterr().err == ""
