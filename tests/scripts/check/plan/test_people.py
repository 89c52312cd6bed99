"""What a change does to people and their jobs; and users keep their ids, as the head node wants it."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import MagicMock

import pytest
from botocore.exceptions import ClientError
from hypothesis import assume, given
from hypothesis import strategies as st

from nodes.team import users as nodes
from scripts.account.remote.head_node import Answer
from scripts.check.plan import people
from scripts.check.plan.comparison import Comparison
from scripts.core.errors import HeadNodeError
from scripts.core.findings import CheckStatus, Finding
from tests.properties import QUICK
from toolchain.assembly import EXAMPLE_ACCOUNT, Stack
from toolchain.cluster import CLUSTER_TYPE
from ultracluster.domain.team import TeamSpec, UserSpec

ALICE = UserSpec(name="alice", uid=2001)
IDS = st.integers(2001, 2004)
NAMES = st.sampled_from(["alice", "bob", "carol"])
DOCUMENTS = st.builds(
    lambda people, groups: {
        "users": [{"name": name, "uid": uid, "gid": gid} for name, (uid, gid) in people.items()],
        "groups": groups,
    },
    st.dictionaries(NAMES, st.tuples(IDS, st.none() | IDS)),
    st.dictionaries(st.sampled_from(["nlp", "vision"]), IDS),
)


def follower(*documents: dict[str, Any]) -> nodes.System:
    """Return a node that has followed documents, one after the other; who left, and groups, stay on it."""
    accounts, groups = dict[str, nodes.Account](), dict[str, nodes.Group]()
    for document in documents:
        team = nodes.Team.of(document)
        if not list(nodes.contradictions(team, nodes.System(accounts, groups))):
            accounts |= {each.name: nodes.Account(each.uid, each.gid, is_locked=False) for each in team.people}
            groups |= {name: nodes.Group(gid) for name, gid in team.gids.items()}
    return nodes.System(accounts, groups)


def answer_of(node: nodes.System, script: str) -> Answer:
    """Return what a node answers to the questions for accounts and groups."""
    keys = set(shlex.split(script.partition(";")[0])[2:])
    accounts = [
        f"{name}:x:{each.uid}:{each.gid}::/home/{name}:/bin/bash"
        for name, each in node.accounts.items()
        if {name, str(each.uid)} & keys
    ]
    groups = [f"{name}:x:{each.gid}:" for name, each in node.groups.items() if {name, str(each.gid)} & keys]
    return Answer(0, "\n".join([*accounts, "--", *groups, ""]), "")


def is_possible(document: dict[str, Any]) -> bool:
    """Return whether settings can have it: each id once."""
    gids = nodes.Team.of(document).gids
    uids = [each["uid"] for each in document["users"]]
    return len({*uids}) == len(uids) and len({*gids.values()}) == len(gids)


POSSIBLE = DOCUMENTS.filter(is_possible)
JOBS = {"alice": [12, 1, ["17_1", "18"], ["16"]]}
"""What the head node says of the jobs of people."""


@QUICK
@given(earlier=POSSIBLE, before=POSSIBLE, after=POSSIBLE)
def test_the_plan_refuses_what_nodes_refuse_and_nothing_else(
    earlier: dict[str, Any], before: dict[str, Any], after: dict[str, Any]
) -> None:
    node = follower(earlier, before)
    assume(not list(nodes.contradictions(nodes.Team.of(before), node)))
    by_nodes = list(nodes.contradictions(nodes.Team.of(after), node))
    assert bool(sentences(before, after, node)) is bool(by_nodes)


def sentences(before: dict[str, Any], after: dict[str, Any], node: nodes.System) -> list[str]:
    with head_node_of(node):
        return [each.sentence for each in people.of_documents(before, after, MagicMock())]


@contextmanager
def head_node_of(node: nodes.System) -> Iterator[None]:
    head_node = MagicMock()

    def run(script: str, **_: int) -> Answer:
        return Answer(0, json.dumps({"of": JOBS}), "") if " of " in script else answer_of(node, script)

    head_node.return_value.run.side_effect = run
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(people, "HeadNode", head_node)
        yield


def found(
    after: TeamSpec | None, *, named: bool = True, error: str = ""
) -> tuple[list[tuple[str, str, str]], list[Finding]]:
    """Return changes and findings where a cluster follows a document that has alice, whose id is 2001."""
    arguments = ["s3://assets/bundle.zip", *(["team=s3://assets/before.json"] if named else [])]
    actions = {"OnNodeUpdated": {"Script": "s3://assets/run.sh", "Args": arguments}}
    properties = {"ClusterConfiguration": {"HeadNode": {"CustomActions": actions}}}
    template = {"Resources": {"Cluster": {"Type": CLUSTER_TYPE, "Properties": properties}}}
    stacks = {"S": Stack("S", "us-west-2", EXAMPLE_ACCOUNT, template, {})}
    account = MagicMock()
    get = account.client.return_value.get_object
    get.return_value = {"Body": io.BytesIO(TeamSpec(users=[ALICE]).document().encode())}
    if error:
        get.side_effect = ClientError({"Error": {"Code": error}}, "GetObject")
    node = follower(json.loads(TeamSpec(users=[ALICE]).document()))
    with head_node_of(node):
        deployment = MagicMock(account=account)
        deployment.name = "mine"
        changes, findings = people.of_people(Comparison(stacks, stacks), after, deployment)
    assert [call.kwargs for call in get.call_args_list] == [{"Bucket": "assets", "Key": "before.json"}] * named
    return [(each.what, each.name, each.effect) for each in changes], list(findings)


def test_another_uid_blocks_the_plan_and_says_what_files_would_have() -> None:
    changes, [finding] = found(TeamSpec(users=[ALICE.model_copy(update={"uid": 2002})]))

    assert changes == [("user", "alice", "changed")]
    assert (finding.status, finding.subject) == (CheckStatus.FAIL, "users")
    assert finding.sentence.startswith(
        "alice has uid 2001 and gid 2001 on the nodes, and 2002 and 2002 in the settings"
    )
    assert "another name" in finding.hint
    assert json.loads(TeamSpec(users=[ALICE]).document())["users"][0]["uid"] == 2001


BOB = UserSpec(name="bob", uid=2002)


@pytest.mark.parametrize("named", [True, False], ids=["there is alice", "nobody"])
def test_people_who_come_are_no_finding(named: bool) -> None:
    alice = [] if named else [("user", "alice", "added")]
    assert found(TeamSpec(users=[ALICE, BOB]), named=named) == ([*alice, ("user", "bob", "added")], [])
    if not named:
        assert found(None, named=named) == ([], [])


@pytest.mark.parametrize("after", [None, TeamSpec(users=[BOB])], ids=["the last one", "one of two"])
def test_of_who_goes_the_plan_says_which_jobs_end(after: TeamSpec | None) -> None:
    changes, [finding] = found(after)

    assert changes[0] == ("user", "alice", "removed")
    assert (finding.status, finding.subject) == (CheckStatus.WARN, "users")
    assert finding.sentence == (
        "alice is removed: the account is locked on all nodes, jobs that wait are cancelled (17_1, 18 and 10 more), "
        "jobs that run continue (16)"
    )
    assert finding.hint.endswith("./ultracluster exec mine -- scancel --user=alice")


NAMED = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 2))


@QUICK
@given(part=st.sampled_from(people.KINDS), before=NAMED, after=NAMED)
def test_all_that_differs_in_two_documents_is_named_and_nothing_else(
    part: tuple[str, str], before: dict[str, int], after: dict[str, int]
) -> None:
    key, what = part

    def document(entries: dict[str, int]) -> dict[str, Any]:
        listed = [{"name": name, "share": share, "same": "x"} for name, share in entries.items()]
        return {key: dict(entries) if key == "groups" else listed}

    told = {(each.what, each.name): each.effect for each in people.changes(document(before), document(after))}
    effects = {
        name: "added" if name not in before else "removed" if name not in after else "changed"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    }
    assert told == {(what, name): effect for name, effect in effects.items()}


def test_each_part_of_a_document_is_compared() -> None:
    parts = {key for key, value in TeamSpec().model_dump().items() if value in ([], {})}
    assert parts == {key for key, _ in people.KINDS}


@pytest.mark.parametrize("code", ["AccessDenied", "NoSuchKey"])
def test_a_document_that_cannot_be_read_is_named(code: str) -> None:
    changes, [finding] = found(TeamSpec(users=[ALICE]), error=code)

    assert changes == []
    assert finding.status is CheckStatus.UNKNOWN
    assert "s3://assets/before.json could not be read" in finding.sentence


def test_a_head_node_that_cannot_be_asked_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "HeadNode", MagicMock(side_effect=HeadNodeError("no head node")))
    after = json.loads(TeamSpec(users=[ALICE, UserSpec(name="bob", uid=2002)]).document())
    before = json.loads(TeamSpec(users=[ALICE]).document())

    [finding] = people.of_documents(before, after, MagicMock())

    assert finding.status is CheckStatus.UNKNOWN
    assert "the ids of bob are free on the nodes" in finding.sentence
    assert list(people.of_documents(before, before, MagicMock())) == [], "nobody is new"
