"""Roll-backs that failed: continued with consent, so that the stacks can be updated again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scripts.account import operations, way_out
from scripts.account.stack_state import StackState
from scripts.check.plan.live import as_the_cdk_sees_it
from scripts.core import terminal
from scripts.core.aws_errors import is_denied
from scripts.core.clock import Changes, Clock
from scripts.core.errors import OperationError

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment
    from scripts.account.way_out import WayOut

_EVERY_SECONDS: Final = 5
_LONGEST_SECONDS: Final = 4200
"""CloudFormation gives a custom resource an hour."""


def lead_out(deployment: Deployment, directory: Path, say: Callable[[str], None], clock: Clock, *, asks: bool) -> None:
    """Continue the roll-backs of a deployment's stacks that failed, one after the other, with consent.

    Without a question only what changes nothing that runs. Needs cloudformation:ContinueUpdateRollback and what
    `way_out.find` needs.

    Args:
        deployment: The deployment.
        directory: The assembly that is to be deployed, which names the CDK's role.
        say: Takes what is in force, and how it continues.
        clock: Waits.
        asks: Whether somebody is asked.

    Raises:
        OperationError: Nothing leads out yet, nobody agreed, the CDK's role may not, or the roll-back failed again; the
            hint has what to do.
    """
    tried: set[str] = set()
    live = as_the_cdk_sees_it(deployment, directory)
    while ways := way_out.find(live):
        way = ways[0]
        if way.continued in tried:
            raise OperationError(f"The roll-back of {way.continued} failed again.\n{way.sentence}", way.steps)
        if not way.command:
            raise OperationError(way.sentence, way.steps)
        if not asks and not way.is_safe:
            raise OperationError(f"{way.sentence}\n--yes does not agree to that.", way.steps)
        say(way.sentence)
        _agree(way, asks=asks)
        _continue(live, way, say, clock)
        tried.add(way.continued)


def ways_out(deployment: Deployment, directory: Path) -> tuple[WayOut, ...]:
    """Return what leads out of roll-backs that failed, as far as AWS answers."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return way_out.find(as_the_cdk_sees_it(deployment, directory))
    except (BotoCoreError, ClientError):
        return ()


def _agree(way: WayOut, *, asks: bool) -> None:
    if asks:
        first = f"First {way.first}. " if way.first else ""
        terminal.confirm(f"{first}The roll-back of {way.continued} is continued{_without(way)}.")


def _without(way: WayOut) -> str:
    return f" without {', '.join(way.skipped)}, which changes nothing that runs" if way.skipped else ""


def _continue(deployment: Deployment, way: WayOut, say: Callable[[str], None], clock: Clock) -> None:
    from botocore.exceptions import ClientError

    account = deployment.account
    request: dict[str, Any] = {"ResourcesToSkip": list(way.skipped)} if way.skipped else {}
    token = operations.new_name(account, "deploy")
    try:
        account.client("cloudformation").continue_update_rollback(
            StackName=way.continued, ClientRequestToken=token, **request
        )
    except ClientError as error:
        if not is_denied(error):
            raise
        bootstrap = f"`./ultracluster bootstrap {deployment.name}` gives the CDK's role this permission"
        raise OperationError(str(error), f"{bootstrap}; with other credentials `{way.command}`") from error
    report = Changes(say)

    def has_ended() -> bool:
        account.forget()
        state = StackState.of(deployment.stack(way.continued) or {"StackStatus": StackState.DELETE_COMPLETE})
        report(f"{way.continued}: {state}")
        return not state.is_in_progress

    sentence = "CloudFormation continues the roll-back; the same command follows it."
    with terminal.report_interrupted(sentence):
        clock.wait(has_ended, report, every=_EVERY_SECONDS, limit=_LONGEST_SECONDS)
    account.forget()
