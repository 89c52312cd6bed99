"""What the pipeline's roles may look at is what programs look at: each runs with these rights alone.

But for drift detection: the emulated CloudFormation reads resources by itself, and is refused meanwhile.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from scripts import destroy, diagnose, inventory, rights
from scripts.change_plan.model import Source
from scripts.change_plan.plan import plan_of_account
from scripts.checks.catalog import CATALOG
from scripts.checks.check import Status
from scripts.checks.runner import run
from scripts.operations import command
from tests.operations.account import Operated
from tests.operations.status_looks import look
from tests.stacks.deployments import Raw, deploy, edited

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


def faster_file_system(settings: Raw) -> None:
    settings["storage"]["file_system"]["throughput_mbps_per_tib"] = 500


@pytest.mark.parametrize(("edit", "ok"), [(lambda _: None, True), (faster_file_system, False)], ids=["same", "faster"])
def test_changes_see_what_is_deployed_and_refuse_what_replaces_it(
    edit: Callable[[Raw], object], ok: bool, operated: Operated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = edited("trn1-16", edit)
    deployment = deploy(settings, tmp_path)
    with only(rights.reviewing(), operated, monkeypatch):
        plan = plan_of_account("trn1-16", settings, tmp_path, accepted=False)

    assert {stack.name for stack in plan.stacks} == deployment.templates.keys()
    assert {stack.source for stack in plan.stacks} <= {Source.SAME, Source.STORED_TEMPLATE}
    assert plan.ok == ok


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (diagnose, diagnose.parser().parse_args(["trn1-16", "--json"])),
        (inventory, inventory.arguments().parse_args(["trn1-16", "--json"])),
        (destroy, destroy.arguments().parse_args(["trn1-16", "--all", "--unprotect", "--dry-run", "--json"])),
    ],
    ids=lambda each: each.__name__ if hasattr(each, "__name__") else "",
)
def test_a_deployment_says_the_same_as_with_all_rights(
    program: Any,
    arguments: argparse.Namespace,
    operated: Operated,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def said() -> tuple[int, Any]:
        code = command.run(arguments, program.program)
        out, err = capsys.readouterr()
        assert "AccessDenied" not in out + err
        return code, json.loads(out)

    expected = said()
    with only(rights.deploying(), operated, monkeypatch):
        assert said() == expected


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
