"""How long operations on resources typically take."""

from __future__ import annotations

import math
from collections.abc import Mapping

from scripts.account.stacks import CLUSTER, NESTED
from toolchain.durations import BOOT_SECONDS, UPDATE_SECONDS, seconds

CLUSTER_SECONDS: Mapping[str, float] = {"CREATE": 600.0, "UPDATE": 180.0, "DELETE": 300.0}
"""Seconds of a cluster's own stack that is not known in detail; AWS's function checks it every two minutes only."""
NESTED_SECONDS = 90.0
"""Seconds of a nested stack that is not known in detail."""
PART_SECONDS: Mapping[str, float] = {
    "network": 140.0,
    "storage": 420.0,
    "team": 720.0,
    "cluster": 710.0,
    "monitoring": 130.0,
}
"""Seconds to create the stacks of a deployment: the longest chains of their templates' resources, rounded."""


def typical_seconds(resource_type: str, action: str) -> float:
    """Return how many seconds it typically takes to create, update or delete a resource of a type."""
    if resource_type == CLUSTER:
        return CLUSTER_SECONDS.get(action, 0.0)
    if resource_type == NESTED:
        return NESTED_SECONDS
    typical = seconds(resource_type)
    if typical < math.inf:
        return typical
    return {"CREATE": BOOT_SECONDS, "UPDATE": UPDATE_SECONDS}.get(action, 0.0)  # a head node is waited for
