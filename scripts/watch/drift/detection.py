"""Detects drift: by CloudFormation's own detection, and where that compares nothing.

CloudFormation compares the resources of the types that it supports, and of them the properties that the template sets.
It does not compare nested stacks and custom resources, the cluster among them.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-drift.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from scripts.account.deployment import Deployment, tags_of
from scripts.account.stack_state import StackState
from scripts.account.stacks import resources
from scripts.core.clock import Clock
from scripts.core.errors import OperationError
from scripts.watch.drift.model import Drift, DriftKind, DriftReport
from scripts.watch.status.model import Unavailable, try_fetch

if TYPE_CHECKING:
    from scripts.check.plan.report import Plan

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


def detect(deployment: Deployment, plan: Callable[[], Plan], clock: Clock) -> DriftReport:
    """Compare a deployment with its template and its settings, unless an operation on it is in progress.

    Needs cloudformation:DescribeStacks, DetectStackDrift, DetectStackResourceDrift, DescribeStackDriftDetectionStatus,
    DescribeStackResourceDrifts, DescribeStackEvents and ListStackResources, permission to read each resource,
    dynamodb:GetItem, and what the plan needs. `not_compared` names what lacks a permission.

    Raises:
        botocore.exceptions.ClientError: Credentials cannot be used.
    """
    names = [deployment.stack_name(part) for part in deployment.settings.parts]
    states = {name: StackState.of(stack) for name in names if (stack := deployment.stack(name))}
    states = {name: state for name, state in states.items() if not state.is_in_review}  # there is nothing of these yet
    busy = tuple(f"{name}: {state}" for name, state in states.items() if state.is_in_progress)
    comparison = _Comparison(deployment, clock)
    if states and not busy:
        for name, state in states.items():
            comparison.attempt(f"drift of {name}", partial(comparison.compare_stack, name, state), *_ACTIONS)
        comparison.attempt(
            "the cluster's stack", partial(_of_cluster, deployment), "cloudformation:DescribeStackEvents"
        )
        comparison.attempt("the fleet", partial(_of_fleet, deployment), "dynamodb:GetItem")
        comparison.attempt("what a deployment would change", partial(_of_settings, plan))
    return DriftReport(
        deployment=deployment.name,
        region=deployment.settings.region,
        deployed=bool(states),
        busy=busy,
        drifts=tuple(comparison.drifts),
        checked=comparison.checked,
        unchecked=tuple(comparison.unchecked),
        not_compared=tuple(comparison.not_compared),
    )


class _Comparison:
    """What was compared so far: the fields of `DriftReport`."""

    def __init__(self, deployment: Deployment, clock: Clock) -> None:
        self._deployment = deployment
        self._clock = clock
        self.drifts: list[Drift] = []
        self.checked = 0
        self.unchecked: list[str] = []
        self.not_compared: list[str] = []

    def attempt(self, what: str, compare: Callable[[], Iterable[Drift]], *actions: str) -> None:
        """Add the result of a comparison, or why it is not possible; unusable credentials end the command."""
        result = try_fetch(lambda: list(compare()), *actions)
        if isinstance(result, Unavailable):
            self.not_compared.append(f"{what}: {result.reason}")
        else:
            self.drifts += result

    def compare_stack(self, stack: str, state: StackState) -> Iterator[Drift]:
        """Let CloudFormation compare a stack."""
        if not state.can_detect_drift:
            allowed = ", ".join(each for each in StackState if each.can_detect_drift)
            raise OperationError(f"the stack is {state}; allowed: {allowed}")
        cloudformation = self._deployment.account.client("cloudformation")
        detection = cloudformation.detect_stack_drift(StackName=stack)["StackDriftDetectionId"]

        def answer() -> Any:
            return cloudformation.describe_stack_drift_detection_status(StackDriftDetectionId=detection)

        def ended() -> bool:
            return bool(answer()["DetectionStatus"] != "DETECTION_IN_PROGRESS")

        if not self._clock.until(ended, every=_POLL_SECONDS, limit=_DETECTION_SECONDS):
            raise OperationError("CloudFormation is still comparing after 15 minutes")
        compared = {
            each["LogicalResourceId"]: each
            for each in _resource_drifts(cloudformation, stack)
            if each["StackResourceDriftStatus"] in _COMPARED
        }
        self.checked += len(compared)
        self.unchecked += [
            f"{stack}/{each.logical_id} ({each.type})"
            for each in resources(self._deployment, stack)
            if each.logical_id not in compared and not each.status.is_gone
        ]
        result = answer()
        if result["DetectionStatus"] == "DETECTION_FAILED":
            reason = result.get("DetectionStatusReason", "")
            self.not_compared.append(f"drift of {stack}: not all resources could be compared: {reason}")
        for name, each in compared.items():
            yield from _of_resource(f"{stack}/{name}", each)


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
    version = tags_of(own).get(_VERSION)
    if version != wanted:
        yield _drift(DriftKind.CLUSTER, name, f"the cluster is of ParallelCluster {version}; in the settings: {wanted}")
    if deployment.stack(stack):
        events = deployment.account.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
        updated = own.get("LastUpdatedTime", own["CreationTime"])
        if updated > events[0]["Timestamp"]:
            sentence = f"the cluster was updated outside of its stack at {updated:%Y-%m-%d %H:%M} UTC"
            yield _drift(DriftKind.CLUSTER, name, sentence)


def _of_fleet(deployment: Deployment) -> Iterator[Drift]:
    from scripts.account import compute_fleet

    name = deployment.settings.cluster_spec.name
    status = compute_fleet.status(deployment)
    if status == compute_fleet.UNKNOWN:
        if deployment.stack(name) is None:
            return  # the missing stack is reported
        raise OperationError(
            f"the table parallelcluster-{name} has no status of it, as while the cluster is made or goes"
        )
    if status != compute_fleet.RUNNING:
        yield _drift(DriftKind.FLEET, name, f"the fleet is {status}; allowed: RUNNING")


def _of_settings(make: Callable[[], Plan]) -> Iterator[Drift]:
    """Yield what a deployment of the settings would change: termination protection too, but not mere metadata."""
    from scripts.check.plan.model import PlanError, Source

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
