"""An account that has recorded certain events and log lines, and counts what it is asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jmespath
import yaml
from botocore.exceptions import ClientError

from config.settings import load
from scripts.account.deployment import Account, Deployment
from scripts.core.clock import Clock
from scripts.core.options import CONFIG
from scripts.watch.diagnose.diagnose import Diagnosis
from scripts.watch.diagnose.present import SCOPES
from scripts.watch.diagnose.reader import KINDS
from tests.scripts import reports, slurm_samples
from tests.scripts.refusals import refusal
from tests.scripts.slurm_samples import IDLE

SAMPLES: list[dict[str, str]] = yaml.safe_load(Path(__file__).with_name("samples.yaml").read_text(encoding="utf-8"))
ISSUES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("issues.yaml").read_text(encoding="utf-8"))
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
CLUSTER_GROUP = "/aws/parallelcluster/trn1-16-202605010900"
HEAD_NODE = "i-0a1b2c3d4e5f60718"
PROVIDER_GROUP = "/aws/lambda/pcluster-cfn-1a2b"
QUOTA = "CREATE_FAILED AWS::EC2::EIP Address: The maximum number of addresses has been reached."
_RESULTS = {
    "describe_stack_events": "StackEvents",
    "list_stacks": "StackSummaries",
    "list_change_sets": "Summaries",
    "list_stack_resources": "StackResourceSummaries",
    "describe_instances": "Reservations",
    "describe_log_groups": "logGroups",
    "filter_log_events": "events",
}


class Now(Clock):
    def now(self) -> datetime:
        """Return `NOW`."""
        return NOW


class Recorded(Account):
    """AWS, as far as a diagnosis asks it.

    Attributes:
        stacks: Status by name; their ids are arn:.../NAME/id.
        events: Events by stack name, oldest first.
        deleted: What ListStacks tells of deleted stacks.
        change_sets: Those of every stack.
        resources: Resources by stack name.
        instances: The instances of the cluster, by id their state; the first is the head node.
        launched: When they were launched.
        lines: Group, stream, time and text of log lines.
        fleet: The fleet's status; empty: none is recorded.
        answer: What the head node prints when it is asked, and its errors; None: nobody may ask it.
        denied: Operations that are not allowed.
        calls: Counts of calls by operation; each page is one.
        lines_in_page: How many lines a page of a log has at most.
    """

    def __init__(self, region: str) -> None:
        super().__init__(region)
        self.stacks: dict[str, str] = {}
        self.events: dict[str, list[dict[str, Any]]] = {}
        self.deleted: list[dict[str, Any]] = []
        self.change_sets: list[dict[str, Any]] = []
        self.resources: dict[str, list[dict[str, Any]]] = {}
        self.instances: dict[str, str] = {}
        self.launched = NOW - timedelta(days=1)
        self.lines: list[tuple[str, str, datetime, str]] = []
        self.fleet = ""
        self.answer: tuple[str, str] | None = None
        self.denied: set[str] = set()
        self.calls: Counter[str] = Counter()
        self.lines_in_page = 10_000

    def client(self, service: str, region: str | None = None) -> Any:
        return self

    def event(self, stack: str, minute: float, text: str, physical_id: str = "physical", **more: str) -> None:
        """Record an event: status, type and name of the resource, a colon and the reason."""
        described = re.fullmatch(r"(\S+) (\S+) (\S+?): ?(.*)", text, re.DOTALL)
        assert described, text
        status, kind, resource, reason = described.groups()
        self.events.setdefault(stack, []).append(
            {
                "EventId": str(len(self.events)),
                "StackId": stack_id(stack),
                "StackName": stack,
                "LogicalResourceId": resource,
                "PhysicalResourceId": stack_id(stack) if resource == stack else physical_id,
                "ResourceType": kind,
                "ResourceStatus": status,
                "ResourceStatusReason": reason,
                "Timestamp": NOW - timedelta(hours=1) + timedelta(minutes=minute),
                **more,
            }
        )

    def line(self, stream: str, minute: float, text: str, group: str = CLUSTER_GROUP) -> None:
        """Record a line of a log, in the hour before now."""
        self.lines.append((group, stream, NOW - timedelta(hours=1) + timedelta(minutes=minute), text))

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        self._count("describe_stacks")
        if StackName not in self.stacks:
            raise _no_stack(StackName)
        named = {"StackName": StackName, "StackId": stack_id(StackName), "StackStatus": self.stacks[StackName]}
        return {"Stacks": [{**named, "CreationTime": NOW - timedelta(days=1)}]}

    def get_item(self, **_: Any) -> dict[str, Any]:
        self._count("get_item")
        return {"Item": {"Data": {"M": {"status": {"S": self.fleet}}}}} if self.fleet else {}

    def send_command(self, **_: Any) -> dict[str, Any]:
        self._count("send_command")
        if self.answer is None:
            raise refusal("AccessDeniedException", "SendCommand")
        return {"Command": {"CommandId": "1a2b"}}

    def get_command_invocation(self, **_: Any) -> dict[str, Any]:
        self._count("get_command_invocation")
        assert self.answer is not None
        output, errors = self.answer
        answered = {"StandardOutputContent": output, "StandardErrorContent": errors}
        return {"Status": "Success", "StatusDetails": "Success", "ResponseCode": 0, **answered}

    def get_paginator(self, operation: str) -> _Paginator:
        return _Paginator(self, operation)

    def pages(self, operation: str, asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        size = 100
        match operation:
            case "describe_stack_events":
                name = asked["StackName"].split("/")[1] if ":" in asked["StackName"] else asked["StackName"]
                listed: list[Any] = self.events.get(name, [])[::-1]
            case "list_stacks":
                listed = self.deleted
            case "list_change_sets":
                listed = self.change_sets
            case "list_stack_resources":
                name = asked["StackName"].split("/")[1] if ":" in asked["StackName"] else asked["StackName"]
                if name not in self.resources:
                    raise _no_stack(name)
                listed = [{"LastUpdatedTimestamp": NOW, **each} for each in self.resources[name]]
            case "describe_instances":
                described = [_instance(n, *each) for n, each in enumerate(self.instances.items())]
                listed = [{"Instances": [{**each, "LaunchTime": self.launched} for each in described]}]
            case "describe_log_groups":
                listed, size = [{"logGroupName": each} for each in sorted({group for group, *_ in self.lines})], 50
                listed = [each for each in listed if each["logGroupName"].startswith(asked["logGroupNamePrefix"])]
            case "filter_log_events":
                listed, size = list(self._matching(asked)), self.lines_in_page
        for start in range(0, max(len(listed), 1), size):
            self._count(operation)
            token = "NextToken" if operation == "list_stacks" else "nextToken"
            more = {token: "more"} if start + size < len(listed) else {}
            yield {_RESULTS[operation]: listed[start : start + size], **more}

    def _matching(self, asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield log events that have one of the pattern's terms.

        https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
        """
        terms = re.findall(r'\?"([^"]+)"', asked.get("filterPattern", '?" "'))
        for group, stream, time, text in self.lines:
            stamp = int(time.timestamp() * 1000)
            is_in_time = asked["startTime"] <= stamp <= asked["endTime"]
            is_asked_for = group == asked["logGroupName"] and stream.startswith(asked.get("logStreamNamePrefix", ""))
            if is_asked_for and is_in_time and any(term in text for term in terms):
                yield {"logStreamName": stream, "timestamp": stamp, "message": text}

    def _count(self, operation: str) -> None:
        self.calls[operation] += 1
        if operation in self.denied:
            raise refusal("AccessDeniedException", operation)


