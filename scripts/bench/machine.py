"""What measurements depend on: the environment of what is measured, and the machine."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    """Return the environment of what is measured: a person's, without account and without switches."""
    switches = ("AWS_", "CDK_", "JSII_", "NODE_", "PYTEST_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(switches)}
    return {
        **kept,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DISABLE_CLI_TELEMETRY": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }


def machine() -> str:
    """Return what the figures depend on."""
    try:
        [model, *_] = re.findall(
            r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE
        )
    except (OSError, ValueError):
        model = platform.processor() or platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    pinned = re.search(r"^aws-parallelcluster==(\S+)", (ROOT / "requirements-pcluster.txt").read_text(), re.MULTILINE)
    node, cli = (
        subprocess.run(
            [name, "--version"], env=environment(), capture_output=True, text=True, check=True
        ).stdout.split()[0]
        for name in ("node", "cdk")
    )
    return (
        f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB of memory, {platform.system()}, "
        f"Python {platform.python_version()}, Node {node.removeprefix('v')}, aws-cdk {cli}, "
        f"aws-cdk-lib {version('aws-cdk-lib')}, aws-parallelcluster {pinned[1] if pinned else 'unknown'}"
    )
