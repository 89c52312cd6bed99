"""`logs`: the logs of nodes by the names that people have for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from scripts.account import log_streams
from scripts.account.deployment import Deployment
from scripts.account.remote import nodes
from scripts.account.remote.streamed_command import create_log_group
from scripts.watch.logs import selection, show
from tests.command_line import ultracluster
from tests.scripts.operated import Operated
from tests.scripts.refusals import refusal
from tests.scripts.watch.logs.conftest import Follow
from tests.scripts.watch.logs.log_lines import ASSIGNED, GONE, GONE_HOST, head_prefix, log_at, without_times

Logs = Callable[..., int]


# --- which lines ---


def test_the_files_of_a_node_are_sorted_by_time(
    operated: Operated, run_logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix = head_prefix(operated)
    for kind, text in (("slurmctld", "one"), ("clustermgtd", "two"), ("slurmctld", "three"), ("slurmctld_other", "4")):
        operated.log(f"{prefix}{kind}", text)
    assert run_logs() == 0
    assert [line.split(" | ")[1] for line in capsys.readouterr().out.splitlines()] == ["one", "two", "three", "4"]
    assert run_logs("slurmctld", "--output", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [(each["node"], each["message"]) for each in document["lines"]] == [
        ("head-node", "one"),
        ("head-node", "three"),
    ]


def test_the_last_lines_and_those_with_a_text(
    operated: Operated, run_logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    operated.log(f"{head_prefix(operated)}slurmctld", "a 1", "b 2", 'a "3"', "reason: ultracluster: ECC_ERRORS")
    for arguments, expected in (
        (("slurmctld", "--lines", "1"), "reason: ultracluster: ECC_ERRORS"),
        (("slurmctld", "--grep", "a ", "--lines", "1"), 'a "3"'),
        (("slurmctld", "--grep", "b 2"), "b 2"),
        (("health",), "reason: ultracluster: ECC_ERRORS"),
    ):
        assert run_logs(*arguments) == 0
        assert without_times(capsys.readouterr().out) == f"head-node slurmctld | {expected}\n"
    assert run_logs("health", "--grep", "x") == 2


# --- which nodes ---


@pytest.mark.parametrize("name", [GONE, "10.0.99.9", "trn1-dy-trn1-32xl-1"])
def test_a_terminated_node_by_each_of_its_names(
    operated: Operated, run_logs: Logs, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    operated.log(f"{head_prefix(operated)}slurm_resume", ASSIGNED)
    operated.log(f"{GONE_HOST}.{GONE}.slurmd", "its last words")
    operated.log("ip-10-0-99-10.i-0fedcba9876543210.slurmd", "another's")
    assert run_logs(name) == 0
    shown_as = GONE_HOST if name == "10.0.99.9" else "trn1-dy-trn1-32xl-1"
    assert without_times(capsys.readouterr().out) == f"{shown_as} slurmd | its last words\n"


def test_a_name_in_slurm_that_is_in_no_log(
    operated: Operated, run_logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    [instance_id] = operated.launch(1)
    host = next(each.host for each in nodes.list_present(operated.deployment()) if each.instance_id == instance_id)
    address = host[3:].replace("-", ".")
    answer = f'{{"addresses":{{"trn1-st-trn1-32xl-2":"{address}"}}}}'
    operated.shell(f"grep -q 'addresses trn1-st-trn1-32xl-2' && echo '{answer}'")
    operated.log(f"{host}.{instance_id}.slurmd", "here")
    assert run_logs("trn1-st-trn1-32xl-2") == 0
    assert without_times(capsys.readouterr().out) == "trn1-st-trn1-32xl-2 slurmd | here\n"


def test_a_name_in_slurm_leads_to_all_instances_that_had_it(operated: Operated) -> None:
    operated.log(f"{head_prefix(operated)}slurm_resume", ASSIGNED, ASSIGNED.replace(GONE, "i-0000000000000000a"))
    deployment = operated.deployment()
    instances = nodes.over_time(deployment, log_streams.newest_group(deployment), "trn1-dy-trn1-32xl-1", print)
    assert [each.instance_id for each in instances] == ["i-0000000000000000a", GONE]


def test_the_newest_group_of_this_cluster_is_used(operated: Operated) -> None:
    expected = operated.log_group
    for name in ("/aws/parallelcluster/trn1-16-2-209901010000", "/aws/parallelcluster/trn1-16-200001010000"):
        create_log_group(operated.client("logs"), name)
    assert log_streams.newest_group(operated.deployment()) == expected


def test_the_logs_of_a_terminated_head_node(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    operated.log(f"{GONE_HOST}.{GONE}.clustermgtd", "x")
    monkeypatch.setattr(nodes, "list_present", lambda _: [])
    selected = selection.select(operated.deployment(), "head-node", "", print)
    assert [each.instance_id for each in selected.streams] == [GONE]


def test_names_that_mean_nothing_are_rejected(
    operated: Operated, run_logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, code, complaint in (
        ("slurmdd", 2, "got slurmdd; allowed: head-node, an instance id"),
        ("ip-10-0-1-250", 1, "has no logs of ip-10-0-1-250"),
        ("slurmdbd", 1, "has no logs of slurmdbd"),
    ):
        assert run_logs(name) == code
        errors = capsys.readouterr().err
        assert complaint in errors
        assert "hint: ./ultracluster logs trn1-16 --list\n" in errors


@pytest.mark.parametrize("arguments", [["slurmctld"], ["head-node"], ["--job", "7"], ["--list"]])
def test_logs_are_shown_without_the_permission_to_describe_instances(
    operated: Operated, run_logs: Logs, arguments: list[str], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def denied(_: Deployment) -> list[dict[str, Any]]:
        raise refusal("UnauthorizedOperation", "DescribeInstances")

    operated.log(f"{GONE_HOST}.{GONE}.slurmctld", "JobId=7 its words")
    monkeypatch.setattr(Deployment, "nodes", denied)
    assert run_logs(*arguments) == 0
    output, errors = capsys.readouterr()
    assert "its words" in output or GONE in output
    assert errors.count("ec2:DescribeInstances is not allowed") == 1


# --- --list ---


def test_the_list(operated: Operated, run_logs: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    operated.log(f"{head_prefix(operated)}slurmctld", "x")
    operated.log(f"{GONE_HOST}.{GONE}.slurmd", "x")
    assert run_logs("--list") == 0
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80
    assert GONE in output
    assert run_logs("--list", "--output", "json") == 0
    assert [(each["node"], each["runs"], each["kinds"]) for each in json.loads(capsys.readouterr().out)["nodes"]] == [
        ("head-node", True, ["slurmctld"]),
        (GONE_HOST, False, ["slurmd"]),
    ]


def test_more_streams_than_are_listed(
    operated: Operated, run_logs: Logs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The head node, which wrote before all others, is listed with its logs."""
    monkeypatch.setattr(log_streams, "MOST_LISTED", 3)
    log_at(operated, f"{head_prefix(operated)}slurmctld", 500)
    for number in range(4):
        operated.log(f"ip-10-0-98-{number}.i-{number:017x}.slurmd", "x")
    assert run_logs("--list", "--output", "json") == 0
    output, errors = capsys.readouterr()
    assert json.loads(output)["nodes"][0]["kinds"] == ["slurmctld"]
    assert len(json.loads(output)["nodes"]) == 4
    assert "There are more than 3 log streams" in errors
    assert run_logs("slurmd") == 0
    assert "There are more than 3 log streams. Of the newest, 3 are slurmd" in capsys.readouterr().err


