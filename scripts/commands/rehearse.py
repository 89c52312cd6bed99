"""Rehearse a deployment on this machine, without an AWS account: create it, change it, destroy it.

The real CDK command line deploys the unchanged templates into an emulated AWS; the cluster is made by the real
ParallelCluster. build/rehearsal.log has all that the CDK prints. Without DEPLOYMENT and
ULTRACLUSTER_DEPLOYMENT it is config/trn1-16.yaml.

Exit code 0: every step succeeded; 1: a step failed; 2: arguments or settings cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

import time
from typing import Literal

import click

from scripts import options, terminal
from scripts.errors import ExitCode, OperationError

FAULTS = (
    *("resource", "throttling", "capacity", "offering", "quota", "head-node", "provider", "warning", "stopping"),
    "killed",
)
"""Those of emulator.faults, which help must not import; a test compares them."""


@options.command(
    __doc__,
    ("rehearse", "AWS's cluster of 16 nodes"),
    ("rehearse research", "settings of your own"),
    ("rehearse dev --fault capacity", "what happens when EC2 has no instance left, then a deployment without"),
    ("rehearse dev --keep", "leave the emulated AWS running, for other commands"),
)
@click.argument(
    "name", metavar="[DEPLOYMENT]", type=options.DeploymentName(), default="trn1-16", envvar=options.VARIABLE
)
@click.option(
    "--fault",
    metavar="NAME[:TARGET]",
    shell_complete=lambda _, __, text: [name for name in FAULTS if name.startswith(text)],
    help="Inject a fault, then clear it.",
)
@click.option("--list-faults", is_flag=True, help="List the faults that can be injected.")
@click.option(
    "--speed", type=click.Choice(("fast", "real")), default="fast", show_default=True, help="real: as slow as AWS."
)
@click.option("--keep", is_flag=True, help="Do not destroy: leave the emulated AWS running until Ctrl-C.")
@click.option("--step", is_flag=True, help="Wait for Enter before each step.")
def command(
    *, name: str, fault: str | None, list_faults: bool, speed: Literal["fast", "real"], keep: bool, step: bool
) -> int:
    """Rehearse, and return the exit code."""
    terminal.require_answers(given=not step, instead="no --step")

    from scripts.rehearse import faults

    if list_faults:
        print(faults.as_text())
        return ExitCode.DONE
    options.settings_of(name)
    injected = None if fault is None else faults.parse(fault)

    from scripts.rehearse.rehearsal import RehearsalError, rehearse

    console = terminal.console()
    path = options.BUILD / "rehearsal.log"
    path.parent.mkdir(exist_ok=True)
    started = time.monotonic()
    try:
        with path.open("w", encoding="utf-8") as log:
            rehearse(name, console, log, speed=speed, fault=injected, keep=keep, step=step)
    except RehearsalError as error:
        raise OperationError(str(error), f"the CDK's output is in {path}") from None
    console.print(f"\nAll in {time.monotonic() - started:.0f} s.")
    terminal.suggest(f"estimate {name}", "what it would cost in AWS")
    return ExitCode.DONE
