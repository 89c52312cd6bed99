"""Makes Slurm's accounting what the settings say: accounts, QoS, users and limits. Argument: the team's document.

Runs on the head node when it is created and at each update of the cluster; a second run changes nothing. It removes
only what it has made itself: that has a mark in Slurm's own database, which outlives head nodes. What people have made
with sacctmgr stays, and is named.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MARK = "ultracluster"
"""Organization of accounts, start of the description of QoS, and comment of associations that this program has made."""
_NOTED = f"{MARK}: made by hand"
"""The same of what people had made before it was in the settings: it stays when it leaves them. Of associations only
those of administrators have it, who are none any more then."""
_CLOSED = f"{MARK}: to be removed"
"""Comment of an association that has left the settings, and has jobs."""
_NEUTRAL = {
    "parent": "root",
    "fairshare": "1",
    "grptres=node": "-1",
    "grptresmins=node": "-1",
    "maxwall": "-1",
    "qos": "normal",
}
"""What an account has that has left the settings, and stays."""
DEFAULT_USERS = ("ubuntu", "ec2-user")
"""Of ParallelCluster's images. It makes the one of the image an administrator of Slurm: whoever may become that user
could lift all limits."""
_OWN_ACCOUNTS, _OWN_QOS, _OWN_USERS = {"root", "pcdefault"}, {"normal"}, {"root", "slurm", *DEFAULT_USERS}
"""What Slurm and ParallelCluster make."""
_TIME_LIMIT = 60

Values = dict[str, str]
"""Options of sacctmgr by name; of limits "-1" for none."""


@dataclass(frozen=True)
class State:
    """What Slurm knows, of one cluster.

    Attributes:
        qos: Options of QoS by name.
        accounts: Options of accounts by name.
        members: Comments of users' associations, by user and account.
        users: Default account and level of administration by user.
        organizations: Of all accounts, of other clusters, too.
    """

    qos: dict[str, Values] = field(default_factory=dict)
    accounts: dict[str, Values] = field(default_factory=dict)
    members: dict[tuple[str, str], str] = field(default_factory=dict)
    users: dict[str, tuple[str, str]] = field(default_factory=dict)
    organizations: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """A call of sacctmgr.

    Attributes:
        says: What it does, for people.
        command: Its arguments.
        otherwise: What to do if Slurm refuses.
        removes: Whether it removes something: Slurm may refuse that for what people have made since, and the next
            update of the cluster tries again.
    """

    says: str
    command: tuple[str, ...]
    otherwise: Step | None = None
    removes: bool = False


def steps(document: dict[str, Any], state: State, cluster: str, default_user: str | None) -> Iterator[Step]:
    """Yield what turns a state into what the document says."""
    accounts = _parents_first({each["name"]: each for each in document["accounts"]})
    qos = {each["name"]: each for each in document["qos"]}
    yield from _of_qos(qos, state)
    yield from _of_accounts(accounts, qos, state, cluster)
    members = {(user["name"], user["account"]) for user in document["users"] if user["account"]}
    if not document["users"] and default_user:
        members = {(default_user, account) for account in accounts}
    for account in sorted({account for _, account in members} - accounts.keys() - state.accounts.keys()):
        yield Step(f"account {account}: added", ("add", "account", f"name={account}", f"cluster={cluster}"))
    yield from _of_users(document["users"], members, state, cluster)
    yield from _removals(set(accounts), set(qos), members, state, cluster)


def _of_qos(wanted: dict[str, dict[str, Any]], state: State) -> Iterator[Step]:
    preempting: list[Step] = []
    for name, given in wanted.items():
        has = state.qos.get(name, {"description": f"{MARK}: {name}", "preempt": ""})
        mark = has["description"] if has["description"].startswith(MARK) else _NOTED
        values = {"description": mark, "priority": str(given["priority"]), **_limits(given)}
        preempt = {"preempt": ",".join(sorted(given["preempts"]))}
        if name in state.qos:
            yield from _modified("qos", name, values, has, ("modify", "qos", name, "set"))
        else:
            yield Step(f"qos {name}: added", ("add", "qos", f"name={name}", *_options(values)))
        preempting += _modified("qos", name, preempt, has, ("modify", "qos", name, "set"))
    yield from preempting  # when all of them exist


def _of_accounts(
    wanted: dict[str, dict[str, Any]], qos: dict[str, dict[str, Any]], state: State, cluster: str
) -> Iterator[Step]:
    for name, given in wanted.items():
        parent = given["parent"] or "root"
        lineage = {name, *_ancestors(name, wanted)}
        may_use = {each for each, of_qos in qos.items() if not of_qos["accounts"] or lineage & {*of_qos["accounts"]}}
        values = {
            "parent": parent,
            "fairshare": str(given["share"] or 1),
            **_limits(given),
            "qos": ",".join(sorted({"normal", *may_use})),
        }
        has = state.accounts.get(name)
        if has is None:
            marks = () if name in state.organizations else (f"description={name}", f"organization={MARK}")
            yield Step(
                f"account {name}: added",
                ("add", "account", f"name={name}", f"cluster={cluster}", *marks, *_options(values)),
            )
        else:
            of_cluster = ("modify", "account", f"name={name}", f"cluster={cluster}", "set")
            yield from _modified("account", name, values, has, of_cluster)
        if not state.organizations.get(name, MARK).startswith(MARK):
            noted = ("modify", "account", f"name={name}", "set", f"organization={_NOTED}")
            yield Step(f"account {name}: was here before, and stays when it leaves the settings", noted)


def _of_users(users: list[dict[str, Any]], members: set[tuple[str, str]], state: State, cluster: str) -> Iterator[Step]:
    missing: dict[str, list[str]] = defaultdict(list)
    for user, account in sorted(members - state.members.keys()):
        missing[account].append(user)
    for account, names in missing.items():
        place = (f"account={account}", f"cluster={cluster}")
        added = ("add", "user", f"name={','.join(names)}", *place, f"comment={MARK}")
        yield Step(f"account {account}: users added: {', '.join(names)}", added)
    for user, account in sorted(members & state.members.keys()):
        if state.members[user, account] == _CLOSED:
            reopened = ("maxsubmitjobs=-1", f"comment={MARK}")
            yield Step(f"user {user}: account {account} again", (*_of_member(user, account, cluster), *reopened))
    for given in users:
        name, account = given["name"], given["account"]
        default = state.users.get(name, ("",))[0]
        if account and default not in ("", account):
            yield _default_account(name, account, default, cluster)
        if account and given["admin"] and not state.members.get((name, account), MARK).startswith(MARK):
            noted = (*_of_member(name, account, cluster), f"comment={_NOTED}")
            yield Step(f"user {name}: account {account} was made by hand, and stays that", noted)
    yield from _levels(users, state)


def _levels(users: list[dict[str, Any]], state: State) -> Iterator[Step]:
    """Yield levels of administration: who is listed has that of the settings, who was ever listed has none."""
    listed = {each["name"]: each["admin"] for each in users if each["account"]}
    ours = {name for (name, _), comment in state.members.items() if comment.startswith(MARK)} - {*DEFAULT_USERS}
    for name in sorted({*listed, *ours, *(DEFAULT_USERS if users else ())}):
        level = state.users.get(name, ("", "None"))[1]
        wanted = "Administrator" if listed.get(name) else "None"
        if level != wanted:
            yield _level(name, wanted, level)


def _removals(
    accounts: set[str], qos: set[str], members: set[tuple[str, str]], state: State, cluster: str
) -> Iterator[Step]:
    """Yield the removal of what this program made: users, then accounts, the innermost first, then QoS."""
    leaving = _leaving(members, state)
    # Slurm refuses to remove somebody from the default account before the others.
    for user, account in sorted(
        leaving, key=lambda each: (each[0], each[1] == state.users.get(each[0], ("",))[0], each[1])
    ):
        others = sorted(other for name, other in (state.members.keys() | members) - leaving if name == user)
        default = state.users.get(user, ("",))[0]
        if others and account == default and not members & {(user, other) for other in others}:
            yield _default_account(user, others[0], default, cluster)
        closed = (*_of_member(user, account, cluster), "maxsubmitjobs=0", f"comment={_CLOSED}")
        says = f"user {user}: has jobs in account {account}, is given no more, and is removed at a later update"
        otherwise = None if state.members[user, account] == _CLOSED else Step(says, closed)
        removed = ("delete", "user", f"name={user}", f"account={account}", f"cluster={cluster}")
        yield Step(f"user {user}: removed from account {account}", removed, otherwise, removes=True)
    left = _left(accounts, members, state)
    for name in (each for each, stays in left.items() if stays):
        of_cluster = ("modify", "account", f"name={name}", f"cluster={cluster}", "set")
        yield from _modified("account", name, _NEUTRAL, state.accounts[name], of_cluster)
    for name in (each for each, stays in reversed(left.items()) if not stays):
        command = ("delete", "account", f"name={name}", f"cluster={cluster}")
        yield Step(f"account {name}: removed", command, removes=True)
    for name, values in state.qos.items():
        if name not in qos and values["description"].startswith(MARK) and values["description"] != _NOTED:
            yield Step(f"qos {name}: removed", ("delete", "qos", f"name={name}"), removes=True)


def _leaving(members: set[tuple[str, str]], state: State) -> set[tuple[str, str]]:
    """Return the users' associations that this program made, and that have left the settings."""
    made = {each for each, comment in state.members.items() if comment.startswith(MARK) and comment != _NOTED}
    return made - members


