"""The API of CloudFormation, in place of moto's.

https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_Operations.html
"""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import moto.cloudformation.urls
from moto.core.common_types import TYPE_RESPONSE
from moto.core.responses import ActionResult, BaseResponse, EmptyResult

from emulator import gate
from emulator.cloudformation.changes import without_values
from emulator.cloudformation.drift import detect
from emulator.cloudformation.engine import Engine, RequestError, ValidationError
from emulator.cloudformation.parameters import HIDDEN, is_hidden, is_stored
from emulator.cloudformation.stacks import ChangeSet, Request, Revision, Stack, StackResource
from emulator.faults import FAULTS_IN_FORCE
from emulator.resources.model import NOT_EMULATED

_PAGE: Final = 100
_BODY_LIMIT: Final = 51_200
_NO_STACK: Final = "Stack with id {} does not exist"

_CHECKED_FOR_DRIFT: Final = (
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
    "UPDATE_ROLLBACK_FAILED",
)
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-drift.html"""

_UNSUPPORTED: Final = (
    "DeploymentMode",
    "DisableRollback",
    "NotificationARNs",
    "OnFailure",
    "OnStackFailure",
    "ResourceTypes",
    "ResourcesToImport",
    "RetainExceptOnCreate",
    "RetainResources",
    "RollbackConfiguration",
    "StackPolicyBody",
    "StackPolicyDuringUpdateBody",
    "StackPolicyDuringUpdateURL",
    "StackPolicyURL",
    "TimeoutInMinutes",
    "UsePreviousTemplate",
)
"""What a request may not ask for here. With ImportExistingResources nothing is taken over: a taken name is an error.

