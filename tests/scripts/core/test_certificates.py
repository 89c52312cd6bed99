"""The set-up behind a proxy whose certificate only the system knows: an index that a private authority vouches for."""

from __future__ import annotations

import http.server
import io
import json
import os
import ssl
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import ClassVar

import pytest

from scripts.core import environments

pytestmark = pytest.mark.slow

WHEEL = "tiny-1.0-py3-none-any.whl"


def wheel() -> bytes:
    """Return a package that has nothing."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\nRoot-Is-Purelib: true\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    return content.getvalue()


class Index(http.server.BaseHTTPRequestHandler):
    """An index of pip and uv, and a registry of npm, with one package."""

    CONTENT: ClassVar[Mapping[str, tuple[str, bytes]]] = {
        "/simple/tiny/": ("text/html", f"<a href='/{WHEEL}'>{WHEEL}</a>".encode()),
        f"/{WHEEL}": ("application/zip", wheel()),
        "/tiny": (
            "application/json",
            json.dumps({"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {}}}).encode(),
        ),
    }

    def do_GET(self) -> None:
        """Answer."""
        kind, content = self.CONTENT.get(self.path, ("text/plain", b""))
        self.send_response(200 if content else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """Return the certificate of an authority that signed one for localhost, in key.pem and server.pem beside it."""
    (tmp_path / "names").write_text("subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")  # RSA's keys take a second
    for words in (
        ("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=private authority"),
        ("req", *new, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=localhost"),
        (
            *("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-out", "server.pem", "-days", "2", "-extfile", "names"),
        ),
    ):
        subprocess.run(["openssl", *words], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "ca.pem"


@pytest.fixture
def index(authority: Path) -> Iterator[str]:
    """Run the index, and return its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.with_name("server.pem"), authority.with_name("key.pem"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://localhost:{server.server_port}"
        server.shutdown()


def commands(index: str, directory: Path) -> list[tuple[str | Path, ...]]:
    """Return how pip, uv and npm ask for the package."""
    python = environments.ROOT / ".uv" / "bin" / "python"
    simple = f"{index}/simple"
    return [
        (
            python,
            "-m",
            "pip",
            "download",
            "--no-cache-dir",
            "--retries=0",
            "--index-url",
            simple,
            "--dest",
            directory,
            "tiny",
        ),
        (
            *(environments.UV, "pip", "install", "--no-cache", "--default-index", simple, "--target", directory / "uv"),
            *("--python", python, "tiny"),
        ),
        ("npm", "view", "tiny", "name", "--registry", index, "--fetch-retries=0", "--cache", directory / "npm"),
    ]


def use_nothing_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    started = ("PIP_", "UV_", "NODE_", "SSL_", "REQUESTS_", "CURL_", "npm_")
    for name in [name for name in os.environ if name.startswith(started) or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


def test_pip_uv_and_npm_trust_whom_the_system_trusts(
    index: str, authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSL_CERT_FILE is to OpenSSL, uv and Node what the system has."""
    use_nothing_of_the_user(monkeypatch)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    for command in commands(index, tmp_path):
        environments.run(*command)


def test_an_authority_that_nobody_knows_has_a_hint_of_its_own(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_nothing_of_the_user(monkeypatch)
    for command in commands(index, tmp_path):
        with pytest.raises(
            environments.SetUpError, match=r"hint: no authority that this machine trusts signed .*AWS_CA_BUNDLE"
        ):
            environments.run(*command)


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ({}, {"PIP_CERT", "UV_SYSTEM_CERTS", "NODE_USE_SYSTEM_CA"}),
        ({"REQUESTS_CA_BUNDLE": "x", "UV_NATIVE_TLS": "0", "NODE_EXTRA_CA_CERTS": "y"}, set()),
        ({"PIP_CERT": "x"}, {"UV_SYSTEM_CERTS", "NODE_USE_SYSTEM_CA"}),
    ],
)
def test_a_choice_of_the_user_stays(given: dict[str, str], added: set[str], authority: Path) -> None:
    made = environments.certificates({**given, "PIP_CONFIG_FILE": os.devnull, "SSL_CERT_FILE": str(authority)})
    assert made.keys() == added
    assert made.get("PIP_CERT", str(authority)) == str(authority)


def test_a_configuration_of_pip_stays(authority: Path, tmp_path: Path) -> None:
    (tmp_path / ".config/pip").mkdir(parents=True)
    (tmp_path / ".config/pip/pip.conf").write_text("[global]\ncert = /mine.pem\n")
    assert "PIP_CERT" not in environments.certificates({"HOME": str(tmp_path), "SSL_CERT_FILE": str(authority)})


def test_without_a_bundle_of_the_system_each_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "_BUNDLES", ())
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: SimpleNamespace(cafile=None))
    assert environments.certificates({}) == {}
