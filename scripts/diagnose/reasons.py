"""From what AWS recorded of a failure, or of a cluster that runs, to known causes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from scripts.diagnose.causes import Finding, find
from scripts.diagnose.evidence import Evidence, Reader
from scripts.diagnose.failures import Operation, provider_group, window

LOOK_BACK = (timedelta(0), timedelta(minutes=30), timedelta(hours=6))
"""Of which time the logs of a cluster that runs are read: what is before the first of them only if it shows nothing."""
LINES_OF_UNKNOWN = 5
"""The lines before the end of an unknown failure that are shown."""
_MADE = re.compile(r"CREATE_COMPLETE|UPDATE_")
_HEAD_NODE = {"Key": "parallelcluster:node-type", "Value": "HeadNode"}


def of_operation(reader: Reader, operation: Operation) -> tuple[list[Finding], list[Evidence]]:
    """Return causes, that of the first failure or what is behind it first; or else what is known without a cause.

    Of what logs tell, the line nearest to the failure counts: what was before may have been tried again with success.
    """
    events = operation.events
    first, others = _find(reader, events[0]), list(_known(reader, events[1:]))
    if first and first.cause.logs is None:
        return [first, *others], []
    lines = _logs(reader, operation)
    kinds = first.cause.logs if first else None
    causes, symptoms = _parted(each for each in _known(reader, reversed(lines)) if _is_of(each, kinds))
    behind = [replace(each, evidence=(events[0], *each.evidence)) for each in causes]
    explained = [*behind, *([first] if first else []), *symptoms]
    return [*explained, *others], [] if explained else [events[0], *lines[-LINES_OF_UNKNOWN:]]


def of_cluster(reader: Reader, operation: Operation | None, now: datetime) -> list[Finding]:
    """Return what is wrong with a cluster that was made: its head node, then what its logs tell, symptoms last.

    Its logs are not read if the operation that failed is a recent one of the cluster, which they are of. Needs
    cloudformation:DescribeStacks, ec2:DescribeInstances, logs:DescribeLogGroups and FilterLogEvents.
    """
    name = reader.deployment.settings.cluster_spec.name
    stack: dict[str, Any] | None = reader.tried(
        f"stack {name}", "cloudformation:DescribeStacks", lambda: reader.deployment.stack(name), None
    )
    if stack is None or not _MADE.match(stack["StackStatus"]):
        return []
    found = list(_known(reader, _of_head_node(reader, now)))
    if operation and _is_of_cluster(reader, operation) and operation.began >= now - LOOK_BACK[-1]:
        return found
    for until, since in pairwise(LOOK_BACK):
        causes, symptoms = _parted(_known(reader, reversed(reader.cluster_lines(now - since, now - until))))
        if causes or symptoms:
            return [*found, *causes, *symptoms]
    return found


def _of_head_node(reader: Reader, now: datetime) -> Iterator[Evidence]:
    """Yield that no head node runs, if none does."""
    instances = reader.instances()
    if instances is None:
        return
    name = reader.deployment.settings.cluster_spec.name
    heads = {each["State"]["Name"]: each["InstanceId"] for each in instances if _HEAD_NODE in each.get("Tags", [])}
    if not heads:
        yield Evidence("instance", name, now, f"The cluster {name} has no head node")
    elif "running" not in heads:
        [(state, instance_id), *_] = heads.items()
        yield Evidence("instance", name, now, f"The head node {instance_id} is {state}")


def _is_of_cluster(reader: Reader, operation: Operation) -> bool:
    deployment = reader.deployment
    return operation.stack in (deployment.stack_name("cluster"), deployment.settings.cluster_spec.name)


def _logs(reader: Reader, operation: Operation) -> list[Evidence]:
    """Return what the logs of the cluster and of the provider tell, if the operation was about the cluster."""
    if not _is_of_cluster(reader, operation):
        return []
    since, until = window(operation)
    lines = reader.cluster_lines(since, until)
    if group := provider_group(reader, operation):
        lines += reader.lines(group, since, until)
    return sorted(lines, key=lambda line: line.time)


def _known(reader: Reader, evidence: Iterable[Evidence]) -> Iterator[Finding]:
    return (found for each in evidence if (found := _find(reader, each)))


def _find(reader: Reader, evidence: Evidence) -> Finding | None:
    deployment = reader.deployment
    cluster_stack = deployment.stack_name("cluster")
    stack = evidence.place if evidence.kind == "event" else cluster_stack
    names = {
        "env": deployment.environment,
        "cluster": deployment.settings.cluster_spec.name,
        "region": deployment.settings.region,
        "stack": stack,
        "root": stack,
        "resource": cluster_stack,
        "type": "the type",
        "zone": "the zone",
    }
    return find(evidence, {**names, **evidence.names})


def _is_of(finding: Finding, kinds: Sequence[str] | None) -> bool:
    return kinds is None or finding.evidence[0].kind in kinds


def _parted(findings: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Return causes, and symptoms."""
    found = list(findings)
    return [each for each in found if each.cause.logs is None], [each for each in found if each.cause.logs is not None]
