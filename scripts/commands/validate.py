"""Validate the configurations of config/ by ParallelCluster's own schema and validators, without an AWS account.

Each is synthesized, taken out of its template with every reference resolved to a resource in an emulated AWS, and
handed to the pinned aws-parallelcluster as AWS's provider would do it. Exit code 0: all are valid; 1: some are not;
2: some could not be examined.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scripts.validation import ValidationOutcome

CONFIG = Path(__file__).parents[2] / "config"


def environments() -> list[str]:
    """Return the names of the deployments in config/."""
    return sorted(path.stem for path in CONFIG.glob("*.yaml"))


def outcomes(names: list[str]) -> Iterator[ValidationOutcome]:
    """Examine deployments one after the other, in an emulated AWS that is empty before each."""
    from botocore.exceptions import BotoCoreError, ClientError

    from config.settings import SettingsError, load
    from emulator.aws import EmulatedAws
    from scripts.validation import ValidationOutcome, examine, prepare
    from toolchain.parallelcluster import ParallelCluster, RunnerError
    from toolchain.synthesis import SynthesisError, synthesize
    from toolchain.values import UnsupportedError
    from ultracluster.domain.validator_warnings import accepted

    of_aws, of_toolchain = (BotoCoreError, ClientError), (RunnerError, SynthesisError, UnsupportedError)
    with (
        tempfile.TemporaryDirectory() as directory,
        ThreadPoolExecutor(max_workers=1) as synthesis,
        EmulatedAws() as aws,
        ParallelCluster(aws.environment) as parallelcluster,
    ):
        # One deployment is synthesized while the one before it is examined.
        assemblies = {name: synthesis.submit(synthesize, name, Path(directory, name)) for name in names}
        for name in names:
            aws.reset()
            try:
                settings = load(CONFIG / f"{name}.yaml")
                request = prepare(aws, settings, assemblies[name].result())
                report = examine(parallelcluster, request, accepted(settings.cluster_spec))
            except (*of_aws, *of_toolchain, LookupError, SettingsError) as error:
                yield ValidationOutcome(environment=name, error=str(error))
            else:
                yield ValidationOutcome(environment=name, report=report)


def as_text(outcome: ValidationOutcome) -> str:
    """Return an outcome for people."""
    if outcome.report is None:
        return f"{outcome.environment}: NOT EXAMINED\n{_indented(outcome.error)}\n"
    report = outcome.report
    queues = f"{report.queues} queue{'s' if report.queues != 1 else ''}"
    lines = [
        f"{outcome.environment}: {'REJECTED' if report.faults else 'accepted'}",
        f"  cluster {report.cluster_name}, {queues}; schema and all validators, with real types and as strings",
    ]
    for message in report.messages:
        lines.append(f"  {message.level:7} {message.validator}: {message.text}")
        if message.level == "WARNING":
            lines.append(f"          {report.verdicts[message.validator].explanation}")
    lines += [f"  FAIL    {fault}" for fault in report.faults]
    return "\n".join(lines) + "\n"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def main() -> int:
    """Examine the deployments that the command line names, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts validate", description=__doc__)
    parser.add_argument(
        "environment", nargs="*", metavar="ENV", help="file name in config/ without .yaml (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per configuration and line")
    arguments = parser.parse_args()
    known = environments()
    unknown = [name for name in arguments.environment if name not in known]
    if unknown:
        parser.error(f"no such file in config/: {', '.join(unknown)}; there is {', '.join(known)}")
    worst = 0
    for outcome in outcomes(arguments.environment or known):
        print(outcome.model_dump_json() if arguments.json else as_text(outcome), flush=True)
        worst = max(worst, outcome.code)
    return worst
