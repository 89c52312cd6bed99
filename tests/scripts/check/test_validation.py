"""What of ParallelCluster's messages would stop a deployment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.check.validation import Validation, examine, outcomes
from scripts.core import options
from tests.command_line import ultracluster
from tests.scripts.emulated.test_references import everything, in_its_own_network
from tests.stacks.deployments import edited
from toolchain.cluster import ClusterRequest
from toolchain.parallelcluster import DryRun, Message

KEY_PAIR = Message("WARNING", "KeyPairValidator", "no key")
SCRIPT = Message("WARNING", "AsyncTimedUrlValidator", "'script.sh' not found in 'nowhere'")
GROUP = Message("ERROR", "EfaPlacementGroupValidator", "must be explicit")
ACCEPTING = dict.fromkeys(("KeyPairValidator", "EfaPlacementGroupValidator"), "meant")


def examined(*messages: Message, suppressed: tuple[str, ...] = (), sent: DryRun | None = None) -> Validation:
    """Return the validation of a cluster of which the validators say this, unless it is suppressed."""

    class Fake:
        def validate(self, _: Any) -> list[Message]:
            return list(messages)

        def create(self, _: ClusterRequest, *, strings: bool) -> DryRun:
            assert strings
            left = tuple(each for each in messages if each.validator not in suppressed)
            return sent or DryRun(not any(each.level == "ERROR" for each in left), left, "refused")

    properties = {
        "ClusterName": "c",
        "ClusterConfiguration": {"Scheduling": {"SlurmQueues": [{}, {}]}},
        "SuppressValidators": [f"type:{name}" for name in suppressed],
    }
    fake: Any = Fake()
    return examine(fake, ClusterRequest("us-west-2", properties, {}), ACCEPTING)


def test_a_warning_that_is_accepted_and_suppressed() -> None:
    result = examined(KEY_PAIR, KEY_PAIR, suppressed=("KeyPairValidator",))
    assert (result.problems, result.queues, result.messages) == ((), 2, (KEY_PAIR,))
    assert result.verdicts["KeyPairValidator"].explanation


@pytest.mark.parametrize(
    ("messages", "suppressed", "fault"),
    [
        ((KEY_PAIR,), (), "WARNING KeyPairValidator: no key"),
        ((), ("ALL",), "SuppressValidators has ALL, whose warnings stop a deployment"),
        ((SCRIPT,), ("AsyncTimedUrlValidator",), "WARNING AsyncTimedUrlValidator: 'script.sh' not found"),
        ((GROUP,), ("EfaPlacementGroupValidator",), "ERROR EfaPlacementGroupValidator: must be explicit"),
    ],
    ids=["warning", "everything suppressed", "missing script", "error though suppressed"],
)
def test_what_stops_a_deployment(messages: tuple[Message, ...], suppressed: tuple[str, ...], fault: str) -> None:
    assert [each.startswith(fault) for each in examined(*messages, suppressed=suppressed).problems].count(True) == 1


def test_what_cloudformation_sends_must_be_judged_the_same() -> None:
    rejected, another = examined(sent=DryRun(False, (GROUP,), "no")).problems
    assert rejected == "rejected as CloudFormation sends it: no"
    assert another.startswith("as CloudFormation sends it the validators say something else")


@pytest.mark.slow
@pytest.mark.validation
def test_settings_that_name_all_that_can_exist_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what is in the network that an earlier deployment made, of an account that is not the emulated one."""
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    for name, choose in {"in-another": everything, "in-its-own": in_its_own_network}.items():
        raw = edited("trn1-16", choose).model_dump(mode="json", exclude_unset=True) | {"name": name}
        (tmp_path / f"{name}.yaml").write_text(json.dumps(raw), encoding="utf-8")

    for outcome in outcomes(["in-another", "in-its-own"]):
        assert outcome.report, outcome.error
        assert outcome.report.problems == ()


@pytest.mark.slow
@pytest.mark.validation
def test_settings_may_be_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that synthesize take the folder that ULTRACLUSTER_CONFIG names; mypy tells a name from a path."""
    (tmp_path / "mine.yaml").write_bytes((options.CONFIG / "dev.yaml").read_bytes())
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    assert ultracluster("validate", "mine") == 0
