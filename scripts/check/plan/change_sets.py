"""Change sets: created, read, and always deleted again.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-changesets.html
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from scripts.check.plan.comparison import awaited
from scripts.check.plan.model import Effect, PlanError, PropertyChange, ResourceChange
from scripts.core.aws_errors import is_not_found, is_without_changes
from scripts.core.interrupts import uninterrupted
from toolchain.assembly import Stack

_SEVERITY: Final = list(Effect)
_IN_PROGRESS: Final = ("CREATE_PENDING", "CREATE_IN_PROGRESS", "DELETE_PENDING", "DELETE_IN_PROGRESS")
_PATIENCE: Final = 120
"""Seconds to wait for a change set that is being created or deleted; with nested stacks it may take a minute."""
_LATE: Final = 3.0
"""Seconds after which a request whose answer was not awaited can no longer have an effect."""


class ChangeSetError(RuntimeError):
    """There is no change set; the message says why."""


Description = list[Mapping[str, Any]]
"""The changes of resources in a change set, as CloudFormation describes them (ResourceChange)."""


def describe(cloudformation: Any, stacks: Collection[Stack], name: str) -> dict[str, Description | ChangeSetError]:
    """Return the change set of each stack; none is left when this returns, or is interrupted.

    Args:
        cloudformation: A boto3 client. The role with which the CDK deployed a stack stays the stack's.
        stacks: What is to be deployed, of stacks that exist and can be updated.
        name: The name of the change sets, which nothing else has.

    Raises:
        PlanError: A change set could not be deleted.
    """
    requested = dict.fromkeys(each.name for each in stacks)
    answered = False
    try:
        errors = {stack.name: _create(cloudformation, stack, name) for stack in stacks}
        answered = True
        return {stack: errors[stack] or _description(cloudformation, stack, name) for stack in requested}
    finally:
        with uninterrupted():
            delete(cloudformation, name, requested, settled=time.monotonic() + (0 if answered else _LATE))


def _create(cloudformation: Any, stack: Stack, name: str) -> ChangeSetError | None:
    """Create a change set, and return why that is impossible; a template may have 51,200 bytes."""
    from botocore.exceptions import ClientError

    try:
        cloudformation.create_change_set(
            StackName=stack.name,
            ChangeSetName=name,
            TemplateBody=json.dumps(stack.template, separators=(",", ":")),
            Tags=[{"Key": key, "Value": value} for key, value in stack.tags.items()],
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
        )
    except ClientError as error:
        return ChangeSetError(str(error))
    return None


def _description(cloudformation: Any, stack_name: str, name: str) -> Description | ChangeSetError:
    """Return the changes in the change set of a stack, or why it cannot be used."""
    from botocore.exceptions import ClientError, WaiterError

    change_set = {"StackName": stack_name, "ChangeSetName": name}
    with suppress(WaiterError):  # also where it has no changes: the status says which
        waiter = cloudformation.get_waiter("change_set_create_complete")
        waiter.wait(**change_set, WaiterConfig={"Delay": 1, "MaxAttempts": _PATIENCE})
    try:
        pages = list(cloudformation.get_paginator("describe_change_set").paginate(**change_set))
    except ClientError as error:
        return ChangeSetError(str(error))
    status, reason = pages[0]["Status"], pages[0].get("StatusReason", "")
    if is_without_changes(pages[0]):
        return []
    if status != "CREATE_COMPLETE":
        return ChangeSetError(f"the change set is {status}: {reason}")
    return [each["ResourceChange"] for page in pages for each in page["Changes"] if each["Type"] == "Resource"]


def delete(cloudformation: Any, name: str, stack_names: Iterable[str], settled: float = 0.0) -> None:
    """Delete the change sets of a name, as far as there are any, with those of nested stacks.

    None is created any more from a time of the monotonic clock on, `settled`.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DeleteChangeSet.html

    Raises:
        PlanError: One exists still, or may exist.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    left = []
    for stack_name in stack_names:
        try:
            status = _delete(cloudformation, {"StackName": stack_name, "ChangeSetName": name}, settled)
        except (BotoCoreError, ClientError) as error:
            status = str(error)
        if status:
            region = cloudformation.meta.region_name
            left.append(
                f"change set {name} of {stack_name} is left ({status}); delete it: aws cloudformation "
                f"delete-change-set --stack-name {stack_name} --change-set-name {name} --region {region}"
            )
    if left:
        raise PlanError("\n".join(left))


