"""What ParallelCluster thinks of a deployment: the whole way from its settings to a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from config.settings import Settings
from rehearsal import stand_ins
from rehearsal.aws import EmulatedAws
from rehearsal.templates import Resolver, publish_files
from toolchain.assembly import Assembly
from toolchain.cluster import ClusterRequest, cluster_request
from toolchain.parallelcluster import Message, ParallelCluster

UNDERSTOOD: Mapping[str, str] = {
    "KeyPairValidator": "no SSH key: people come in through Session Manager",
    "EfaValidator": "nodes without EFA on a type that has it: the settings say so",
    "DetailedMonitoringValidator": "detailed monitoring costs, and the settings ask for it",
    "EfaPlacementGroupValidator": "no placement group: the settings say so, or a reservation places the nodes",
}
"""The warnings that a template may suppress, by validator, and why that is right."""


@dataclass(frozen=True)
class Report:
    """The verdict on one deployment.

    Attributes:
        cluster_name: ParallelCluster's name of the cluster.
        queues: Number of queues.
        messages: What schema and validators say, nothing suppressed.
        faults: Why the deployment would fail, or should not be made; none: it is in order.
    """

    cluster_name: str
    queues: int
    messages: tuple[Message, ...]
    faults: tuple[str, ...]


def prepare(aws: EmulatedAws, settings: Settings, assembly: Assembly) -> ClusterRequest:
    """Make in an emulated AWS what the cluster of an assembly is attached to, and return what its provider gets."""
    stand_ins.create(aws, settings)
    publish_files(assembly, aws)
    return cluster_request(assembly, Resolver(assembly, aws))


def examine(parallelcluster: ParallelCluster, request: ClusterRequest) -> Report:
    """Put a cluster before ParallelCluster: with the types of its template, and as CloudFormation would send it."""
    messages = parallelcluster.validate(request.configuration)
    suppressed = request.properties.get("SuppressValidators", [])
    unexplained = [name for name in suppressed if name.removeprefix("type:") not in UNDERSTOOD]
    faults = [f"SuppressValidators has {name}, which rehearsal/validation.py does not explain" for name in unexplained]
    left = [message for message in messages if f"type:{message.validator}" not in suppressed]
    # To suppress a validator for its warnings silences its errors, too; here they still count.
    against = [each for each in messages if each.level == "ERROR" or (each.level == "WARNING" and each in left)]
    faults += [f"{each.level} {each.validator}: {each.text}" for each in against]
    sent = parallelcluster.create(request, strings=True)
    if not sent.accepted:
        faults.append(f"refused as CloudFormation sends it: {sent.reason}")
    if list(sent.messages) != left:
        faults.append(f"as CloudFormation sends it the validators say something else: {sent.messages}")
    queues = request.configuration.get("Scheduling", {}).get("SlurmQueues", [])
    return Report(request.name, len(queues), tuple(messages), tuple(faults))
