"""The next sensible command, which a person at a terminal is told after a command's result."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from tests.command_line import ultracluster
from tests.scripts.change.destroy.accounts import Terminal

HEALTHY = {"with_diagnosis": Mock(), "failed": False, "exists": True, "healthy": True}
DRIFT = {"ok": False, "busy": (), "drifts": ("one",), "deployed": True}
FLEET = ("account.compute_fleet.known_status", "change.fleet.document.collect")

ACCOUNT = {"account.deployment.Deployment": SimpleNamespace(name="trn1-16", account=Mock())}


def results(module: str, **result: Any) -> dict[str, Any]:
    """Return what replaces the function that collects a result."""
    return {module: SimpleNamespace(**result)}


RESOURCE, LEFT_OVER = SimpleNamespace(stack="trn1-16"), SimpleNamespace(stack="(left over)")
CASES: list[tuple[str, dict[str, Any], str]] = [
    ("status", results("watch.status.collect.collect", **HEALTHY), "jobs list trn1-16"),
    (
        "status",
        results("watch.status.collect.collect", **HEALTHY | {"exists": False, "healthy": False}),
        "plan trn1-16  # nothing is deployed",
    ),
    (
        "status",
        results("watch.status.collect.collect", **HEALTHY | {"healthy": False}),
        "diagnose trn1-16",
    ),
    ("status --watch --timeout 9", {"watch.progress.watch.watch": 0}, "status trn1-16"),
    (
        "diagnose",
        results("watch.diagnose.diagnose.diagnose", failed=False),
        "status trn1-16",
    ),
    (
        "diagnose",
        results("watch.diagnose.diagnose.diagnose", failed=True, operation="one"),
        "plan trn1-16  # once the cause is removed",
    ),
    (
        "drift",
        results("watch.drift.detection.detect", **DRIFT),
        "plan trn1-16  # what a deployment would change",
    ),
    (
        "drift",
        results("watch.drift.detection.detect", **DRIFT | {"busy": ("cluster",)}),
        "status trn1-16 --watch",
    ),
    (
        "inventory",
        results("watch.inventory.resources.inventory", resources=(RESOURCE,), not_listed=()),
        "destroy trn1-16 --dry-run  # what could be deleted",
    ),
    (
        "inventory",
        results("watch.inventory.resources.inventory", resources=(LEFT_OVER,), not_listed=()),
        "destroy trn1-16 --all --sweep  # what is left over",
    ),
    ("fleet status", {name: SimpleNamespace(queues=()) for name in FLEET}, "jobs list trn1-16"),
    ("fleet status", {name: SimpleNamespace(queues=None) for name in FLEET}, "diagnose trn1-16"),
    ("fleet stop", dict.fromkeys([*FLEET, "change.fleet.control.stop"]), "fleet start trn1-16"),
    ("fleet start", dict.fromkeys([*FLEET, "change.fleet.control.start"]), "jobs list trn1-16"),
    (
        "destroy --confirm trn1-16",
        {
            "change.destroy.run.run": (SimpleNamespace(outcome="all", ok=True), None),
        },
        "inventory trn1-16  # what is left, and what it costs",
    ),
    ("restore", {"change.restoration.restore": SimpleNamespace(id="snap-1")}, "ssh trn1-16"),
    (
        "runs list",
        {"use.runs.list_runs": SimpleNamespace(total=1, runs=(SimpleNamespace(directory="a", problem="p", job="12"),))},
        "jobs logs trn1-16 12  # the newest job",
    ),
    (
        "costs",
        results("use.costs.costs.collect"),
        "jobs list trn1-16",
    ),
    (
        "jobs list",
        {"use.jobs.list_jobs": SimpleNamespace(running=0, waiting=0, jobs=(), waits=(), ended=None)},
        "submit --help  # how to submit a training run",
    ),
    *(
        ("jobs list", {"use.jobs.list_jobs": SimpleNamespace(jobs=jobs, waits=(), ended=ended)}, following)
        for jobs, ended, following in (
            ([SimpleNamespace(id="17_1", state="RUNNING")], None, "jobs logs trn1-16 17_1 --follow"),
            ([SimpleNamespace(id="17_[2-9%4]", state="RUNNING")], None, "jobs show trn1-16 17"),
            ((), [SimpleNamespace(id="12")], "jobs logs trn1-16 12"),
        )
    ),
    ("jobs cancel 12 --yes", {"use.jobs.cancel": SimpleNamespace(not_cancelled=())}, "jobs list trn1-16"),
    *(
        ("jobs show 12", {"use.jobs.show": SimpleNamespace(job=SimpleNamespace(output=output, number="12"))}, following)
        for output, following in (("/fsx/out", "jobs logs trn1-16 12"), ("", "jobs list trn1-16"))
    ),
    ("logs --list", {"watch.logs.show.list_nodes": None}, "logs trn1-16 slurmctld --follow  # or another of these"),
    (
        "plan --assembly build",
        results("check.plan.plan.make_plan", ok=False) | ACCOUNT,
        "plan trn1-16  # again, once what blocks it is fixed",
    ),
    (
        "plan --assembly build",
        results("check.plan.plan.make_plan", ok=True, empty=True) | ACCOUNT,
        "status trn1-16",
    ),
    (
        "preflight",
        results("check.preflight.runner.watch", ok=False),
        "preflight trn1-16  # again, after the fixes above",
    ),
    (
        "validate trn1-16 dev",
        {"check.validation.outcomes": [SimpleNamespace(code=0, blocks=list)]},
        "preflight trn1-16  # then the others",
    ),
    ("image render", {"change.image.build.render": Mock(next_steps=str)}, "image build trn1-16"),
    (
        "image build --yes",
        {"change.image.build.render": Mock(following=str), "change.image.build.start": 0},
        "plan trn1-16  # once cluster.custom_ami names the image",
    ),
    (
        "pipeline synth",
        {"change.pipeline.synthesize": 0},
        "pipeline deploy  # with credentials of the account, once build/pipeline is reviewed",
    ),
    (
        "pipeline review main",
        {"check.review.review.write": ["dev"]},
        "plan dev  # what it would do to what is running; comments are in build/review",
    ),
    ("pipeline deploy --yes", {"change.pipeline.deploy": (0, [])}, "pipeline outputs read  # what a workflow gets"),
]


@pytest.mark.parametrize(("words", "replaced", "following"), CASES)
def test_the_next_command_is_named_at_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    replaced: dict[str, Any],
    following: str,
) -> None:
    monkeypatch.setenv("ULTRACLUSTER_DEPLOYMENT", "trn1-16")
    for name, result in {"account.operations.check": None, "core.terminal.show": None, **replaced}.items():
        monkeypatch.setattr(f"scripts.{name}", Mock(return_value=result))
    assert ultracluster(*words.split()) in (0, 1)
    assert "Next:" not in "".join(capsys.readouterr())
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    assert ultracluster(*words.split()) in (0, 1)
    assert stderr.getvalue().endswith(f"\nNext: ./ultracluster {following}\n")
