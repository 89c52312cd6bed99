"""Why a deployment failed, and what keeps a running cluster from running jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal

from pydantic import Field, computed_field

from scripts.account import way_out
from scripts.account.causes import Evidence, FoundCause, State, evidence_lines, find
from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import is_head_node
from scripts.account.stack_state import StackState
from scripts.account.way_out import WayOut
from scripts.core.clock import Clock
from scripts.core.document import DeploymentName, Document, Result
from scripts.core.report import Block, Command, Line, Title, Toned
from scripts.watch.diagnose import present
from scripts.watch.diagnose.failures import Operation, operations, provider_group, window
from scripts.watch.diagnose.judge import judged, suspicious
from scripts.watch.diagnose.reader import LOG_TERMS, PROVIDER_GROUP, Reader

LOOK_BACK = (timedelta(0), timedelta(minutes=30), timedelta(hours=6))
"""The time whose logs of a running cluster are read: the older part only if the newer shows no cause."""
SILENT = timedelta(minutes=15)
"""A head node that logs nothing for so long is unhealthy: clustermgtd logs every minute."""
LINES_OF_UNKNOWN = 5
"""The lines before the end of an unknown failure that are shown."""
LINES_BEHIND = 3
"""The lines of a log that are shown of what is behind a symptom."""
STUCK = frozenset({"rollback-failed"})
"""Causes of which `Diagnosis.ways_out` says more."""


class LogsRead(Document):
    """A log group that was read."""

    group: str = Field(description="Its name.")
    since: datetime = Field(description="From when.")
    until: datetime = Field(description="To when.")


class Diagnosis(Result):
    """Why a deployment failed, or what keeps its cluster from running jobs."""

    deployment: DeploymentName
    region: str = Field(description="AWS Region of the deployment.")
    operation: Operation | None = Field(
        description="The newest operation that failed; null: none did, and all causes are of the running cluster."
    )
    causes: tuple[FoundCause, ...] = Field(
        description="Known causes: what the running cluster shows, then those of the operation, the first failure's "
        "first unless it is in `unknown`, then what is over. Ids do not change."
    )
    unknown: tuple[Evidence, ...] = Field(
        description="If the cause of the operation's failure is not known: the first failure, then the last lines of "
        "the logs that tell of trouble."
    )
    ways_out: tuple[WayOut, ...] = Field(
        default=(), description="Of stacks that could not be rolled back: what is in force, and what leads out."
    )
    suspicious: tuple[Evidence, ...] = Field(
        default=(), description="Lines of the cluster's logs that no cause explains, the most suspicious first."
    )
    read_on: tuple[str, ...] = Field(description="If the cause is not known: commands that show more.")
    read: tuple[str, ...] = Field(description="Stacks and log groups that were read.")
    logs_read: tuple[LogsRead, ...] = Field(default=(), description="From when to when logs were read.")
    unread: tuple[str, ...] = Field(
        description="What was not read: the action that is not allowed, or how much was read of what is too much."
    )
    current: tuple[FoundCause, ...] = Field(default=(), exclude=True)
    """Known causes that the running cluster shows and that are not over, the first of `causes`."""
    is_denied: bool = Field(default=False, exclude=True)
    """Whether a permission was missing."""

    @computed_field(  # type: ignore[prop-decorator]
        description="A known cause was found that is not over; a failure of unknown cause, or nothing but not "
        "everything may be read; no known cause that is not over, which is no proof that all is well. Exit code 1, 1 "
        "and 0."
    )
    @property
    def outcome(self) -> Literal["cause", "unknown", "nothing failed"]:
        """``nothing failed`` can be said only if everything may be read."""
        if self.current or (self.lasting and not self.unknown):
            return "cause"
        return "unknown" if self.unknown or self.is_denied else "nothing failed"

    @property
    def failed(self) -> bool:
        """Whether there is something to fix, or may be."""
        return self.outcome != "nothing failed"

    @property
    def lasting(self) -> list[FoundCause]:
        """The causes that are not over."""
        return [each for each in self.causes if each.state is not State.ENDED]

    def blocks(self) -> Iterator[Block]:
        """Yield it for people: what is most likely to help first, what is over and what was read last."""
        others = [each for each in self.lasting if not (self.ways_out and each.id in STUCK)]
        if self.current:
            yield from others.pop(0).blocks()
            if self.operation:
                yield Title("Failed as well")
        if self.operation:
            yield Line(
                f"{self.operation.stack}: {self.operation.status}, started {self.operation.started:%Y-%m-%d %H:%M} UTC"
            )
            if StackState(self.operation.status).is_as_before:
                yield Line("It was rolled back: what was deployed before is in force.")
        if self.unknown:
            yield Line(Toned("No known cause. This failed first:", "bad"))
            yield from evidence_lines(self.unknown)
            yield Title("Read on")
            yield from map(Command, self.read_on)
        elif others and not self.current:
            yield from others.pop(0).blocks()
        elif self.outcome == "unknown":
            yield Line(Toned("Whether something failed is not known: a permission to read is missing.", "bad"))
        elif not self.lasting:
            yield Line("No known cause still holds, by what was read. That is no proof that all is well.")
        for way in self.ways_out:
            yield Title("The stack cannot be updated as it is")
            yield from (Line(each, item=True) for each in (way.sentence, way.steps))
        for each in others:
            yield Title("Also seen")
            yield Line(Toned(each.title, "bad"))
            yield from (Line(text) for text in (each.why, each.when) if text)
            yield from each.steps()
        yield from self._what_is_over()
        yield from self._what_was_read()

    def _what_is_over(self) -> Iterator[Block]:
        over = [each for each in self.causes if each.state is State.ENDED]
        if over:
            yield Title("Was so, and is over")
            for each in over:
                yield Line(Toned(each.title, "dim"))
                yield Line(f"{each.why} {each.when}", item=True)

    def _what_was_read(self) -> Iterator[Block]:
        if self.suspicious:
            yield Title("No cause explains these lines")
            yield from evidence_lines(self.suspicious)
        yield Title("What was read")
        stacks = [each for each in self.read if not each.startswith("/")]
        yield Line(f"Events of the newest operation: {', '.join(stacks) or 'there are no stacks'}.", item=True)
        for log in self.logs_read:
            times = f"{log.since:%Y-%m-%d %H:%M} to {log.until:%Y-%m-%d %H:%M} UTC"
            yield Line(f"{log.group}, {times}: lines with one of {len(LOG_TERMS)} words of trouble.", item=True)
        yield Title("What was not read")
        yield from (Line(each, item=True) for each in self.unread)
        yield Line(f"The output of jobs: ./ultracluster jobs logs {self.deployment} JOB shows it.", item=True)


def diagnose(deployment: Deployment, clock: Clock | None = None) -> Diagnosis:
    """Tell why the newest operation that failed did, and what keeps a running cluster from running jobs.

    The running cluster comes first; its logs are not read if the operation is one of its own and of the last hours.

    Calls: one for each stack, then for what failed one per 100 events of a stack and per 100 deleted stacks. One for
    the log groups, and per 1,000 instances; at most 20 for the cluster's logs and 10 for the provider's, and for a
    running cluster 20 for each time of `LOOK_BACK`, 10 for whether the head node logs, and 22 for how it is now.

    Raises:
        botocore.exceptions.ClientError: Credentials are not valid; missing permissions are told in `unread`.
    """
    reader, clock = Reader(deployment), clock or Clock()
    failed = operations(reader)
    operation = failed[0] if failed else None
    findings, unknown = of_operation(reader, operation) if operation else ([], [])
    cluster = of_cluster(reader, operation, clock)
    current = [each for each in cluster.causes if each.state is not State.ENDED]
    over = [each for each in cluster.causes if each.state is State.ENDED]
    read = tuple(dict.fromkeys(reader.read))
    return Diagnosis(
        deployment=deployment.name,
        region=deployment.settings.region,
        operation=operation,
        causes=_distinct([*current, *findings, *over]),
        unknown=tuple(unknown),
        ways_out=_ways_out(reader),
        suspicious=cluster.suspicious,
        read_on=_read_on(deployment, operation, unknown[0], read) if unknown else (),
        read=read,
        logs_read=_logs_read(reader),
        unread=tuple(dict.fromkeys((*reader.denied, *cluster.unknown, *reader.cut_off))),
        current=tuple(current),
        is_denied=bool(reader.denied),
    )


def _logs_read(reader: Reader) -> tuple[LogsRead, ...]:
    groups = {group: [each for each in reader.spans if each[0] == group] for group, _, _ in reader.spans}
    return tuple(
        LogsRead(group=group, since=min(each[1] for each in spans), until=max(each[2] for each in spans))
        for group, spans in groups.items()
    )


def _ways_out(reader: Reader) -> tuple[WayOut, ...]:
    actions = "cloudformation:ListStackResources"
    return reader.try_fetch("what leads out", actions, lambda: way_out.find(reader.deployment), ())


def _distinct(findings: Iterable[FoundCause]) -> tuple[FoundCause, ...]:
    by_id: dict[str, FoundCause] = {}
    for each in findings:
        by_id.setdefault(each.id, each)
    return tuple(by_id.values())


def _read_on(
    deployment: Deployment, operation: Operation | None, first: Evidence, read: Sequence[str]
) -> tuple[str, ...]:
    """Return commands that show more than was read."""
    exists = operation is not None and operation.stack == first.source
    stack = first.source if exists else first.names["stack_id"]  # those below may be deleted, and need the id then
    has_nodes = any(each.startswith("/aws/parallelcluster/") for each in read)
    providers = [each for each in read if PROVIDER_GROUP.fullmatch(each)]
    return (
        deployment.command("cloudformation", "describe-stack-events", "--stack-name", stack),
        *([f"./ultracluster logs {deployment.name} head-node --since 6h"] if has_nodes else []),
        *(deployment.command("logs", "filter-log-events", "--log-group-name", each) for each in providers),
        f"./ultracluster preflight {deployment.name}",
    )


def of_operation(reader: Reader, operation: Operation) -> tuple[list[FoundCause], list[Evidence]]:
    """Return causes, that of the first failure or the one behind it first; or else evidence of an unknown cause.

    Of the logs, the line nearest to the failure counts: what failed before may have been tried again with success.
    """
    events = operation.events
    first, others = _find(reader, events[0]), list(_known(reader, events[1:]))
    if first and first.logs is None:
        return [first, *others], []
    lines = _logs(reader, operation)
    kinds = first.logs if first else None
    known = (each for each in _known(reader, reversed(lines)) if _is_of(each, kinds) and _is_behind(each, first))
    causes, symptoms = _parted(known)
    behind = [*causes, *(each for each in symptoms if each.behind)]
    behind = [
        each.model_copy(update={"evidence": (events[0], *each.evidence, *_last_words(each, lines))}) for each in behind
    ]
    explained = [*behind, *([first] if first else []), *symptoms]
    return [*explained, *others], [] if explained else [events[0], *lines[-LINES_OF_UNKNOWN:]]


def _last_words(symptom: FoundCause, lines: Sequence[Evidence]) -> Sequence[Evidence]:
    """Return the last lines before a symptom that its node wrote into the logs where the cause is seen."""
    at, node = symptom.evidence[-1].time, symptom.evidence[-1].source.rpartition(".")[0]
    before = [
        each
        for each in lines
        if each.kind in (symptom.logs or ()) and each.source.rpartition(".")[0] == node and each.time <= at
    ]
    return before[-LINES_BEHIND:]


@dataclass(frozen=True)
class OfCluster:
    """What is wrong with a cluster that was created.

    Attributes:
        causes: In the order in which they are to be shown.
        suspicious: Lines that no cause explains.
        unknown: What could not be looked at.
    """

    causes: tuple[FoundCause, ...] = ()
    suspicious: tuple[Evidence, ...] = ()
    unknown: tuple[str, ...] = ()


def of_cluster(reader: Reader, operation: Operation | None, clock: Clock) -> OfCluster:
    """Return what is wrong with a cluster that was created: how it is now, and what its logs tell.

    Its logs are not read if the operation that failed is a recent one of the cluster, to which they belong, and nothing
    is wrong now beside. Needs
    cloudformation:DescribeStacks, ec2:DescribeInstances, logs:DescribeLogGroups and FilterLogEvents; for how it is
    now also dynamodb:GetItem, ssm:SendCommand and GetCommandInvocation.
    """
    name, now = reader.cluster_name, clock.now()
    stack = reader.stack(name)
    if stack is None or StackState.of(stack).was_never_complete or StackState.of(stack).is_leaving:
        return OfCluster()
    looked = present.look(reader, clock)
    evident = list(_known(reader, [*_of_head_node(reader, now), *looked.evidence]))
    is_recent = operation and _is_of_cluster(reader, operation) and operation.started >= now - LOOK_BACK[-1]
    if is_recent and not evident:
        return OfCluster((), (), looked.unknown)
    lines: list[Evidence] = []
    found: list[FoundCause] = []
    causes: list[FoundCause] = []
    for until, since in pairwise(LOOK_BACK):  # symptoms: protected mode is logged every minute, what led to it once
        older = reader.cluster_lines(now - since, now - until)
        lines = [*older, *lines]
        found += _known(reader, reversed(older))
        causes = judged([*evident, *(each for each in found if _is_behind(each, None))], looked, lines, now)
        if any(each.logs is None and each.state is not State.ENDED for each in causes):
            break
    explained = [evidence for each in found for evidence in each.evidence]
    return OfCluster(tuple(causes), suspicious(lines, explained), looked.unknown)


def _of_head_node(reader: Reader, now: datetime) -> Iterator[Evidence]:
    """Yield that no head node runs, if none does, or that the one that runs logs nothing."""
    instances = reader.instances()
    if instances is None:
        return
    name = reader.cluster_name
    heads = {each["State"]["Name"]: each for each in instances if is_head_node(each)}
    if (head := heads.get("running")) is None:
        texts = [f"The head node {each['InstanceId']} is {state}" for state, each in heads.items()]
        text = next(iter(texts), f"The cluster {name} has no head node")
    elif head["LaunchTime"] > now - SILENT or reader.head_node_logs(now - SILENT, now) is not False:
        return
    else:
        minutes = SILENT // timedelta(minutes=1)
        text = f"The head node {head['InstanceId']} is running, but has logged nothing for {minutes} minutes"
    yield Evidence(kind="instance", source=name, time=now, text=text)


def _is_of_cluster(reader: Reader, operation: Operation) -> bool:
    deployment = reader.deployment
    return operation.stack in (deployment.stack_name("cluster"), reader.cluster_name)


def _logs(reader: Reader, operation: Operation) -> list[Evidence]:
    """Return what the logs of the cluster and of the provider tell, if the operation was about the cluster."""
    if not _is_of_cluster(reader, operation):
        return []
    since, until = window(operation)
    lines = reader.cluster_lines(since, until)
    if group := provider_group(reader, operation):
        lines += reader.lines(group, since, until)
    return sorted(lines, key=lambda line: line.time)


def _known(reader: Reader, evidence: Iterable[Evidence]) -> Iterator[FoundCause]:
    return (finding for each in evidence if (finding := _find(reader, each)))


def _find(reader: Reader, evidence: Evidence) -> FoundCause | None:
    deployment = reader.deployment
    cluster_stack = deployment.stack_name("cluster")
    stack = evidence.source if evidence.kind == "event" else cluster_stack
    names = {
        "deployment": deployment.name,
        "file": deployment.file,
        "cluster": reader.cluster_name,
        "region": deployment.settings.region,
        "stack": stack,
        "root": stack,
        "resource": cluster_stack,
        "type": "the type",
        "zone": "the zone",
        "folder": "/",
    }
    return find(evidence, {**names, **evidence.names})


def _is_of(finding: FoundCause, kinds: Sequence[str] | None) -> bool:
    return kinds is None or finding.evidence[0].kind in kinds


def _is_behind(finding: FoundCause, first: FoundCause | None) -> bool:
    """Whether a finding can explain the first failure; None: there is none, or its cause is not known."""
    return not finding.behind or (first is not None and first.id in finding.behind)


def _parted(findings: Iterable[FoundCause]) -> tuple[list[FoundCause], list[FoundCause]]:
    every = list(findings)
    return [each for each in every if each.logs is None], [each for each in every if each.logs is not None]
