"""What CloudFormation would do to the resources of stacks, by their templates before and after.

Values are computed as far as they are known: a reference to a resource that stays is its id, or a name for it; one to a
resource that is created or replaced is `NOT_YET`. So a replacement shows in everything that depends on it, in other
stacks, too, which no change set does. Assumed: an attribute of a resource that is changed in place stays the same,
unless it is of a custom resource or a nested stack.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from scripts.check.plan.model import REPLACING, Effect, PropertyChange, ResourceChange
from toolchain import schemas
from toolchain.assembly import Stack, find_export
from toolchain.deployed import ATTRIBUTES_THAT_ARE_IDS, NOT_YET
from toolchain.values import Evaluator, Scope, TemplateError, UnsupportedError, intrinsics, references

NOT_YET_IN: Final = "(known after deployment of {})"
"""Instead of a value that the deployment of another stack will produce."""
READ_LATE: Final = "(Fn::GetStackOutput: read during the deployment)"
"""Instead of a value that CloudFormation reads only during the deployment."""

_POLICIES: Final = ("DeletionPolicy", "UpdateReplacePolicy")
_DEFAULT_POLICY: Final = "Delete"
_RETAINING: Final = frozenset({"Retain", "RetainExceptOnCreate"})
_NESTED_STACK: Final = "AWS::CloudFormation::Stack"

PhysicalIds = Mapping[str, Mapping[str, str]]
"""Physical ids by stack and logical id."""
Attributes = Mapping[tuple[str, str, str], str]
"""Values of attributes by stack, logical id and name, those that are known."""
_Resource = tuple[str, str]
"""Stack and logical id."""


@dataclass(frozen=True)
class _StackScope(Scope):
    """What the values of a stack's template may refer to; a resource without a physical id is represented by a name.

    Unknown resources are created or replaced, of unsteady ones attributes may change.
    """

    stack: Stack
    stacks: Mapping[str, Stack]
    physical_ids: PhysicalIds
    attributes: Attributes
    unknown: frozenset[_Resource] = frozenset()
    unsteady: frozenset[_Resource] = frozenset()
    keeps_dynamic_references = True

    def ref(self, name: str) -> Any:
        if name in self.stack.pseudo_parameters:
            return self.stack.pseudo_parameters[name]
        if (self.stack.name, name) in self.unknown:
            return NOT_YET
        return self.physical_ids.get(self.stack.name, {}).get(name, f"{self.stack.name}/{name}")

    def attribute(self, logical_id: str, attribute: str) -> Any:
        if (self.stack.name, logical_id) in self.unsteady:
            return NOT_YET
        resource = self.ref(logical_id)
        resource_type = self.stack.resources[logical_id]["Type"]
        if resource == NOT_YET or ATTRIBUTES_THAT_ARE_IDS.get(resource_type) == attribute:
            return resource
        return self.attributes.get((self.stack.name, logical_id, attribute), f"{resource}.{attribute}")

    def stack_output(self, region: str | None, stack_name: str, output: str) -> Any:
        producer = self.stacks.get(stack_name)
        definition = producer.template.get("Outputs", {}).get(output) if producer else None
        if producer is None or definition is None:
            return f"{region or self.stack.region}/{stack_name}.{output}"
        return self._output_of(producer, output)

    def import_value(self, name: str) -> Any:
        export = find_export(self.stacks, name)
        return self._output_of(*export) if export else name

    def _output_of(self, producer: Stack, output: str) -> Any:
        value = _evaluated(replace(self, stack=producer), producer.template["Outputs"][output]["Value"])
        return NOT_YET_IN.format(producer.name) if NOT_YET in json.dumps(value) else value

    def is_unknown(self, logical_id: str) -> bool:
        """Whether a reference to a resource has no known value."""
        return (self.stack.name, logical_id) in self.unknown | self.unsteady


class Comparison:
    """Stacks before and after.

    A stack whose template and tags stay the same is not updated, even if the values of its references to other stacks
    change: the CDK passes over it, and CloudFormation would find nothing to do (docs/adr/0003).

    Attributes:
        old: The deployed stacks.
        new: The stacks to deploy.
        changes: What happens to resources, by stack; stacks without changes included.
    """

    def __init__(
        self,
        old: Mapping[str, Stack],
        new: Mapping[str, Stack],
        physical_ids: PhysicalIds | None = None,
        attributes: Attributes | None = None,
    ) -> None:
        self.old = old
        self.new = new
        self._physical_ids = physical_ids or {}
        self._attributes = attributes or {}
        self._unknown = frozenset(
            (name, logical_id)
            for name, stack in new.items()
            for logical_id in stack.resources
            if name not in old or logical_id not in old[name].resources
        )
        self._unsteady: frozenset[_Resource] = frozenset()
        self.changes = self._compare()
        while self._learn():  # what is replaced changes what depends on it
            self.changes = self._compare()

    def is_passed_over(self, name: str) -> bool:
        """Whether a stack exists and is not updated, because its template and tags stay the same."""
        old, new = self.old.get(name), self.new.get(name)
        return old is not None and new is not None and (old.template, old.tags) == (new.template, new.tags)

    def left_behind(self) -> dict[str, tuple[ResourceChange, ...]]:
        """Return what other stacks would change in those that are not updated."""
        compared = {name: tuple(self._compare_stack(name)) for name in self.new if self.is_passed_over(name)}
        return {name: changes for name, changes in compared.items() if changes}

    def read_late(self, stack_name: str) -> dict[str, tuple[PropertyChange, ...]]:
        """Return the properties of a stack's resources that CloudFormation does not know before it deploys.

        It resolves Fn::GetStackOutput only then, and until then takes the value for a different one
        (https://github.com/aws/aws-cdk/issues/38829).
        """
        stack = self.new[stack_name]
        return {
            logical_id: tuple(
                PropertyChange(name, self.after(stack_name, value), READ_LATE)
                for name, value in resource.get("Properties", {}).items()
                if any(function == "Fn::GetStackOutput" for function, _ in intrinsics(value))
            )
            for logical_id, resource in stack.resources.items()
        }

    def exports_in_use(self, name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the outputs whose export would change or be removed, with the deployed stacks that import it.

        Producers are deployed before their consumers, and CloudFormation refuses the change of an export in use
        (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-exports.html).
        """
        if name not in self.old or name not in self.new or self.is_passed_over(name):
            return
        for output, definition in self.old[name].template.get("Outputs", {}).items():
            export = definition.get("Export", {}).get("Name")
            users = tuple(each for each, stack in self.old.items() if export in _imports(stack))
            becomes = find_export({name: self.new[name]}, export)
            if users and (
                becomes is None
                or self.before(name, definition["Value"])
                != self.after(name, self.new[name].template["Outputs"][becomes[1]]["Value"])
            ):
                yield output, users

    def properties(self, stack_name: str, logical_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the properties of a resource before and after; of one that is not there, none."""
        old, new = self.old.get(stack_name), self.new.get(stack_name)
        was: dict[str, Any] = {}
        becomes: dict[str, Any] = {}
        if old and logical_id in old.resources:
            was = _properties(_StackScope(old, self.old, self._physical_ids, self._attributes), old, logical_id)
        if new and logical_id in new.resources:
            becomes = _properties(self._scope_after(new), new, logical_id)
        return was, becomes

    def before(self, stack_name: str, value: Any) -> Any:
        """Return a value of a stack's old template without intrinsic functions."""
        return _evaluated(_StackScope(self.old[stack_name], self.old, self._physical_ids, self._attributes), value)

    def after(self, stack_name: str, value: Any) -> Any:
        """Return a value of a stack's new template without intrinsic functions; what is not known yet is `NOT_YET`."""
        return _evaluated(self._scope_after(self.new[stack_name]), value)

    def _scope_after(self, stack: Stack) -> _StackScope:
        return _StackScope(stack, self.new, self._physical_ids, self._attributes, self._unknown, self._unsteady)

    def _learn(self) -> bool:
        """Note what the changes make unknown, and return whether that is more than before."""
        changed = [(name, change) for name, changes in self.changes.items() for change in changes]
        unknown = self._unknown | {(name, each.logical_id) for name, each in changed if each.effect in REPLACING}
        unsteady = self._unsteady | {
            (name, each.logical_id)
            for name, each in changed
            if each.effect is Effect.CHANGED and not each.metadata_only
            if each.type.startswith("Custom::") or each.type == _NESTED_STACK
        }
        more = (unknown, unsteady) != (self._unknown, self._unsteady)
        self._unknown, self._unsteady = unknown, unsteady
        return more

    def _compare(self) -> dict[str, tuple[ResourceChange, ...]]:
        names = dict.fromkeys([*self.new, *self.old])
        return {name: () if self.is_passed_over(name) else tuple(self._compare_stack(name)) for name in names}

    def _compare_stack(self, name: str) -> Iterator[ResourceChange]:
        old, new = self.old.get(name), self.new.get(name)
        before, after = (old.resources if old else {}), (new.resources if new else {})
        for logical_id in sorted(before.keys() | after.keys()):
            both = self.properties(name, logical_id)
            change = _resource_change(logical_id, before.get(logical_id), after.get(logical_id), *both)
            if change is not None:
                yield replace(change, physical_id=self._physical_ids.get(name, {}).get(logical_id, ""))


def _resource_change(
    logical_id: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    was: Mapping[str, Any],
    becomes: Mapping[str, Any],
) -> ResourceChange | None:
    """Return what happens to a resource of templates before and after, given its properties; None: nothing."""
    if before is None or after is None:
        resource = before or after or {}
        effect = Effect.REMOVED if before else Effect.ADDED
        stays = effect is Effect.REMOVED and resource.get("DeletionPolicy") in _RETAINING
        change = ResourceChange(logical_id, resource["Type"], effect, old_stays=stays)
        properties = tuple(PropertyChange(key, was.get(key), becomes.get(key)) for key in {**was, **becomes})
        return replace(change, properties=properties) if change.security else change
    differences = list(_differences(was, becomes))
    for policy in _POLICIES:
        values = before.get(policy, _DEFAULT_POLICY), after.get(policy, _DEFAULT_POLICY)
        if values[0] != values[1]:
            differences.append(PropertyChange(policy, *values))
    if not differences and before.get("Metadata") != after.get("Metadata"):
        differences.append(PropertyChange("Metadata"))
    if before["Type"] != after["Type"]:
        differences.append(PropertyChange("Type", before["Type"], after["Type"]))
    if not differences:
        return None
    replacing = schemas.needs_replacement(after["Type"], was, becomes)
    known = {key: was.get(key) if is_not_known_yet(value) else value for key, value in becomes.items()}
    effect = Effect.CHANGED
    if before["Type"] != after["Type"] or schemas.needs_replacement(after["Type"], was, known):
        effect = Effect.REPLACED
    elif replacing:
        effect = Effect.MAY_BE_REPLACED
    paths = [each.path for each in differences]
    return ResourceChange(
        logical_id,
        after["Type"],
        effect,
        causes=tuple(path for path in paths if effect is Effect.CHANGED or _replaces(path, replacing)),
        properties=tuple(differences),
        old_stays=effect in REPLACING and before.get("UpdateReplacePolicy") in _RETAINING,
    )


def awaited(change: ResourceChange) -> tuple[str, ...]:
    """Return the other stacks on whose deployment a change depends."""
    text = json.dumps([each.after for each in change.properties])
    _, *parts = text.split(NOT_YET_IN.partition("{")[0])
    return tuple(dict.fromkeys(part.partition(")")[0] for part in parts))


def _imports(stack: Stack) -> set[str]:
    """Return the names of the exports that a stack's template uses."""
    names = (name for function, name in intrinsics(stack.template) if function == "Fn::ImportValue")
    return {name for name in names if isinstance(name, str)}


def _properties(scope: _StackScope, stack: Stack, logical_id: str) -> dict[str, Any]:
    resource = stack.resources[logical_id]
    properties = {key: _evaluated(scope, value) for key, value in resource.get("Properties", {}).items()}
    return schemas.with_tags(resource["Type"], properties, stack.tags)


def _evaluated(scope: _StackScope, value: Any) -> Any:
    """Return a value without intrinsic functions; one that cannot be computed as its text."""
    try:
        return Evaluator(scope).evaluate(value)
    except (TemplateError, UnsupportedError):
        unknown = any(scope.is_unknown(name) for name in references(value))
        return json.dumps(value, sort_keys=True) + (NOT_YET if unknown else "")


def _differences(before: Any, after: Any, path: str = "") -> Iterator[PropertyChange]:
    """Yield the differences, property by property, down through mappings."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in {**before, **after}:
            yield from _differences(before.get(key), after.get(key), f"{path}.{key}" if path else key)
    elif before != after:
        yield PropertyChange(path, before, after)


def is_not_known_yet(value: Any) -> bool:
    """Return whether a value is that of something which is created or replaced, or has one in it."""
    text = json.dumps(value)
    return NOT_YET in text or NOT_YET_IN.partition("{")[0] in text


def _replaces(path: str, replacing: set[str]) -> bool:
    """Whether a property is, contains or is part of one of those that replace the resource."""
    name = path.replace(".", "/")
    return path == "Type" or any(f"{name}/".startswith(f"{each}/") or each.startswith(f"{name}/") for each in replacing)
