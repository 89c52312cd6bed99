"""How a cluster is now: what its logs tell may be over."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from scripts.account import compute_fleet
from scripts.account.causes import Evidence
from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import Answer, HeadNode, is_head_node, reaching
from scripts.account.remote.programs.slurm import PROBLEMS_LISTED
from scripts.account.slurm import COMMAND, SlurmError, SlurmState, parse
from scripts.core.aws_errors import is_denied
from scripts.core.clock import Clock
from scripts.core.errors import HeadNodeError
from scripts.watch.diagnose.reader import Reader

SCOPES = ("instance", "answer", "disk", "fleet", "node")
"""Kinds of evidence of the present, that which concerns most of the cluster first."""
FULL_PERCENT = 99
SECONDS_FOR_SLURM = 8
"""Slurm that has not answered by then is stuck: of 1,875 nodes it tells in less than a second."""
WAIT_SECONDS = 15.0
"""How long to wait for the answer of the head node at most: a call each second."""
TRANSIENT = re.compile(
    r"Scheduler health check failed|Static node maintenance|Node start up|inactive partition|during cluster update"
)
"""Reasons that ParallelCluster gives nodes which it replaces or starts; what led to that is in its logs.

clustermgtd.py of aws-parallelcluster-node; finalize_compute.rb and update_head_node.rb of aws-parallelcluster-cookbook.
"""
_DISK = re.compile(r"^ *(\d+)% (/\S*)$", re.MULTILINE)
SCRIPT = (
    "timeout 3 df --output=pcent,target / /home /tmp /var/log /var/spool/slurm.state 2>/dev/null\n"
    f"timeout --signal=KILL {SECONDS_FOR_SLURM} {shlex.join(COMMAND)}\n"
    f'[ $? -ne 137 ] || echo "no answer within {SECONDS_FOR_SLURM} s" >&2'
)


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
    """Look at a cluster: its fleet's status, what Slurm answers, the head node's disks. A call each second for 15 s.

    Needs dynamodb:GetItem, ec2:DescribeInstances, ssm:SendCommand and GetCommandInvocation; without them it is unknown.
    """
    deployment = reader.deployment
    alive = [each for each in reader.instances() or () if each["State"]["Name"] not in ("terminated", "shutting-down")]
    instances = None if reader.instances() is None else frozenset(each["InstanceId"] for each in alive)
    head = next((each["InstanceId"] for each in alive if is_head_node(each) and each["State"]["Name"] == "running"), "")
    status = _fleet(deployment)
    answer = _ask(deployment, clock) if head else ""
    seen = _evidence(status, answer, clock.now())
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
        known |= {"answer"} | ({"disk"} if _DISK.search(answer.output) else set())
        state = _state(answer)
        if isinstance(state, SlurmState) and len(state.problems) < PROBLEMS_LISTED:
            known.add("node")
    return frozenset(known)


def _evidence(status: str | None, answer: Answer | str, now: datetime) -> Iterator[Evidence]:
    for kind, text in troubles(status, answer):
        yield Evidence(kind=kind, source="the cluster as it is now", time=now, text=text)


def troubles(status: str | None, answer: Answer | str) -> Iterator[tuple[str, str]]:
    """Yield what is wrong by a status of the fleet and an answer of the head node, with its kind, `SCOPES` first."""
    state = _state(answer) if isinstance(answer, Answer) else None
    if isinstance(state, str):
        yield "answer", f"Slurm on the head node does not answer: {state}"
    if isinstance(answer, Answer):
        for percent, folder in dict.fromkeys(_DISK.findall(answer.output)):
            if int(percent) >= FULL_PERCENT:
                yield "disk", f"The disk of {folder} on the head node is {percent} % full"
    slurm = state if isinstance(state, SlurmState) else None
    if status == compute_fleet.PROTECTED:
        yield "fleet", f"The compute fleet is {status}"
    elif status in compute_fleet.STOP_STATUSES and slurm and slurm.waiting_jobs:
        yield "fleet", f"The compute fleet is {status}, and {slurm.waiting_jobs:,} jobs wait"
    elif slurm and status in compute_fleet.START_STATUSES:
        for queue, availability in slurm.availability.items():
            if availability != "up":
                yield "fleet", f"The queue {queue} takes no jobs: Slurm has it {availability}"
    for each in slurm.problems if slurm else ():
        if TRANSIENT.search(each.reason):
            continue
        since = f"{each.count:,} {each.state} since {each.since}"
        yield "node", f"{since}: node {each.nodes} reason set to: {each.reason}"


def _state(answer: Answer) -> SlurmState | str:
    """Return what Slurm says; a text: the words in which it does not."""
    try:
        return parse(answer.output, answer.errors)
    except SlurmError as error:
        return str(error)


def _fleet(deployment: Deployment) -> str | None:
    from botocore.exceptions import ClientError

    try:
        return compute_fleet.status(deployment)
    except ClientError as error:
        if not is_denied(error):
            raise
        return None


def _ask(deployment: Deployment, clock: Clock) -> Answer | str:
    """Return the head node's answer to `SCRIPT`; a text: why there is none."""
    from botocore.exceptions import ClientError

    answer: Answer | None = None

    def has_answered() -> bool:
        nonlocal answer
        answer = head_node.answer(command_id)
        return answer is not None

    try:
        head_node = HeadNode(deployment, clock)
        with reaching(deployment, head_node.instance_id):
            command_id = head_node.start(SCRIPT, seconds=60)
            clock.until(has_answered, every=1, limit=WAIT_SECONDS)
    except HeadNodeError as error:
        return str(error)
    except ClientError as error:
        if not is_denied(error):
            raise
        return f"ssm:{error.operation_name} is not allowed"
    return answer or f"the head node did not answer within {WAIT_SECONDS:.0f} s"
