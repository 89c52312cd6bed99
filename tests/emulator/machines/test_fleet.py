"""Which machines share what the head node of a cluster exports, decided without any machine."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from inspect import signature
from itertools import permutations
from types import SimpleNamespace
from typing import Any
from unittest.mock import create_autospec

import pytest
from moto.ec2.models import EC2Backend

from emulator.aws import SECRET
from emulator.keys import KEYS
from emulator.machines.fleet import NAME_TAG, TYPE_TAG, Fleet
from emulator.machines.support import MachineError
from emulator.moto_patches import lives, volumes

Wait = Callable[[Callable[[], bool]], None]


class Place:
    """What a site is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.exports: dict[str, str] = {}
        self.specs: list[Any] = []
        self.stuck: set[str] = set()

    def start(self, spec: Any, _: object) -> Any:
        self.exports[spec.instance_id] = spec.cluster
        self.specs.append(spec)
        return SimpleNamespace(spec=spec, code=None, console="", stop=lambda _=0: None, close=lambda: None)

    def discard(self, instance_id: str) -> None:
        self.told.append(f"discard {instance_id}")
        if instance_id in self.stuck:
            raise MachineError(instance_id)

    def erase(self, storage_id: str) -> None:
        self.told.append(f"erase {storage_id}")

    def forget(self, cluster: str) -> None:
        self.told.append(f"forget {cluster}")


@pytest.fixture
def place() -> Any:
    return Place()


@pytest.fixture
def fleet(place: Any) -> Fleet:
    machinery: Any = SimpleNamespace(borrowed=())
    endpoint: Any = SimpleNamespace(url="http://127.0.0.1:9")
    fleet = Fleet(machinery, lambda *_: None, endpoint, "fast")  # type: ignore[arg-type]
    fleet._site = place
    return fleet


@pytest.mark.parametrize("order", list(permutations(("i-head", "i-early", "i-stuck"))))
def test_exports_end_with_the_last_node_however_each_one_ends(
    place: Any, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, order: tuple[str, ...]
) -> None:
    """One ends before there is a place for machines, the disk of another cannot be deleted."""
    monkeypatch.setattr(Fleet, "started", lambda *_: None)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    fleet._site = None
    for each in order:
        fleet.launched("r", each, {TYPE_TAG: "HeadNode" if each == "i-head" else "Compute", NAME_TAG: "c"})
    fleet.terminated("r", "i-early")
    fleet._ending["i-early"].join()
    fleet._site = place
    place.stuck.add("i-stuck")
    for each in order:
        if each != "i-early":
            fleet.terminated("r", each)
            fleet._ending[each].join()
    assert place.told[-1].startswith("forget")
    assert len([each for each in place.told if each.startswith("forget")]) == 1


@pytest.mark.parametrize("delete", [getattr(*each) for each in volumes.DELETIONS])
def test_what_is_deleted_leaves_nothing_of_its_data(
    place: Any, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, wait_for: Wait, delete: Callable[..., Any]
) -> None:
    """Its id was chosen by whoever made it, and is a part of a path here."""
    monkeypatch.setattr(lives, "LISTENERS", [fleet])
    name = list(signature(delete).parameters)[1]
    telling = volumes.deleted(create_autospec(delete))
    others = dict.fromkeys(list(signature(delete).parameters)[2:])
    telling(None, "fs-1", **others)
    telling(None, **{name: "snap-2"}, **others)
    telling(None, "fs-/../../home", **others)
    wait_for(lambda: len(place.told) == 2)
    assert sorted(place.told) == ["erase fs-1", "erase snap-2"]


def test_the_data_of_a_snapshot_is_kept_for_volumes_made_of_it(
    place: Any, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, wait_for: Wait
) -> None:
    monkeypatch.setattr(lives, "LISTENERS", [fleet])
    backend: Any = EC2Backend("us-west-2", "123456789012")
    delete_snapshot, delete_volume = (
        volumes.deleted(getattr(backend_class, name)) for backend_class, name in volumes.DELETIONS[:2]
    )
    first = backend.create_volume(1, "us-west-2a")
    snapshot = backend.create_snapshot(first.id, "")
    second = backend.create_volume(1, "us-west-2a", snapshot.id)
    delete_snapshot(backend, snapshot.id)
    delete_volume(backend, first.id)
    wait_for(lambda: place.told == [f"erase {first.id}"])
    delete_volume(backend, second.id)
    wait_for(lambda: len(place.told) == 3)
    assert set(place.told[1:]) == {f"erase {second.id}", f"erase {snapshot.id}"}


def test_homes_on_a_root_volume_end_with_their_cluster(
    place: Any, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, wait_for: Wait
) -> None:
    """The next cluster of that name has none of them; a node that is left keeps them until its own end.

    A user of a node may launch instances and choose the name: it is a part of no path.
    """
    name_of_cluster = "x /home ../y"
    states: dict[str, tuple[str, str]] = {}

    def described(_: Fleet, __: str, instance_id: str) -> dict[str, Any]:
        kind, state = states[instance_id]
        tags = [{"Key": TYPE_TAG, "Value": kind}, {"Key": NAME_TAG, "Value": name_of_cluster}]
        return {"PrivateIpAddress": "10.0.0.1", "VpcId": "vpc-1", "State": {"Name": state}, "Tags": tags}

    for name, value in {"_described": described, "_serve": lambda *_: (), "network": lambda *_: "10.0.0.0/16"}.items():
        monkeypatch.setattr(Fleet, name, value)

    def launch(instance_id: str, kind: str) -> str:
        states[instance_id] = (kind, "running")
        fleet.launched("r", instance_id, {TYPE_TAG: kind, NAME_TAG: name_of_cluster})
        wait_for(lambda: instance_id in fleet._running)
        return str(place.exports[instance_id])

    def terminate(instance_id: str) -> None:
        states[instance_id] = (states[instance_id][0], "terminated")
        fleet.terminated("r", instance_id)
        wait_for(lambda: f"discard {instance_id}" in place.told)

    first = launch("i-login", "LoginNode")
    assert {launch("i-head", "HeadNode"), launch("i-compute", "Compute")} == {first}
    terminate("i-compute")
    terminate("i-head")
    second = launch("i-next", "HeadNode")
    assert second != first
    assert not [each for each in place.told if each.startswith("forget")]
    terminate("i-login")
    wait_for(lambda: f"forget {first}" in place.told)
    terminate("i-next")
    wait_for(lambda: f"forget {second}" in place.told)
    assert all(re.fullmatch(r"(discard|forget) [\w.-]+", each) for each in place.told)
    given = {value for spec in place.specs for value in spec.environment.values()}
    assert not [each for each in given if each == SECRET or KEYS.node in each], (
        "which jobs and users of a node would inherit"
    )
