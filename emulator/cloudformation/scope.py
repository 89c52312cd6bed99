"""What the values of a stack's template refer to: parameters, resources, exports, and AWS itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import cached_property
from typing import Any, Final

from emulator.clients import Clients
from emulator.cloudformation.parameters import HIDDEN, is_hidden
from emulator.cloudformation.stacks import Revision, Stack, Store
from emulator.cloudformation.template import ResourceDefinition
from emulator.cloudformation.validation import POLICIES, SNAPSHOTS, check_policy
from emulator.resources import attributes_of
from emulator.resources.model import Physical
from toolchain import schemas
from toolchain.values import NO_VALUE, Evaluator, Scope, TemplateError, UnsupportedError, intrinsics, references

_URL_SUFFIXES: Final = {"aws-cn": "amazonaws.com.cn"}


class StackScope(Scope):
    """The scope of one stack's template at one moment.

    Attributes:
        imports: Names of the exports that were used so far.
    """

    keeps_dynamic_references = True  # `references` resolves them

    def __init__(
        self, stack: Stack, revision: Revision, store: Store, clients: Clients, find: Callable[[str], Physical | None]
    ) -> None:
        """Make a scope; `find` gives what exists of a resource."""
        self._stack = stack
        self._revision = revision
        self._store = store
        self._clients = clients
        self._find = find
        self._evaluator = Evaluator(self)
        self._hidden: frozenset[str] = frozenset()
        self.imports: set[str] = set()

    def evaluate(self, value: Any) -> Any:
        """Return a value of the template without intrinsic functions."""
        return self._evaluator.evaluate(value)

    @cached_property
    def conditions(self) -> dict[str, bool]:
        """Return all conditions of the template, computed."""
        return {name: self.condition(name) for name in self._revision.template.conditions}

    def holds(self, definition: Any) -> bool:
        """Tell whether a condition, or the assertion of a rule, holds."""
        return self._evaluator.condition(definition)

    @cached_property
    def dependencies(self) -> dict[str, frozenset[str]]:
        """Return the resources whose conditions hold, by logical id, and what each of them waits for."""
        template = self._revision.template
        return {
            logical_id: frozenset(template.dependencies(logical_id, self.conditions))
            for logical_id, definition in template.resources.items()
            if self.conditions.get(definition.condition or "", True)
        }

    def policies(self, definition: ResourceDefinition) -> tuple[str, str]:
        """Return DeletionPolicy and UpdateReplacePolicy of a resource, as they are or by default.

        Raises:
            TemplateError: There is no such policy, or not for this type.
            UnsupportedError: It keeps a snapshot that cannot be made here.
        """
        defaults = {"DeletionPolicy": "Snapshot" if definition.type in SNAPSHOTS else "Delete"}
        values = []
        for attribute in POLICIES:
            value = self.evaluate(definition.policies.get(attribute, {"Ref": "AWS::NoValue"}))
            value = defaults.get(attribute, "Delete") if value is NO_VALUE else value
            check_policy(definition.logical_id, definition.type, attribute, value)
            values.append(value)
        return values[0], values[1]

    def check_mappings(self) -> None:
        """Check that what Fn::FindInMap looks up is there, in all that is created, and in outputs.

        Raises:
            TemplateError: Something is not.
        """
        template = self._revision.template
        created = [template.resources[each] for each in self.dependencies]
        outputs = [each for each in template.outputs.values() if self.conditions.get(each.get("Condition", ""), True)]
        for value in (*(each.properties for each in created), *outputs):
            for function, argument in intrinsics(value, self.conditions):
                if function == "Fn::FindInMap":
                    self.evaluate({function: argument})

    def complete(self, resource_type: str, properties: dict[str, Any]) -> dict[str, Any]:
        """Return evaluated properties with the types of the schema, and with the tags of the stack."""
        return schemas.with_tags(resource_type, schemas.coerced(resource_type, properties), self._revision.tags)

    def shown(self, definition: ResourceDefinition, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return evaluated properties as they may be shown: AWS masks what parameters without echo give.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html
        """
        definitions = self._revision.template.parameters
        hidden = {name for name, each in definitions.items() if is_hidden(each)}
        if not hidden:
            return dict(properties)
        conditions = self.conditions  # as the values say that are masked from here on
        masked = copy(self)
        masked._hidden, masked._evaluator = frozenset(hidden), Evaluator(masked)
        shown = dict(properties)
        for name, value in definition.properties.items():
            if name in shown and references(value, conditions) & hidden:
                try:
                    shown[name] = masked.evaluate(value)
                except (TemplateError, UnsupportedError):  # what is looked up depends on it
                    shown[name] = HIDDEN
        return shown

    def ref(self, name: str) -> Any:
        """Return what Ref gives."""
        if name in self._revision.parameters:
            value = self._revision.parameters[name].resolved
            if name in self._hidden:
                return [HIDDEN for _ in value] if isinstance(value, list) else HIDDEN
            return value
        if name.startswith("AWS::"):
            return self._pseudo_parameter(name)
        return self._physical(name).ref

    def attribute(self, logical_id: str, attribute: str) -> Any:
        """Return what Fn::GetAtt gives."""
        attributes = self._physical(logical_id).attributes
        if attribute not in attributes:
            resource_type = self._revision.template.resources[logical_id].type
            if attribute in attributes_of(resource_type):  # this one has none
                raise TemplateError(f"Unable to retrieve {attribute} attribute for {resource_type}, {logical_id}")
            raise UnsupportedError(f"attribute {attribute} of {logical_id} ({resource_type})")
        return attributes[attribute]

    def stack_output(self, region: str | None, stack_name: str, output: str) -> Any:
        """Return the output of another stack, as it is now."""
        region = region or self._stack.region
        other = self._store.find(region, stack_name)
        if other is None:
            raise TemplateError(f"Stack with id {stack_name} does not exist in {region}")
        if output not in other.outputs:
            raise TemplateError(f"Stack {stack_name} has no output named {output}")
        return other.outputs[output].value

    def zones(self, region: str) -> list[str]:
        """Return the names of a region's zones: in each, the account has a default subnet.

        Raises:
            TemplateError: There is no such region. The words are made up.
        """
        if region:
            regions = self._clients("ec2", self._stack.region).describe_regions(AllRegions=True)["Regions"]
            if region not in {each["RegionName"] for each in regions}:
                raise TemplateError(f"Template error: Fn::GetAZs got {region}; there is no such region")
        ec2 = self._clients("ec2", region or self._stack.region)
        return sorted(each["ZoneName"] for each in ec2.describe_availability_zones()["AvailabilityZones"])

    def import_value(self, name: str) -> str:
        """Return the value of an export, and remember that it is used."""
        exports = self._store.exports(self._stack.region)
        if name not in exports:
            raise TemplateError(f"No export named {name} found.")
        self.imports.add(name)
        return exports[name][1]

    def condition(self, name: str) -> bool:
        """Return whether the condition holds."""
        return self.conditions[name] if self._hidden else self.holds(self._revision.template.conditions[name])

    def mapping(self, name: str, top_level_key: str, second_level_key: str) -> Any:
        """Return what Fn::FindInMap gives."""
        return self._revision.template.find_in_map(name, top_level_key, second_level_key)

    def _physical(self, logical_id: str) -> Physical:
        physical = self._find(logical_id)
        if physical is None:
            raise TemplateError(
                f"Unresolved resource dependencies [{logical_id}] in the Resources block of the template"
            )
        return physical

    def _pseudo_parameter(self, name: str) -> Any:
        stack = self._stack
        values = {
            "AWS::AccountId": stack.account,
            "AWS::NoValue": NO_VALUE,
            "AWS::NotificationARNs": [],
            "AWS::Partition": stack.partition,
            "AWS::Region": stack.region,
            "AWS::StackId": stack.id,
            "AWS::StackName": stack.name,
            "AWS::URLSuffix": _URL_SUFFIXES.get(stack.partition, "amazonaws.com"),
        }
        if name not in values:
            raise UnsupportedError(f"pseudo parameter {name}")
        return values[name]
