"""What was approved: an assembly, and the stacks that its plan was compared with.

Between plan and deployment, and during it, somebody else may deploy. CloudFormation does not execute a change set of a
stack that was changed since the change set was created; but the CDK creates it only when it comes to the stack, and
then waits for the stack's status, also if others change it. So the stacks are looked at before the CDK starts, and when
it has ended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from scripts.account import operations
from scripts.account.deployment import Account, Deployment, described, tags_of
from scripts.account.operations import Operation
from scripts.account.stack_state import StackState
from scripts.account.stacks import events
from scripts.check.plan.live import MANIFEST, CdkAccount
from scripts.core.interrupts import uninterrupted
from toolchain.assembly import Assembly, Stack

_HIDDEN: Final = "****"
"""The value of a parameter that nobody is shown."""
_NOT_RETURNED: Final = re.compile(r"[^\x00-\x7f?]+|\?+")
"""Characters that CloudFormation returns as question marks, in templates and tags, and question marks.

https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/814
"""
_ALWAYS: Final = datetime.min.replace(tzinfo=UTC)


class Approval:
    """An assembly that is to be deployed as it is, on stacks as they are now. Made before its plan.

    One call for each stack, two or three more after the deployment. Needs cloudformation:DescribeStacks,
    DescribeStackEvents, GetTemplate and, where a stack waits to be created, ListChangeSets and DeleteStack, in the role
    in which the CDK deploys, if that may be assumed.

    Args:
        account: That of the credentials in use.
        directory: The assembly.
        check_progress: Raises OperationError if somebody else's operation is in progress.

    Attributes:
        directory: The assembly.
        stacks: Its stacks by name.

    Raises:
        botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError: AWS does not answer, or refuses.
    """

    def __init__(self, account: Account, directory: Path, check_progress: Callable[[], object]) -> None:
        self.directory = directory
        self._account = account
        self._check_progress = check_progress
        account_id = account.ask("sts", "get_caller_identity")["Account"]
        self.stacks = Assembly(directory, account_id).stacks
        live = self._live()
        self._parameters = {name: _parameters(described(live, name) or {}) for name in self.stacks}
        self._versions = {name: _version(live, name) for name in self.stacks}

    @classmethod
    def of(cls, deployment: Deployment, directory: Path) -> Approval:
        """Return that of an assembly of a deployment."""
        return cls(deployment.account, directory, lambda: operations.check(deployment))

    def new_name(self) -> str:
        """Return a name for the change sets of a deployment of the assembly."""
        return operations.new_name(self._account, "deploy")

    def check(self) -> None:
        """Check that nothing is in progress, and that all stacks are as they were when this was made.

        Raises:
            OperationError: Somebody else has deployed, deploys or is about to; the message has who and since when.
        """
        self._check_progress()
        live = self._live()
        changed = [name for name in self.stacks if _version(live, name) != self._versions[name]]
        if changed:
            raise operations.refusal(
                f"{', '.join(changed)} changed after this plan was made; nothing was deployed",
                [each for name in changed for each in self._changes(live, name)],
                "the same command plans again",
            )

    def conflicts(self, own: str, names: Collection[str] = (), *, is_done: bool) -> list[str]:
        """Return what others have done to the stacks since this was made, a sentence each.

        Args:
            own: The name of the change sets of this deployment.
            names: The stacks that were to be deployed, with those that they depend on; none: all of the assembly.
            is_done: Whether they should be as approved now; else only what others did is looked for.
        """
        live, names = self._live(), self._with_dependencies(names) if names else self.stacks
        return [each for name in names for each in self._conflicts(live, name, own, is_done=is_done)]

    def discard(self, name: str) -> None:
        """Delete the change sets of a name that could still be executed, as far as AWS lets it."""
        from botocore.exceptions import BotoCoreError, ClientError

        cloudformation = self._live().client("cloudformation")
        for stack in self.stacks:
            with suppress(BotoCoreError, ClientError), uninterrupted():
                if deletes_review(cloudformation, stack, name):
                    continue
                change_set = {"StackName": stack, "ChangeSetName": name}
                if cloudformation.describe_change_set(**change_set)["ExecutionStatus"] == "AVAILABLE":
                    cloudformation.delete_change_set(**change_set)

    def _live(self) -> Account:
        """Return the account as the CDK sees it, now; the role's credentials last an hour, a deployment longer."""
        return CdkAccount.of(self.directory, self.stacks)

    def _with_dependencies(self, names: Collection[str]) -> list[str]:
        """Return the stacks that the CDK deploys where some are named, in its order."""
        artifacts = json.loads((self.directory / MANIFEST).read_text(encoding="utf-8"))["artifacts"]
        wanted: set[str] = set()
        left = [name for name, each in artifacts.items() if each.get("properties", {}).get("stackName", name) in names]
        while left:
            name = left.pop()
            wanted.add(artifacts[name].get("properties", {}).get("stackName", name))
            left += artifacts[name].get("dependencies", [])
        return [name for name in self.stacks if name in wanted]

    def _changes(self, live: Account, name: str) -> Iterator[Operation]:
        """Yield who has changed a stack, or is about to create it."""
        stack = described(live, name)
        if stack is None:
            return
        if not StackState.of(stack).is_in_review:
            yield operations.last(live, stack)
            return
        for each in live.list("cloudformation", "list_change_sets", StackName=name):
            if each["ChangeSetId"] not in self._versions[name]:
                yield operations.of_change_set(live, stack, each)

    def _conflicts(self, live: Account, name: str, own: str, *, is_done: bool) -> Iterator[str]:
        stack = described(live, name)
        if stack is None:
            if is_done:
                yield f"{name}: somebody else deleted it"
            return
        last, count = operations.last(live, stack), self._count(live, stack)
        different = _differences(live, self.stacks[name], stack, self._parameters[name]) if is_done else []
        if different:
            yield f"{last}: not the {' and '.join(different)} that you approved"
        elif last.name == own and count > 1:
            yield f"{name}: this replaced what somebody else deployed after the plan was made, which did not show that"
        elif last.name != own and count and (not is_done or last.status.is_in_progress):
            yield str(last)

    def _count(self, account: Account, stack: dict[str, Any]) -> int:
        """Return how many operations on a stack have started since this was made."""
        count, version = 0, self._versions[stack["StackName"]]
        for event in events(account.client("cloudformation"), stack["StackId"], since=_ALWAYS):
            if event.id in version:
                break
            count += event.is_start
        return count


