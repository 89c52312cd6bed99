"""What an update would change, computed without changing anything: change sets, and whether there is anything to do.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-changesets-view.html
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
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
from toolchain.values import TemplateError, intrinsics, references, referred

KNOWN_AFTER_APPLY: Final = "{{changeSet:KNOWN_AFTER_APPLY}}"
"""What AWS writes for a value that does not exist yet, and for any that Fn::GetStackOutput gives.

https://github.com/aws/aws-cdk/issues/38829,
https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/2559
"""

_OF_TEMPLATE: Final = "DirectModification"
_CONTEXTS: Final = ("BeforeContext", "AfterContext")
_OF_VALUES: Final = ("AfterValue", "AttributeChangeType", "BeforeValue", "Path")

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
        # A policy that is written out is another, even if it is the default: LocalStack's
        # test_update_with_previous_parameter_value.
        now, then = (revision.template.resources for revision in (self._revision, stack.revision))
        if any(name in now and now[name].policies != each.policies for name, each in then.items()):
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
            context = _context(self._before_removal(resource))
            changes.append(_described("Remove", resource, PolicyAction=policy, BeforeContext=context))
        return sorted(changes, key=itemgetter("LogicalResourceId"))

    def _change(self, definition: ResourceDefinition, before: StackResource | None) -> dict[str, Any] | None:
        logical_id, resource_type = definition.logical_id, definition.type
        later = Physical(KNOWN_AFTER_APPLY, _LaterAttributes())
        if before is None or before.physical is None:
            self._becoming[logical_id] = later
            return _described("Add", definition, AfterContext=_context(self._foreseen(definition)))
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
        shown = self._scope.shown(definition, properties) | dict.fromkeys(
            (name for name, value in properties.items() if value == KNOWN_AFTER_APPLY), KNOWN_AFTER_APPLY
        )
        recreating = (
            set(schemas.needs_replacement(resource_type, before.properties, properties)) if different else set()
        )
        unknown = {name for name in different if KNOWN_AFTER_APPLY in str(properties.get(name))}
        details: list[dict[str, Any]] = []
        for name in sorted(different):
            target = {
                "Attribute": "Tags" if name == "Tags" else "Properties",
                "Name": None if name == "Tags" else name,
                "RequiresRecreation": "Never"
                if name not in recreating
                else "Conditionally"
                if name in unknown
                else "Always",
                **_values(name, before.shown, shown),
            }
            details.extend(self._details(target, definition.properties.get(name), is_unknown=name in unknown))
        deletion_policy, replacement_policy = self._scope.policies(definition)
        for attribute, old, new in (
            ("Metadata", before.metadata, self._value(definition.metadata)),
            ("DeletionPolicy", before.deletion_policy, deletion_policy),
            ("UpdateReplacePolicy", before.replacement_policy, replacement_policy),
        ):
            if old != new:
                written = definition.metadata if attribute == "Metadata" else None
                target = {"Attribute": attribute, "Name": None, "RequiresRecreation": "Never"}
                details.extend(self._details(target, written, is_unknown=False))
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
        return _described(
            "Modify",
            before,
            Replacement=replacement,
            Details=details,
            PolicyAction=policy,
            BeforeContext=_context(before.shown),
            AfterContext=_context(shown),
        )

    def _details(self, target: Mapping[str, Any], value: Any, *, is_unknown: bool) -> Iterator[dict[str, Any]]:
        """Yield why a property differs: because the template does, and what else its value hangs on.

        LocalStack's tests of change sets recorded these. Beside a parameter or a resource the template counts as
        dynamic, whether it says something else or not.
        """
        causes = list(dict.fromkeys(self._causes(value)))
        yield _detail(target, dynamic=is_unknown or bool(causes))
        for source, entity in causes:
            yield {**_detail(target), "ChangeSource": source, "CausingEntity": entity}

    def _causes(self, value: Any) -> Iterator[tuple[str, str]]:
        """Yield ChangeSource and CausingEntity of what a value hangs on and is about to change."""
        for name, attribute in referred(value, self._scope.conditions):
            parameter, physical = self._revision.parameters.get(name), self._becoming.get(name)
            if parameter is not None:
                before = self._stack.revision.parameters.get(name)
                if before is None or before.value != parameter.value:  # not what is stored under a name
                    yield "ParameterReference", name
            elif physical is not None and attribute and isinstance(physical.attributes, _LaterAttributes):
                yield "ResourceAttribute", f"{name}.{attribute}"
            elif physical is not None and not attribute and physical.ref == KNOWN_AFTER_APPLY:
                yield "ResourceReference", name

    def _is_rewritten(self, definition: ResourceDefinition) -> bool:
        """Tell whether the properties have another text than in the template that the stack has."""
        before = self._stack.revision.template.resources.get(definition.logical_id)
        return before is not None and before.properties != definition.properties

    def _properties(self, definition: ResourceDefinition) -> dict[str, Any]:
        values = {name: self._value({name: value}) for name, value in definition.properties.items()}
        evaluated = {name: value for members in values.values() for name, value in members.items()}
        return self._scope.complete(definition.type, evaluated)

    def _before_removal(self, resource: StackResource) -> dict[str, Any]:
        """Return the properties of a resource that goes: AWS tells none that another resource gave.

        LocalStack's test_stack_deletion_order recorded it.
        """
        template = self._stack.revision.template
        written = (
            template.resources[resource.logical_id].properties if resource.logical_id in template.resources else {}
        )
        later = {name for name, value in written.items() if references(value) & template.resources.keys()}
        return {name: KNOWN_AFTER_APPLY if name in later else each for name, each in resource.shown.items()}

    def _foreseen(self, definition: ResourceDefinition) -> dict[str, Any]:
        """Return the properties of a resource that is to be made, as far as they can be told."""
        properties: dict[str, Any] = {}
        for name, value in definition.properties.items():
            try:
                properties |= self._value({name: value})
            except TemplateError:  # nothing is exported under the name yet
                properties[name] = KNOWN_AFTER_APPLY
        return self._scope.shown(definition, properties)

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


def _detail(target: Mapping[str, Any], *, dynamic: bool = False) -> dict[str, Any]:
    """Describe what differs; `dynamic`: whether and how, is known only when other resources have changed."""
    evaluation = "Dynamic" if dynamic else "Static"
    return {"Target": target, "Evaluation": evaluation, "ChangeSource": _OF_TEMPLATE}


def _context(properties: Mapping[str, Any]) -> str:
    return json.dumps({"Properties": dict(properties)})


def _values(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a detail says of a property's values."""
    if name == "Tags":
        return {}
    kind = "Modify" if name in before and name in after else "Add" if name in after else "Remove"
    values = {"BeforeValue": before, "AfterValue": after}
    return {
        "AttributeChangeType": kind,
        "Path": f"/Properties/{name}",
        **{
            key: each[name] if isinstance(each[name], str) else json.dumps(each[name])
            for key, each in values.items()
            if name in each
        },
    }


def without_values(change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a change of a resource without the values of its properties, which only IncludePropertyValues gives.

    Nor does AWS say then of what hangs on a resource alone that the template is another (test_change_set_ref.py).
    """
    sources: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for detail in change["Details"]:
        sources[detail["Target"]["Attribute"], detail["Target"]["Name"]].add(detail["ChangeSource"])
    details = [
        {**detail, "Target": {name: each for name, each in detail["Target"].items() if name not in _OF_VALUES}}
        for detail in change["Details"]
        if detail["ChangeSource"] != _OF_TEMPLATE
        or not sources[detail["Target"]["Attribute"], detail["Target"]["Name"]] - {_OF_TEMPLATE, "ParameterReference"}
    ]
    return {**{name: each for name, each in change.items() if name not in _CONTEXTS}, "Details": details}


def _reads_an_output(value: Any) -> bool:
    """Tell whether a value hangs on Fn::GetStackOutput, which is resolved only while a change set is executed."""
    return any(function == "Fn::GetStackOutput" for function, _ in intrinsics(value))


def _may_give_other_attributes(resource_type: str) -> bool:
    """Tell whether the attributes of a type are made up by what provides it, and may differ after any update."""
    return is_custom(resource_type) or resource_type == STACK_TYPE
