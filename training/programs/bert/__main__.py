"""``python -m bert train|check``: see ``options.py``; ``python -m bert export``: see ``export.py``.

Exit codes: 0 finished, 2 bad input, 3 a loss that is not finite, 75 stopped on request with a checkpoint, others a
failure. To start again as it is would not help after 2 and 3.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from ultracluster_job import BadInputError, DivergedError, Heartbeat, TrainingError, this_worker

from .options import parse

BAD_INPUT, DIVERGED, FAILED = 2, 3, 1


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for, and return the exit code."""
    try:
        if arguments[:1] == ["export"]:
            from .export import export

            return export(arguments[1:])
        options = parse(arguments)
        if options.command == "check":
            from .check import check

            print("\n".join(check(options)))
            return 0
        heartbeat = Heartbeat(options.stall_seconds, this_worker().local_rank)  # what is imported next may hang
        from .train import train

        return train(options, heartbeat)
    except TrainingError as error:
        _tell([str(error)])
        return DIVERGED if isinstance(error, DivergedError) else FAILED
    except BadInputError as error:
        _tell(error.problems)
        return BAD_INPUT


def _tell(lines: Sequence[str]) -> None:
    """Tell once what all ranks found."""
    if this_worker().rank == 0:
        print("\n".join(lines), file=sys.stderr, flush=True)


def leave(code: int) -> NoReturn:
    """End the process at once, with its output written.

    Python's own end may abort while threads of gloo are at work, which would turn a finished job into a failed one.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except Exception:  # the process must end at once: the other ranks wait for it
        traceback.print_exc()
        code = FAILED
    leave(code)
