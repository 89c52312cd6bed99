"""Opens the sockets at which the server answers a machine, in the machine's network, and hands them to the server.

Run as `python listen.py SOCKET PORT`: the number of the file to send them by, and the port of the AWS endpoint.
"""

import socket
import sys
from typing import Final

OPENED: Final = b"opened"
"""What comes with the sockets."""


def main(channel: int, port: int) -> None:
    """Open them: the AWS endpoint, the instance metadata service, and names."""
    opened = []
    for kind, address in (
        (socket.SOCK_STREAM, ("127.0.0.1", port)),
        (socket.SOCK_STREAM, ("169.254.169.254", 80)),
        (socket.SOCK_DGRAM, ("169.254.169.253", 53)),
    ):
        listener = socket.socket(socket.AF_INET, kind)
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen(128)
        opened.append(listener)
    with socket.socket(fileno=channel) as server:
        socket.send_fds(server, [OPENED], [listener.fileno() for listener in opened])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
