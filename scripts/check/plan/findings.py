"""What blocks a deployment, and what needs attention before it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from scripts.account.resource_kinds import kind_of
from scripts.account.stack_state import StackState
from scripts.check.plan.cluster import NEED_A_STOPPED_FLEET, STOPPED, fleet_command
from scripts.check.plan.comparison import READ_LATE, awaited
from scripts.check.plan.model import REPLACING, ClusterChange, ClusterPlan, Effect, Kind, ResourceChange, StackPlan
from scripts.core.findings import CheckStatus, Finding

_LONGEST_VALUE: Final = 60
_MORE: Final = "..."
_BACKUPS: Final = "AutomaticBackupRetentionDays"
"""0, the default, turns backups off.

https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystemLustreConfiguration.html
"""
_LINK: Final = "AWS::FSx::DataRepositoryAssociation"
_FILE_SYSTEM: Final = "AWS::FSx::FileSystem"
_RETAINED: Final = ("Retain", "RetainExceptOnCreate")


def of_stack(stack: StackPlan, deployment_name: str, accepted: bool) -> Iterator[Finding]:
    """Yield the findings on the resources of a stack, whose replacement and removal may have been accepted."""
    for change in stack.changes:
        subject = f"{stack.name}/{change.logical_id}"
        kind = kind_of(change.type)
        if kind.loss and change.effect in (*REPLACING, Effect.REMOVED):
            blocking = kind.is_guarded and not accepted
            yield Finding(
                CheckStatus.FAIL if blocking else CheckStatus.WARN,
                f"{named(change)} {_fate(change)}",
                _hint(change, deployment_name) if blocking else "",
                subject=subject,
            )
        for each in change.properties if kind.is_guarded else ():
            if each.path == "DeletionPolicy" and each.before in _RETAINED and each.after not in _RETAINED:
                sentence = f"{named(change)} is no longer retained: from now on it is deleted with its stack"
                yield Finding(CheckStatus.WARN, sentence, subject=subject)
            if each.path.endswith(_BACKUPS) and each.before and not each.after:
                sentence = f"{named(change)} is no longer backed up: {_BACKUPS} from {each.before} to 0"
                yield Finding(CheckStatus.WARN, sentence, subject=subject)
        if _is_tagged_while_linked(change, stack):
            sentence = (
                f"{named(change)} has links to S3 and gets other tags: in 2023 CloudFormation also told FSx to take no "
                "backups of it, which FSx refuses where there are links, and rolled the stack back "
                "(aws-cloudformation/cloudformation-coverage-roadmap 1687, closed since)"
            )
            hint = "if it still does: deploy without storage.data_repositories, then with the tags, then with both"
            yield Finding(CheckStatus.WARN, sentence, hint, subject=subject)


def _is_tagged_while_linked(change: ResourceChange, stack: StackPlan) -> bool:
    """Tell whether tags of a file system change that has links to S3, which get the tags of their stack, too."""
    linked = any(each.type == _LINK and each.effect is not Effect.ADDED for each in stack.changes)
    tags = any(each.path.partition(".")[0] == "Tags" for each in change.properties)
    return linked and tags and change.type == _FILE_SYSTEM and change.effect is Effect.CHANGED


def of_export(stack_name: str, output: str, users: Sequence[str]) -> Finding:
    """Return the finding on an export that would change or go while other stacks import it."""
    return Finding(
        CheckStatus.FAIL,
        f"CloudFormation refuses to change what {', '.join(users)} imports from here, and rolls the deployment back",
        "take the change back, or destroy those stacks first: ./ultracluster destroy",
        subject=f"{stack_name}/{output}",
    )


def of_passed_over(name: str, changes: tuple[ResourceChange, ...]) -> Iterator[Finding]:
    """Yield the findings on a stack whose template stays while what it refers to is replaced."""
    for change in changes:
        producers = ", ".join(awaited(change))
        causes = ", ".join(dict.fromkeys(each.path for each in change.properties))
        sentence = (
            f"{named(change)} keeps its old {causes}, although {producers} makes new ones: the template of its stack "
            "does not change, so the stack is not updated"
        )
        yield Finding(CheckStatus.WARN, sentence, subject=f"{name}/{change.logical_id}")


def of_cluster(cluster: ClusterPlan, deployment_name: str) -> Iterator[Finding]:
    """Yield the findings on the changes of a cluster's configuration."""
    subject = f"cluster {cluster.name}"
    for change in cluster.changes:
        if change.passes_now:
            continue
        known = change.passes_now is not None
        before, after = shown_difference(change.before, change.after)
        yield Finding(
            CheckStatus.FAIL if known else CheckStatus.WARN,
            f"{change.path} from {before} to {after} {_need(change, cluster.fleet_status)}",
            "; or ".join(change.ways),
            change.command if known else fleet_command(deployment_name, "status"),
            subject,
            change.path,
        )
        yield from (Finding(CheckStatus.WARN, need, subject=subject, path=change.path) for need in change.needs)
    ending = ", ".join(dict.fromkeys(each.path for each in cluster.changes if each.kind is Kind.TERMINATES))
    if ending and cluster.fleet_status != STOPPED:
        sentence = f"nodes are terminated, and the jobs on them end at once, because of {ending}"
        yield Finding(CheckStatus.WARN, sentence, "deploy when no job runs on them", subject=subject)
    if cluster.fleet_status == STOPPED and any(each.kind in NEED_A_STOPPED_FLEET for each in cluster.changes):
        sentence = "the fleet is STOPPED, as this deployment requires, and stays STOPPED"
        hint = "start it again after the deployment"
        yield Finding(CheckStatus.WARN, sentence, hint, fleet_command(deployment_name, "start"), subject)


