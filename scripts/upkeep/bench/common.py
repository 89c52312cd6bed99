"""Commands as whole processes, a description of the machine, and Markdown tables."""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from scripts.core import markdown

ROOT = Path(__file__).parents[3]


class BenchError(RuntimeError):
    """Something could not be measured; the message says why."""


@dataclass(frozen=True)
class Sample:
    """Seconds that a command took: of CPU, of all its processes, and by the clock; and what it printed."""

    cpu: float
    wall: float
    output: str = ""


def environment() -> dict[str, str]:
    """Return the environment of what is measured: without account and switches."""
    switches = ("AWS_", "CDK_", "JSII_", "NODE_", "PYTHON")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(switches)},
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DISABLE_CLI_TELEMETRY": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }


def run(arguments: Sequence[str], directory: Path = ROOT, variables: Mapping[str, str] | None = None) -> Sample:
    """Run a command to its end.

    Environment variables may be given beside those of `environment`.

    Raises:
        BenchError: It failed.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        arguments,
        cwd=directory,
        env={**environment(), **(variables or {})},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}")
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Sample(cpu, wall, done.stdout)


@dataclass(frozen=True)
class BenchRow:
    """A line of a table; `met` is None where there is no goal."""

    cells: tuple[str, ...]
    met: bool | None = None


def table(columns: Sequence[str], rows: Sequence[BenchRow]) -> str:
    """Return a Markdown table; its last column says whether a goal is met."""
    verdicts = {None: "", True: "met", False: "MISSED"}
    return markdown.table([*columns, ""], [[*row.cells, verdicts[row.met]] for row in rows])


def conditions(what: str) -> str:
    """Return the sentence above a table: what was measured, where, and how busy the machine was before."""
    load, *_ = os.getloadavg()
    return f"{what} on {_machine()}; load average {load:.1f} before the start."


def _machine() -> str:
    model = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    pinned = re.search(r"^aws-parallelcluster==(\S+)", (ROOT / "requirements-pcluster.txt").read_text(), re.MULTILINE)
    node, cli = (
        subprocess.run(
            [name, "--version"], env=environment(), capture_output=True, text=True, check=True
        ).stdout.split()[0]
        for name in ("node", "cdk")
    )
    processor = model[1] if model else platform.machine()
    return (
        f"{os.cpu_count()} cores ({processor}), {memory:.0f} GiB of memory, {platform.system()}, "
        f"Python {platform.python_version()}, Node {node.removeprefix('v')}, aws-cdk {cli}, "
        f"aws-cdk-lib {version('aws-cdk-lib')}, aws-parallelcluster {pinned[1] if pinned else 'unknown'}"
    )
