"""What is no longer as the settings have it: by CloudFormation's drift detection, and where that sees nothing.

CloudFormation compares the resources of the types that it supports, and of them the properties that the template sets.
It looks into no nested stack. Custom resources, the cluster among them, are not checked.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-drift.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from scripts.clock import Clock
from scripts.command import OperationError
from scripts.deployment import PARTS, Deployment
from scripts.progress.watch import in_progress
from scripts.status.model import Unavailable, try_fetch

if TYPE_CHECKING:
    from scripts.plan.model import Plan

_DETECTABLE: Final = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_FAILED")
_SECONDS_BETWEEN_LOOKS: Final = 5.0
_SECONDS_OF_A_DETECTION: Final = 900.0
_VERSION: Final = "parallelcluster:version"
_LONGEST_VALUE: Final = 120
_COMPARED: Final = ("IN_SYNC", "MODIFIED", "DELETED")
_ACTIONS: Final = (
    "cloudformation:DetectStackDrift",
    "cloudformation:DescribeStackDriftDetectionStatus",
    "cloudformation:DescribeStackResourceDrifts",
    "cloudformation:ListStackResources",
)


class Kind(StrEnum):
    """What is not as it should be."""

    DELETED = "deleted"
    """A resource was deleted outside of CloudFormation."""
    MODIFIED = "modified"
    """A resource was changed outside of CloudFormation."""
    SETTINGS = "settings"
    """The settings say something else than what is deployed: a deployment would change it."""
    CLUSTER = "cluster"
    """The cluster was updated outside of CloudFormation, or is of another version."""
    FLEET = "fleet"
    """The compute fleet does not run."""


@dataclass(frozen=True)
class Drift:
    """One thing that is not as the settings have it.

    Attributes:
        kind: What it is.
        subject: The stack, with the resource after a slash; or the cluster.
        sentence: What differs.
    """

    kind: Kind
    subject: str
    sentence: str


@dataclass
class Report:
    """What was found.

    Attributes:
        environment: File name in config/ without .yaml.
        region: Region of the stacks.
        drifts: What is not as the settings have it.
        checked: How many resources CloudFormation compared.
        unchecked: Resources of types that it does not compare: stack, slash, logical id.
        unseen: What could not be looked at, and why.
        busy: Stacks that something is being done to, with their status: then nothing is compared.
        deployed: Whether there is anything to look at.
    """

    environment: str
    region: str
    drifts: list[Drift] = field(default_factory=list)
    checked: int = 0
    unchecked: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    deployed: bool = True

    @property
    def ok(self) -> bool:
        """Whether all that was to be looked at could be, and is as the settings have it."""
        return not self.drifts and not self.unseen


def look(deployment: Deployment, plan: Callable[[], Plan], clock: Clock) -> Report:
    """Compare a deployment with its template and its settings, unless something is being done to it.

    Needs cloudformation:DescribeStacks, DetectStackDrift, DetectStackResourceDrift, DescribeStackDriftDetectionStatus,
    DescribeStackResourceDrifts, DescribeStackEvents and ListStackResources, the right to read each resource,
    dynamodb:GetItem, and what the plan needs. What a right is missing for is told in `unseen`.

    Args:
        deployment: Whose stacks.
        plan: Makes the change plan of the settings as they are.
        clock: Lets time pass while CloudFormation compares.

    Raises:
        botocore.exceptions.ClientError: Credentials cannot be used.
    """
    report = Report(deployment.environment, deployment.settings.region)
    stacks = {name: found for name in _names(deployment) if (found := deployment.stack(name))}
    report.deployed = bool(stacks)
    report.busy = [
        f"{name}: {found['StackStatus']}" for name, found in stacks.items() if in_progress([found["StackStatus"]])
    ]
    if report.busy or not report.deployed:
        return report
    for stack, found in stacks.items():
        status = found["StackStatus"]
        if status in _DETECTABLE:
            _try(report, f"drift of {stack}", partial(_of_stack, report, deployment, stack, clock), *_ACTIONS)
        else:
            report.unseen.append(f"drift of {stack}: the stack is {status}; allowed: {', '.join(_DETECTABLE)}")
    cluster, fleet = "cloudformation:DescribeStackEvents", "dynamodb:GetItem"
    _try(report, "the cluster's stack", lambda: report.drifts.extend(_of_cluster(deployment)), cluster)
    _try(report, "the fleet", lambda: report.drifts.extend(_of_fleet(deployment)), fleet)
    _try(report, "what a deployment would change", lambda: report.drifts.extend(_of_settings(plan)))
    return report


def _names(deployment: Deployment) -> list[str]:
    return [deployment.stack_name(part) for part in PARTS]


def _try(report: Report, what: str, ask: Callable[[], None], *actions: str) -> None:
    """Look at something; if that cannot be, tell why. Credentials that are not valid end all of it."""
    found = try_fetch(ask, *actions)
    if isinstance(found, Unavailable):
        report.unseen.append(f"{what}: {found.reason}")


def _of_stack(report: Report, deployment: Deployment, stack: str, clock: Clock) -> None:
    """Let CloudFormation compare a stack, and report what it finds."""
    cloudformation = deployment.account.client("cloudformation")
    detection = cloudformation.detect_stack_drift(StackName=stack)["StackDriftDetectionId"]

    def status() -> Any:
        return cloudformation.describe_stack_drift_detection_status(StackDriftDetectionId=detection)

    def ended() -> bool:
        return bool(status()["DetectionStatus"] != "DETECTION_IN_PROGRESS")

    if not clock.until(ended, every=_SECONDS_BETWEEN_LOOKS, limit=_SECONDS_OF_A_DETECTION):
        raise OperationError("CloudFormation is still comparing after 15 minutes")
    found = {each["LogicalResourceId"]: each for each in _drifts(cloudformation, stack)}
    for name, each in found.items():
        report.drifts.extend(_of_resource(f"{stack}/{name}", each))
    compared = {name for name, each in found.items() if each["StackResourceDriftStatus"] in _COMPARED}
    report.checked += len(compared)
    listed = deployment.account.list("cloudformation", "list_stack_resources", StackName=stack)
    report.unchecked += [
        f"{stack}/{each['LogicalResourceId']} ({each['ResourceType']})"
        for each in listed
        if each["LogicalResourceId"] not in compared and each["ResourceStatus"] != "DELETE_COMPLETE"
    ]
    answer = status()
    if answer["DetectionStatus"] == "DETECTION_FAILED":
        raise OperationError(f"not all resources could be compared: {answer.get('DetectionStatusReason', '')}")


def _drifts(cloudformation: Any, stack: str) -> Iterator[Any]:
    """Yield what was found of each resource; botocore has no paginator for it."""
    token: dict[str, str] = {}
    while True:
        page = cloudformation.describe_stack_resource_drifts(StackName=stack, MaxResults=100, **token)
        yield from page["StackResourceDrifts"]
        if not page.get("NextToken"):
            return
        token = {"NextToken": page["NextToken"]}


def _of_resource(subject: str, found: Any) -> Iterator[Drift]:
    match found["StackResourceDriftStatus"]:
        case "DELETED":
            yield Drift(Kind.DELETED, subject, f"{found['ResourceType']} {found['PhysicalResourceId']} is gone")
        case "MODIFIED":
            for each in found["PropertyDifferences"]:
                expected, actual = _short(each["ExpectedValue"]), _short(each["ActualValue"])
                yield Drift(Kind.MODIFIED, subject, f"{each['PropertyPath']} is {actual}, by the template {expected}")


def _short(value: str) -> str:
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]} ..."


def _of_cluster(deployment: Deployment) -> Iterator[Drift]:
    """Look whether the cluster's own stack is newer than the stack that has it, or of another version."""
    name, stack = deployment.settings.cluster_spec.name, deployment.stack_name("cluster")
    own = deployment.stack(name)
    if own is None:
        if deployment.stack(stack):
            yield Drift(Kind.CLUSTER, name, "the cluster's own stack does not exist")
        return
    wanted = deployment.settings.cluster.parallelcluster_version
    version = {each["Key"]: each["Value"] for each in own["Tags"]}.get(_VERSION)
    if version != wanted:
        yield Drift(Kind.CLUSTER, name, f"the cluster is of ParallelCluster {version}, by the settings {wanted}")
    if deployment.stack(stack):
        events = deployment.account.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
        updated = own.get("LastUpdatedTime", own["CreationTime"])
        if updated > events[0]["Timestamp"]:
            yield Drift(Kind.CLUSTER, name, f"the cluster was updated by itself at {updated:%Y-%m-%d %H:%M} UTC")


