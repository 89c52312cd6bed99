"""Users keep their ids: what the head node would refuse of a change of people is refused before it is deployed."""

from __future__ import annotations

import io
import json
from typing import Any
from unittest.mock import MagicMock

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from nodes.team import users as nodes
from scripts.check.plan import people
from scripts.check.plan.comparison import Comparison
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


def follower(document: dict[str, Any]) -> nodes.System:
    """Return a node that has followed a document."""
    team = nodes.Team.of(document)
    accounts = {each.name: nodes.Account(each.uid, each.gid, is_locked=False) for each in team.people}
    return nodes.System(accounts, {name: nodes.Group(gid) for name, gid in team.gids.items()})


def is_possible(document: dict[str, Any]) -> bool:
    """Return whether settings can have it: each id once."""
    gids = nodes.Team.of(document).gids
    uids = [each["uid"] for each in document["users"]]
    return len({*uids}) == len(uids) and len({*gids.values()}) == len(gids)


@QUICK
@given(before=DOCUMENTS.filter(is_possible), after=DOCUMENTS.filter(is_possible))
def test_the_plan_refuses_what_nodes_refuse_and_nothing_else(before: dict[str, Any], after: dict[str, Any]) -> None:
    by_nodes = list(nodes.contradictions(nodes.Team.of(after), follower(before)))
    assert bool(list(people.contradictions(before, after))) is bool(by_nodes)


def found(after: TeamSpec | None, *, named: bool = True, error: str = "") -> list[Finding]:
    """Return the findings where a cluster follows a document that has alice, whose id is 2001."""
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
    results = list(people.of_people(Comparison(stacks, stacks), after, account))
    assert [call.kwargs for call in get.call_args_list] in ([], [{"Bucket": "assets", "Key": "before.json"}])
    return results


def test_another_uid_blocks_the_plan_and_says_what_files_would_have() -> None:
    [finding] = found(TeamSpec(users=[ALICE.model_copy(update={"uid": 2002})]))

    assert (finding.status, finding.subject) == (CheckStatus.FAIL, "users")
    assert finding.sentence.startswith(
        "alice has uid 2001 and gid 2001 on the nodes, and 2002 and 2002 in the settings"
    )
    assert "another name" in finding.hint
    assert json.loads(TeamSpec(users=[ALICE]).document())["users"][0]["uid"] == 2001


@pytest.mark.parametrize("named", [True, False])
def test_people_who_come_and_go_are_no_finding(named: bool) -> None:
    bob = UserSpec(name="bob", uid=2002)
    for users in ([ALICE, bob], [bob], []):
        assert found(TeamSpec(users=users), named=named) == []
    assert found(None, named=named) == []


@pytest.mark.parametrize("code", ["AccessDenied", "NoSuchKey"])
def test_a_document_that_cannot_be_read_is_named(code: str) -> None:
    [finding] = found(TeamSpec(users=[ALICE]), error=code)

    assert finding.status is CheckStatus.UNKNOWN
    assert "s3://assets/before.json could not be read" in finding.sentence
