"""Homes and database in a destruction: what blocks it, and what needs no backup."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from config.settings import load
from scripts.account.databases import DATABASE, Database
from scripts.account.deployment import Deployment
from scripts.account.file_systems import EFS, FSX, FileSystem
from scripts.change.destroy.model import ORDER, DestroyOptions
from scripts.change.destroy.plan import Existing, decide
from scripts.change.destroy.team import Team
from scripts.core.options import CONFIG

DEPLOYMENT = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
ELASTIC = FileSystem("fs-12345678", "EFS", mount_targets=1)
OPENZFS = FileSystem("fs-1", "OPENZFS", vpc_id="vpc-1")
PROTECTED = Database("db-1", vpc_id="vpc-1", is_protected=True)
TEAM = Team({(EFS, "fs-12345678"): ELASTIC, (DATABASE, "db-1"): PROTECTED}, role="arn:aws:iam::1:role/r")
ALL = DestroyOptions(parts=ORDER)
WITHOUT_TEAM = DestroyOptions(parts=("cluster", "monitoring", "storage", "network"), unprotect=True)


def blockers(team: Team, options: DestroyOptions = ALL) -> list[str]:
    return [*decide(DEPLOYMENT, Existing(vpcs=["vpc-1"], team=team), options).blockers]


def test_what_is_retained_or_protected_is_deleted_by_unprotect_alone() -> None:
    kept = replace(TEAM, retained=frozenset({"fs-12345678"}))
    assert blockers(kept) == [
        "homes.retain keeps fs-12345678, as deployed: --unprotect deletes it anyway.",
        "Database db-1 has deletion protection: --unprotect removes it.",
    ]
    planned = decide(DEPLOYMENT, Existing(team=kept), replace(ALL, unprotect=True))
    assert (planned.blockers, planned.file_systems, planned.databases) == ((), ("fs-12345678",), ("db-1",))


def test_efs_without_the_role_of_its_stack_has_no_last_backup() -> None:
    orphan = replace(TEAM, holders={(EFS, "fs-12345678"): ELASTIC}, role="")
    [text] = blockers(orphan)
    assert text.startswith("fs-12345678 would be deleted without a backup: its stack is deleted")
    assert blockers(orphan, replace(ALL, final_backup=False)) == []


@pytest.mark.parametrize(
    ("key", "holder", "is_in_network"),
    [
        ((EFS, "fs-12345678"), ELASTIC, True),
        ((EFS, "fs-12345678"), replace(ELASTIC, mount_targets=0), False),
        ((FSX, "fs-1"), OPENZFS, True),
        ((FSX, "fs-1"), replace(OPENZFS, vpc_id="vpc-2"), False),
        ((DATABASE, "db-1"), PROTECTED, True),
    ],
)
def test_the_network_goes_with_what_is_in_it(key: Any, holder: FileSystem | Database, is_in_network: bool) -> None:
    texts = blockers(Team({key: holder}), WITHOUT_TEAM)
    assert texts == ([f"{key[1]} of trn1-16-team is in the network: pass --team, too."] if is_in_network else [])


def test_what_is_being_deleted_needs_no_backup() -> None:
    orphan = {(EFS, "fs-12345678"): ELASTIC}
    assert len(blockers(Team(orphan))) == 1
    assert blockers(Team({(EFS, "fs-12345678"): replace(ELASTIC, state="DELETING")})) == []
