"""Run torchrun, and end with the exit code of the worker that failed first, which torchrun itself turns into 1.

A watchdog looks at the heartbeats of the workers meanwhile: a run that stands still ends with ``watchdog.STALLED``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from torch.distributed import run
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

from . import heartbeat
from .watchdog import Watchdog

_SIGNALLED = 128  # and the number of the signal, as shells count
_MEMORY = Path("/dev/shm")  # noqa: S108 - a directory of its own is made in it


def main() -> int:
    """Launch what torchrun's arguments name, and return the exit code."""
    arguments = run.parse_args(sys.argv[1:])
    # The program's folder is where its workers start, and no place for this process to find modules in.
    os.chdir(os.environ.get("ULTRACLUSTER_PROGRAM", "."))
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with TemporaryDirectory(prefix="ultracluster-job-", dir=memory) as directory:
        os.environ[heartbeat.DIRECTORY] = directory
        watchdog = Watchdog(
            Path(directory),
            workers=int(arguments.nproc_per_node),
            node=arguments.node_rank,
            nodes=int(arguments.nnodes.partition(":")[0]),
            address=(arguments.master_addr, arguments.master_port),
        )
        watchdog.start()
        try:
            run.run(arguments)
            watchdog.end_if_stalled()
        except ChildFailedError as error:
            watchdog.end_if_stalled()
            print(error, file=sys.stderr)
            code: int = error.get_first_failure()[1].exitcode
            return _SIGNALLED - code if code < 0 else code
        except SignalException as signal:  # another node failed: thousands of tracebacks would hide the reason
            return _SIGNALLED + int(signal.sigval)
    return 0


if __name__ == "__main__":
    sys.exit(main())