class _Paginator:
    def __init__(self, account: Recorded, operation: str) -> None:
        self._account, self._operation = account, operation

    def paginate(self, **asked: Any) -> _Pages:
        return _Pages(self._account, self._operation, asked)


class _Pages:
    def __init__(self, account: Recorded, operation: str, asked: Mapping[str, Any]) -> None:
        self._account, self._operation, self._asked = account, operation, asked
        self.result_keys = [jmespath.compile(_RESULTS[operation])]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._account.pages(self._operation, self._asked)


def stack_id(name: str) -> str:
    return f"arn:aws:cloudformation:us-west-2:111122223333:stack/{name}/1a2b"


def _no_stack(name: str) -> ClientError:
    return refusal("ValidationError", message=f"Stack with id {name} does not exist")


def _instance(number: int, instance_id: str, state: str) -> dict[str, Any]:
    node_type = {"Key": "parallelcluster:node-type", "Value": "Compute" if number else "HeadNode"}
    address = f"10.0.1.{2 + number}"
    return {"InstanceId": instance_id, "State": {"Name": state}, "Tags": [node_type], "PrivateIpAddress": address}


def deployment(**stacks: str) -> tuple[Deployment, Recorded]:
    """Return a deployment of config/trn1-16.yaml whose parts' stacks have certain states, and its account.

    A cluster that was made has its own stack, and a head node that runs.
    """
    made = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
    account = Recorded(made.settings.region)
    made.account = account
    account.stacks = {made.stack_name(part): status for part, status in stacks.items()}
    if stacks.get("cluster") in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        account.stacks[made.settings.cluster_spec.name] = stacks["cluster"]
        account.instances = {HEAD_NODE: "running"}
        account.line(stream("daemon", "clustermgtd"), 59, "INFO - Managing cluster...")
    return made, account


def failed(noise: bool = False) -> tuple[Deployment, Recorded, str]:
    """Return a deployment whose cluster's stack is being changed, its account, and the name of the stack."""
    made, account = deployment(network="CREATE_COMPLETE", storage="CREATE_COMPLETE", cluster="ROLLBACK_COMPLETE")
    stack = made.stack_name("cluster")
    if noise:
        account.event(stack, -60, "CREATE_FAILED AWS::EC2::EIP Old: The maximum number of addresses has been reached.")
    account.event(stack, 0, f"CREATE_IN_PROGRESS AWS::CloudFormation::Stack {stack}: User Initiated")
    if noise:
        for number in range(150):
            account.event(stack, 1, f"CREATE_COMPLETE AWS::SSM::Parameter P{number}: ")
    return made, account, stack


