"""What the pipeline's roles may look at is what programs look at: each runs with these rights alone.

But for drift detection: the emulated CloudFormation reads resources by itself, and is refused meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from scripts import rights
from scripts.change_plan.live import LiveStacks
from scripts.checks.catalog import CATALOG
from scripts.checks.check import Status
from scripts.checks.runner import run
from tests.operations.account import Operated
from tests.operations.status_looks import look
from tests.stacks.deployments import deploy

SLURM = {"slurm": "these credentials lack ssm:SendCommand"}


@contextmanager
def only(policy: dict[str, Any], operated: Operated, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with operated.aws.restricted(policy) as environment, monkeypatch.context() as patch:
        operated.act_as(environment, patch)
        yield


def test_preflight_finds_the_same(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    def statuses() -> dict[str, Status]:
        return {each.id: each.finding.status for results in run(CATALOG, operated.deployment()) for each in results}

    expected = statuses()
    with only(rights.reviewing(), operated, monkeypatch):
        found = statuses()

    assert found.pop("parallelcluster[launches]") is Status.SKIP, "asks EC2 for a dry run, for which there is no right"
    assert found == expected


@pytest.mark.parametrize("policy", [rights.reviewing, rights.deploying])
def test_status_shows_all_but_what_the_head_node_is_asked_for(
    policy: Any, operated: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    with only(policy(), operated, monkeypatch):
        _, document = look(operated.deployment())

    assert document["unseen"] == SLURM


def test_changes_see_what_is_deployed(operated: Operated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = deploy(operated.settings, tmp_path)
    with only(rights.reviewing(), operated, monkeypatch):
        live = LiveStacks("trn1-16", operated.settings, tmp_path)

    assert live.old.keys() == live.physical_ids.keys() == deployment.templates.keys()


def test_a_deployment_reads_the_clusters_logs_and_a_pull_request_does_not(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = operated.log_group

    def read() -> None:
        operated.deployment().account.client("logs").filter_log_events(logGroupName=group)

    with only(rights.deploying(), operated, monkeypatch):
        read()
    with only(rights.reviewing(), operated, monkeypatch), pytest.raises(ClientError, match="FilterLogEvents"):
        read()