def _delete(cloudformation: Any, change_set: Mapping[str, str], settled: float) -> str:
    """Delete a change set, and return its status if it exists still."""
    from botocore.exceptions import ClientError

    deadline, status = time.monotonic() + _PATIENCE, ""
    while time.monotonic() < deadline:
        try:
            status = cloudformation.describe_change_set(**change_set)["Status"]
        except ClientError as error:
            if not is_not_found(error):
                raise
            status = ""
            if time.monotonic() >= settled:
                return ""
        if status and status not in _IN_PROGRESS:
            cloudformation.delete_change_set(**change_set)
        time.sleep(0.2)
    return status


def changes(
    description: Description,
    compared: Iterable[ResourceChange],
    read_late: Mapping[str, Sequence[PropertyChange]] | None = None,
) -> tuple[ResourceChange, ...]:
    """Return the changes of a change set, with the values that a comparison of templates knows.

    What depends on the deployment of another stack is in the comparison only, and is added. What CloudFormation calls
    dynamic, because it does not evaluate it, counts only if the comparison finds it changed, too: all that refers to an
    attribute of a changed resource is dynamic, and every nested stack. A replacement that it plans for a value of
    Fn::GetStackOutput counts in any case: whether it is carried out is not documented, and a report has
    Replacement: True (https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/2559).
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ResourceChangeDetail.html

    `read_late` has the properties that Fn::GetStackOutput feeds, by logical id.
    """
    known = {change.logical_id: change for change in compared}
    merged = {}
    for described in description:
        logical_id = described["LogicalResourceId"]
        change = _change(described, known.get(logical_id), (read_late or {}).get(logical_id, ()))
        if change is not None:
            merged[logical_id] = change
    for logical_id, change in known.items():
        if awaited(change) and _severity(change) > _severity(merged.get(logical_id)):
            merged[logical_id] = change
    return tuple(merged[logical_id] for logical_id in sorted(merged))


def _change(
    described: Mapping[str, Any], compared: ResourceChange | None, read_late: Sequence[PropertyChange]
) -> ResourceChange | None:
    """Return the change of a resource in a change set; None if it is dynamic only, and the comparison has none."""
    logical_id, resource_type = described["LogicalResourceId"], described["ResourceType"]
    physical_id, stays = described.get("PhysicalResourceId", ""), "Retain" in described.get("PolicyAction", "")
    change = compared or ResourceChange(logical_id, resource_type, Effect.CHANGED)
    change = replace(change, physical_id=physical_id, old_stays=stays)
    if described["Action"] in ("Add", "Remove"):
        return replace(change, effect=Effect.ADDED if described["Action"] == "Add" else Effect.REMOVED)
    recreating = {each["Target"].get("Name") for each in described["Details"] if _recreates(each["Target"])}
    changed = {each.path.partition(".")[0] for each in change.properties}
    late = tuple(each for each in read_late if each.path in recreating - changed)
    change = replace(change, properties=change.properties + late)
    changed |= {each.path for each in late}
    details = [
        each
        for each in described["Details"]
        if each.get("Evaluation") == "Static" or each["Target"].get("Name") in changed
    ]
    if not details:
        return None
    targets = [each["Target"] for each in details]
    targets = [each for each in targets if each["Attribute"] != "Metadata"] or targets
    effect = Effect.CHANGED
    if described.get("Replacement") == "True":
        effect = Effect.REPLACED
    elif any(map(_recreates, targets)):
        effect = Effect.MAY_BE_REPLACED
    if effect is change.effect and change.causes:
        return change
    causing = [each for each in targets if effect is Effect.CHANGED or _recreates(each)]
    return replace(
        change, effect=effect, causes=tuple(dict.fromkeys(each.get("Name") or each["Attribute"] for each in causing))
    )


def _recreates(target: Mapping[str, Any]) -> bool:
    return bool(target.get("RequiresRecreation", "Never") != "Never")


def _severity(change: ResourceChange | None) -> int:
    return -1 if change is None else _SEVERITY.index(change.effect)