def stream(kind: str, end: str = "") -> str:
    """Return the name of a log stream of a kind: one that ends so, or any."""
    return f"ip-10-0-1-2.{HEAD_NODE}.{end or ('x' if kind == 'provider' else min(KINDS[kind]))}"


def record(sample: Mapping[str, str], *, noise: bool = False) -> Deployment:
    """Return a deployment to which a sample happened; with noise: among much else, before and after."""
    text, kind = sample["text"], sample["kind"]
    if kind == "event":
        made, account, stack = failed(noise)
        if text.startswith("FAILED change set: "):
            account.stacks[stack] = "REVIEW_IN_PROGRESS"
            reason = text.removeprefix("FAILED change set: ")
            account.change_sets = [{"Status": "FAILED", "StatusReason": reason, "CreationTime": NOW}]
        else:
            account.event(stack, 2, text.replace("trn1-16-cluster:", f"{stack}:"))
    elif kind == "provider":
        made, account, stack = failed(noise)
        account.event(stack, 2, f"CREATE_FAILED Custom::PclusterCluster Cluster: ... (LogGroup: {PROVIDER_GROUP})")
        account.line(stream(kind), 1, text, PROVIDER_GROUP)
    else:
        made, account = deployment(network="CREATE_COMPLETE", cluster="CREATE_COMPLETE")
        stack = made.stack_name("cluster")
        if kind == "instance":
            account.instances = {HEAD_NODE: "stopped"} if HEAD_NODE in text else {}
        elif kind in SCOPES:
            account.fleet, account.answer = "RUNNING", (IDLE, "")
            _make_so(account, text)
        else:
            account.line(stream(kind, sample.get("stream", "")), 57, text)
    if noise:
        account.event(stack, 3, "CREATE_FAILED AWS::EC2::Subnet Other: Resource creation cancelled")
        account.event(stack, 3, f"ROLLBACK_IN_PROGRESS AWS::CloudFormation::Stack {stack}: The following resource(s)")
        account.event(stack, 4, f"DELETE_COMPLETE AWS::EC2::Subnet Other: {text}")
        for minute in (0.5, 1.5, 49, 51):
            account.line(
                stream("slurm"), minute, "error: slurm_receive_msg_and_forward: Zero Bytes were transmitted or received"
            )
            account.line(stream("boot"), minute, "[INFO] Command 05_touch succeeded, and nothing failed")
            account.line("ip-10-0-1-2.i-0a1b.dcv-server", minute, "ERROR InsufficientInstanceCapacity")
    return made


def _make_so(account: Recorded, text: str) -> None:
    """Let a cluster be now as a text of `troubles` says."""
    if answer := re.fullmatch(r"Slurm on the head node does not answer: (.+)", text):
        account.answer = "", answer[1]
    elif slow := re.fullmatch(r"Slurm on the head node took (\d+) s to answer", text):
        account.answer = slurm_samples.answer({"trn1": "up"}, seconds=float(slow[1])), ""
    elif accounting := re.fullmatch(r"Slurm's accounting does not answer: (.+)", text):
        account.answer = slurm_samples.answer({"trn1": "up"}, accounting=accounting[1]), ""
    elif disk := re.fullmatch(r"The disk of (\S+) on the head node is (\d+) % full", text):
        account.answer = f"Use% Mounted on\n{disk[2]:>3}% {disk[1]}\n{IDLE}", ""
    elif fleet := re.fullmatch(r"The compute fleet is (\w+)(, and (\d+) jobs wait)?", text):
        account.fleet = fleet[1]
        account.answer = slurm_samples.answer({"trn1": "up"}, counts=[(int(fleet[3] or 0), "trn1", "PENDING")]), ""
    elif queue := re.fullmatch(r"The queue (\S+) takes no jobs: Slurm has it (\w+)", text):
        account.answer = slurm_samples.answer({queue[1]: queue[2]}), ""
    elif kept := re.fullmatch(r"(\d+) of (\d+) nodes of queue (\S+) are reserved, .* wants (\d+) waits", text):
        of_kind = {"idle+reserved": int(kept[1]), "idle": int(kept[2]) - int(kept[1])}
        nodes, wanted = {kept[3]: {"dy-a": of_kind}}, {kept[3]: int(kept[4])}
        account.answer = slurm_samples.answer({kept[3]: "up"}, nodes, wanted=wanted), ""
    else:
        row = re.fullmatch(r"(\d+) ([\w ]+) since (\S+): node (\S+) reason set to: (.+)", text)
        assert row, text
        count, *others = row.groups()
        others[3] = "none" if others[0] == "stuck off" else others[3]
        account.answer = slurm_samples.answer({"trn1": "up"}, problems=[(int(count), *others)]), ""


def ids(diagnosis: Diagnosis) -> list[str]:
    return [each.id for each in diagnosis.causes]


def shown(diagnosis: Diagnosis) -> str:
    """Return what a terminal of 80 columns shows of a diagnosis."""
    return reports.shown(diagnosis.blocks())
