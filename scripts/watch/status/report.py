"""The state of a deployment for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from scripts.core.figures import duration
from scripts.core.report import Block, Conclusion, Facts, Gap, Line, Link, Table, Title, Tone, Toned, columns
from scripts.watch.status.model import SlurmStatus, Status, Unavailable
from scripts.watch.status.software import Software

if TYPE_CHECKING:
    from scripts.watch.diagnose.diagnose import Diagnosis

T = TypeVar("T")
_STATES = {
    "idle": ("idle",),
    "running": ("allocated", "mixed", "completing"),
    "off": ("power saving",),
    "starting": ("powering up",),
    "stopping": ("powering down",),
    "drained": ("drained", "draining"),
}
"""Columns of the table of queues, and the states of nodes that count in each; others count in ``other``."""
_SOFTWARE: dict[str, Tone] = {"building": "warn", "failed": "bad", "interrupted": "bad"}
_Fact = tuple[str, str]


def report(status: Status) -> Iterator[Block]:
    """Yield stacks, facts, queues, nodes and pages of the console, and whether all is well."""
    yield _stacks(status)
    yield Gap()
    if status.exists:
        yield Facts(list(_facts(status)))
        yield from _nodes_and_jobs(status)
        if status.links:
            yield Title("In the console")
            yield from (Link(title, address) for title, address in status.links.items())
    yield Conclusion([Gap(), *verdict(status)])


def verdict(status: Status) -> Iterator[Block]:
    """Yield whether it is healthy, or what is wrong."""
    if status.healthy:
        yield Line(Toned("Healthy.", "good"))
    else:
        yield Line(Toned("Unhealthy:", "bad"))
        yield from (Line(each, item=True) for each in status.problems)


def explained(diagnosis: Diagnosis | Unavailable) -> Iterator[Block]:
    """Yield why something failed, or why that is not available."""
    yield Gap()
    if isinstance(diagnosis, Unavailable):
        yield Line(f"The diagnosis is not available: {diagnosis.reason}")
    else:
        yield from diagnosis.blocks()


def _stacks(status: Status) -> Table:
    rows = []
    for each in status.stacks:
        tone: Tone = "bad" if each.failed else "" if each.status else "dim"
        changed = f"{duration(status.time - each.changed)} ago" if each.changed else ""
        rows.append((each.name, Toned(each.status or "none", tone), changed))
    return Table("", columns("Stack", "Status", ">Changed"), rows)


def _facts(status: Status) -> Iterator[_Fact]:
    yield from _others(status)
    title = "Nodes" if isinstance(status.head_node, Unavailable) else "Head node"
    yield _fact(title, status.head_node, lambda each: each.sentence(status.time) if each else "none")
    if not isinstance(status.compute_nodes, Unavailable):
        compute = ", ".join(f"{count:,} {state}" for state, count in sorted(status.compute_nodes.items()))
        yield "Nodes", f"{compute} (EC2)" if compute else "none runs (EC2)"
    yield _fact("Fleet", status.fleet, str)
    if status.software:
        yield from _software(status.software, status.time)
    yield _fact("Storage", status.file_system, lambda each: each.sentence(status.usage))
    if isinstance(status.usage, Unavailable) and not isinstance(status.file_system, Unavailable):
        yield _unavailable("", status.usage)
    if status.homes is not None:
        yield _fact("Homes", status.homes, lambda each: each.sentence())
    if isinstance(status.reservations, Unavailable):
        yield _unavailable("Reserved", status.reservations)
    else:
        yield from (("Reserved", each.sentence(status.time)) for each in status.reservations)
    others = [] if isinstance(status.other_clusters, Unavailable) else [each.name for each in status.other_clusters]
    missing = [each.name for each in status.stacks if not each.status]
    yield _fact("Cost", status.cost, lambda each: each.sentence(others, missing))
    if status.spending is not None:
        yield _fact("Spending", status.spending, lambda each: each.sentence())
    if status.lacks_head_node:
        return
    yield "Connect", f"./ultracluster ssh {status.deployment}"
    if isinstance(status.slurm, Unavailable):
        yield _unavailable("Queues", status.slurm)


def _others(status: Status) -> Iterator[_Fact]:
    """Yield other clusters of the deployment, and why stacks are missing."""
    if isinstance(status.other_clusters, Unavailable):
        yield _unavailable("Others", status.other_clusters, "other clusters of this deployment: ")
    else:
        for other in status.other_clusters:
            yield "Others", Toned(f"{other.name} is {other.status}: another cluster of this deployment", "warn")
    if status.unavailable_stacks:
        yield _unavailable("Stacks", status.unavailable_stacks)


def _software(software: Software, now: datetime) -> Iterator[_Fact]:
    state = "interrupted" if software.is_interrupted else software.state or "starting"
    since = f" since {_age(software.since.removesuffix('Z'), now)}: {software.environment}" if software.since else ""
    yield "Software", Toned(f"{state}{since}", _SOFTWARE.get(state, ""))
    if state != "ready":
        yield from (("", Toned(each, "dim")) for each in software.log)
    if software.by_hand:
        yield "By hand", f"made with sacctmgr, kept: {'; '.join(software.by_hand)}"


def _nodes_and_jobs(status: Status) -> Iterator[Block]:
    """Yield the tables of queues, of nodes that take no jobs, and of those that failed to start."""
    if isinstance(status.slurm, SlurmStatus):
        yield Gap()
        yield _queues(status.slurm)
        for name, queue in status.slurm.queues.items():
            if queue.availability != "up":
                yield Line(Toned(f"Queue {name} takes no jobs: it is {queue.availability}.", "warn"))
        if status.slurm.problems:
            titles = columns("Nodes that take no jobs", "State", ">Since", "Reason")
            problems = status.slurm.problems
            yield Gap()
            yield Table("", titles, [(e.nodes, e.state, _age(e.since, status.time), e.reason) for e in problems])
    if status.software and status.software.failed_nodes:
        nodes = status.software.failed_nodes
        titles = columns("Nodes that failed to start", ">Ago", "Reason")
        yield Gap()
        yield Table("", titles, [(each.name, _age(each.time, status.time), each.reason) for each in nodes])


def _queues(slurm: SlurmStatus) -> Table:
    rows = []
    for name, queue in slurm.queues.items():
        shown = [sum(queue.nodes.get(each, 0) for each in states) for states in _STATES.values()]
        numbers = [*shown, sum(queue.nodes.values()) - sum(shown), queue.jobs, queue.waiting]
        rows.append([name, *(f"{each:,}" if each else "-" for each in numbers)])
    titles = columns("Queue", *(f">{column}" for column in (*_STATES, "other", "jobs", "waiting")))
    return Table("", titles, rows, narrow=True)


def _fact(title: str, what: T | Unavailable, text: Callable[[T], str]) -> _Fact:
    return _unavailable(title, what) if isinstance(what, Unavailable) else (title, text(what))


def _unavailable(title: str, what: Unavailable, start: str = "") -> _Fact:
    return title, Toned(f"{start}not available: {what.reason}" if what.is_problem else f"{start}{what.reason}", "warn")


def _age(text: str, now: datetime) -> str:
    try:
        return duration(now - datetime.fromisoformat(text).replace(tzinfo=UTC))
    except ValueError:
        return text
