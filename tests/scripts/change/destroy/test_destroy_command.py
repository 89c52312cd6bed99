"""The destroy command: its questions, what it prints, and an interruption; without an account."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from botocore.exceptions import EndpointConnectionError

from config.settings import load
from scripts.account.deployment import Deployment
from scripts.change.destroy.model import ORDER, Backup, DestroyOptions, DestroyOutcome, DestroyPlan
from scripts.change.destroy.report import done
from scripts.check.estimate.products import table_dates
from scripts.core.clock import Clock
from scripts.core.options import CONFIG
from scripts.core.terminal import Say
from scripts.watch.inventory.model import Inventory, Leftover, Resource
from tests.command_line import Call, Printed
from tests.scripts.change.destroy.accounts import Terminal
from tests.scripts.refusals import refusal
from tests.scripts.reports import shown

PLAN = DestroyPlan(
    parts=("cluster",),
    stacks=("trn1-16-cluster",),
    file_systems=(),
    databases=(),
    left_behind=(),
    unprotected=(),
    sweep=(Leftover(type="AWS::Logs::LogGroup", id="/aws/lambda/x", reason="log of a Lambda function"),),
    blockers=(),
    remarks=(),
)


class Fakes:
    def __init__(self) -> None:
        self.plan = PLAN
        self.error: BaseException | None = None
        self.asked: list[DestroyOptions] = []

    def destroy(
        self, _: Deployment, options: DestroyOptions, *, clock: Clock, say: Say, outcome: DestroyOutcome
    ) -> None:
        self.asked.append(options)
        say("Stop requested.")
        outcome.deleted.append("trn1-16-cluster")
        if self.error:
            raise self.error
        outcome.ended, outcome.left = clock.now(), []


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    fakes = Fakes()
    volume = Resource(type="AWS::EC2::Volume", id="vol-1", stack="(fleet)", dollars_per_month=Decimal("2.8"))
    file_system = Resource(type="AWS::FSx::FileSystem", id="fs-1", stack="trn1-16-storage")
    there = Inventory(deployment="trn1-16", resources=(volume, file_system), not_listed=())
    monkeypatch.setattr("scripts.watch.inventory.resources.inventory", lambda _: there)
    monkeypatch.setattr("scripts.change.destroy.plan.plan", lambda *_: fakes.plan)
    monkeypatch.setattr("scripts.change.destroy.destroy.destroy", fakes.destroy)
    return fakes


@pytest.fixture
def call(fakes: Fakes, monkeypatch: pytest.MonkeyPatch, call: Call) -> Call:
    def run(*arguments: str, typed: io.StringIO | None = None) -> Printed:
        monkeypatch.setattr(sys, "stdin", typed or io.StringIO("trn1-16\n"))
        return call("destroy", "trn1-16", *arguments)

    return run


def test_without_a_terminal_or_with_json_it_needs_yes(fakes: Fakes, call: Call) -> None:
    assert call()[0] == 2
    code, _, errors = call("--output", "json", typed=Terminal("trn1-16\n"))
    assert (code, fakes.asked) == (2, [])
    assert "pass --confirm trn1-16, or --dry-run" in errors


def test_it_asks_for_the_name(fakes: Fakes, call: Call) -> None:
    code, _, errors = call(typed=Terminal("trn1-61\n"))
    assert (code, fakes.asked) == (1, [])
    assert "type the name of the deployment, trn1-16: error: got 'trn1-61'; nothing was changed" in errors
    assert call(typed=Terminal("trn1-16\n"))[0] == 0
    assert fakes.asked == [DestroyOptions()]


def test_all_arguments_are_passed_on(fakes: Fakes, call: Call) -> None:
    call("--all", "--no-final-backup", "--retained-bucket", "--unprotect", "--sweep", "--force", "--confirm", "trn1-16")
    assert fakes.asked == [
        DestroyOptions(ORDER, final_backup=False, force=True, unprotect=True, bucket=True, sweep=True)
    ]


def test_a_dry_run_shows_what_would_be_done_and_what_blocks_it(fakes: Fakes, call: Call) -> None:
    code, output, _ = call("--sweep", "--dry-run")
    assert code == 0
    assert output.startswith("To delete: stack trn1-16-cluster\n")
    assert "Holds data: Volume vol-1 of (fleet), $2.80 a month\nStays: FileSystem fs-1 of trn1-16-storage\n" in output
    assert f"\n2 resources, $2.80 a month, by prices of {table_dates()}. All of them: " in output
    assert "To remove: /aws/lambda/x (log of a Lambda function)" in output
    fakes.plan = PLAN.model_copy(update={"blockers": ("no", "never")})
    code, output, _ = call("--confirm", "trn1-16", "--output", "json")
    result = json.loads(output)
    assert (code, result["plan"]["blockers"], result["outcome"]) == (1, ["no", "never"], None)
    fakes.plan = PLAN.model_copy(update={"stacks": (), "sweep": ()})
    code, output, _ = call("--confirm", "trn1-16")
    assert (code, fakes.asked) == (0, [])
    assert "There is no cluster of trn1-16 to delete." in output


INTERRUPTIONS = {
    "The token is expired": (
        2,
        refusal("ExpiredToken", "DescribeStacks", "The token is expired"),
    ),
    "Could not connect": (1, EndpointConnectionError(endpoint_url="https://aws")),
    "It was interrupted.": (130, KeyboardInterrupt()),
}


@pytest.mark.parametrize("reason", INTERRUPTIONS)
def test_interrupted_it_says_what_was_done_and_that_the_same_command_continues(
    fakes: Fakes, call: Call, reason: str
) -> None:
    code, fakes.error = INTERRUPTIONS[reason]
    ended, output, errors = call("--confirm", "trn1-16", "--output", "json")
    assert ended == code
    outcome = json.loads(output)["outcome"]
    assert reason in outcome["failures"][-1]
    assert (outcome["deleted"], outcome["left"]) == (["trn1-16-cluster"], None)
    assert errors.startswith("Stop requested.\n")
    assert "The same command continues where it stopped." in errors
    assert ("get new session credentials" in errors) is (code == 2)


def test_the_outcome_fits_80_columns_with_what_is_left_and_its_costs() -> None:
    tag = "tag parallelcluster:cluster-name=trn1-16"
    logs = Leftover(type="AWS::Logs::LogGroup", id="logs", reason="logs of the cluster", kept_on_purpose=True)
    volume = Leftover(type="AWS::EC2::Volume", id="vol-0123", reason=tag, dollars_per_month=Decimal("2.8"))
    table = Leftover(type="AWS::DynamoDB::Table", id="table", reason=tag, dollars_per_month=None)
    started = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
    outcome = DestroyOutcome(
        deleted=["trn1-16-cluster", "trn1-16"],
        backups=[Backup(id="backup-0123456789abcdef0", dollars_per_month_at_most=Decimal(240))],
        failures=[f"trn1-16-network is kept, because {'sg-0123456789abcdef0, ' * 4} could not be deleted."],
        left=[table, volume, logs],
        started=started,
        ended=started + timedelta(minutes=12, seconds=5),
    )
    printed = shown(done(Deployment("trn1-16", load(CONFIG / "trn1-16.yaml")), outcome))
    assert max(map(len, printed.splitlines())) <= 80
    text = " ".join(printed.split())
    for part in (
        "Deleted in 12 min 5 s: trn1-16-cluster, trn1-16.",
        f"Backup: backup-0123456789abcdef0. It costs at most $240 a month, by prices of {table_dates()}, until you",
        "aws fsx delete-backup --backup-id backup-0123456789abcdef0 --region us-west-2",
        f"Left over; --sweep removes what holds no data: table: {tag}, paid by use vol-0123 *: {tag}, $2.80 a month",
        "Kept on purpose: logs: logs of the cluster * holds data.",
        "aws ec2 delete-volume --volume-id vol-0123 --region us-west-2",
    ):
        assert part in text
