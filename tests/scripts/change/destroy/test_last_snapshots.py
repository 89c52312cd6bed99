"""/home on a head node's volume has a last snapshot before anything is deleted, or nothing is deleted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from botocore.client import BaseClient

from config.settings import load
from scripts.account import homes
from scripts.account.deployment import Deployment
from scripts.account.stacks import CLUSTER
from scripts.change.destroy import head_node
from scripts.change.destroy.head_node import RootVolume, announcement
from scripts.change.destroy.model import DestroyOptions
from scripts.change.destroy.plan import Existing, decide
from scripts.check.estimate.products import table_dates
from scripts.core.clock import LONGEST_PAUSE
from scripts.core.options import CONFIG
from tests.command_line import Call
from tests.scripts.change.destroy.accounts import FastClock
from tests.scripts.operated import Operated
from tests.scripts.refusals import refusal
from tests.scripts.slurm_samples import IDLE, shell

DEPLOYMENT = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
KEY = "arn:aws:kms:us-west-2:111122223333:key/1"
EXISTING = Existing([{"StackName": "trn1-16", "StackStatus": "CREATE_COMPLETE"}], head_node=RootVolume("vol-1", 100))
DESTROY = ("destroy", "trn1-16", "--force", "--confirm", "trn1-16")


def test_the_plan_says_what_is_kept_what_it_costs_and_how_it_is_used_and_deleted() -> None:
    lost, kept, *_ = decide(DEPLOYMENT, EXISTING, DestroyOptions()).remarks
    assert lost == "Everything on the head node is lost, with /home, but for what a last snapshot has."
    for part in (
        "vol-1 (100 GiB, with /home)",
        f"at most $5.00 a month, by prices of {table_dates()}, until you delete it",
        "(aws ec2 delete-snapshot --snapshot-id ID --region us-west-2)",
        "`./ultracluster restore trn1-16`",
        "--no-final-backup makes none",
    ):
        assert part in kept
    assert "encrypted" not in kept
    assert f"encrypted with {KEY}" in announcement(DEPLOYMENT, RootVolume("vol-1", 100, key=KEY))


@pytest.mark.parametrize(
    ("final_backup", "says"),
    [(False, "without a last snapshot, as requested"), (True, "there is no head node that was ever ready")],
)
def test_the_plan_says_why_nothing_is_kept(final_backup: bool, says: str) -> None:
    options = DestroyOptions(final_backup=final_backup)
    assert says in decide(DEPLOYMENT, replace(EXISTING, head_node=None), options).remarks[0]


ON_VOLUME: Mapping[str, tuple[dict[str, Any] | None, bool]] = {
    "on the volume": ({"HeadNode": {}, "SharedStorage": [{"MountDir": "/fsx"}]}, True),
    "on ParallelCluster's EFS": ({"HeadNode": {"SharedStorageType": "Efs"}}, False),
    "on a file system": ({"HeadNode": {}, "SharedStorage": [{"MountDir": "home"}]}, False),
    "not known any more": (None, True),
}


@pytest.mark.parametrize("where", ON_VOLUME)
def test_home_is_where_the_deployed_cluster_has_it(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration, on_volume = ON_VOLUME[where]
    cluster = {"Type": CLUSTER, "Properties": {"ClusterConfiguration": configuration}}
    deployment = Deployment("trn1-16", DEPLOYMENT.settings)

    def template(_: str) -> dict[str, Any]:
        if configuration is None:
            raise refusal("ValidationError", "GetTemplate", "Stack with id trn1-16-cluster does not exist")
        return {"Resources": {"Cluster": cluster}}

    monkeypatch.setattr(deployment, "template", template)
    assert homes.on_head_node(deployment) is on_volume


def test_destroyed_it_leaves_a_snapshot_that_restore_and_inventory_know(
    operated: Operated, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    operated.shell(shell(IDLE))
    monkeypatch.setenv(LONGEST_PAUSE, "0.1")
    api_call, is_refused, asked = BaseClient._make_api_call, True, list[str]()

    def made(client: BaseClient, operation: str, parameters: Mapping[str, Any]) -> Any:
        asked.append(operation)
        if operation == "CreateSnapshot" and is_refused:
            raise refusal("SnapshotLimitExceeded", operation, "too many")
        return api_call(client, operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", made)
    refused = call(*DESTROY)
    assert refused.code == 1
    assert "The last snapshot of the head node failed, so nothing is deleted; the fleet is stopped:" in refused.error
    assert "--no-final-backup deletes it without one" in refused.error
    assert not [each for each in asked if each.startswith("Delete")]

    is_refused = False
    code, output, errors = call(*DESTROY)
    assert code == 0, errors
    [listed] = json.loads(call("restore", "trn1-16", "--list", "-o", "json").output)["snapshots"]
    assert (listed["cluster"], listed["id"] in output) == ("trn1-16", True)
    assert f"aws ec2 delete-snapshot --snapshot-id {listed['id']} --region us-west-2" in " ".join(output.split())
    resources = json.loads(call("inventory", "trn1-16", "-o", "json").output)["resources"]
    [kept] = [each for each in resources if each["id"] == listed["id"]]
    assert (kept["stack"], kept["holds_data"]) == ("(kept)", True)
    assert kept["dollars_per_month"] == pytest.approx(listed["gib"] * 0.05)


def test_a_snapshot_that_fails_or_that_an_interrupted_call_made(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    operated.shell("exit 0")
    deployment, said = operated.deployment(), list[str]()
    volume = head_node.collect(deployment)
    assert volume is not None
    clock = FastClock()
    first = head_node.back_up(deployment, volume, clock, said.append)
    assert head_node.back_up(deployment, volume, clock, said.append) == first
    clock.sleep(1801)
    second = head_node.back_up(deployment, volume, clock, said.append)
    assert second != first  # people may have worked since
    clock.sleep(1801)
    monkeypatch.setattr(Deployment, "stack", lambda *_: {"StackStatus": "DELETE_IN_PROGRESS", "Tags": []})
    assert head_node.back_up(deployment, volume, clock, said.append) in (first, second)
    assert not [each for each in said if "lacks" in each]
