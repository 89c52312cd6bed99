"""Measure synth, unit tests, the largest cluster, its controller, `status` and the feed against docs/performance.md.

Commands are measured as whole processes with all their children, in turns, so that a busy machine slows all alike.
Exit code 0: every goal is met; 1: one is missed; 2: something could not be measured.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from scripts.bench import controller, feed, status
from scripts.bench.machine import ROOT, environment, machine
from scripts.bench.tables import BenchError, Row, table, verdict

PAGE = ROOT / "docs/performance.md"

MAX_TIMES = 1.5
MAX_UNIT_TEST_SECONDS = 1.0
MAX_TEMPLATE_BYTES = 1_048_576
"""Size of a template in S3 (CloudFormation user guide, "Understand CloudFormation quotas")."""
MAX_TEMPLATE_RESOURCES = 500
QUEUES = 50

EMPTY, MODEL, LARGE, WIDE, UNIT = "an empty app", "trn1-16", "ultracluster", f"{QUEUES} queues", "unit tests"
YARDSTICKS = {MODEL: EMPTY, LARGE: MODEL, WIDE: MODEL}
"""What the CPU time of a command is held against."""

EMPTY_APP = """\
import aws_cdk as cdk

app = cdk.App()
cdk.Stack(app, "empty", env=cdk.Environment(region="us-west-2"))
app.synth()
"""


@dataclass(frozen=True)
class Command:
    """A command line, and the directory where it runs."""

    arguments: Sequence[str]
    directory: Path = ROOT


@dataclass(frozen=True)
class Sample:
    """Seconds that a command took: of CPU, of all its processes, and by the clock."""

    cpu: float
    wall: float


def run(command: Command) -> Sample:
    """Run a command to its end.

    Raises:
        BenchError: It failed.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command.arguments, cwd=command.directory, env=environment(), capture_output=True, text=True, check=False
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command.arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return Sample(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall)


def measure(commands: Mapping[str, Command], rounds: int) -> dict[str, list[Sample]]:
    """Run every command once per round, after a round that does not count: it fills the caches."""
    samples: dict[str, list[Sample]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        print(f"round {number} of {rounds}", file=sys.stderr, flush=True)
        for name, command in commands.items():
            samples[name].append(run(command))
    return {name: counted for name, (_, *counted) in samples.items()}


def write_wide_settings(directory: Path) -> Path:
    """Write trn1-16 with 50 queues, each in a placement group of its own, under the longest names that rules allow."""
    settings = yaml.safe_load((ROOT / "config/trn1-16.yaml").read_text(encoding="utf-8"))
    [queue] = settings["cluster"]["queues"]
    settings["name"] = "fifty-queue"
    settings["cluster"]["queues"] = [
        {**queue, "name": f"queue-with-a-long-name-{number:02}", "placement_group": f"group-{number:02}"}
        for number in range(QUEUES)
    ]
    path = directory / "fifty-queue.yaml"
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return path


def write_empty_app(directory: Path) -> Path:
    """Write an app of one stack without resources, which the CDK command line runs as it runs ours."""
    home = directory / "empty"
    home.mkdir()
    (home / "app.py").write_text(EMPTY_APP, encoding="utf-8")
    ours = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))
    cdk_json = {"app": f"{sys.executable} app.py", "context": ours["context"]}
    (home / "cdk.json").write_text(json.dumps(cdk_json), encoding="utf-8")
    return home


def commands(directory: Path, wide_settings: Path) -> dict[str, Command]:
    """Return what is measured, by name."""

    def synth(number: int, *arguments: str) -> tuple[str, ...]:
        return ("cdk", "--no-notices", "synth", "--quiet", "--output", str(directory / f"cdk.out.{number}"), *arguments)

    return {
        EMPTY: Command(synth(0), write_empty_app(directory)),
        MODEL: Command(synth(1, "-c", "env=trn1-16")),
        LARGE: Command(synth(2, "-c", "env=ultracluster")),
        WIDE: Command(synth(3, "-c", f"env={wide_settings.with_suffix('')}")),
        UNIT: Command(("pytest", "tests/config")),
    }


