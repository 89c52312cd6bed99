"""The compute fleet of a cluster as ParallelCluster and EC2 have it: its status, and its nodes.

ParallelCluster keeps one status for all compute nodes of a cluster, in DynamoDB.
"""

from __future__ import annotations

from typing import Any, Final

from scripts.account.deployment import Deployment
from scripts.core.errors import OperationError

UNKNOWN: Final = "UNKNOWN"
STOPPED: Final = "STOPPED"
RUNNING: Final = "RUNNING"
PROTECTED: Final = "PROTECTED"
STOP_STATUSES: Final = ("STOP_REQUESTED", "STOPPING", STOPPED)
START_STATUSES: Final = ("START_REQUESTED", "STARTING", RUNNING)
"""In the order in which they follow each other; `request` writes the first, clustermgtd the others.

PROTECTED is beside them: running, but queues are closed whose nodes kept failing.
https://docs.aws.amazon.com/parallelcluster/latest/ug/slurm-protected-mode-v3.html
"""
_COMPUTE = {"Key": "parallelcluster:node-type", "Value": "Compute"}


def instances(deployment: Deployment) -> list[dict[str, Any]]:
    """Return the compute nodes that are not terminated, as EC2 describes them."""
    return [each for each in deployment.nodes() if _COMPUTE in each.get("Tags", [])]


def status(deployment: Deployment) -> str:
    """Return the fleet's status: one of `STOP_STATUSES`, of `START_STATUSES`, PROTECTED, or UNKNOWN (no cluster)."""
    table = f"parallelcluster-{deployment.settings.cluster_spec.name}"
    item = deployment.account.find("dynamodb", "get_item", TableName=table, Key={"Id": {"S": "COMPUTE_FLEET"}}) or {}
    return str(item.get("Item", {}).get("Data", {}).get("M", {}).get("status", {}).get("S", UNKNOWN))


def known_status(deployment: Deployment) -> str:
    """Return the `status` of the fleet; raise OperationError if there is no cluster."""
    known = status(deployment)
    if known == UNKNOWN:
        name, region = deployment.settings.cluster_spec.name, deployment.settings.region
        hint = f"./ultracluster deploy {deployment.name}"
        raise OperationError(f"There is no cluster {name} in {region}", hint)
    return known
