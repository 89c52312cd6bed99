"""Templates and ParallelCluster configuration of a deployment, for review."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml
from pydantic import Field

from scripts.check import targets
from scripts.check.plan import cdk
from scripts.core.document import Document, Result
from scripts.core.figures import counted
from scripts.core.report import Block, Line


class SynthesizedTemplate(Document):
    """A template that was written."""

    path: str = Field(description="The file, STACK.template.json.")
    resources: dict[str, int] = Field(description="Number of its resources by type.")


class SynthResult(Result):
    """What was written."""

    directory: str = Field(description="The cloud assembly, as `cdk deploy --app` takes it.")
    templates: tuple[SynthesizedTemplate, ...] = Field(description="The templates in it.")
    configurations: tuple[str, ...] = Field(description="The files with ParallelCluster's configuration.")

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        for template in self.templates:
            yield Line(f"{template.path}: {counted(sum(template.resources.values()), 'resources')}")
            for kind, count in template.resources.items():
                yield Line(f"{count:3} {kind.removeprefix('AWS::')}", level=1)
        for path in self.configurations:
            yield Line(f"{path}: the ParallelCluster configuration that its template carries")


def write(deployment_name: str, directory: Path) -> None:
    """Write the assembly of a deployment to a directory, in place of one that is there.

    Raises:
        PlanError: The CDK failed; the message is its output.
        UnusableError: Something else than an assembly is in the directory, or it cannot be written.
    """
    with targets.assembly(directory, "--directory") as written:
        cdk.synthesize(deployment_name, written)


def review(assembly: Path) -> SynthResult:
    """Write the cluster's ParallelCluster configuration beside the templates, and return what is in them."""
    templates, configurations = [], []
    for path in sorted(assembly.glob("*.template.json")):
        resources = json.loads(path.read_text(encoding="utf-8"))["Resources"].values()
        kinds = Counter(resource["Type"] for resource in resources)
        templates.append(SynthesizedTemplate(path=str(path), resources=dict(sorted(kinds.items()))))
        for resource in resources:
            if resource["Type"] == "Custom::PclusterCluster":
                configuration = path.with_name(f"{resource['Properties']['ClusterName']}.parallelcluster.yaml")
                text = yaml.safe_dump(resource["Properties"]["ClusterConfiguration"], sort_keys=False)
                configuration.write_text(text, encoding="utf-8")
                configurations.append(str(configuration))
    return SynthResult(directory=str(assembly), templates=tuple(templates), configurations=tuple(configurations))
