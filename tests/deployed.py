"""Deployments in an emulated account, made without the CDK command line: that takes five times as long.

`DeployedAccount` is one that all workers of a test run share and nobody changes: a test works in a clone of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from config.settings import load
from emulator.aws import ACCOUNT, EmulatedAws
from emulator.templates import CAPABILITIES, publish_files
from scripts.emulated import accounts
from tests.shared import shared_server
from tests.stacks.deployments import Deployment, deploy
from toolchain.assembly import Assembly

CONFIG = Path(__file__).parents[1] / "config"
_OFTEN = {"Delay": 0.2, "MaxAttempts": 3000}


@dataclass(frozen=True)
class DeployedAccount:
    """An account in which a configuration of config/ is deployed.

    Attributes:
        synthesized: Its settings and assembly, to be read.
        aws: The emulated AWS with the account, which nobody changes; all its stacks are complete.
    """

    synthesized: Deployment
    aws: EmulatedAws

    def clone(self) -> EmulatedAws:
        """Return an emulated AWS with the same account, to be changed and stopped."""
        return self.aws.clone()


@contextmanager
def deployed_account(name: str) -> Iterator[DeployedAccount]:
    """Yield the account of a configuration. The first worker to ask for it makes it, and it ends with the last one."""

    def prepare(aws: EmulatedAws, directory: Path) -> None:
        settings = load(CONFIG / f"{name}.yaml")
        accounts.create_prerequisites(aws, settings)
        accounts.bootstrap(aws, settings)
        create_stacks(aws, deploy(settings, directory / "assembly"))

    with shared_server(f"deployed-{name}", prepare) as (aws, directory):
        yield DeployedAccount(Deployment(load(CONFIG / f"{name}.yaml"), directory / "assembly"), aws)


def create_stacks(aws: EmulatedAws, synthesized: Deployment) -> None:
    """Deploy what was synthesized in an account that has what it needs (`scripts.emulated.accounts`)."""
    publish_files(Assembly(synthesized.directory), aws)
    for part in synthesized.settings.parts:
        create_stack(aws, synthesized, part)


def create_stack(aws: EmulatedAws, synthesized: Deployment, part: str) -> None:
    """Make a stack of which everything is published, and wait for it.

    Raises:
        botocore.exceptions.WaiterError: It failed.
    """
    settings = synthesized.settings
    cloudformation = aws.client("cloudformation", settings.region)
    cloudformation.create_stack(
        **_request(synthesized, part),
        EnableTerminationProtection=synthesized.stack_properties(part)["terminationProtection"],
    )
    waiter = cloudformation.get_waiter("stack_create_complete")
    waiter.wait(StackName=settings.stack_name(part), WaiterConfig=_OFTEN)


def update_stack(aws: EmulatedAws, synthesized: Deployment, part: str) -> None:
    """Update a stack to what was synthesized, and wait for it; do nothing if that changes nothing.

    Raises:
        botocore.exceptions.WaiterError: It failed.
    """
    settings, cloudformation = synthesized.settings, aws.client("cloudformation", synthesized.settings.region)
    publish_files(Assembly(synthesized.directory), aws)
    try:
        cloudformation.update_stack(**_request(synthesized, part))
    except ClientError as error:
        if "No updates are to be performed" not in str(error):
            raise
        return
    waiter = cloudformation.get_waiter("stack_update_complete")
    waiter.wait(StackName=settings.stack_name(part), WaiterConfig=_OFTEN)


def planned(aws: EmulatedAws, synthesized: Deployment, part: str) -> list[dict[str, Any]]:
    """Return what a change set says of the resources of a stack that is there already; it is deleted again."""
    settings, request = synthesized.settings, _request(synthesized, part)
    publish_files(Assembly(synthesized.directory), aws)
    cloudformation = aws.client("cloudformation", settings.region)
    name = {"StackName": request["StackName"], "ChangeSetName": "planned"}
    cloudformation.create_change_set(**request, ChangeSetName=name["ChangeSetName"])
    described = cloudformation.describe_change_set(**name)
    cloudformation.delete_change_set(**name)
    assert described["Status"] == "CREATE_COMPLETE", described.get("StatusReason")
    return [each["ResourceChange"] for each in described["Changes"]]


def _request(synthesized: Deployment, part: str) -> dict[str, Any]:
    settings, properties = synthesized.settings, synthesized.stack_properties(part)
    key = properties["stackTemplateAssetObjectUrl"].removeprefix("s3://").replace("${AWS::AccountId}", ACCOUNT)
    return {
        "StackName": settings.stack_name(part),
        "TemplateURL": f"https://s3.{settings.region}.amazonaws.com/{key}",
        "Capabilities": CAPABILITIES,
        "Tags": [{"Key": key, "Value": value} for key, value in properties.get("tags", {}).items()],
    }
