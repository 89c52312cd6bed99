"""Names that are free, ours or taken, and stacks in all states."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from scripts.account.deployment import Account
from scripts.check.preflight import names
from scripts.core.findings import FAIL, PASS, SKIP, WARN, CheckStatus
from tests.configurations import CONFIG
from tests.scripts.check.preflight.accounts import Case, Raw, case, stacks
from tests.scripts.refusals import refusal
from tests.stacks.deployments import PARTS
from toolchain.golden import read_golden

NETWORK, CLUSTER = "reserved-network", "reserved"
OURS = {"Description": "Trn1 UltraCluster reserved: network"}
OUR_CLUSTER = {"Description": "Trn1 UltraCluster reserved: cluster"}


def network(status: CheckStatus, *says: str, state: str = "CREATE_COMPLETE", **facts: Any) -> Any:
    """Return a case of a network stack in a state."""
    described = {**OURS, "StackStatus": state, **facts}
    stuck = {"LogicalResourceId": "Vpc", "ResourceType": "AWS::EC2::VPC", "ResourceStatus": "UPDATE_FAILED"}
    listed = [{**stuck, "LastUpdatedTimestamp": datetime(2026, 5, 4, tzinfo=UTC)}]
    answers: dict[str, Any] = {"describe_stacks": stacks(**{NETWORK: described}), "list_stack_resources": listed}
    return case(names.stack_names, status, *says, **answers)


def cluster(status: CheckStatus, *says: str, state: str = "CREATE_COMPLETE", ours: bool = True, **facts: Any) -> Any:
    """Return a case of a cluster that the cluster stack made, or somebody else."""
    described: dict[str, Mapping[str, Any]] = {CLUSTER: {"StackStatus": state, **facts}}
    made = {"LogicalResourceId": "Cluster", "PhysicalResourceId": CLUSTER, "ResourceStatus": "CREATE_COMPLETE"}
    if ours:
        described["reserved-cluster"] = OUR_CLUSTER
    answers: dict[str, Any] = {"describe_stacks": stacks(**described), "list_stack_resources": [made]}
    return case(names.cluster_name, status, *says, **answers)


def in_generation(number: int) -> Any:
    return lambda raw: raw["cluster"].update(generation=number)


def without_key(raw: Raw) -> None:
    raw["cluster"]["head_node"].update(ssh_key_name=None, ssh_cidr=None)


def of_type(name: str) -> dict[str, Any]:
    return {"KeyPairs": [{"KeyType": name}]}


def group(**facts: str) -> Any:
    return lambda answer: answer["PlacementGroups"][0].update(facts)


_group = partial(case, names.placement_group)
CASES = [
    network(PASS, f"{NETWORK} is CREATE_COMPLETE, and ours to update"),
    network(FAIL, "not ours: somebody's VPC", "choose another `name`", Description="somebody's VPC"),
    network(FAIL, "CREATE_IN_PROGRESS", "./ultracluster status mine --watch", state="CREATE_IN_PROGRESS"),
    network(WARN, "go ahead, unless somebody else is deploying", state="REVIEW_IN_PROGRESS"),
    network(WARN, "the next deployment deletes it", state="ROLLBACK_COMPLETE"),
    network(
        FAIL,
        "update-termination-protection --no-enable-termination-protection --stack-name reserved-network",
        state="ROLLBACK_COMPLETE",
        EnableTerminationProtection=True,
    ),
    network(FAIL, "./ultracluster destroy mine --network", state="CREATE_FAILED"),
    network(FAIL, "aws cloudformation rollback-stack --stack-name reserved-network", state="UPDATE_FAILED"),
    network(
        FAIL,
        "Vpc could not go back; all else is as it was before the update",
        "`./ultracluster deploy mine` continues the roll-back before it deploys and always asks",
        "aws cloudformation continue-update-rollback --stack-name reserved-network",
        state="UPDATE_ROLLBACK_FAILED",
    ),
    case(
        names.stack_names,
        WARN,
        "reserved-cluster still holds a cluster of an earlier generation",
        edit=in_generation(2),
        describe_stacks=stacks(**{"reserved-cluster": OUR_CLUSTER}),
    ),
    case(
        names.stack_names,
        FAIL,
        "reserved-cluster-3 holds a cluster of a later generation than config/mine.yaml names (1)",
        describe_stacks=stacks(**{"reserved-cluster-3": OUR_CLUSTER}),
    ),
    case(names.cluster_name, PASS, f"there is no cluster or stack {CLUSTER} yet"),
    cluster(PASS, "CREATE_COMPLETE, and ours to update"),
    cluster(FAIL, "which is ours, is UPDATE_ROLLBACK_FAILED", state="UPDATE_ROLLBACK_FAILED"),
    cluster(FAIL, "a stack that is no cluster (CREATE_COMPLETE)", "another `cluster.name`", ours=False),
    cluster(
        FAIL,
        "a cluster that reserved-cluster did not make (CREATE_COMPLETE)",
        ours=False,
        Tags=[{"Key": "parallelcluster:version", "Value": "3.16.1"}],
    ),
    cluster(FAIL, "is being deleted", "wait until it is gone", state="DELETE_IN_PROGRESS", ours=False),
    case(names.ssh_key, SKIP, edit=without_key),
    case(names.ssh_key, PASS, "somebody is of type ed25519, which ubuntu2404 takes"),
    case(
        names.ssh_key,
        FAIL,
        "no key pair somebody in us-west-2",
        describe_key_pairs=refusal("InvalidKeyPair.NotFound"),
    ),
    case(names.ssh_key, FAIL, "type rsa; allowed with ubuntu2404: ed25519", describe_key_pairs=of_type("rsa")),
    _group(SKIP, edit=lambda raw: raw["cluster"]["queues"].pop()),
    _group(PASS, "near has strategy cluster and is available"),
    _group(
        FAIL, "there is no placement group near", describe_placement_groups=refusal("InvalidPlacementGroup.Unknown")
    ),
    _group(FAIL, "allowed: cluster, available", describe_placement_groups=group(Strategy="spread")),
]


@pytest.mark.parametrize("each", CASES)
def test_names(each: Case, account: Account) -> None:
    each.verify(account)


def test_stacks_of_this_app_are_known_by_their_descriptions(account: Account) -> None:
    templates = read_golden(CONFIG.parent / "tests/snapshots/reserved")
    described = {f"reserved-{part}": templates[f"reserved-{part}"]["Description"] for part in PARTS}
    existing = stacks(**{name: {"Description": text} for name, text in described.items()})
    results = Case(names.stack_names, PASS, answers={"describe_stacks": existing}).findings(account)
    assert [each.sentence for each in results] == [
        f"{name} is CREATE_COMPLETE, and ours to update" for name in described
    ]
