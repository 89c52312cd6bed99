"""The steps of an operation on a stack, one for each resource: it is put, returned to what it was, or deleted."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from emulator.cloudformation.handlers import Handlers
from emulator.cloudformation.scope import StackScope
from emulator.cloudformation.stacks import CANCELLED, INITIATED, STACK_TYPE, Origin, Stack, StackResource
from emulator.cloudformation.template import ResourceDefinition
from emulator.resources.model import ResourceError
from toolchain import schemas
from toolchain.durations import seconds

_NAME_LIMIT: Final = 64


class Put:
    """One resource that the stack is to have: made, changed, replaced or left alone."""

    def __init__(
        self, handlers: Handlers, scope: StackScope, definition: ResourceDefinition, waits_for: frozenset[str]
    ) -> None:
        self.waits_for = waits_for
        self._handlers = handlers
        self._scope = scope
        self._definition = definition
        self._stack = handlers.stack
        self._before = self._stack.resources.get(definition.logical_id)
        self._wanted: StackResource
        self._work: Callable[[], None] = self._keep
        self._failure = "CREATE_FAILED"

    def start(self) -> float:
        """Announce what happens to it, and return how many seconds that takes."""
        before = self._before
        exists = before is not None and before.physical is not None
        self._failure = "UPDATE_FAILED" if exists else "CREATE_FAILED"
        self._wanted = before if exists and before else self._new()
        with self._handlers.reported(self._wanted, self._failure):
            wanted = self._evaluated()
            if before is None or before.physical is None:
                self._start(self._create, wanted, "CREATE_IN_PROGRESS", "")
            elif before.properties == wanted.properties:
                self._wanted = replace(
                    wanted, name=before.name, physical=before.physical, status=before.status, changed=before.changed
                )
                return 0
            elif schemas.needs_replacement(wanted.type, before.properties, wanted.properties):
                reason = "Requested update requires the creation of a new physical resource; hence creating one."
                self._start(self._replace, wanted, "UPDATE_IN_PROGRESS", reason)
            else:
                wanted = replace(wanted, name=before.name, physical=before.physical)
                self._start(self._update, wanted, "UPDATE_IN_PROGRESS", "")
        return seconds(self._definition.type)

    def carry_out(self) -> None:
        """Do it."""
        self._work()

    def cancel(self) -> None:
        """Say that it was cancelled, if it was more than left alone."""
        if self._work != self._keep:
            verb = "creation" if self._failure == "CREATE_FAILED" else "update"
            resource = self._before or replace(self._wanted, physical=None)
            self._stack.put(resource, self._failure, CANCELLED.format(verb))

    def _new(self) -> StackResource:
        definition = self._definition
        # AWS names parameters of Systems Manager after no stack: LocalStack's test_stack_deploy_order recorded such.
        prefix = "CFN" if definition.type == "AWS::SSM::Parameter" else self._stack.name
        name = physical_name(prefix, definition.logical_id)
        return StackResource(definition.logical_id, definition.type, name, dependencies=self.waits_for)

    def _evaluated(self) -> StackResource:
        definition, scope = self._definition, self._scope
        properties = scope.evaluate(dict(definition.properties))
        try:
            schemas.check(definition.type, self._stack.region, properties, definition.logical_id)
        except schemas.SchemaError as error:
            raise ResourceError(str(error)) from error
        properties = scope.complete(definition.type, properties)
        deletion_policy, replacement_policy = scope.policies(definition)
        return replace(
            self._new(),
            properties=properties,
            shown=scope.shown(definition, properties),
            metadata=scope.evaluate(definition.metadata),
            deletion_policy=deletion_policy,
            replacement_policy=replacement_policy,
        )

    def _start(self, work: Callable[[], None], wanted: StackResource, status: str, reason: str) -> None:
        self._work, self._wanted = work, wanted
        shown = replace(wanted, physical=self._before.physical if self._before else None)
        announced = self._stack.announce(shown, status, reason)
        if self._before is None:
            self._stack.resources[wanted.logical_id] = announced
        else:
            self._stack.resources[wanted.logical_id] = replace(
                self._before, status=status, reason=reason, changed=announced.changed
            )

    def _keep(self) -> None:
        self._stack.resources[self._wanted.logical_id] = self._wanted

    def _create(self) -> None:
        self._make("CREATE")

    def _replace(self) -> None:
        before = self._before
        assert before is not None  # noqa: S101 - it is being replaced
        origin_of(self._stack).replaced.add(before.logical_id)
        self._make("UPDATE")
        _supersede(self._stack, before)

    def _make(self, verb: str) -> None:
        stack, wanted = self._stack, self._wanted
        made = self._handlers.create(wanted, self._failure)
        resource = replace(wanted, physical=made)
        if wanted.type != STACK_TYPE:  # a nested stack had this event when it started
            stack.put(resource, f"{verb}_IN_PROGRESS", INITIATED)
        stack.put(resource, f"{verb}_COMPLETE")

    def _update(self) -> None:
        before, wanted = self._before, self._wanted
        assert before is not None  # noqa: S101 - it is being updated
        updated = self._handlers.update(before, wanted)
        if updated.ref != before.physical_id:
            _supersede(self._stack, before)
        self._stack.put(replace(wanted, physical=updated), "UPDATE_COMPLETE")


class Return:
    """One resource that gets back the properties that it had before the update."""

    def __init__(self, handlers: Handlers, resource: StackResource, origin: StackResource) -> None:
        self.waits_for = origin.dependencies
        self._handlers = handlers
        self._now = resource
        self._origin = origin

    def start(self) -> float:
        """Announce the way back, and return how many seconds it takes."""
        untouched = self._now.properties == self._origin.properties and self._now.status != "UPDATE_FAILED"
        if untouched or self._origin.physical is None:
            self._handlers.stack.resources[self._origin.logical_id] = self._origin
            self._untouched = True
            return 0
        self._untouched = False
        self._handlers.stack.put(self._now, "UPDATE_IN_PROGRESS")
        return seconds(self._now.type)

    def carry_out(self) -> None:
        """Change it back."""
        if self._untouched:
            return
        physical = self._handlers.update(self._now, self._origin)
        if physical.ref != self._now.physical_id:
            _supersede(self._handlers.stack, self._now)
        self._handlers.stack.put(replace(self._origin, physical=physical), "UPDATE_COMPLETE")

    def cancel(self) -> None:
        """Say that it was cancelled."""
        if not self._untouched:
            self._handlers.stack.put(self._now, "UPDATE_FAILED", CANCELLED.format("update"))


class Delete:
    """One resource that goes, unless it is to be retained."""

    def __init__(
        self, handlers: Handlers, resource: StackResource, waits_for: frozenset[str], created_now: bool
    ) -> None:
        self.waits_for = waits_for
        self._handlers = handlers
        self._resource = resource
        policy = resource.deletion_policy
        if created_now and policy == "RetainExceptOnCreate":
            policy = "Delete"
        self._retained = policy not in ("Delete", "Snapshot")
        self._keeps_snapshot = policy == "Snapshot"

    def start(self) -> float:
        """Announce the deletion, and return how many seconds it takes."""
        stack, resource = self._handlers.stack, self._resource
        if resource.physical is None:
            return 0
        if self._retained:
            skipped = stack.announce(resource, "DELETE_SKIPPED")
            if self._kept:
                stack.gone[resource.logical_id] = skipped
            return 0
        announced = stack.announce(resource, "DELETE_IN_PROGRESS")
        if self._kept:
            stack.resources[resource.logical_id] = announced
        return seconds(resource.type)

    def carry_out(self) -> None:
        """Delete it."""
        stack, resource = self._handlers.stack, self._resource
        if resource.physical is not None and not self._retained:
            self._handlers.delete(resource, keeps_snapshot=self._keeps_snapshot, kept=self._kept)
            deleted = stack.announce(resource, "DELETE_COMPLETE")
            if self._kept:
                stack.gone[resource.logical_id] = deleted
        if self._kept:
            del stack.resources[resource.logical_id]

    def cancel(self) -> None:
        """Say nothing: a roll-back is cancelled only by a deletion of the stack, which tries again."""

    @property
    def _kept(self) -> bool:
        """Tell whether the stack has this very resource; a replaced one has a successor of the same name."""
        kept = self._handlers.stack.resources.get(self._resource.logical_id)
        return kept is not None and kept.physical == self._resource.physical


def origin_of(stack: Stack) -> Origin:
    """Return what a stack was before the update that is in progress."""
    assert stack.origin is not None  # noqa: S101 - set from the start of an update to its end
    return stack.origin


def _supersede(stack: Stack, resource: StackResource) -> None:
    """Have a resource deleted at the end of an update: another one has taken its place."""
    origin_of(stack).superseded.append(replace(resource, deletion_policy=resource.replacement_policy))


def physical_name(stack_name: str, logical_id: str) -> str:
    """Return a name such as CloudFormation makes up; another one each time."""
    suffix = "".join(random.choices(string.ascii_letters + string.digits, k=12))  # noqa: S311 - no secret
    name = f"{stack_name}-{logical_id}-{suffix}"
    return name if len(name) <= _NAME_LIMIT else f"{stack_name[:24]}-{logical_id[:24]}-{suffix}"
