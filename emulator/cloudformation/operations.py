"""The operations on a stack: create, update, roll back, delete. Each runs to its end in the thread that calls it."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Event
from typing import Any, Final
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from emulator.cloudformation import references
from emulator.cloudformation.clients import SERVICE, Clients
from emulator.cloudformation.clock import Clock
from emulator.cloudformation.scheduler import Step, StepError, run
from emulator.cloudformation.scope import StackScope
from emulator.cloudformation.stacks import (
    Output,
    Revision,
    Stack,
    StackResource,
    Store,
    is_custom,
)
from emulator.cloudformation.steps import Delete, Put, Return, origin_of
from emulator.resources.model import Context, Model, Physical, ResourceError
from toolchain.values import NO_VALUE, TemplateError, UnsupportedError

_HANDLER_CODES: Final = (
    ("NotFound|NoSuch", "NotFound"),
    ("AlreadyExist|Duplicate", "AlreadyExists"),
    ("LimitExceeded", "ServiceLimitExceeded"),
    ("Throttl|RequestLimit", "Throttling"),
    ("AccessDenied|Unauthorized", "AccessDenied"),
    ("Conflict|DependencyViolation|InUse", "ResourceConflict"),
    ("Internal|ServiceUnavailable", "ServiceInternalError"),
    ("", "InvalidRequest"),
)
"""HandlerErrorCode by a part of the service's own code, the first that fits.