def of_roll_back(cluster: ClusterPlan, stack: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Yield that an update fails which changes nothing of the configuration, after the cluster's own stack rolled back.

    Its provider then only looks at that stack, and takes "rolled back" for a failure (`scripts.account.way_out`).
    """
    if stack and StackState.of(stack).is_as_before and cluster.is_asked and not cluster.changes:
        sentence = f"ParallelCluster's stack is {StackState.of(stack)}: until it has made an update, one that changes "
        sentence += "nothing of the cluster's configuration fails"
        hint = "deploy this together with a change of the configuration, for instance of a max_count"
        yield Finding(CheckStatus.FAIL, sentence, hint, subject=f"cluster {cluster.name}")


def shown_difference(before: object, after: object, longest: int = _LONGEST_VALUE) -> tuple[str, str]:
    """Return two different values for people: of lists and mappings only what differs, and cut where they are long.

    The texts differ: where only the ends of long ones do, they are cut at the start.
    """
    texts = _texts(before, after)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
    is_late = max(map(len, texts)) > longest and same > longest * 2 // 3
    start = same - longest // 2 if is_late else 0
    first, second = (_cut(f"{_MORE if is_late else ''}{each[start:]}", longest) for each in texts)
    return first, second


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - len(_MORE)]}{_MORE}"


def _texts(before: object, after: object) -> tuple[str, str]:
    lost, gained = _different(before, after)
    texts = _shown(lost), _shown(gained)
    return texts if texts[0] != texts[1] else (json.dumps(before, sort_keys=True), json.dumps(after, sort_keys=True))


def _different(before: Any, after: Any) -> tuple[Any, Any]:
    """Return two values without what they have in common."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        pairs = {key: _different(before.get(key), after.get(key)) for key in keys}
        return {key: pairs[key][0] for key in keys if key in before}, {
            key: pairs[key][1] for key in keys if key in after
        }
    if not (isinstance(before, list) and isinstance(after, list)):
        return before, after
    lost, gained = _without(before, after), _without(after, before)
    if not lost and not gained:  # only their order differs
        return before, after
    common = [_MORE] if len(lost) < len(before) else []
    if len(lost) == len(gained) == 1:
        lost[0], gained[0] = _different(lost[0], gained[0])
    return [*common, *lost], [*common, *gained]


def _without(items: Sequence[object], others: Sequence[object]) -> list[object]:
    """Return the items of a list that another one has not, or not as often."""
    left, found = [*others], []
    for each in items:
        if each in left:
            left.remove(each)
        else:
            found.append(each)
    return found


def _shown(value: object) -> str:
    return "none" if value is None else _compact(value)


def _compact(value: object) -> str:
    if isinstance(value, Mapping):
        name = value.get("Name")
        return str(name) if name else ", ".join(f"{key}: {_compact(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return f"[{', '.join(_compact(each) for each in value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _need(change: ClusterChange, fleet_status: str) -> str:
    match change.kind:
        case Kind.FLEET_STOPPED if change.passes_now is None:
            return "needs the fleet STOPPED, and its status could not be read"
        case Kind.FLEET_STOPPED:
            return f"needs the fleet STOPPED, and it is {fleet_status}"
        case Kind.LOGIN_NODES_STOPPED:
            return "needs no login nodes, and there are some"
        case Kind.ALL_STOPPED:
            return "needs the fleet STOPPED and no login nodes"
    return f"is refused as long as the cluster exists: {change.reason}"


def named(change: ResourceChange) -> str:
    """Return a resource as findings name it."""
    physical_id = f" {change.physical_id}" if change.physical_id else ""
    return f"{change.logical_id} ({change.type}{physical_id})"


def _fate(change: ResourceChange) -> str:
    fate = "is retained outside of the stack, and continues to cost" if change.old_stays else "is deleted"
    if change.effect is Effect.REMOVED:
        return f"is removed: {kind_of(change.type).loss}; it {fate}"
    values = {each.path: each for each in change.properties}
    causes = [
        "{} from {} to {}".format(cause, *shown_difference(values[cause].before, values[cause].after))
        if cause in values
        else cause
        for cause in change.causes
    ]
    will = "may be" if change.effect is Effect.MAY_BE_REPLACED else "is"
    return f"{will} replaced, because of {', '.join(causes)}: {kind_of(change.type).loss}; the old one {fate}"


def _hint(change: ResourceChange, deployment_name: str) -> str:
    if change.type == _LINK and change.effect is not Effect.REMOVED:
        return "two deployments: first without this entry of storage.data_repositories, then with the new one"
    accept = f"./ultracluster deploy {deployment_name} --accept-replacement"
    if any(each.after == READ_LATE for each in change.properties):
        return f"make the reference strong (docs/adr/0003), or accept the replacement: {accept}"
    return f"take the change back, or accept it: {accept}"
