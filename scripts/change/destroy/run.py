"""A destruction for a person or a program: shown, confirmed, done, and recorded also where it is interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.change.destroy import destroy as destruction
from scripts.change.destroy import plan as planning
from scripts.change.destroy.model import DestroyOptions, DestroyOutcome, Destruction
from scripts.change.destroy.report import done, planned
from scripts.core import terminal
from scripts.core.clock import Clock
from scripts.core.errors import OperationError, UnusableError
from scripts.core.report import Line
from scripts.watch.inventory import resources

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


def run(
    deployment: Deployment, options: DestroyOptions, output: str, *, asks: bool, dry_run: bool
) -> tuple[Destruction, BaseException | None]:
    """Show what would be deleted, ask for the deployment's name if wanted, delete, and show the result.

    Returns:
        The result, and what ended it before its end, which the caller must raise; the result has its message, too.

    Raises:
        OperationError: Another name was typed; nothing is deleted.
        botocore.exceptions.BotoCoreError: AWS does not answer; nothing is deleted.
        botocore.exceptions.ClientError: AWS refuses to list the resources; nothing is deleted.
    """
    clock, before = Clock(), resources.inventory(deployment)
    plan = planning.plan(deployment, options).priced({each.key: each.dollars_per_month for each in before.resources})
    result = Destruction(deployment=deployment.name, plan=plan, before=before, outcome=None)
    view, only_planned = terminal.view(output), bool(plan.blockers) or dry_run or plan.empty
    if only_planned or output == "text":
        view.show(planned(deployment, before, plan))
    if only_planned:
        return result, None
    if asks:
        terminal.confirm_name(deployment.settings.name)
    outcome, error = DestroyOutcome(started=clock.now()), None
    try:
        with destruction.resumable():
            say = terminal.speaker(terminal.console(output))
            destruction.destroy(deployment, options, clock=clock, say=say, outcome=outcome)
    except (KeyboardInterrupt, OperationError, UnusableError) as raised:
        error, outcome.ended = raised, clock.now()
    view.show(done(deployment, outcome))
    if error is not None:
        outcome.failures.append(str(error) or "It was interrupted.")  # as text, the command ends with it
        if output == "markdown":
            view.show([Line(f"Not done: {outcome.failures[-1]}")])
    return result.model_copy(update={"outcome": outcome}), error
