"""Backups of file systems."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws
from tests.emulator.account import Account
from tests.emulator.stacks import code_and_message


class Storage(Account):
    """File systems of one VPC."""

    def __init__(self, aws: EmulatedAws) -> None:
        super().__init__(aws)
        self.fsx = self.client("fsx")
        vpc = self.vpc()
        self._network = self.subnet(vpc), self.group(vpc)

    def file_system_id(self, deployment_type: str) -> str:
        return self.file_system(*self._network, deployment_type).ref

    def lifecycles(self, **request: Any) -> dict[str, str]:
        return {each["BackupId"]: each["Lifecycle"] for each in self.fsx.describe_backups(**request)["Backups"]}


@pytest.fixture
def storage(aws: EmulatedAws) -> Storage:
    return Storage(aws)


def refusal(action: Any, **request: Any) -> str:
    with pytest.raises(ClientError) as refused:
        action(**request)
    return code_and_message(refused.value)[0]


def test_a_backup_is_created_seen_and_deleted(storage: Storage) -> None:
    file_system_id = storage.file_system_id("PERSISTENT_2")
    tags = [{"Key": "project", "Value": "p"}]
    made = storage.fsx.create_backup(FileSystemId=file_system_id, Tags=tags)["Backup"]
    assert (made["Lifecycle"], made["Type"], made["Tags"]) == ("CREATING", "USER_INITIATED", tags)
    assert made["FileSystem"]["StorageCapacity"] == 1200
    assert refusal(storage.fsx.create_backup, FileSystemId=file_system_id) == "BackupInProgress"
    assert refusal(storage.fsx.delete_backup, BackupId=made["BackupId"]) == "BackupInProgress"
    looks = [storage.lifecycles(BackupIds=[made["BackupId"]])[made["BackupId"]] for _ in range(2)]
    assert looks == ["CREATING", "AVAILABLE"]
    assert storage.fsx.delete_backup(BackupId=made["BackupId"])["Lifecycle"] == "DELETED"
    assert storage.lifecycles() == {}
    assert refusal(storage.fsx.delete_backup, BackupId=made["BackupId"]) == "BackupNotFound"
    assert refusal(storage.fsx.create_backup, FileSystemId="fs-0123456789abcdef0") == "FileSystemNotFound"


def test_scratch_and_linked_file_systems_have_none(storage: Storage) -> None:
    scratch, linked = (storage.file_system_id(kind) for kind in ("SCRATCH_2", "PERSISTENT_2"))
    storage.fsx.create_data_repository_association(
        FileSystemId=linked, FileSystemPath="/data", DataRepositoryPath="s3://bucket"
    )
    for file_system_id in (scratch, linked):
        assert refusal(storage.fsx.create_backup, FileSystemId=file_system_id) == "UnsupportedOperation"
        options = {"SkipFinalBackup": False}
        request = {"FileSystemId": file_system_id, "LustreConfiguration": options}
        assert refusal(storage.fsx.delete_file_system, **request) == "UnsupportedOperation"
    assert len(storage.fsx.describe_file_systems()["FileSystems"]) == 2
