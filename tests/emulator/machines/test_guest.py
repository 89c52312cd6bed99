"""Decisions of the programs in a machine, on plain values: what runs them is in tests of a life."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.machines.guest import (
    aws,
    cloud_init,
    compute_node,
    custom_actions,
    fleet,
    head_node,
    log_agent,
    pace,
    update,
)
from emulator.machines.guest import node as nodes
from emulator.machines.guest.node import Node

USER_DATA = """\
Content-Type: multipart/mixed; boundary="==BOUNDARY=="
MIME-Version: 1.0

--==BOUNDARY==
Content-Type: text/cloud-boothook; charset="us-ascii"
MIME-Version: 1.0

#!/bin/bash -x
echo first

--==BOUNDARY==
Content-Type: text/cloud-config; charset=us-ascii
MIME-Version: 1.0

bootcmd:
  - echo 0 > /sys/devices/system/cpu/cpu1/online
write_files:
  - path: /opt/parallelcluster/tmp/dna.json
    permissions: '0644'
    owner: root:root
    content: |
      {"cluster": {}}
--==BOUNDARY==
Content-Type: text/x-shellscript; charset="us-ascii"
MIME-Version: 1.0

#!/bin/bash -x
echo last
--==BOUNDARY==
"""


def test_user_data_is_taken_apart_and_turns_no_processor_off() -> None:
    said = cloud_init.parse(USER_DATA)
    assert said.files == [("/opt/parallelcluster/tmp/dna.json", '{"cluster": {}}', 0o644)]
    assert [text.split() for text in (*said.boothooks, *said.scripts)] == [
        ["#!/bin/bash", "-x", "echo", "first"],
        ["#!/bin/bash", "-x", "echo", "last"],
    ]


@pytest.mark.parametrize(("text", "scripts"), [("#!/bin/sh\nexit 1\n", ["#!/bin/sh\nexit 1\n"]), ("", [])])
def test_user_data_without_parts_is_one_script_or_nothing(text: str, scripts: list[str]) -> None:
    assert cloud_init.parse(text).scripts == scripts


SCRIPT = {"Script": "s3://bucket/a.sh", "Args": ["x"]}
OTHER = {"Script": "s3://bucket/b.sh", "Args": None}
CONFIGURATION: dict[str, Any] = {
    "HeadNode": {"CustomActions": {"OnNodeStart": None, "OnNodeConfigured": SCRIPT}},
    "Scheduling": {
        "SlurmQueues": [
            {"Name": "a", "CustomActions": None},
            {"Name": "b", "CustomActions": {"OnNodeConfigured": {"Sequence": [SCRIPT, OTHER]}}},
        ]
    },
    "LoginNodes": {"Pools": [{"Name": "a", "CustomActions": {"OnNodeConfigured": OTHER}}]},
}


@pytest.mark.parametrize(
    ("kind", "name", "event", "expected"),
    [
        ("HeadNode", "", "OnNodeConfigured", [SCRIPT]),
        ("HeadNode", "", "OnNodeStart", []),
        ("HeadNode", "", "OnNodeUpdated", []),
        ("ComputeFleet", "a", "OnNodeConfigured", []),
        ("ComputeFleet", "b", "OnNodeConfigured", [SCRIPT, OTHER]),
        ("LoginNode", "a", "OnNodeConfigured", [OTHER]),
    ],
)
def test_the_scripts_of_a_custom_action(kind: str, name: str, event: str, expected: list[object]) -> None:
    assert custom_actions.scripts(CONFIGURATION, kind, name, event) == expected


def test_only_queues_with_a_change_that_replaces_nodes_are_replaced() -> None:
    changes = [
        {
            "parameter": "Scheduling.SlurmQueues[a].ComputeResources[x].MaxCount",
            "updatePolicy": "RESIZE_UPDATE_STRATEGY",
        },
        {"parameter": "Scheduling.SlurmQueues[b].CustomActions", "updatePolicy": "QUEUE_UPDATE_STRATEGY"},
        {"parameter": "Scheduling.SlurmQueues[b].Image", "updatePolicy": "QUEUE_UPDATE_STRATEGY"},
        {"parameter": "HeadNode.CustomActions", "updatePolicy": "SUPPORTED"},
    ]
    assert update.queues_to_replace(changes) == ["b"]


def test_which_nodes_keep_an_update_from_its_end() -> None:
    def record(version: str, status: str = "DEPLOYED_UPDATE", minute: int = 0) -> dict[str, str]:
        now = f"2026-03-12T21:{minute:02}:00.000+00:00"
        return {"cluster_config_version": version, "status": status, "lastUpdateTime": now}

    records = {
        "starting": None,
        "good": record("new"),
        "hanging": record("old"),
        "odd": {"status": "DEPLOYED_UPDATE"},
        "started before": record("old", "DEPLOYED_BOOTSTRAP", 9),
        "started since": record("old", "DEPLOYED_BOOTSTRAP", 11),
        "updated to something else": record("older", minute=11),
    }
    since = datetime(2026, 3, 12, 21, 10, tzinfo=UTC)
    wrong = [("hanging", "old"), ("started before", "old"), ("updated to something else", "older")]
    assert update.sort_records(records, "new", since) == (["starting"], ["odd"], wrong, ["started since"])


@pytest.mark.parametrize(("name", "kind"), [("trn1-st-x-1", "static"), ("a-st-b-dy-c-1", "dynamic")])
def test_the_name_says_whether_a_node_is_static(name: str, kind: str) -> None:
    assert compute_node.kind(name) == kind


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2026-11-22 19:13:39,285 - [m:f] - INFO - text", "2026-11-22T19:13:39.285"),
        ("[2026-11-22T19:13:39+00:00] INFO: text", "2026-11-22T19:13:39.000"),
        ("[2026-11-22T19:13:39.004] slurmctld", "2026-11-22T19:13:39.004"),
        ('{"datetime": "2026-11-22T19:13:39.004+00:00"}', "2026-11-23T00:00:00.000"),
    ],
)
def test_an_event_has_the_time_that_its_line_begins_with(line: str, expected: str) -> None:
    milliseconds = log_agent.event_time(line, datetime(2026, 11, 23, tzinfo=UTC))
    assert datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds") == f"{expected}+00:00"


def test_whole_lines_are_sent_once_and_another_file_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = log_agent.Tail(path)
    assert tail.lines() == []
    path.write_text("one\ntw", encoding="utf-8")
    assert tail.lines() == ["one"]
    path.write_text("one\ntwo\n", encoding="utf-8")
    assert log_agent.Tail(path, tail.offset, tail.inode).lines() == ["two"]
    rotated = tmp_path / "new"
    rotated.write_text("three\n", encoding="utf-8")
    rotated.rename(path)
    assert tail.lines() == ["three"]
    path.write_text("", encoding="utf-8")
    tail.lines()
    path.write_text("4\n", encoding="utf-8")
    assert tail.lines() == ["4"]


def test_a_head_node_takes_the_versions_that_its_stack_names(monkeypatch: pytest.MonkeyPatch) -> None:
    # an update that failed has left newer ones in the bucket, which its roll-back does not delete
    asked: dict[str, str] = {}
    cluster = {
        "cluster_s3_bucket": "b",
        "cluster_config_s3_key": "config",
        "cluster_config_version": "v1",
        "instance_types_data_s3_key": "types",
        "instance_types_data_version": "v2",
        "change_set_s3_key": "changes",
    }
    monkeypatch.setattr(aws, "_request", lambda _, __, path, *___: asked.setdefault(path, "").encode())
    monkeypatch.setattr(head_node, "write", lambda *_: None)
    head_node.fetch_configuration(Node(cluster))
    assert list(asked) == ["/b/config?versionId=v1", "/b/types?versionId=v2", "/b/changes"]


def test_a_program_has_the_key_of_its_instances_role_from_the_metadata_service_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also in a login shell, or in one that cron starts, which have no environment."""
    role = "meta-data/iam/security-credentials/"
    told = {
        role: "RoleHeadNode",
        f"{role}RoleHeadNode": json.dumps({"AccessKeyId": "RoleKey"}),
        "meta-data/placement/region": "eu-north-1",
    }
    public = tmp_path / "public"
    public.write_text("AWS_ENDPOINT_URL=http://127.0.0.1:9\n", encoding="utf-8")
    monkeypatch.setattr(aws, "_PUBLIC", public)
    for name in "AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL":
        monkeypatch.delenv(name, raising=False)
    asked: list[tuple[str, str]] = []

    def exchange(host: str, *request: Any) -> tuple[int, bytes]:
        asked.append((host, request[-1]["Authorization"].split()[1]))
        return 200, b"{}"

    monkeypatch.setattr(aws, "_role", [])
    monkeypatch.setattr(aws, "metadata", lambda path: told.get(path, ""))
    monkeypatch.setattr(aws, "_exchange", exchange)
    assert aws.call("dynamodb", "GetItem") == {}
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:8")  # as a fault at its boot sets it
    assert aws.call("dynamodb", "GetItem") == {}
    credential = "Credential=RoleKey/20000101/eu-north-1/dynamodb/aws4_request,"
    assert asked == [("127.0.0.1:9", credential), ("127.0.0.1:8", credential)]
    told.clear()
    monkeypatch.setattr(aws, "_role", [])
    with pytest.raises(aws.AwsError, match="Unable to locate credentials"):
        aws.call("dynamodb", "GetItem")


