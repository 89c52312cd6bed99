"""List what a synthesized deployment contains, and write its ParallelCluster configuration beside it as YAML."""

import json
from collections import Counter
from pathlib import Path

import yaml

CLUSTER_TYPE = "Custom::PclusterCluster"


def review(assembly: Path) -> list[str]:
    """Write the cluster's configuration and return the lines for people.

    Args:
        assembly: A directory that ``cdk synth`` wrote.
    """
    lines = []
    for path in sorted(assembly.glob("*.template.json")):
        resources = json.loads(path.read_text(encoding="utf-8"))["Resources"].values()
        kinds = Counter(resource["Type"].removeprefix("AWS::") for resource in resources)
        lines.append(f"{path}: {len(resources)} resources")
        lines += [f"  {count:3} {kind}" for kind, count in sorted(kinds.items())]
        for resource in resources:
            if resource["Type"] == CLUSTER_TYPE:
                configuration = path.with_name(f"{resource['Properties']['ClusterName']}.parallelcluster.yaml")
                text = yaml.safe_dump(resource["Properties"]["ClusterConfiguration"], sort_keys=False)
                configuration.write_text(text, encoding="utf-8")
                lines.append(f"{configuration}: the ParallelCluster configuration that the template carries")
    return lines
