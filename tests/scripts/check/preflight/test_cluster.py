"""The dry run of ParallelCluster: what is asked of it, and what its messages mean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from config.settings import Settings
from emulator.inventory import inventory
from scripts.account.deployment import Account, Deployment
from scripts.check.preflight import cluster
from scripts.check.preflight.catalog import policy
from scripts.check.preflight.cluster import parallelcluster
from scripts.check.preflight.runner import findings
from scripts.core import options
from scripts.core.findings import FAIL, PASS, SKIP, UNKNOWN, WARN, CheckStatus, Finding
from tests.parallelcluster_versions import OTHER, another_version
from tests.scripts.check.preflight.accounts import REGION, AlteredAccount, new_network, stacks
from tests.scripts.operated import Operated
from toolchain.cluster import ClusterRequest
from toolchain.deployed import NOT_YET
from toolchain.parallelcluster import DryRun, Message
from ultracluster.domain.parallelcluster_versions import PINNED

LAUNCH = "HeadNodeLaunchTemplateValidator"


@pytest.fixture
def configuration() -> dict[str, Any]:
    """What the provider would get for the cluster, shortened."""
    return {"HeadNode": {"Networking": {"SubnetId": "subnet-1"}}}


@pytest.fixture
def ask(account: Account, configuration: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs the check with a dry_run of ParallelCluster: its findings, what was asked."""

    def called(
        messages: Sequence[Message] = (), *, accepted: bool = True, reason: str = "", edit: Any = bool, **answers: Any
    ) -> tuple[list[Finding], list[ClusterRequest]]:
        raw = new_network()
        edit(raw)
        deployment = Deployment("mine", Settings.model_validate(raw))
        deployment.account = AlteredAccount(account, answers)
        request = ClusterRequest(REGION, {"ClusterName": "trn1-16", "ClusterConfiguration": configuration}, {})
        process = MagicMock()
        process.create.return_value = DryRun(accepted, tuple(messages), reason)
        process.__enter__.return_value = process
        monkeypatch.setattr(cluster, "_request", lambda _: (request, ["node scripts"]))
        monkeypatch.setattr(cluster, "ParallelCluster", lambda _: process)
        results = list(findings(parallelcluster, deployment))
        assert all(call.kwargs == {"strings": True} for call in process.create.call_args_list)
        return results, [call.args[0] for call in process.create.call_args_list]

    return called


def test_no_objection_to_a_cluster_that_exists(ask: Any) -> None:
    [finding], [asked] = ask(describe_stacks=stacks(**{"trn1-16": {}}))
    assert finding.status is PASS
    assert finding.sentence.endswith("have no objection; left out is what the deployment brings: node scripts")
    assert asked.name == "preflight", "a name that is free"


