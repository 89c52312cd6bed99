"""Rehearse the life of a deployment on this computer, without an AWS account: deploy, run jobs, lose a node, destroy.

The commands are those that you will type, in an emulated AWS: the real CDK and ParallelCluster make the stacks, and
nodes run the real Slurm and this project's scripts, on Linux, as root or with user namespaces.
build/rehearsal-DEPLOYMENT.log has all that commands print. Without DEPLOYMENT and
ULTRACLUSTER_DEPLOYMENT it is config/trn1-16.yaml.

Exit code 0: every step succeeded; 1: a step failed; 2: arguments or settings cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

import time
from typing import Literal

import click

from scripts.core import options, terminal
from scripts.core.errors import ExitCode, OperationError
from scripts.core.text import echo

FAULTS = (
    *("resource", "throttling", "capacity", "offering", "quota", "head-node", "provider", "warning", "stopping"),
    *("killed", "node-script", "node-names", "unhealthy", "lustre", "efa", "network", "clock", "disk"),
    *("stale-node", "launch-templates", "head-node-reboot", "head-node-lost", "head-node-terminated"),
)
"""Those of emulator.faults, which help must not import; a test compares them."""


@options.command(
    __doc__,
    ("rehearse", "AWS's cluster of 16 nodes"),
    ("rehearse research --pause", "settings of your own, step by step"),
    ("rehearse research --train", "also a tiny BERT on 2 nodes, of which one is lost"),
    ("rehearse dev --fault capacity", "what happens when EC2 has no instance left, then a deployment without"),
    ("rehearse dev --fault network", "the network to a node is cut under a job"),
    ("rehearse dev --keep", "leave the emulated AWS running, for other commands"),
)
@click.argument(
    "name", metavar="[DEPLOYMENT]", type=options.DeploymentName(), default="trn1-16", envvar=options.VARIABLE
)
@click.option(
    "--train", is_flag=True, help="Train a tiny BERT on 2 nodes, too, and lose one: needs make setup-training."
)
@click.option(
    "--nodes", type=click.IntRange(1), default=2, show_default=True, metavar="N", help="Nodes of the first job."
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[:TARGET]",
    shell_complete=lambda _, __, text: [name for name in FAULTS if name.startswith(text)],
    help="Inject a fault, then clear it; of nodes, also several.",
)
@click.option("--list-faults", is_flag=True, help="List the faults that can be injected.")
@click.option(
    "--speed", type=click.Choice(("fast", "real")), default="fast", show_default=True, help="real: as slow as AWS."
)
@click.option("--keep", is_flag=True, help="Do not destroy: leave the emulated AWS running until Ctrl-C.")
@click.option("--pause", is_flag=True, help="Say before each step what it shows, and wait for Enter.")
def command(
    *,
    name: str,
    train: bool,
    nodes: int,
    faults: tuple[str, ...],
    list_faults: bool,
    speed: Literal["fast", "real"],
    keep: bool,
    pause: bool,
) -> int:
    """Rehearse, and return the exit code."""
    terminal.require_answers(given=not pause, instead="no --pause")

    from scripts.rehearse.faults import as_text, parse

    if list_faults:
        echo(as_text())
        return ExitCode.DONE
    settings = options.settings_of(name)
    options.check_build()
    injected = tuple(map(parse, faults))

    from scripts.rehearse.rehearsal import Choices, check, rehearse
    from scripts.rehearse.stage import RehearsalError

    choices = Choices(speed=speed, faults=injected, keep=keep, pause=pause, nodes=nodes, train=train)
    check(settings, choices)
    console = terminal.console()
    path = options.BUILD / f"rehearsal-{name}.log"
    path.parent.mkdir(exist_ok=True)
    started = time.monotonic()
    try:
        with path.open("w", encoding="utf-8") as log:
            rehearse(name, console, log, choices)
    except RehearsalError as error:
        raise OperationError(str(error), f"what commands printed is in {path}") from None
    console.print(f"\nAll in {time.monotonic() - started:.0f} s.")
    terminal.suggest(f"estimate {name}", "what it would cost in AWS")
    return ExitCode.DONE
