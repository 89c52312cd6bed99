"""Amazon FSx and Amazon EFS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.resources.common import as_dictionary, retag, taken, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError


class LustreFileSystem(Model):
    """AWS::FSx::FileSystem."""

    _UPDATABLE = ("FileSystemTypeVersion", "LustreConfiguration", "StorageCapacity")

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the file system; it is available at once."""
        keys = (
            *self._UPDATABLE,
            "BackupId",
            "FileSystemType",
            "KmsKeyId",
            "SecurityGroupIds",
            "StorageType",
            "SubnetIds",
            "Tags",
        )
        return _file_system(context.client("fsx").create_file_system(**taken(properties, keys))["FileSystem"])

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change what UpdateFileSystem can change, and the tags."""
        fsx = context.client("fsx")
        retag(context, "fsx", physical.attributes["ResourceARN"], properties, changed)
        request = taken(properties, changed.intersection(self._UPDATABLE))
        if "LustreConfiguration" in request:
            old = context.previous.get("LustreConfiguration", {})
            new = request["LustreConfiguration"]
            request["LustreConfiguration"] = {key: new[key] for key in new if new[key] != old.get(key)}
        changed.difference_update(request)
        if not request:
            return physical
        return _file_system(fsx.update_file_system(FileSystemId=physical.ref, **request)["FileSystem"])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the file system without a final backup."""
        with unless_gone("FileSystemNotFound"):
            context.client("fsx").delete_file_system(FileSystemId=physical.ref)


class DataRepositoryAssociation(Model):
    """AWS::FSx::DataRepositoryAssociation."""

    _UPDATABLE = ("ImportedFileChunkSize", "S3")

    def create(self, context: Context, properties: Properties) -> Physical:
        """Link a directory of the file system to a bucket.

        Raises:
            ResourceError: FSx cannot use the bucket: the association exists, but as misconfigured.
        """
        fsx = context.client("fsx")
        keys = (*self._UPDATABLE, "BatchImportMetaDataOnCreate", "DataRepositoryPath", "FileSystemId", "FileSystemPath")
        request = taken(properties, (*keys, "Tags"))
        made = fsx.create_data_repository_association(**request)["Association"]
        physical = Physical(
            made["AssociationId"], {"AssociationId": made["AssociationId"], "ResourceARN": made["ResourceARN"]}
        )
        if made["Lifecycle"] == "MISCONFIGURED":
            self.delete(context, physical, properties)
            raise ResourceError(made["FailureDetails"]["Message"])
        return physical

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the import and export policies, the chunk size and the tags."""
        retag(context, "fsx", physical.attributes["ResourceARN"], properties, changed)
        if changed.intersection(self._UPDATABLE):
            request = taken(properties, self._UPDATABLE)
            context.client("fsx").update_data_repository_association(AssociationId=physical.ref, **request)
            changed -= set(self._UPDATABLE)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Cut the link; the files stay on both sides."""
        with unless_gone("DataRepositoryAssociationNotFound"):
            context.client("fsx").delete_data_repository_association(AssociationId=physical.ref)


def _file_system(described: Mapping[str, Any]) -> Physical:
    attributes = {"DNSName": described["DNSName"], "ResourceARN": described["ResourceARN"]}
    if "LustreConfiguration" in described:
        attributes["LustreMountName"] = described["LustreConfiguration"]["MountName"]
    return Physical(described["FileSystemId"], attributes)


class ElasticFileSystem(Model):
    """AWS::EFS::FileSystem."""

    _TAGS = "FileSystemTags"

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the file system; it is available at once."""
        keys = ("AvailabilityZoneName", "Encrypted", "KmsKeyId", "PerformanceMode", "ProvisionedThroughputInMibps")
        made = context.client("efs").create_file_system(
            CreationToken=context.name,
            Tags=properties.pop(self._TAGS, []),
            **taken(properties, (*keys, "ThroughputMode")),
        )
        return Physical(made["FileSystemId"], {"Arn": made["FileSystemArn"], "FileSystemId": made["FileSystemId"]})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the tags."""
        if self._TAGS in changed:
            efs = context.client("efs")
            before, after = context.previous.get(self._TAGS, []), properties.get(self._TAGS, [])
            if gone := as_dictionary(before).keys() - as_dictionary(after).keys():
                efs.untag_resource(ResourceId=physical.ref, TagKeys=sorted(gone))
            if after:
                efs.tag_resource(ResourceId=physical.ref, Tags=after)
            changed.remove(self._TAGS)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the file system; EFS refuses it while there are mount targets."""
        with unless_gone("FileSystemNotFound"):
            context.client("efs").delete_file_system(FileSystemId=physical.ref)


class MountTarget(Model):
    """AWS::EFS::MountTarget, a network interface in a subnet."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the mount target."""
        made = context.client("efs").create_mount_target(
            **taken(properties, ("FileSystemId", "IpAddress", "SecurityGroups", "SubnetId"))
        )
        return Physical(made["MountTargetId"], {"Id": made["MountTargetId"], "IpAddress": made["IpAddress"]})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the security groups."""
        if "SecurityGroups" in changed:
            context.client("efs").modify_mount_target_security_groups(
                MountTargetId=physical.ref, SecurityGroups=properties["SecurityGroups"]
            )
            changed.remove("SecurityGroups")
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the mount target with its interface."""
        with unless_gone("MountTargetNotFound"):
            context.client("efs").delete_mount_target(MountTargetId=physical.ref)


MODELS: Mapping[str, Model] = {
    "AWS::FSx::DataRepositoryAssociation": DataRepositoryAssociation(),
    "AWS::FSx::FileSystem": LustreFileSystem(),
    "AWS::EFS::FileSystem": ElasticFileSystem(),
    "AWS::EFS::MountTarget": MountTarget(),
}
