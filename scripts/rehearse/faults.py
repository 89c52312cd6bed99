"""The faults that a rehearsal can inject, as a person names them."""

from __future__ import annotations

from typing import Final

from config.settings import Settings
from emulator.faults import FAULTS
from scripts.errors import UnusableError
from ultracluster.domain.validators import VALIDATORS

SEEN: Final = {
    "node-script": '"protected-mode"',
    "node-names": '"node-names"',
    "capacity": '"insufficient-capacity"',
    "unhealthy": '"instance-unhealthy"',
    "lustre": "SHARED_STORAGE",
    "efa": "EFA_DEVICES",
    "network": '"node-silent"',
    "clock": '"clock"',
    "disk": '"disk-full"',
    "head-node-lost": '"head-node-stopped"',
}
"""What diagnose finds, in its JSON, of a fault that nodes have; it finds nothing of a reboot."""

STARTING: Final = ("node-script", "node-names", "capacity")
"""Faults that nodes have when they start."""


def is_of_nodes(settings: Settings, name: str, target: str) -> bool:
    """Tell whether a fault meets nodes of a deployment, and not its creation."""
    types = {each.instance_type for queue in settings.cluster.queues for each in queue.compute_resources}
    node = FAULTS[name].node
    return (node is not None and not node.is_played) or (name == "capacity" and target.partition("/")[0] in types)


def as_text() -> str:
    """Return the faults, a line each, and what their targets are."""
    lines = []
    for name, fault in FAULTS.items():
        lines.append(f"{name + (':TARGET' if fault.target else ''):17} {fault.what}")
        if fault.target:
            lines.append(f"{'':17} TARGET: {fault.target}")
    return "\n".join(lines)


def parse(text: str) -> tuple[str, str]:
    """Return name and target of a fault, of ``NAME`` or ``NAME:TARGET``.

    Raises:
        UnusableError: There is no such fault, or it takes another target, or none.
    """
    name, _, target = text.partition(":")
    if name not in FAULTS:
        raise UnusableError(f"--fault: got {name}; allowed: {', '.join(FAULTS)}")
    fault = FAULTS[name]
    if (target == "" and fault.target and not fault.is_target_optional) or (target and not fault.target):
        raise UnusableError(f"--fault: {name} takes {fault.target or 'nothing'} after a colon")
    if name == "warning" and target not in VALIDATORS:
        raise UnusableError(f"--fault warning: got {target}; allowed: {', '.join(sorted(VALIDATORS))}")
    return name, target
