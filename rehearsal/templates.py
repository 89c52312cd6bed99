"""A cloud assembly (cdk.out), and the values in its templates as CloudFormation would compute them."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rehearsal.aws import ACCOUNT, EmulatedAws
from rehearsal.resources import COMPANIONS, Context, Physical, UnsupportedError, create, make_bucket

_NO_VALUE: Final = object()
_PLACEHOLDER = re.compile(r"\$\{([^}]+)\}")


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
            "AWS::NoValue": _NO_VALUE,
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
        self._intrinsics: Mapping[str, Callable[[Stack, Any], Any]] = {
            "Ref": self._ref,
            "Fn::GetAtt": self._get_att,
            "Fn::GetStackOutput": self._get_stack_output,
            "Fn::Join": self._join,
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::Sub": self._sub,
        }

    def resolve(self, stack: Stack, value: Any) -> Any:
        """Return a value of the stack's template without intrinsic functions.

        Raises:
            UnsupportedError: The value leads to something that is unknown here; the message names it.
            botocore.exceptions.ClientError: AWS would refuse a resource.
        """
        resolved = self._resolve(stack, value)
        self._add_companions()
        return resolved

    def _resolve(self, stack: Stack, value: Any) -> Any:
        if isinstance(value, list):
            return [item for each in value if (item := self._resolve(stack, each)) is not _NO_VALUE]
        if not isinstance(value, dict):
            return value
        name = next(iter(value), "")
        if len(value) == 1 and (name == "Ref" or name.startswith("Fn::")):
            if name not in self._intrinsics:
                raise UnsupportedError(f"{stack.name}: intrinsic function {name}")
            return self._intrinsics[name](stack, value[name])
        members = {key: self._resolve(stack, each) for key, each in value.items()}
        return {key: each for key, each in members.items() if each is not _NO_VALUE}

    def _ref(self, stack: Stack, name: str) -> Any:
        if name in stack.pseudo_parameters:
            return stack.pseudo_parameters[name]
        return self._resource(stack, name).ref

    def _get_att(self, stack: Stack, argument: list[str] | str) -> str:
        logical_id, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        attributes = self._resource(stack, logical_id).attributes
        if attribute not in attributes:
            resource_type = stack.resources[logical_id]["Type"]
            raise UnsupportedError(f"{stack.name}: attribute {attribute} of {logical_id} ({resource_type})")
        return attributes[attribute]

    def _get_stack_output(self, stack: Stack, argument: Mapping[str, Any]) -> Any:
        producer, output = self._output(stack, argument)
        return self._resolve(producer, output)

    def _join(self, stack: Stack, argument: list[Any]) -> str:
        separator, parts = argument
        return str(separator).join(str(part) for part in self._resolve(stack, parts))

    def _select(self, stack: Stack, argument: list[Any]) -> Any:
        index, values = self._resolve(stack, argument)
        return values[int(index)]

    def _split(self, stack: Stack, argument: list[Any]) -> list[str]:
        separator, text = self._resolve(stack, argument)
        return str(text).split(separator)

    def _sub(self, stack: Stack, argument: list[Any] | str) -> str:
        text, variables = (argument, {}) if isinstance(argument, str) else argument

        def value_of(match: re.Match[str]) -> str:
            name = match[1]
            if name.startswith("!"):
                return f"${{{name[1:]}}}"
            if name in variables:
                return str(self._resolve(stack, variables[name]))
            return str(self._get_att(stack, name) if "." in name else self._ref(stack, name))

        return _PLACEHOLDER.sub(value_of, text)

    def _output(self, stack: Stack, argument: Mapping[str, Any]) -> tuple[Stack, Any]:
        """Return the stack that an Fn::GetStackOutput names, and the value of that output in its template."""
        name, output = self._resolve(stack, argument["StackName"]), argument["OutputName"]
        producer = self._assembly.stacks.get(name)
        if producer is None or output not in producer.template.get("Outputs", {}):
            raise UnsupportedError(f"{stack.name}: output {output} of stack {name}, which the assembly does not have")
        return producer, producer.template["Outputs"][output]["Value"]

    def _resource(self, stack: Stack, logical_id: str) -> Physical:
        key = (stack.name, logical_id)
        if key not in self._made:
            if logical_id not in stack.resources:
                raise UnsupportedError(f"{stack.name}: reference to {logical_id}, which is no resource of the template")
            resource = stack.resources[logical_id]
            if "Condition" in resource:
                raise UnsupportedError(f"{stack.name}: {logical_id} has a condition")
            properties = self._resolve(stack, resource.get("Properties", {}))
            context = Context(lambda service: self._aws.client(service, stack.region), stack.physical_name(logical_id))
            try:
                self._made[key] = create(resource["Type"], context, properties)
            except UnsupportedError as error:
                raise UnsupportedError(f"{stack.name}: {logical_id}: {error}") from None
        return self._made[key]

    def _add_companions(self) -> None:
        """Make the rules of the security groups that were made, the routes of the route tables, and so on."""
        while missing := [key for key in self._companions() if key not in self._made]:
            for stack_name, logical_id in missing:
                self._resource(self._assembly.stacks[stack_name], logical_id)

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
            case {"Fn::GetStackOutput": argument}:
                return self._target(*self._output(stack, argument))
        return None
