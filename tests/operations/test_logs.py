"""`logs`: the logs of nodes and jobs by the names that people have for them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from scripts import logs
from scripts.operations import head_node, log_choice, nodes, streamed_command, streams
from scripts.operations import logs as program
from scripts.operations.clock import Clock
from tests.operations.account import Operated

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/logs.json").read_text(encoding="utf-8"))
GONE, GONE_HOST = "i-0123456789abcdef0", "ip-10-0-99-9"
_TIME = "launch_time=datetime.datetime(2026, 11, 20, 4, 55, 8, tzinfo=tzlocal()), slurm_node=None"
ASSIGNED = (
    "2026-11-20 04:55:09,414 - [slurm_plugin.instance_manager:_update_slurm_node_addrs] - INFO - "
    f"Nodes are now configured with instances (x2) [\"('trn1-dy-trn1-32xl-1', EC2Instance(id='{GONE}', "
    f"private_ip='10.0.99.9', hostname='ip-10-0-99-9', {_TIME}))\", \"('trn1-dy-trn1-32xl-10', "
    f"EC2Instance(id='i-0fedcba9876543210', private_ip='10.0.99.10', hostname='ip-10-0-99-10', {_TIME}))\"]"
)
"""As ParallelCluster 3 logs it, two nodes at once."""
Logs = Callable[..., int]


@pytest.fixture
def shown(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> Logs:
    """Call the program with arguments."""
    monkeypatch.setattr(streamed_command, "SECONDS_BETWEEN_READS", 0.05)
    monkeypatch.setattr(head_node, "SECONDS_BETWEEN_LOOKS", 0.05)

    def call(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["logs", "trn1-16", *arguments])
        return logs.main()

    return call


def head_prefix(operated: Operated) -> str:
    """Return what the head node's log streams begin with."""
    return nodes.present(operated.deployment())[0].prefix


