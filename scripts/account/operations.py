"""Operations on a deployment's stacks: who started what is in progress, and names that tell it to everybody else.

CloudFormation keeps two texts of who starts an operation: the name of the change set that it executes, which the
stack shows, and the client request token of a deletion, which the stack's events show. Both get a name of `new_name`.
https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_StackEvent.html
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from scripts.account import stacks
from scripts.account.deployment import Account, Deployment
from scripts.account.stack_state import StackState
from scripts.core.errors import OperationError
from scripts.core.options import ROOT

_NAME = re.compile(r"ultracluster-(?P<verb>[a-z]+)-(?P<who>.*)-(?P<origin>[0-9a-f]{12})-[0-9a-f]{12}")
_LONGEST_WHO: Final = 60
"""Change sets and tokens have 128 characters at most, and no others than letters, digits and hyphens."""
_PIPELINES: Final = {"GITHUB_ACTIONS": "GITHUB_REPOSITORY", "CODEBUILD_BUILD_ID": "CODEBUILD_INITIATOR"}
"""Variables of a job of a pipeline, and those that name what it belongs to: its next run is on another machine.

https://docs.github.com/en/actions/reference/workflows-and-actions/variables,
https://docs.aws.amazon.com/codebuild/latest/userguide/build-env-ref-env-vars.html
"""
_MINUTES_EARLIER: Final = 5
_TIME: Final = re.compile(r"[0-9]{9,}$")
"""Of a session's name that a program made: seconds or more since 1970."""


@dataclass(frozen=True)
class Operation:
    """The last operation on a stack.

    Attributes:
        stack: Name of the stack.
        region: Its Region.
        status: What the stack is.
        since: When the operation started.
        by: Who started it, as far as CloudFormation knows.
        name: Its name by `new_name`; empty: it has none, for another program started it.
        is_own: Whether this person started it, from this checkout on this machine, or the same pipeline did.
    """

    stack: str
    region: str
    status: StackState
    since: datetime
    by: str
    name: str
    is_own: bool

    def __str__(self) -> str:
        return f"{self.stack}: {self.status}, started {self.since:%Y-%m-%d %H:%M:%S} UTC by {self.by}"


def new_name(account: Account, verb: str) -> str:
    """Return a name that no other operation has, with the verb, who runs this program, and where.

    Raises:
        botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError: AWS does not say whose credentials they are.
    """
    arn = _caller(account)
    who = re.sub(r"[^A-Za-z0-9]+", "-", re.split(r"[:/]", arn)[-1])[:_LONGEST_WHO].strip("-")
    return f"ultracluster-{verb}-{who or 'unnamed'}-{_origin(arn)}-{uuid.uuid4().hex[:12]}"


def _caller(account: Account) -> str:
    return str(account.ask("sts", "get_caller_identity")["Arn"])


def _origin(arn: str) -> str:
    """Return a digest of who runs this program, and where: the user, machine and checkout, or the pipeline.

    The time in the name of a role's session, such as ``botocore-session-1760000000``, differs in each process.
    """
    if pipeline := next((os.environ.get(of, "") for job, of in _PIPELINES.items() if os.environ.get(job)), ""):
        parts = [*arn.split("/")[:2], pipeline]
    else:
        parts = [_TIME.sub("", arn), str(os.getuid()), socket.gethostname(), str(ROOT)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def check(deployment: Deployment) -> list[Operation]:
    """Return what this person has in progress on a deployment's stacks, unless something of others is.

    Every command that changes a deployment calls this before it does. One call for all stacks of the Region, and one
    for the events of each that is in progress. Needs cloudformation:DescribeStacks and DescribeStackEvents.

    Raises:
        OperationError: Somebody else's operation is in progress; the message has who and since when.
        botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError: AWS does not answer, or refuses.
    """
    deployment.account.forget()
    settings, listed = deployment.settings, deployment.stacks()
    names = {*map(settings.stack_name, settings.parts), *stacks.other_clusters(settings, listed)}
    hint = f"./ultracluster status {deployment.name} --watch follows it; then the same command"
    return check_stacks(deployment.account, [each for each in listed if each["StackName"] in names], hint)


def check_stacks(account: Account, described: Iterable[dict[str, Any]], hint: str) -> list[Operation]:
    """Do the same for stacks as CloudFormation describes them, with a hint on what to do."""
    busy = [last(account, each) for each in described if StackState.of(each).is_in_progress]
    others = [each for each in busy if not each.is_own]
    if others:
        raise refusal("Somebody else's operation is in progress; this command changed nothing", others, hint)
    return busy


def last(account: Account, stack: dict[str, Any]) -> Operation:
    """Return the last operation on a stack, given as CloudFormation describes it.

    All events of an operation have the token of the request that started it. Where it executes a change set, the CDK's
    token starts with `exec`, and the stack has the change set's id; the id may be of an earlier operation otherwise.
    """
    own = [each for each in stacks.events(account.client("cloudformation"), stack["StackId"]) if each.is_own]
    token = own[0].token if own else ""
    same = [each for each in own if each.token == token]
    since = same[-1].time if same else stack.get("LastUpdatedTime", stack["CreationTime"])
    change_set = stack.get("ChangeSetId", "").split("/")[1:2] if token.startswith("exec") else []
    return _operation(account, stack, since, token, *change_set)


def of_change_set(account: Account, stack: dict[str, Any], change_set: dict[str, Any]) -> Operation:
    """Return who waits to create a stack by a change set, given as CloudFormation lists it."""
    return _operation(account, stack, change_set["CreationTime"], "", change_set["ChangeSetName"])


def _operation(account: Account, stack: dict[str, Any], since: datetime, token: str, change_set: str = "") -> Operation:
    parsed = next(filter(None, map(_NAME.fullmatch, (token, change_set))), None)
    if parsed:
        by = f"{parsed['who']} with ./ultracluster {parsed['verb']}"
    elif token.startswith("Console-"):
        by = "the console of AWS"
    elif token.startswith(("create", "exec", "update")):
        by = "the CDK without ./ultracluster"
    else:
        by = "a program that left no name"
    is_own = parsed is not None and parsed["origin"] == _origin(_caller(account))
    return Operation(
        stack["StackName"],
        stack["StackId"].split(":")[3],
        StackState.of(stack),
        since,
        f"{by} (you)" if is_own else by,
        parsed[0] if parsed else "",
        is_own,
    )


def refusal(problem: str, operations: Sequence[Operation], hint: str) -> OperationError:
    """Return the error of a command that stops for operations on a deployment's stacks."""
    lines = [f"{problem}{':' if operations else '.'}", *(f"  {each}" for each in operations)]
    if not all(each.name for each in operations):
        first = min(each.since for each in operations) - timedelta(minutes=_MINUTES_EARLIER)
        hint += f"\nwho it was, minutes later: {_cloudtrail(first, operations[0].region)}"
    return OperationError("\n".join(lines), hint)


def _cloudtrail(since: datetime, region: str) -> str:
    """Return the command that lists who called CloudFormation since a time.

    https://docs.aws.amazon.com/awscloudtrail/latest/userguide/view-cloudtrail-events-cli.html
    """
    return (
        "aws cloudtrail lookup-events --lookup-attributes "
        "AttributeKey=EventSource,AttributeValue=cloudformation.amazonaws.com "
        f"--start-time {since:%Y-%m-%dT%H:%M:%SZ} --output text --region {region} "
        "--query \"Events[?ReadOnly=='false'].[EventTime,Username,EventName]\""
    )
