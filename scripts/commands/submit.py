"""Submit a program to a cluster: check, compile, train. It runs anywhere; the cluster's own submit.py does the work.

PROGRAM is bert, the default; a folder with program.toml or train.py; a file of Python; or a batch script that begins
with #!. A folder or file that is on this machine travels to the cluster, up to 32 KiB compressed, and the run keeps a
copy; any other path is one on the cluster. The program's own options come after --
(docs/reference/training.md has those of BERT).

On a head or login node submit.py is called directly. From elsewhere the same command is sent to the head node by
Systems Manager, as by `exec`; Ctrl-C cancels it there, too.

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
    return [each for each in options.complete_queues(ctx, parameter, incomplete) if "/" not in each]


@options.changing
@options.command(
    __doc__,
    (
        "submit research --nodes 16 --output /fsx/runs/phase1 -- --phase 1 --optimizer lamb --data /fsx/data",
        "BERT-Large on 16 nodes",
    ),
    ("submit research --program ./mine --nodes 4 --output /fsx/runs/mine -- --lr 1e-4", "a program of your own"),
    ("submit research --nodes 2 --output /fsx/runs/try --dry-run -- --steps 100 --warmup-steps 20", "only check"),
    further="words",
)
@argument.deployed
@click.option("--program", default="bert", show_default=True, metavar="PROGRAM", help="What to run.")
@click.option("--env", metavar="NAME", help="Python environment, as `env list` has it; default: the cluster's.")
@click.option("--nodes", required=True, type=int, metavar="N", help="Whole nodes.")
@click.option("--output", required=True, metavar="DIR", help="Directory of the run, on the shared file system.")
@click.option("--queue", metavar="NAME", shell_complete=_complete_queue, help="Default: Slurm's default partition.")
@click.option(
    "--time", metavar="T", help="Limit as Slurm writes it, an hour or more; the job stops before, and continues."
)
@click.option(
    "--workers-per-node",
    type=int,
    metavar="N",
    help="Processes on each node; default: the program's, or a NeuronCore each.",
)
@click.option("--array", metavar="TASKS", help="A run for each task, such as 0-7%2, in the directory DIR/TASK.")
@click.option("--after", metavar="DIR", help="A run that must end well before this one starts.")
@click.option("--no-compile", is_flag=True, help="Train at once: nodes compile what is not in the cache.")
@click.option("--fifo-priority", type=int, metavar="N", help="Train under SCHED_FIFO, 1 to 99; default: not.")
@click.option("--dry-run", is_flag=True, help="Check, and print the commands of Slurm.")
def command(*, deployment: Deployment, words: Sequence[str], program: str, dry_run: bool, **given: object) -> int:
    """Call the cluster's submit.py, here or on the head node, and return its exit code."""
    from scripts.use.submission import submit

    said = [f"--{name.replace('_', '-')}" if value is True else f"--{name.replace('_', '-')}={value}"
            for name, value in given.items() if value not in (None, False)]  # fmt: skip
    code = submit(deployment, program, [*said, *(["--dry-run"] if dry_run else [])], words)
    if code == ExitCode.DONE and not dry_run:
        terminal.suggest(f"jobs list {deployment.name}")
    return code