def test_a_file_of_the_head_node(operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    operated.log(f"{head_prefix(operated)}slurmctld", "first", "second")
    operated.log(f"{head_prefix(operated)}slurmctld_other", "no")
    assert shown("slurmctld") == 0
    assert capsys.readouterr().out == "head-node slurmctld | first\nhead-node slurmctld | second\n"


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
    assert capsys.readouterr().out.splitlines() == ['head-node slurmctld | a "3"', "head-node slurmctld | a 4"]
    assert shown("slurmctld", "--grep", "a ", "--lines", "2") == 0
    assert capsys.readouterr().out.splitlines() == ['head-node slurmctld | a "3"', "head-node slurmctld | a 4"]
    assert shown("slurmctld", "--grep", "b 2") == 0
    assert capsys.readouterr().out.splitlines() == ["head-node slurmctld | b 2"]


def test_health_is_what_the_checks_found(operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    operated.log(f"{head_prefix(operated)}slurmctld", "else", "reason set to: ultracluster: ECC_ERRORS")
    assert shown("health") == 0
    assert capsys.readouterr().out == "head-node slurmctld | reason set to: ultracluster: ECC_ERRORS\n"
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
    assert capsys.readouterr().out == f"{shown_as} slurmd | its last words\n"


def test_a_name_in_slurm_leads_to_the_instances_that_had_it(
    operated: Operated,
) -> None:
    operated.log(f"{head_prefix(operated)}slurm_resume", ASSIGNED, ASSIGNED.replace(GONE, "i-0000000000000000a"))
    deployment = operated.deployment()
    found = nodes.over_time(deployment, streams.group(deployment), "trn1-dy-trn1-32xl-1")
    assert [each.instance_id for each in found] == ["i-0000000000000000a", GONE]


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
    assert capsys.readouterr().out == "trn1-st-trn1-32xl-2 slurmd | here\n"


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
    "arguments", [["--since", "1y"], ["--lines", "0"], ["--job", "x"], ["slurmd", "--list"], ["slurmd", "--job", "1"]]
)
def test_a_command_line_that_makes_no_sense_is_refused(shown: Logs, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        shown(*arguments)
    assert end.value.code == 2


def test_a_window(operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    operated.log(f"{head_prefix(operated)}slurmctld", "now")
    assert shown("slurmctld", "--since", "10m") == 0
    assert capsys.readouterr().out == "head-node slurmctld | now\n"


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


def test_following_finds_nodes_that_join(
    operated: Operated, shown: Logs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    operated.log(f"{GONE_HOST}.{GONE}.slurmd", "one")
    monkeypatch.setattr(program, "LOOKS_BEFORE_RENEWAL", 1)
    following(monkeypatch, lambda: operated.log("ip-10-0-99-10.i-0fedcba9876543210.slurmd", "two"))
    assert shown("slurmd", "--follow") == 130
    assert capsys.readouterr().out == "ip-10-0-99-9 slurmd | one\nip-10-0-99-10 slurmd | two\n"


SLURM = (
    'runuser() { bash -c "$4"; }; scontrol() { case "$*" in *"show job 12") echo "JobId=12 JobName=train '
    'JobState=RUNNING ReqNodeList=(null) NodeList=trn1-dy-trn1-32xl-1 StdOut=OUTPUT";; *"show node"*) '
    'echo "NodeName=trn1-dy-trn1-32xl-1 Arch=x86_64 NodeAddr=ADDRESS NodeHostName=x";; '
    "*) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1;; esac; }; source /dev/stdin"
)


def test_a_job_is_its_output_and_its_nodes(
    operated: Operated, shown: Logs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [instance_id] = operated.launch(1)
    host = next(each.host for each in nodes.present(operated.deployment()) if each.instance_id == instance_id)
    (tmp_path / "train.log").write_text("step 1\nstep 2", encoding="utf-8")
    address = host.removeprefix("ip-").replace("-", ".")
    operated.shell(SLURM.replace("OUTPUT", str(tmp_path / "train.log")).replace("ADDRESS", address))
    operated.log(f"{host}.{instance_id}.slurmd", "launch task StepId=12.0")
    assert shown("--job", "12") == 0
    output, errors = capsys.readouterr()
    assert output == (
        "trn1-dy-trn1-32xl-1 slurmd | launch task StepId=12.0\njob 12 output | step 1\njob 12 output | step 2\n"
    )
    assert "Job 12 is RUNNING" in errors


def test_a_job_that_slurm_has_forgotten(operated: Operated, shown: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    operated.shell(SLURM)
    lines = ("sched: Allocate JobId=7 NodeList=trn1-dy-trn1-32xl-1 #CPUs=128", "sched: Allocate JobId=77 NodeList=x")
    operated.log(f"{head_prefix(operated)}slurmctld", *lines)
    assert shown("--job", "7") == 0
    output, errors = capsys.readouterr()
    assert output == f"head-node slurmctld | {lines[0]}\n"
    assert "Slurm knows no job 7" in errors


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


def test_the_newest_group_of_this_cluster_is_taken(operated: Operated) -> None:
    kept = operated.log_group
    for name in ("/aws/parallelcluster/trn1-16-2-209901010000", "/aws/parallelcluster/trn1-16-200001010000"):
        streamed_command._prepare(operated.client("logs"), name)
    try:
        assert streams.group(operated.deployment()) == kept
    finally:
        for name in ("/aws/parallelcluster/trn1-16-2-209901010000", "/aws/parallelcluster/trn1-16-200001010000"):
            operated.client("logs").delete_log_group(logGroupName=name)


def test_the_logs_of_a_head_node_that_is_gone(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    operated.log(f"{GONE_HOST}.{GONE}.clustermgtd", "x")
    monkeypatch.setattr(nodes, "present", lambda _: [])
    choice = log_choice.choose(operated.deployment(), "head-node", "")
    assert [each.instance_id for each in choice.streams] == [GONE]


def test_calls_do_not_grow_with_the_nodes(operated: Operated, shown: Logs) -> None:
    for number in range(60):
        operated.log(f"ip-10-0-98-{number}.i-{number:017x}.slurmd", "x")
    operated.calls()
    assert shown("slurmd") == 0
    assert len(operated.calls()) <= 12
