"""Names, as machines look them up."""

from __future__ import annotations

import socket
import socketserver
import threading


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        data, server = self.request
        end = 12
        while data[end]:
            end += data[end] + 1
        server.sendto(data[:2] + b"\x81\x83" + data[4:6] + bytes(6) + data[12 : end + 5], self.client_address)


def serve(listener: socket.socket, region: str) -> socketserver.UDPServer:
    """Serve at a socket, in a thread."""
    server = socketserver.ThreadingUDPServer(("169.254.169.253", 53), _Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener.dup()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
