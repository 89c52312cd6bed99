"""Stop, start and scale the compute nodes of a cluster, or show their state.

stop waits until EC2 has terminated every compute node; the head node stays. scale changes min_count or max_count in the
settings file, deploys it, and stops and starts the fleet where the change needs that. While jobs have nodes, nothing is
stopped without --drain or --force. Interrupted, the same command continues.

Exit code: 0: done; 1: not done, the message says why; 2: arguments, settings or credentials cannot be used, or standard
input is not a terminal; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from scripts.command import (
    DONE,
    OperationError,
    UnusableError,
    above_zero,
    confirm,
    parser,
    report_interrupted,
    run,
    speaker,
)

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.clock import Clock
    from scripts.deployment import Deployment
    from scripts.fleet.document import Scaled

_EXAMPLES = """\
  python -m scripts fleet trn1-16 status                   the state of the fleet and its queues
  python -m scripts fleet trn1-16 stop                     terminate all compute nodes, if no job has any
  python -m scripts fleet trn1-16 stop --drain --limit 90  wait for jobs, 90 minutes at most
  python -m scripts fleet trn1-16 start                    accept jobs again
  python -m scripts fleet trn1-16 scale --max 32           up to 32 nodes in the only queue
  python -m scripts fleet two-queues scale trn1-a --min 2 --max 4 --dry-run
                                                           only show the steps"""
_ONLY = {
    "target": ("scale",),
    "min": ("scale",),
    "max": ("scale",),
    "dry_run": ("scale",),
    "no_preflight": ("scale",),
    "drain": ("scale", "stop"),
    "force": ("scale", "stop"),
    "yes": ("scale", "stop"),
    "limit": ("stop",),
}
"""The actions that an argument is for."""
_REQUEUE = (
    "Batch jobs are requeued and start again once the fleet is started, unless they were submitted with --no-requeue; "
    "those and interactive ones end."
)
"""Of jobs whose nodes are terminated: JobRequeue is 1 by default, and ParallelCluster's slurm.conf does not change it.

https://slurm.schedmd.com/slurm.conf.html#OPT_JobRequeue,
https://github.com/aws/aws-parallelcluster-cookbook/blob/develop/cookbooks/aws-parallelcluster-slurm/templates/default/slurm/slurm.conf.erb
"""
_CONTINUES = "A {} that was requested continues in AWS. The same command waits for it, or does what is left."


def arguments() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    command = parser("fleet", __doc__, _EXAMPLES)
    command.add_argument("action", choices=("status", "stop", "start", "scale"), help="what to do")
    command.add_argument(
        "target",
        nargs="?",
        metavar="QUEUE[/COMPUTE-RESOURCE]",
        help="scale: which nodes, unless there is only one",
    )
    command.add_argument("--min", type=int, metavar="N", help="scale: static nodes (min_count)")
    command.add_argument("--max", type=int, metavar="N", help="scale: nodes at most (max_count)")
    jobs = command.add_mutually_exclusive_group()
    jobs.add_argument("--drain", action="store_true", help="accept no new jobs, and wait until all others have ended")
    jobs.add_argument("--force", action="store_true", help="terminate nodes of jobs, also if Slurm cannot be asked")
    command.add_argument("--limit", type=above_zero, metavar="MINUTES", help="stop --drain: longest wait for jobs")
    command.add_argument("--dry-run", action="store_true", help="scale: only show the steps")
    command.add_argument("--no-preflight", action="store_true", help="scale: do not check quotas and capacity first")
    command.add_argument("--yes", action="store_true", help="do not ask: for pipelines")
    return command


def check(command: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Exit with code 2 if arguments do not go together."""
    for name, actions in _ONLY.items():
        if getattr(given, name) not in (None, False) and given.action not in actions:
            shown = getattr(given, name) if name == "target" else f"--{name.replace('_', '-')}"
            command.error(f"got {shown} with {given.action}; allowed: with {' or '.join(actions)}")
    if given.limit is not None and not given.drain:
        command.error("got --limit without --drain")
    if given.action == "scale" and given.min is None and given.max is None:
        command.error("scale needs --min, --max or both")
    if given.json and _asks(given):
        command.error("got --json with an action that asks; allowed: with --yes, or scale --dry-run")


