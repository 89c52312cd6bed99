"""Run torchrun, and end with the exit code of the worker that failed first, which torchrun itself turns into 1."""

from __future__ import annotations

import sys

from torch.distributed import run
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

_SIGNALLED = 128  # and the number of the signal, as shells count


def main() -> int:
    """Launch what torchrun's arguments name, and return the exit code."""
    try:
        run.run(run.parse_args(sys.argv[1:]))
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        code: int = error.get_first_failure()[1].exitcode
        return _SIGNALLED - code if code < 0 else code
    except SignalException as signal:  # another node failed: thousands of tracebacks would hide the reason
        return _SIGNALLED + int(signal.sigval)
    return 0


if __name__ == "__main__":
    sys.exit(main())
