"""CPU time of `cdk synth`, and the templates of the largest cluster."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from config.yaml_source import YamlSource
from scripts.upkeep.bench.common import ROOT, BenchError, BenchRow, Sample, conditions, run, table

MAX_TEMPLATE_BYTES = 1_048_576
"""Size of a template in S3 (CloudFormation user guide, "Understand CloudFormation quotas")."""
MAX_TEMPLATE_RESOURCES = 500
QUEUES = 50

EMPTY, MODEL, LARGE, WIDE = "an empty app", "trn1-16", "ultracluster", f"{QUEUES} queues"
YARDSTICKS = {MODEL: (EMPTY, 1.5), LARGE: (MODEL, 1.05), WIDE: (MODEL, 1.05)}
"""What the CPU time of a command is compared with, and how many times that it may be."""

EMPTY_APP = """\
import aws_cdk as cdk

app = cdk.App()
cdk.Stack(app, "empty", env=cdk.Environment(region="us-west-2"))
app.synth()
"""


def report(rounds: int) -> tuple[str, list[BenchRow]]:
    """Measure, and return text and the rows of its tables.

    Raises:
        BenchError: Something could not be measured.
    """
    heading = conditions(f"Medians of {rounds} rounds")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        wide_settings = write_wide_settings(directory)
        templates = template_rows(cluster_templates(wide_settings, directory))
        times = time_rows(measure(directory, wide_settings, rounds))
    parts = [
        heading,
        table(("Command", "CPU s", "wall s", "ratio of CPU", "goal"), times),
        f"ParallelCluster's templates of {QUEUES} queues; goal: each under {MAX_TEMPLATE_BYTES:,} bytes "
        f"(without white space) and under {MAX_TEMPLATE_RESOURCES} resources.",
        table(("Template", "bytes", "resources"), templates),
    ]
    return "\n\n".join(parts), [*times, *templates]


def measure(directory: Path, wide_settings: Path, rounds: int) -> dict[str, list[Sample]]:
    """Synthesize every app once per round, after a round that does not count: it fills the caches."""
    apps = {
        EMPTY: (write_empty_app(directory), []),
        MODEL: (ROOT, ["-c", "env=trn1-16"]),
        LARGE: (ROOT, ["-c", "env=ultracluster"]),
        WIDE: (ROOT, ["-c", f"env={wide_settings.with_suffix('')}"]),
    }
    samples: dict[str, list[Sample]] = {name: [] for name in apps}
    for number in range(rounds + 1):
        print(f"round {number} of {rounds}", file=sys.stderr, flush=True)
        for name, (home, arguments) in apps.items():
            output = str(directory / f"cdk.out of {name}")
            synth = ["cdk", "--no-notices", "synth", "--quiet", "--output", output, *arguments]
            samples[name].append(run(synth, home))
    return {name: counted for name, (_, *counted) in samples.items()}


def write_wide_settings(directory: Path) -> Path:
    """Write trn1-16 with 50 queues, each in a placement group of its own, under the longest names that rules allow."""
    settings = YamlSource.read(ROOT / "config/trn1-16.yaml").value
    [queue] = settings["cluster"]["queues"]
    settings["name"] = "fifty-queue"
    settings["cluster"]["queues"] = [
        {**queue, "name": f"queue-with-a-long-name-{number:02}", "placement_group": f"group-{number:02}"}
        for number in range(QUEUES)
    ]
    path = directory / "fifty-queue.yaml"
    path.write_text(json.dumps(settings), encoding="utf-8")  # YAML without aliases
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


def cluster_templates(wide_settings: Path, directory: Path) -> dict[str, dict[str, Any]]:
    """Return the templates that ParallelCluster would create for the settings, by name.

    Raises:
        BenchError: ParallelCluster rejects the cluster.
    """
    from config.settings import load
    from scripts.check.validation import examine, prepare
    from scripts.emulated import EmulatedAws
    from toolchain.parallelcluster import ParallelCluster
    from toolchain.synthesis import synthesize
    from ultracluster.domain.validator_warnings import accepted

    settings = load(wide_settings)
    assembly = synthesize(wide_settings, directory / "cdk.out.templates")
    with EmulatedAws() as aws, ParallelCluster(aws.environment) as parallelcluster:
        request = prepare(aws, settings, assembly)
        if problems := examine(parallelcluster, request, accepted(settings.cluster_spec)).problems:
            raise BenchError("\n".join(problems))
        built = parallelcluster.build_templates(request.configuration, request.name)
    return {"root": built.root, **{f"nested {number}": each for number, each in enumerate(built.nested.values(), 1)}}


def time_rows(samples: Mapping[str, Sequence[Sample]]) -> list[BenchRow]:
    """Return medians; a ratio is the median of the ratios within each round."""
    rows = []
    for name, taken in samples.items():
        cpu, wall = (median(values) for values in ([each.cpu for each in taken], [each.wall for each in taken]))
        ratio, goal, met = "", "", None
        if yardstick := YARDSTICKS.get(name):
            compared, most = yardstick
            times = median(each.cpu / other.cpu for each, other in zip(taken, samples[compared], strict=True))
            ratio, goal, met = f"{times:.2f} x {compared}", f"at most {most} x", times <= most
        rows.append(BenchRow((f"`cdk synth` of {name}", f"{cpu:.2f}", f"{wall:.2f}", ratio, goal), met))
    return rows


def template_rows(templates: Mapping[str, dict[str, Any]]) -> list[BenchRow]:
    """Return size and number of resources of each template."""
    rows = []
    for name, template in templates.items():
        size = len(json.dumps(template, separators=(",", ":")).encode())
        resources = len(template["Resources"])
        met = size < MAX_TEMPLATE_BYTES and resources < MAX_TEMPLATE_RESOURCES
        rows.append(BenchRow((name, f"{size:,}", str(resources)), met))
    return rows
