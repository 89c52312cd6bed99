"""What ParallelCluster thinks of a deployment: the whole way from its settings to a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from config.settings import Settings
from emulator.aws import EmulatedAws
from emulator.templates import Resolver, publish_files
from scripts.emulated import create_prerequisites
from toolchain.assembly import Assembly
from toolchain.cluster import ClusterRequest, cluster_request
from toolchain.parallelcluster import Message, ParallelCluster
from ultracluster.domain.validator_warnings import TIMED_OUT, Verdict, judge


@dataclass(frozen=True)
class Report:
    """The verdict on one deployment.

    Attributes:
        cluster_name: ParallelCluster's name of the cluster.
        queues: Number of queues.
        messages: What schema and validators say, nothing suppressed, each once.
        verdicts: What the warnings among them do to the deployment, by validator.
        faults: Why the deployment would fail, or should not be made; none: it is in order.
    """

    cluster_name: str
    queues: int
    messages: tuple[Message, ...]
    verdicts: Mapping[str, Verdict]
    faults: tuple[str, ...]


def prepare(aws: EmulatedAws, settings: Settings, assembly: Assembly) -> ClusterRequest:
    """Make in an emulated AWS what the cluster of an assembly is attached to, and return what its provider gets."""
    create_prerequisites(aws, settings)
    publish_files(assembly, aws)
    return cluster_request(assembly, Resolver(assembly, aws))


def examine(parallelcluster: ParallelCluster, request: ClusterRequest, accepting: Mapping[str, str]) -> Report:
    """Put a cluster before ParallelCluster: with the types of its template, and as CloudFormation would send it.

    Args:
        parallelcluster: Who is asked.
        request: What the provider would get.
        accepting: What the settings accept: result of ``validator_warnings.accepted``.
    """
    messages = parallelcluster.validate(request.configuration)
    warned = {message.validator for message in messages if message.level == "WARNING"}
    verdicts = {validator: judge(validator, accepting) for validator in sorted(warned)}
    suppressed = [name.removeprefix("type:") for name in request.properties.get("SuppressValidators", [])]
    unexplained = [name for name in suppressed if judge(name, accepting).stops]
    faults = [f"SuppressValidators has {name}, whose warnings stop a deployment" for name in unexplained]
    left = [message for message in messages if message.validator not in suppressed]
    # To suppress a validator for its warnings silences its errors, too; here they still count.
    faults += [
        f"{each.level} {each.validator}: {each.text}"
        for each in messages
        if each.level == "ERROR" or (each.level == "WARNING" and (each in left or _is_missing(each)))
    ]
    sent = parallelcluster.create(request, strings=True)
    if not sent.accepted:
        faults.append(f"refused as CloudFormation sends it: {sent.reason}")
    if list(sent.messages) != left:
        faults.append(f"as CloudFormation sends it the validators say something else: {sent.messages}")
    queues = request.configuration.get("Scheduling", {}).get("SlurmQueues", [])
    return Report(request.name, len(queues), tuple(dict.fromkeys(messages)), verdicts, tuple(faults))


def _is_missing(warning: Message) -> bool:
    """Tell whether a script is not there: all are published here, and no permission is on its way."""
    return warning.validator == "AsyncTimedUrlValidator" and TIMED_OUT not in warning.text
