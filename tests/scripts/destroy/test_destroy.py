"""The end of a deployment: what stands against it, what is deleted, what an interruption leaves to the next call."""

import re
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from config.settings import Settings, load
from emulator.aws import EmulatedAws
from emulator.inventory import inventory
from scripts import emulated
from scripts.command import CONFIG, run
from scripts.commands import destroy
from scripts.destroy import destroy as destruction
from scripts.destroy import stacks as destruction_stacks
from scripts.emulated import reason_to_stay
from scripts.inventory.leftovers_model import FINAL_BACKUP
from tests.scripts.account import Operated
from tests.scripts.destroy.destroying import FastClock, KilledError, Killer, Terminal
from tests.scripts.destroy.remains import leave_in_network

EVERYTHING = ("cluster", "monitoring", "storage", "network")


def program(*arguments: str) -> int:
    return run(destroy.arguments().parse_args(arguments), destroy.program)


def told(_: str) -> None:
    """Take no notice of progress."""


def counted(aws: EmulatedAws, settings: Settings) -> Counter[str]:
    """Return how many of each type there are, but for what AWS, too, leaves on purpose."""
    found = inventory(aws, settings.region)
    return Counter(kind for kind, name in found if not reason_to_stay(settings, kind, name))


def untouched(settings: Settings) -> Counter[str]:
    """Return the same of an account to which nothing was deployed."""
    with EmulatedAws() as aws:
        emulated.create_prerequisites(aws, settings)
        emulated.bootstrap(aws, settings)
        return counted(aws, settings)


@pytest.mark.slow
def test_killed_after_each_change_it_goes_on_and_leaves_nothing(
    deploy_operated: Callable[..., Operated], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load(CONFIG / "trn1-16.yaml")
    operated = deploy_operated(settings)
    operated.launch(2)
    network = operated.deployment().physical_ids("trn1-16-network").values()
    vpc, subnet = (next(each for each in network if each.startswith(kind)) for kind in ("vpc-", "subnet-"))
    wish: dict[str, Any] = {"parts": EVERYTHING, "unprotect": True, "force": True, "sweep": True}
    killer, left = Killer(), set[str]()
    for _ in range(40):
        try:
            with killer.at_work(monkeypatch) as clock:
                outcome = destruction.destroy(operated.deployment(), clock=clock, say=told, **wish)
            break
        except KilledError:
            if not left and operated.deployment().stack("trn1-16") is None:
                left = leave_in_network(operated.client("ec2"), "trn1-16", vpc, subnet)
    else:
        pytest.fail(f"never ended: {killer.points}")
    assert outcome.failures == []
    assert {
        "DeleteStack",
        "UpdateTerminationProtection",
        "CreateBackup",
        "DeleteFileSystem",
        "DeleteLogGroup",
        "DeleteNetworkInterface",
        "DeleteSecurityGroup",
        "TerminateInstances",
    } <= set(killer.calls)
    assert {"STOP_REQUESTED", "look every 10 s", "look every 30 s"} <= set(killer.points)
    assert killer.calls.count("CreateBackup") == 1
    assert counted(operated.aws, settings) == untouched(settings)
    assert all(each.kept for each in outcome.left or [])
    backups = operated.client("fsx").describe_backups()["Backups"]
    assert [{tag["Key"]: tag["Value"] for tag in each["Tags"]}[FINAL_BACKUP] for each in backups] == ["trn1-16"]


@pytest.mark.slow
def test_tries_again_while_instances_hold_the_placement_group(
    deploy_operated: Callable[..., Operated], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    operated = deploy_operated(load(CONFIG / "dev.yaml"))
    operated.aws.inject("stopping")
    tags = [{"Key": "parallelcluster:cluster-name", "Value": "dev"}]
    volume = operated.client("ec2").create_volume(
        AvailabilityZone="us-west-2a",
        Size=100,
        VolumeType="gp3",
        TagSpecifications=[{"ResourceType": "volume", "Tags": tags}],
    )["VolumeId"]

    class Mending(FastClock):
        def sleep(self, seconds: float) -> None:
            if seconds == destruction_stacks.PAUSE:
                operated.aws.clear_faults()
            super().sleep(seconds)

    monkeypatch.setattr("scripts.clock.Clock", Mending)
    monkeypatch.setattr(sys, "stdin", Terminal("dev\n"))
    monkeypatch.setenv("COLUMNS", "80")
    assert program("dev", "--force") == 0
    printed = capsys.readouterr()
    assert "type the name of the deployment, dev:" in printed.err
    assert max(map(len, printed.out.splitlines())) <= 80
    assert f"  aws ec2 delete-volume --volume-id {volume} --region us-west-2" in printed.out.splitlines()
    screen = " ".join(printed.out.split())
    assert "in use and may not be deleted" in screen
    assert re.search(r"Deleted in .*: dev-cluster(, dev)?\. Left over; --sweep removes", screen)
    assert f"{volume} *: tag parallelcluster:cluster-name=dev, $8.00 a month" in screen
    assert operated.deployment().stack("dev-cluster") is None
    assert operated.deployment().stack("dev-storage") is not None
