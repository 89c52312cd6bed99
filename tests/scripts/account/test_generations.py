"""Which generations of a cluster there are, beside clusters of deployments with similar names."""

from __future__ import annotations

from typing import Any

import pytest

from config.settings import load
from scripts.account import generations
from scripts.account.deployment import Deployment
from scripts.core.options import CONFIG


def stack(name: str, deployment: str = "trn1-16", status: str = "CREATE_COMPLETE") -> dict[str, Any]:
    """Return a stack that a deployment made for a cluster, as CloudFormation describes it."""
    return {"StackName": name, "StackStatus": status, "Description": f"Trn1 UltraCluster {deployment}: cluster"}


def own(name: str, status: str = "CREATE_COMPLETE") -> dict[str, Any]:
    tags = [{"Key": "parallelcluster:cluster-name", "Value": name}]
    return {"StackName": name, "StackStatus": status, "Description": "AWS ParallelCluster", "Tags": tags}


@pytest.mark.parametrize(
    ("generation", "stacks", "existing"),
    [
        (1, [], {}),
        (1, [stack("trn1-16-cluster"), own("trn1-16")], {1: "CREATE_COMPLETE"}),
        (1, [stack("trn1-16-cluster-3"), own("trn1-16-3")], {3: "CREATE_COMPLETE"}),
        (2, [stack("trn1-16-cluster-12", status="DELETE_FAILED"), stack("trn1-16-cluster-2")],
         {2: "CREATE_COMPLETE", 12: "DELETE_FAILED"}),
        (2, [own("trn1-16", "DELETE_FAILED"), stack("trn1-16-cluster-2"), own("trn1-16-2")],
         {1: "DELETE_FAILED", 2: "CREATE_COMPLETE"}),
        (2, [stack("trn1-16-cluster", status="DELETE_IN_PROGRESS"), own("trn1-16", "DELETE_FAILED")],
         {1: "DELETE_IN_PROGRESS"}),
        (1, [{"StackName": "trn1-16-cluster-2", "StackStatus": "REVIEW_IN_PROGRESS"}], {2: "REVIEW_IN_PROGRESS"}),
        (1, [own("trn1-16-2")], {}),  # a generation that these settings have never had
        (2, [own("trn1-16-2"), stack("trn1-16-2-cluster", "trn1-16-2")], {}),  # another deployment's
        (1, [{"StackName": "trn1-16", "StackStatus": "CREATE_COMPLETE"}], {}),  # no cluster
        (1, [{"StackName": "trn1-16-cluster", "StackStatus": "CREATE_COMPLETE"}], {}),  # somebody else's
        (1, [stack("trn1-16-cluster-1"), stack("trn1-16-cluster-02"), stack("trn1-16-cluster-x"),
             stack("trn1-160-cluster", "trn1-160"), stack("trn1-16-2-cluster", "trn1-16-2")], {}),
    ],
)  # fmt: skip
def test_generations_are_known_by_the_stacks(
    monkeypatch: pytest.MonkeyPatch, generation: int, stacks: list[dict[str, Any]], existing: dict[int, str]
) -> None:
    deployment = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml").of_generation(generation))
    monkeypatch.setattr(deployment.account, "list", lambda *_: stacks)
    assert generations.existing(deployment) == existing
