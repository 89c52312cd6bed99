"""What can be asked of CloudFormation: each request is checked, and starts an operation in a thread of its own."""

from __future__ import annotations

import re
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from threading import Event, RLock, Thread, Timer
from typing import Final
from uuid import uuid4

from botocore.exceptions import ClientError
from moto.core.exceptions import ServiceException

from emulator import gate
from emulator.background import join
from emulator.clients import Clients
from emulator.clock import Clock
from emulator.cloudformation.changes import Comparison
from emulator.cloudformation.handlers import AbandonedError, CloudFormationState
from emulator.cloudformation.operations import Operation, listed
from emulator.cloudformation.parameters import resolve_parameters
from emulator.cloudformation.scope import StackScope
from emulator.cloudformation.stacks import (
    CANCELLED,
    INITIATED,
    STACK_TYPE,
    ChangeSet,
    Origin,
    Request,
    Revision,
    Stack,
    StackResource,
    Store,
)
from emulator.cloudformation.template import Template
from emulator.cloudformation.validation import words_of
from emulator.resources.model import NOT_EMULATED, Model, Physical
from toolchain.values import TemplateError, UnsupportedError

_STACK_NAME: Final = re.compile(r"[a-zA-Z][-a-zA-Z0-9]{0,127}")
_UPDATABLE: Final = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"}
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html"""

_UNDELETABLE: Final = re.compile("UPDATE_.*IN_PROGRESS")
_LAST_CALL: Final = 5.0
"""Seconds within which a call to AWS that is in progress at a reset returns."""

_PCLUSTER_TAG: Final = "parallelcluster:cluster-name"
_NO_CHANGES: Final = (
    "The submitted information didn't contain changes. Submit different information to create a change set."
)


class RequestError(ServiceException):
    """A request is refused; codes are on the pages of the API's actions."""


class ValidationError(RequestError):
    """The request is wrong, or the stack's state forbids it."""

    code = "ValidationError"


