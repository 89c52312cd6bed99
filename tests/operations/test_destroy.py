"""The end of a deployment: what stands against it, what is deleted, what an interruption leaves to the next call."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from config.settings import Settings, load
from rehearsal import stand_ins
from rehearsal.aws import EmulatedAws
from rehearsal.inventory import inventory, reason_to_stay
from scripts import destroy
from scripts.operations.command import CONFIG, run
from scripts.operations.destruction import destroy as destruction
from scripts.operations.inventory.leftovers_model import FINAL_BACKUP
from tests.operations.account import Operated
from tests.operations.destroying import FastClock, KilledError, killed_after_each_change

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
        stand_ins.create(aws, settings)
        stand_ins.bootstrap(aws, settings.region)
        return counted(aws, settings)


@pytest.mark.slow
def test_killed_after_each_change_it_goes_on_and_leaves_nothing(
    deploy_operated: Callable[..., Operated], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load(CONFIG / "trn1-16.yaml")
    operated = deploy_operated(settings)
    operated.launch(2)
    wish: dict[str, Any] = {"parts": EVERYTHING, "unprotect": True, "force": True, "sweep": True}
    made: list[str] = []
    for _ in range(40):
        with killed_after_each_change(monkeypatch) as now:
            try:
                outcome = destruction.destroy(operated.deployment(), clock=FastClock(), say=told, **wish)
                break
            except KilledError:
                made += now
    else:
        pytest.fail(f"never ended: {made}")
    assert outcome.failures == []
    assert {"DeleteStack", "UpdateTerminationProtection", "CreateBackup", "DeleteFileSystem"} <= set(made)
    assert made.count("CreateBackup") == 1
    assert counted(operated.aws, settings) == untouched(settings)
    assert all(each.kept for each in outcome.left)
    backups = operated.client("fsx").describe_backups()["Backups"]
    assert [{tag["Key"]: tag["Value"] for tag in each["Tags"]}[FINAL_BACKUP] for each in backups] == ["trn1-16"]


@pytest.mark.slow
def test_tries_again_while_instances_hold_the_placement_group(deploy_operated: Callable[..., Operated]) -> None:
    operated = deploy_operated(load(CONFIG / "dev.yaml"))
    operated.aws.inject("stopping")
    said: list[str] = []

    class Mending(FastClock):
        def sleep(self, seconds: float) -> None:
            if any("trying again" in each for each in said):
                operated.aws.mend()
            super().sleep(seconds)

    outcome = destruction.destroy(operated.deployment(), clock=Mending(), say=said.append, force=True)
    assert outcome.failures == []
    assert any("in use and may not be deleted" in each for each in said)
    assert operated.deployment().stack("dev-cluster") is None
    assert operated.deployment().stack("dev-storage") is not None