With IncludeNestedStacks, which the CDK command line always sends for a diff, a change set still tells of its own
stack's resources only; the answer says so by `IncludeNestedStacks: false`.
"""


def serve(engine: Engine) -> None:
    """Have this engine answer for CloudFormation; call it before the server starts."""
    CloudFormation.engine = engine
    moto.cloudformation.urls.url_paths = {"{0}/$": CloudFormation.dispatch}


class CloudFormation(BaseResponse):
    """CloudFormation's actions. Each reads its request, asks the engine, and words the answer."""

    engine: ClassVar[Engine]
    drifts: ClassVar[dict[str, list[dict[str, Any]]]] = {}
    """What was last detected, by the detection's id."""

    def __init__(self) -> None:
        super().__init__(service_name="cloudformation")
        self.automated_parameter_parsing = True

    def call_action(self) -> TYPE_RESPONSE:
        if not gate.allows(self._get_action()):
            refused = RequestError("AccessDenied", f"Nodes change no stacks here: {self._get_action()}")
            return self.serialized(ActionResult(refused))
        if FAULTS_IN_FORCE.throttles(f"cloudformation:{self._get_action()}", self.headers.get("Authorization", "")):
            return self.serialized(ActionResult(RequestError("Throttling", "Rate exceeded")))
        try:
            return super().call_action()
        except NotImplementedError:  # moto's own, for an action that has no method here
            refusal = RequestError("InvalidAction", NOT_EMULATED.format(f"action {self._get_action()}"))
            return self.serialized(ActionResult(refusal))

    # Stacks

    def create_stack(self) -> ActionResult:
        stack = self.engine.create_stack(self.region, self._get_param("StackName"), self._request())
        return ActionResult({"StackId": stack.id})

    def update_stack(self) -> ActionResult:
        stack = self.engine.update_stack(self.region, self._get_param("StackName"), self._request())
        return ActionResult({"StackId": stack.id})

    def delete_stack(self) -> ActionResult:
        self._refuse_unsupported()
        self.engine.delete_stack(self.region, self._get_param("StackName"), self._get_param("ClientRequestToken"))
        return EmptyResult()

    def continue_update_rollback(self) -> ActionResult:
        name, skipped = self._get_param("StackName"), self._get_param("ResourcesToSkip", [])
        self.engine.continue_update_rollback(self.region, name, skipped, self._get_param("ClientRequestToken"))
        return EmptyResult()

    def update_termination_protection(self) -> ActionResult:
        enabled = self._get_param("EnableTerminationProtection")
        stack = self.engine.protect(self.region, self._get_param("StackName"), enabled=enabled)
        return ActionResult({"StackId": stack.id})

    def describe_stacks(self) -> ActionResult:
        named = self._get_param("StackName")
        stacks = [self._stack()] if named else self.engine.store.live(self.region)
        return ActionResult({"Stacks": [_described_stack(stack) for stack in stacks]})

    def list_stacks(self) -> ActionResult:
        wanted = self._get_param("StackStatusFilter", [])
        stacks = [stack for stack in self.engine.store.all(self.region) if not wanted or stack.status in wanted]
        return ActionResult({"StackSummaries": [_summarized_stack(stack) for stack in stacks]})

    def describe_stack_events(self) -> ActionResult:
        stack = self._stack("Stack [{}] does not exist")
        # The token is the number of older events, so that new ones do not shift the pages.
        end = self._number(len(stack.events))
        start = max(end - _PAGE, 0)
        events = stack.events[start:end][::-1]
        return ActionResult({"StackEvents": events, "NextToken": str(start) if start else None})

    def describe_stack_resource(self) -> ActionResult:
        stack, logical_id = self._stack("Stack '{}' does not exist"), self._get_param("LogicalResourceId")
        if logical_id not in stack.resources:
            raise ValidationError(f"Resource {logical_id} does not exist for stack {self._get_param('StackName')}")
        resource = stack.resources[logical_id]
        detail = {
            **_described_resource(stack, resource),
            "LastUpdatedTimestamp": resource.changed,
            "Metadata": json.dumps(resource.metadata),
        }
        return ActionResult({"StackResourceDetail": detail})

    def describe_stack_resources(self) -> ActionResult:
        logical_id = self._get_param("LogicalResourceId")
        stack = self._stack()
        resources = [
            {**_described_resource(stack, resource), "Timestamp": resource.changed}
            for resource in stack.resources.values()
            if logical_id in (None, resource.logical_id)
        ]
        return ActionResult({"StackResources": resources})

    def list_stack_resources(self) -> ActionResult:
        stack = self._stack()
        summaries = [
            {**_described_resource(stack, resource), "LastUpdatedTimestamp": resource.changed}
            for resource in {**stack.gone, **stack.resources}.values()
        ]
        page, token = self._page(summaries)
        return ActionResult({"StackResourceSummaries": page, "NextToken": token})

    def list_exports(self) -> ActionResult:
        exports = [
            {"ExportingStackId": stack.id, "Name": name, "Value": value}
            for name, (stack, value) in self.engine.store.exports(self.region).items()
        ]
        page, token = self._page(exports)
        return ActionResult({"Exports": page, "NextToken": token})

    # Drift

    def detect_stack_drift(self) -> ActionResult:
        stack = self._stack("Stack [{}] does not exist")
        if stack.status not in _CHECKED_FOR_DRIFT:
            raise ValidationError(f"Drift detection cannot be performed on stack [{stack.id}] in {stack.status} state")
        detection_id = _detection_id(stack)
        self.drifts[detection_id] = detect(stack, lambda service: self.engine.clients(service, stack.region))
        return ActionResult({"StackDriftDetectionId": detection_id})

    def describe_stack_drift_detection_status(self) -> ActionResult:
        detection_id = self._get_param("StackDriftDetectionId")
        if detection_id not in self.drifts:
            raise ValidationError(f"Stack drift detection {detection_id} does not exist")
        drifted = [each for each in self.drifts[detection_id] if each["StackResourceDriftStatus"] != "IN_SYNC"]
        return ActionResult(
            {
                "StackDriftDetectionId": detection_id,
                "StackDriftStatus": "DRIFTED" if drifted else "IN_SYNC",
                "DetectionStatus": "DETECTION_COMPLETE",
                "DriftedStackResourceCount": len(drifted),
            }
        )

    def describe_stack_resource_drifts(self) -> ActionResult:
        stack = self._stack("Stack [{}] does not exist")
        wanted = self._get_param("StackResourceDriftStatusFilters", [])
        drifts = self.drifts.get(_detection_id(stack), [])
        page, token = self._page([each for each in drifts if not wanted or each["StackResourceDriftStatus"] in wanted])
        return ActionResult({"StackResourceDrifts": page, "NextToken": token})

    # Templates

    def get_template(self) -> ActionResult:
        if name := self._get_param("ChangeSetName"):
            if not (name.startswith("arn:") or self._get_param("StackName")):
                raise ValidationError("StackName is a required parameter.")
            return ActionResult(_template(self._change_set()[1].revision.template.text))
        if not self._get_param("StackName"):
            raise ValidationError("StackName is required if ChangeSetName is not specified.")
        stack = self._stack()
        # "No template or resources" until its change set is executed. The CDK deploys what differs from the answer.
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateChangeSet.html
        text = "" if stack.status == "REVIEW_IN_PROGRESS" else stack.revision.template.text
        return ActionResult(_template(text))

    # Change sets

    def create_change_set(self) -> ActionResult:
        stack, change_set = self.engine.create_change_set(
            self.region,
            self._get_param("ChangeSetName"),
            self._get_param("StackName"),
            self._request(),
            change_set_type=self._get_param("ChangeSetType") or "UPDATE",
            description=self._get_param("Description") or "",
        )
        return ActionResult({"Id": change_set.id, "StackId": stack.id})

    def describe_change_set(self) -> ActionResult:
        stack, change_set = self._change_set()
        revision = change_set.revision
        changes = change_set.changes
        if not self._get_param("IncludePropertyValues"):
            changes = [without_values(each) for each in changes]
        page, token = self._page([{"Type": "Resource", "ResourceChange": change} for change in changes])
        return ActionResult(
            {
                **_summarized_change_set(stack, change_set),
                "Parameters": _described_parameters(revision) or None,
                "Capabilities": list(revision.capabilities),
                "Tags": _listed_tags(revision.tags) or None,
                "Changes": page,
                "NextToken": token,
                **_OF_OPERATIONS,
            }
        )

    def list_change_sets(self) -> ActionResult:
        # "Each active change set": LocalStack's test_create_change_set_update_without_parameters recorded that one that
        # was executed is not.
        stack = self._stack("Stack [{}] does not exist")
        active = [each for each in stack.change_sets.values() if each.execution_status != "EXECUTE_COMPLETE"]
        summaries = [_summarized_change_set(stack, each) for each in active]
        return ActionResult({"Summaries": summaries})

    def execute_change_set(self) -> ActionResult:
        self._refuse_unsupported()
        self.engine.execute_change_set(
            self.region,
            self._get_param("ChangeSetName"),
            self._get_param("StackName"),
            self._get_param("ClientRequestToken"),
        )
        return EmptyResult()

    def delete_change_set(self) -> ActionResult:
        name, stack_name = self._get_param("ChangeSetName"), self._get_param("StackName")
        self.engine.delete_change_set(self.region, name, stack_name)
        return EmptyResult()

    def describe_events(self) -> ActionResult:
        # The CDK command line asks why a change set failed; nothing here fails in the ways that these events tell of.
        return ActionResult({"OperationEvents": []})

    def list_hook_results(self) -> ActionResult:
        return ActionResult({"HookResults": []})

    # Parts of requests

    def _request(self) -> Request:
        self._refuse_unsupported()
        parameters = self._get_param("Parameters", [])
        tags = self._get_param("Tags")
        return Request(
            template=self._template_text(),
            parameters={
                each["ParameterKey"]: each.get("ParameterValue", "")
                for each in parameters
                if not each.get("UsePreviousValue")
            },
            kept_parameters=frozenset(each["ParameterKey"] for each in parameters if each.get("UsePreviousValue")),
            tags=None if tags is None else {tag["Key"]: tag["Value"] for tag in tags},
            capabilities=tuple(self._get_param("Capabilities", [])),
            termination_protection=bool(self._get_param("EnableTerminationProtection")),
            token=self._get_param("ClientRequestToken"),
        )

    def _refuse_unsupported(self) -> None:
        for name in _UNSUPPORTED:
            if self._get_param(name):
                raise ValidationError(NOT_EMULATED.format(name))
        if self._get_param("DeploymentConfig.Mode") == "EXPRESS":
            raise ValidationError(NOT_EMULATED.format("DeploymentConfig with mode EXPRESS"))

    def _template_text(self) -> str:
        body: str | None = self._get_param("TemplateBody")
        if body is not None:
            if len(body.encode()) > _BODY_LIMIT:
                raise ValidationError(
                    "1 validation error detected: Value at 'templateBody' failed to satisfy constraint: "
                    f"Member must have length less than or equal to {_BODY_LIMIT}"
                )
            return body
        url = self._get_param("TemplateURL")
        if url is None:
            raise ValidationError("Either Template URL or Template Body must be specified.")
        return self.engine.stored_text(url, self.region)

    def _stack(self, message: str = _NO_STACK) -> Stack:
        name = self._get_param("StackName")
        if name is None:  # DescribeStackResources by a physical id
            raise ValidationError(NOT_EMULATED.format(f"{self._get_action()} without StackName"))
        return self.engine.stack(self.region, name, message)

    def _change_set(self) -> tuple[Stack, ChangeSet]:
        return self.engine.change_set(self.region, self._get_param("ChangeSetName"), self._get_param("StackName"))

    def _number(self, first: int) -> int:
        """Return the number that a token is; of the first page there is none."""
        token: str = self._get_param("NextToken") or str(first)
        if not token.isdecimal():
            raise ValidationError("NextToken is not valid")
        return int(token)

    def _page(self, items: Sequence[Any]) -> tuple[Sequence[Any], str | None]:
        start = self._number(0)
        end = start + _PAGE
        return items[start:end], str(end) if end < len(items) else None


