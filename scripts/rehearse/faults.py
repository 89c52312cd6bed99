"""The faults that a rehearsal can inject, as a person names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from config.settings import Settings
from scripts.core.errors import UnusableError
from scripts.emulated import FAULTS
from ultracluster.domain.validators import VALIDATORS


@dataclass(frozen=True)
class Lived:
    """How a fault of nodes is shown.

    Attributes:
        seen: What diagnose says of it, a part of its JSON; empty: nothing.
        showing: Commands on the head node without which it does not show; {job} is the id of the job.
        ending: Words of a command after its end, before the deployment's name: what a person has to do.
        requeued: Whether the job has to be queued again for another node: it would run on.
        is_job_lost: Whether the job has to be submitted again.
    """

    seen: str
    showing: str = ""
    ending: tuple[str, ...] = ()
    requeued: bool = False
    is_job_lost: bool = False


_BY_HEALTH_CHECK: Final = "scontrol requeue {job}"
"""The health check before a job finds it."""
STARTING: Final[Mapping[str, Lived]] = {
    "node-script": Lived('"protected-mode"', ending=("fleet", "start")),
    "node-names": Lived('"node-names"'),
    "capacity": Lived('"insufficient-capacity"'),
}
"""Faults that nodes have when they start."""
RUNNING: Final[Mapping[str, Lived]] = {
    "unhealthy": Lived('"instance-unhealthy"', requeued=True),
    "lustre": Lived("SHARED_STORAGE", showing=_BY_HEALTH_CHECK),
    "efa": Lived("EFA_DEVICES", showing=_BY_HEALTH_CHECK),
    "network": Lived('"node-silent"'),
    "clock": Lived('"clock"'),
    "disk": Lived('"disk-full"', showing="sbatch --wrap hostname || true"),
    "head-node-reboot": Lived(""),
    "head-node-lost": Lived('"head-node-stopped"', ending=("recover",)),
    "head-node-terminated": Lived('"head-node-gone"', ending=("recover",), is_job_lost=True),
}
"""Faults that nodes have under a job."""
UPDATING: Final = ("stale-node", "launch-templates")
"""Faults that let an update of the cluster fail."""


def is_of_nodes(settings: Settings, name: str, target: str) -> bool:
    """Tell whether a fault meets nodes of a deployment, and not its creation."""
    types = {each.instance_type for queue in settings.cluster.queues for each in queue.compute_resources}
    starts = name in STARTING and (name != "capacity" or target.partition("/")[0] in types)
    return starts or name in (*RUNNING, *UPDATING)


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
