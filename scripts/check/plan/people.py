"""What nodes refuse of a change of users: they keep every id that they have seen, because files belong to ids."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import HeadNode
from scripts.check.plan.comparison import Comparison
from scripts.core.aws_errors import code_of, is_denied
from scripts.core.errors import HeadNodeError
from scripts.core.findings import FAIL, UNKNOWN, Finding
from toolchain.cluster import CLUSTER_TYPE
from ultracluster.domain.team import TeamSpec

_DOCUMENT: Final = re.compile(r"team=s3://([^/\"]+)/([^\"]+)")
"""The argument of the head node's script that names the document about people."""
_SUBJECT: Final = "users"
_LISTED: Final = 5
_MARK: Final = "--"
Document = Mapping[str, Any]
"""People and groups, as nodes/team/users.py follows them."""


def of_people(comparison: Comparison, team: TeamSpec | None, deployment: Deployment) -> Iterator[Finding]:
    """Yield why the head node would refuse the document about people, so that the update of the cluster would fail.

    Who left is in no document any more, and keeps name and id on the nodes: where people or groups are new, the head
    node is asked. Needs s3:GetObject on the document, and ssm:SendCommand.
    """
    address = None if team is None else _deployed_document(comparison)
    if team is None or address is None:
        return
    bucket, key = address
    try:
        answer = deployment.account.client("s3").get_object(Bucket=bucket, Key=key)
        deployed = json.loads(answer["Body"].read())
    except ClientError as error:
        if not is_denied(error) and code_of(error) != "NoSuchKey":
            raise
        sentence = f"whether users keep their ids is not known: s3://{bucket}/{key} could not be read"
        hint = "grant s3:GetObject on it" if is_denied(error) else "the head node has it, and decides"
        yield Finding(UNKNOWN, sentence, hint, subject=_SUBJECT)
        return
    yield from of_documents(deployed, team.model_dump(mode="json"), deployment)


def of_documents(before: Document, after: Document, deployment: Deployment) -> Iterator[Finding]:
    """Yield why nodes that follow a document would refuse another one."""
    sentences, new = list(contradictions(before, after)), _new(before, after)
    if new and not sentences:
        keys = dict.fromkeys((*new, *(str(each) for ids in new.values() for each in ids)))
        try:
            sentences = list(contradictions(_with_those_who_left(before, on_head_node(deployment, keys)), after))
        except (HeadNodeError, ClientError) as error:
            if isinstance(error, ClientError) and not is_denied(error):
                raise
            names = ", ".join(sorted(new)[:_LISTED])
            sentence = f"whether the ids of {names} are free on the nodes, where who left keeps theirs: {error}"
            yield Finding(UNKNOWN, sentence, "ids that nobody ever had are free", subject=_SUBJECT)
    for sentence in sentences:
        hint = "set it back, or take another name and other ids: who leaves keeps theirs, and nobody else gets them"
        yield Finding(FAIL, f"{sentence}; the head node refuses that, and the update fails", hint, subject=_SUBJECT)


def on_head_node(deployment: Deployment, keys: Iterable[str]) -> Document:
    """Return which accounts and groups the head node has under some names and ids, as a document has them.

    Raises:
        HeadNodeError: It could not be asked.
        botocore.exceptions.ClientError: AWS refuses to ask it.
    """
    words = shlex.join(keys)
    answer = HeadNode(deployment).run(f"getent passwd {words}; echo {_MARK}; getent group {words}; true")
    accounts, mark, groups = answer.output.partition(f"{_MARK}\n")
    if not mark:
        raise HeadNodeError(f"The head node did not answer: {answer.errors or answer.output}")
    return {
        "users": [
            {"name": name, "uid": int(uid), "gid": int(gid)}
            for name, _, uid, gid, *_ in (line.split(":") for line in accounts.splitlines())
        ],
        "groups": {name: int(gid) for name, _, gid, *_ in (line.split(":") for line in groups.splitlines())},
    }


def _new(before: Document, after: Document) -> dict[str, tuple[int, ...]]:
    """Return the ids of people and groups that a document has and another one has not, by name."""
    known = {**_ids(before), **before["groups"]}
    ids = {**_ids(after), **{name: (gid,) for name, gid in after["groups"].items()}}
    return {name: each for name, each in ids.items() if name not in known}


def _with_those_who_left(before: Document, found: Document) -> Document:
    """Return a document with what nodes have beside it; the group of a person is no group of its own."""
    people = {each["name"]: each for each in (*found["users"], *before["users"])}
    groups = {name: gid for name, gid in found["groups"].items() if name not in people}
    return {"users": [*people.values()], "groups": {**groups, **before["groups"]}}


def contradictions(before: Document, after: Document) -> Iterator[str]:
    """Yield what of a document about people cannot be on nodes that follow another one (nodes/team/users.py)."""
    people, wanted = _ids(before), _ids(after)
    names = {uid: name for name, (uid, _) in people.items()}
    for name, (uid, gid) in wanted.items():
        if name in people and people[name] != (uid, gid):
            old_uid, old_gid = people[name]
            yield f"{name} has uid {old_uid} and gid {old_gid} on the nodes, and {uid} and {gid} in the settings"
        elif name not in people and uid in names:
            yield f"uid {uid} of {name} is that of {names[uid]} on the nodes"
    groups = {**before["groups"], **{name: gid for name, (_, gid) in people.items()}}
    owners = {gid: name for name, gid in groups.items()}
    for name, gid in {**after["groups"], **{name: gid for name, (_, gid) in wanted.items()}}.items():
        if name in groups and groups[name] != gid and name not in people:
            yield f"group {name} has gid {groups[name]} on the nodes, and {gid} in the settings"
        elif name not in groups and gid in owners:
            yield f"gid {gid} of group {name} is that of {owners[gid]} on the nodes"


def _ids(document: Document) -> dict[str, tuple[int, int]]:
    """Return uid and gid of people by name."""
    return {
        each["name"]: (each["uid"], each["uid"] if each.get("gid") is None else each["gid"])
        for each in document["users"]
    }


def _deployed_document(comparison: Comparison) -> tuple[str, str] | None:
    """Return bucket and key of the document that the deployed cluster follows; None: there is none."""
    for name, stack in comparison.old.items():
        for resource in stack.resources.values():
            if resource["Type"] == CLUSTER_TYPE:
                found = _DOCUMENT.search(json.dumps(comparison.before(name, resource["Properties"])))
                return (found[1], found[2]) if found else None
    return None
