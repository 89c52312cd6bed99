"""Machines that have the tools of a deployment, and machines that lack some."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from scripts.check.preflight import tools
from scripts.check.preflight.check import Check
from scripts.check.preflight.runner import findings
from scripts.core.findings import FAIL, PASS, WARN, CheckStatus
from tests.parallelcluster_versions import OTHER, another_version
from tests.scripts.check.preflight.accounts import deployment_of, new_network
from ultracluster.domain.parallelcluster_versions import PINNED

NOWHERE = Path(__file__).parent / "there-is-no-such-directory"


def outcome(check: Check, zone_id: str = "usw2-az4", version: str = PINNED) -> tuple[CheckStatus, str]:
    raw = {**new_network(), "zone_id": zone_id}
    raw["cluster"]["parallelcluster_version"] = version
    [finding] = findings(check, deployment_of(raw))
    assert finding.hint or finding.status is PASS
    return finding.status, f"{finding.sentence}\n{finding.hint}"


def test_this_machine() -> None:
    for check in tools.CHECKS:
        assert check.permissions == (), "no account is needed"
        assert outcome(check)[0] is PASS


def test_a_machine_without_the_cdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(NOWHERE / "python"))
    status, text = outcome(tools.cdk_cli)
    assert status is FAIL
    assert f"there is no {NOWHERE}/cdk; needed: the CDK command line 2." in text


def test_a_version_of_the_settings_that_is_not_the_pinned_one() -> None:
    with another_version():
        status, text = outcome(tools.parallelcluster_package, version=OTHER)
    assert status is WARN
    assert text.startswith(
        f"aws-parallelcluster {PINNED} in .venv-pcluster; in the settings: {OTHER}, which was never run by"
    )


def test_warnings_of_the_settings() -> None:
    status, text = outcome(tools.settings, "usw2-az3")
    assert status is WARN
    assert "cluster.queues[0].compute_resources[0].instance_type: got 'trn1.32xlarge'" in text


def test_other_versions_than_those_that_are_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package.json").write_text(json.dumps({"dependencies": {"aws-cdk": "2.1"}}))
    (tmp_path / "cdk").touch()
    package = tmp_path / "node_modules/aws-cdk/package.json"
    package.parent.mkdir(parents=True)
    package.write_text(json.dumps({"version": "2.0"}))
    (tmp_path / ".venv-pcluster/lib/python3.11/site-packages/aws_parallelcluster-3.16.3.dist-info").mkdir(parents=True)
    monkeypatch.setattr(tools, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    status, text = outcome(tools.cdk_cli)
    assert (status, text.splitlines()[0]) == (FAIL, "CDK command line 2.0; pinned in package.json: 2.1")
    status, text = outcome(tools.parallelcluster_package)
    assert status is WARN
    assert text.startswith("aws-parallelcluster 3.16.3 in .venv-pcluster; in the settings: 3.16.1")
