"""The stacks of a deployment as CloudFormation has them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from config.settings import Settings
from scripts.account.deployment import Account, Deployment, session, tags_of
from scripts.account.stack_state import StackState
from scripts.check.plan.model import PlanError
from toolchain.assembly import Assembly, Stack
from toolchain.values import attribute_reference

MANIFEST: Final = "manifest.json"


class CdkAccount(Account):
    """AWS as the CDK sees it: CloudFormation is asked in the role that the CDK deploys in, if it may be assumed.

    https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html
    """

    def __init__(self, region: str, role: str) -> None:
        super().__init__(region)
        self._role = role
        self._cloudformation: Any = None

    @classmethod
    def of(cls, directory: Path, stacks: Mapping[str, Stack]) -> CdkAccount:
        """Return the account of an assembly, by the role of its stacks, which is the same one for all."""
        name, stack = next(iter(stacks.items()))
        role: str = stack_properties(directory)[name]["assumeRoleArn"]
        for placeholder in ("AWS::AccountId", "AWS::Partition"):
            role = role.replace(f"${{{placeholder}}}", str(stack.pseudo_parameters[placeholder]))
        return cls(stack.region, role)

    def client(self, service: str, region: str | None = None) -> Any:
        """Return a client of a service in the deployment's Region, or another."""
        if service != "cloudformation":
            return super().client(service, region)
        self._cloudformation = self._cloudformation or self._in_role()
        return self._cloudformation

    def _in_role(self) -> Any:
        from botocore.exceptions import ClientError

        try:
            assumed = self.ask("sts", "assume_role", RoleArn=self._role, RoleSessionName="plan")
        except ClientError:
            return super().client("cloudformation")
        keys = assumed["Credentials"]
        return session().client(
            "cloudformation",
            region_name=self._region,
            aws_access_key_id=keys["AccessKeyId"],
            aws_secret_access_key=keys["SecretAccessKey"],
            aws_session_token=keys["SessionToken"],
        )


def as_the_cdk_sees_it(deployment: Deployment, directory: Path) -> Deployment:
    """Return a deployment in the account as the CDK sees it that deploys an assembly."""
    account_id = deployment.account.ask("sts", "get_caller_identity")["Account"]
    live = Deployment(deployment.name, deployment.settings)
    live.account = CdkAccount.of(directory, Assembly(directory, account_id).stacks)
    return live


class LiveStacks:
    """The deployed stacks of an assembly.

    Attributes:
        deployment: The deployment, in its account as the CDK sees it.
        account_id: The account of the credentials.
        new: The stacks of the assembly, as they are for this account.
        statuses: Statuses of the stacks that exist.
        old: Those that have resources.
        physical_ids: Physical ids of their resources, by stack and logical id.
        attributes: Attributes of their resources, by stack, logical id and name, as far as outputs have them.
        protected: Stacks that are protected against deletion.
        to_be_protected: Those that the assembly wants to be protected.

    Raises:
        PlanError: The settings name another account.
        botocore.exceptions.BotoCoreError: AWS could not be asked.
        botocore.exceptions.ClientError: AWS refused to answer.
    """

    def __init__(self, deployment_name: str, settings: Settings, directory: Path) -> None:
        self.deployment = Deployment(deployment_name, settings)
        self.account_id: str = self.deployment.account.ask("sts", "get_caller_identity")["Account"]
        if settings.account not in (None, self.account_id):
            raise PlanError(f"the credentials are for account {self.account_id}; allowed: {settings.account}")
        self.new = Assembly(directory, self.account_id).stacks
        properties = stack_properties(directory)
        self.to_be_protected = {name for name, each in properties.items() if each.get("terminationProtection")}
        self.deployment.account = CdkAccount.of(directory, self.new)
        described = {name: self.deployment.stack(name) for name in self.new}
        self.statuses = {name: StackState.of(stack) for name, stack in described.items() if stack}
        present = {name: stack for name, stack in described.items() if stack and not StackState.of(stack).has_nothing}
        self.old = {name: self._stack(name, stack) for name, stack in present.items()}
        self.physical_ids = {name: self.deployment.physical_ids(name) for name in present}
        self.attributes = {key: value for name in present for key, value in self._attributes(name)}
        self.protected = {name for name, stack in described.items() if stack and stack["EnableTerminationProtection"]}

    def _attributes(self, name: str) -> Iterator[tuple[tuple[str, str, str], str]]:
        """Yield the attributes that are outputs of a stack, such as those that others import, with their values."""
        values = self.deployment.outputs(name)
        for output, definition in self.old[name].template.get("Outputs", {}).items():
            match definition["Value"]:
                case {"Fn::GetAtt": argument} if output in values:
                    logical_id, attribute = attribute_reference(argument)
                    yield (name, logical_id, str(attribute)), values[output]

    def _stack(self, name: str, description: Mapping[str, Any]) -> Stack:
        text = json.loads(json.dumps(self.deployment.template(name)))
        return Stack(name, self.new[name].region, self.account_id, text, tags_of(description))


def stack_properties(directory: Path) -> dict[str, dict[str, Any]]:
    """Return the properties of each stack in the manifest of an assembly: role, protection."""
    manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    return {
        artifact["properties"].get("stackName", name): artifact["properties"]
        for name, artifact in manifest["artifacts"].items()
        if artifact["type"] == "aws:cloudformation:stack"
    }
