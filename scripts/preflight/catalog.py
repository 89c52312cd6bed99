"""All checks, in the order in which people read them."""

from __future__ import annotations

from scripts.preflight import access, capacity, cluster, data, images, names, network, quotas, routes, tools, zones
from scripts.preflight.check import Check

CATALOG: tuple[Check, ...] = (
    *access.CHECKS,
    *tools.CHECKS,
    *zones.CHECKS,
    *quotas.CHECKS,
    *capacity.CHECKS,
    *names.CHECKS,
    *images.CHECKS,
    *network.CHECKS,
    *routes.CHECKS,
    *data.CHECKS,
    *cluster.CHECKS,
)
"""The first tells whether the account can be asked at all."""
