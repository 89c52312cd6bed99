"""The operations on a stack: create, update, roll back, delete. Each runs to its end in the thread that calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from emulator.cloudformation import references
from emulator.cloudformation.handlers import CloudFormationState, Handlers
from emulator.cloudformation.scheduler import Step, run
from emulator.cloudformation.scope import StackScope
from emulator.cloudformation.stacks import (
    Output,
    Revision,
    Stack,
    StackResource,
)
from emulator.cloudformation.steps import Delete, Put, Return, origin_of
from emulator.cloudformation.validation import words_of
from emulator.resources.model import Physical
from toolchain.values import NO_VALUE, TemplateError, UnsupportedError


class Operation:
    """Operations on one stack."""

    def __init__(self, stack: Stack, backend: CloudFormationState) -> None:
        self._stack = stack
        self._backend = backend
        self._handlers = Handlers(stack, backend)
        self._scope = self._scope_of(stack.revision)

    # What a thread runs

    def create(self) -> None:
        """Create what the stack is asked to have; it is in CREATE_IN_PROGRESS."""
        stack = self._stack
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
            stack.deleted = datetime.now(UTC)
            stack.enter("ROLLBACK_IN_PROGRESS", f"{reason}Rollback requested by user.")
        failed = self._delete(self._stack.resources.values(), self._is_doomed, created_now=True)
        with self._stack.lock:
            if self._stack.status == "ROLLBACK_IN_PROGRESS":
                self._stack.enter(*_outcome("ROLLBACK", failed))

    def update(self) -> None:
        """Make the stack what it is asked to be; it is in UPDATE_IN_PROGRESS, and its origin is set."""
        stack = self._stack
        reason = self._apply() or self._set_outputs()
        if reason:
            stack.enter("UPDATE_ROLLBACK_IN_PROGRESS", reason)
            Operation(stack, self._backend).roll_back_update()
            return
        stack.enter("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        wanted = self._scope.dependencies
        removed = [stack.resources.pop(each) for each in stack.resources.keys() - wanted.keys()]
        self._clean_up(removed)
        stack.enter("UPDATE_COMPLETE")

    def roll_back_update(self) -> None:
        """Return to the origin of an update that failed, but for `skipped` resources, which stay as they are.

        The stack is in UPDATE_ROLLBACK_IN_PROGRESS.
        """
        stack, origin = self._stack, origin_of(self._stack)
        stack.revision = origin.revision
        made = [each for each in stack.resources if each not in origin.resources or each in origin.replaced]
        origin.superseded.extend(stack.resources.pop(each) for each in made)
        stack.resources.update({each: origin.resources[each] for each in origin.replaced})
        origin.replaced.clear()
        skipped, stack.skipped = stack.skipped, frozenset()
        for logical_id in skipped:
            stack.put(stack.resources[logical_id], "UPDATE_COMPLETE")
        steps = {
            logical_id: Return(self._handlers, resource, origin.resources[logical_id])
            for logical_id, resource in stack.resources.items()
            if logical_id not in skipped and resource != origin.resources[logical_id]
        }
        failed = run(steps, self._backend.clock, stop_at_failure=True)
        if failed:
            reason = f"The following resource(s) failed to update: [{', '.join(failed)}]. "
            stack.enter("UPDATE_ROLLBACK_FAILED", reason)
            return
        stack.enter("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
        self._clean_up([], created_now=True)
        stack.enter("UPDATE_ROLLBACK_COMPLETE")

    def delete(self) -> None:
        """Delete the stack; it is in DELETE_IN_PROGRESS."""
        stack = self._stack
        failed = self._delete(stack.resources.values())
        stack.enter(*_outcome("DELETE", failed))

    # Parts of operations

    def _scope_of(self, revision: Revision) -> StackScope:
        backend = self._backend

        def find(logical_id: str) -> Physical | None:
            resource = self._stack.resources.get(logical_id)
            return resource.physical if resource else None

        return StackScope(self._stack, revision, backend.store, backend.clients, find)

    def _is_doomed(self) -> bool:
        """Tell whether the stack, or the one that it is nested in, is to be deleted already."""
        root = self._backend.store.find(self._stack.region, self._stack.root_id or self._stack.id)
        return root is not None and root.status == "DELETE_IN_PROGRESS"

    def _apply(self, is_cancelled: Callable[[], bool] = lambda: False) -> str:
        """Create and update resources, and return why that failed; empty if it did not."""
        definitions = self._stack.revision.template.resources
        steps: dict[str, Step] = {
            logical_id: Put(self._handlers, self._scope, definitions[logical_id], waits_for)
            for logical_id, waits_for in self._scope.dependencies.items()
        }
        failed = run(steps, self._backend.clock, stop_at_failure=True, is_cancelled=is_cancelled)
        if is_cancelled():
            return "Resource creation cancelled. "
        if self._handlers.failure:
            return self._handlers.failure
        reason = ""
        for verb in ("create", "update"):
            of_verb = [
                each
                for each in failed
                if each in self._stack.resources and self._stack.resources[each].status == f"{verb.upper()}_FAILED"
            ]
            if of_verb:
                reason += f"The following resource(s) failed to {verb}: [{', '.join(of_verb)}]. "
        return reason

    def _set_outputs(self) -> str:
        """Set outputs, exports and imports, and return why that failed; empty if it did not."""
        stack, store = self._stack, self._backend.store
        try:
            outputs = evaluated_outputs(stack.revision, self._scope)
        except (TemplateError, UnsupportedError) as error:
            return f"{words_of(error)} "
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
        stack.imports = frozenset(self._scope.imports)
        return ""

    def _clean_up(self, removed: list[StackResource], *, created_now: bool = False) -> None:
        """Delete what an update has left over. What cannot be deleted is left behind: no stack has it any more."""
        stack = self._stack
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
            steps[key] = Delete(self._handlers, resource, dependents, created_now)
        failed = run(steps, self._backend.clock, stop_at_failure=False, is_cancelled=is_cancelled)
        return [doomed[key].logical_id for key in failed]


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
