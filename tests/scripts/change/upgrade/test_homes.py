"""Whether /home moves with an upgrade; the copy itself runs in tests/end_to_end/test_homes.py."""

from __future__ import annotations

from typing import Any

import pytest

from config.settings import Settings
from scripts.account import homes
from scripts.account.deployment import Deployment
from tests.stacks.deployments import Raw, edited

IMPORTED = {"Fn::ImportValue": "dev-team:Homes"}


def settings(value: Any) -> Settings:
    def edit(raw: Raw) -> None:
        raw["homes"] = value

    return edited("dev", edit)


class Old(Deployment):
    """A deployment whose cluster has a file system on /home."""

    def __init__(self, *storage: dict[str, Any]) -> None:
        super().__init__("dev", settings(None))
        configuration = {
            "SharedStorage": [{"MountDir": "/fsx", "FsxLustreSettings": {"FileSystemId": "fs-1"}}, *storage]
        }
        properties = {"ClusterConfiguration": configuration}
        template = {"Resources": {"C": {"Type": "Custom::PclusterCluster", "Properties": properties}}}
        self.account.ask = lambda *_, **__: {"TemplateBody": template}  # type: ignore[method-assign]


def efs(name: Any) -> dict[str, Any]:
    return {"MountDir": "/home", "EfsSettings": {"FileSystemId": name}}


@pytest.mark.parametrize(
    ("old", "new", "moves"),
    [
        (Old(), None, False),
        (Old(), "efs", True),
        (Old(efs(IMPORTED)), "efs", False),
        (Old(efs("fs-12345678")), "efs", True),
        (Old(efs("fs-12345678")), {"type": "efs", "file_system_id": "fs-12345678"}, False),
        (Old(efs(IMPORTED)), {"type": "efs", "file_system_id": "fs-12345678"}, True),
        (Old({"MountDir": "home", "FsxOpenZfsSettings": {"VolumeId": IMPORTED}}), "fsx-openzfs", False),
    ],
)
def test_home_moves_when_the_cluster_has_another_file_system(old: Old, new: Any, moves: bool) -> None:
    assert homes.differs(old, settings(new)) is moves
