"""The values in the templates of a cloud assembly, as the emulated CloudFormation computes them."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import WaiterError

from emulator.aws import ACCOUNT, EmulatedAws
from emulator.resources import make_bucket
from toolchain.assembly import Assembly, Stack, find_export
from toolchain.cluster import CLUSTER_TYPE
from toolchain.values import UnsupportedError, intrinsics, references

CAPABILITIES: Final = ["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
_VALUE: Final = "ResolvedValue"
"""Logical id of the resource whose metadata is the value: CloudFormation computes that, and creates nothing for it."""


def publish_files(assembly: Assembly, aws: EmulatedAws) -> None:
    """Upload the file assets, templates among them, as `cdk deploy` does before the stacks."""
    for file in assembly.file_assets():
        s3 = aws.client("s3", file.region)
        bucket = file.bucket.replace("${AWS::AccountId}", ACCOUNT)
        make_bucket(s3, bucket, file.region)
        content = _zipped(file.path) if file.path.is_dir() else file.path.read_bytes()
        s3.put_object(Bucket=bucket, Key=file.key, Body=content)


class Resolver:
    """Computes values of templates by deploying the stacks that they lead to, without clusters.

    The account is bootstrapped, has the files of the assembly and nothing of its stacks.
    """

    def __init__(self, assembly: Assembly, aws: EmulatedAws) -> None:
        self._assembly = assembly
        self._aws = aws
        self._deployed: set[str] = set()

    def resolve(self, stack: Stack, value: Any) -> Any:
        """Return a value of the stack's template without intrinsic functions.

        Raises:
            UnsupportedError: A stack could not be deployed; the message has the reasons of its resources.
            botocore.exceptions.ClientError: AWS would refuse a template.
        """
        self._deploy(
            stack, {_VALUE: {"Type": "AWS::CloudFormation::WaitConditionHandle", "Metadata": {"Value": value}}}
        )
        resource = self._aws.client("cloudformation", stack.region).describe_stack_resource(
            StackName=stack.name, LogicalResourceId=_VALUE
        )
        return json.loads(resource["StackResourceDetail"]["Metadata"])["Value"]

    def _deploy(self, stack: Stack, more: dict[str, Any]) -> None:
        """Deploy a stack with more resources, and before it the stacks that it takes values from."""
        template = _without_clusters(stack.template, more)
        for function, argument in intrinsics(template):
            producer = self._producer(function, argument)
            if producer and producer.name not in self._deployed:
                self._deploy(producer, {})
        cloudformation, s3 = (self._aws.client(service, stack.region) for service in ("cloudformation", "s3"))
        bucket = f"templates-{stack.region}"
        make_bucket(s3, bucket, stack.region)
        s3.put_object(Bucket=bucket, Key=stack.name, Body=json.dumps(template))
        verb = "update" if stack.name in self._deployed else "create"
        self._deployed.add(stack.name)
        getattr(cloudformation, f"{verb}_stack")(
            StackName=stack.name,
            TemplateURL=f"https://s3.{stack.region}.amazonaws.com/{bucket}/{stack.name}",
            Capabilities=CAPABILITIES,
            Tags=[{"Key": key, "Value": each} for key, each in stack.tags.items()],
        )
        waiter = cloudformation.get_waiter(f"stack_{verb}_complete")
        try:
            waiter.wait(StackName=stack.name, WaiterConfig={"Delay": 0.2, "MaxAttempts": 3000})
        except WaiterError:
            events = cloudformation.describe_stack_events(StackName=stack.name)["StackEvents"]
            failed = [each for each in events[::-1] if each["ResourceStatus"].endswith("_FAILED")]
            reasons = "; ".join(f"{each['LogicalResourceId']}: {each['ResourceStatusReason']}" for each in failed)
            raise UnsupportedError(f"{stack.name}: {reasons}") from None

    def _producer(self, function: str, argument: Any) -> Stack | None:
        """Return the stack of the assembly that a function takes a value from."""
        if function == "Fn::GetStackOutput":
            return self._assembly.stacks.get(argument["StackName"])
        if function == "Fn::ImportValue" and (export := find_export(self._assembly.stacks, argument)):
            return export[0]
        return None


def _without_clusters(template: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return a template without clusters and all that refers to one, with more resources."""
    kept = {key: each for key, each in template["Resources"].items() if each["Type"] != CLUSTER_TYPE}
    gone = template["Resources"].keys() - kept.keys()
    while dependents := {key for key, each in kept.items() if (references(each) | _depends_on(each)) & gone}:
        gone |= dependents
        kept = {key: each for key, each in kept.items() if key not in gone}
    outputs = {key: each for key, each in template.get("Outputs", {}).items() if not references(each) & gone}
    return {**template, "Resources": {**kept, **more}, "Outputs": outputs}


def _depends_on(resource: dict[str, Any]) -> set[str]:
    named = resource.get("DependsOn", [])
    return {named} if isinstance(named, str) else set(named)


def _zipped(directory: Path) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(directory))
    return content.getvalue()
