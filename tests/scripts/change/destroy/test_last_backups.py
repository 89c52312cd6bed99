"""Homes on EFS and the database of a team: they are kept unless told, and leave last backups."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from scripts.core.clock import LONGEST_PAUSE
from tests.command_line import Call
from tests.deployed import DeployedAccount
from tests.scripts.operated import OperatedClone

HELD = {"AWS::EFS::FileSystem": "AWS::Backup::RecoveryPoint", "AWS::RDS::DBInstance": "AWS::RDS::DBSnapshot"}
"""What holds data, and what its last backup is."""


@pytest.mark.slow
def test_homes_and_database_go_when_told_after_last_backups_which_stay(
    deployed: Callable[[str], DeployedAccount], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = deployed("team")

    def held() -> list[tuple[str, str]]:
        listed = json.loads(call("inventory", "team", "--output", "json").output)["resources"]
        kinds = {*HELD, *HELD.values()}
        return sorted((each["type"], each["id"]) for each in listed if each["type"] in kinds)

    with account.clone() as aws:
        team = OperatedClone(aws, account.synthesized)
        team.act_as(team.environment, monkeypatch)
        monkeypatch.setenv(LONGEST_PAUSE, "0.2")
        before = held()
        destroy = ("destroy", "team", "--team", "--confirm", "team")
        refused = call(*destroy)
        assert refused.code == 1
        assert [kind for kind, _ in before] == [*HELD]
        (_, homes), (_, database) = before
        for what, name in (("homes", homes), ("accounting.database", database)):
            kept = f"{what}.retain keeps {name}, as deployed: --unprotect deletes it anyway."
            assert kept in " ".join(refused.output.split())
        assert held() == before

        code, output, errors = call(*destroy, "--unprotect", "--force")
        assert code == 0, errors
        assert f"Homes {homes} is deleted after a last backup" in output + errors
        after = held()
        assert [kind for kind, _ in after] == [*HELD.values()]
        assert after[0][1].startswith("arn:aws:backup:us-west-2:")
        assert after[1][1].startswith(f"{database}-final-")