def test_the_cluster_is_that_of_the_file_in_the_folder_in_use(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not one of its name that this checkout has."""
    (tmp_path / "dev.yaml").write_text(json.dumps(new_network() | {"name": "dev"}), encoding="utf-8")
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    read: list[Path] = []
    monkeypatch.setattr(cluster, "synthesize", lambda path, *_: read.append(path))
    monkeypatch.setattr(cluster, "cluster_request", MagicMock(side_effect=LookupError))
    deployment = Deployment("dev", options.settings_of("dev"))
    deployment.account = account
    list(findings(parallelcluster, deployment))
    assert read == [tmp_path / "dev.yaml"]


def test_of_a_version_whose_package_is_not_here_the_check_says_who_answered(ask: Any) -> None:
    def of_another(raw: dict[str, Any]) -> None:
        raw["cluster"]["parallelcluster_version"] = OTHER

    with another_version():
        [passed, open_question], [_] = ask(edit=of_another)
    assert passed.sentence.startswith(f"the validators of ParallelCluster {PINNED} have no objection")
    assert (open_question.status, open_question.subject) == (WARN, "version")
    assert f"ParallelCluster {OTHER}, whose own code was not asked" in open_question.sentence


def test_before_there_are_subnets_it_is_too_early(ask: Any, configuration: dict[str, Any]) -> None:
    configuration["HeadNode"]["Networking"]["SubnetId"] = NOT_YET
    [finding], asked = ask()
    assert (finding.status, asked) == (SKIP, [])
    assert "./ultracluster validate mine" in finding.hint


def test_a_request_that_fails_before_the_validators(ask: Any) -> None:
    [finding], _ = ask(accepted=False, reason="no official ParallelCluster AMI")
    assert (finding.status, finding.sentence) == (FAIL, "ERROR: no official ParallelCluster AMI")
    assert "./ultracluster validate mine" in finding.hint


def test_missing_permissions(ask: Any) -> None:
    messages = [
        (LAUNCH, "You are not authorized to perform this operation."),
        (LAUNCH, "User: u is not authorized to perform: ec2:DescribeImages"),
        ("PasswordSecretArnValidator", "lack of permissions to describe the secret"),
    ]
    results, _ = ask([Message("ERROR", *each) for each in messages], accepted=False)
    of_validators = {(LAUNCH, UNKNOWN), ("PasswordSecretArnValidator", UNKNOWN)}
    assert {(each.subject, each.status) for each in results} == {*of_validators, ("launches", SKIP)}
    results, _ = ask([Message("ERROR", *messages[0])], accepted=False)
    assert {(each.subject, each.status) for each in results} == {("", PASS), ("launches", SKIP)}


def test_every_warning_is_reported_once_with_what_to_do(ask: Any) -> None:
    def accept(raw: dict[str, Any]) -> None:
        raw["cluster"]["accepted_warnings"] = [{"validator": "UrlValidator", "reason": "nodes can read it"}]

    types = ("DuplicateMountDirValidator", "DcvValidator", "UrlValidator", "KeyPairValidator")
    warnings = [Message("WARNING", name, f"{name} warns") for name in types]
    error = Message("ERROR", "UrlValidator", "no URL")
    text = (*warnings, *warnings, error, Message("INFO", "DeletionPolicyValidator", "kept"))
    results, [asked] = ask(text, accepted=False, edit=accept)
    assert sorted(asked.properties) == ["ClusterConfiguration", "ClusterName"], "nothing is suppressed"
    assert [(each.subject, each.status) for each in results] == [
        ("DuplicateMountDirValidator", FAIL),
        ("DcvValidator", FAIL),
        ("UrlValidator", PASS),
        ("KeyPairValidator", PASS),
        ("UrlValidator", FAIL),
    ]
    broken, not_accepted, accepted, by_settings, error_of_accepted = results
    assert "means a broken cluster" in broken.hint
    assert "cluster.accepted_warnings: [{validator: DcvValidator, reason: ...}]" in not_accepted.hint
    assert accepted.sentence == "WARNING: UrlValidator warns (accepted: nodes can read it)"
    assert "accepted: no SSH key" in by_settings.sentence
    assert error_of_accepted.sentence == "ERROR: no URL"


def test_what_does_not_exist_yet_is_left_out_where_the_configuration_is_valid_without() -> None:
    left_out: set[str] = set()
    value = {
        "AdditionalSecurityGroups": ["sg-1", NOT_YET],
        "SharedStorage": [{"FileSystemId": NOT_YET}],
        "CustomActions": {"OnNodeConfigured": {}},
        "Queues": [{"PlacementGroup": {"Name": NOT_YET}}, {"PlacementGroup": {"Name": "theirs"}}],
        "SubnetId": NOT_YET,
    }
    assert cluster._existing(value, left_out) == {
        "AdditionalSecurityGroups": ["sg-1"],
        "Queues": [{"PlacementGroup": {"Enabled": True}}, {"PlacementGroup": {"Name": "theirs"}}],
        "SubnetId": NOT_YET,
    }
    assert left_out == {"security groups", "file system", "node scripts", "placement groups"}


@pytest.mark.slow
@pytest.mark.validation
def test_a_running_cluster_is_not_touched_and_the_permissions_suffice(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answered() -> set[tuple[str, CheckStatus]]:
        results = findings(parallelcluster, Deployment("trn1-16", operated.settings))
        return {(each.subject, each.status) for each in results}

    passed = {("", PASS), ("KeyPairValidator", PASS)}
    before = inventory(operated.aws, REGION)
    assert answered() == passed
    assert inventory(operated.aws, REGION) == before
    with operated.aws.restricted(policy([parallelcluster])) as environment:
        operated.act_as(environment, monkeypatch)
        assert answered() == passed | {("launches", SKIP)}
