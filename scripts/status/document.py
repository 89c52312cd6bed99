"""The state of a deployment as JSON; docs/schemas/status.json describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from scripts.slurm import SlurmState
from scripts.status.faults import faults, unseen
from scripts.status.model import CostNow, HeadNode, Instances, Stack, Status, Unseen

if TYPE_CHECKING:
    from scripts.diagnose.diagnose import Diagnosis


def document(status: Status, diagnosis: Diagnosis | Unseen | None = None) -> dict[str, Any]:
    """Return what can be written as JSON. What was not seen is null, and ``unseen`` says why."""
    found = faults(status)
    missing = {name: each.reason for name, each in unseen(status).items()}
    if isinstance(diagnosis, Unseen):
        missing["diagnosis"] = diagnosis.reason
    instances = None if isinstance(status.instances, Unseen) else status.instances
    return {
        "environment": status.environment,
        "name": status.name,
        "region": status.region,
        "cluster": status.cluster,
        "time": _plain(status.now),
        "healthy": not found,
        "faults": found,
        "stacks": [_plain(asdict(each)) for each in status.stacks if isinstance(each, Stack)],
        "other_clusters": _seen(status.others, many=True),
        "head_node": _head_node(instances, reached=status.session_manager),
        "compute_nodes": dict(instances.compute) if instances else None,
        "fleet": _seen(status.fleet),
        "slurm": None if isinstance(status.slurm, Unseen) else _slurm(status.slurm, status.slurm_seen),
        "software": None if status.software is None else _plain(asdict(status.software)),
        "file_system": _fields(status.file_system),
        "usage": _fields(status.usage),
        "reservations": _seen(status.reservations, many=True),
        "alarms": _seen(status.alarms),
        "cost": None if isinstance(status.cost, Unseen) else _cost(status.cost),
        "unseen": missing,
        "diagnosis": None if diagnosis is None or isinstance(diagnosis, Unseen) else diagnosis.model_dump(mode="json"),
    }


def _seen(found: Any, *, many: bool = False) -> Any:
    if isinstance(found, Unseen):
        return None
    return [_plain(asdict(each)) for each in found] if many else _plain(found)


def _fields(found: Any) -> dict[str, Any] | None:
    fields: dict[str, Any] | None = None if isinstance(found, Unseen) else _plain(asdict(found))
    return fields


def _head_node(instances: Instances | None, *, reached: bool | None) -> dict[str, Any] | None:
    found: HeadNode | None = instances.head_node if instances else None
    return {**_plain(asdict(found)), "session_manager": reached} if found else None


def _slurm(state: SlurmState, seen: datetime | None) -> dict[str, Any]:
    queues = {
        queue: {
            "availability": state.availability[queue],
            "nodes": dict(counts),
            "jobs": state.active_in(queue),
            "waiting": state.waiting_in(queue),
        }
        for queue, counts in state.nodes.items()
    }
    return {
        "seen": _plain(seen),
        "queues": queues,
        "problems": [asdict(each) for each in state.problems],
        "jobs": [asdict(each) for each in state.jobs],
        "job_counts": dict(state.counts),
    }


def _cost(found: CostNow) -> dict[str, Any]:
    return {
        "hourly_usd": float(found.nodes + found.standing),
        "nodes_usd": float(found.nodes),
        "standing_usd": float(found.standing),
        "unpriced": list(found.unpriced),
        "source": found.source,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value
