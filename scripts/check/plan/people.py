"""What nodes refuse of a change of users: they keep every id that they have seen, because files belong to ids."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from scripts.account.deployment import Account
from scripts.check.plan.comparison import Comparison
from scripts.core.aws_errors import code_of, is_denied
from scripts.core.findings import FAIL, UNKNOWN, Finding
from toolchain.cluster import CLUSTER_TYPE
from ultracluster.domain.team import TeamSpec

_DOCUMENT: Final = re.compile(r"team=s3://([^/\"]+)/([^\"]+)")
"""The argument of the head node's script that names the document about people."""
_SUBJECT: Final = "users"


def of_people(comparison: Comparison, team: TeamSpec | None, account: Account) -> Iterator[Finding]:
    """Yield why the head node would refuse the document about people, so that the update of the cluster would fail."""
    address = None if team is None else _deployed_document(comparison)
    if team is None or address is None:
        return
    bucket, key = address
    try:
        deployed = json.loads(account.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())
    except ClientError as error:
        if not is_denied(error) and code_of(error) != "NoSuchKey":
            raise
        sentence = f"whether users keep their ids is not known: s3://{bucket}/{key} could not be read"
        yield Finding(UNKNOWN, sentence, "grant s3:GetObject on it", subject=_SUBJECT)
        return
    for sentence in contradictions(deployed, team.model_dump(mode="json")):
        hint = "set it back, or take another name and other ids: who leaves keeps theirs, and nobody else gets them"
        yield Finding(FAIL, f"{sentence}; the head node refuses that, and the update fails", hint, subject=_SUBJECT)


def contradictions(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
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


def _ids(document: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
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
