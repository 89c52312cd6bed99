"""A destruction in an account: killed after every change, the next call continues."""

from collections import Counter

import pytest

from config.settings import Settings
from emulator.aws import EmulatedAws
from emulator.inventory import inventory
from scripts.account.backups import FINAL_BACKUP
from scripts.change.destroy.destroy import destroy
from scripts.change.destroy.model import ORDER, DestroyOptions
from scripts.emulated import accounts
from scripts.emulated.accounts import reason_to_stay
from tests.scripts.change.destroy.accounts import KilledError, Killer
from tests.scripts.change.destroy.remains import leave_in_network
from tests.scripts.operated import Operated


def ignore(_: str) -> None:
    pass


def counted(aws: EmulatedAws, settings: Settings) -> Counter[str]:
    """Return how many of each type there are, but for what AWS, too, leaves on purpose."""
    resources = inventory(aws, settings.region)
    return Counter(kind for kind, name in resources if not reason_to_stay(settings, kind, name))


@pytest.mark.slow
def test_killed_after_each_change_the_next_call_continues_and_nothing_is_left(
    operated: Operated, rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = operated.settings
    accounts.create_prerequisites(rehearsed_aws, settings)
    accounts.bootstrap(rehearsed_aws, settings)
    untouched = counted(rehearsed_aws, settings)
    operated.launch(2)
    network = operated.deployment().physical_ids("trn1-16-network").values()
    vpc, subnet = (next(each for each in network if each.startswith(kind)) for kind in ("vpc-", "subnet-"))
    options = DestroyOptions(ORDER, unprotect=True, force=True, sweep=True)
    killer, left = Killer(), set[str]()
    for _ in range(40):
        try:
            with killer.at_work(monkeypatch) as clock:
                outcome = destroy(operated.deployment(), options, clock=clock, say=ignore)
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
    assert {"STOP_REQUESTED", "check every 10 s", "check every 30 s"} <= set(killer.points)
    assert killer.calls.count("CreateBackup") == 1
    assert counted(operated.aws, settings) == untouched
    assert all(each.kept_on_purpose for each in outcome.left or [])
    backups = operated.client("fsx").describe_backups()["Backups"]
    assert [{tag["Key"]: tag["Value"] for tag in each["Tags"]}[FINAL_BACKUP] for each in backups] == ["trn1-16"]
