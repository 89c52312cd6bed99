"""The process of the emulated AWS: moto with its gaps filled, on a free loopback port. `rehearsal.aws` starts it."""

from __future__ import annotations

import logging
import sys

from moto.server import ThreadedMotoServer

from rehearsal import gaps


def main() -> None:
    """Serve until standard input ends; the first line of standard output is the port."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    gaps.fill()
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    print(server.get_host_and_port()[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
