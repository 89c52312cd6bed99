"""Deployments in an emulated account, made without the CDK command line: that takes five times as long."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

from config.settings import Settings
from rehearsal.aws import ACCOUNT, EmulatedAws
from scripts.deployment import PARTS
from tests.stacks.deployments import Deployment

_CAPABILITIES = ["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
_OFTEN = {"Delay": 0.2, "MaxAttempts": 3000}


def create_stacks(aws: EmulatedAws, synthesized: Deployment, parts: Sequence[str] = PARTS) -> None:
    """Deploy parts of what was synthesized.

    Args:
        aws: The account, which has what the settings name and the CDK's bootstrap stack (`rehearsal.stand_ins`).
        synthesized: Settings and assembly.
        parts: The stacks; what the others need is published, too.
    """
    settings = synthesized.settings
    for part in PARTS:
        _publish(aws, settings, settings.stack_name(part), synthesized.directory)
    for part in parts:
        create_stack(aws, synthesized, part)


def create_stack(aws: EmulatedAws, synthesized: Deployment, part: str) -> None:
    """Make a stack of which everything is published, and wait for it.

    Raises:
        botocore.exceptions.WaiterError: It failed.
    """
    settings, properties = synthesized.settings, synthesized.stack_properties(part)
    place = properties["stackTemplateAssetObjectUrl"].removeprefix("s3://").replace("${AWS::AccountId}", ACCOUNT)
    cloudformation = aws.client("cloudformation", settings.region)
    cloudformation.create_stack(
        StackName=settings.stack_name(part),
        TemplateURL=f"https://s3.{settings.region}.amazonaws.com/{place}",
        Capabilities=_CAPABILITIES,
        Tags=[{"Key": key, "Value": value} for key, value in properties.get("tags", {}).items()],
        EnableTerminationProtection=properties["terminationProtection"],
    )
    waiter = cloudformation.get_waiter("stack_create_complete")
    waiter.wait(StackName=settings.stack_name(part), WaiterConfig=_OFTEN)


def _publish(aws: EmulatedAws, settings: Settings, stack: str, directory: Path) -> None:
    """Upload what a stack needs, its template among it."""
    manifest = json.loads((directory / f"{stack}.assets.json").read_text(encoding="utf-8"))
    for file in manifest["files"].values():
        path = directory / file["source"]["path"]
        content = _zipped(path) if file["source"]["packaging"] == "zip" else path.read_bytes()
        for place in file["destinations"].values():
            bucket = place["bucketName"].replace("${AWS::AccountId}", ACCOUNT)
            aws.client("s3", settings.region).put_object(Bucket=bucket, Key=place["objectKey"], Body=content)


def _zipped(directory: Path) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(directory))
    return content.getvalue()
