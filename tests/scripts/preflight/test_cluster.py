"""The dry run of ParallelCluster: its rights, what it leaves out, and that it leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import load
from emulator.aws import ACCOUNT, EmulatedAws
from emulator.inventory import inventory
from scripts import emulated
from scripts.commands.validate import CONFIG
from scripts.deployment import Deployment
from scripts.preflight import cluster, names
from scripts.preflight.check import Finding, Status
from scripts.preflight.cluster import parallelcluster
from scripts.preflight.runner import findings
from tests.deployed import create_stacks
from tests.scripts.preflight.cases_data import SECRET, accounting, with_secret
from tests.scripts.preflight.cases_network import existing
from tests.scripts.preflight.conftest import REGION, GoodAccount
from tests.scripts.preflight.deployed import assembly, deployed, stack
from tests.stacks.deployments import Deployment as Synthesized
from toolchain import parallelcluster as toolchain_parallelcluster
from toolchain.cluster import ClusterRequest
from toolchain.parallelcluster import Message, ParallelCluster, Verdict
from toolchain.synthesis import synthesize

pytestmark = pytest.mark.validation

Configured = Callable[..., GoodAccount]


@pytest.fixture
def configured(good_account: Callable[..., GoodAccount], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configured:
    """Return a function that makes the good account of an edited configuration, by default with network and storage.

    The check finds its app synthesized.
    """
    monkeypatch.setattr(cluster, "synthesize", lambda environment, *_: assembly(environment))

    def make(edit: Callable[[dict[str, Any]], object], base: str = "trn1-16", *, deploy: bool = True) -> GoodAccount:
        raw = yaml.safe_load((CONFIG / f"{base}.yaml").read_text())
        edit(raw)
        path = tmp_path / "edited.yaml"
        path.write_text(yaml.safe_dump(raw))
        environment = str(path.with_suffix(""))
        account = good_account(environment, load(path))
        if deploy:
            deployed(environment)(account)
        return account

    return make


def everything(raw: dict[str, Any]) -> None:
    """Use whatever settings have for which validators look at something else."""
    cluster = raw["cluster"]
    cluster["custom_ami"] = "ami-0123456789abcdef0"
    cluster["head_node"].update(ssh_key_name="mine", ssh_cidr="203.0.113.0/24")
    cluster["login_nodes"] = [{"name": "login"}]
    grouped, placed = ({**cluster["queues"][0], "name": name} for name in ("grouped", "placed"))
    group = f"arn:aws:resource-groups:{REGION}:{ACCOUNT}:group/reservations"
    small = {"name": "trn1-32xl", "max_count": 1}
    grouped["compute_resources"] = [{**small, "capacity_reservation_group_arn": group}]
    placed.update(placement_group=None, existing_placement_group="theirs", compute_resources=[small])
    cluster["queues"] += [grouped, placed]


def restricted(account: GoodAccount, monkeypatch: pytest.MonkeyPatch, *actions: str) -> list[Finding]:
    """Return what is found with certain rights only."""
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    with account.aws.restricted({"Version": "2012-10-17", "Statement": [statement]}) as settings:
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        return list(account.look(parallelcluster))


def answered(found: list[Finding]) -> set[tuple[str, Status]]:
    return {(each.subject, each.status) for each in found}


def test_the_rights_suffice_but_for_launches(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    account = configured(everything, "reserved")
    rights = [permission.action for permission in parallelcluster.permissions]
    found = restricted(account, monkeypatch, *rights)
    passed = {("", Status.PASS), ("EfaPlacementGroupValidator", Status.PASS)}
    assert answered(found) == passed | {("launches", Status.SKIP)}
    assert "ec2:RunInstances" in found[-1].sentence
    assert answered(restricted(account, monkeypatch, *rights, "ec2:RunInstances")) == passed


def test_other_rights_than_that_to_launch_are_missing_too(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(text: str) -> Message:
        return Message("ERROR", "HeadNodeLaunchTemplateValidator", text)

    launching = "You are not authorized to perform this operation."
    account = configured(lambda _: None)
    refused = (refuse(launching), refuse("User: u is not authorized to perform: ec2:DescribeImages"))
    monkeypatch.setattr(ParallelCluster, "create", lambda *_, **__: Verdict(False, refused, "refused"))
    assert answered(list(account.look(parallelcluster))) == {
        ("HeadNodeLaunchTemplateValidator", Status.UNKNOWN),
        ("launches", Status.SKIP),
    }


@pytest.mark.thorough
@pytest.mark.slow
def test_each_right_is_needed(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    account = configured(everything, "reserved")
    stack(account, "reserved-cluster")
    rights = {permission.action for permission in parallelcluster.permissions} | {"ec2:RunInstances"}
    superfluous = {
        right
        for right in rights
        if {status for _, status in answered(restricted(account, monkeypatch, *(rights - {right})))} == {Status.PASS}
    }
    assert superfluous == {"sts:GetCallerIdentity"}  # which needs no right, but has a name


def test_it_leaves_nothing_behind(configured: Configured) -> None:
    account = configured(lambda _: None)
    before = inventory(account.aws, REGION)
    assert set(account.statuses(parallelcluster)) == {Status.PASS}
    assert inventory(account.aws, REGION) == before


def test_an_existing_vpc_is_enough(configured: Configured) -> None:
    *_, found = configured(existing, deploy=False).look(parallelcluster)
    assert found.status is Status.PASS
    assert "brings: file system, node scripts, placement groups, policies, security groups" in found.sentence


def test_every_warning_is_told_once_with_what_to_do(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    def accept(raw: dict[str, Any]) -> None:
        raw["cluster"]["accepted_warnings"] = [{"validator": "UrlValidator", "reason": "nodes can read it"}]

    types = ("DuplicateMountDirValidator", "DcvValidator", "UrlValidator", "KeyPairValidator")
    warnings = [Message("WARNING", name, f"{name} warns") for name in types]
    error = Message("ERROR", "UrlValidator", "no URL")
    said = (*warnings, *warnings, error, Message("INFO", "DeletionPolicyValidator", "kept"))
    asked = []

    def create(_: ParallelCluster, request: ClusterRequest, *, strings: bool) -> Verdict:
        asked.append((sorted(request.properties), strings))
        return Verdict(False, said, "refused")

    account = configured(accept)
    monkeypatch.setattr(ParallelCluster, "create", create)
    found = list(account.look(parallelcluster))
    assert asked == [(["ClusterConfiguration", "ClusterName"], True)], "nothing is suppressed"
    assert [(each.subject, each.status) for each in found] == [
        ("DuplicateMountDirValidator", Status.FAIL),
        ("DcvValidator", Status.FAIL),
        ("UrlValidator", Status.PASS),
        ("KeyPairValidator", Status.PASS),
        ("UrlValidator", Status.FAIL),
    ]
    broken, not_accepted, accepted, by_settings, error_of_accepted = found
    assert "means a broken cluster" in broken.hint
    assert "cluster.accepted_warnings: [{validator: DcvValidator, reason: ...}]" in not_accepted.hint
    assert accepted.sentence == "WARNING: UrlValidator warns (accepted: nodes can read it)"
    assert "accepted: no SSH key" in by_settings.sentence
    assert error_of_accepted.sentence == "ERROR: no URL"


def test_a_secret_that_may_not_be_read_stops_the_deployment(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = configured(accounting)
    with_secret()(account)
    rights = [permission.action for permission in parallelcluster.permissions]
    found = restricted(account, monkeypatch, *rights, "ec2:RunInstances")
    key_pair = ("KeyPairValidator", Status.PASS)
    assert answered(found) == {key_pair, ("PasswordSecretArnValidator", Status.UNKNOWN)}
    assert SECRET in found[-1].sentence
    assert answered(list(account.look(parallelcluster))) == {key_pair, ("", Status.PASS)}


def test_without_the_package(good_account: Callable[..., GoodAccount], monkeypatch: pytest.MonkeyPatch) -> None:
    account = good_account()
    deployed()(account)
    monkeypatch.setattr(toolchain_parallelcluster, "PYTHON", Path("/nowhere/python"))
    [found] = account.look(parallelcluster)
    assert (found.status, found.hint) == (Status.UNKNOWN, "`make preflight ENV=trn1-16` sets it up")


def test_a_running_cluster_is_known_and_not_touched(
    rehearsed_aws: EmulatedAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in rehearsed_aws.settings.items():
        monkeypatch.setenv(name, value)
    settings = load(CONFIG / "dev.yaml")
    synthesize("dev", tmp_path)
    emulated.create_prerequisites(rehearsed_aws, settings)
    emulated.bootstrap(rehearsed_aws, settings)
    create_stacks(rehearsed_aws, Synthesized(settings, tmp_path))
    before, events = inventory(rehearsed_aws, settings.region), stack_events(rehearsed_aws, settings.region)
    deployment = Deployment("dev", settings)
    *_, found = findings(parallelcluster, deployment)
    assert found.status is Status.PASS
    assert found.sentence.endswith("brings: node scripts")
    known = [each for check in (names.stack_names, names.cluster_name) for each in findings(check, deployment)]
    assert [(each.status, "ours to update" in each.sentence) for each in known] == [(Status.PASS, True)] * 5
    assert inventory(rehearsed_aws, settings.region) == before
    assert stack_events(rehearsed_aws, settings.region) == events


def stack_events(aws: EmulatedAws, region: str) -> list[str]:
    """Return the ids of all that happened to the cluster's own stack."""
    pages = aws.client("cloudformation", region).get_paginator("describe_stack_events").paginate(StackName="dev")
    return [event["EventId"] for page in pages for event in page["StackEvents"]]
