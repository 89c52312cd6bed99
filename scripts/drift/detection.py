"""Detects drift: by CloudFormation's own detection, and where that compares nothing.

CloudFormation compares the resources of the types that it supports, and of them the properties that the template sets.
It does not compare nested stacks and custom resources, the cluster among them.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-drift.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scripts.clock import Clock
from scripts.command import OperationError
from scripts.deployment import PARTS, Deployment
from scripts.drift.model import Drift, DriftKind, DriftReport
from scripts.stacks import in_progress
from scripts.status.model import Unavailable, try_fetch

if TYPE_CHECKING:
    from scripts.plan.model import Plan

_DETECTABLE: Final = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_FAILED")
_POLL_SECONDS: Final = 5.0
_DETECTION_SECONDS: Final = 900.0
_VERSION: Final = "parallelcluster:version"
_LONGEST_VALUE: Final = 120
_COMPARED: Final = ("IN_SYNC", "MODIFIED", "DELETED")
_ACTIONS: Final = (
    "cloudformation:DetectStackDrift",
    "cloudformation:DescribeStackDriftDetectionStatus",
    "cloudformation:DescribeStackResourceDrifts",
    "cloudformation:ListStackResources",
)


class _Comparison(NamedTuple):
    """What CloudFormation compared of a stack."""

    drifts: tuple[Drift, ...]
    checked: int
    unchecked: tuple[str, ...]
    failure: str


def detect(deployment: Deployment, plan: Callable[[], Plan], clock: Clock) -> DriftReport:
    """Compare a deployment with its template and its settings, unless an operation on it is in progress.

    Needs cloudformation:DescribeStacks, DetectStackDrift, DetectStackResourceDrift, DescribeStackDriftDetectionStatus,
    DescribeStackResourceDrifts, DescribeStackEvents and ListStackResources, permission to read each resource,
    dynamodb:GetItem, and what the plan needs. `unseen` names what lacks a permission.

    Args:
        deployment: Whose stacks.
        plan: Makes the plan of a deployment of the settings.
        clock: Waits while CloudFormation compares.

    Raises:
        botocore.exceptions.ClientError: Credentials cannot be used.
    """
    names = [deployment.stack_name(part) for part in PARTS]
    stacks = {name: stack for name in names if (stack := deployment.stack(name))}
    states = {name: stack["StackStatus"] for name, stack in stacks.items()}
    busy = tuple(f"{name}: {state}" for name, state in states.items() if in_progress([state]))
    report = partial(DriftReport, environment=deployment.environment, region=deployment.settings.region)
    if busy or not stacks:
        return report(deployed=bool(stacks), busy=busy)
    drifts: list[Drift] = []
    unseen: list[str] = []
    unchecked: list[str] = []
    checked = 0

    def attempt(what: str, compare: Callable[[], Any], *actions: str) -> Any:
        """Return the result of a comparison, None if it is not possible; unusable credentials end the command."""
        result = try_fetch(compare, *actions)
        if not isinstance(result, Unavailable):
            return result
        unseen.append(f"{what}: {result.reason}")
        return None

    for name, stack in stacks.items():
        what, status = f"drift of {name}", stack["StackStatus"]
        if status not in _DETECTABLE:
            unseen.append(f"{what}: the stack is {status}; allowed: {', '.join(_DETECTABLE)}")
        elif comparison := attempt(what, partial(_compare_stack, deployment, name, clock), *_ACTIONS):
            drifts += comparison.drifts
            checked += comparison.checked
            unchecked += comparison.unchecked
            unseen += [f"{what}: {comparison.failure}"] if comparison.failure else []
    for what, compare, action in (
        ("the cluster's stack", lambda: list(_of_cluster(deployment)), "cloudformation:DescribeStackEvents"),
        ("the fleet", lambda: list(_of_fleet(deployment)), "dynamodb:GetItem"),
        ("what a deployment would change", lambda: list(_of_settings(plan)), ""),
    ):
        drifts += attempt(what, compare, *filter(None, [action])) or []
    return report(
        deployed=True,
        drifts=tuple(drifts),
        checked=checked,
        unchecked=tuple(unchecked),
        unseen=tuple(unseen),
    )


def _compare_stack(deployment: Deployment, stack: str, clock: Clock) -> _Comparison:
    """Let CloudFormation compare a stack."""
    cloudformation = deployment.account.client("cloudformation")
    detection = cloudformation.detect_stack_drift(StackName=stack)["StackDriftDetectionId"]

    def status() -> Mapping[str, str]:
        answer: Mapping[str, str] = cloudformation.describe_stack_drift_detection_status(
            StackDriftDetectionId=detection
        )
        return answer

    def ended() -> bool:
        return status()["DetectionStatus"] != "DETECTION_IN_PROGRESS"

    if not clock.until(ended, every=_POLL_SECONDS, limit=_DETECTION_SECONDS):
        raise OperationError("CloudFormation is still comparing after 15 minutes")
    compared = {
        each["LogicalResourceId"]: each
        for each in _resource_drifts(cloudformation, stack)
        if each["StackResourceDriftStatus"] in _COMPARED
    }
    listed = deployment.account.list("cloudformation", "list_stack_resources", StackName=stack)
    answer = status()
    failed = answer["DetectionStatus"] == "DETECTION_FAILED"
    return _Comparison(
        tuple(drift for name, each in compared.items() for drift in _of_resource(f"{stack}/{name}", each)),
        len(compared),
        tuple(
            f"{stack}/{each['LogicalResourceId']} ({each['ResourceType']})"
            for each in listed
            if each["LogicalResourceId"] not in compared and each["ResourceStatus"] != "DELETE_COMPLETE"
        ),
        f"not all resources could be compared: {answer.get('DetectionStatusReason', '')}" if failed else "",
    )


def _resource_drifts(cloudformation: Any, stack: str) -> Iterator[Any]:
    """Yield the result of each resource; botocore has no paginator for it."""
    token: dict[str, str] = {}
    while True:
        page = cloudformation.describe_stack_resource_drifts(StackName=stack, MaxResults=100, **token)
        yield from page["StackResourceDrifts"]
        if not page.get("NextToken"):
            return
        token = {"NextToken": page["NextToken"]}


def _drift(kind: DriftKind, subject: str, sentence: str) -> Drift:
    return Drift(kind=kind, subject=subject, sentence=sentence)


def _of_resource(subject: str, compared: Mapping[str, Any]) -> Iterator[Drift]:
    match compared["StackResourceDriftStatus"]:
        case "DELETED":
            sentence = f"{compared['ResourceType']} {compared['PhysicalResourceId']} no longer exists"
            yield _drift(DriftKind.DELETED, subject, sentence)
        case "MODIFIED":
            for each in compared["PropertyDifferences"]:
                expected, actual = _short(each["ExpectedValue"]), _short(each["ActualValue"])
                yield _drift(
                    DriftKind.MODIFIED, subject, f"{each['PropertyPath']} is {actual}; in the template: {expected}"
                )


def _short(value: str) -> str:
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]} ..."


def _of_cluster(deployment: Deployment) -> Iterator[Drift]:
    """Compare the version of the cluster's own stack, and its age with that of the stack that made it."""
    name, stack = deployment.settings.cluster_spec.name, deployment.stack_name("cluster")
    own = deployment.stack(name)
    if own is None:
        if deployment.stack(stack):
            yield _drift(DriftKind.CLUSTER, name, "the cluster's own stack does not exist")
        return
    wanted = deployment.settings.cluster.parallelcluster_version
    version = {each["Key"]: each["Value"] for each in own["Tags"]}.get(_VERSION)
    if version != wanted:
        yield _drift(DriftKind.CLUSTER, name, f"the cluster is of ParallelCluster {version}; in the settings: {wanted}")
    if deployment.stack(stack):
        events = deployment.account.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
        updated = own.get("LastUpdatedTime", own["CreationTime"])
        if updated > events[0]["Timestamp"]:
            sentence = f"the cluster was updated outside of its stack at {updated:%Y-%m-%d %H:%M} UTC"
            yield _drift(DriftKind.CLUSTER, name, sentence)


def _of_fleet(deployment: Deployment) -> Iterator[Drift]:
    from scripts.fleet import control as fleet

    status = fleet.status(deployment)
    if status != fleet.RUNNING:
        yield _drift(DriftKind.FLEET, deployment.settings.cluster_spec.name, f"the fleet is {status}; allowed: RUNNING")


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
            yield _drift(DriftKind.SETTINGS, stack.name, "the stack does not exist")
            continue
        for change in stack.changes:
            if not change.metadata_only:
                sentence = f"{change.type} would be {change.effect}"
                yield _drift(DriftKind.SETTINGS, f"{stack.name}/{change.logical_id}", sentence)
        for what in stack.other:
            yield _drift(DriftKind.SETTINGS, stack.name, f"would be changed: {what}")
    for each in plan.cluster.changes:
        values = f"{_short(str(each.before))}; in the settings: {_short(str(each.after))}"
        yield _drift(DriftKind.SETTINGS, plan.cluster.name, f"{each.path} is {values}")
