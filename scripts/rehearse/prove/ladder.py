"""The rungs of the first deployment, and the settings of each."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from ultracluster.domain import prices
from ultracluster.domain.cluster import SlurmSpec

Raw = dict[str, Any]
Interface = Literal["efa-only", "efa"]
INSTANCE_TYPE: Final = "trn1.32xlarge"
SMALL: Final = "small"
"""The queue of one chip."""
_SMALL_TYPE: Final = "trn1.2xlarge"
MANY: Final = 16
IDLE_MINUTES: Final = 10
"""After which nodes end at the latest, whatever the settings say: they are paid for."""


@dataclass(frozen=True)
class Rung:
    """A step of docs/tutorials/first-deployment.md.

    Attributes:
        name: Its name on the command line.
        title: Its heading there, without the number.
        does: What it does, for the question before it.
        minutes: Its time limit.
        nodes: How many nodes it starts, by the kind of queue.
        gb: GB that pass the NAT gateway at most.
    """

    name: str
    title: str
    does: str
    minutes: int
    nodes: Mapping[Literal["small", "large"], int]
    gb: int


RUNGS: Final = (
    Rung(
        "storage", "Network and storage, grown once",
        "creates network and file system, and grows both in place", 120, {}, 2,
    ),
    Rung(
        "head-node", "Head node only",
        "deploys the cluster, which has no node but the head node", 90, {}, 30,
    ),
    Rung(
        "roll-back", "An edited node script, and a forced failure",
        "updates the cluster, lets an update fail and leads out, stops and recovers the head node", 180, {}, 60,
    ),
    Rung(
        "one-chip", "One trn1.2xlarge",
        "adds a queue, starts one node in it, compiles and trains on its chip", 90, {"small": 1}, 30,
    ),
    Rung(
        "two-nodes", "Two trn1.32xlarge, with both EFA interface types",
        "measures the network of two nodes with both types, and trains on them", 180, {"large": 2}, 60,
    ),
    Rung(
        "sixteen-nodes", "Sixteen nodes, one of them killed",
        "trains on sixteen nodes, and terminates one under the job", 180, {"large": MANY}, 200,
    ),
    Rung("destroy", "Destroy and verify", "deletes everything", 120, {}, 0),
)  # fmt: skip
"""In the order in which each needs the one before it."""
NAMES: Final = tuple(each.name for each in RUNGS)


def rung(name: str) -> Rung:
    """Return a rung."""
    return RUNGS[NAMES.index(name)]


@dataclass(frozen=True)
class Choices:
    """What the settings of a rung depend on.

    Attributes:
        limit: The limit in dollars, which the guard on the head node gets, too.
        nodes: How many nodes the largest rung has.
        idle_minutes: After how many idle minutes nodes end at the latest.
    """

    limit: Decimal
    nodes: int = MANY
    idle_minutes: int = IDLE_MINUTES

    def nodes_of(self, step: Rung, large: tuple[str, str]) -> dict[tuple[str, str], int]:
        """Return how many nodes a rung starts, by queue and compute resource; `large` is that of trn1.32xlarge."""
        places = {"small": (SMALL, SMALL), "large": large}
        return {places[kind]: min(count, self.nodes) for kind, count in step.nodes.items()}


def violations(raw: Raw) -> list[str]:
    """Return why no ladder can be made of a settings file, a line each: path, value, what is allowed."""
    queues = raw["cluster"]["queues"]
    resource = queues[0]["compute_resources"][0]
    place = "cluster.queues[0]"
    rules = [
        ("network.existing", (raw.get("network") or {}).get("existing"), None, "null: the network is grown, too"),
        (f"{place}.capacity_type", queues[0].get("capacity_type", "ONDEMAND"), "ONDEMAND", "ONDEMAND"),
        (f"{place}.compute_resources[0].instance_type", resource["instance_type"], INSTANCE_TYPE, INSTANCE_TYPE),
        *(
            (f"{place}.compute_resources[0].{key}", resource.get(key), None, "null: nodes are billed by the hour")
            for key in ("capacity_reservation_id", "capacity_reservation_group_arn")
        ),
    ]
    broken = [f"{path}: got {value}; allowed: {allowed}" for path, value, wanted, allowed in rules if value != wanted]
    emails = (raw.get("budget") or {}).get("emails") or (raw.get("monitoring") or {}).get("emails")
    return [
        *broken,
        *([] if emails else ["monitoring.emails: got none; allowed: an address for alarms and the budget"]),
    ]


def settings_of(raw: Raw, step: str, choices: Choices, *, grown: bool = True, interface: Interface = "efa-only") -> Raw:
    """Return the settings of a rung, from those of a file that breaks none of `violations`.

    Args:
        raw: What the file says.
        step: The rung.
        choices: What else they depend on.
        grown: Whether network and file system have grown.
        interface: The type of EFA interfaces.
    """
    at, made = NAMES.index(step), deepcopy(raw)
    made["tags"] = {"project": "first-deployment", **(made.get("tags") or {}), **({"grown": "once"} if grown else {})}
    made["network"] = {**(made.get("network") or {}), "nat_addresses": 2 if grown else 1}
    storage = made["storage"] = {**(made.get("storage") or {}), "retain": False}
    storage["file_system"] = {
        **(storage.get("file_system") or {}),
        "deployment_type": "PERSISTENT_2",
        "capacity_gib": 2400 if grown else 1200,
        "throughput_mbps_per_tib": 125,
    }
    made["budget"] = {**(made.get("budget") or {}), "monthly_usd": _guarded(choices.limit), "action": "stop"}
    cluster = made["cluster"]
    cluster["efa_interface_type"] = interface
    slurm = cluster.get("slurm") or {}
    cluster["slurm"] = {**slurm, "idle_minutes": _idle(SlurmSpec.model_validate(slurm), choices.idle_minutes)}
    large = cluster["queues"][0]
    is_largest = at >= NAMES.index("sixteen-nodes")
    nodes = {"min_count": 0, "max_count": min(MANY if is_largest else 2, choices.nodes)}
    large["compute_resources"] = [{**large["compute_resources"][0], **nodes}]
    small = {key: value for key, value in large.items() if key != "existing_placement_group"}
    small |= {"name": SMALL, "placement_group": "none"}
    small["compute_resources"] = [
        {"name": SMALL, "instance_type": _SMALL_TYPE, "min_count": 0, "max_count": 1, "efa": False}
    ]
    cluster["queues"] = [large, *([small] if at >= NAMES.index("one-chip") else [])]
    return made


def _idle(slurm: SlurmSpec, most: int) -> int:
    """Return after how many idle minutes nodes end: as the settings say, but not later, and not never."""
    return min(slurm.idle_minutes, most) if slurm.idle_minutes >= 0 else most


def _guarded(limit: Decimal) -> float:
    """Return the limit of the guard on the head node, which may not be below an hour of one node."""
    hour = prices.usd_per_hour(INSTANCE_TYPE) or Decimal(0)
    return float(max(limit, hour.to_integral_value(rounding="ROUND_CEILING")))
