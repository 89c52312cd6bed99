"""All that a machine under test reaches: package repositories over TLS, and EC2's instance metadata service.

Runs in the machine's own network, as `python internet.py SITES CERTIFICATE METADATA`: SITES has a directory by host
name, METADATA is a JSON object of values by path. With SITES "-" there is the metadata service alone. Prints a line
when it serves.
"""

import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any, ClassVar


class Server(ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


class Sites(SimpleHTTPRequestHandler):
    root = Path()

    def translate_path(self, path: str) -> str:
        self.directory = str(self.root / self.headers["Host"])
        return super().translate_path(path)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Metadata(BaseHTTPRequestHandler):
    """IMDSv2: values are told only to who shows a token, which takes a PUT."""

    values: ClassVar[dict[str, str]] = {}

    def do_PUT(self) -> None:
        known = self.path == "/latest/api/token" and self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        self.answer(200 if known else 404, "a-token")

    def do_GET(self) -> None:
        if self.headers["X-aws-ec2-metadata-token"] != "a-token":
            return self.answer(401, "")
        value = self.values.get(self.path.removeprefix("/latest/meta-data/"))
        return self.answer(404, "") if value is None else self.answer(200, value)

    def answer(self, status: int, body: str) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


def main(sites: str, certificate: str, metadata: str) -> None:
    Metadata.values = json.loads(metadata)
    servers = [Server(("169.254.169.254", 80), Metadata)]
    if sites != "-":
        Sites.root = Path(sites)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        site_server = Server(("127.0.0.1", 443), Sites)
        site_server.socket = context.wrap_socket(site_server.socket, server_side=True, do_handshake_on_connect=False)
        servers.append(site_server)
    for server in servers[1:]:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    servers[0].serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
