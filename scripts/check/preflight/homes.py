"""The file system of /home that exists, and the backups of one that is made."""

from __future__ import annotations

from scripts.account import file_systems
from scripts.account.deployment import Deployment
from scripts.check.preflight.check import check
from scripts.check.preflight.network import vpc_finding
from scripts.core.aws_errors import if_found
from scripts.core.findings import FAIL, PASS, WARN, Finding

_PATH = "homes.file_system_id"
_USABLE = ("AVAILABLE", "CREATED")
"""Lifecycles of a volume that can be mounted."""


@check(
    "homes-file-system",
    "Existing file system of /home",
    calls=("elasticfilesystem:DescribeMountTargets", "fsx:DescribeVolumes", "cloudformation:DescribeStacks"),
)
def homes_file_system(deployment: Deployment) -> Finding | None:
    """ParallelCluster would reject the cluster, or no node could mount /home.

    https://docs.aws.amazon.com/efs/latest/ug/API_DescribeMountTargets.html,
    https://docs.aws.amazon.com/fsx/latest/APIReference/API_DescribeVolumes.html
    """
    homes = deployment.settings.homes
    if homes is None or homes.file_system_id is None:
        return None
    judge = _elastic if homes.type == "efs" else _volume
    return judge(deployment, homes.file_system_id)


def _elastic(deployment: Deployment, name: str) -> Finding:
    """Judge the mount targets of an EFS file system, of which one must be in the zone."""
    zone_id = deployment.settings.zone_id
    command = deployment.command("efs", "describe-mount-targets", "--file-system-id", name)
    listed = if_found(lambda: file_systems.mount_targets(deployment.account, name))
    if listed is None:
        return _missing(deployment, f"EFS file system {name}", command)
    targets = {each.zone_id: each for each in listed}
    if zone_id not in targets:
        zones = ", ".join(sorted(targets)) or "no zone"
        sentence = f"{name} has mount targets in {zones}; allowed: one in {zone_id}, the cluster's zone"
        words = ("efs", "create-mount-target", "--file-system-id", name, "--subnet-id", "SUBNET_ID")
        return Finding(FAIL, sentence, f"`{deployment.command(*words)}`, or change `{_PATH}`", command)
    target = targets[zone_id]
    if target.state != "available":
        sentence = f"the mount target of {name} in {zone_id} is {target.state}; allowed: available"
        return Finding(FAIL, sentence, "wait until it is available, some minutes, or make another one", command)
    return vpc_finding(deployment, target.id, target.vpc_id, _PATH, command)


def _volume(deployment: Deployment, name: str) -> Finding:
    command = deployment.command("fsx", "describe-volumes", "--volume-ids", name)
    volume = if_found(lambda: file_systems.volume(deployment.account, name))
    if volume is None:
        return _missing(deployment, f"volume {name}", command)
    if volume.type != "OPENZFS":
        sentence = f"{name} is a volume of {volume.type}; allowed: OPENZFS"
        return Finding(FAIL, sentence, f"change `{_PATH}`", command)
    if volume.state not in _USABLE:
        sentence = f"{name} is {volume.state}; allowed: {' or '.join(_USABLE)}"
        return Finding(
            FAIL, sentence, "wait until it is, some minutes, or look at the file system in the console of FSx", command
        )
    return Finding(PASS, f"{name} of {volume.file_system_id} is {volume.state}", command=command)


def _missing(deployment: Deployment, what: str, command: str) -> Finding:
    sentence = f"{deployment.settings.region} has no {what}, or it is another account's"
    return Finding(FAIL, sentence, f"change `{_PATH}`", command)


@check("homes-backups", "Backups of homes on EFS", calls=("backup:DescribeRegionSettings",))
def homes_backups(deployment: Deployment) -> Finding | None:
    """AWS Backup might take no backups of the homes, and tell nobody.

    https://docs.aws.amazon.com/aws-backup/latest/devguide/API_DescribeRegionSettings.html
    """
    homes = deployment.settings.homes
    if homes is None or not homes.is_made or homes.type != "efs":
        return None
    region = deployment.settings.region
    command = deployment.command("backup", "describe-region-settings")
    settings = deployment.account.ask("backup", "describe_region_settings")
    if settings.get("ResourceTypeOptInPreference", {}).get("EFS", False):
        return Finding(PASS, f"AWS Backup is switched on for EFS in {region}", command=command)
    words = ("backup", "update-region-settings", "--resource-type-opt-in-preference", "EFS=true")
    return Finding(WARN, f"AWS Backup is switched off for EFS in {region}", f"`{deployment.command(*words)}`", command)


CHECKS = (homes_file_system, homes_backups)
