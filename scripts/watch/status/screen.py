"""The state of a deployment on a terminal of 80 columns or more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from scripts.account.reservations import BEFORE_ITS_START, Reservation
from scripts.core.errors import ExitCode
from scripts.core.screen import dollars, duration, table
from scripts.watch.status.model import (
    Cost,
    FileSystem,
    HeadNodeStatus,
    Homes,
    SlurmStatus,
    Spending,
    Status,
    Unavailable,
    Usage,
)
from scripts.watch.status.software import Software

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from scripts.account.deployment import Deployment
    from scripts.core.clock import Clock
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
_SOFTWARE = {"building": "yellow", "failed": "bold red", "interrupted": "bold red"}


def watch(
    deployment: Deployment, console: Console, *, clock: Clock, every: float, timeout: float | None, as_json: bool
) -> int:
    """Follow the operation in progress to its end, with a diagnosis for people if it fails; return the exit code.

    While none is, a terminal shows the state every so many seconds, unless there is a `timeout`, in minutes.
    """
    from scripts.watch.progress import watch as progress
    from scripts.watch.status.collect import collect, explain

    if console.is_terminal and not as_json and timeout is None:
        refresh(lambda: collect(deployment, clock), console, clock=clock, seconds=every)
    code = progress.watch(deployment, console, clock=clock, as_json=as_json, timeout=timeout)
    if code == ExitCode.FAILED and not as_json:
        show_diagnosis(explain(deployment, clock), console)
    return code


def refresh(collect: Callable[[], Status], console: Console, *, clock: Clock, seconds: float) -> None:
    """Show the state on a terminal again and again; return as soon as an operation on a stack is in progress."""
    with Live(console=console, auto_refresh=False) as live:
        while True:
            status = collect()
            if any(each.in_progress for each in status.existing_stacks.values()):
                return
            why = [Text(f"Why: ./ultracluster diagnose {status.deployment}", "bold")] if status.failed else []
            live.update(Group(*render(status), Text(), *verdict(status), *why), refresh=True)
            clock.sleep(seconds)


def show(status: Status, console: Console, *, verdict_first: bool) -> None:
    """Print the state; a page has the verdict first, a terminal last."""
    parts, judged = Group(*render(status)), Group(*verdict(status))
    for each in (judged, "", parts) if verdict_first else (parts, "", judged):
        console.print(each)
    if status.exists:
        pages = "".join(f"\n  {title:<9} {address}" for title, address in status.links.items())
        console.print("", Text(f"In the console:{pages}"), sep="\n", soft_wrap=True)  # an address stays in one piece


def render(status: Status) -> Iterator[RenderableType]:
    """Yield stacks, facts, queues and nodes, from top to bottom."""
    yield _stacks(status)
    if status.exists:
        facts = Table.grid(padding=(0, 1))
        facts.add_column(width=9)
        facts.add_column(overflow="fold")
        for title, text, style in _facts(status):
            facts.add_row(title, Text(text, style))
        yield facts
        yield from _nodes_and_jobs(status)


def verdict(status: Status) -> Iterator[RenderableType]:
    """Yield whether it is healthy, or what is wrong."""
    if status.healthy:
        yield Text("Healthy.", "bold green")
    else:
        yield Text("Unhealthy:", "bold red")
        yield from (Text(f"- {each}") for each in status.problems)


def _stacks(status: Status) -> RenderableType:
    stacks = table("Stack", "Status", ">Changed")
    for each in status.stacks:
        style = "bold red" if each.failed else "" if each.status else "dim"
        changed = f"{duration(status.time - each.changed)} ago" if each.changed else ""
        stacks.add_row(each.name, Text(each.status or "none", style), changed)
    return Group(stacks, Text()) if stacks.row_count else Text()


def _facts(status: Status) -> Iterator[tuple[str, str, str]]:
    """Yield lines: title, text and style."""
    if isinstance(status.other_clusters, Unavailable):
        yield _unavailable("Others", status.other_clusters, "other clusters of this deployment: ")
    else:
        for other in status.other_clusters:
            yield "Others", f"{other.name} is {other.status}: another cluster of this deployment", "yellow"
    if status.unavailable_stacks:
        yield _unavailable("Stacks", status.unavailable_stacks)
    title = "Nodes" if isinstance(status.head_node, Unavailable) else "Head node"
    yield _fact(title, status.head_node, lambda each: _head_node(each, status.time) if each else "none")
    if not isinstance(status.compute_nodes, Unavailable):
        compute = ", ".join(f"{count:,} {state}" for state, count in sorted(status.compute_nodes.items()))
        yield "Nodes", f"{compute} (EC2)" if compute else "none runs (EC2)", ""
    yield _fact("Fleet", status.fleet, str)
    if status.software:
        yield from _software(status.software, status.time)
    yield _fact("Storage", status.file_system, lambda each: _file_system(each, status.usage))
    if isinstance(status.usage, Unavailable) and not isinstance(status.file_system, Unavailable):
        yield _unavailable("", status.usage)
    yield from _optional("Homes", status.homes, _homes)
    if isinstance(status.reservations, Unavailable):
        yield _unavailable("Reserved", status.reservations)
    else:
        yield from (("Reserved", _reservation(each, status.time), "") for each in status.reservations)
    yield _fact("Cost", status.cost, lambda each: _cost(status, each))
    yield from _optional("Spending", status.spending, _spending)
    if status.lacks_head_node:
        return
    yield "Connect", f"./ultracluster ssh {status.deployment}", ""
    if isinstance(status.slurm, Unavailable):
        yield _unavailable("Queues", status.slurm)


def _software(software: Software, now: datetime) -> Iterator[tuple[str, str, str]]:
    state = "interrupted" if software.is_interrupted else software.state or "starting"
    since = f" since {_age(software.since.removesuffix('Z'), now)}: {software.environment}" if software.since else ""
    yield "Software", f"{state}{since}", _SOFTWARE.get(state, "")
    if state != "ready":
        yield from (("", each, "dim") for each in software.log)
    if software.by_hand:
        yield "By hand", f"made with sacctmgr, kept: {'; '.join(software.by_hand)}", ""


def _head_node(head_node: HeadNodeStatus, now: datetime) -> str:
    reachable = {True: ["Session Manager reaches it"], False: ["Session Manager does not reach it"], None: []}
    facts = [
        head_node.instance_id,
        head_node.instance_type,
        head_node.state,
        *filter(None, (head_node.private_address, head_node.public_address)),
        f"launched {duration(now - head_node.launched)} ago",
        *reachable[head_node.session_manager],
    ]
    return ", ".join(facts)


def _nodes_and_jobs(status: Status) -> Iterator[RenderableType]:
    """Yield the tables of queues, of nodes that take no jobs, and of those that failed to start."""
    if isinstance(status.slurm, SlurmStatus):
        yield Text()
        yield _queues(status.slurm)
        for name, queue in status.slurm.queues.items():
            if queue.availability != "up":
                yield Text(f"Queue {name} takes no jobs: it is {queue.availability}.", "yellow")
        if status.slurm.problems:
            problems = table("Nodes that take no jobs", "State", ">Since", "Reason")
            for each in status.slurm.problems:
                problems.add_row(each.nodes, each.state, _age(each.since, status.time), Text(each.reason))
            yield Text()
            yield problems
    if status.software and status.software.failed_nodes:
        nodes = table("Nodes that failed to start", ">Ago", "Reason")
        for node in status.software.failed_nodes:
            nodes.add_row(node.name, _age(node.time, status.time), Text(node.reason))
        yield Text()
        yield nodes


def _queues(slurm: SlurmStatus) -> RenderableType:
    queues = table("Queue", *(f">{column}" for column in (*_STATES, "other", "jobs", "waiting")))
    queues.padding = (0, 0)  # ten columns in 80 characters
    for name, queue in slurm.queues.items():
        shown = [sum(queue.nodes.get(each, 0) for each in states) for states in _STATES.values()]
        numbers = [*shown, sum(queue.nodes.values()) - sum(shown), queue.jobs, queue.waiting]
        queues.add_row(name, *(f"{each:,}" if each else "-" for each in numbers))
    return queues


def _file_system(file_system: FileSystem, usage: Usage | Unavailable) -> str:
    size = f"{file_system.capacity_gib:,} GiB, {file_system.throughput_mbps:,.0f} MB/s"
    text = f"{file_system.file_system_id}, {file_system.lifecycle}, {size}"
    if isinstance(usage, Unavailable):
        return text
    parts = []
    if usage.free_bytes is not None:
        gib = usage.free_bytes / 1024**3
        parts.append(f"{gib:,.0f} GiB free ({gib / file_system.capacity_gib:.0%})")
    if usage.used_mbps is not None:
        parts.append(f"{usage.used_mbps:,.0f} MB/s used ({usage.used_mbps / file_system.throughput_mbps:.0%})")
    return f"{text}; {', '.join(parts) or 'no metrics of the last 10 minutes'}"


def _homes(homes: Homes) -> str:
    parts = [homes.file_system_id, homes.lifecycle]
    if homes.used_bytes is not None:
        parts.append(f"{homes.used_bytes / 1024**3:,.1f} GiB used")
    if homes.capacity_gib is not None:
        parts[-1] += f" of {homes.capacity_gib:,}" if homes.used_bytes is not None else f", {homes.capacity_gib:,} GiB"
    return ", ".join(parts)


def _reservation(reservation: Reservation, now: datetime) -> str:
    kind = "Capacity Block " if reservation.is_block else ""
    if not reservation.total:
        return f"{kind}{reservation.reservation_id}, {reservation.state}"
    text = f"{kind}{reservation.reservation_id}, {reservation.state}, {reservation.total} {reservation.instance_type}"
    if reservation.state == "active":
        text += f", {reservation.total - reservation.left} used, {reservation.left} left"
    if reservation.begins and reservation.state in BEFORE_ITS_START:
        text += f", starts in {duration(reservation.begins - now)}"
    if reservation.ends:
        left = duration(abs(reservation.ends - now))
        text += f", ends in {left}" if reservation.ends > now else f", ended {left} ago"
    return text


def _cost(status: Status, cost: Cost) -> str:
    total, nodes, standing = map(dollars, (cost.hourly_usd, cost.nodes_usd, cost.standing_usd))
    text = f"{total} an hour: {nodes} for compute nodes, {standing} for the rest ({cost.source})"
    others = [] if isinstance(status.other_clusters, Unavailable) else status.other_clusters
    if unpriced := [*cost.unpriced, *(f"{each.name} (./ultracluster inventory)" for each in others)]:
        text += f"; not included: {', '.join(unpriced)}"
    missing = ", ".join(each.name for each in status.stacks if not each.status)
    return f"if {missing} existed: {text}" if missing else text


def _spending(spending: Spending) -> str:
    limit = f"the budget's {dollars(spending.limit_usd)}"
    if spending.nodes_usd is None:
        return f"not known, of {limit}: the head node has reported nothing in the last 10 minutes"
    share = spending.nodes_usd / spending.limit_usd
    return f"{dollars(spending.nodes_usd)} for nodes this month, {share:.0%} of {limit}"


def _fact(title: str, what: T | Unavailable, text: Callable[[T], str]) -> tuple[str, str, str]:
    return _unavailable(title, what) if isinstance(what, Unavailable) else (title, text(what), "")


def _optional(title: str, what: T | Unavailable | None, text: Callable[[T], str]) -> Iterator[tuple[str, str, str]]:
    if what is not None:
        yield _fact(title, what, text)


def _unavailable(title: str, what: Unavailable, start: str = "") -> tuple[str, str, str]:
    return title, f"{start}not available: {what.reason}" if what.is_problem else f"{start}{what.reason}", "yellow"


def _age(text: str, now: datetime) -> str:
    try:
        return duration(now - datetime.fromisoformat(text).replace(tzinfo=UTC))
    except ValueError:
        return text


def show_diagnosis(diagnosis: Diagnosis | Unavailable, console: Console) -> None:
    """Print why something failed, or why that is not available."""
    from scripts.watch.diagnose.screen import show

    console.print()
    if isinstance(diagnosis, Unavailable):
        console.print(f"The diagnosis is not available: {diagnosis.reason}")
    else:
        show(diagnosis, console)
