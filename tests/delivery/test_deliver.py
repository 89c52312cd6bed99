"""`python -m scripts.deliver`: what it prints, writes and returns, with AWS emulated."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from rich.console import Console

from config.settings import Settings, load
from rehearsal import stand_ins
from rehearsal.aws import EmulatedAws
from rehearsal.cdk import CommandLine
from scripts import deliver as program
from scripts import deploy
from scripts.change_plan import cdk
from scripts.change_plan import command as change_plan
from scripts.checks.check import Finding, Status
from scripts.delivery.rounds import ENDED, CredentialsEndedError, Outcome, Result
from scripts.delivery.site import AwsSite, Facts
from scripts.delivery.summary import Round, as_markdown, document
from scripts.deployment import Account, Deployment
from scripts.operations import generations
from scripts.operations.clock import Clock
from scripts.operations.command import CONFIG, UnusableError
from scripts.operations.diagnosis.diagnose import diagnose
from scripts.operations.status.model import CostNow, Unseen
from tests.delivery.test_rounds import CLUSTER
from tests.deployed import create_stacks
from tests.operations.account import Operated
from tests.stacks import deployments

SCHEMA = json.loads((CONFIG.parent / "docs/schemas/deliver.json").read_text(encoding="utf-8"))
CANARY = "canary-0123456789"
CANARIES = {"AWS_SECRET_ACCESS_KEY": CANARY, "AWS_SESSION_TOKEN": CANARY}


def site(directory: Path, settings: Settings, environment: str = "dev") -> AwsSite:
    return AwsSite(environment, settings, directory / "cdk.out", Console(quiet=True), Clock())


@pytest.fixture
def dev() -> Settings:
    return load(CONFIG / "dev.yaml")


def refuse(code: str, *operations: str) -> Callable[..., Any]:
    def ask(_: Account, __: str, operation: str, **parameters: Any) -> Any:
        del parameters
        if operation in operations:
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, operation)
        return {"Account": "1"}

    return ask


def test_credentials_that_ended_are_told_from_other_refusals(
    dev: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Account, "ask", refuse("ExpiredToken", "describe_stacks", "get_caller_identity"))
    with pytest.raises(CredentialsEndedError, match="ExpiredToken"):
        site(tmp_path, dev).stacks()
    monkeypatch.setattr(Account, "ask", refuse("AccessDenied", "describe_stacks"))
    with pytest.raises(ClientError, match="AccessDenied"):
        site(tmp_path, dev).stacks()


def test_a_plan_that_fails_for_credentials_or_settings(
    dev: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = [sys.executable, "-c", "print('no such setting'); exit(1)"]
    monkeypatch.setattr(cdk, "synthesis", lambda *_: failing)
    monkeypatch.setattr(Account, "ask", refuse(""))
    with pytest.raises(UnusableError, match="no such setting"):
        site(tmp_path, dev).plan()
    monkeypatch.setattr(Account, "ask", refuse("ExpiredToken", "get_caller_identity"))
    with pytest.raises(CredentialsEndedError):
        site(tmp_path, dev).plan()


def test_the_cdk_is_asked_to_end_in_time(
    dev: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(deploy, "BUILD", tmp_path)
    monkeypatch.setattr(cdk, "command", lambda *_: [sys.executable, "-c", "import time; time.sleep(60)"])
    assert site(tmp_path, dev).deploy(0.5) == ENDED
    assert "CloudFormation goes on with what it has begun" in capfd.readouterr().err
    monkeypatch.setattr(cdk, "command", lambda *arguments: [sys.executable, "-c", "print('done')", *arguments])
    assert site(tmp_path, dev).deploy(60) == 0


def of(outcome: Outcome, **more: Any) -> Round:
    return Round("dev", "us-west-2", outcome, timedelta(minutes=34, seconds=5), **more)


def test_the_summary_of_a_deployment_that_is_complete() -> None:
    cost = CostNow(Decimal("43.00"), Decimal("2.16"), (), "table of 2026-01-19")
    found = of(Outcome(Result.DEPLOYED), facts=Facts([], cost))
    assert as_markdown(found).splitlines() == [
        "### `dev` is deployed",
        "",
        "- This round took 34 min 5 s.",
        "- Connect: `make connect ENV=dev`; look: `make status ENV=dev`",
        "- Cost: $45.16 an hour: $43.00 for compute nodes that run, $2.16 for the rest (table of 2026-01-19)",
    ]
    Draft202012Validator(SCHEMA).validate(document(found))
    assert document(found)["dollars_per_hour"] == {"nodes": 43.0, "standing": 2.16}


def test_the_summary_of_a_round_that_goes_on() -> None:
    found = of(Outcome(Result.GOES_ON, "The time is over."))
    assert as_markdown(found) == "### `dev` is being deployed\n\nThe time is over.\n"
    Draft202012Validator(SCHEMA).validate(document(found))
    assert document(found)["connect"] is None


def test_the_summary_of_a_refusal_says_what_helps() -> None:
    from scripts.change_plan.model import Plan

    fault = Finding(Status.FAIL, "the stack is ROLLBACK_COMPLETE and protected", "take it off", "aws x", "dev-network")
    found = of(Outcome(Result.REFUSED, "no", Plan("dev", "us-west-2", "account 1", [], CLUSTER, [fault])))
    markdown = as_markdown(found)
    assert markdown.startswith("### `dev` was not deployed\n")
    assert "take it off" in markdown
    assert "`aws x`" in markdown
    Draft202012Validator(SCHEMA).validate(document(found))
    assert document(found)["findings"][0]["subject"] == "dev-network"


def test_the_summary_of_a_failure_whose_cause_was_not_seen() -> None:
    markdown = as_markdown(of(Outcome(Result.FAILED, "It failed."), diagnosis=Unseen("ExpiredToken")))
    assert markdown.startswith("### `dev` failed after 34 min 5 s\n\nIt failed.\n")
    assert "Why was not seen: ExpiredToken. Look: `make diagnose ENV=dev`" in markdown


def test_the_summary_of_a_failure_has_the_cause_and_not_the_log(operated: Operated) -> None:
    operated.log("ip-10-0-0-1.i-1.clustermgtd", *["2026-01-01 ERROR nothing known"] * 50)
    diagnosis = diagnose(operated.deployment())
    markdown = as_markdown(of(Outcome(Result.FAILED, "The CDK failed with exit code 1."), diagnosis=diagnosis))
    assert "No stack failed, as far as was read" in markdown
    assert len(markdown.splitlines()) < 15


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def account(boto3_data: None, dev: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedAws]:
    """An account that is ready for config/dev.yaml, and this process's credentials for it."""
    with EmulatedAws() as aws, closing(CommandLine(aws)) as command_line:
        stand_ins.create(aws, dev)
        assert command_line.bootstrap(dev.region) == 0
        use(aws, dev, tmp_path, monkeypatch)
        yield aws


