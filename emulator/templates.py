"""The values in the templates of a cloud assembly, as CloudFormation would compute them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from emulator.aws import ACCOUNT, EmulatedAws
from emulator.resources import COMPANIONS, Context, Physical, create, make_bucket
from toolchain.assembly import Assembly, Stack, find_export
from toolchain.values import Evaluator, Scope, UnsupportedError


def publish_files(assembly: Assembly, aws: EmulatedAws) -> None:
    """Upload the file assets, as `cdk deploy` does before the stacks."""
    for file in assembly.file_assets():
        s3 = aws.client("s3", file.region)
        bucket = file.bucket.replace("${AWS::AccountId}", ACCOUNT)
        make_bucket(s3, bucket, file.region)
        s3.put_object(Bucket=bucket, Key=file.key, Body=file.path.read_bytes())


class Resolver:
    """Computes template values, making what they refer to in the emulated AWS.

    A reference makes its resource the first time, and before it whatever the resource's own properties refer to, in
    other stacks too, and the rules and routes that it depends on. Nothing else of a stack is made.
    """

    def __init__(self, assembly: Assembly, aws: EmulatedAws) -> None:
        self._assembly = assembly
        self._aws = aws
        self._made: dict[tuple[str, str], Physical] = {}

    def resolve(self, stack: Stack, value: Any) -> Any:
        """Return a value of the stack's template without intrinsic functions.

        Raises:
            TemplateError: A function has arguments that it does not take.
            UnsupportedError: The value leads to something that is unknown here; the message names the way to it.
            botocore.exceptions.ClientError: AWS would refuse a resource.
        """
        resolved = self.evaluate(stack, value)
        self._add_companions()
        return resolved

    def evaluate(self, stack: Stack, value: Any) -> Any:
        """Do as `resolve`, but make only what the value refers to."""
        with _named(stack.name):
            return self._evaluate(stack, value)

    def output(self, stack_name: str, name: str) -> tuple[Stack, Any]:
        """Return the stack that an Fn::GetStackOutput names, and the value of that output in its template."""
        producer = self._assembly.stacks.get(stack_name)
        if producer is None or name not in producer.template.get("Outputs", {}):
            raise UnsupportedError(f"output {name} of stack {stack_name}, which the assembly does not have")
        return producer, producer.template["Outputs"][name]["Value"]

    def exported(self, name: str) -> tuple[Stack, Any]:
        """Return the stack that exports something under a name, and its value in the stack's template."""
        export = find_export(self._assembly.stacks, name)
        if export is None:
            raise UnsupportedError(f"export {name}, which the assembly does not have")
        producer, output = export
        return producer, producer.template["Outputs"][output]["Value"]

    def resource(self, stack: Stack, logical_id: str) -> Physical:
        """Return a resource, and make it the first time."""
        key = (stack.name, logical_id)
        if key not in self._made:
            if logical_id not in stack.resources:
                raise UnsupportedError(f"reference to {logical_id}, which is no resource of the template")
            resource = stack.resources[logical_id]
            if "Condition" in resource:
                raise UnsupportedError(f"{logical_id} has a condition")
            context = Context(
                client=lambda service: self._aws.client(service, stack.region),
                account=stack.pseudo_parameters["AWS::AccountId"],
                region=stack.region,
                partition=stack.pseudo_parameters["AWS::Partition"],
                stack_name=stack.name,
                stack_id=stack.pseudo_parameters["AWS::StackId"],
                logical_id=logical_id,
                name=stack.physical_name(logical_id),
            )
            with _named(logical_id):
                properties = self._evaluate(stack, resource.get("Properties", {}))
                for needed in resource.get("DependsOn", ()):
                    if stack.resources[needed]["Type"] in COMPANIONS:
                        self.resource(stack, needed)
                self._made[key] = create(resource["Type"], context, properties)
        return self._made[key]

    def _evaluate(self, stack: Stack, value: Any) -> Any:
        return Evaluator(_StackScope(self, stack)).evaluate(value)

    def _add_companions(self) -> None:
        """Make the rules of the security groups that were made, the routes of the route tables, and so on."""
        while missing := [key for key in self._companions() if key not in self._made]:
            for stack_name, logical_id in missing:
                with _named(stack_name):
                    self.resource(self._assembly.stacks[stack_name], logical_id)

    def _companions(self) -> Iterator[tuple[str, str]]:
        for stack in self._assembly.stacks.values():
            for logical_id, resource in stack.resources.items():
                owner = COMPANIONS.get(resource["Type"])
                if owner and self._target(stack, resource["Properties"][owner]) in self._made:
                    yield stack.name, logical_id

    def _target(self, stack: Stack, value: Any) -> tuple[str, str] | None:
        """Return the resource that a reference leads to, without making it; None for anything else."""
        match value:
            case {"Ref": str(logical_id)} | {"Fn::GetAtt": [str(logical_id), _]}:
                return stack.name, logical_id
            case {"Fn::GetStackOutput": {"StackName": str(stack_name), "OutputName": str(name)}}:
                return self._target(*self.output(stack_name, name))
            case {"Fn::ImportValue": str(name)}:
                return self._target(*self.exported(name))
        return None


class _StackScope(Scope):
    """What the values of one stack refer to; the resources are made on the way."""

    def __init__(self, resolver: Resolver, stack: Stack) -> None:
        self._resolver = resolver
        self._stack = stack

    def ref(self, name: str) -> Any:
        if name in self._stack.pseudo_parameters:
            return self._stack.pseudo_parameters[name]
        return self._resolver.resource(self._stack, name).ref

    def attribute(self, logical_id: str, attribute: str) -> Any:
        attributes = self._resolver.resource(self._stack, logical_id).attributes
        if attribute not in attributes:
            resource_type = self._stack.resources[logical_id]["Type"]
            raise UnsupportedError(f"attribute {attribute} of {logical_id} ({resource_type})")
        return attributes[attribute]

    def stack_output(self, region: str | None, stack_name: str, output: str) -> Any:
        producer, value = self._resolver.output(stack_name, output)
        if (region or self._stack.region) != producer.region:
            raise UnsupportedError(f"output {output} of stack {stack_name} in region {region}")
        return self._resolver.evaluate(producer, value)

    def import_value(self, name: str) -> Any:
        return self._resolver.evaluate(*self._resolver.exported(name))


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Put a name in front of what is unsupported."""
    try:
        yield
    except UnsupportedError as error:
        raise UnsupportedError(f"{name}: {error}") from None