def _left(accounts: set[str], members: set[tuple[str, str]], state: State) -> dict[str, bool]:
    """Return the accounts that this program made or changed and that have left the settings, parents first.

    With whether they stay: because others made them, or something in them.
    """
    by_others = [values["parent"] for values in state.accounts.values() if not values["organization"].startswith(MARK)]
    used = {*by_others, *_OWN_ACCOUNTS, *(account for _, account in state.members.keys() - _leaving(members, state))}
    return {
        name: name in used or values["organization"] == _NOTED
        for name, values in _parents_first(state.accounts).items()
        if values["organization"].startswith(MARK) and name not in accounts
    }


def by_hand(document: dict[str, Any], state: State) -> list[str]:
    """Return what neither the settings nor Slurm and ParallelCluster have made, for people."""
    members = {(user["name"], user["account"]) for user in document["users"]}
    known = {
        "qos": {each["name"] for each in document["qos"]} | _OWN_QOS,
        "account": {each["name"] for each in document["accounts"]} | _OWN_ACCOUNTS,
    }
    marks = [("qos", name, has["description"]) for name, has in state.qos.items()]
    marks += [("account", name, has["organization"]) for name, has in state.accounts.items()]
    own = [f"{kind} {name}" for kind, name, mark in marks if name not in known[kind] and not mark.startswith(MARK)]
    left = [f"account {name}" for name, stays in _left(known["account"], members, state).items() if stays]
    left += [f"qos {name}" for name in state.qos.keys() - known["qos"] if state.qos[name]["description"] == _NOTED]
    own += [f"{each}, which has left the settings" for each in left]
    return own + [
        f"user {user} of account {account}"
        for (user, account), mark in state.members.items()
        if user not in _OWN_USERS and (user, account) not in members and (mark == _NOTED or not mark.startswith(MARK))
    ]


