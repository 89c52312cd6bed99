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
        means: What they say.
        advice: What to do, beside accepting them.
        source: Where they are given: files and lines in ``pcluster/validators/`` of aws-parallelcluster 3.16.1.
        errors: Whether the validator has errors, too, which the provider does not see once the warnings are accepted.
    """

    effect: Effect
    means: str
    advice: str
    source: str
    errors: bool


def _broken(means: str, advice: str, source: str, *, errors: bool) -> ValidatorWarning:
    return ValidatorWarning("stops", means, advice, source, errors)


def _acceptable(means: str, advice: str, source: str, *, errors: bool) -> ValidatorWarning:
    return ValidatorWarning("stops unless accepted", means, advice, source, errors)


_LAUNCH = (
    "EC2 refuses the launch: several network cards and a public address",
    "let no subnet of these nodes assign public addresses",
    "cluster_validators.py:1200",
)
_URL_SOURCE = "s3_validators.py:36, s3_validators.py:79, s3_validators.py:93, s3_validators.py:98"
_SECRET = (
    "AWS does not show the secret: it does not exist, the provider may not read it, or its permission is too new",
    "`make preflight` tells which; if nothing is wrong, deploy again",
)

VALIDATORS: Mapping[str, ValidatorWarning] = {
    "AmiOsCompatibleValidator": _acceptable(
        "the image does not say which OS it has",
        "use an image of `make image`",
        "ec2_validators.py:335",
        errors=True,
    ),
    "AsyncTimedUrlValidator": ValidatorWarning(
        "passes",
        "a node script cannot be read: its permission has not propagated, S3 took over 5 seconds, or it is not there",
        "nothing: all scripts are assets, which the CDK uploads before it deploys; overrides can name no others",
        f"common.py:129, {_URL_SOURCE}",
        errors=True,
    ),
    "CapacityBlockHealthStatusValidator": _acceptable(
        "the Capacity Block of a P6e-GB200 UltraServer has not started (no other type is asked about)",
        "deploy once it has started",
        "ec2_validators.py:585",
        errors=True,
    ),
    "CapacityReservationResourceGroupValidator": _acceptable(
        "the group has no reservation for an instance type or a subnet: nodes can start outside of it",
        "add the reservation to the group",
        "ec2_validators.py:682, ec2_validators.py:736",
        errors=True,
    ),
    "CapacityTypeValidator": _acceptable(
        "EC2 does not say whether the instance type can be bought this way",
        "look it up in EC2's documentation",
        "ec2_validators.py:306",
        errors=True,
    ),
    "ComputeResourceLaunchTemplateValidator": _broken(*_LAUNCH, errors=True),
    "ComputeResourceTagsValidator": _acceptable(
        "a tag of an override replaces one of the cluster on these nodes",
        "give each tag in one place",
        "tags_validators.py:40, tags_validators.py:47, tags_validators.py:55, tags_validators.py:64",
        errors=True,
    ),
    "CustomAmiTagValidator": _acceptable(
        "the image has no tags of ParallelCluster: it may not be one of its images, and then nodes do not start",
        "use an image of `make image`; a copy of such an image loses its tags",
        "cluster_validators.py:160",
        errors=True,
    ),
    "DcvValidator": _acceptable(
        "Amazon DCV on a small instance type, open to the world, or without a GPU",
        "set Dcv.AllowedIps, or another instance type",
        "cluster_validators.py:1027, cluster_validators.py:1034, cluster_validators.py:1042",
        errors=True,
    ),
    "DetailedMonitoringValidator": _acceptable(
        "detailed monitoring costs",
        "set monitoring.detailed_monitoring to false",
        "monitoring_validators.py:37",
        errors=False,
    ),
    "DomainAddrValidator": _acceptable(
        "the directory is reached by ldap, or by no known protocol",
        "begin DirectoryService.DomainAddr with ldaps://",
        "directory_service_validators.py:37, directory_service_validators.py:43, directory_service_validators.py:56",
        errors=False,
    ),
    "DuplicateMountDirValidator": _broken(
        "a shared file system and the nodes' own disks have the same mount point",
        "change storage.file_system.mount_dir or scratch_dir",
        "cluster_validators.py:761",
        errors=True,
    ),
    "EbsVolumeSizeSnapshotValidator": _acceptable(
        "the volume is larger than its snapshot, or the snapshot is not complete",
        "wait for the snapshot, or take its size",
        "ebs_validators.py:160, ebs_validators.py:169",
        errors=True,
    ),
    "EfaPlacementGroupValidator": _acceptable(
        "nodes with EFA are in no placement group", "set placement_group", "cluster_validators.py:361", errors=True
    ),
    "EfaSecurityGroupValidator": _acceptable(
        "EC2 does not describe a security group of the nodes",
        "see that it exists, and deploy again",
        "cluster_validators.py:404",
        errors=True,
    ),
    "EfaValidator": _acceptable(
        "the instance type has EFA, and it is off", "set efa to true", "cluster_validators.py:334", errors=True
    ),
    "ExternalSlurmdbdTrafficNotEncrypted": _acceptable(
        "traffic to the external slurmdbd is not encrypted",
        "see that the network between is trusted",
        "slurm_settings_validator.py:221",
        errors=False,
    ),
    "ExtraChefAttributesValidator": _acceptable(
        "the check that all nodes have taken an update is off",
        "leave cluster_readiness_check alone",
        "dev_settings_validators.py:90, dev_settings_validators.py:119",
        errors=True,
    ),
    "HeadNodeLaunchTemplateValidator": _broken(*_LAUNCH, errors=True),
    "InstanceTypeAcceleratorManufacturerValidator": _acceptable(
        "ParallelCluster has no driver for the accelerator of the instance type",
        "use an image with the driver",
        "ec2_validators.py:80, ec2_validators.py:107",
        errors=False,
    ),
    "InstanceTypeOSCompatibleValidator": _acceptable(
        "a micro or nano instance has little memory for the OS",
        "use a larger one",
        "ec2_validators.py:208",
        errors=True,
    ),
    "InstancesEFAValidator": _acceptable(
        "an instance type has EFA, and it is off", "set Efa.Enabled", "instances_validators.py:177", errors=True
    ),
    "InstancesMemorySchedulingWarningValidator": _acceptable(
        "Slurm schedules by the memory of the smallest of several instance types",
        "use a compute resource for each type",
        "instances_validators.py:323",
        errors=False,
    ),
    "InstancesNetworkingValidator": _acceptable(
        "instance types of one compute resource differ in network cards, or share a placement group",
        "use a compute resource for each type",
        "instances_validators.py:209, instances_validators.py:224, "
        "instances_validators.py:243, instances_validators.py:251",
        errors=False,
    ),
    "KeyPairValidator": _acceptable(
        "there is no SSH key", "set head_node.ssh_key_name", "ec2_validators.py:247", errors=True
    ),
    "LdapTlsReqCertValidator": _acceptable(
        "the directory's certificate is not checked",
        "set DirectoryService.LdapTlsReqCert to hard",
        "directory_service_validators.py:119",
        errors=False,
    ),
    "LogRotationValidator": _acceptable(
        "logs go to CloudWatch no more and are rotated away on the nodes",
        "set Monitoring.Logs.Rotation.Enabled to false",
        "monitoring_validators.py:23",
        errors=False,
    ),
    "MixedSecurityGroupOverwriteValidator": _acceptable(
        "some nodes have ParallelCluster's security groups and others do not",
        "see that all nodes reach each other",
        "cluster_validators.py:1118",
        errors=False,
    ),
    "MungeKeySecretSizeAndBase64Validator": _acceptable(*_SECRET, "secret_validators.py:82", errors=True),
    "PasswordSecretArnValidator": _acceptable(*_SECRET, "directory_service_validators.py:107", errors=True),
    "PlacementGroupCapacityReservationValidator": _acceptable(
        "a reservation made outside of placement groups, and nodes in one: EC2 may find no place in it",
        "set placement_group to none",
        "ec2_validators.py:787",
        errors=True,
    ),
    "PlacementGroupCapacityTypeValidator": _broken(
        "a Capacity Block and a placement group: EC2 finds no place for the nodes",
        "set placement_group to none",
        "ec2_validators.py:750",
        errors=False,
    ),
    "RootVolumeEncryptionConsistencyValidator": _acceptable(
        "root volumes of some queues are encrypted and of others are not",
        "encrypt all of them",
        "cluster_validators.py:1536",
        errors=False,
    ),
    "SchedulableMemoryValidator": _broken(
        "EC2 does not say the memory of the instance type, and Slurm would give jobs 1 MiB",
        "remove SchedulableMemory",
        "cluster_validators.py:225",
        errors=True,
    ),
    "SharedEbsPerformanceBottleNeckValidator": _acceptable(
        "over 100 nodes use an EBS volume of the head node",
        "keep data in the Lustre file system",
        "cluster_validators.py:1328",
        errors=False,
    ),
    "SlurmNodePrioritiesWarningValidator": _acceptable(
        "Slurm would take dynamic nodes before static ones",
        "give static nodes the lower StaticNodePriority",
        "slurm_settings_validator.py:182",
        errors=False,
    ),
    "UrlValidator": _acceptable(
        "a file that overrides name cannot be read by the provider: slurm.conf to include, cookbook, node package",
        "put it where the provider may read it, or see that nodes can",
        _URL_SOURCE,
        errors=True,
    ),
}
"""Every validator of aws-parallelcluster 3.16.1 that can warn of a cluster, by its type."""

ACCEPTABLE = tuple(name for name, known in VALIDATORS.items() if known.effect == "stops unless accepted")
"""Validators whose warnings the settings may accept."""
