"""A cloud assembly (cdk.out), and the values in its templates as CloudFormation would compute them."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rehearsal.aws import ACCOUNT, EmulatedAws
from rehearsal.cloudformation.values import NO_VALUE, Evaluator, Scope
from rehearsal.resources import COMPANIONS, Context, Physical, UnsupportedError, create, make_bucket


class Stack:
    """One stack of an assembly.

    Attributes:
        name: Name of the stack.
        region: Its region.
        template: Its template.
        tags: Tags of the stack itself.
        pseudo_parameters: What `AWS::...` stands for in it.
    """

    def __init__(self, name: str, region: str, account: str, template: dict[str, Any], tags: dict[str, str]) -> None:
        self.name = name
        self.region = region
        self.template = template
        self.tags = tags
        partition, suffix = ("aws-cn", "amazonaws.com.cn") if region.startswith("cn-") else ("aws", "amazonaws.com")
        unique = uuid.uuid5(uuid.NAMESPACE_URL, f"{account}/{region}/{name}")
        self.pseudo_parameters: Mapping[str, Any] = {
            "AWS::AccountId": account,
            "AWS::NoValue": NO_VALUE,
            "AWS::Partition": partition,
            "AWS::Region": region,
            "AWS::StackId": f"arn:{partition}:cloudformation:{region}:{account}:stack/{name}/{unique}",
            "AWS::StackName": name,
            "AWS::URLSuffix": suffix,
        }

    @property
    def resources(self) -> dict[str, Any]:
        """Return the resources by logical id."""
        resources: dict[str, Any] = self.template.get("Resources", {})
        return resources

    def physical_name(self, logical_id: str) -> str:
        """Return a name such as CloudFormation makes up for a resource; the same one each time."""
        suffix = hashlib.sha256(f"{self.name}/{logical_id}".encode()).hexdigest()[:12].upper()
        return f"{self.name}-{logical_id}-{suffix}"


class Assembly:
    """A directory that `cdk synth` or `app.synth()` wrote.

    Attributes:
        stacks: Its stacks by name.

    Raises:
        UnsupportedError: A stack is made for no particular region.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        artifacts = self._read("manifest.json")["artifacts"]
        stacks = [
            self._stack(name, artifact)
            for name, artifact in artifacts.items()
            if artifact["type"] == "aws:cloudformation:stack"
        ]
        self.stacks = {stack.name: stack for stack in stacks}
        self._files = [
            file
            for artifact in artifacts.values()
            if artifact["type"] == "cdk:asset-manifest"
            for file in self._read(artifact["properties"]["file"]).get("files", {}).values()
        ]

    def publish_files(self, aws: EmulatedAws) -> None:
        """Upload the file assets, as `cdk deploy` does before the stacks; archives and templates are left out."""
        for file in self._files:
            source = file["source"]
            if source["packaging"] != "file" or source["path"].endswith(".template.json"):
                continue
            for destination in file["destinations"].values():
                s3 = aws.client("s3", destination["region"])
                bucket = destination["bucketName"].replace("${AWS::AccountId}", ACCOUNT)
                make_bucket(s3, bucket, destination["region"])
                body = (self._directory / source["path"]).read_bytes()
                s3.put_object(Bucket=bucket, Key=destination["objectKey"], Body=body)

    def _read(self, file: str) -> Any:
        return json.loads((self._directory / file).read_text(encoding="utf-8"))

    def _stack(self, artifact_id: str, artifact: dict[str, Any]) -> Stack:
        properties = artifact["properties"]
        account, region = artifact["environment"].removeprefix("aws://").split("/")
        name = properties.get("stackName", artifact_id)
        if region == "unknown-region":
            raise UnsupportedError(f"{name}: a stack without a region")
        if account == "unknown-account":
            account = ACCOUNT
        return Stack(name, region, account, self._read(properties["templateFile"]), properties.get("tags", {}))


class Resolver:
    """Computes template values, making what they refer to in the emulated AWS.

    A reference makes its resource the first time, and before it whatever the resource's own properties refer to, in
    other stacks too. Nothing else of a stack is made.
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


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Put a name in front of what is unsupported."""
    try:
        yield
    except UnsupportedError as error:
        raise UnsupportedError(f"{name}: {error}") from None
