"""What of ParallelCluster's messages would stop a deployment."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.machines.support import MachineError
from emulator.machines.trial import Trial
from scripts.check.validation import (
    Validation,
    ValidationOutcome,
    examine,
    has_custom_settings,
    outcomes,
    with_slurm,
)
from scripts.core import options
from scripts.core.report import Line
from scripts.emulated import controller
from tests.scripts.emulated.test_references import everything, in_its_own_network
from tests.stacks.deployments import Raw, edited
from toolchain.cluster import ClusterRequest
from toolchain.parallelcluster import DryRun, HeadNodeFiles, Message

KEY_PAIR = Message("WARNING", "KeyPairValidator", "no key")
SCRIPT = Message("WARNING", "AsyncTimedUrlValidator", "'script.sh' not found in 'nowhere'")
GROUP = Message("ERROR", "EfaPlacementGroupValidator", "must be explicit")
ACCEPTING = dict.fromkeys(("KeyPairValidator", "EfaPlacementGroupValidator"), "meant")


def examined(*messages: Message, suppressed: tuple[str, ...] = (), sent: DryRun | None = None) -> Validation:
    """Return the validation of a cluster of which the validators say this, unless it is suppressed."""

    class Fake:
        version = None

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


@pytest.mark.parametrize(
    ("reason", "trial", "text", "problems"),
    [
        ("no Linux", None, "slurmctld was not started on these settings: no Linux", ()),
        ("", MachineError("no space"), "slurmctld was not started on these settings: no space", ()),
        ("", Trial("24.11.5", "", ()), "slurmctld 24.11.5, not the cluster's 25.11.8, starts with these settings", ()),
        ("", Trial("24.11.5", "", ("A=1", "B=2")), "settings, without A=1, B=2, which it could not judge", ()),
        (
            "",
            Trial("24.11.5", "error: x\nfatal: y", ()),
            "slurmctld 24.11.5, not the cluster's 25.11.8, ended",
            ("slurmctld 24.11.5, not the cluster's 25.11.8, does not start with these settings: error: x\nfatal: y",),
        ),
    ],
    ids=["no machines", "no trial", "starts", "starts without some", "ends"],
)
def test_what_is_said_of_slurms_controller(
    reason: str, trial: Trial | MachineError, text: str, problems: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def try_controller(*_: object) -> Trial:
        if isinstance(trial, MachineError):
            raise trial
        return trial

    monkeypatch.setattr("emulator.machines.support.reason", lambda: reason)
    monkeypatch.setattr(controller, "machine_image", lambda _: Path("/image"))
    monkeypatch.setattr(controller, "try_controller", try_controller)
    fake: Any = SimpleNamespace(head_node_files=lambda _: HeadNodeFiles({}, {}))
    report = with_slurm(examined(), fake, {})

    assert report.slurm.endswith(text)
    assert report.problems == problems
    outcome = ValidationOutcome(deployment="d", report=report)
    assert outcome.code == (1 if problems else 0)
    lines = [str(block.content) for block in outcome.blocks() if isinstance(block, Line)]
    assert any(line.endswith(text) for line in lines)
    assert all("\n" not in line for line in lines)


@pytest.mark.parametrize(
    ("choose", "has"),
    [
        (lambda cluster: cluster.update(slurm={"idle_minutes": 5}), False),
        (lambda cluster: cluster.update(slurm={"custom_settings": {"KillWait": "5"}}), True),
        (lambda cluster: cluster["queues"][0].update(custom_slurm_settings={"MaxNodes": "4"}), True),
        (
            lambda cluster: cluster.update(
                overrides={"Scheduling": {"SlurmSettings": {"EnableMemoryBasedScheduling": True}}}
            ),
            False,
        ),
        (
            lambda cluster: cluster.update(
                overrides={
                    "Scheduling": {
                        "SlurmQueues": [
                            {
                                "Name": "trn1",
                                "ComputeResources": [{"Name": "trn1-32xl", "CustomSlurmSettings": {"TmpDisk": "5"}}],
                            }
                        ]
                    }
                }
            ),
            True,
        ),
    ],
)
def test_custom_settings_are_what_is_not_the_stacks_own(choose: Callable[[Raw], None], has: bool) -> None:
    assert has_custom_settings(edited("trn1-16", lambda raw: choose(raw["cluster"]))) == has


def with_a_limit(raw: Raw) -> None:
    raw["accounting"] = {}
    raw["cluster"]["queues"][0]["custom_slurm_settings"] = {"MaxTime": "7-0"}


@pytest.mark.slow
@pytest.mark.validation
@pytest.mark.system
def test_slurms_controller_is_started_on_custom_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    raw = edited("trn1-16", with_a_limit).model_dump(mode="json", exclude_unset=True)
    (tmp_path / "trn1-16.yaml").write_text(json.dumps(raw), encoding="utf-8")

    [outcome] = outcomes(["trn1-16"])

    assert outcome.report, outcome.error
    assert outcome.report.problems == ()
    assert "starts with these settings, without AccountingStorageEnforce=" in outcome.report.slurm


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


def test_settings_that_break_rules_wait_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulated AWS and ParallelCluster's code, which take seconds to start, are for the others."""
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    monkeypatch.delattr("scripts.check.validation.EmulatedAws")
    (tmp_path / "mine.yaml").write_text("name: mine\n", encoding="utf-8")
    [outcome] = outcomes(["mine"])
    assert (outcome.code, "region: " in outcome.error) == (2, True)
