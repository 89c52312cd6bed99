"""The handlers of resource types, as AWS calls what creates, updates and deletes a resource, called for one stack."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, Final
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from emulator import resources
from emulator.clients import SERVICE, Clients
from emulator.clock import Clock
from emulator.cloudformation import references
from emulator.cloudformation.scheduler import StepError
from emulator.cloudformation.stacks import Stack, StackResource, Store, is_custom
from emulator.cloudformation.validation import words_of
from emulator.faults import FAULTS_IN_FORCE
from emulator.resources.model import Context, Model, Physical, ResourceError
from toolchain.values import TemplateError, UnsupportedError

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


class Handlers:
    """Calls the handlers for resources of one stack; what goes wrong becomes the resource's status and an event.

    Attributes:
        failure: Why the operation as a whole cannot continue, a sentence; empty: it can.
    """

    def __init__(self, stack: Stack, backend: CloudFormationState) -> None:
        self.stack = stack
        self.failure = ""
        self._backend = backend

    def create(self, resource: StackResource, failed: str) -> Physical:
        """Create a resource; `failed` is its status if that fails."""
        with self.reported(resource, failed):
            FAULTS_IN_FORCE.check_creation(resource.logical_id, resource.type)
            properties = self._resolved(resource, resource.properties)
            return resources.create(resource.type, self._context(resource), properties, self._backend.models)

    def update(self, now: StackResource, wanted: StackResource) -> Physical:
        """Change a resource in place from the properties that it has now to those that are wanted."""
        assert now.physical is not None  # noqa: S101 - only what exists is changed
        with self.reported(now, "UPDATE_FAILED"):
            if is_custom(wanted.type) and now.properties.get("ServiceToken") != wanted.properties.get("ServiceToken"):
                raise ResourceError("Modifying service token is not allowed.")
            properties = self._resolved(wanted, wanted.properties)
            same = {name for name, value in wanted.properties.items() if now.properties.get(name) == value}
            previous = {**now.properties, **{name: properties[name] for name in same}}
            context = self._context(wanted, previous)
            return resources.update(wanted.type, context, now.physical, properties, self._backend.models)

    def delete(self, resource: StackResource, *, keeps_snapshot: bool, kept: bool) -> None:
        """Delete a resource; `kept`: the stack has it still."""
        assert resource.physical is not None  # noqa: S101 - only what exists is deleted
        with self.reported(resource, "DELETE_FAILED", kept=kept):
            context = replace(self._context(resource), keeps_snapshot=keeps_snapshot)
            models = self._backend.models
            resources.delete(resource.type, context, resource.physical, resource.properties, models)

    @contextmanager
    def reported(self, resource: StackResource, status: str, *, kept: bool = True) -> Iterator[None]:
        """Turn what goes wrong with a resource into its status, an event, and a StepError.

        The stack keeps the resource with that status if it is one of its own (`kept`).
        """
        if self._backend.abandoned.is_set():
            raise AbandonedError
        try:
            yield
        except (StepError, AbandonedError):
            raise
        except TemplateError as error:
            self.failure = f"{error}{'' if str(error).endswith('.') else '.'} "
            raise StepError from None
        except Exception as error:
            if kept and isinstance(error, ResourceError) and error.physical is not None:
                resource = replace(resource, physical=error.physical)
            (self.stack.put if kept else self.stack.announce)(resource, status, _reason(error))
            raise StepError from None

    def _context(self, resource: StackResource, previous: Mapping[str, Any] | None = None) -> Context:
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

    def _resolved(self, resource: StackResource, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return properties with what their dynamic references stand for; a custom resource may have none."""
        if is_custom(resource.type):
            references.check_none(properties)
            return properties
        resolved: Mapping[str, Any] = references.resolve(dict(properties), self._client)
        return resolved

    def _client(self, service: str) -> Any:
        return self._backend.clients(service, self.stack.region)


def _reason(error: Exception) -> str:
    """Return the reason that a resource's event gives."""
    if isinstance(error, UnsupportedError):
        return words_of(error)
    if isinstance(error, ResourceError):
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
