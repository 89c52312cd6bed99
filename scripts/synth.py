"""Templates and ParallelCluster configuration of a deployment, for review."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import yaml

from scripts.plan.command import synthesize


def write(environment: str, directory: Path) -> None:
    """Write the assembly of a deployment to a directory, in place of one that is there.

    Raises:
        PlanError: The CDK failed; the message is its output.
    """
    if (directory / "cdk.out").is_file():  # the mark of an assembly: nothing else is deleted
        shutil.rmtree(directory)
    synthesize(environment, directory)


def review(assembly: Path) -> list[str]:
    """Write the cluster's ParallelCluster configuration beside the templates, and return lines on what is in them."""
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
