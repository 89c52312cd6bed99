"""What stands against a deployment, and what somebody should know before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from scripts.change_plan.cluster import NEED_A_STOPPED_FLEET, STOPPED, Target
from scripts.change_plan.comparison import awaited
from scripts.change_plan.model import ClusterChange, ClusterPlan, Effect, Kind, ResourceChange, StackPlan
from scripts.checks.check import Finding, Status
from toolchain.cluster import CLUSTER_TYPE

GUARDED: Final[Mapping[str, str]] = {
    "AWS::EC2::Subnet": "file system and nodes stand in it",
    "AWS::EC2::VPC": "everything stands in it",
    "AWS::FSx::DataRepositoryAssociation": "what the file system has not loaded from S3, or not exported, is cut off",
    "AWS::FSx::FileSystem": "a new one is empty: nothing is copied",
    "AWS::S3::Bucket": "it holds data",
    CLUSTER_TYPE: "the cluster goes, with its jobs and what is on the head node",
}
"""The types that nobody replaces or removes without saying so, and why."""
ACCEPT: Final = "--accept-replacement"
_LONGEST_VALUE: Final = 60
_LINK: Final = "AWS::FSx::DataRepositoryAssociation"
_RETAINED: Final = ("Retain", "RetainExceptOnCreate")


def of_stack(stack: StackPlan, accepted: bool) -> Iterator[Finding]:
    """Yield what is to be said of the resources of a stack.

    Args:
        stack: The stack.
        accepted: Whether somebody has said that replacing and removing is right.
    """
    for change in stack.changes:
        if change.type not in GUARDED:
            continue
        subject = f"{stack.name}/{change.logical_id}"
        if change.effect in (Effect.MAY_BE_REPLACED, Effect.REPLACED, Effect.REMOVED):
            yield Finding(
                Status.WARN if accepted else Status.FAIL,
                f"{_named(change)} {_fate(change)}",
                "" if accepted else _hint(change),
                subject=subject,
            )
        for each in change.properties:
            if each.path == "DeletionPolicy" and each.before in _RETAINED and each.after not in _RETAINED:
                sentence = f"{_named(change)} is no longer retained: from now on it is deleted with its stack"
                yield Finding(Status.WARN, sentence, subject=subject)


def of_passed_over(name: str, changes: tuple[ResourceChange, ...]) -> Iterator[Finding]:
    """Yield what is to be said of a stack whose template stays while what it refers to is replaced."""
    for change in changes:
        producers = ", ".join(awaited(change))
        causes = ", ".join(dict.fromkeys(each.path for each in change.properties))
        sentence = (
            f"{_named(change)} keeps its old {causes}, although {producers} makes new ones: the template of its stack "
            "does not change, so the stack is not updated"
        )
        yield Finding(Status.WARN, sentence, subject=f"{name}/{change.logical_id}")


def of_cluster(cluster: ClusterPlan, target: Target) -> Iterator[Finding]:
    """Yield what is to be said of the changes of the cluster's configuration."""
    subject = f"cluster {cluster.name}"
    for change in cluster.changes:
        if change.passes_now:
            continue
        known = change.passes_now is not None
        before, after = shown_difference(change.before, change.after)
        yield Finding(
            Status.FAIL if known else Status.WARN,
            f"{change.path} from {before} to {after} {_need(change, cluster.fleet_status)}",
            "; or ".join(change.ways),
            change.command if known else target.fleet_command(),
            subject,
        )
    if cluster.fleet_status == STOPPED and any(each.kind in NEED_A_STOPPED_FLEET for each in cluster.changes):
        sentence = "the fleet is STOPPED, as this deployment needs it, and stays so"
        command = target.fleet_command("START_REQUESTED")
        yield Finding(Status.WARN, sentence, "start it again after the deployment", command, subject)


def shown_difference(before: object, after: object, longest: int = _LONGEST_VALUE) -> tuple[str, str]:
    """Return two values for people: of lists only what differs, and cut where they are long."""
    if isinstance(before, list) and isinstance(after, list):
        lost, gained = [each for each in before if each not in after], [each for each in after if each not in before]
        before, after = lost or before, gained or after
    return _shown(before, longest), _shown(after, longest)


def _shown(value: object, longest: int) -> str:
    if value is None:
        return "none"
    text = _compact(value)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _compact(value: object) -> str:
    if isinstance(value, Mapping):
        name = value.get("Name")
        return str(name) if name else ", ".join(f"{key}: {_compact(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return f"[{', '.join(_compact(each) for each in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _need(change: ClusterChange, fleet_status: str) -> str:
    match change.kind:
        case Kind.FLEET_STOPPED if change.passes_now is None:
            return "needs the fleet STOPPED, and whether it is could not be asked"
        case Kind.FLEET_STOPPED:
            return f"needs the fleet STOPPED, and it is {fleet_status}"
        case Kind.LOGIN_NODES_STOPPED:
            return "needs the login nodes gone, and there are some"
        case Kind.ALL_STOPPED:
            return "needs the fleet STOPPED and the login nodes gone"
    return f"is refused as long as the cluster lives: {change.reason}"


def _named(change: ResourceChange) -> str:
    physical_id = f" {change.physical_id}" if change.physical_id else ""
    return f"{change.logical_id} ({change.type}{physical_id})"


def _fate(change: ResourceChange) -> str:
    stays = "the old one stays, outside of the stack, and costs on" if change.stays else "the old one is deleted"
    if change.effect is Effect.REMOVED:
        stays = "it stays, outside of the stack, and costs on" if change.stays else "it is deleted"
        return f"is removed: {GUARDED[change.type]}; {stays}"
    values = {each.path: each for each in change.properties}
    causes = [
        "{} from {} to {}".format(cause, *shown_difference(*values[cause][1:])) if cause in values else cause
        for cause in change.causes
    ]
    will = "may be" if change.effect is Effect.MAY_BE_REPLACED else "is"
    return f"{will} replaced, because of {', '.join(causes)}: {GUARDED[change.type]}; {stays}"


def _hint(change: ResourceChange) -> str:
    if change.type == _LINK and change.effect is not Effect.REMOVED:
        return "two deployments: first without this entry of storage.data_repositories, then with the new one"
    return f"take the change back, or say that it is meant: {ACCEPT}"