https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-test-contract-errors.html
"""


@dataclass(frozen=True)
class CloudFormationState:
    """What an operation works with; `abandoned` is set by a reset: what is still in progress ends silently."""

    store: Store
    clients: Clients
    models: Mapping[str, Model]
    clock: Clock
    abandoned: Event


class AbandonedError(Exception):
    """Everything was reset meanwhile."""


class Operation:
    """Operations on one stack."""

    def __init__(self, stack: Stack, backend: CloudFormationState) -> None:
        self.stack = stack
        self.backend = backend
        self._failure = ""
        self.scope = self._scope(stack.revision)

    # What a thread runs

    def create(self) -> None:
        """Create what the stack is asked to have; it is in CREATE_IN_PROGRESS."""
        stack = self.stack
        reason = self._apply(self._is_doomed) or self._set_outputs()
        with stack.lock:
            if stack.status != "CREATE_IN_PROGRESS":
                return
            if not reason:
                stack.enter("CREATE_COMPLETE")
                return
            if stack.parent_id:  # what failed is left for the parent to delete
                stack.enter("CREATE_FAILED", reason)
                return
            stack.enter("ROLLBACK_IN_PROGRESS", f"{reason}Rollback requested by user.")
        failed = self._delete(self.stack.resources.values(), self._is_doomed, created_now=True)
        with self.stack.lock:
            if self.stack.status == "ROLLBACK_IN_PROGRESS":
                self.stack.enter(*_outcome("ROLLBACK", failed))

    def update(self) -> None:
        """Make the stack what it is asked to be; it is in UPDATE_IN_PROGRESS, and its origin is set."""
        stack = self.stack
        reason = self._apply() or self._set_outputs()
        if reason:
            stack.enter("UPDATE_ROLLBACK_IN_PROGRESS", reason)
            Operation(stack, self.backend).roll_back_update()
            return
        stack.enter("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        wanted = self.scope.dependencies
        removed = [stack.resources.pop(each) for each in stack.resources.keys() - wanted.keys()]
        self._clean_up(removed)
        stack.enter("UPDATE_COMPLETE")

    def roll_back_update(self, skipped: Collection[str] = ()) -> None:
        """Return to the origin of an update that failed, but for skipped resources, which stay as they are.

        The stack is in UPDATE_ROLLBACK_IN_PROGRESS.
        """
        stack, origin = self.stack, origin_of(self.stack)
        stack.revision = origin.revision
        made = [each for each in stack.resources if each not in origin.resources or each in origin.replaced]
        origin.superseded.extend(stack.resources.pop(each) for each in made)
        stack.resources.update({each: origin.resources[each] for each in origin.replaced})
        origin.replaced.clear()
        for logical_id in skipped:
            stack.put(stack.resources[logical_id], "UPDATE_COMPLETE")
        steps = {
            logical_id: Return(self, resource, origin.resources[logical_id])
            for logical_id, resource in stack.resources.items()
            if logical_id not in skipped and resource != origin.resources[logical_id]
        }
        failed = run(steps, self.backend.clock, stop_at_failure=True)
        if failed:
            reason = f"The following resource(s) failed to update: [{', '.join(failed)}]. "
            stack.enter("UPDATE_ROLLBACK_FAILED", reason)
            return
        stack.enter("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
        self._clean_up([], created_now=True)
        stack.enter("UPDATE_ROLLBACK_COMPLETE")

    def delete(self) -> None:
        """Delete the stack; it is in DELETE_IN_PROGRESS."""
        stack = self.stack
        failed = self._delete(stack.resources.values())
        status, reason = _outcome("DELETE", failed)
        if not failed:
            stack.deleted = datetime.now(UTC)
        stack.enter(status, reason)

    # Steps

    def supersede(self, resource: StackResource) -> None:
        """Have a resource deleted at the end of an update: another one has taken its place."""
        origin_of(self.stack).superseded.append(replace(resource, deletion_policy=resource.replacement_policy))

    def fail(self, reason: str) -> None:
        """Note why the operation as a whole cannot continue."""
        self._failure = f"{reason}{'' if reason.endswith('.') else '.'} "

    def context(self, resource: StackResource, previous: Mapping[str, Any] | None = None) -> Context:
        """Return where a resource is."""
        stack = self.stack
        return Context(
            client=self._client,
            account=stack.account,
            region=stack.region,
            partition=stack.partition,
            stack_id=stack.id,
            logical_id=resource.logical_id,
            name=resource.name,
            resource_type=resource.type,
            previous=previous or {},
        )

    def resolved(self, resource: StackResource, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return properties with what their dynamic references stand for; a custom resource may have none."""
        if is_custom(resource.type):
            references.check_none(properties)
            return properties
        resolved: Mapping[str, Any] = references.resolve(dict(properties), self._client)
        return resolved

    def _client(self, service: str) -> Any:
        return self.backend.clients(service, self.stack.region)

    @contextmanager
    def reported(self, resource: StackResource, status: str, *, kept: bool = True) -> Iterator[None]:
        """Turn what goes wrong with a resource into its status, an event, and a StepError.

        The stack keeps the resource with that status if it is one of its own (`kept`).
        """
        if self.backend.abandoned.is_set():
            raise AbandonedError
        try:
            yield
        except (StepError, AbandonedError):
            raise
        except TemplateError as error:
            self.fail(str(error))
            raise StepError from None
        except Exception as error:
            if kept and isinstance(error, ResourceError) and error.physical is not None:
                resource = replace(resource, physical=error.physical)
            (self.stack.put if kept else self.stack.announce)(resource, status, self._reason(error))
            raise StepError from None

    # Parts of operations

    def _scope(self, revision: Revision) -> StackScope:
        backend = self.backend

        def find(logical_id: str) -> Physical | None:
            resource = self.stack.resources.get(logical_id)
            return resource.physical if resource else None

        return StackScope(self.stack, revision, backend.store, backend.clients, find)

    def _is_doomed(self) -> bool:
        """Tell whether the stack, or the one that it is nested in, is to be deleted already."""
        root = self.backend.store.find(self.stack.region, self.stack.root_id or self.stack.id)
        return root is not None and root.status == "DELETE_IN_PROGRESS"

    def _apply(self, is_cancelled: Callable[[], bool] = lambda: False) -> str:
        """Create and update resources, and return why that failed; empty if it did not."""
        definitions = self.stack.revision.template.resources
        steps: dict[str, Step] = {
            logical_id: Put(self, definitions[logical_id], waits_for)
            for logical_id, waits_for in self.scope.dependencies.items()
        }
        failed = run(steps, self.backend.clock, stop_at_failure=True, is_cancelled=is_cancelled)
        if is_cancelled():
            return "Resource creation cancelled. "
        if self._failure:
            return self._failure
        reason = ""
        for verb in ("create", "update"):
            of_verb = [
                each
                for each in failed
                if each in self.stack.resources and self.stack.resources[each].status == f"{verb.upper()}_FAILED"
            ]
            if of_verb:
                reason += f"The following resource(s) failed to {verb}: [{', '.join(of_verb)}]. "
        return reason

    def _set_outputs(self) -> str:
        """Set outputs, exports and imports, and return why that failed; empty if it did not."""
        stack, store = self.stack, self.backend.store
        try:
            outputs = evaluated_outputs(stack.revision, self.scope)
        except (TemplateError, UnsupportedError) as error:
            return f"{error} "
        exported = {output.export: output.value for output in outputs.values() if output.export}
        for name in exported:
            other, _ = store.exports(stack.region).get(name, (stack, ""))
            if other is not stack:
                return f"Export with name {name} is already exported by stack {other.name}. "
        for output in stack.outputs.values():
            users = [user for user in store.importers(stack.region, output.export) if output.export]
            if users and exported.get(output.export) != output.value:
                verb = "update" if output.export in exported else "delete"
                return f"Cannot {verb} export {output.export} as it is in use by {listed(users)}. "
        stack.outputs = outputs
        stack.imports = frozenset(self.scope.imports)
        return ""

    def _clean_up(self, removed: list[StackResource], *, created_now: bool = False) -> None:
        """Delete what an update has left over. What cannot be deleted is left behind: no stack has it any more."""
        stack = self.stack
        current = {each.logical_id: each.physical for each in stack.resources.values()}
        superseded = [
            each
            for each in origin_of(stack).superseded
            if current.get(each.logical_id) != each.physical and each.physical
        ]
        self._delete([*removed, *superseded], created_now=created_now)
        stack.origin = None

    def _delete(
        self,
        gone: Iterable[StackResource],
        is_cancelled: Callable[[], bool] = lambda: False,
        *,
        created_now: bool = False,
    ) -> list[str]:
        """Delete resources, what depends on others before these, and return the logical ids of those that failed."""
        doomed = {f"{each.logical_id}/{each.physical_id}": each for each in gone}
        steps = {}
        for key, resource in doomed.items():
            dependents = frozenset(
                other for other, each in doomed.items() if resource.logical_id in each.dependencies and other != key
            )
            steps[key] = Delete(self, resource, dependents, created_now)
        failed = run(steps, self.backend.clock, stop_at_failure=False, is_cancelled=is_cancelled)
        return [doomed[key].logical_id for key in failed]

    def _reason(self, error: Exception) -> str:
        """Return the reason that a resource's event gives."""
        if isinstance(error, ResourceError | UnsupportedError):
            return str(error)
        if isinstance(error, ClientError):
            answer = error.response["Error"]
            metadata = error.response["ResponseMetadata"]
            message = (
                f"{answer.get('Message', '')} (Service: {metadata[SERVICE]}, "
                f"Status Code: {metadata['HTTPStatusCode']}, Request ID: {metadata.get('RequestId', uuid4())})"
            )
            code = next(code for part, code in _HANDLER_CODES if re.search(part, answer["Code"]))
        elif isinstance(error, BotoCoreError):
            message, code = str(error), "InvalidRequest"
        else:
            traceback.print_exception(error, file=sys.stderr)
            message, code = f"{type(error).__name__}: {error}", "InternalFailure"
        return f'Resource handler returned message: "{message}" (RequestToken: {uuid4()}, HandlerErrorCode: {code})'


def evaluated_outputs(revision: Revision, scope: StackScope) -> dict[str, Output]:
    """Return the outputs of a stack.

    Raises:
        TemplateError: One of them has no string for a value.
    """
    outputs = {}
    for key, definition in revision.template.outputs.items():
        if not scope.conditions.get(definition.get("Condition", ""), True):
            continue
        value = scope.evaluate(definition["Value"])
        references.check_none(value)
        if value is NO_VALUE or isinstance(value, dict | list):
            message = "Template format error: The Value field of every Outputs member must evaluate to a String."
            raise TemplateError(message)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        export = scope.evaluate(definition["Export"]["Name"]) if "Export" in definition else ""
        outputs[key] = Output(key, text, definition.get("Description", ""), export)
    return outputs


def listed(names: list[str]) -> str:
    """Return names as CloudFormation's messages list them: A, B and C."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _outcome(verb: str, failed: list[str]) -> tuple[str, str]:
    if failed:
        return f"{verb}_FAILED", f"The following resource(s) failed to delete: [{', '.join(failed)}]. "
    return f"{verb}_COMPLETE", ""
