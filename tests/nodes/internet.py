"""All that a machine under test reaches: package repositories over TLS, and EC2's instance metadata service.

Runs in the machine's own network, as `python internet.py SITES CERTIFICATE METADATA FAULT`: SITES has a directory by
host name, METADATA is a JSON object of values by path. With SITES "-" there is the metadata service alone. While there
is a file FAULT, it says what happens to requests for paths that start so: "KIND PREFIX", where stall answers nothing,
500 is that status, and cut sends half of the body. Prints a line when it serves.
"""

import json
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any, ClassVar


class Server(ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that give up close their connections."""


class Sites(SimpleHTTPRequestHandler):
    root = Path()
    fault = Path()

    def do_GET(self) -> None:
        while self.suffers() == "stall":
            time.sleep(0.05)
        if self.suffers() == "500":
            self.send_error(500)
        else:
            super().do_GET()

    def copyfile(self, source: Any, outputfile: Any) -> None:
        content = source.read()
        outputfile.write(content[: len(content) // 2] if self.suffers() == "cut" else content)

    def suffers(self) -> str:
        kind, _, prefix = (self.fault.read_text(encoding="utf-8") if self.fault.exists() else "").partition(" ")
        return kind if self.path.startswith(prefix) else ""

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


def main(sites: str, certificate: str, metadata: str, fault: str) -> None:
    Metadata.values = json.loads(metadata)
    servers = [Server(("169.254.169.254", 80), Metadata)]
    if sites != "-":
        Sites.root, Sites.fault = Path(sites), Path(fault)
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
