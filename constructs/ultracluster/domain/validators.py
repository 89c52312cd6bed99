"""Warnings of ParallelCluster's validators: which stop a deployment, and which do not.

Many warnings mean a cluster that does not work, so every warning stops a deployment unless this module says otherwise:
ParallelCluster's provider is asked to fail on warnings, and gets a list of validators to leave out. It knows no finer
lever (aws-parallelcluster 3.16.1, ``models/cluster.py``, ``config/common.py``): what it leaves out says no errors,
either. So only validators are left out whose warning is transient and whose errors cannot occur here, and those that
the settings accept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Effect = Literal["stops", "stops unless accepted", "passes"]

TIMED_OUT = "timed out after"
"""Words of a validator that was too slow (``validators/common.py``, ``get_async_timed_validator_type_for``)."""


@dataclass(frozen=True)
class ValidatorWarning:
    """What is known of the warnings of one validator.

    Attributes:
        effect: What they do to a deployment: ``stops``: they mean a broken cluster; ``stops unless accepted``: it
            depends on what was meant; ``passes``: they go away by themselves.
        advice: What to do, beside accepting them.
        source: Where they are given: files and lines in ``pcluster/validators/`` of aws-parallelcluster 3.16.1.
        errors: Whether the validator has errors, too, which the provider does not see once the warnings are accepted.
    """

    effect: Effect
    advice: str
    source: str
    errors: bool


def _broken(advice: str, source: str, *, errors: bool) -> ValidatorWarning:
    return ValidatorWarning("stops", advice, source, errors)


def _acceptable(advice: str, source: str, *, errors: bool) -> ValidatorWarning:
    return ValidatorWarning("stops unless accepted", advice, source, errors)


_LAUNCH = ("let no subnet of these nodes assign public addresses", "cluster_validators.py:1200")
_URL_SOURCE = "s3_validators.py:36, s3_validators.py:79, s3_validators.py:93, s3_validators.py:98"
_NOT_SHOWN = "`./ultracluster preflight` tells why AWS does not show the secret; if nothing is wrong, deploy again"

VALIDATORS: Mapping[str, ValidatorWarning] = {
    "AmiOsCompatibleValidator": _acceptable(
        "use an image as docs/images.md says", "ec2_validators.py:335", errors=True
    ),
    "AsyncTimedUrlValidator": ValidatorWarning(
        "passes",
        "nothing: all scripts are assets, which the CDK uploads before it deploys; overrides can name no others",
        f"common.py:129, {_URL_SOURCE}",
        errors=True,
    ),
    "CapacityBlockHealthStatusValidator": _acceptable(
        "deploy once it has started", "ec2_validators.py:585", errors=True
    ),
    "CapacityReservationResourceGroupValidator": _acceptable(
        "add the reservation to the group", "ec2_validators.py:682, ec2_validators.py:736", errors=True
    ),
    "CapacityTypeValidator": _acceptable("look it up in EC2's documentation", "ec2_validators.py:306", errors=True),
    "ComputeResourceLaunchTemplateValidator": _broken(*_LAUNCH, errors=True),
    "ComputeResourceTagsValidator": _acceptable(
        "give each tag in one place",
        "tags_validators.py:40, tags_validators.py:47, tags_validators.py:55, tags_validators.py:64",
        errors=True,
    ),
    "CustomAmiTagValidator": _acceptable(
        "use an image as docs/images.md says; a copy of such an image loses its tags",
        "cluster_validators.py:160",
        errors=True,
    ),
    "DcvValidator": _acceptable(
        "set Dcv.AllowedIps, or another instance type",
        "cluster_validators.py:1027, cluster_validators.py:1034, cluster_validators.py:1042",
        errors=True,
    ),
    "DetailedMonitoringValidator": _acceptable(
        "set monitoring.detailed_monitoring to false", "monitoring_validators.py:37", errors=False
    ),
    "DomainAddrValidator": _acceptable(
        "begin DirectoryService.DomainAddr with ldaps://",
        "directory_service_validators.py:37, directory_service_validators.py:43, directory_service_validators.py:56",
        errors=False,
    ),
    "DuplicateMountDirValidator": _broken(
        "change storage.file_system.mount_dir or scratch_dir", "cluster_validators.py:761", errors=True
    ),
    "EbsVolumeSizeSnapshotValidator": _acceptable(
        "wait for the snapshot, or take its size", "ebs_validators.py:160, ebs_validators.py:169", errors=True
    ),
    "EfaPlacementGroupValidator": _acceptable("set placement_group", "cluster_validators.py:361", errors=True),
    "EfaSecurityGroupValidator": _acceptable(
        "see that the security group exists, and deploy again", "cluster_validators.py:404", errors=True
    ),
    "EfaValidator": _acceptable("set efa to true", "cluster_validators.py:334", errors=True),
    "ExternalSlurmdbdTrafficNotEncrypted": _acceptable(
        "see that the network between is trusted", "slurm_settings_validator.py:221", errors=False
    ),
    "ExtraChefAttributesValidator": _acceptable(
        "leave cluster_readiness_check alone",
        "dev_settings_validators.py:90, dev_settings_validators.py:119",
        errors=True,
    ),
    "HeadNodeLaunchTemplateValidator": _broken(*_LAUNCH, errors=True),
    "InstanceTypeAcceleratorManufacturerValidator": _acceptable(
        "use an image with the driver", "ec2_validators.py:80, ec2_validators.py:107", errors=False
    ),
    "InstanceTypeOSCompatibleValidator": _acceptable("take a larger type", "ec2_validators.py:208", errors=True),
    "InstancesEFAValidator": _acceptable("set Efa.Enabled", "instances_validators.py:177", errors=True),
    "InstancesMemorySchedulingWarningValidator": _acceptable(
        "use a compute resource for each type", "instances_validators.py:323", errors=False
    ),
    "InstancesNetworkingValidator": _acceptable(
        "use a compute resource for each type",
        "instances_validators.py:209, instances_validators.py:224, "
        "instances_validators.py:243, instances_validators.py:251",
        errors=False,
    ),
    "KeyPairValidator": _acceptable("set head_node.ssh_key_name", "ec2_validators.py:247", errors=True),
    "LdapTlsReqCertValidator": _acceptable(
        "set DirectoryService.LdapTlsReqCert to hard", "directory_service_validators.py:119", errors=False
    ),
    "LogRotationValidator": _acceptable(
        "set Monitoring.Logs.Rotation.Enabled to false", "monitoring_validators.py:23", errors=False
    ),
    "MixedSecurityGroupOverwriteValidator": _acceptable(
        "see that all nodes reach each other", "cluster_validators.py:1118", errors=False
    ),
    "MungeKeySecretSizeAndBase64Validator": _acceptable(_NOT_SHOWN, "secret_validators.py:82", errors=True),
    "PasswordSecretArnValidator": _acceptable(_NOT_SHOWN, "directory_service_validators.py:107", errors=True),
    "PlacementGroupCapacityReservationValidator": _acceptable(
        "set placement_group to none", "ec2_validators.py:787", errors=True
    ),
    "PlacementGroupCapacityTypeValidator": _broken(
        "set placement_group to none", "ec2_validators.py:750", errors=False
    ),
    "RootVolumeEncryptionConsistencyValidator": _acceptable(
        "encrypt all of them", "cluster_validators.py:1536", errors=False
    ),
    "SchedulableMemoryValidator": _broken("remove SchedulableMemory", "cluster_validators.py:225", errors=True),
    "SharedEbsPerformanceBottleNeckValidator": _acceptable(
        "keep data in the Lustre file system", "cluster_validators.py:1328", errors=False
    ),
    "SlurmNodePrioritiesWarningValidator": _acceptable(
        "give static nodes the lower StaticNodePriority", "slurm_settings_validator.py:182", errors=False
    ),
    "UrlValidator": _acceptable(
        "put it where the provider may read it, or see that nodes can", _URL_SOURCE, errors=True
    ),
}
"""Every validator of aws-parallelcluster 3.16.1 that can warn of a cluster, by its type."""

ACCEPTABLE = tuple(name for name, known in VALIDATORS.items() if known.effect == "stops unless accepted")
"""Validators whose warnings the settings may accept."""
