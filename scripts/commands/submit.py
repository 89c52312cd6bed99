"""Submit a training run to a cluster: compile, then train. It runs anywhere; the cluster's own submit.py does the work.

OPTIONS are those of submit.py: --nodes N, --output DIR, --queue, --time, --no-compile, --dry-run; and those of the
training program, among them --phase, --optimizer, --scaling strong|weak, --data, --steps, --checkpoint-interval, --keep
and --reference (docs/reference/training.md has a table of both). On a head or login node submit.py is called directly.
From elsewhere the same command is sent to the head node by Systems Manager, as by `exec`; Ctrl-C cancels it there, too.

Exit code: that of submit.py (0: submitted, 1: Slurm refused, 2: the arguments or the input cannot be used); before that
1: the head node is not reachable, 2: settings or credentials cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


def _complete_queue(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    if (ctx.params.get("of_submit") or ("",))[-1] != "--queue":
        return []
    return [each for each in options.complete_queues(ctx, parameter, incomplete) if "/" not in each]


@options.changing
@options.command(
    __doc__,
    (
        "submit research --nodes 16 --output /fsx/runs/phase1 --phase 1 --optimizer lamb --data /fsx/data",
        "BERT-Large on 16 nodes",
    ),
    ("submit research --nodes 2 --output /fsx/runs/try --steps 100 --warmup-steps 20 --dry-run", "only check"),
    passes_options=True,
)
@argument.deployed
@click.argument("of_submit", metavar="OPTIONS...", nargs=-1, type=click.UNPROCESSED, shell_complete=_complete_queue)
def command(*, deployment: Deployment, of_submit: Sequence[str]) -> int:
    """Call the cluster's submit.py, here or on the head node, and return its exit code."""
    from scripts.use.jobs import submit

    code = submit(deployment, of_submit)
    if code == ExitCode.DONE and "--dry-run" not in of_submit:
        terminal.suggest(f"jobs list {deployment.name}")
    return code
