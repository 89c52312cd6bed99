"""Amazon FSx for Lustre: file systems and their links to buckets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.resources.common import retag, taken, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError


class FileSystem(Model):
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


MODELS: Mapping[str, Model] = {
    "AWS::FSx::DataRepositoryAssociation": DataRepositoryAssociation(),
    "AWS::FSx::FileSystem": FileSystem(),
}
