"""Stop, start and scale the compute nodes of a cluster, or tell how they are.

stop waits until EC2 has every compute node terminated; the head node stays. scale changes min_count or max_count in the
settings file, deploys it, and stops and starts the fleet where the change needs that. Where jobs have nodes, nothing is
stopped without --drain or --force. Interrupted, the same command goes on where it was.

Exit code: 0: it is as asked for; 1: it is not, the message says why; 2: arguments, settings or credentials cannot be
used, or nobody can be asked; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from scripts.command import DONE, OperationError, Say, UnusableError, above_zero, parser, report_interrupted, run

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.clock import Clock
    from scripts.deployment import Deployment
    from scripts.fleet.report import Scaled

_EXAMPLES = """\
  python -m scripts fleet trn1-16 status                   how the fleet and its queues are
  python -m scripts fleet trn1-16 stop                     terminate all compute nodes, if no job has any
  python -m scripts fleet trn1-16 stop --drain --limit 90  let jobs end first, 90 minutes at most
  python -m scripts fleet trn1-16 start                    take jobs again
  python -m scripts fleet trn1-16 scale --max 32           up to 32 nodes in the only queue
  python -m scripts fleet two-queues scale trn1-a --min 2 --max 4 --dry-run
                                                           only show what that needs"""
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
_FATE = (
    "Batch jobs are put back into the queue and begin again once the fleet is started, unless they were submitted with "
    "--no-requeue; those and interactive ones end."
)
"""Of jobs whose nodes go: JobRequeue is 1 by default, and ParallelCluster's slurm.conf leaves it so.

