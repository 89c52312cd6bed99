"""Who is told of the lives of instances, and the agents that nodes have of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from moto.ec2.models import ec2_backends, instances
from moto.ec2.models.elastic_block_store import EBSBackend

from emulator.agents import Agents
from emulator.aws import ACCOUNT, EmulatedAws
from emulator.clients import Clients, Endpoint
from emulator.moto_patches import lives, volumes
from tests.emulator.account import REGION, Account

TYPE = "trn1.32xlarge"


class Diary(lives.InstanceListener):
    def __init__(self) -> None:
        self.entries: list[str] = []

    def launched(self, region: str, instance_id: str, tags: Mapping[str, str]) -> None:
        self.entries.append(f"launched {region} {dict(tags)}")

    def stopped(self, region: str, instance_id: str) -> None:
        self.entries.append("stopped")

    def started(self, region: str, instance_id: str) -> None:
        self.entries.append("started")

    def rebooted(self, region: str, instance_id: str) -> None:
        self.entries.append("rebooted")

    def terminated(self, region: str, instance_id: str) -> None:
        self.entries.append("terminated")

    def saved(self, instance_id: str, snapshot_id: str) -> None:
        self.entries.append("saved")

    def attached(self, instance_id: str, volume_id: str, snapshot_id: str) -> None:
        self.entries.append("attached")

    def detached(self, instance_id: str, volume_id: str) -> None:
        self.entries.append("detached")


@pytest.fixture
def diary(monkeypatch: pytest.MonkeyPatch) -> Diary:
    diary = Diary()
    monkeypatch.setattr(lives, "LISTENERS", [diary])
    return diary


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(instances, "Instance", lives.LivingInstance)
    ec2 = ec2_backends[ACCOUNT][REGION]
    yield ec2
    ec2.reset()


def launch(ec2: Any, **options: Any) -> Any:
    tags = {"instance": {"Name": "n"}}
    reservation = ec2.run_instances(
        "ami-0",
        1,
        None,
        [],
        instance_type=TYPE,
        is_instance_type_default=True,
        region_name=REGION,
        tags=tags,
        **options,
    )
    return reservation.instances[0]


def test_a_listener_follows_a_life_from_its_launch_to_its_end(ec2: Any, diary: Diary) -> None:
    node = launch(ec2)
    assert diary.entries == [], "it is not complete yet"
    node.announce()
    for action in ("stop", "stop", "reboot", "start", "start", "reboot", "terminate", "terminate", "reboot"):
        getattr(node, action)()
    told = ["stopped", "started", "rebooted", "terminated"]
    assert diary.entries == [f"launched {REGION} {{'Name': 'n'}}", *told]


def test_a_shutdown_from_inside_ends_only_what_runs(ec2: Any, diary: Diary) -> None:
    node = launch(ec2, instance_initiated_shutdown_behavior="terminate")
    node.announce()
    for _ in range(2):
        lives.shut_down(REGION, node.id)
    assert diary.entries[1:] == ["terminated"]
    assert node.state_reason.code == "Client.InstanceInitiatedShutdown"


def test_a_node_without_a_shell_of_its_own_has_no_agent() -> None:
    agents = Agents(Clients(Endpoint()))
    agents.shells = {"i-1": ["env", "NODE=one"]}.get
    assert [agents.answers(each) for each in ("i-1", "i-2")] == [True, False]
    assert agents.run("i-2", "true", 9, None) is None
    run = agents.run("i-1", 'echo "on $NODE"; cat; exit 3', 60, None)
    assert run
    run.wait(60)
    assert (run.status, run.code, run.output["stdout"]) == ("Failed", 3, "on one\n")
    agents.shell = "cat"
    run = agents.run("i-2", "for tests", 60, None)
    assert run
    run.wait(60)
    assert (run.status, run.output["stdout"]) == ("Success", "for tests")


def test_all_instances_of_a_launch_have_its_profile(aws: EmulatedAws) -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html, IamInstanceProfile
    account = Account(aws)
    aws.client("iam", "us-east-1").create_instance_profile(InstanceProfileName="node")
    ids = account.launch(2, IamInstanceProfile={"Name": "node"})
    assert all(each["IamInstanceProfile"]["Arn"].endswith("/node") for each in account.instances(*ids))


def test_an_instance_that_cannot_be_launched_is_terminated_and_says_why(ec2: Any, diary: Diary) -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html
    node = launch(ec2)
    node.announce()
    lives.fail(REGION, node.id, "no place")
    assert (node.state, node.state_reason.message) == ("terminated", "Server.InternalError: no place")
    assert diary.entries[1:] == ["terminated"]


def test_a_root_volume_is_saved_and_its_copy_comes_and_goes(
    ec2: Any, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "create_snapshot", "attach_volume", "detach_volume":
        monkeypatch.setattr(EBSBackend, name, getattr(EBSBackend, name))  # what is set below is taken back
    volumes.tell_of_volumes()
    instance = launch(ec2)
    [root] = [each.volume_id for each in instance.block_device_mapping.values()]
    snapshot = ec2.create_snapshot(root, "a copy")
    other = ec2.create_volume(8, f"{REGION}a")
    ec2.attach_volume(other.id, instance.id, "/dev/sdg")
    ec2.create_snapshot(other.id, "of no root volume")
    volume = ec2.create_volume(8, f"{REGION}a", snapshot.id)
    ec2.attach_volume(volume.id, instance.id, "/dev/sdf")
    ec2.detach_volume(volume.id, instance.id, "/dev/sdf")
    assert [each for each in diary.entries if not each.startswith("launched")] == ["saved", "attached", "detached"]
