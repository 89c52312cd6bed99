"""The metrics of the head node, but for Slurm itself, which tests/end_to_end/slurm/test_node_metrics.py has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.metrics import head_node
from nodes.metrics.cloudwatch import CloudWatch
from nodes.metrics.head_node import HeadNode, Node
from tests.fake_commands import write_commands


def test_nodes_belong_to_the_queue_that_their_names_begin_with() -> None:
    nodes = {"trn1-st-a-1", "trn1-dy-a-1", "trn1-large-dy-a-1", "trn-dy-a-1"}
    assert {queue: head_node.count_of(queue, nodes) for queue in ("trn1", "trn1-large", "trn", "large")} == {
        "trn1": 2,
        "trn1-large": 1,
        "trn": 1,
        "large": 0,
    }


def test_nodes_as_sinfo_shows_them() -> None:
    shown = """\
a-dy-b-1    10.0.0.1    allocated+cloud           dynamic,trn1.32xlarge,b
a-dy-b-1    10.0.0.1    allocated+cloud           dynamic,trn1.32xlarge,b
a-st-b-1    a-st-b-1    down+cloud+not_responding static,trn1.32xlarge,b
"""
    assert [(node.name, node.is_running, node.is_static) for node in head_node.nodes_of(shown)] == [
        ("a-dy-b-1", True, False),
        ("a-st-b-1", False, True),
    ]


def test_the_dynamic_node_that_is_idle_for_longest_tells_for_how_long() -> None:
    def node(name: str, state: str = "IDLE", life: str = "dynamic") -> Node:
        return Node(name, "10.0.0.1", frozenset({state}), frozenset({life}))

    head = HeadNode(CloudWatch("us-west-2"), "trn1-16")
    told = [
        head._longest_idle(nodes, 60.0 * minute)
        for minute, nodes in enumerate(
            [
                [node("a"), node("b", "ALLOCATED"), node("s", life="static")],
                [node("a"), node("b"), node("s", life="static")],
                [node("a", "MIXED"), node("b"), node("s", life="static")],
                [node("a"), node("s", life="static")],
            ]
        )
    ]
    assert told == [0, 60, 60, 0]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        *((json.dumps({"status": status}), set()) for status in ("STOPPED", "STOPPING", "STOP_REQUESTED", "STARTING")),
        *((json.dumps({"status": status}), {"b"}) for status in ("PROTECTED", "RUNNING")),
        ("{}", {"b"}),
        ("no JSON", {"b"}),
        ("", {"b"}),
    ],
)
def test_a_queue_is_not_protected_where_somebody_stopped_the_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, expected: set[str]
) -> None:
    write_commands(tmp_path, {"get-status": f"echo '{answer}'"})
    monkeypatch.setattr(head_node, "_FLEET_STATUS", str(tmp_path / "get-status"))
    assert head_node.protected_queues({"a": "UP", "b": "INACTIVE", "c": "DOWN"}) == expected