def _parents_first(accounts: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return dict(sorted(accounts.items(), key=lambda each: len(_ancestors(each[0], accounts))))


def _ancestors(name: str, accounts: dict[str, Any]) -> list[str]:
    """Return the accounts above one."""
    found: list[str] = []
    parent = accounts.get(name, {}).get("parent")
    while parent in accounts and parent not in found:
        found.append(parent)
        parent = accounts[parent].get("parent")
    return found


def _limits(given: dict[str, Any]) -> Values:
    hours, wall = given["node_hours_per_month"], given["max_hours"]
    return {
        "grptres=node": str(given["max_nodes"] or -1),
        "grptresmins=node": str(hours * 60 if hours else -1),
        "maxwall": str(wall * 60 if wall else -1),
    }


def _options(values: Values) -> list[str]:
    """Return the options of something new; of none, what Slurm has by itself."""
    return [f"{name}={value}" for name, value in values.items() if value not in ("-1", "")]


def _modified(kind: str, name: str, wanted: Values, has: Values, command: tuple[str, ...]) -> Iterator[Step]:
    changed = {option: value for option, value in wanted.items() if has.get(option) != value}
    if changed:
        texts = [f"{option} {_text(value)} (was {_text(has.get(option, ''))})" for option, value in changed.items()]
        options = [f"{option}={value}" for option, value in changed.items()]
        yield Step(f"{kind} {name}: {', '.join(texts)}", (*command, *options))


def _text(value: str) -> str:
    return "none" if value in ("-1", "") else value


def _of_member(user: str, account: str, cluster: str) -> tuple[str, ...]:
    return ("modify", "user", f"name={user}", f"account={account}", f"cluster={cluster}", "set")


def _default_account(user: str, wanted: str, had: str, cluster: str) -> Step:
    command = ("modify", "user", f"name={user}", f"cluster={cluster}", "set", f"defaultaccount={wanted}")
    return Step(f"user {user}: default account {wanted} (was {had})", command)


def _level(user: str, wanted: str, had: str) -> Step:
    command = ("modify", "user", f"name={user}", "set", f"adminlevel={wanted}")
    return Step(f"user {user}: admin level {wanted} (was {had})", command)


# --- Slurm ---


def run(*command: str) -> str:
    """Run a command of Slurm and return what it prints.

    Raises:
        subprocess.SubprocessError: It fails.
    """
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIME_LIMIT, check=False,
        env={**os.environ, "LC_ALL": "C", "PATH": f"{os.environ.get('PATH', '')}:/opt/slurm/bin"},
    )  # fmt: skip
    if done.returncode:
        raise subprocess.SubprocessError(f"{shlex.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def read(cluster: str) -> State:
    """Return what Slurm knows of a cluster."""
    limits = "grptres,grptresmins,maxwall"
    qos = {
        name: {"description": description, "priority": priority, "preempt": _sorted(preempt), **_read_limits(*values)}
        for name, description, priority, preempt, *values in _list("qos", f"name,description,priority,preempt,{limits}")
    }
    organizations = dict(_list("account", "account,organization"))
    accounts, members = {}, {}
    columns = f"account,user,comment,parentname,share,qos,{limits}"
    for account, user, comment, parent, share, may_use, *values in _list("assoc", columns, f"cluster={cluster}"):
        if user:
            members[user, account] = comment
        elif parent:
            accounts[account] = {
                "organization": organizations.get(account, ""),
                "parent": parent,
                "fairshare": share,
                "qos": _sorted(may_use),
                **_read_limits(*values),
            }
    listed = _list("user", "user,defaultaccount,admin", f"cluster={cluster}")
    users = {name: (default, level) for name, default, level in listed}
    return State(qos, accounts, members, users, organizations)


def _list(kind: str, columns: str, *conditions: str) -> list[list[str]]:
    where = ("where", *conditions) if conditions else ()
    printed = run("sacctmgr", "--noheader", "--parsable2", "list", kind, *where, f"format={columns}")
    return [line.split("|") for line in printed.splitlines()]


def _read_limits(nodes: str, node_minutes: str, wall: str) -> Values:
    return {
        "grptres=node": _of_nodes(nodes),
        "grptresmins=node": _of_nodes(node_minutes),
        "maxwall": _minutes(wall),
    }


def _of_nodes(text: str) -> str:
    limit = re.search(r"(?:^|,)node=(\d+)", text)
    return limit[1] if limit else "-1"


def _minutes(text: str) -> str:
    """Return the minutes of [DAYS-]HOURS:MINUTES:SECONDS."""
    if not text:
        return "-1"
    days, _, time = text.rpartition("-")
    hours, minutes, _ = time.split(":")
    return str((int(days or 0) * 24 + int(hours)) * 60 + int(minutes))


def _sorted(names: str) -> str:
    return ",".join(sorted(filter(None, names.split(","))))


def apply(all_steps: Iterator[Step], say: Callable[[str], object] = print) -> tuple[int, int]:
    """Run steps, and return how many changed something, and how many failed."""
    changed = failed = 0
    for step in all_steps:
        try:
            done = _done(step)
        except subprocess.SubprocessError as refusal:
            say(f"accounting: {'kept for now: ' if step.removes else ''}{refusal}")
            failed += not step.removes
        else:
            say(f"accounting: {done.says}")
            changed += 1
    return changed, failed


def _done(step: Step) -> Step:
    """Run a step, or what to do otherwise, and return which."""
    try:
        run("sacctmgr", "--immediate", "--quiet", *step.command)
    except subprocess.SubprocessError:
        if step.otherwise is None:
            raise
        return _done(step.otherwise)
    return step


def main(path: str) -> int:
    """Apply a document, say what changed, and return an exit code.

    What was made by hand is written beside the document, for `./ultracluster status`.
    """
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    cluster = re.search(r"^ClusterName\s*=\s*(\S+)$", run("scontrol", "show", "config"), re.MULTILINE)
    if cluster is None:
        raise subprocess.SubprocessError("scontrol show config tells no ClusterName")
    state = read(cluster[1])
    known = {each.pw_name for each in pwd.getpwall()}
    default_user = next((name for name in DEFAULT_USERS if name in known), None)
    changed, failed = apply(steps(document, state, cluster[1], default_user))
    kept = by_hand(document, state)
    for each in kept:
        print(f"accounting: made by hand, kept: {each}")
    Path(path).with_suffix(".by-hand").write_text("".join(f"{each}\n" for each in kept), encoding="utf-8")
    print(f"accounting: {changed or 'no'} change{'' if changed == 1 else 's'}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except (OSError, subprocess.SubprocessError) as failure:
        sys.exit(f"accounting: {failure}")
