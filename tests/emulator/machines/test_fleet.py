"""Which machines share what the head node of a cluster exports, decided without any machine."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.aws import SECRET
from emulator.keys import KEYS
from emulator.machines.fleet import NAME_TAG, TYPE_TAG, Fleet

Wait = Callable[[Callable[[], bool]], None]


class Place:
    """What a site is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.exports: dict[str, str] = {}
        self.specs: list[Any] = []

    def start(self, spec: Any, _: object) -> Any:
        self.exports[spec.instance_id] = spec.cluster
        self.specs.append(spec)
        return SimpleNamespace(spec=spec, code=None, console="", stop=lambda _=0: None, close=lambda: None)

    def discard(self, instance_id: str) -> None:
        self.told.append(f"discard {instance_id}")

    def forget(self, cluster: str) -> None:
        self.told.append(f"forget {cluster}")


def test_homes_on_a_root_volume_end_with_their_cluster(monkeypatch: pytest.MonkeyPatch, wait_for: Wait) -> None:
    """The next cluster of that name has none of them; a node that is left keeps them until its own end.

    A user of a node may launch instances and choose the name: it is a part of no path.
    """
    name_of_cluster = "x /home ../y"
    place: Any = Place()
    states: dict[str, tuple[str, str]] = {}

    def described(_: Fleet, __: str, instance_id: str) -> dict[str, Any]:
        kind, state = states[instance_id]
        tags = [{"Key": TYPE_TAG, "Value": kind}, {"Key": NAME_TAG, "Value": name_of_cluster}]
        return {"PrivateIpAddress": "10.0.0.1", "VpcId": "vpc-1", "State": {"Name": state}, "Tags": tags}

    for name, value in {"_described": described, "_serve": lambda *_: (), "network": lambda *_: "10.0.0.0/16"}.items():
        monkeypatch.setattr(Fleet, name, value)
    machinery: Any = SimpleNamespace(borrowed=())
    endpoint: Any = SimpleNamespace(url="http://127.0.0.1:9")
    fleet = Fleet(machinery, lambda *_: None, endpoint, "fast")  # type: ignore[arg-type]
    fleet._site = place

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
    assert not given & {KEYS.node, SECRET}, "which jobs and users of a node would inherit"
