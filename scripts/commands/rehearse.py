"""Rehearse a deployment on this machine, without an AWS account: create it, change it, destroy it.

The real CDK command line deploys the unchanged templates into an emulated AWS; the cluster is made by the real
ParallelCluster. Exit code 0: every step succeeded; 1: a step failed.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from emulator.faults import FAULTS
from scripts import environments
from ultracluster.domain.validators import VALIDATORS

CONFIG = Path(__file__).parents[2] / "config"
LOG = Path("build/rehearsal.log")
PLAIN_WIDTH = 120


def _fault_help() -> Iterator[str]:
    for name, fault in FAULTS.items():
        yield f"  {name}{':...' if fault.target else '':4} {fault.what}"
        if fault.target:
            yield f"      ... is {fault.target}"


def _fault(text: str) -> tuple[str, str]:
    name, _, target = text.partition(":")
    if name not in FAULTS:
        raise argparse.ArgumentTypeError(f"got {name!r}; there is {', '.join(FAULTS)}")
    if (FAULTS[name].target is None) != (target == ""):
        raise argparse.ArgumentTypeError(f"{name} takes {FAULTS[name].target or 'nothing'} after a colon")
    if name == "warning" and target not in VALIDATORS:
        raise argparse.ArgumentTypeError(f"got {target!r}; allowed: {', '.join(VALIDATORS)}")
    return name, target


def main() -> int:
    """Rehearse what the command line names, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts rehearse",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="faults:\n" + "\n".join(_fault_help()),
    )
    environments.add_argument(parser, CONFIG)
    parser.add_argument("--speed", choices=("fast", "real"), default="fast", help="real: as slow as AWS")
    parser.add_argument("--fault", type=_fault, metavar="NAME", help="inject a fault, then clear it; see below")
    parser.add_argument("--keep", action="store_true", help="do not destroy: leave the emulated AWS running")
    parser.add_argument("--step", action="store_true", help="wait for Enter before each step")
    arguments = parser.parse_args()
    if arguments.step and not sys.stdin.isatty():
        parser.error("--step waits for Enter, and there is no terminal")
    from rich.console import Console

    from scripts.rehearse.rehearsal import RehearsalError, rehearse

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    LOG.parent.mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: clean up
    started = time.monotonic()
    try:
        with LOG.open("w", encoding="utf-8") as log:
            rehearse(
                arguments.environment,
                console,
                log,
                speed=arguments.speed,
                fault=arguments.fault,
                keep=arguments.keep,
                step=arguments.step,
            )
    except KeyboardInterrupt:
        return 130
    except RehearsalError as error:
        console.print(f"\n[bold red]FAILED[/bold red]: {error}. All that the CDK said is in {LOG}")
        return 1
    console.print(f"\nAll in {time.monotonic() - started:.0f} s.")
    return 0
