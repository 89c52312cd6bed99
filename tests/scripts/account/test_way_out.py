"""What is in force when a roll-back failed, and what leads out: decided by the states of both stacks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from config.settings import load
from scripts.account import way_out
from scripts.account.deployment import Deployment
from scripts.account.stack_state import ResourceState, StackState
from scripts.account.stacks import CLUSTER, StackResource
from scripts.account.way_out import ClusterStack, WayOut
from scripts.core.options import CONFIG

PARENT, OWN = "dev-cluster", "dev"
CONTINUE = "aws cloudformation continue-update-rollback --stack-name"


def failed(logical_id: str, kind: str = CLUSTER) -> StackResource:
    state, now = ResourceState("UPDATE_FAILED"), datetime(2026, 5, 4, tzinfo=UTC)
    return StackResource(PARENT, logical_id, "physical", kind, state, "the secret is gone", now)


def decided(*names: str, own: str | None = None, is_updated: bool = True, cluster: bool = True) -> WayOut:
    """Return what leads out where resources could not go back, the first of them the cluster, or none is."""
    kinds = [CLUSTER] * cluster + ["AWS::IAM::Role"] * len(names)
    resources = [failed(name, kind) for name, kind in zip(names, kinds, strict=False)]
    state = None if own is None else StackState(own)
    return way_out.decide(
        Deployment("dev", load(CONFIG / "dev.yaml")), PARENT, resources, ClusterStack(OWN, state, is_updated)
    )


@dataclass(frozen=True)
class Expected:
    """What is decided.

    Attributes:
        in_force: A part of the sentence.
        first: A part of what comes first; empty: nothing does.
        command: Of the AWS CLI, without the Region; empty: none.
        is_safe: Whether `deploy --yes` continues the roll-back.
    """

    in_force: str
    first: str = ""
    command: str = ""
    is_safe: bool = False


STATES = {
    "UPDATE_ROLLBACK_COMPLETE": Expected(
        "before the update is in force, and stays",
        command=f"{CONTINUE} {PARENT} --resources-to-skip Cluster",
        is_safe=True,
    ),
    "UPDATE_COMPLETE": Expected("the new configuration is in force", command=f"{CONTINUE} {PARENT}"),
    "UPDATE_ROLLBACK_FAILED": Expected("parts of both", "the events of dev", f"{CONTINUE} {OWN}"),
    "UPDATE_IN_PROGRESS": Expected("still UPDATE_IN_PROGRESS", "wait until it has ended"),
    "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": Expected("still UPDATE_COMPLETE_CLEANUP", "wait until it has ended"),
    "UPDATE_ROLLBACK_IN_PROGRESS": Expected("still UPDATE_ROLLBACK_IN_PROGRESS", "wait until it has ended"),
    "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS": Expected("still UPDATE_ROLLBACK", "wait until it has ended"),
    "DELETE_FAILED": Expected("DELETE_FAILED: there is no cluster", "./ultracluster destroy dev"),
    "DELETE_IN_PROGRESS": Expected("DELETE_IN_PROGRESS: there is no cluster", "./ultracluster destroy dev"),
    "ROLLBACK_COMPLETE": Expected("ROLLBACK_COMPLETE: there is no cluster", "./ultracluster destroy dev"),
    "": Expected("is gone: there is no cluster", "./ultracluster destroy dev"),
}


@pytest.mark.parametrize("own", STATES)
def test_the_state_of_parallelclusters_stack_decides(own: str) -> None:
    way, expected = decided("Cluster", own=own or None), STATES[own]
    assert expected.in_force in way.in_force
    assert expected.first in way.first
    assert bool(expected.first) == bool(way.first)
    assert way.command.removesuffix(" --region us-west-2") == expected.command
    assert way.is_safe == expected.is_safe
    assert way.steps, "something is to be done in every state"
    assert ("./ultracluster deploy dev" in way.steps) == bool(way.command)


def test_an_update_that_did_not_reach_the_cluster_is_tried_again_without_harm() -> None:
    for state in ("UPDATE_COMPLETE", "CREATE_COMPLETE"):
        way = decided("Cluster", own=state, is_updated=False)
        assert "did not reach" in way.in_force
        assert way.first == "fix why the cluster refuses it: the secret is gone"
        assert (way.continued, way.skipped, way.is_safe) == (PARENT, (), True)


def test_what_is_not_the_cluster_is_never_skipped() -> None:
    way = decided("Role", cluster=False, own="UPDATE_ROLLBACK_COMPLETE")
    assert way.in_force == "Role could not go back; all else is as it was before the update"
    assert (way.continued, way.skipped, way.is_safe) == (PARENT, (), False)
    assert decided("Cluster", "Role", own="UPDATE_ROLLBACK_COMPLETE").skipped == ("Cluster",)


def test_parallelclusters_stack_is_led_out_also_where_the_parent_was_told_to_skip_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states = {PARENT: "UPDATE_ROLLBACK_COMPLETE", OWN: "UPDATE_ROLLBACK_FAILED"}
    deployment = Deployment("dev", load(CONFIG / "dev.yaml"))
    monkeypatch.setattr(
        deployment, "stack", lambda name: {"StackName": name, "StackStatus": states[name]} if name in states else None
    )
    [way] = way_out.find(deployment)
    assert (way.stack, way.continued, way.is_safe) == (OWN, OWN, False)
    assert "./ultracluster deploy dev" in way.steps
