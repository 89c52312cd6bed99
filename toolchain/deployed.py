"""Computes values in the templates of a cloud assembly from the deployed stacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from toolchain.assembly import Assembly, Stack, find_export
from toolchain.values import Evaluator, Scope, UnsupportedError

NOT_YET: Final = "(known after deployment)"
"""Stands for a value, or a part of one, that only the deployment creates."""

ATTRIBUTES_THAT_ARE_IDS: Mapping[str, str] = {
    "AWS::EC2::PlacementGroup": "GroupName",
    "AWS::EC2::SecurityGroup": "GroupId",
    "AWS::EC2::Subnet": "SubnetId",
    "AWS::EC2::VPC": "VpcId",
}
"""Attributes whose value is the physical id of the resource."""


class Live(Protocol):
    """Stacks that are deployed."""

    def outputs(self, stack_name: str) -> Mapping[str, str]:
        """Return the outputs of a stack; none: it does not exist."""

    def physical_ids(self, stack_name: str) -> Mapping[str, str]:
        """Return the physical ids of a stack's resources by logical id; none: it does not exist."""


def resolve_deployed(assembly: Assembly, live: Live, stack: Stack, value: Any) -> Any:
    """Return a value of a stack's template without intrinsic functions; what does not exist yet is `NOT_YET`.

    Raises:
        TemplateError: A function has wrong arguments.
        UnsupportedError: The value depends on something unknown; the message names it.
    """
    return Evaluator(_StackScope(stack, assembly, live)).evaluate(value)


class _StackScope(Scope):
    def __init__(self, stack: Stack, assembly: Assembly, live: Live) -> None:
        self._stack = stack
        self._assembly = assembly
        self._live = live

    def ref(self, name: str) -> Any:
        if name in self._stack.pseudo_parameters:
            return self._stack.pseudo_parameters[name]
        return self._live.physical_ids(self._stack.name).get(name, NOT_YET)

    def attribute(self, logical_id: str, attribute: str) -> Any:
        resource_type = self._stack.resources[logical_id]["Type"]
        if ATTRIBUTES_THAT_ARE_IDS.get(resource_type) != attribute:
            raise UnsupportedError(f"{self._stack.name}: attribute {attribute} of {logical_id} ({resource_type})")
        return self.ref(logical_id)

    def stack_output(self, region: str | None, stack_name: str, output: str) -> Any:
        if region not in (None, self._stack.region):
            raise UnsupportedError(f"{self._stack.name}: output {output} of stack {stack_name} in region {region}")
        return self._live.outputs(stack_name).get(output, NOT_YET)

    def import_value(self, name: str) -> str:
        export = find_export(self._assembly.stacks, name)
        if export is None:
            raise UnsupportedError(f"{self._stack.name}: export {name}, which the assembly does not have")
        producer, output = export
        return self._live.outputs(producer.name).get(output, NOT_YET)
