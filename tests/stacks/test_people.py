"""What users add to the templates."""

from __future__ import annotations

import json
from pathlib import Path

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
