"""Amazon FSx and Amazon EFS."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

import json
from collections.abc import Mapping

from emulator.resources.common import retag, taken, without
from emulator.resources.model import Context, Model, Physical, Properties


class FsxFileSystem(Model):
    """AWS::FSx::FileSystem, for Lustre or OpenZFS."""

    _NESTED = ("LustreConfiguration", "OpenZFSConfiguration")
    _UPDATABLE = ("FileSystemTypeVersion", "StorageCapacity", *_NESTED)
    mutable = ("Tags", *_UPDATABLE)

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the file system; it is available at once."""
        made = context.client("fsx").create_file_system(**properties)["FileSystem"]
        attributes = {"DNSName": made["DNSName"], "ResourceARN": made["ResourceARN"]}
        if made["FileSystemType"] == "OPENZFS":
            attributes["RootVolumeId"] = made["OpenZFSConfiguration"]["RootVolumeId"]
        else:
            attributes["LustreMountName"] = made["LustreConfiguration"]["MountName"]
        return Physical(made["FileSystemId"], attributes)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        retag(context, "fsx", physical.attributes["ResourceARN"], properties, changed)
        request = taken(properties, changed.intersection(self._UPDATABLE))
        for nested in set(self._NESTED) & request.keys():
            old, new = context.previous.get(nested, {}), request[nested]
            request[nested] = {key: new[key] for key in new if new[key] != old.get(key)}
        if request:
            context.client("fsx").update_file_system(FileSystemId=physical.ref, **request)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("fsx").delete_file_system(FileSystemId=physical.ref)


class FsxVolume(Model):
    """AWS::FSx::Volume, of OpenZFS."""

    mutable = ("Name", "OpenZFSConfiguration", "Tags")

    def create(self, context: Context, properties: Properties) -> Physical:
        made = context.client("fsx").create_volume(**properties)["Volume"]
        return Physical(made["ResourceARN"], {"VolumeId": made["VolumeId"], "ResourceARN": made["ResourceARN"]})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        retag(context, "fsx", physical.ref, properties, changed)
        request = taken(properties, changed.intersection(("Name", "OpenZFSConfiguration")))
        if "OpenZFSConfiguration" in request:
            request["OpenZFSConfiguration"] = without(request["OpenZFSConfiguration"], "ParentVolumeId")
        if request:
            context.client("fsx").update_volume(VolumeId=physical.attributes["VolumeId"], **request)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("fsx").delete_volume(VolumeId=physical.attributes["VolumeId"])


class DataRepositoryAssociation(Model):
    """AWS::FSx::DataRepositoryAssociation."""

    mutable = ("S3", "Tags")

    def create(self, context: Context, properties: Properties) -> Physical:
        made = context.client("fsx").create_data_repository_association(**properties)["Association"]
        return Physical(made["AssociationId"], {"ResourceARN": made["ResourceARN"]})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        retag(context, "fsx", physical.attributes["ResourceARN"], properties, changed)
        if "S3" in changed:
            request = taken(properties, ("S3",))
            context.client("fsx").update_data_repository_association(AssociationId=physical.ref, **request)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Cut the link; the files stay on both sides."""
        context.client("fsx").delete_data_repository_association(AssociationId=physical.ref)


class ElasticFileSystem(Model):
    """AWS::EFS::FileSystem."""

    mutable = ("FileSystemTags",)

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the file system; it is available at once."""
        efs = context.client("efs")
        made = efs.create_file_system(
            CreationToken=context.name,
            Tags=properties.get("FileSystemTags", []),
            Backup=properties.get("BackupPolicy", {}).get("Status") == "ENABLED",
            **without(properties, "BackupPolicy", "FileSystemPolicy", "FileSystemTags"),
        )
        if "FileSystemPolicy" in properties:
            policy = json.dumps(properties["FileSystemPolicy"])
            efs.put_file_system_policy(FileSystemId=made["FileSystemId"], Policy=policy)
        return Physical(made["FileSystemId"], {"FileSystemId": made["FileSystemId"], "Arn": made["FileSystemArn"]})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        efs, tags = context.client("efs"), properties.get("FileSystemTags", [])
        old = {each["Key"] for each in context.previous.get("FileSystemTags", [])}
        if gone := sorted(old - {each["Key"] for each in tags}):
            efs.untag_resource(ResourceId=physical.ref, TagKeys=gone)
        efs.tag_resource(ResourceId=physical.ref, Tags=tags)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the file system; EFS refuses it while there are mount targets."""
        context.client("efs").delete_file_system(FileSystemId=physical.ref)


class MountTarget(Model):
    """AWS::EFS::MountTarget, a network interface in a subnet."""

    def create(self, context: Context, properties: Properties) -> Physical:
        made = context.client("efs").create_mount_target(**properties)
        context.client("ec2").modify_network_interface_attribute(
            NetworkInterfaceId=made["NetworkInterfaceId"],
            Description={"Value": f"EFS mount target for {made['FileSystemId']} ({made['MountTargetId']})"},
        )
        return Physical(made["MountTargetId"])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("efs").delete_mount_target(MountTargetId=physical.ref)


MODELS: Mapping[str, Model] = {
    "AWS::FSx::DataRepositoryAssociation": DataRepositoryAssociation(),
    "AWS::FSx::FileSystem": FsxFileSystem(),
    "AWS::FSx::Volume": FsxVolume(),
    "AWS::EFS::FileSystem": ElasticFileSystem(),
    "AWS::EFS::MountTarget": MountTarget(),
}
