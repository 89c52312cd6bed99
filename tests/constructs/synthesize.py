"""Synthesize programs of the library's users in one process: ``python synthesize.py DIRECTORY PROGRAM...``.

It needs no more than the library, so that it runs with each version of the CDK that the library takes.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import aws_cdk as cdk


def synthesize(program: Path, directory: Path) -> Path:
    """Run a program that makes and synthesizes an app, and return the folder with the app's assembly."""
    real, out = cdk.App, directory / program.parent.name / program.stem

    def app(**options: Any) -> cdk.App:
        made = real(outdir=str(out), analytics_reporting=False, **options)
        made.node.set_context("availability-zones:account=222222222222:region=us-west-2", ["us-west-2a"])
        made.node.set_context("availability-zones:account=333333333333:region=us-west-2", ["us-west-2a"])
        return made

    cdk.App = app  # type: ignore[assignment,misc]
    try:
        runpy.run_path(str(program), run_name="__main__")
    finally:
        cdk.App = real  # type: ignore[misc]
    return out


if __name__ == "__main__":
    for each in sys.argv[2:]:
        made = synthesize(Path(each), Path(sys.argv[1]))
        print(
            each,
            sum(path.read_text("utf-8").count("Custom::PclusterCluster") for path in made.rglob("*.template.json")),
        )
