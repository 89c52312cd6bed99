"""A cloud assembly (cdk.out): the stacks, their templates and the files that they need."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from toolchain.values import NO_VALUE, UnsupportedError

EXAMPLE_ACCOUNT = "123456789012"
"""AWS's own example, for stacks that are made for no particular account."""


class FileAsset(NamedTuple):
    """A file of the assembly, or a directory to be archived, and the object that it becomes.

    The name of the bucket may hold ${AWS::AccountId}.
    """

    path: Path
    region: str
    bucket: str
    key: str


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


def find_export(stacks: Mapping[str, Stack], name: str) -> tuple[Stack, str] | None:
    """Return the stack that exports something under a name, and its output; None: none of the stacks does."""
    for stack in stacks.values():
        for output, definition in stack.template.get("Outputs", {}).items():
            if definition.get("Export", {}).get("Name") == name:
                return stack, output
    return None


class Assembly:
    """A directory that `cdk synth` or `app.synth()` wrote.

    Attributes:
        stacks: Its stacks by name; those made for no particular account are in the given one.

    Raises:
        UnsupportedError: A stack is made for no particular region.
    """

    def __init__(self, directory: Path, account: str = EXAMPLE_ACCOUNT) -> None:
        self._directory = directory
        self._account = account
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

    def file_assets(self) -> Iterator[FileAsset]:
        """Yield the file assets, templates among them."""
        for file in self._files:
            for destination in file["destinations"].values():
                path = self._directory / file["source"]["path"]
                yield FileAsset(path, destination["region"], destination["bucketName"], destination["objectKey"])

    def _read(self, file: str) -> Any:
        return json.loads((self._directory / file).read_text(encoding="utf-8"))

    def _stack(self, artifact_id: str, artifact: dict[str, Any]) -> Stack:
        properties = artifact["properties"]
        account, region = artifact["environment"].removeprefix("aws://").split("/")
        name = properties.get("stackName", artifact_id)
        if region == "unknown-region":
            raise UnsupportedError(f"{name}: a stack without a region")
        if account == "unknown-account":
            account = self._account
        return Stack(name, region, account, self._read(properties["templateFile"]), properties.get("tags", {}))
