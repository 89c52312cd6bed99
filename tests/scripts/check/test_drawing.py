"""Drawings of the golden templates. Rewrite them with `make snapshots`, and look at them as GitHub shows them."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest

from scripts.check.plan.plan import read_stacks
from scripts.check.review.drawing import draw
from scripts.check.review.page import as_block
from toolchain.assembly import Stack
from toolchain.cluster import CLUSTER_TYPE

ROOT = Path(__file__).parents[3]
DRAWINGS = Path(__file__).parent / "golden" / "drawings"
MARKED = re.compile(r"(<!-- drawing of ([a-z0-9-]+) -->\n)(```mermaid\n.*?```)", re.DOTALL)


def stacks_of(name: str) -> dict[str, Stack]:
    return read_stacks(ROOT / "tests" / "snapshots" / name, "us-west-2")


def with_queues(number: int, most_groups: int) -> dict[str, Stack]:
    """Return trn1-16 with more queues, of one node, two nodes and so on, in turn in several placement groups."""
    stacks = stacks_of("trn1-16")
    resources = stacks["trn1-16-cluster"].resources
    [cluster] = [each for each in resources.values() if each["Type"] == CLUSTER_TYPE]
    scheduling = cluster["Properties"]["ClusterConfiguration"]["Scheduling"]
    [queue] = scheduling["SlurmQueues"]
    scheduling["SlurmQueues"] = []
    for index in range(number):
        group = f"Group{index % most_groups}"
        resources[group] = {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}}
        each = copy.deepcopy(queue)
        each["Name"] = f"q{index:02}"
        each["Networking"]["PlacementGroup"]["Name"] = {"Fn::GetAtt": [group, "GroupName"]}
        each["ComputeResources"][0]["MaxCount"] = index + 1
        scheduling["SlurmQueues"].append(each)
    return stacks


def drawings() -> dict[str, str]:
    """Return drawings that have among them all there is to draw."""
    drawn = {name: draw(stacks_of(name)) for name in ("little", "much", "reserved", "trn1-16")}
    return drawn | {"fifty-queues": draw(with_queues(50, 50))}


@pytest.mark.parametrize("name", ["fifty-queues", "little", "much", "reserved", "trn1-16"])
def test_drawing_is_as_its_golden_file(name: str, pytestconfig: pytest.Config) -> None:
    path = DRAWINGS / f"{name}.mmd"
    if pytestconfig.getoption("update_snapshots"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(drawings()[name], encoding="utf-8")
    assert drawings()[name] == path.read_text(encoding="utf-8"), "if that is meant: make snapshots"


def test_drawings_in_documents_are_those_of_the_templates(pytestconfig: pytest.Config) -> None:
    documents = (ROOT / "README.md", *ROOT.glob("docs/**/*.md"))
    pages = [path for path in documents if MARKED.search(path.read_text(encoding="utf-8"))]
    assert pages
    for path in pages:
        text = path.read_text(encoding="utf-8")
        drawn = MARKED.sub(lambda match: f"{match[1]}{as_block(draw(stacks_of(match[2])))}", text)
        if pytestconfig.getoption("update_snapshots"):
            path.write_text(drawn, encoding="utf-8")
        else:
            assert text == drawn, f"{path.name}: make snapshots"


@pytest.mark.parametrize(("queues", "boxes"), [(1, 1), (6, 6), (7, 1), (50, 1)])
def test_many_queues_share_boxes(queues: int, boxes: int) -> None:
    assert len(re.findall(r"queue_q\d+\[", draw(with_queues(queues, 2)))) == boxes
