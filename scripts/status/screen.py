"""The state of a deployment on a terminal of 80 columns or more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from scripts.preflight.reservations import BEFORE_ITS_START
from scripts.screen import dollars, duration, table
from scripts.slurm import SlurmState
from scripts.status.faults import faults
from scripts.status.model import (
    CostNow,
    FileSystem,
    HeadNode,
    Reservation,
    Stack,
    Status,
    Unseen,
    Usage,
)
from scripts.status.software import Software

if TYPE_CHECKING:
    from rich.console import RenderableType

_STATES = {
    "idle": ("idle",),
    "running": ("allocated", "mixed", "completing"),
    "off": ("power saving",),
    "starting": ("powering up",),
    "stopping": ("powering down",),
    "drained": ("drained", "draining"),
}
"""Columns of the table of queues, and the states of nodes that count in each; all others count in the last one."""
_OPEN = "up"
_SOFTWARE = {"building": "yellow", "failed": "bold red", "interrupted": "bold red"}


def render(status: Status) -> Iterator[RenderableType]:
    """Yield what there is to show, from top to bottom."""
    yield from _stacks(status)
    if status.exists:
        yield Text()
        yield from _cluster(status)
        yield from _slurm(status)
        yield Text()
        yield from _storage(status)
        yield from _reservations(status)
        yield from _cost(status)
        yield _line("Connect", f"make connect ENV={status.environment}")
    yield Text()
    yield from _verdict(faults(status))


def _stacks(status: Status) -> Iterator[RenderableType]:
    found = table("Stack", "Status", ">Changed")
    for each in status.stacks:
        if isinstance(each, Stack):
            style = "bold red" if each.failed else "" if each.status else "dim"
            found.add_row(each.name, Text(each.status or "none", style), _ago(each.changed, status.now))
    if found.row_count:
        yield found
    if reasons := dict.fromkeys(each.reason for each in status.stacks if isinstance(each, Unseen)):
        yield _line("Stacks", f"not seen: {', '.join(reasons)}", "yellow")
    if isinstance(status.others, Unseen):
        yield _line("Others", f"other clusters of this deployment: {status.others.reason}", "yellow")
    else:
        for other in status.others:
            yield _line("Beside", f"{other.name} is {other.status}: another cluster of this deployment", "yellow")


def _cluster(status: Status) -> Iterator[RenderableType]:
    if isinstance(status.instances, Unseen):
        yield _not_seen("Nodes", status.instances)
    else:
        head_node = status.instances.head_node
        yield _line("Head node", _head_node(head_node, status) if head_node else "none")
        compute = ", ".join(f"{count:,} {state}" for state, count in sorted(status.instances.compute.items()))
        yield _line("Nodes", f"{compute} (EC2)" if compute else "none runs (EC2)")
    if isinstance(status.fleet, Unseen):
        yield _not_seen("Fleet", status.fleet)
    else:
        yield _line("Fleet", status.fleet)
    if status.software:
        yield from _software(status.software, status.now)


def _software(found: Software, now: datetime) -> Iterator[RenderableType]:
    state = "interrupted" if found.is_interrupted else found.state or "starting"
    since = f" since {_age(found.since.removesuffix('Z'), now)}: {found.environment}" if found.since else ""
    yield _line("Software", f"{state}{since}", _SOFTWARE.get(state, ""))
    if state != "ready":
        for each in found.log:
            yield _line("", each, "dim")
    if found.failed_nodes:
        nodes = table("Nodes that could not start", ">Ago", "Reason")
        for node in found.failed_nodes:
            nodes.add_row(node.name, _age(node.time, now), Text(node.reason))
        yield Text()
        yield nodes


def _head_node(head_node: HeadNode, status: Status) -> str:
    addresses = [each for each in (head_node.private_address, head_node.public_address) if each]
    reached = {True: "Session Manager reaches it", False: "Session Manager does not reach it"}
    facts = [
        head_node.instance_id,
        head_node.instance_type,
        head_node.state,
        *addresses,
        f"launched {_ago(head_node.launched, status.now)}",
        *([reached[status.session_manager]] if status.session_manager is not None else []),
    ]
    return ", ".join(facts)


def _slurm(status: Status) -> Iterator[RenderableType]:
    state = status.slurm
    if isinstance(state, Unseen):
        yield _not_seen("Queues", state)
        return
    yield Text()
    yield _queues(state)
    for queue, available in state.availability.items():
        if available != _OPEN:
            yield Text(f"Queue {queue} takes no jobs: it is {available}.", "yellow")
    if state.problems:
        yield Text()
        yield _problems(state, status.now)


def _queues(state: SlurmState) -> RenderableType:
    found = table("Queue", *(f">{column}" for column in (*_STATES, "other", "jobs", "waiting")))
    found.padding = (0, 0)  # ten columns in 80 characters
    for queue, counts in state.nodes.items():
        shown = [sum(counts.get(each, 0) for each in states) for states in _STATES.values()]
        rest = sum(counts.values()) - sum(shown)
        numbers = [*shown, rest, state.active_in(queue), state.waiting_in(queue)]
        found.add_row(queue, *(f"{each:,}" if each else "-" for each in numbers))
    return found


def _problems(state: SlurmState, now: datetime) -> RenderableType:
    found = table("Nodes that take no jobs", "State", ">Since", "Reason")
    for each in state.problems:
        found.add_row(each.nodes, each.state, _age(each.since, now), Text(each.reason))
    return found


def _storage(status: Status) -> Iterator[RenderableType]:
    if isinstance(status.file_system, Unseen):
        yield _not_seen("Storage", status.file_system)
        return
    yield _line("Storage", f"{_file_system(status.file_system)}{_usage(status.file_system, status.usage)}")
    if isinstance(status.usage, Unseen):
        yield _not_seen("", status.usage)


def _file_system(found: FileSystem) -> str:
    return f"{found.file_system_id}, {found.lifecycle}, {found.capacity_gib:,} GiB, {found.throughput_mbps:,.0f} MB/s"


def _usage(file_system: FileSystem, found: Usage | Unseen) -> str:
    if isinstance(found, Unseen):
        return ""
    parts = []
    if found.free_bytes is not None:
        gib = found.free_bytes / 1024**3
        parts.append(f"{gib:,.0f} GiB free ({gib / file_system.capacity_gib:.0%})")
    if found.used_mbps is not None:
        parts.append(f"{found.used_mbps:,.0f} MB/s used ({found.used_mbps / file_system.throughput_mbps:.0%})")
    return f"; {', '.join(parts) or 'no metrics of the last 10 minutes'}"


def _reservations(status: Status) -> Iterator[RenderableType]:
    if isinstance(status.reservations, Unseen):
        yield _not_seen("Reserved", status.reservations)
        return
    for each in status.reservations:
        yield _line("Reserved", _reservation(each, status.now))


def _reservation(found: Reservation, now: datetime) -> str:
    kind = "Capacity Block " if found.is_block else ""
    if not found.total:
        return f"{kind}{found.reservation_id}, {found.state}"
    text = f"{kind}{found.reservation_id}, {found.state}, {found.total} {found.instance_type}"
    if found.state == "active":
        text += f", {found.total - found.left} used, {found.left} left"
    if found.begins and found.state in BEFORE_ITS_START:
        text += f", begins in {duration(found.begins - now)}"
    if found.ends:
        left = duration(abs(found.ends - now))
        text += f", ends in {left}" if found.ends > now else f", ended {left} ago"
    return text


def _cost(status: Status) -> Iterator[RenderableType]:
    if isinstance(status.cost, Unseen):
        yield _not_seen("Cost", status.cost)
        return
    found = status.cost
    total, nodes, standing = (dollars(each) for each in (found.nodes + found.standing, found.nodes, found.standing))
    text = f"{total} an hour: {nodes} for compute nodes, {standing} for the rest ({found.source})"
    yield _line("Cost", text + _remarks(status, found))


def _remarks(status: Status, found: CostNow) -> str:
    others = [] if isinstance(status.others, Unseen) else [f"{each.name} (make inventory)" for each in status.others]
    unpriced = [*found.unpriced, *others]
    text = f"; not in it: {', '.join(unpriced)}" if unpriced else ""
    missing = [each.name for each in status.stacks if isinstance(each, Stack) and not each.status]
    return text + (f"; counted as if there were {', '.join(missing)}" if missing else "")


def _verdict(found: Sequence[str]) -> Iterator[RenderableType]:
    if not found:
        yield Text("Healthy.", "bold green")
        return
    yield Text("Not as it should be:", "bold red")
    for each in found:
        yield Text(f"- {each}")


def _line(title: str, text: str, style: str = "") -> RenderableType:
    found = Table.grid(padding=(0, 1))
    found.add_column(width=9)
    found.add_column(overflow="fold")
    found.add_row(title, Text(text, style))
    return found


def _not_seen(title: str, found: Unseen) -> RenderableType:
    return _line(title, f"not seen: {found.reason}" if found.is_fault else found.reason, "yellow")


def _ago(when: datetime | None, now: datetime) -> str:
    return f"{duration(now - when)} ago" if when else ""


def _age(text: str, now: datetime) -> str:
    try:
        return duration(now - datetime.fromisoformat(text).replace(tzinfo=UTC))
    except ValueError:
        return text
