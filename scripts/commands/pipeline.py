"""Print the role of a workflow as lines of outputs: role, region, environment, approval and ready.

`ready` is false, and a notice says why, as long as pipeline.yaml names no repository and account: pull requests are
reviewed without AWS then, and nothing is deployed. Exit code 0; 2: the arguments or settings cannot be used.
"""

from __future__ import annotations

import argparse
import sys

from config.pipeline import PATH, READ, READ_ROLE, Pipeline, deploy_role, load
from config.settings import SettingsError


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    command = argparse.ArgumentParser(prog="python -m scripts pipeline", description=__doc__)
    command.add_argument("stage", metavar="STAGE", help=f"a stage of {PATH.name}; {READ}: the role of pull requests")
    return command


def outputs(pipeline: Pipeline, stage: str) -> dict[str, str]:
    """Return the outputs for a stage, or for the role of pull requests.

    Raises:
        SettingsError: There is no such stage.
    """
    stages = {each.name: each for each in pipeline.stages}
    if stage not in (READ, *stages):
        raise SettingsError(f"got {stage!r}; allowed: {READ}, or a stage of {PATH.name}: {', '.join(stages)}")
    chosen, ready = stages.get(stage), not pipeline.missing
    role = READ_ROLE if stage == READ else deploy_role(stage)
    return {
        "role": f"arn:aws:iam::{pipeline.account}:role/{role}" if ready else "",
        "region": pipeline.region,
        "environment": chosen.environment if chosen else "",
        "approval": str(chosen is not None and chosen.approval).lower(),
        "ready": str(ready).lower(),
    }


def main() -> int:
    """Print the outputs, and a notice of what is missing, and return the exit code."""
    arguments = parser().parse_args()
    try:
        pipeline = load()
        lines = outputs(pipeline, arguments.stage)
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    print(*(f"{name}={value}" for name, value in lines.items()), sep="\n")
    for each in pipeline.missing:
        print(f"::notice file={PATH.name}::{each}", file=sys.stderr)
    return 0
