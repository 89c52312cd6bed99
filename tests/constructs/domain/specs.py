"""Specs that break no rule, and changes of them that are not validated."""

from __future__ import annotations

from typing import Any, TypeVar

from ultracluster.domain.cluster import ClusterSpec, ComputeResourceSpec, HeadNodeSpec, QueueSpec
from ultracluster.domain.spec import Spec

AnySpec = TypeVar("AnySpec", bound=Spec)

NODES = ComputeResourceSpec(name="trn1-32xl", max_count=16)
QUEUE = QueueSpec(name="trn1", compute_resources=[NODES])
CLUSTER = ClusterSpec(name="trn1-16", region="us-west-2", queues=[QUEUE])
RESERVATION = "cr-0123456789abcdef0"
GROUP_ARN = "arn:aws:resource-groups:us-west-2:123456789012:group/trn1"


def changed(spec: AnySpec, **values: Any) -> AnySpec:
    return spec.model_copy(update=values)


def cluster(**values: Any) -> ClusterSpec:
    return changed(CLUSTER, **values)


def with_head(**values: Any) -> ClusterSpec:
    return cluster(head_node=changed(HeadNodeSpec(), **values))


def with_queue(*resources: ComputeResourceSpec, **values: Any) -> ClusterSpec:
    """Return the cluster with a changed queue, whose nodes are changed if some are given."""
    return cluster(queues=[changed(QUEUE, compute_resources=list(resources) or [NODES], **values)])


def with_nodes(**values: Any) -> ClusterSpec:
    return with_queue(changed(NODES, **values))
