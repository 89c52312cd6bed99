"""What an update would change, computed without changing anything: change sets, and whether there is anything to do.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-changesets-view.html
"""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import TopologicalSorter
from operator import itemgetter
from typing import Any, Final

from emulator.cloudformation.handlers import CloudFormationState
from emulator.cloudformation.operations import evaluated_outputs
from emulator.cloudformation.scope import StackScope
from emulator.cloudformation.stacks import (
    STACK_TYPE,
    Revision,
    Stack,
    StackResource,
    is_custom,
)
from emulator.cloudformation.template import ResourceDefinition
from emulator.resources.model import Physical
from toolchain import schemas
from toolchain.values import TemplateError, intrinsics, references

KNOWN_AFTER_APPLY: Final = "{{changeSet:KNOWN_AFTER_APPLY}}"
"""What AWS writes for a value that does not exist yet, and for any that Fn::GetStackOutput gives.

https://github.com/aws/aws-cdk/issues/38829,
https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/2559
"""

_POLICIES: Final = {"Retain": "Retain", "RetainExceptOnCreate": "Retain", "Snapshot": "Snapshot"}


class _LaterAttributes(dict[str, Any]):
    """The attributes of a resource that does not exist yet: whatever is asked for is known later."""

    def __contains__(self, attribute: object) -> bool:
        return True

    def __missing__(self, attribute: str) -> str:
        return KNOWN_AFTER_APPLY


class Comparison:
    """A stack beside what it is asked to be.

    Attributes:
        changes: What would happen to its resources, as `ResourceChange` of the API has it.

    Raises:
        TemplateError: A value cannot be computed, an import that is not exported for instance.
    """

    def __init__(self, stack: Stack, revision: Revision, backend: CloudFormationState) -> None:
        self._stack = stack
        self._revision = revision
        self._becoming: dict[str, Physical] = {}
        store, clients = backend.store, backend.clients
        self._scope = StackScope(stack, revision, store, clients, self._becoming.get)
        self.changes = self._compare()

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nothing to do at all."""
        stack = self._stack
        if self.changes or dict(self._revision.tags) != dict(stack.revision.tags):
            return False
        return evaluated_outputs(self._revision, self._scope) == stack.outputs

    def _compare(self) -> list[dict[str, Any]]:
        wanted = self._scope.dependencies
        definitions = self._revision.template.resources
        changes = []
        for logical_id in TopologicalSorter(wanted).static_order():
            change = self._change(definitions[logical_id], self._stack.resources.get(logical_id))
            if change is not None:
                changes.append(change)
        removed = [each for logical_id, each in self._stack.resources.items() if logical_id not in wanted]
        for resource in removed:
            policy = _POLICIES.get(resource.deletion_policy, "Delete")
            changes.append(_described("Remove", resource, PolicyAction=policy))
        return sorted(changes, key=itemgetter("LogicalResourceId"))

    def _change(self, definition: ResourceDefinition, before: StackResource | None) -> dict[str, Any] | None:
        logical_id, resource_type = definition.logical_id, definition.type
        later = Physical(KNOWN_AFTER_APPLY, _LaterAttributes())
        if before is None or before.physical is None:
            self._becoming[logical_id] = later
            return _described("Add", definition)
        properties = self._properties(definition)
        different = {
            name
            for name in properties.keys() | before.properties.keys()
            if properties.get(name) != before.properties.get(name)
        }
        if different or self._is_rewritten(definition):
            weak = {name for name, value in definition.properties.items() if _reads_an_output(value)}
            properties |= dict.fromkeys(weak, KNOWN_AFTER_APPLY)
            different |= weak
        recreating = (
            set(schemas.needs_replacement(resource_type, before.properties, properties)) if different else set()
        )
        unknown = {name for name in different if KNOWN_AFTER_APPLY in str(properties.get(name))}
        details = [
            _detail(
                "Tags" if name == "Tags" else "Properties",
                None if name == "Tags" else name,
                "Never" if name not in recreating else "Conditionally" if name in unknown else "Always",
                dynamic=name in unknown,
            )
            for name in sorted(different)
        ]
        deletion_policy, replacement_policy = self._scope.policies(definition)
        for attribute, old, new in (
            ("Metadata", before.metadata, self._value(definition.metadata)),
            ("DeletionPolicy", before.deletion_policy, deletion_policy),
            ("UpdateReplacePolicy", before.replacement_policy, replacement_policy),
        ):
            if old != new:
                details.append(_detail(attribute, None, "Never", dynamic=False))
        replacement = "True" if recreating - unknown else "Conditional" if recreating else "False"
        if recreating:
            self._becoming[logical_id] = later
        elif different and _may_give_other_attributes(resource_type):
            self._becoming[logical_id] = Physical(before.physical.ref, _LaterAttributes())
        else:
            self._becoming[logical_id] = before.physical
        if not details:
            return None
        policy = f"ReplaceAnd{_POLICIES.get(before.replacement_policy, 'Delete')}" if replacement == "True" else None
        return _described("Modify", before, Replacement=replacement, Details=details, PolicyAction=policy)

    def _is_rewritten(self, definition: ResourceDefinition) -> bool:
        """Tell whether the properties have another text than in the template that the stack has."""
        before = self._stack.revision.template.resources.get(definition.logical_id)
        return before is not None and before.properties != definition.properties

    def _properties(self, definition: ResourceDefinition) -> dict[str, Any]:
        values = {name: self._value({name: value}) for name, value in definition.properties.items()}
        evaluated = {name: value for members in values.values() for name, value in members.items()}
        return self._scope.complete(definition.type, evaluated)

    def _value(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return evaluated members; what cannot be told as long as some resource is not there is known later."""
        try:
            evaluated: dict[str, Any] = self._scope.evaluate(dict(members))
        except TemplateError:
            physicals = [self._becoming[name] for name in references(members) if name in self._becoming]
            if any(isinstance(physical.attributes, _LaterAttributes) for physical in physicals):
                return dict.fromkeys(members, KNOWN_AFTER_APPLY)
            raise
        return evaluated


def _described(action: str, resource: ResourceDefinition | StackResource, **facts: Any) -> dict[str, Any]:
    return {
        "Action": action,
        "LogicalResourceId": resource.logical_id,
        "PhysicalResourceId": resource.physical_id or None if isinstance(resource, StackResource) else None,
        "ResourceType": resource.type,
        "Scope": sorted({detail["Target"]["Attribute"] for detail in facts.get("Details", [])}),
        "Details": [],
        **facts,
    }


def _detail(attribute: str, name: str | None, recreation: str, *, dynamic: bool) -> dict[str, Any]:
    """Describe what differs; `dynamic`: the new value is known only once other resources have changed."""
    return {
        "Target": {"Attribute": attribute, "Name": name, "RequiresRecreation": recreation},
        "Evaluation": "Dynamic" if dynamic else "Static",
        "ChangeSource": "ResourceReference" if dynamic else "DirectModification",
    }


def _reads_an_output(value: Any) -> bool:
    """Tell whether a value hangs on Fn::GetStackOutput, which is resolved only while a change set is executed."""
    return any(function == "Fn::GetStackOutput" for function, _ in intrinsics(value))


def _may_give_other_attributes(resource_type: str) -> bool:
    """Tell whether the attributes of a type are made up by what provides it, and may differ after any update."""
    return is_custom(resource_type) or resource_type == STACK_TYPE