def use(aws: EmulatedAws, settings: Settings, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give this process credentials for an account."""
    for name, value in {**aws.settings, **CANARIES, "HOME": str(home), "AWS_REGION": settings.region}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the program, and returns exit code, standard output, and the job's summary."""
    waited = timedelta()

    def sleep(_: Clock, seconds: float) -> None:
        nonlocal waited
        waited += timedelta(seconds=seconds)
        time.sleep(0.05)

    summary = tmp_path / "summary.md"
    for name, value in {**CANARIES, "GITHUB_STEP_SUMMARY": str(summary)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Clock, "sleep", sleep)
    monkeypatch.setattr(Clock, "now", lambda _: datetime.now(UTC) + waited)
    monkeypatch.setattr(deploy, "BUILD", tmp_path / "build")
    monkeypatch.setattr(program, "clean_up_as_after_ctrl_c", lambda: None)

    def called(*arguments: str) -> tuple[int, str, str]:
        summary.unlink(missing_ok=True)
        monkeypatch.setattr(sys, "argv", ["deliver", "dev", *arguments])
        capfd.readouterr()
        code = program.main()
        printed = capfd.readouterr()
        text = summary.read_text(encoding="utf-8") if summary.exists() else ""
        assert CANARY not in printed.out + printed.err + text
        return code, printed.out, text

    return called


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.validation
def test_it_takes_up_what_was_stopped_and_then_has_nothing_to_do(
    account: EmulatedAws, run: Run, dev: Settings, tmp_path: Path
) -> None:
    del account
    first = site(tmp_path, dev)
    first.plan()
    assert first.deploy(8) == ENDED
    code, out, summary = run("--minutes", "30")
    assert code == 0, out
    assert "dev: deployed." in out
    assert summary.startswith("### `dev` is deployed\n")
    assert "| dev-cluster | CREATE\\_COMPLETE |" in summary
    code, out, summary = run("--minutes", "30", "--json")
    found = json.loads(out)
    Draft202012Validator(SCHEMA).validate(found)
    assert (code, found["result"]) == (0, "unchanged")
    assert found["connect"] == "make connect ENV=dev"
    assert "Nothing differed from the settings." in summary


@pytest.fixture
def outgrown(boto3_data: None, dev: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedAws]:
    """An account in which config/dev.yaml is deployed, whose network is to get a second address."""
    larger = deployments.edited("dev", lambda raw: raw["network"].update(nat_addresses=2))
    wanted = deployments.deploy(larger, tmp_path / "wanted")
    monkeypatch.setattr(change_plan, "synthesize", lambda _, directory: shutil.copytree(wanted.directory, directory))
    with EmulatedAws() as aws:
        stand_ins.create(aws, larger)
        stand_ins.bootstrap(aws, dev.region)
        create_stacks(aws, deployments.deploy(dev, tmp_path / "deployed"))
        use(aws, dev, tmp_path, monkeypatch)
        yield aws


@pytest.mark.slow
@pytest.mark.validation
def test_a_failure_is_diagnosed_and_a_re_run_deploys(outgrown: EmulatedAws, run: Run) -> None:
    outgrown.inject("quota")
    code, out, summary = run("--minutes", "30")
    assert code == 1
    assert "What to do" in out
    assert summary.startswith("### `dev` failed after ")
    assert "**The account has no Elastic IP address left" in summary
    assert "CREATE_FAILED AWS::EC2::EIP" in summary
    assert "What to do:" in summary
    assert len(summary.splitlines()) < 40
    outgrown.mend()
    code, _, summary = run("--minutes", "30")
    assert code == 0
    assert "| dev-network | UPDATE\\_COMPLETE |" in summary


def test_credentials_that_never_were_good(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Account, "ask", refuse("ExpiredToken", "describe_stacks", "get_caller_identity"))
    code, out, summary = run("--minutes", "30")
    assert (code, out) == (2, "")
    assert summary.startswith("### `dev` was not deployed\n\nAn error occurred (ExpiredToken) when calling ")


def test_a_right_that_is_missing_stands_in_the_summary(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Account, "ask", refuse("AccessDenied", "describe_stacks"))
    code, out, summary = run("--minutes", "30")
    assert (code, out) == (2, "")
    assert "(AccessDenied) when calling the describe\\_stacks operation" in summary
    assert summary.rstrip().endswith("AWS goes on with it: `make status ENV=dev`")


def test_credentials_that_end_meanwhile(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(_: AwsSite) -> Any:
        raise CredentialsEndedError("ExpiredToken")

    monkeypatch.setattr(Deployment, "stack", lambda *_: None)
    monkeypatch.setattr(generations, "existing", lambda _: {})
    monkeypatch.setattr(AwsSite, "plan", ended)
    code, out, summary = run("--minutes", "30", "--json")
    assert (code, json.loads(out)["result"]) == (75, "goes on")
    assert summary.startswith("### `dev` is being deployed\n\nThe credentials have ended (ExpiredToken).")


def test_settings_from_before_an_upgrade_deploy_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deployment, "stack", lambda *_: None)
    monkeypatch.setattr(generations, "existing", lambda _: {1: "DELETE_IN_PROGRESS", 2: "CREATE_COMPLETE"})
    code, out, summary = run("--minutes", "30", "--json")
    assert (code, json.loads(out)["result"]) == (1, "refused")
    assert summary.startswith("### `dev` was not deployed\n\nThere are newer clusters than the settings say: ")


@pytest.mark.parametrize("minutes", ["1", "1441", "many"])
def test_minutes_that_cannot_be_used(minutes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["deliver", "dev", "--minutes", minutes])
    with pytest.raises(SystemExit, match="2"):
        program.main()
