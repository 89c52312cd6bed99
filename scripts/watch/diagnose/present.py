"""How a cluster is now: what its logs tell may be over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scripts.account import compute_fleet, troubles
from scripts.account.causes import Evidence
from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import Answer, HeadNode, is_head_node, reaching
from scripts.account.remote.programs.state import PROBLEMS_LISTED
from scripts.account.slurm import SlurmState
from scripts.core.aws_errors import is_denied
from scripts.core.clock import Clock
from scripts.core.errors import HeadNodeError
from scripts.watch.diagnose.reader import Reader

SCOPES = ("instance", *troubles.KINDS)
"""Kinds of evidence of the present, that which concerns most of the cluster first."""
WAIT_SECONDS = 20.0
"""How long to wait for the answer of the head node: a call each second. That Slurm does not answer takes ten."""


@dataclass(frozen=True)
class Present:
    """A cluster as it is now.

    Attributes:
        evidence: What is wrong now, in the order of `SCOPES`.
        known: The `SCOPES` that were looked at: what is not in `evidence` is not so now.
        instances: Ids of the instances that there are; None: not known.
        head_node: The id of the head node that runs; empty: none does, or that is not known.
        unknown: What could not be looked at, and why.
    """

    evidence: tuple[Evidence, ...] = ()
    known: frozenset[str] = frozenset()
    instances: frozenset[str] | None = None
    head_node: str = ""
    unknown: tuple[str, ...] = ()


def look(reader: Reader, clock: Clock) -> Present:
    """Look at a cluster: its fleet's status, what Slurm answers, the head node's disks. A call each second for 20 s.

    Needs dynamodb:GetItem, ec2:DescribeInstances, ssm:SendCommand and GetCommandInvocation; without them it is unknown.
    """
    deployment = reader.deployment
    alive = [each for each in reader.instances() or () if each["State"]["Name"] not in ("terminated", "shutting-down")]
    instances = None if reader.instances() is None else frozenset(each["InstanceId"] for each in alive)
    head = next((each["InstanceId"] for each in alive if is_head_node(each) and each["State"]["Name"] == "running"), "")
    status = _fleet(deployment)
    answer = _ask(deployment, clock) if head else ""
    source, now = "the cluster as it is now", clock.now()
    seen = (Evidence(kind=k, source=source, time=now, text=t) for k, t in evident(deployment.name, status, answer))
    unknown = []
    if status is None:
        unknown.append("the fleet's status now: dynamodb:GetItem is not allowed")
    if isinstance(answer, str) and answer:
        unknown.append(f"what Slurm answers now: {answer}")
    return Present(tuple(seen), known_of(status, answer), instances, head, tuple(unknown))


def known_of(status: str | None, answer: Answer | str) -> frozenset[str]:
    """Return the `SCOPES` that a status of the fleet and an answer of the head node tell of."""
    known = set() if status in (None, compute_fleet.UNKNOWN) else {"fleet"}
    if isinstance(answer, Answer):
        told = troubles.read(answer)
        known |= {"answer"} | ({"disk"} if told.disks else set())
        if isinstance(told.slurm, SlurmState):
            known |= {"accounting"} | ({"node"} if len(told.slurm.problems) < PROBLEMS_LISTED else set())
    return frozenset(known)


def evident(deployment: str, status: str | None, answer: Answer | str) -> Iterator[tuple[str, str]]:
    """Yield what is wrong by a status of the fleet and an answer of the head node, with its kind, `SCOPES` first."""
    told = troubles.read(answer) if isinstance(answer, Answer) else None
    for each in troubles.troubles(deployment, status, told.slurm if told else None, told.disks if told else {}):
        yield from ((each.kind, text) for text in each.texts)


def _fleet(deployment: Deployment) -> str | None:
    from botocore.exceptions import ClientError

    try:
        return compute_fleet.status(deployment)
    except ClientError as error:
        if not is_denied(error):
            raise
        return None


def _ask(deployment: Deployment, clock: Clock) -> Answer | str:
    """Return the head node's answer to `troubles.SCRIPT`; a text: why there is none."""
    from botocore.exceptions import ClientError

    try:
        head_node = HeadNode(deployment, clock)
        with reaching(deployment, head_node.instance_id):
            answer = head_node.answer_within(troubles.SCRIPT, seconds=60, limit=WAIT_SECONDS)
    except HeadNodeError as error:
        return str(error)
    except ClientError as error:
        if not is_denied(error):
            raise
        return f"ssm:{error.operation_name} is not allowed"
    return answer or f"the head node did not answer within {WAIT_SECONDS:.0f} s"
