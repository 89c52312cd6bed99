"""Scripts of people that nodes run: what may be one, and which file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.constructs.domain.specs import QUEUE, changed, cluster, with_head
from ultracluster.domain.cluster import ClusterSpec
from ultracluster.domain.cluster_rules import violations
from ultracluster.domain.custom_actions import (
    MAX_TEXT,
    NodeActionSpec,
    NodeActionsSpec,
    QueueActionsSpec,
    files_of,
    refused_file,
)

TOKEN = "${Token[TOKEN.7]}"  # noqa: S105


def one(script: str, *arguments: str) -> list[NodeActionSpec]:
    return [NodeActionSpec(script=script, args=list(arguments))]


def everywhere(actions: list[NodeActionSpec]) -> list[ClusterSpec]:
    """Return clusters in which one kind of nodes has scripts."""
    both: dict[str, Any] = {"on_node_start": actions, "on_node_configured": actions}
    of_nodes = NodeActionsSpec(**both, on_node_updated=actions)
    return [
        with_head(custom_actions=of_nodes),
        cluster(login_node_actions=of_nodes),
        cluster(queues=[changed(QUEUE, custom_actions=QueueActionsSpec(**both))]),
    ]


@pytest.mark.parametrize(
    "script", ["site/boot.sh", "boot", TOKEN, "s3://my-bucket/a/b.sh", "https://example.com/a?b=c", f"s3://{TOKEN}/k"]
)
def test_what_may_be_a_script(script: str) -> None:
    for spec in everywhere(one(script, "a b", TOKEN)):
        assert list(map(str, violations(spec))) == []


@pytest.mark.parametrize(
    ("actions", "place"),
    [
        (one("s3://Bucket/key"), "script"),
        (one("s3://bucket"), "script"),
        (one("http://example.com/a"), "script"),
        (one("https://example.com/a b"), "script"),
        (one("a.sh", "x", "two\nlines"), "args.1"),
    ],
)
def test_what_may_not(actions: list[NodeActionSpec], place: str) -> None:
    for spec in everywhere(actions):
        found = {".".join(map(str, each.path)) for each in violations(spec)}
        assert found, spec
        assert all(each.endswith(f".0.{place}") for each in found)


def test_what_head_and_login_nodes_run_fits_a_parameter() -> None:
    """Of each event that launchers look up; a quote is four characters in JSON within JSON."""
    for argument, fits, too_many in (("a", 2400, MAX_TEXT), ('"', 600, 700)):
        assert [len(violations(spec)) for spec in everywhere(one("s", argument * fits))] == [0, 0, 0]
        assert [len(violations(spec)) for spec in everywhere(one("s", argument * too_many))] == [2, 2, 0]


def test_which_files_may_be_scripts(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    (folder / "site").mkdir(parents=True)
    (folder / ".git").mkdir()
    for name, text in (
        ("site/a.sh", "#!/bin/sh\n"),
        ("site/text", "hello\n"),
        (".git/config", "#!x"),
        ("../out.sh", "#!x"),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "out").symlink_to(tmp_path / "out.sh")
    (folder / "in").symlink_to(folder / "site" / "a.sh")
    (folder / "credentials").symlink_to(folder / ".git" / "config")
    (folder / "link").symlink_to(folder / "site")
    (folder / "loop").symlink_to(folder / "loop")
    assert refused_file(folder / "site/a.sh", folder) is None
    refused = {
        "site/text": "a script whose first line",
        "site": "a file that exists",
        "missing": "a file that exists",
        "x" * 300: "a file that can be read",
        "a\0b": "a file that can be read",
        ".git/config": "a file that is not hidden",
        "credentials": "a file, and no link",
        "in": "a file, and no link",
        "out": "a file, and no link",
        "link/a.sh": "a file, and no link",
        "loop": "a file that can be read",
        "../out.sh": "a path below",
        "site/../site/a.sh": "a path below",
        "/etc/passwd": "a path below",
    }
    for name, allowed in refused.items():
        said = refused_file(folder / name, folder)
        assert said is not None, name
        assert said[0].startswith(allowed), name
    assert refused_file(folder / "../out.sh") is None, "in the library any file"


def test_files_are_found_in_settings_that_are_wrong_elsewhere() -> None:
    raw = {"cluster": {"queues": [{"custom_actions": {"on_node_start": [{"script": "a"}, {"script": 1}, 7]}}]}, 1: []}
    assert list(files_of([raw, {"script": "s3://b/k"}, {"script": "c"}])) == ["a", "c"]
