"""Limits on names. Source: aws-parallelcluster 3.16.1, constants.py and validators/cluster_validators.py."""

import hashlib
import re

CLUSTER_NAME_MAX = 60
CLUSTER_NAME_MAX_WITH_ACCOUNTING = 40
DEFAULT_CLUSTER_NAME_MAX = 24
"""Characters of a name that nobody gave: it leaves 21 to the names of queue and compute resource in `NODE_FQDN_MAX`."""
CLUSTER_NAME_PATTERN = rf"[a-zA-Z][a-zA-Z0-9-]{{1,{CLUSTER_NAME_MAX - 1}}}"
DEPLOYMENT_NAME_PATTERN = r"[a-z][a-z0-9-]{1,39}"
NODE_GROUP_NAME_PATTERN = r"[a-z][a-z0-9-]{0,24}"
NODE_FQDN_MAX = 63
"""The Neuron runtime does not resolve a longer name (Neuron documentation, neuron-runtime/nrt-troubleshoot)."""
DEPLOYMENT_TAG = "ultracluster:deployment"
"""Tag of everything of a deployment with a budget, by which AWS Budgets knows what it costs."""
SNAPSHOT_TAG = "ultracluster:snapshots"
"""Tag of head nodes' root volumes and their snapshots; the value is the name of the deployment. Head nodes give it to
their own volume: of ParallelCluster's tags none is on a cluster's head node alone, and a lifecycle policy takes what
has any one of its target tags."""


def of_path(path: str) -> str:
    """Return the default name of a cluster: from its path in the tree of constructs, cut and made unique by a hash."""
    name = re.sub(r"[^a-zA-Z0-9]+", "-", path).lstrip("-0123456789").rstrip("-")
    if len(name) <= DEFAULT_CLUSTER_NAME_MAX:
        return name
    digest = hashlib.sha256(path.encode()).hexdigest()[:8]
    return f"{name[: DEFAULT_CLUSTER_NAME_MAX - 9].rstrip('-')}-{digest}"


def of_generation(name: str, generation: int) -> str:
    """Return what a cluster or its stack is called that has this name in the first generation."""
    return name if generation == 1 else f"{name}-{generation}"


def longest_node_fqdn(cluster: str, queue: str, compute_resource: str, max_count: int) -> str:
    """Return the longest full domain name that a node of a compute resource gets."""
    return f"{queue}-dy-{compute_resource}-{max_count}.{cluster}.pcluster"


def session_document(cluster: str) -> str:
    """Return the name of the Session Manager document of a cluster with users."""
    return f"ultracluster-{cluster}"


def ssh_document(cluster: str) -> str:
    """Return the name of the Session Manager document of a cluster for SSH; names of clusters have no dot."""
    return f"ultracluster-{cluster}.ssh"