def cluster_templates(wide_settings: Path, directory: Path) -> dict[str, dict[str, Any]]:
    """Return the templates that ParallelCluster would create for the settings, by name.

    Raises:
        BenchError: The settings have faults, or ParallelCluster refuses the cluster.
    """
    from config.settings import SettingsError, load
    from emulator.aws import EmulatedAws
    from scripts.validation import examine, prepare
    from toolchain.parallelcluster import ParallelCluster, RunnerError
    from toolchain.synthesis import SynthesisError, synthesize
    from ultracluster.domain.validator_warnings import accepted

    try:
        settings = load(wide_settings)
        assembly = synthesize(str(wide_settings.with_suffix("")), directory / "cdk.out.templates")
        with EmulatedAws() as aws, ParallelCluster(aws.environment) as parallelcluster:
            request = prepare(aws, settings, assembly)
            if faults := examine(parallelcluster, request, accepted(settings.cluster_spec)).faults:
                raise BenchError("\n".join(faults))
            built = parallelcluster.build_templates(request.configuration, request.name)
    except (FileNotFoundError, RunnerError, SettingsError, SynthesisError) as error:
        raise BenchError(str(error)) from error
    return {"root": built.root, **{f"nested {number}": each for number, each in enumerate(built.nested.values(), 1)}}


def time_rows(samples: Mapping[str, Sequence[Sample]]) -> list[Row]:
    """Return medians; a ratio is the median of the ratios within each round."""
    rows = []
    for name, taken in samples.items():
        what = "`pytest tests/config`" if name == UNIT else f"`cdk synth` of {name}"
        cpu, wall = (median(values) for values in ([each.cpu for each in taken], [each.wall for each in taken]))
        figure, goal, met = "", "", None
        if yardstick := YARDSTICKS.get(name):
            times = median(each.cpu / other.cpu for each, other in zip(taken, samples[yardstick], strict=True))
            figure, goal, met = f"{times:.2f} x {yardstick}", f"at most {MAX_TIMES} x", times <= MAX_TIMES
        elif name == UNIT:
            goal, met = f"under {MAX_UNIT_TEST_SECONDS:g} s of CPU", cpu < MAX_UNIT_TEST_SECONDS
        rows.append(Row((what, f"{cpu:.2f}", f"{wall:.2f}", figure, goal, verdict(met)), met))
    return rows


def template_rows(templates: Mapping[str, dict[str, Any]]) -> list[Row]:
    """Return size and number of resources of each template."""
    rows = []
    for name, template in templates.items():
        size = len(json.dumps(template, separators=(",", ":")).encode())
        resources = len(template["Resources"])
        met = size < MAX_TEMPLATE_BYTES and resources < MAX_TEMPLATE_RESOURCES
        rows.append(Row((name, f"{size:,}", str(resources), verdict(met)), met))
    return rows


def report_synth(rounds: int) -> tuple[str, list[Row]]:
    """Measure everything but the controller, and return what there is to say and the rows of its tables.

    Raises:
        BenchError: Something could not be measured.
    """
    load, *_ = os.getloadavg()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        wide_settings = write_wide_settings(directory)
        templates = template_rows(cluster_templates(wide_settings, directory))
        times = time_rows(measure(commands(directory, wide_settings), rounds))
    parts = [
        f"Medians of {rounds} rounds on {machine()}; load average {load:.1f} before the start.",
        table(("Command", "CPU s", "wall s", "ratio of CPU", "goal", ""), times),
        f"ParallelCluster's templates of {QUEUES} queues; goal: each under {MAX_TEMPLATE_BYTES:,} bytes "
        f"(without white space) and under {MAX_TEMPLATE_RESOURCES} resources.",
        table(("Template", "bytes", "resources", ""), templates),
    ]
    return "\n\n".join(parts), [*times, *templates]


def write(part: str, report: str) -> None:
    """Put a report into its place on the page."""
    place = re.compile(rf"(?<=<!-- make bench: {part} -->\n).*?(?=<!-- end -->)", re.DOTALL)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(place.sub(lambda _: f"\n{report}\n\n", page), encoding="utf-8")


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each command is measured (default: 5)")
    parser.add_argument(
        "--only", choices=("synth", "controller", "status", "feed"), help="measure one part (default: all)"
    )
    parser.add_argument("--write", action="store_true", help="also put the tables into docs/performance.md")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    parts: dict[str, Callable[[], tuple[str, list[Row]]]] = {
        "synth": lambda: report_synth(options.rounds),
        "controller": controller.report,
        "status": lambda: status.report(options.rounds),
        "feed": lambda: feed.report(options.rounds),
    }
    codes = [0]
    for part in [options.only] if options.only else parts:
        try:
            report, rows = parts[part]()
        except BenchError as error:
            print(error, file=sys.stderr)
            codes.append(2)
            continue
        print(report, end="\n\n")
        codes.append(1 if any(row.met is False for row in rows) else 0)
        if options.write:
            write(part, report)
    return max(codes)
