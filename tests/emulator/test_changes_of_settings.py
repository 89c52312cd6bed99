"""What a rehearsal changes in the settings, and which faults its command line takes."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import load
from emulator.faults import FAULTS
from scripts.commands import rehearse
from tests.configurations import CONFIG, SHIPPED

Edited = Callable[..., tuple[Any, Any]]


@pytest.fixture(params=[CONFIG / f"{name}.yaml" for name in SHIPPED], ids=lambda path: path.stem)
def edited(request: pytest.FixtureRequest, tmp_path: Path) -> Edited:
    """Return a function that edits the settings of a configuration: before, and after."""

    def edit(*edits: rehearse.Edit) -> tuple[Any, Any]:
        raw = yaml.safe_load(request.param.read_text(encoding="utf-8"))
        for each in edits:
            each(raw)
        path = tmp_path / request.param.name
        path.write_text(yaml.safe_dump(raw), encoding="utf-8")
        return load(request.param), load(path)

    return edit


def counts(settings: Any) -> list[int]:
    return [resource.max_count for queue in settings.cluster.queues for resource in queue.compute_resources]


def test_one_node_more(edited: Edited) -> None:
    before, after = edited(rehearse.raise_max_count)
    first, *others = counts(before)
    assert counts(after) == [first + 1, *others]
    assert after.storage == before.storage
    assert after.network == before.network


def test_another_head_node(edited: Edited) -> None:
    before, after = edited(rehearse.change_head_node)
    assert after.cluster.head_node.instance_type != before.cluster.head_node.instance_type
    assert after.cluster.queues == before.cluster.queues


def test_another_head_node_than_any() -> None:
    for given in (*rehearse.OTHER_HEAD_NODE, "c6i.xlarge"):
        settings = {"cluster": {"head_node": {"instance_type": given}}}
        rehearse.change_head_node(settings)
        assert settings["cluster"]["head_node"]["instance_type"] in set(rehearse.OTHER_HEAD_NODE) - {given}


def test_nothing_is_protected_or_retained(edited: Edited) -> None:
    before, after = edited(rehearse.give_up)
    assert after.termination_protection == []
    assert not after.storage.retain
    assert after.cluster == before.cluster


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_with_and_without_a_target(name: str) -> None:
    target = "DcvValidator" if name == "warning" else "AWS::EC2::VPC"
    right, wrong = (name, f"{name}:Vpc") if FAULTS[name].target is None else (f"{name}:{target}", name)
    assert rehearse._fault(right) == (name, right.removeprefix(name).removeprefix(":"))
    with pytest.raises(argparse.ArgumentTypeError, match=f"^{name} takes "):
        rehearse._fault(wrong)


def test_every_fault_has_a_source() -> None:
    assert [name for name, fault in FAULTS.items() if not fault.source.startswith("https://docs.aws.amazon.com/")] == []
