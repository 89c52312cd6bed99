"""Whether /home moves with an upgrade, and to what; the copy itself: test_programs.py, tests/end_to_end/lives."""

from __future__ import annotations

from typing import Any

import pytest

from config.settings import Settings
from scripts.account import homes
from scripts.account.deployment import Deployment
from scripts.change.upgrade.homes import mount_arguments
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


class New(Deployment):
    """A deployment whose settings have homes; an existing volume of OpenZFS is not its file system's root."""

    def __init__(self, value: Any) -> None:
        super().__init__("dev", settings(value))
        volume = {
            "VolumeType": "OPENZFS",
            "Lifecycle": "AVAILABLE",
            "FileSystemId": "fs-2",
            "OpenZFSConfiguration": {"VolumePath": "/fsx/a b"},
        }
        self.account.ask = lambda *_, **__: {"Volumes": [volume]}  # type: ignore[method-assign]

    def outputs(self, stack: str) -> dict[str, str]:
        return {"HomesFileSystemId": "fs-1"} if stack == "dev-team" else {}


@pytest.mark.parametrize(
    ("homes", "arguments"),
    [
        ("efs", ("efs", "tls", "fs-1:/")),
        ({"type": "efs", "file_system_id": "fs-12345678"}, ("efs", "tls", "fs-12345678:/")),
        ("fsx-openzfs", ("nfs", "nfsvers=4.2", "fs-1.fsx.us-west-2.amazonaws.com:/fsx/home")),
        (
            {"type": "fsx-openzfs", "file_system_id": "fsvol-0123456789abcdef0"},
            ("nfs", "nfsvers=4.2", "fs-2.fsx.us-west-2.amazonaws.com:/fsx/a b"),
        ),
    ],
)
def test_homes_are_mounted_by_where_they_are(homes: Any, arguments: tuple[str, ...]) -> None:
    assert mount_arguments(New(homes)) == arguments
