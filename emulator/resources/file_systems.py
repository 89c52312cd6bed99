"""Amazon FSx and Amazon EFS."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

from collections.abc import Mapping

from emulator.resources.common import retag, taken, without
from emulator.resources.model import Context, Model, Physical, Properties


class LustreFileSystem(Model):
    """AWS::FSx::FileSystem."""

    _UPDATABLE = ("FileSystemTypeVersion", "LustreConfiguration", "StorageCapacity")
    mutable = ("Tags", *_UPDATABLE)

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the file system; it is available at once."""
        made = context.client("fsx").create_file_system(**properties)["FileSystem"]
        attributes = {
            "DNSName": made["DNSName"],
            "LustreMountName": made["LustreConfiguration"]["MountName"],
            "ResourceARN": made["ResourceARN"],
        }
        return Physical(made["FileSystemId"], attributes)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        retag(context, "fsx", physical.attributes["ResourceARN"], properties, changed)
        request = taken(properties, changed.intersection(self._UPDATABLE))
        if "LustreConfiguration" in request:
            old = context.previous.get("LustreConfiguration", {})
            new = request["LustreConfiguration"]
            request["LustreConfiguration"] = {key: new[key] for key in new if new[key] != old.get(key)}
        if request:
            context.client("fsx").update_file_system(FileSystemId=physical.ref, **request)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("fsx").delete_file_system(FileSystemId=physical.ref)


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

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the file system; it is available at once."""
        made = context.client("efs").create_file_system(
            CreationToken=context.name,
            Tags=properties.get("FileSystemTags", []),
            **without(properties, "FileSystemTags"),
        )
        return Physical(made["FileSystemId"])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the file system; EFS refuses it while there are mount targets."""
        context.client("efs").delete_file_system(FileSystemId=physical.ref)


class MountTarget(Model):
    """AWS::EFS::MountTarget, a network interface in a subnet."""

    def create(self, context: Context, properties: Properties) -> Physical:
        return Physical(context.client("efs").create_mount_target(**properties)["MountTargetId"])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("efs").delete_mount_target(MountTargetId=physical.ref)


MODELS: Mapping[str, Model] = {
    "AWS::FSx::DataRepositoryAssociation": DataRepositoryAssociation(),
    "AWS::FSx::FileSystem": LustreFileSystem(),
    "AWS::EFS::FileSystem": ElasticFileSystem(),
    "AWS::EFS::MountTarget": MountTarget(),
}