https://slurm.schedmd.com/slurm.conf.html#OPT_JobRequeue,
https://github.com/aws/aws-parallelcluster-cookbook/blob/develop/cookbooks/aws-parallelcluster-slurm/templates/default/slurm/slurm.conf.erb
"""
_GOES_ON = "A {} that was requested goes on in AWS. The same command goes on waiting for it, or does what is left."


def arguments() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    found = parser("fleet", __doc__, _EXAMPLES)
    found.add_argument("action", choices=("status", "stop", "start", "scale"), help="what to do")
    found.add_argument(
        "target", nargs="?", metavar="QUEUE[/COMPUTE-RESOURCE]", help="scale: which nodes; not needed where it is clear"
    )
    found.add_argument("--min", type=int, metavar="N", help="scale: nodes that always run (min_count)")
    found.add_argument("--max", type=int, metavar="N", help="scale: nodes at most (max_count)")
    jobs = found.add_mutually_exclusive_group()
    jobs.add_argument("--drain", action="store_true", help="take no new jobs, and let all others come to their end")
    jobs.add_argument(
        "--force", action="store_true", help="take nodes from jobs that have some; go on where Slurm cannot be asked"
    )
    found.add_argument(
        "--limit", type=above_zero, metavar="MINUTES", help="stop --drain: wait for jobs so long at most"
    )
    found.add_argument("--dry-run", action="store_true", help="scale: show what would be done, and do nothing")
    found.add_argument("--no-preflight", action="store_true", help="scale: do not look at quotas and capacity first")
    found.add_argument("--yes", action="store_true", help="do not ask: for pipelines")
    return found


def check(found: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """End with exit code 2 if arguments do not go together."""
    for name, actions in _ONLY.items():
        if getattr(given, name) not in (None, False) and given.action not in actions:
            shown = getattr(given, name) if name == "target" else f"--{name.replace('_', '-')}"
            found.error(f"got {shown} with {given.action}; allowed: with {' or '.join(actions)}")
    if given.limit is not None and not given.drain:
        found.error("got --limit without --drain")
    if given.action == "scale" and given.min is None and given.max is None:
        found.error("scale needs --min, --max or both")
    if given.json and _asks(given):
        found.error("got --json with what asks a question; allowed: with --yes, or scale --dry-run")


def _asks(given: argparse.Namespace) -> bool:
    return (given.action == "scale" or given.force) and not (given.yes or given.dry_run)


def program(deployment: Deployment, given: argparse.Namespace, console: Console) -> int:
    """Do what is asked for, and return the exit code."""
    from scripts.clock import Clock
    from scripts.fleet import control as fleet

    clock, say = Clock(), _say(given, console)
    scaled = None
    if given.action == "stop":
        _agree_to_force(deployment, given, clock)
        limit = None if given.limit is None else given.limit * 60
        with report_interrupted(_GOES_ON.format("stop")):
            fleet.stop(deployment, clock=clock, say=say, drain=given.drain, force=given.force, drain_limit=limit)
    elif given.action == "start":
        with report_interrupted(_GOES_ON.format("start")):
            fleet.start(deployment, clock=clock, say=say)
    elif given.action == "scale":
        with TemporaryDirectory() as directory:
            scaled = _scale(deployment, given, console, Path(directory))
    _report(deployment, given, console, scaled)
    return DONE


def _say(given: argparse.Namespace, console: Console) -> Say:
    if given.json:
        return lambda text: print(text, file=sys.stderr)
    return lambda text: console.print(text, markup=False)


def _report(deployment: Deployment, given: argparse.Namespace, console: Console, scaled: Scaled | None) -> None:
    from scripts.fleet.report import look, show

    found = look(deployment)
    if given.json:
        print(json.dumps(found.document(scaled), indent=2))
    else:
        show(found, console)


def _agree_to_force(deployment: Deployment, given: argparse.Namespace, clock: Clock) -> None:
    """List the jobs that --force takes nodes from, and ask."""
    from scripts.fleet.jobs import listed, slurm_state
    from scripts.remote.head_node import HeadNode, HeadNodeError

    if not given.force or given.yes:
        return
    if not sys.stdin.isatty():
        raise UnusableError("got --force, and no terminal to ask at; allowed: with --yes")
    try:
        state = slurm_state(HeadNode(deployment, clock))
    except HeadNodeError as error:
        question = f"{error}\nJobs that nobody can list lose their nodes. {_FATE}\nGo on? [y/N] "
    else:
        if not state.active_jobs:
            return
        question = f"These jobs lose their nodes:\n{listed(state, waiting=False)}\n{_FATE}\nGo on? [y/N] "
    _ask(question)


def _ask(question: str) -> None:
    try:
        answer = input(question)
    except EOFError:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise OperationError("Nothing was changed.")


def _scale(deployment: Deployment, given: argparse.Namespace, console: Console, directory: Path) -> Scaled:
    """Show what other counts need, ask, and bring them about."""
    from scripts.clock import Clock
    from scripts.fleet import scaling, scaling_needs
    from scripts.fleet.report import Scaled, steps

    if not (given.yes or given.dry_run or sys.stdin.isatty()):
        raise UnusableError("got no terminal to ask at; allowed: --yes, --dry-run")
    clock, say = Clock(), _say(given, console)
    counts = {key: value for key, value in (("min_count", given.min), ("max_count", given.max)) if value is not None}
    change = scaling.prepare(deployment, given.target, counts, directory)
    if change.grows and not given.no_preflight:
        scaling_needs.check(change, say)
    plan = scaling.plan(change)
    if not given.json:
        from scripts.plan.command import show

        show(plan)
    found = Scaled(change, plan, done=not given.dry_run)
    say(steps(found, drain=given.drain, force=given.force))
    if obstacles := scaling_needs.obstacles(plan):
        raise OperationError("\n".join(["This cannot be deployed:", *obstacles]))
    if not given.dry_run:
        if not given.yes:
            _agree_to_force(deployment, given, clock)
            _ask("Go on? [y/N] ")
        scaling.apply(change, plan, clock=clock, say=say, drain=given.drain, force=given.force, output=not given.json)
    return found


def main() -> int:
    """Run the program on the command line's arguments, and return the exit code."""
    found = arguments()
    given = found.parse_intermixed_args()
    check(found, given)
    return run(given, program)
