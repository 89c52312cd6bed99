"""What a change of users does, and to which of them, and what nodes refuse of it.

They keep every id that they have seen, because files belong to ids.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from botocore.exceptions import ClientError

from scripts.account.deployment import Deployment
from scripts.account.remote import program
from scripts.account.remote.head_node import HeadNode
from scripts.account.remote.values import Line, User
from scripts.check.plan.comparison import Comparison
from scripts.check.plan.model import PeopleChange
from scripts.core.aws_errors import code_of, is_denied
from scripts.core.errors import HeadNodeError, told
from scripts.core.findings import FAIL, UNKNOWN, WARN, Finding
from toolchain.cluster import CLUSTER_TYPE
from ultracluster.domain.team import TeamSpec

_DOCUMENT: Final = re.compile(r"team=s3://([^/\"]+)/([^\"]+)")
"""The argument of the head node's script that names the document about people."""
_SUBJECT: Final = "users"
_LISTED: Final = 5
_MARK: Final = "--"
KINDS: Final[tuple[tuple[str, Literal["user", "group", "account", "QoS"]], ...]] = (
    ("users", "user"),
    ("groups", "group"),
    ("accounts", "account"),
    ("qos", "QoS"),
)
"""Parts of a document, and what is in them."""
_NOBODY: Final = TeamSpec()
Document = Mapping[str, Any]
"""People and groups, as nodes/team/users.py follows them."""


class _JobsOf(NamedTuple):
    """How many jobs of a person wait and have nodes, and the first of them."""

    waiting: int
    running: int
    first_waiting: list[Line]
    first_running: list[Line]


def of_people(
    comparison: Comparison, team: TeamSpec | None, deployment: Deployment
) -> tuple[tuple[PeopleChange, ...], tuple[Finding, ...]]:
    """Return what changes for people, and what needs attention before that.

    That is who is removed, with their jobs, and why the head node would refuse the document about people, so that the
    update of the cluster would fail. Who left is in no document any more, and keeps name and id on the nodes: where
    people or groups are new, the head node is asked. Needs s3:GetObject on the document, and ssm:SendCommand.
    """
    properties = _deployed_properties(comparison)
    if properties is None:
        return (), ()
    after = (team or _NOBODY).model_dump(mode="json")
    address = _DOCUMENT.search(properties)
    if address is None:
        return tuple(changes(_NOBODY.model_dump(mode="json"), after)), ()
    bucket, key = address.groups()
    try:
        answer = deployment.account.client("s3").get_object(Bucket=bucket, Key=key)
        before = json.loads(answer["Body"].read())
    except ClientError as error:
        if not is_denied(error) and code_of(error) != "NoSuchKey":
            raise
        sentence = f"which users change, and whether they keep their ids: s3://{bucket}/{key} could not be read"
        hint = "grant s3:GetObject on it" if is_denied(error) else "the head node has it, and decides"
        return (), (Finding(UNKNOWN, sentence, hint, subject=_SUBJECT),)
    found = tuple(changes(before, after))
    removed = [each.name for each in found if (each.what, each.effect) == ("user", "removed")]
    return found, (*of_removed(removed, deployment), *of_documents(before, after, deployment))


def changes(before: Document, after: Document) -> Iterator[PeopleChange]:
    """Yield what is different in two documents about people."""
    for part, what in KINDS:
        old, new = _entries(before.get(part, ())), _entries(after.get(part, ()))
        for name in {**old, **new}:
            was, becomes = old.get(name), new.get(name)
            if was is None or becomes is None:
                yield PeopleChange(what, name, "added" if was is None else "removed")
            elif keys := tuple(key for key in {**was, **becomes} if was.get(key) != becomes.get(key)):
                yield PeopleChange(what, name, "changed", keys)


def _entries(part: Any) -> dict[str, Mapping[str, Any]]:
    if isinstance(part, Mapping):  # groups
        return {name: {"gid": gid} for name, gid in part.items()}
    return {each["name"]: each for each in part}


def of_removed(users: Sequence[str], deployment: Deployment) -> Iterator[Finding]:
    """Yield what removing people does to their accounts and their jobs, for which the head node is asked."""
    if not users:
        return
    jobs, unknown = dict[str, _JobsOf](), ""
    try:
        words = program.words("jobs", "of", *users)
        jobs = program.ask(HeadNode(deployment), words, "of", dict[User, _JobsOf])
    except (HeadNodeError, ClientError) as error:
        if isinstance(error, ClientError) and not is_denied(error):
            raise
        unknown = f"; which jobs these are is not known: {told(error)}"
    for user in users:
        own = jobs.get(user, _JobsOf(0, 0, [], []))
        waiting = f"jobs that wait are cancelled{_listed(own.waiting, own.first_waiting)}"
        running = f"jobs that run continue{_listed(own.running, own.first_running)}"
        sentence = f"{user} is removed: the account is locked on all nodes, {waiting}, {running}{unknown}"
        hint = (
            f"to end those, too: ./ultracluster exec {deployment.name} -- scancel --user={user}" if own.running else ""
        )
        yield Finding(WARN, sentence, hint, subject=_SUBJECT)


def _listed(count: int, first: Sequence[str]) -> str:
    more = f" and {count - len(first):,} more" if count > len(first) else ""
    return f" ({', '.join(first)}{more})" if count else ""


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


def _deployed_properties(comparison: Comparison) -> str | None:
    """Return the properties of the deployed cluster, as text; None: there is none."""
    for name, stack in comparison.old.items():
        for resource in stack.resources.values():
            if resource["Type"] == CLUSTER_TYPE:
                return json.dumps(comparison.before(name, resource["Properties"]))
    return None