# Parts of answers; None is left out of an answer


_OF_OPERATIONS: Final[Mapping[str, Any]] = {"NotificationARNs": [], "RollbackConfiguration": {}}
"""Options that no request can have here, as they are without."""


def _described_stack(stack: Stack) -> dict[str, Any]:
    """Describe a stack with the members that AWS gives in its state, as LocalStack's tests recorded them.

    Of one that waits for the review of its change set there is nothing but that.
    """
    revision = stack.revision
    described = {
        **_summarized_stack(stack),
        **_OF_OPERATIONS,
        "DisableRollback": False,
        "EnableTerminationProtection": stack.termination_protection,
        "Tags": [],
    }
    if stack.status == "DELETE_COMPLETE":
        del described["EnableTerminationProtection"]
    if stack.status == "REVIEW_IN_PROGRESS":
        return described
    outputs = [
        {
            "OutputKey": output.key,
            "OutputValue": output.value,
            "Description": output.description or None,
            "ExportName": output.export or None,
        }
        for output in stack.outputs.values()
    ]
    return {
        **described,
        "ChangeSetId": stack.change_set_id if stack.status.startswith(("CREATE_", "UPDATE_")) else None,
        "Description": revision.template.description,
        "Parameters": _described_parameters(revision) or None,
        "Capabilities": list(revision.capabilities) or None,
        "Outputs": outputs or None,
        "Tags": _listed_tags(revision.tags),
    }


