"""Write templates and ParallelCluster configuration of a deployment to cdk.out, for review, and list what is in them.

It is `cdk synth -c env=DEPLOYMENT`, without AWS and credentials. The files are STACK.template.json, and
CLUSTER.parallelcluster.yaml beside them.

Exit code 0: written; 1: the CDK failed; 2: the settings cannot be used.
"""

from __future__ import annotations

from pathlib import Path

import click

from scripts.core import options, terminal
from scripts.core.errors import ExitCode


@options.command(
    __doc__,
    ("synth research", "templates in cdk.out"),
    ("synth research -o json | jq -r .templates[].path", "the files, for programs"),
)
@options.deployment_name
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    default=Path("cdk.out"),
    show_default=True,
    help="Where to: a new or empty directory, or one with an earlier assembly, which is replaced.",
)
@options.output("json", "markdown")
def command(*, name: str, directory: Path, output: str) -> int:
    """Synthesize, print what there is, and return the exit code."""
    from scripts.check.synth import review, write

    options.settings_of(name)
    directory = directory.absolute()
    write(name, directory)
    terminal.show(review(directory), output)
    terminal.suggest(f"validate {name}")
    return ExitCode.DONE
