"""Storage beside the file system of the deployment, as ParallelCluster is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.stacks.deployments import Raw, deploy, edited

HEX = "0123456789abcdef0"
KEY = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
GIVEN: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"efs": {"file_system_id": f"fs-{HEX}"}}, "Efs", {"FileSystemId": f"fs-{HEX}", "EncryptionInTransit": True}),
    (
        {"efs": {"file_system_id": f"fs-{HEX}", "access_point_id": f"fsap-{HEX}", "iam_authorization": True}},
        "Efs",
        {
            "FileSystemId": f"fs-{HEX}",
            "AccessPointId": f"fsap-{HEX}",
            "IamAuthorization": True,
            "EncryptionInTransit": True,
        },
    ),
    ({"fsx_lustre": {"file_system_id": f"fs-{HEX}"}}, "FsxLustre", {"FileSystemId": f"fs-{HEX}"}),
    ({"fsx_openzfs": {"volume_id": f"fsvol-{HEX}"}}, "FsxOpenZfs", {"VolumeId": f"fsvol-{HEX}"}),
    ({"fsx_ontap": {"volume_id": f"fsvol-{HEX}"}}, "FsxOntap", {"VolumeId": f"fsvol-{HEX}"}),
    ({"ebs": {"volume_id": f"vol-{HEX}"}}, "Ebs", {"VolumeId": f"vol-{HEX}"}),
    ({"ebs": {}}, "Ebs", {"VolumeType": "gp3", "Encrypted": True, "DeletionPolicy": "Retain"}),
    (
        {
            "ebs": {
                "snapshot_id": f"snap-{HEX}",
                "size_gib": 500,
                "iops": 6000,
                "throughput_mibps": 500,
                "kms_key_arn": KEY,
                "retention": "snapshot",
            }
        },
        "Ebs",
        {
            "SnapshotId": f"snap-{HEX}",
            "Size": 500,
            "VolumeType": "gp3",
            "Iops": 6000,
            "Throughput": 500,
            "KmsKeyId": KEY,
            "Encrypted": True,
            "DeletionPolicy": "Snapshot",
        },
    ),
]


def test_each_kind_of_storage(tmp_path: Path) -> None:
    def with_storage(raw: Raw) -> None:
        raw["cluster"]["shared_storage"] = [
            {"name": f"s{index}", "mount_dir": f"/s{index}", **storage} for index, (storage, _, _) in enumerate(GIVEN)
        ]

    fsx, *others = deploy(edited("trn1-16", with_storage), tmp_path).configuration["SharedStorage"]
    assert fsx["MountDir"] == "/fsx"
    assert others == [
        {"Name": f"s{index}", "MountDir": f"/s{index}", "StorageType": kind, f"{kind}Settings": settings}
        for index, (_, kind, settings) in enumerate(GIVEN)
    ]
