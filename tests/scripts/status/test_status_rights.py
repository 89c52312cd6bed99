"""`make status` with credentials that may not do everything, are refused for a while, or expire."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from scripts import command as frame
from scripts.commands import status as command
from scripts.deployment import Account
from tests.scripts.account import Operated
from tests.scripts.slurm_samples import IDLE, shell
from tests.scripts.status.status_looks import (
    answered,  # noqa: F401
    look,
    screen,
)

HIDDEN_WITHOUT = {
    "cloudformation:DescribeStacks": {"stacks", "other_clusters", "file_system", "usage"},
    "ec2:DescribeInstances": {"instances", "slurm"},
    "dynamodb:GetItem": {"fleet"},
    "fsx:DescribeFileSystems": {"file_system"},
    "cloudwatch:GetMetricData": {"usage"},
    "cloudwatch:DescribeAlarms": {"alarms"},
    "ssm:SendCommand": {"slurm"},
    "ssm:GetCommandInvocation": {"slurm"},
}
"""What cannot be seen without a right; these are all that it takes."""


@pytest.mark.parametrize("missing", HIDDEN_WITHOUT)
def test_a_missing_right_hides_nothing_else(operated: Operated, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operated.shell(shell(IDLE))
    allowed = [each for each in HIDDEN_WITHOUT if each != missing]
    rights = {"Effect": "Allow", "Action": allowed, "Resource": "*"}
    with operated.aws.restricted({"Version": "2012-10-17", "Statement": [rights]}) as environment:
        operated.act_as(environment, monkeypatch)
        code, document = look(operated.deployment())
    assert code == frame.FAILED
    unseen = {name: reason for name, reason in document["unseen"].items() if not reason.startswith("left out")}
    reasons = {name: reason.removesuffix(" on all stacks") for name, reason in unseen.items()}
    assert reasons == dict.fromkeys(HIDDEN_WITHOUT[missing], f"these credentials lack {missing}")


def test_without_any_right(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    rights = {"Effect": "Allow", "Action": "sts:GetCallerIdentity", "Resource": "*"}
    with operated.aws.restricted({"Version": "2012-10-17", "Statement": [rights]}) as environment:
        operated.act_as(environment, monkeypatch)
        text = screen(operated.deployment())
    assert "not seen: these credentials lack cloudformation:DescribeStacks" in text
    assert "not seen: these credentials lack dynamodb:GetItem" in text


def test_throttling_is_outlasted(operated: Operated) -> None:
    operated.shell(shell(IDLE))
    operated.aws.inject("throttling")
    code, document = look(operated.deployment())
    assert (code, document["unseen"]) == (0, {})


@pytest.mark.parametrize("operation", ["describe_stacks", "get_item", "get_metric_data"])
def test_credentials_that_expire_on_the_way(
    operated: Operated, operation: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = Account.ask

    def expired(account: Account, service: str, name: str, **parameters: Any) -> Any:
        if name == operation:
            raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "The token has expired"}}, name)
        return ask(account, service, name, **parameters)

    monkeypatch.setattr(Account, "ask", expired)
    assert frame.run(command.arguments().parse_args(["trn1-16"]), command.program) == frame.UNUSABLE
    assert "get new session credentials" in capsys.readouterr().err
