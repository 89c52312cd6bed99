"""`status --watch` on stacks in an emulated AWS."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from config.settings import load
from emulator.aws import EmulatedAws
from emulator.resources import make_bucket
from scripts.clock import Clock
from scripts.command import CONFIG, DONE
from scripts.deployment import Deployment
from scripts.progress.model import progress
from scripts.progress.tracker import BUDGET, Tracker
from scripts.progress.watch import watch
from scripts.stacks import NESTED
from tests.emulator.stacks import Stacks
from tests.scripts.account import Operated


@pytest.mark.slow
def test_a_nested_stack_is_followed_while_it_is_created(
    rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in rehearsed_aws.settings.items():
        monkeypatch.setenv(name, value)
    handle = {"Type": "AWS::CloudFormation::WaitConditionHandle"}
    wait = {
        "Type": "AWS::CloudFormation::WaitCondition",
        "Properties": {"Handle": {"Ref": "Handle"}, "Timeout": "600"},
    }
    make_bucket(s3 := rehearsed_aws.client("s3", "us-east-1"), "templates", "us-east-1")
    s3.put_object(Bucket="templates", Key="k", Body=json.dumps({"Resources": {"Handle": handle, "Wait": wait}}))
    url = "https://s3.amazonaws.com/templates/k"
    Stacks(rehearsed_aws, "us-west-2").create(
        "trn1-16-network", {"Child": {"Type": NESTED, "Properties": {"TemplateURL": url}}}
    )
    tracker = Tracker(Deployment("trn1-16", load(CONFIG / "trn1-16.yaml")))
    tracker.refresh()
    [network] = progress(tracker, Clock().now()).stacks
    [child] = network.stacks
    assert (child.name, child.ended) == ("Child", None)
    assert [each.logical_id for each in child.in_progress] == ["Wait"]


def test_a_complete_deployment(operated: Operated) -> None:
    tracker = Tracker(operated.deployment())
    operated.calls()
    tracker.refresh()
    assert len(operated.calls()) <= BUDGET
    console = Console(file=io.StringIO(), width=80, record=True)
    assert watch(operated.deployment(), console, clock=Clock(), as_json=False) == DONE
    text = console.export_text()
    assert "  trn1-16 " in text, "the cluster's own stack, in that of the cluster"
    assert "trn1-16: complete after" in text
