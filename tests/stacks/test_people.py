"""What golden templates do not show of users and accounting: what the head node fetches, and the order of creation."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.config.test_users import ALICE, BOB
from tests.stacks.deployments import deploy, edited
from tests.stacks.test_cluster_stack import arguments_of, nodes


def test_the_head_node_is_told_of_people(tmp_path: Path) -> None:
    deployment = deploy(edited("trn1-16", lambda raw: raw.update(users=[ALICE, BOB])), tmp_path)
    address = arguments_of(deployment, nodes(deployment)[0])["team"]
    document = tmp_path / f"asset.{address.rpartition('/')[2]}"
    assert [each["name"] for each in json.loads(document.read_text(encoding="utf-8"))["users"]] == ["alice", "bob"]


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
