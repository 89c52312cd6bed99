"""Amazon EFS: file systems with chosen ids."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from typing import Any

from moto.efs.responses import EFSResponse
from moto.moto_api._internal import mock_random

from emulator.moto_patches.tags import chosen_id


class Efs(EFSResponse):
    """EFS whose file systems take an id: that of the tag, without `fs-`."""

    def create_file_system(self) -> Any:
        tags = {each["Key"]: each["Value"].removeprefix("fs-") for each in self._get_param("Tags") or []}
        with chosen_id(mock_random, "get_random_hex", tags):
            return super().create_file_system()
