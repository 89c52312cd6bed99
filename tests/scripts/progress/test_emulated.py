"""`status --watch` on stacks in an emulated AWS."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from config.settings import load
from emulator.aws import EmulatedAws
from emulator.resources import make_bucket
from scripts.clock import Clock
from scripts.command import CONFIG, UnusableError
from scripts.deployment import Deployment
from scripts.progress.model import progress
from scripts.progress.tracker import BUDGET, Tracker
from scripts.progress.watch import watch
from scripts.stacks import NESTED
from tests.emulator.stacks import Stacks, parameter
from tests.scripts.account import Operated

_READING = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "cloudformation:DescribeStackEvents", "Resource": "*"}],
}


pytestmark = pytest.mark.slow


class QuickClock(Clock):
    """The machine's clock, which waits a tenth of a second wherever somebody wants to wait longer."""

    def sleep(self, seconds: float) -> None:
        super().sleep(min(seconds, 0.1))


@pytest.fixture
def stacks(rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> Stacks:
    act_as(rehearsed_aws.settings, monkeypatch)
    return Stacks(rehearsed_aws, "us-west-2")


def act_as(settings: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


def look(**limits: Any) -> tuple[int, str]:
    console = Console(file=io.StringIO(), width=80, record=True)
    deployment = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
    code = watch(deployment, console, clock=QuickClock(), as_json=False, **limits)
    return code, console.export_text()


def test_a_nested_stack_is_seen_while_it_is_made(stacks: Stacks, rehearsed_aws: EmulatedAws) -> None:
    handle = {"Type": "AWS::CloudFormation::WaitConditionHandle"}
    wait = {
        "Type": "AWS::CloudFormation::WaitCondition",
        "Properties": {"Handle": {"Ref": "Handle"}, "Timeout": "600"},
    }
    make_bucket(s3 := rehearsed_aws.client("s3", "us-east-1"), "templates", "us-east-1")
    s3.put_object(Bucket="templates", Key="k", Body=json.dumps({"Resources": {"Handle": handle, "Wait": wait}}))
    url = "https://s3.amazonaws.com/templates/k"
    stacks.create("trn1-16-network", {"Child": {"Type": NESTED, "Properties": {"TemplateURL": url}}})
    tracker = Tracker(Deployment("trn1-16", load(CONFIG / "trn1-16.yaml")))
    tracker.refresh()
    [network] = progress(tracker, Clock().now()).stacks
    [child] = network.stacks
    assert (child.name, child.operation.in_progress) == ("Child", True)
    assert child.operation.resources["Wait"].in_progress


def test_the_missing_right_is_named(
    stacks: Stacks, rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    stacks.create("trn1-16-network", {"A": parameter("1")})
    with rehearsed_aws.restricted(_READING) as settings:
        act_as(settings, monkeypatch)
        assert look(grace=0.2)[0] == 0
    nothing = {**_READING, "Statement": [{"Effect": "Allow", "Action": "s3:ListAllMyBuckets", "Resource": "*"}]}
    with rehearsed_aws.restricted(nothing) as settings:
        act_as(settings, monkeypatch)
        with pytest.raises(UnusableError, match="cloudformation:DescribeStackEvents"):
            look()


def test_a_deployment_that_is_done(operated: Operated) -> None:
    tracker = Tracker(operated.deployment())
    operated.calls()
    tracker.refresh()
    assert len(operated.calls()) <= BUDGET
    code, text = look()
    assert code == 0
    assert "  trn1-16 " in text, "the cluster's own stack, in that of the cluster"
    assert "trn1-16: complete after" in text
