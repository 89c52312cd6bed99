"""Warnings of ParallelCluster's validators: which stop a deployment, and which do not.

Many warnings mean a cluster that does not work, so every warning stops a deployment unless this module says otherwise:
ParallelCluster's provider is asked to fail on warnings, and gets a list of validators to leave out. It knows no finer
lever (aws-parallelcluster 3.16.1, ``models/cluster.py``, ``config/common.py``): what it leaves out says no errors,
either. So only validators are left out whose warning is transient and whose errors cannot occur here, and those that
the settings accept.

The tables have every validator of aws-parallelcluster 3.16.1 (``pcluster/validators/``) that can warn of a cluster, by
its type, with what to do.
"""

from collections.abc import Mapping

TIMED_OUT = "timed out after"
"""Words of a validator that was too slow (``validators/common.py``, ``get_async_timed_validator_type_for``)."""

_LAUNCH = "let no subnet of these nodes assign public addresses"
_NOT_SHOWN = "`./ultracluster preflight` tells why AWS does not show the secret; if nothing is wrong, deploy again"

BROKEN: Mapping[str, str] = {
    "ComputeResourceLaunchTemplateValidator": _LAUNCH,
    "DuplicateMountDirValidator": "change storage.file_system.mount_dir or scratch_dir",
    "HeadNodeLaunchTemplateValidator": _LAUNCH,
    "PlacementGroupCapacityTypeValidator": "set placement_group to none",
    "SchedulableMemoryValidator": "remove SchedulableMemory",
}
"""Their warnings mean a broken cluster."""

ACCEPTABLE: Mapping[str, str] = {
    "AmiOsCompatibleValidator": "use an image as docs/guides/images.md says",
    "CapacityBlockHealthStatusValidator": "deploy once it has started",
    "CapacityReservationResourceGroupValidator": "add the reservation to the group",
    "CapacityTypeValidator": "look it up in EC2's documentation",
    "ComputeResourceTagsValidator": "give each tag in one place",
    "CustomAmiTagValidator": "use an image as docs/guides/images.md says; a copy of such an image loses its tags",
    "DcvValidator": "set Dcv.AllowedIps, or another instance type",
    "DetailedMonitoringValidator": "set monitoring.detailed_monitoring to false",
    "DomainAddrValidator": "begin DirectoryService.DomainAddr with ldaps://",
    "EbsVolumeSizeSnapshotValidator": "wait for the snapshot, or take its size",
    "EfaPlacementGroupValidator": "set placement_group",
    "EfaSecurityGroupValidator": "see that the security group exists, and deploy again",
    "EfaValidator": "set efa to true",
    "ExternalSlurmdbdTrafficNotEncrypted": "see that the network between is trusted",
    "ExtraChefAttributesValidator": "leave cluster_readiness_check alone",
    "InstanceTypeAcceleratorManufacturerValidator": "use an image with the driver",
    "InstanceTypeOSCompatibleValidator": "take a larger type",
    "InstancesEFAValidator": "set Efa.Enabled",
    "InstancesMemorySchedulingWarningValidator": "use a compute resource for each type",
    "InstancesNetworkingValidator": "use a compute resource for each type",
    "KeyPairValidator": "set head_node.ssh_key_name",
    "LdapTlsReqCertValidator": "set DirectoryService.LdapTlsReqCert to hard",
    "LogRotationValidator": "set Monitoring.Logs.Rotation.Enabled to false",
    "MixedSecurityGroupOverwriteValidator": "see that all nodes reach each other",
    "MungeKeySecretSizeAndBase64Validator": _NOT_SHOWN,
    "PasswordSecretArnValidator": _NOT_SHOWN,
    "PlacementGroupCapacityReservationValidator": "set placement_group to none",
    "RootVolumeEncryptionConsistencyValidator": "encrypt all of them",
    "SharedEbsPerformanceBottleNeckValidator": "keep data in the Lustre file system",
    "SlurmNodePrioritiesWarningValidator": "give static nodes the lower StaticNodePriority",
    "UrlValidator": "put it where the provider may read it, or see that nodes can",
}
"""Whether their warnings mean a broken cluster depends on what was meant: the settings may accept them."""

TRANSIENT: Mapping[str, str] = {
    "AsyncTimedUrlValidator": (
        "nothing: all scripts are assets, which the CDK uploads before it deploys; overrides can name no others"
    ),
}
"""Their warnings go away by themselves."""

VALIDATORS: Mapping[str, str] = {**BROKEN, **ACCEPTABLE, **TRANSIENT}
