"""What users, their homes and accounting add to the templates."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.config.test_users import ALICE, BOB
from tests.stacks.deployments import Deployment, Raw, deploy, edited
from tests.stacks.test_cluster_stack import arguments_of, nodes

DOCUMENT = "AWS::SSM::Document"


def made(directory: Path, *people: dict[str, object]) -> Deployment:
    def add(raw: Raw) -> None:
        raw["users"] = list(people)
        raw["cluster"]["login_nodes"] = [{"name": "login"}]

    return deploy(edited("trn1-16", add), directory)


def test_only_the_head_node_is_told_of_people_who_have_sessions_of_their_own(tmp_path: Path) -> None:
    with_people = made(tmp_path, ALICE, BOB)
    head, *others = nodes(with_people)
    address = arguments_of(with_people, head)["team"]
    document = tmp_path / f"asset.{address.rpartition('/')[2]}"
    assert [each["name"] for each in json.loads(document.read_text(encoding="utf-8"))["users"]] == ["alice", "bob"]
    assert ["team" in arguments_of(with_people, node) for node in others] == [False, False]
    session = with_people.cluster.properties(DOCUMENT)
    assert (session["Name"], session["DocumentType"]) == ("ultracluster-trn1-16", "Session")
    inputs = session["Content"]["inputs"]
    assert (inputs["runAsEnabled"], inputs["runAsDefaultUser"]) == (True, "")


def test_without_people_nothing_of_this_is_there(tmp_path: Path) -> None:
    nobody = made(tmp_path)
    assert "team" not in arguments_of(nobody, nodes(nobody)[0])
    assert nobody.cluster.of_type(DOCUMENT) == {}


@pytest.mark.parametrize("homes", ["efs", "fsx-openzfs"])
def test_the_database_is_created_last_because_rds_refuses_to_delete_it_after_a_failure(
    homes: str, tmp_path: Path
) -> None:
    settings = edited("trn1-16", lambda raw: raw.update(homes=homes, accounting={}))
    resources = deploy(settings, tmp_path).templates["trn1-16-team"].body["Resources"]
    [database] = [name for name, each in resources.items() if each["Type"] == "AWS::RDS::DBInstance"]
    earlier, ahead = set[str](), [database]
    while ahead:
        for name in set(re.findall(r'"(\w+)', json.dumps(resources[ahead.pop()]))) & resources.keys() - earlier:
            earlier.add(name)
            ahead.append(name)

    assert resources[database]["Properties"]["DeletionProtection"]
    assert resources.keys() - earlier == {database}
