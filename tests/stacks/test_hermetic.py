"""The same settings give the same bytes on any machine: app.py runs as a process, on the same files elsewhere."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from toolchain.jsii_start import UNPACKED

ROOT = Path(__file__).parents[2]
CONTEXT = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
NODE_WITHOUT_NETWORK = """\
require('net').Socket.prototype.connect = () => { throw new Error('no network') }
require('dns').lookup = () => { throw new Error('no network') }
"""
PYTHON_WITHOUT_NETWORK = """\
import runpy, sys
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        raise OSError("no network")
sys.addaudithook(refuse)
sys.path.insert(0, "")
runpy.run_path("app.py", run_name="__main__")
"""

pytestmark = pytest.mark.slow


def synthesize(root: Path, outdir: Path, environment: Mapping[str, str], *python: str) -> dict[str, bytes]:
    """Run app.py of a directory with nothing but the given environment; return what it wrote."""
    done = subprocess.run(
        [sys.executable, *(python or ("app.py",))],
        cwd=root,
        env={
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
            "PYTHONPATH": str(root / "constructs"),
            "CDK_CONTEXT_JSON": json.dumps({**CONTEXT, "env": "trn1-16"}),
            "CDK_OUTDIR": str(outdir),
            "CDK_VALIDATION": "false",
            **UNPACKED,
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {str(path.relative_to(outdir)): path.read_bytes() for path in sorted(outdir.rglob("*")) if path.is_file()}


def test_on_another_machine_with_other_credentials_and_no_network_it_is_the_same(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(ROOT / "app.py", copy)
    for folder in ("config", "constructs", "nodes", "stacks", "training"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    (tmp_path / "home").mkdir()
    no_network = tmp_path / "no_network.cjs"
    no_network.write_text(NODE_WITHOUT_NETWORK, encoding="utf-8")
    elsewhere = {
        "HOME": str(tmp_path / "home"),
        "HOSTNAME": "elsewhere",
        "USER": "somebody",
        "LC_ALL": "C",
        "TZ": "Pacific/Kiritimati",
        "PYTHONHASHSEED": "2",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_PROFILE": "another",
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "CDK_DEFAULT_ACCOUNT": "210987654321",
        "CDK_DEFAULT_REGION": "eu-west-1",
        "NODE_OPTIONS": f"--require {no_network}",
    }

    here = synthesize(ROOT, tmp_path / "here", {"HOME": str(Path.home()), "PYTHONHASHSEED": "1"})
    there = synthesize(copy, tmp_path / "there", elsewhere, "-c", PYTHON_WITHOUT_NETWORK)

    assert there.keys() == here.keys()
    assert [name for name in here if there[name] != here[name]] == []
