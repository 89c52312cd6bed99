"""The instance metadata service, as one instance sees it."""

from __future__ import annotations

import base64
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from moto.ec2.models import ec2_backends

from emulator.aws import ACCOUNT


def serve(listener: socket.socket, region: str, instance_id: str) -> ThreadingHTTPServer:
    """Serve at a socket that listens, in a thread."""
    instance = ec2_backends[ACCOUNT][region].get_instance(instance_id)

    def values() -> dict[str, str | bytes]:
        return {
            "/latest/meta-data/instance-id": instance.id,
            "/latest/meta-data/instance-type": instance.instance_type,
            "/latest/meta-data/local-ipv4": instance.private_ip,
            "/latest/meta-data/hostname": instance.private_dns,
            "/latest/meta-data/local-hostname": instance.private_dns,
            "/latest/meta-data/mac": instance.nics[0].mac_address,
            "/latest/meta-data/placement/region": region,
            "/latest/meta-data/placement/availability-zone": instance.placement.zone,
            "/latest/user-data": base64.b64decode(instance.user_data[0]) if instance.user_data else b"",
            "/latest/dynamic/instance-identity/document": json.dumps(
                {"instanceId": instance.id, "region": region, "instanceType": instance.instance_type, "accountId": ACCOUNT}
            ),
        }

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.answer(200, b"token")

        def do_GET(self) -> None:
            value = values().get(self.path)
            if value is None:
                self.answer(404, b"")
            else:
                self.answer(200, value.encode() if isinstance(value, str) else value)

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("169.254.169.254", 80), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener.dup()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