def _of_fleet(deployment: Deployment) -> Iterator[Drift]:
    from scripts.fleet import control as fleet

    status = fleet.status(deployment)
    if status != fleet.RUNNING:
        yield Drift(Kind.FLEET, deployment.settings.cluster_spec.name, f"the fleet is {status}; allowed: RUNNING")


def _of_settings(make: Callable[[], Plan]) -> Iterator[Drift]:
    """Yield what a deployment of the settings would change: termination protection too, but not mere metadata."""
    from scripts.plan.command import PlanError
    from scripts.plan.model import Source

    try:
        plan = make()
    except PlanError as error:
        raise OperationError(str(error)) from None
    for stack in plan.stacks:
        if stack.source is Source.NEW:
            yield Drift(Kind.SETTINGS, stack.name, "the stack does not exist")
            continue
        for change in stack.changes:
            if not change.metadata_only:
                what = f"{change.type} would be {change.effect}"
                yield Drift(Kind.SETTINGS, f"{stack.name}/{change.logical_id}", what)
        for what in stack.other:
            yield Drift(Kind.SETTINGS, stack.name, f"would be changed: {what}")
    for each in plan.cluster.changes:
        values = f"{_short(str(each.before))}, by the settings {_short(str(each.after))}"
        yield Drift(Kind.SETTINGS, plan.cluster.name, f"{each.path} is {values}")