class Engine:
    """The stacks of one account."""

    def __init__(self, account: str, clients: Clients, models: Mapping[str, Model], clock: Clock) -> None:
        self._account = account
        self._clients = clients
        self._models = models
        self._clock = clock
        self._lock = RLock()
        self._threads: dict[str, Thread] = {}
        self._backend = self._fresh()

    @property
    def store(self) -> Store:
        """Return all stacks."""
        return self._backend.store

    @property
    def clients(self) -> Clients:
        """Return the clients that resources are made with."""
        return self._clients

    def abandon(self) -> None:
        """Have operations in progress end as soon as the call that they wait for returns."""
        self._backend.abandoned.set()

    def reset(self) -> None:
        """Abandon what is in progress, wait for it, and forget all stacks."""
        self.abandon()
        for thread in list(self._threads.values()):
            thread.join(_LAST_CALL)
        with self._lock:
            self._backend = self._fresh()

    def settle(self, seconds: float) -> None:
        """Wait until no operation is in progress.

        Raises:
            ValueError: One is, after so many seconds.
        """
        join(self._threads.values(), seconds)

    # Stacks

    def stack(self, region: str, name: str, message: str = "Stack with id {} does not exist") -> Stack:
        """Return a stack, by name or id.

        Raises:
            ValidationError: There is none, with this message.
        """
        stack = self.store.find(region, name)
        if stack is None:
            raise ValidationError(message.format(name))
        return stack

    def create_stack(self, region: str, name: str, request: Request) -> Stack:
        """Start to create a stack."""
        _check_name(name)
        with self._lock:
            reviewed = self.store.find(region, name)
            if reviewed and reviewed.status == "REVIEW_IN_PROGRESS":  # LocalStack's test_create_while_in_review
                stack = reviewed
                stack.revision = self._revision(stack, request, None)
                stack.termination_protection, stack.token = request.termination_protection, request.token
                _make_obsolete(stack)
            else:
                stack = self._new_stack(region, name, request, parent=None)
            stack.enter("CREATE_IN_PROGRESS", "User Initiated")
        self._start(stack, Operation.create)
        return stack

    def update_stack(self, region: str, name: str, request: Request) -> Stack:
        """Start to update a stack."""
        with self._lock:
            stack = self.stack(region, name, "Stack [{}] does not exist")
            revision = self._updated_revision(stack, request)
            try:
                nothing = Comparison(stack, revision, self._backend).is_empty
            except (TemplateError, UnsupportedError) as error:
                raise ValidationError(words_of(error)) from None
            if nothing:
                raise ValidationError("No updates are to be performed.")
            self._enter_update(stack, revision, request.token)
            stack.change_set_id = None
        self._start(stack, Operation.update)
        return stack

    def delete_stack(self, region: str, name: str, token: str | None) -> None:
        """Start to delete a stack; one that is not there is no error. A creation that is in progress is cancelled."""
        with self._lock:
            stack = self.store.find(region, name)
            if stack is None or stack.status in ("DELETE_IN_PROGRESS", "DELETE_COMPLETE"):
                return
            if stack.termination_protection:
                raise ValidationError(f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled")
            if _UNDELETABLE.fullmatch(stack.status):
                raise ValidationError(f"Stack [{stack.name}] cannot be deleted while in status {stack.status}")
            stack.token = token
            if not self.may_delete(stack):
                return
            stack.deleted = datetime.now(UTC)
            stack.enter("DELETE_IN_PROGRESS", "User Initiated")
        self._start(stack, Operation.delete)

    def may_delete(self, stack: Stack) -> bool:
        """Tell whether no other stack uses an export of this one; if one does, an event says so.

        The stack keeps its status then: https://github.com/USSBA/aws-cft-tools/issues/27
        """
        for output in stack.outputs.values():
            users = [user for user in self.store.importers(stack.region, output.export) if output.export]
            if users:
                reason = f"Delete canceled. Cannot delete export {output.export} as it is in use by {listed(users)}."
                stack.enter(stack.status, reason)
                return False
        return True

    def continue_update_rollback(self, region: str, name: str, skipped: Collection[str], token: str | None) -> None:
        """Try again to roll back an update, but for resources that could not be: ``ID``, of nested stacks ``NAME.ID``.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ContinueUpdateRollback.html has what may
        be skipped. What AWS answers to anything else is not recorded anywhere; the words here are made up.
        """
        with self._lock:
            stack = self.stack(region, name, "Stack [{}] does not exist")
            if stack.parent_id:
                raise ValidationError(f"Stack:{stack.id} is nested; continue the roll-back of its root {stack.root_id}")
            if stack.status != "UPDATE_ROLLBACK_FAILED":
                message = f"Stack:{stack.id} is in {stack.status} state and can not continue rolling back update."
                raise ValidationError(message)
            of_stacks = self._skipped(stack, skipped)
            for each, logical_ids in of_stacks.items():
                self._by_id(each).skipped = frozenset(logical_ids)
            stack.token = token
            stack.enter("UPDATE_ROLLBACK_IN_PROGRESS", "User Initiated")
        self._start(stack, Operation.roll_back_update)

    def _skipped(self, root: Stack, names: Collection[str]) -> dict[str, set[str]]:
        """Return which resources a roll-back skips, by the id of their stack, which is the root or nested in it."""
        within = {each.name: each for each in self.store.live(root.region) if each.root_id == root.id}
        of_stacks: dict[str, set[str]] = defaultdict(set)
        wrong = []
        for name in names:
            nested, _, logical_id = name.rpartition(".")
            stack = within.get(nested) if nested else root
            resource = stack.resources.get(logical_id) if stack else None
            if stack and resource and self._may_be_skipped(stack, resource):
                of_stacks[stack.id].add(logical_id)
            else:
                wrong.append(name)
        if wrong:
            allowed = "allowed are those in UPDATE_FAILED whose roll-back failed, and was not cancelled"
            raise ValidationError(f"Resources [{', '.join(wrong)}] can not be skipped: {allowed}.")
        return of_stacks

    def _may_be_skipped(self, stack: Stack, resource: StackResource) -> bool:
        if stack.status != "UPDATE_ROLLBACK_FAILED" or resource.status != "UPDATE_FAILED":
            return False
        if resource.type == STACK_TYPE:
            embedded = self.store.find(stack.region, resource.physical_id)
            return embedded is not None and embedded.status.startswith("DELETE_")
        return resource.reason != CANCELLED.format("update")

    def protect(self, region: str, name: str, *, enabled: bool) -> Stack:
        """Set the termination protection of a root stack, and of the stacks that are nested in it."""
        with self._lock:
            root = self.stack(region, name)
            for stack in self.store.live(region):
                if root.id in (stack.id, stack.root_id):
                    stack.termination_protection = enabled
            return root

    # Nested stacks: their parent's operation waits for them.

    def create_nested(self, parent_id: str, logical_id: str, name: str, request: Request) -> Stack:
        """Create a nested stack; what fails is left for the parent to delete.

        The parent tells of it before the nested stack does:
        https://github.com/aws-samples/aws-scalable-big-blue-button-example/issues/36 has such events.
        """
        with self._lock:
            parent = self._by_id(parent_id)
            request = replace(
                request,
                capabilities=parent.revision.capabilities,
                termination_protection=parent.termination_protection,
            )
            stack = self._new_stack(parent.region, name, request, parent)
            resource = replace(parent.resources[logical_id], physical=Physical(stack.id))
            parent.put(resource, resource.status, INITIATED)
            stack.enter("CREATE_IN_PROGRESS", "User Initiated")
        Operation(stack, self._backend).create()
        return stack

    def update_nested(self, stack_id: str, request: Request) -> tuple[Stack, str]:
        """Update a nested stack, whether it is what it is asked to be already or not; return it, and its good end.

        One that could not be rolled back is on its way back: that is continued.
        """
        with self._lock:
            stack = self._by_id(stack_id)
            request = replace(request, capabilities=stack.revision.capabilities)
            if stack.status == "UPDATE_ROLLBACK_FAILED":
                stack.enter("UPDATE_ROLLBACK_IN_PROGRESS", "User Initiated")
                work, done = Operation.roll_back_update, "UPDATE_ROLLBACK_COMPLETE"
            else:
                self._enter_update(stack, self._updated_revision(stack, request), token=None)
                work, done = Operation.update, "UPDATE_COMPLETE"
        work(Operation(stack, self._backend))
        return stack, done

    def delete_nested(self, stack_id: str) -> Stack:
        """Delete a nested stack."""
        stack = self._by_id(stack_id)
        if stack.status != "DELETE_COMPLETE" and self.may_delete(stack):
            stack.deleted = datetime.now(UTC)
            stack.enter("DELETE_IN_PROGRESS", "User Initiated")
            Operation(stack, self._backend).delete()
        return stack

    # Change sets

    def create_change_set(
        self, region: str, name: str, stack_name: str, request: Request, *, change_set_type: str, description: str
    ) -> tuple[Stack, ChangeSet]:
        """Create a change set, and for type CREATE its stack, which then waits for a review.

        The name of one that was executed is free again (https://github.com/elias5000/clouds-aws/issues/9 does so).
        """
        with self._lock:
            if change_set_type == "CREATE":
                stack = self.store.find(region, stack_name) or self._new_stack(region, stack_name, request, parent=None)
                if stack.status not in ("", "REVIEW_IN_PROGRESS"):
                    message = (
                        f"Stack [{stack_name}] already exists and cannot be created again with the changeSet [{name}]."
                    )
                    raise ValidationError(message)
                revision = self._revision(stack, request, stack.revision)
            else:
                stack = self.stack(region, stack_name, "Stack [{}] does not exist")
                revision = self._updated_revision(stack, request)
            if any(each.name == name and not each.is_executed for each in stack.change_sets.values()):
                raise RequestError("AlreadyExistsException", f"ChangeSet {name} already exists for stack {stack.name}")
            if not stack.status:
                stack.enter("REVIEW_IN_PROGRESS", "User Initiated")
            change_set = ChangeSet(
                id=f"arn:{stack.partition}:cloudformation:{region}:{self._account}:changeSet/{name}/{uuid4()}",
                name=name,
                type=change_set_type,
                description=description,
                revision=revision,
            )
            try:
                comparison = Comparison(stack, revision, self._backend)
                change_set.changes = comparison.changes
                # A new stack may be empty: LocalStack's test_simple_condition_evaluation_doesnt_deploy_resource.
                is_empty = change_set_type != "CREATE" and comparison.is_empty
                change_set.failure = _NO_CHANGES if is_empty else ""
            except (TemplateError, UnsupportedError) as error:
                change_set.failure = words_of(error)
            if change_set.failure:
                change_set.execution_status = "UNAVAILABLE"
            stack.change_sets[change_set.id] = change_set
            return stack, change_set

    def change_set(self, region: str, name: str, stack_name: str | None) -> tuple[Stack, ChangeSet]:
        """Return a change set and its stack, by its id or by both names; of two of one name, the younger.

        Raises:
            ValidationError: There is no such stack, or none is named.
            RequestError: There is no such change set.
        """
        if name.startswith("arn:"):
            stacks = self.store.all(region)
        elif not stack_name:
            raise ValidationError("StackName must be specified if ChangeSetName is not specified as an ARN.")
        else:
            stacks = [self.stack(region, stack_name, "Stack [{}] does not exist")]
        for stack in stacks:
            for change_set in reversed(stack.change_sets.values()):
                if name == change_set.id or change_set.is_named(name):
                    return stack, change_set
        raise RequestError("ChangeSetNotFoundException", f"ChangeSet [{name}] does not exist")

    def delete_change_set(self, region: str, name: str, stack_name: str | None) -> None:
        """Delete a change set; one that is not there is no error, but a stack that is not there is.

        https://github.com/aws/aws-cdk-cli has the first beside its call of DeleteChangeSet; the second is recorded by
        LocalStack's test api/test_changesets.py.
        """
        with self._lock:
            try:
                stack, change_set = self.change_set(region, name, stack_name)
            except ValidationError:
                raise
            except RequestError:
                return
            del stack.change_sets[change_set.id]

    def execute_change_set(self, region: str, name: str, stack_name: str | None, token: str | None) -> None:
        """Start to do what a change set says."""
        with self._lock:
            stack, change_set = self.change_set(region, name, stack_name)
            if change_set.execution_status != "AVAILABLE":
                kind, status = "execution status", change_set.execution_status
                if change_set.failure:
                    kind, status = "status", change_set.status
                raise RequestError(
                    "InvalidChangeSetStatusException",
                    f"ChangeSet [{change_set.id}] cannot be executed in its current {kind} of [{status}]",
                )
            if change_set.type == "CREATE":
                stack.token = token
                stack.revision = change_set.revision
                stack.updated = datetime.now(UTC)
                stack.enter("CREATE_IN_PROGRESS", "User Initiated")
                work = Operation.create
            else:
                self._check_updatable(stack)
                self._enter_update(stack, change_set.revision, token)
                work = Operation.update
            # The others compare with a state that is about to be gone.
            stack.change_sets = {change_set.id: change_set}
            stack.change_set_id = change_set.id
            change_set.execution_status = "EXECUTE_IN_PROGRESS"

        def execute(operation: Operation) -> None:
            work(operation)
            succeeded = stack.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE")
            change_set.execution_status = "EXECUTE_COMPLETE" if succeeded else "EXECUTE_FAILED"

        self._start(stack, execute)

    # Templates

    def stored_text(self, url: str, region: str) -> str:
        """Return the text of a template in S3, given any of the addresses that S3 has.

        Raises:
            ValidationError: It is not there.
        """
        if url.startswith("s3://"):  # as LocalStack's test_create_stack_from_s3_template_url recorded
            bucket = url.removeprefix("s3://").partition("/")[0]
            raise ValidationError(f"S3 error: Domain name specified in {bucket} is not a valid S3 domain")
        location = _s3_location(url)
        if location is None:
            raise ValidationError("TemplateURL must be a supported URL.")
        bucket, key = location
        if gate.machines_write(bucket):
            raise ValidationError(NOT_EMULATED.format(gate.CODE_OF_MACHINES.format(bucket)))
        try:
            body: bytes = self._clients("s3", region).get_object(Bucket=bucket, Key=key)["Body"].read()
        except ClientError as error:
            raise ValidationError(f"S3 error: {error.response['Error'].get('Message', '')}") from None
        return body.decode()

    # Parts

    def _fresh(self) -> CloudFormationState:
        return CloudFormationState(Store(), self._clients, self._models, self._clock, Event())

    def _by_id(self, stack_id: str) -> Stack:
        region = stack_id.split(":")[3]
        return self.stack(region, stack_id)

    def _new_stack(self, region: str, name: str, request: Request, parent: Stack | None) -> Stack:
        _check_name(name)
        if self.store.find(region, name):
            raise RequestError("AlreadyExistsException", f"Stack [{name}] already exists")
        partition = self._clients.partition(region)
        stack = Stack(
            id=f"arn:{partition}:cloudformation:{region}:{self._account}:stack/{name}/{uuid4()}",
            name=name,
            region=region,
            account=self._account,
            partition=partition,
            termination_protection=request.termination_protection,
            token=request.token,
            parent_id=parent.id if parent else None,
            root_id=(parent.root_id or parent.id) if parent else None,
        )
        stack.revision = self._revision(stack, request, None)
        self.store.add(stack)
        return stack

    def _updated_revision(self, stack: Stack, request: Request) -> Revision:
        self._check_updatable(stack)
        revision = self._revision(stack, request, stack.revision)
        types = {logical_id: each.type for logical_id, each in stack.resources.items()}
        changed = [
            logical_id
            for logical_id, definition in revision.template.resources.items()
            if types.get(logical_id, definition.type) != definition.type
        ]
        if changed:
            raise ValidationError(
                "Update of resource type is not permitted. The new template modifies resource type of the following "
                f"resources: [{', '.join(changed)}]"
            )
        return revision

    def _check_updatable(self, stack: Stack) -> None:
        if stack.status not in _UPDATABLE:
            raise ValidationError(f"Stack:{stack.id} is in {stack.status} state and can not be updated.")

    def _revision(self, stack: Stack, request: Request, current: Revision | None) -> Revision:
        """Return what a request makes of a stack, checked as far as it can be without AWS's answers."""
        try:
            template = Template.parse(request.template)
        except (TemplateError, UnsupportedError) as error:
            raise ValidationError(words_of(error)) from None
        kept = {key: current.parameters[key].value for key in request.kept_parameters} if current else {}
        values = {**request.parameters, **kept}
        missing = sorted(template.capabilities() - _acknowledged(request.capabilities))
        if missing:
            raise RequestError("InsufficientCapabilitiesException", f"Requires capabilities : [{', '.join(missing)}]")
        ssm = self._clients("ssm", stack.region)
        try:
            parameters = resolve_parameters(template.parameters, values, ssm)
            tags = (current.tags if current else {}) if request.tags is None else request.tags
            revision = Revision(template, parameters, tags, request.capabilities)
            scope = StackScope(stack, revision, self.store, self._clients, lambda _: None)
            template.check_rules(scope.holds)
            template.check_circles(scope.conditions)
            template.check_presence(scope.conditions)
            scope.check_mappings()
            for logical_id in scope.dependencies:
                scope.policies(template.resources[logical_id])
        except (TemplateError, UnsupportedError) as error:
            raise ValidationError(words_of(error)) from None
        return revision

    def _enter_update(self, stack: Stack, revision: Revision, token: str | None) -> None:
        stack.origin = Origin(stack.revision, dict(stack.resources))
        stack.revision = revision
        _make_obsolete(stack)
        stack.token = token
        stack.updated = datetime.now(UTC)
        stack.enter("UPDATE_IN_PROGRESS", "User Initiated")

    def _start(self, stack: Stack, work: Callable[[Operation], None]) -> None:
        """Carry out an operation in a thread as soon as the one before on this stack has ended; give it a moment."""
        backend = self._backend

        def carry_out() -> None:
            try:
                if previous:
                    previous.join()
                work(Operation(stack, backend))
            except AbandonedError:
                pass
            except Exception as error:
                traceback.print_exception(error, file=sys.stderr)
                kind = stack.status.partition("_")[0]
                stack.enter(f"{kind}_FAILED", f"Internal failure of the emulator: {type(error).__name__}: {error}")
            finally:
                if self._threads.get(stack.id) is thread:
                    del self._threads[stack.id]

        # ParallelCluster asks for a stack of its own once more when it has it deleted, and is lost if that is gone.
        is_asked_for = stack.status == "DELETE_IN_PROGRESS" and _PCLUSTER_TAG in stack.revision.tags
        thread: Thread = Timer(1.0, carry_out) if is_asked_for else Thread(target=carry_out)
        thread.daemon = True
        with self._lock:
            previous = self._threads.get(stack.id)
            self._threads[stack.id] = thread
            thread.start()
        if not is_asked_for:
            thread.join(self._clock.patience)


def _check_name(name: str) -> None:
    """Refuse what cannot be the name of a stack, such as the id of one.

    Raises:
        ValidationError: It cannot.
    """
    if not _STACK_NAME.fullmatch(name):
        raise ValidationError(
            f"1 validation error detected: Value '{name}' at 'stackName' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*"
        )


def _make_obsolete(stack: Stack) -> None:
    """Let no change set be executed that compares with a state that is about to be gone."""
    for change_set in stack.change_sets.values():
        if change_set.execution_status == "AVAILABLE":
            change_set.execution_status = "OBSOLETE"


def _acknowledged(capabilities: Iterable[str]) -> set[str]:
    given = set(capabilities)
    return given | {"CAPABILITY_IAM"} if "CAPABILITY_NAMED_IAM" in given else given


def _s3_location(url: str) -> tuple[str, str] | None:
    """Return bucket and key of an object's address: bucket in the host's name, or first in the path."""
    match = re.fullmatch(r"https?://([^/?]+)/([^?]+)(?:\?.*)?", url)
    if match is None:
        return None
    host, path = match.groups()
    virtual = re.fullmatch(r"(.+)\.s3[.-][-a-z0-9.]*amazonaws\.com(\.cn)?", host)
    if virtual:
        return virtual[1], path
    bucket, _, key = path.partition("/")
    return (bucket, key) if key else None
