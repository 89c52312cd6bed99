"""Amazon EFS: file systems and their mount targets."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.resources.common import as_dictionary, taken, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties


class FileSystem(Model):
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
    "AWS::EFS::FileSystem": FileSystem(),
    "AWS::EFS::MountTarget": MountTarget(),
}
