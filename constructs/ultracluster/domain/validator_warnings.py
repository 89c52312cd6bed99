"""What a warning of one of ParallelCluster's validators does to the deployment of a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass

from ultracluster.domain.cluster import ClusterSpec
from ultracluster.domain.validators import BROKEN, TRANSIENT, VALIDATORS


@dataclass(frozen=True)
class Verdict:
    """Whether a warning stops the deployment of one cluster, and why or what to do."""

    stops: bool
    explanation: str


def accepted(spec: ClusterSpec) -> dict[str, str]:
    """Return the validators whose warnings the settings of a cluster accept, with the reason."""
    reasons = {}
    if spec.head_node.ssh_key_name is None:
        reasons["KeyPairValidator"] = "no SSH key: people come in through Session Manager"
    if any(
        resource.has_efa
        for queue in spec.queues
        if queue.capacity_type != "CAPACITY_BLOCK"
        and queue.placement_group_label is None
        and queue.existing_placement_group is None
        for resource in queue.compute_resources
    ):
        reason = "no placement group: the settings say so, or a reservation places the nodes"
        reasons["EfaPlacementGroupValidator"] = reason
    if any(resource.efa is False for queue in spec.queues for resource in queue.compute_resources):
        reasons["EfaValidator"] = "nodes without EFA on a type that has it: the settings say so"
    if spec.monitoring.detailed_monitoring:
        reasons["DetailedMonitoringValidator"] = "detailed monitoring costs, and the settings ask for it"
    return reasons | {each.validator: each.reason for each in spec.accepted_warnings}


def suppressed(spec: ClusterSpec) -> list[str]:
    """Return the validators that the provider leaves out, as ``type:...`` of ParallelCluster's SuppressValidators."""
    return [f"type:{validator}" for validator in dict.fromkeys((*TRANSIENT, *accepted(spec)))]


def judge(validator: str, accepting: Mapping[str, str]) -> Verdict:
    """Return what a warning of a validator does to a deployment whose settings accept others (see ``accepted``)."""
    if validator in accepting:
        return Verdict(False, f"accepted: {accepting[validator]}")
    if validator not in VALIDATORS:
        return Verdict(True, "stops the deployment: a warning that this project does not know")
    advice = VALIDATORS[validator]
    if validator in TRANSIENT:
        return Verdict(False, f"transient, stops no deployment: {advice}")
    if validator in BROKEN:
        return Verdict(True, f"means a broken cluster, stops the deployment: {advice}")
    accept = f"accept it: cluster.accepted_warnings: [{{validator: {validator}, reason: ...}}]"
    return Verdict(True, f"stops the deployment: {advice}, or {accept}")