def _version(account: Account, name: str) -> frozenset[str]:
    """Return what changes with each operation on a stack, and with each change set that may create it.

    That is the id of its newest event; there are none any more of a stack that was not changed for 90 days.
    """
    page = account.find("cloudformation", "describe_stack_events", StackName=name)
    if page is None:
        return frozenset()
    newest = next(iter(page["StackEvents"]), {"EventId": "none", "ResourceStatus": ""})
    waits = StackState(newest["ResourceStatus"]).is_in_review
    waiting = account.list("cloudformation", "list_change_sets", StackName=name) if waits else []
    return frozenset([newest["EventId"], *(each["ChangeSetId"] for each in waiting)])


def _parameters(stack: dict[str, Any]) -> dict[str, str]:
    return {each["ParameterKey"]: each["ParameterValue"] for each in stack.get("Parameters", [])}


def _differences(account: Account, approved: Stack, stack: dict[str, Any], before: dict[str, str]) -> list[str]:
    """Return what of a stack is not as approved: template, tags, parameters.

    The CDK passes templates on as they are in the assembly. It leaves parameters as they were before, and those of a
    stack that it creates have their default.
    """
    stored = account.ask("cloudformation", "get_template", StackName=stack["StackId"], TemplateStage="Original")
    pairs = {"template": (approved.template, stored["TemplateBody"]), "tags": (approved.tags, tags_of(stack))}
    different = [what for what, (wanted, found) in pairs.items() if _as_returned(wanted) != _as_returned(found)]
    declared = approved.template.get("Parameters", {})
    usual = {(name, str(each.get("Default", ""))) for name, each in declared.items()} | before.items()
    values = {name: value for name, value in _parameters(stack).items() if value != _HIDDEN}
    return different + ([] if values.items() <= usual else ["parameters"])


def _as_returned(value: Any) -> str:
    """Return a value as text, in which characters that CloudFormation does not return are no difference."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if text.isascii() and "?" not in text else _NOT_RETURNED.sub("?", text)


def deletes_review(cloudformation: Any, stack: str, name: str) -> bool:
    """Delete a stack that was never created, if no change set but that of a name waits for it; tell whether."""
    [listed] = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    if not StackState.of(listed).is_in_review:
        return False
    waiting = cloudformation.list_change_sets(StackName=stack)["Summaries"]
    if any(each["ChangeSetName"] != name for each in waiting):
        return False
    cloudformation.delete_stack(StackName=stack)
    return True
