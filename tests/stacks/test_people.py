"""What golden templates do not show of users: the document that the head node fetches."""

from __future__ import annotations

import json
from pathlib import Path

from tests.config.test_users import ALICE, BOB
from tests.stacks.deployments import deploy, edited
from tests.stacks.test_cluster_stack import arguments_of, nodes


def test_the_head_node_is_told_of_people(tmp_path: Path) -> None:
    deployment = deploy(edited("trn1-16", lambda raw: raw.update(users=[ALICE, BOB])), tmp_path)
    address = arguments_of(deployment, nodes(deployment)[0])["team"]
    document = tmp_path / f"asset.{address.rpartition('/')[2]}"
    assert [each["name"] for each in json.loads(document.read_text(encoding="utf-8"))["users"]] == ["alice", "bob"]