def _summarized_stack(stack: Stack) -> dict[str, Any]:
    return {
        "StackId": stack.id,
        "StackName": stack.name,
        "TemplateDescription": None if stack.status == "REVIEW_IN_PROGRESS" else stack.revision.template.description,
        "CreationTime": stack.created,
        "LastUpdatedTime": stack.updated,
        "DeletionTime": stack.deleted,
        "StackStatus": stack.status,
        "StackStatusReason": stack.reason or None,
        "ParentId": stack.parent_id,
        "RootId": stack.root_id,
        "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
    }


def _template(text: str) -> dict[str, Any]:
    return {"TemplateBody": text, "StagesAvailable": ["Original", "Processed"]}


def _described_resource(stack: Stack, resource: StackResource) -> dict[str, Any]:
    return {
        "StackId": stack.id,
        "StackName": stack.name,
        "LogicalResourceId": resource.logical_id,
        "PhysicalResourceId": resource.physical_id or None,
        "ResourceType": resource.type,
        "ResourceStatus": resource.status,
        "ResourceStatusReason": resource.reason or None,
        "DriftInformation": {"StackResourceDriftStatus": "NOT_CHECKED"},
    }


def _described_parameters(revision: Revision) -> list[dict[str, Any]]:
    described = []
    for key, parameter in revision.parameters.items():
        definition = revision.template.parameters[key]
        resolved = ",".join(parameter.resolved) if isinstance(parameter.resolved, list) else parameter.resolved
        described.append(
            {
                "ParameterKey": key,
                "ParameterValue": HIDDEN if is_hidden(definition) else parameter.value,
                "ResolvedValue": resolved if is_stored(definition) else None,
            }
        )
    return described


def _summarized_change_set(stack: Stack, change_set: ChangeSet) -> dict[str, Any]:
    return {
        "ChangeSetId": change_set.id,
        "ChangeSetName": change_set.name,
        "StackId": stack.id,
        "StackName": stack.name,
        "Description": change_set.description or None,
        "CreationTime": change_set.created,
        "ExecutionStatus": change_set.execution_status,
        "Status": change_set.status,
        "StatusReason": change_set.failure or None,
        "IncludeNestedStacks": False,
    }


def _detection_id(stack: Stack) -> str:
    """Return the id of the last detection of a stack's drift: the last part of the stack's own."""
    return stack.id.rpartition("/")[2]


def _listed_tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
