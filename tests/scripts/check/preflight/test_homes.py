"""A file system of /home that exists, and what it lacks; backups of one that is made."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from scripts.account.deployment import Account
from scripts.check.preflight.homes import homes_backups, homes_file_system
from scripts.core.findings import FAIL, PASS, SKIP, WARN, CheckStatus
from tests.scripts.check.preflight.accounts import VPC, Case, Raw, case, everything, new_network
from tests.scripts.refusals import refusal

EFS, VOLUME = "fs-0123456789abcdef0", "fsvol-0123456789abcdef0"


def homes(raw: Raw, kind: str = "efs", name: str | None = EFS) -> None:
    """Have homes on a file system that exists; without a name it is made."""
    raw["homes"] = {"type": kind, "file_system_id": name}


def target(status: CheckStatus, *says: str, **facts: str) -> Any:
    """Return the case of a mount target."""
    fit = {
        "MountTargetId": "fsmt-1",
        "AvailabilityZoneId": everything()["zone_id"],
        "VpcId": VPC,
        "LifeCycleState": "available",
    }
    targets = {"MountTargets": [fit | facts]}
    return case(homes_file_system, status, *says, edit=homes, describe_mount_targets=targets)


def volume(status: CheckStatus, *says: str, **facts: str) -> Any:
    fit = {"VolumeType": "OPENZFS", "Lifecycle": "AVAILABLE", "FileSystemId": "fs-1"}
    answer = {"Volumes": [fit | facts]}
    return case(homes_file_system, status, *says, edit=openzfs, describe_volumes=answer)


openzfs = partial(homes, kind="fsx-openzfs", name=VOLUME)
made, openzfs_made = partial(homes, name=None), partial(homes, kind="fsx-openzfs", name=None)
CASES = [
    case(homes_file_system, SKIP),
    case(homes_file_system, SKIP, edit=made),
    target(PASS, f"fsmt-1 is in {VPC}"),
    target(FAIL, "mount targets in usw2-az9; allowed: one in", "create-mount-target", AvailabilityZoneId="usw2-az9"),
    target(FAIL, f"fsmt-1 is in vpc-1; allowed: {VPC}", "change `homes.file_system_id`", VpcId="vpc-1"),
    target(FAIL, "is creating; allowed: available", LifeCycleState="creating"),
    case(homes_file_system, FAIL, f"no EFS file system {EFS}", "change `homes.file_system_id`", edit=homes),
    case(homes_file_system, FAIL, "in no zone", edit=homes, describe_mount_targets={"MountTargets": []}),
    volume(PASS, f"{VOLUME} of fs-1 is AVAILABLE"),
    volume(FAIL, "is a volume of ONTAP; allowed: OPENZFS", VolumeType="ONTAP"),
    volume(FAIL, "is DELETING; allowed: AVAILABLE or CREATED", Lifecycle="DELETING"),
    case(homes_file_system, FAIL, f"no volume {VOLUME}", edit=openzfs, describe_volumes=refusal("VolumeNotFound")),
    case(homes_backups, SKIP),
    case(homes_backups, SKIP, edit=homes),
    case(homes_backups, SKIP, edit=openzfs_made),
    case(homes_backups, PASS, "switched on for EFS", edit=made, base=new_network),
    case(
        homes_backups,
        WARN,
        "switched off for EFS in us-west-2",
        "update-region-settings --resource-type-opt-in-preference EFS=true",
        edit=made,
        base=new_network,
        describe_region_settings={"ResourceTypeOptInPreference": {"EFS": False}},
    ),
]


@pytest.mark.parametrize("each", CASES)
def test_homes(each: Case, account: Account) -> None:
    each.verify(account)