def _asks(given: argparse.Namespace) -> bool:
    return (given.action == "scale" or given.force) and not (given.yes or given.dry_run)


def program(deployment: Deployment, given: argparse.Namespace, console: Console) -> int:
    """Do what is asked for, and return the exit code."""
    from scripts.clock import Clock
    from scripts.fleet import control as fleet
    from scripts.fleet import document

    clock, say = Clock(), speaker(console)
    scaled = None
    if given.action == "stop":
        _confirm_force(deployment, given, clock)
        limit = None if given.limit is None else given.limit * 60
        with report_interrupted(_CONTINUES.format("stop")):
            fleet.stop(deployment, clock=clock, say=say, drain=given.drain, force=given.force, drain_limit=limit)
    elif given.action == "start":
        with report_interrupted(_CONTINUES.format("start")):
            fleet.start(deployment, clock=clock, say=say)
    elif given.action == "scale":
        with TemporaryDirectory() as directory:
            scaled = _scale(deployment, given, console, Path(directory))
    state = document.collect(deployment, scaled)
    if given.json:
        print(state.to_json())
    else:
        document.show(state, console)
    return DONE


def _confirm_force(deployment: Deployment, given: argparse.Namespace, clock: Clock) -> None:
    """List the jobs whose nodes --force terminates, and ask."""
    from scripts.fleet.jobs import listed, slurm_state
    from scripts.remote.head_node import HeadNode, HeadNodeError

    if not given.force or given.yes:
        return
    if not sys.stdin.isatty():
        raise UnusableError("standard input is not a terminal; pass --yes with --force")
    try:
        state = slurm_state(HeadNode(deployment, clock))
    except HeadNodeError as error:
        confirm(f"{error}\nJobs that cannot be listed lose their nodes. {_REQUEUE}")
    else:
        if state.active_jobs:
            confirm(f"These jobs lose their nodes:\n{listed(state, waiting=False)}\n{_REQUEUE}")


def _scale(deployment: Deployment, given: argparse.Namespace, console: Console, directory: Path) -> Scaled:
    """Show the steps to other counts, ask, and take them."""
    from scripts.clock import Clock
    from scripts.fleet import scaling
    from scripts.fleet.document import Scaled

    if not (given.yes or given.dry_run or sys.stdin.isatty()):
        raise UnusableError("standard input is not a terminal; pass --yes or --dry-run")
    clock, say = Clock(), speaker(console)
    counts = {key: value for key, value in (("min_count", given.min), ("max_count", given.max)) if value is not None}
    change = scaling.prepare(deployment, given.target, counts, directory)
    if change.grows and not given.no_preflight:
        scaling.check(change, say)
    plan = change.candidate.plan()
    if not given.json:
        from scripts.plan.command import show

        show(plan)
    say(scaling.steps(change, plan, drain=given.drain, force=given.force))
    if blockers := scaling.blockers(plan):
        raise OperationError("\n".join(["This cannot be deployed:", *blockers]))
    if not given.dry_run:
        if not given.yes:
            _confirm_force(deployment, given, clock)
            confirm("")
        scaling.apply(change, plan, clock=clock, say=say, drain=given.drain, force=given.force, quiet=given.json)
    return Scaled(
        queue=change.queue,
        compute_resource=change.compute_resource,
        before=change.before,
        after=change.after,
        stops_fleet=scaling.has(plan, "FLEET_STOPPED"),
        ends_jobs=scaling.has(plan, "TERMINATES"),
        done=not given.dry_run,
    )


def main() -> int:
    """Run the program on the command line's arguments, and return the exit code."""
    command = arguments()
    given = command.parse_intermixed_args()
    check(command, given)
    return run(given, program)