@pytest.mark.parametrize(
    ("status", "arguments", "after"),
    [
        ("RUNNING", ["--status", "PROTECTED"], "PROTECTED"),
        ("PROTECTED", ["--status=PROTECTED"], "PROTECTED"),
        ("STOPPED", ["--status", "PROTECTED"], "STOPPED"),
        ("RUNNING", ["--status", "STOP_REQUESTED"], "RUNNING"),
        ("RUNNING", [], "RUNNING"),
    ],
)
def test_the_fleet_is_closed_and_nothing_else_by_the_script_that_changes_its_status(
    status: str,
    arguments: list[str],
    after: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = {"status": {"S": status}, "lastStatusUpdatedTime": {"S": "2026-11-28 21:00:00.123456+00:00"}}

    def call(service: str, action: str, **request: Mapping[str, Any]) -> dict[str, Any]:
        if action == "UpdateItem":
            data["status"] = request["ExpressionAttributeValues"][":s"]
        return {"Item": {"Data": {"M": data}}}

    monkeypatch.setattr(aws, "call", call)
    monkeypatch.setattr(Node, "load", lambda: Node({"stack_name": "c"}))
    assert fleet.update_compute_fleet_status(arguments) == int(after != "PROTECTED")
    assert (after == "PROTECTED") == (capsys.readouterr().err == "")
    assert fleet.get_compute_fleet_status([]) == 0
    shown = {"status": after, "lastStatusUpdatedTime": "2026-11-28T21:00:00.123Z"}
    assert json.loads(capsys.readouterr().out) == shown


@pytest.mark.parametrize("text", [None, "", "{}"])
@pytest.mark.parametrize("program", [fleet.get_compute_fleet_status, fleet.update_compute_fleet_status])
def test_scripts_of_the_fleet_on_a_node_that_knows_no_cluster_say_so(
    program: Any, text: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dna = tmp_path / "dna.json"
    if text is not None:
        dna.write_text(text, encoding="utf-8")
    monkeypatch.setattr(nodes, "DNA", dna)
    arguments = ["--status", "PROTECTED"] if program is fleet.update_compute_fleet_status else []
    assert program(arguments) == 1
    assert capsys.readouterr().err.startswith("ERROR: Failed to ")


@pytest.mark.slow
def test_an_update_waits_for_the_looks_of_nodes_on_a_busy_computer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A node that looks ten times and does not follow fails it; one that has had no time to look is waited for."""
    monkeypatch.setattr(update, "_LOOKS", tmp_path)
    monkeypatch.setattr(pace, "load", lambda: pace.FAST)
    now, seconds_per_look, tries = 0.0, 30, [0]

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        (tmp_path / "i-1").write_text(str(int(now // seconds_per_look)), encoding="ascii")

    def step() -> None:
        tries[0] += 1
        looks = now // seconds_per_look
        if looks < limit:
            error = update.NodesError("Check cluster readiness", "wrong")
            error.late = ["i-1"]
            raise error

    monkeypatch.setattr(update, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    limit = 9
    update._retried(step, update._let_nodes_look)
    assert tries[0] == 10
    limit, tries[0] = 1000, 0
    with pytest.raises(update.NodesError):
        update._retried(step, update._let_nodes_look)
    assert tries[0] == 11
    seconds_per_look, limit = 10_000_000, 1  # it is stuck
    with pytest.raises(update.NodesError):
        update._retried(step, update._let_nodes_look)
