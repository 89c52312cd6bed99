"""Write templates and ParallelCluster configuration of a deployment to cdk.out, for review, and list what is in them.

It is `cdk synth -c env=DEPLOYMENT`, without AWS and credentials. Programs read the files: STACK.template.json, and
CLUSTER.parallelcluster.yaml beside them.

Exit code 0: written; 1: the CDK failed; 2: the settings cannot be used.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import click

from scripts import options, terminal
from scripts.errors import ExitCode


@options.command(__doc__, ("synth research", "templates in cdk.out"))
@options.deployment_name
@click.option(
    "--directory", type=click.Path(path_type=Path), default=Path("cdk.out"), show_default=True, help="Where to."
)
def command(*, name: str, directory: Path) -> int:
    """Synthesize, print what there is, and return the exit code."""
    from scripts.plan.command import synthesize

    options.settings_of(name)
    directory = directory.absolute()
    if (directory / "cdk.out").is_file():  # the mark of an assembly: nothing else is deleted
        shutil.rmtree(directory)
    synthesize(name, directory)
    print("\n".join(review(directory)))
    terminal.suggest(f"validate {name}")
    return ExitCode.DONE


def review(assembly: Path) -> list[str]:
    """Write the cluster's ParallelCluster configuration beside the templates, and return lines on what is in them."""
    import yaml

    lines = []
    for path in sorted(assembly.glob("*.template.json")):
        resources = json.loads(path.read_text(encoding="utf-8"))["Resources"].values()
        kinds = Counter(resource["Type"].removeprefix("AWS::") for resource in resources)
        lines.append(f"{path}: {len(resources)} resources")
        lines += [f"  {count:3} {kind}" for kind, count in sorted(kinds.items())]
        for resource in resources:
            if resource["Type"] == "Custom::PclusterCluster":
                configuration = path.with_name(f"{resource['Properties']['ClusterName']}.parallelcluster.yaml")
                text = yaml.safe_dump(resource["Properties"]["ClusterConfiguration"], sort_keys=False)
                configuration.write_text(text, encoding="utf-8")
                lines.append(f"{configuration}: the ParallelCluster configuration that the template carries")
    return lines
