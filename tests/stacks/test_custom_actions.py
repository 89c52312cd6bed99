"""Scripts of people: how nodes come to run them, what nodes may read for it, and what an edit changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stacks.deployments import Deployment, Raw, deploy, edited
from tests.stacks.small_app import flat

OBJECT = "s3://my-bucket/site/login.sh"


def with_scripts(site: Path) -> Any:
    def edit(raw: Raw) -> None:
        cluster = raw["cluster"]
        cluster["login_nodes"] = [{"name": "login"}]
        boot, update = [{"script": str(site), "args": ["a b", 'c"d']}], [{"script": "https://example.com/u.sh"}]
        cluster["head_node"]["custom_actions"] = {
            "on_node_start": boot,
            "on_node_configured": boot,
            "on_node_updated": update,
        }
        cluster["login_node_actions"] = {"on_node_configured": [{"script": OBJECT}]}
        cluster["queues"][0]["custom_actions"] = {"on_node_configured": boot}

    return edit


def made(folder: Path, text: str, out: Path) -> Deployment:
    folder.mkdir(exist_ok=True)
    (folder / "site.sh").write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
    return deploy(edited("trn1-16", with_scripts(folder / "site.sh")), out)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    return made(tmp_path_factory.mktemp("scripts"), "true", tmp_path_factory.mktemp("out"))


def parameters(deployment: Deployment) -> dict[str, Any]:
    """Return what launchers read, by the name of the parameter."""
    found = deployment.cluster.of_type("AWS::SSM::Parameter").values()
    return {each["Properties"]["Name"]: json.loads(flat(each["Properties"]["Value"])) for each in found}


def scripts(arguments: list[Any]) -> list[tuple[str, str, list[str]]]:
    """Return name, events and arguments of what run_actions.sh runs, whose own arguments these are."""
    decoded = [json.loads(flat(each)) for each in arguments[2:]]
    return [(each["name"], each["on"], each["args"]) for each in decoded]


def test_nodes_run_them_after_ours_each_at_its_event(deployment: Deployment) -> None:
    launched = parameters(deployment)
    start, created = (launched[f"/ultracluster/trn1-16/{name}"]["arguments"] for name in ("HeadNodeStart", "HeadNode"))
    site = ("site.sh", "created", ["a b", 'c"d'])

    assert (start[1], scripts(start)) == ("start", [("site.sh", "start", ["a b", 'c"d'])])
    assert [each[:2] for each in scripts(created)] == [("head_node.sh", "created updated"), site[:2]]
    head = deployment.configuration["HeadNode"]["CustomActions"]
    updated = head["OnNodeUpdated"]["Args"]
    assert (updated[1], [each[:2] for each in scripts(updated)]) == (
        "updated",
        [("head_node.sh", "created updated"), site[:2], ("u.sh", "updated")],
    )
    assert {flat(head[event]["Script"]) for event in ("OnNodeStart", "OnNodeConfigured")} == {
        flat(deployment.configuration["LoginNodes"]["Pools"][0]["CustomActions"]["OnNodeConfigured"]["Script"])
    }, "the launcher, which never changes"
    [queue] = deployment.queues
    assert [each[0] for each in scripts(queue["CustomActions"]["OnNodeConfigured"]["Args"])] == [
        "compute_node.sh",
        "site.sh",
    ]
    login = deployment.configuration["LoginNodes"]["Pools"][0]["CustomActions"]["OnNodeUpdated"]["Args"]
    assert [each[:2] for each in scripts(login)] == [("login.sh", "created")], "not ours, once more"


def test_nodes_may_read_what_they_run_and_nothing_more_of_a_bucket(deployment: Deployment) -> None:
    policies = deployment.cluster.of_type("AWS::IAM::ManagedPolicy")
    read = {
        name: {
            flat(resource)
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            if "s3:GetObject" in statement["Action"]
            for resource in (
                statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
            )
        }
        for name, policy in policies.items()
    }
    [queue] = deployment.queues
    configured = queue["CustomActions"]["OnNodeConfigured"]
    runner = flat(configured["Script"])
    site = json.loads(flat(configured["Args"][-1]))["script"]
    for kind in ("HeadNode", "ComputeNode", "LoginNodes"):
        [readable] = [each for name, each in read.items() if kind in name]
        assert runner.replace("s3://", "arn:aws:s3:::") in readable, kind
        assert (site.replace("s3://", "arn:aws:s3:::") in readable) == (kind != "LoginNodes"), kind
        assert ("arn:aws:s3:::my-bucket/site/login.sh" in readable) == (kind == "LoginNodes")
        assert not any(each.endswith("*") for each in readable)


def test_an_edit_changes_no_start_of_a_node_that_parallelcluster_keeps(deployment: Deployment, tmp_path: Path) -> None:
    """Assets are named by their contents: what ParallelCluster compares has no name of a script of the head node."""
    after = made(tmp_path / "scripts", "echo other", tmp_path / "out")
    for node in ("HeadNode", "LoginNodes"):
        before, now = (json.dumps(each.body) for each in (deployment.cluster, after.cluster))
        assert before != now
        kept = [each.configuration[node] for each in (deployment, after)]
        fixed = [json.dumps(each, default=str) for each in map(_without_update, kept)]
        assert fixed[0] == fixed[1], node


def _without_update(node: dict[str, Any]) -> Any:
    if isinstance(node, dict):
        return {key: _without_update(value) for key, value in node.items() if key != "OnNodeUpdated"}
    return [_without_update(each) for each in node] if isinstance(node, list) else node
