"""The compute nodes of a cluster: what EC2 has of them."""

from __future__ import annotations

from typing import Any

from scripts.deployment import Deployment
from scripts.operations.head_node import HeadNode, HeadNodeError
from scripts.operations.slurm import SCRIPT, SlurmError, SlurmState, parse

_COMPUTE = {"Key": "parallelcluster:node-type", "Value": "Compute"}


def instances(deployment: Deployment) -> list[dict[str, Any]]:
    """Return the compute nodes that are not terminated, as EC2 describes them. Needs ec2:DescribeInstances."""
    return [each for each in deployment.nodes() if _COMPUTE in each.get("Tags", [])]


def slurm_state(head_node: HeadNode) -> SlurmState:
    """Ask the head node for nodes and jobs.

    Raises:
        HeadNodeError: It could not be asked, or Slurm did not answer.
    """
    answer = head_node.run(SCRIPT)
    try:
        return parse(answer.output)
    except SlurmError as error:
        raise HeadNodeError(f"Slurm on the head node did not answer: {answer.errors or answer.output}") from error
