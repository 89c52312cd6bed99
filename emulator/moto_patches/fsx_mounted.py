"""What clusters mount and nobody makes here but before a rehearsal: volumes of ONTAP, and file caches.

Shapes are those of https://docs.aws.amazon.com/fsx/latest/APIReference/API_FileCache.html,
https://docs.aws.amazon.com/fsx/latest/APIReference/API_StorageVirtualMachine.html and API_Volume.html.
"""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json
import time
from typing import Any
from uuid import uuid4

from moto.core.exceptions import JsonRESTError
from moto.ec2.models import ec2_backends
from moto.fsx.responses import FSxResponse
from moto.utilities.id_generator import TAG_KEY_CUSTOM_ID


def chosen(request: dict[str, Any]) -> str:
    """Return the id in the tag of a request; empty: there is none."""
    return next((each["Value"] for each in request.get("Tags", []) if each["Key"] == TAG_KEY_CUSTOM_ID), "")


class Mounted(FSxResponse):
    """FSx with file caches, and with the storage virtual machines of ONTAP, which have the names that clients mount."""

    def create_file_cache(self) -> str:
        cache_id = chosen(self._body) or f"fc-{uuid4().hex[:17]}"
        subnets, groups = self._body["SubnetIds"], self._body.get("SecurityGroupIds", [])
        ec2 = self._ec2_backend
        interfaces = [
            ec2.create_network_interface(
                each, private_ip_address=[], group_ids=groups, description=f"Created By Amazon FSx for {cache_id}"
            ).id
            for each in subnets
        ]
        cache = {
            "OwnerId": self.current_account,
            "CreationTime": time.time(),
            "FileCacheId": cache_id,
            "FileCacheType": self._body["FileCacheType"],
            "FileCacheTypeVersion": self._body["FileCacheTypeVersion"],
            "Lifecycle": "AVAILABLE",
            "StorageCapacity": self._body["StorageCapacity"],
            "VpcId": ec2.get_subnet(subnets[0]).vpc_id,
            "SubnetIds": subnets,
            "NetworkInterfaceIds": interfaces,
            "DNSName": f"{cache_id}.fsx.{self.region}.amazonaws.com",
            "ResourceARN": f"arn:{self.partition}:fsx:{self.region}:{self.current_account}:file-cache/{cache_id}",
            "LustreConfiguration": {**self._body.get("LustreConfiguration", {}), "MountName": cache_id[-8:]},
        }
        self._kept("file_caches")[cache_id] = cache
        return json.dumps({"FileCache": cache})

    def describe_file_caches(self) -> str:
        return json.dumps({"FileCaches": self._asked("file_caches", "FileCacheIds", "FileCacheNotFound", "File cache")})

    def create_storage_virtual_machine(self) -> str:
        machine_id, file_system_id = f"svm-{uuid4().hex[:17]}", self._body["FileSystemId"]
        machine = {
            "StorageVirtualMachineId": machine_id,
            "FileSystemId": file_system_id,
            "Name": self._body["Name"],
            "Lifecycle": "CREATED",
            "CreationTime": time.time(),
            "Endpoints": {"Nfs": {"DNSName": f"{machine_id}.{file_system_id}.fsx.{self.region}.amazonaws.com"}},
            "ResourceARN": f"arn:{self.partition}:fsx:{self.region}:{self.current_account}"
            f":storage-virtual-machine/{file_system_id}/{machine_id}",
        }
        self._kept("storage_virtual_machines")[machine_id] = machine
        return json.dumps({"StorageVirtualMachine": machine})

    def describe_storage_virtual_machines(self) -> str:
        found = self._asked(
            "storage_virtual_machines",
            "StorageVirtualMachineIds",
            "StorageVirtualMachineNotFound",
            "Storage virtual machine",
        )
        return json.dumps({"StorageVirtualMachines": found})

    def of_ontap(self) -> dict[str, Any]:
        """Return the volume of ONTAP that a request is to make."""
        options = self._body["OntapConfiguration"]
        machine_id = options["StorageVirtualMachineId"]
        machine = self._kept("storage_virtual_machines").get(machine_id)
        if machine is None:
            message = f"Storage virtual machine '{machine_id}' does not exist."
            raise JsonRESTError("StorageVirtualMachineNotFound", message)
        volume_id = chosen(self._body) or f"fsvol-{uuid4().hex[:17]}"
        return {
            "VolumeId": volume_id,
            "VolumeType": "ONTAP",
            "FileSystemId": machine["FileSystemId"],
            "Name": self._body["Name"],
            "Lifecycle": "CREATED",
            "CreationTime": time.time(),
            "ResourceARN": f"arn:{self.partition}:fsx:{self.region}:{self.current_account}"
            f":volume/{machine['FileSystemId']}/{volume_id}",
            "OntapConfiguration": options,
        }

    def _asked(self, kind: str, parameter: str, code: str, called: str) -> list[dict[str, Any]]:
        kept, wanted = self._kept(kind), self._body.get(parameter)
        for each in wanted or ():
            if each not in kept:
                raise JsonRESTError(code, f"{called} '{each}' does not exist.")
        return [kept[each] for each in wanted] if wanted else list(kept.values())

    def _kept(self, kind: str) -> dict[str, dict[str, Any]]:
        kept: dict[str, dict[str, Any]] = vars(self.fsx_backend).setdefault(kind, {})
        return kept

    @property
    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.body)
        return body

    @property
    def _ec2_backend(self) -> Any:
        return ec2_backends[self.current_account][self.region]