# --- --follow ---


def test_each_line_is_shown_once(
    operated: Operated, run_logs: Logs, follow: Follow, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = f"{head_prefix(operated)}slurmctld"
    operated.log(stream, "one")
    follow(lambda: operated.log(stream, "two"), lambda: None, lambda: operated.log(stream, "three"))
    assert run_logs("slurmctld", "--follow", "--output", "json") == 130
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["message"] for line in lines] == ["one", "two", "three"]


def test_following_continues_after_a_while_without_an_answer(
    operated: Operated,
    run_logs: Logs,
    follow: Follow,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = f"{head_prefix(operated)}slurmctld"
    operated.log(stream, "one")
    error = ConnectTimeoutError(endpoint_url="https://logs.us-west-2.amazonaws.com")
    working = log_streams.Source.read

    def raise_error(*_: object, **__: object) -> None:
        raise error

    def fail() -> None:
        monkeypatch.setattr(log_streams.Source, "read", raise_error)

    def recover() -> None:
        monkeypatch.setattr(log_streams.Source, "read", working)
        operated.log(stream, "two")

    follow(fail, lambda: None, recover, lambda: None)
    assert run_logs("slurmctld", "--follow") == 130
    output, errors = capsys.readouterr()
    assert without_times(output) == "head-node slurmctld | one\nhead-node slurmctld | two\n"
    assert errors.count(str(error)) == 1


def test_following_finds_new_nodes(
    operated: Operated,
    run_logs: Logs,
    follow: Follow,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    operated.log(f"{GONE_HOST}.{GONE}.slurmd", "one")
    monkeypatch.setattr(show, "READS_BEFORE_RENEWAL", 1)
    follow(lambda: operated.log("ip-10-0-99-10.i-0fedcba9876543210.slurmd", "two"))
    assert run_logs("slurmd", "--follow") == 130
    assert without_times(capsys.readouterr().out) == "ip-10-0-99-9 slurmd | one\nip-10-0-99-10 slurmd | two\n"


# --- the command line ---


@pytest.mark.parametrize(
    "arguments",
    [["--since", "1y"], ["--lines", "0"], ["--job", "x;y"], ["slurmd", "--list"], ["slurmd", "--job", "1"]],
)
def test_a_command_line_that_makes_no_sense_is_rejected(arguments: list[str]) -> None:
    assert ultracluster("logs", "trn1-16", *arguments) == 2
