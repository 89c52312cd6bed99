"""Plans and deploys with the CDK, once no operation on the stacks is in progress.

What is deployed is compared with what was approved (`approval`). Who uses the console, `aws` or `cdk` can start an
operation at any time, which nothing here refuses; it is found out afterwards, and never reported as success.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal

from pydantic import Field

from scripts.account import operations
from scripts.account.way_out import WayOut
from scripts.change.approval import Approval
from scripts.check.plan import cdk
from scripts.core import terminal
from scripts.core.document import DeploymentName, Document, Result
from scripts.core.errors import ENDED, ExitCode, OperationError
from scripts.core.figures import duration
from scripts.core.report import Block, Line, Table, columns
from scripts.core.temporary import temporary_directory
from scripts.core.text import echo

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.account.deployment import Deployment

BUILD = cdk.ROOT / "build"
MEANWHILE: Final = "Somebody else has changed these stacks meanwhile"
_OUTDATED: Final = (
    "There are newer clusters than the settings say: cluster.generation {}",
    "use the settings file that the upgrade wrote, and merge it first",
)
_FOLLOWED_FAILED: Final = (
    "What was in progress failed or was rolled back",
    "./ultracluster diagnose {0}; to try again: ./ultracluster deploy {0}",
)


class DeployedStack(Document):
    """A stack after a deployment."""

    name: str = Field(description="Its name.")
    status: str = Field(description="CloudFormation's status of it, such as UPDATE_COMPLETE.")
    outputs: dict[str, str] = Field(description="Its outputs.")


class DeployResult(Result):
    """The result of a deployment."""

    deployment: DeploymentName
    region: str = Field(description="Region of the stacks.")
    outcome: Literal["deployed", "blocked", "failed"] = Field(
        description="deployed: all stacks are as planned; blocked: nothing was changed; failed: the CDK failed, or "
        "somebody else deployed meanwhile."
    )
    conflicts: tuple[str, ...] = Field(
        default=(), description="What others have done to the stacks since the plan, a sentence each."
    )
    blockers: tuple[str, ...] = Field(description="What blocks it, a sentence each.")
    exit_code: int = Field(description="That of the command.")
    seconds: float = Field(description="How long planning and deploying took.")
    ways_out: tuple[WayOut, ...] = Field(
        default=(), description="Of stacks that could not be rolled back: what is in force, and what leads out."
    )
    stacks: tuple[DeployedStack, ...] = Field(
        default=(), description="Those that exist, in the order of their deployment."
    )

    def blocks(self) -> Iterator[Block]:
        """Yield it for people, with the outputs of the stacks but for those that other stacks and programs read."""
        yield Line(f"{self.outcome.capitalize()} after {duration(self.seconds)}.")
        stuck = [each.sentence for each in self.ways_out]
        yield from (Line(each, item=True) for each in (*self.blockers, *self.conflicts, *stuck))
        yield Table("", columns("Stack", "Status"), [(each.name, each.status) for each in self.stacks])
        outputs = [
            (each.name, name, value)
            for each in self.stacks
            for name, value in each.outputs.items()
            if not name.startswith(("ExportsOutput", "PublishOutput"))
        ]
        yield Table("", columns("Stack", "Output", "Value"), outputs)


def run(deployment: Deployment, of_cdk: Sequence[str], console: Console, *, accepted: bool, asks: bool) -> DeployResult:
    """Synthesize, continue roll-backs that failed, show what would change, ask, and let the CDK deploy exactly that.

    The console shows the plan, and what the CDK prints on its standard output; `of_cdk` are further arguments of the
    CDK. `accepted` tells that replacing and removing what holds data was accepted, `asks` that somebody is asked.

    Raises:
        OperationError: What was in progress failed, somebody else's operation is in progress or was since the plan, a
            roll-back failed and is not continued, the settings are outdated, or the answer was no.
        PlanError: There is no plan; the message says why.
    """
    from scripts.change import rollback
    from scripts.check.plan.plan import make_plan
    from scripts.core.clock import Clock
    from scripts.core.view import View

    name, started = deployment.name, time.monotonic()
    with temporary_directory() as directory:  # nothing else writes to it while somebody thinks about the question
        assembly = directory / "cdk.out"
        settle(deployment, console)
        cdk.synthesize(name, assembly)
        rollback.lead_out(deployment, assembly, console.print, Clock(), asks=asks)
        approval = Approval.of(deployment, assembly)
        plan = make_plan(name, assembly, accepted=accepted)
        View(console).show(plan.blocks())
        code: int = ExitCode.FAILED
        conflicts: list[str] = []
        if plan.ok:
            if asks and not plan.empty:
                terminal.confirm()
            code, conflicts = deploy(name, approval, of_cdk, output=sys.stderr if console.stderr else None)
        report(conflicts)
        has_failed = plan.ok and code not in (ExitCode.DONE, *ENDED)
        ways_out = rollback.ways_out(deployment, assembly) if has_failed else ()
    return DeployResult(
        deployment=name,
        region=plan.region,
        outcome="deployed" if code == ExitCode.DONE else "failed" if plan.ok else "blocked",
        conflicts=tuple(conflicts),
        ways_out=ways_out,
        blockers=tuple(plan.blockers),
        exit_code=code,
        seconds=round(time.monotonic() - started, 1),
    )


def with_stacks(result: DeployResult, deployment: Deployment) -> DeployResult:
    """Return a result with the stacks of the deployment as they are now."""
    deployment.account.forget()
    stacks = [stack for part in deployment.settings.parts if (stack := deployment.stack(deployment.stack_name(part)))]
    states = [
        DeployedStack(name=each["StackName"], status=each["StackStatus"], outputs=deployment.outputs(each["StackName"]))
        for each in stacks
    ]
    return result.model_copy(update={"stacks": tuple(states)})


def settle(deployment: Deployment, console: Console) -> None:
    """Follow operations in progress on a deployment's stacks to their end, if the same person or pipeline started them.

    Raises:
        OperationError: One is somebody else's; one failed; or the settings are of an older generation than the newest
            cluster: from before an upgrade, they would create the replaced cluster again.
    """
    from scripts.account import generations
    from scripts.core.clock import Clock
    from scripts.watch.progress import watch as progress

    settings = deployment.settings
    newer = [each for each in generations.existing(deployment) if each > settings.cluster.generation]
    if newer:
        problem, hint = _OUTDATED
        raise OperationError(problem.format(", ".join(map(str, newer))), hint)
    started = operations.check(deployment)
    if not started:
        return
    console.print("Yours is in progress, and is followed first:", *map(str, started), sep="\n  ")
    if progress.watch(deployment, console, clock=Clock(), as_json=False) != ExitCode.DONE:
        problem, hint = _FOLLOWED_FAILED
        raise OperationError(problem, hint.format(deployment.name))


def deploy(
    deployment_name: str,
    approval: Approval,
    arguments: Sequence[str],
    *,
    stacks: Sequence[str] = (),
    output: IO[str] | None = None,
) -> tuple[int, list[str]]:
    """Let the CDK deploy what was approved, as `carry_out` does.

    With `stacks` those alone, and what they depend on. `output` takes the CDK's standard output; None: this program's.
    """

    def start(name: str) -> int:
        return run_cdk(deployment_name, approval.directory, name, arguments, stacks=stacks, output=output)

    return carry_out(approval, start, stacks)


def report(conflicts: Sequence[str]) -> None:
    """Print what others have done to the stacks meanwhile."""
    if conflicts:
        echo("\n  ".join([f"\n{MEANWHILE}:", *conflicts]), err=True)


def carry_out(approval: Approval, start: Callable[[str], int], stacks: Sequence[str] = ()) -> tuple[int, list[str]]:
    """Let the CDK deploy what was approved, and compare what is deployed then with it.

    `start` runs the CDK to its end with a name for its change sets. With `stacks` it deploys those alone, and what they
    depend on.

    Returns:
        The exit code of the CDK, or `FAILED` where that is 0 and a stack is not as approved; and what others have done
        to the stacks meanwhile, a sentence each.

    Raises:
        OperationError: Somebody else's operation is in progress, or was since the plan; nothing is deployed.
    """
    approval.check()
    name = approval.new_name()
    code = start(name)
    if code != ExitCode.DONE:
        approval.discard(name)
    if code in ENDED:
        return code, []
    conflicts = approval.conflicts(name, stacks, is_done=code == ExitCode.DONE)
    return (ExitCode.FAILED if conflicts and code == ExitCode.DONE else code), conflicts


def run_cdk(
    deployment_name: str,
    assembly: Path,
    change_set: str,
    arguments: Sequence[str],
    *,
    stacks: Sequence[str] = (),
    output: IO[str] | None = None,
) -> int:
    """Let the CDK deploy an assembly by change sets of a name, one for each stack, and return its exit code."""
    BUILD.mkdir(exist_ok=True)
    outputs = BUILD / f"outputs-{deployment_name}.json"
    words = ("deploy", *(stacks or ("--all",)), "--app", str(assembly), "--require-approval", "never")
    further = ("--change-set-name", change_set, "--outputs-file", str(outputs))
    return cdk.run(*words, *further, *arguments, output=output)
