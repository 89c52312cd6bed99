"""What the defaults of this project add to a configuration: a fixed list, with the reason of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scripts.change.init.changes import Change, Section
from ultracluster.domain.overrides import mappings, named, without_indices
from ultracluster.domain.violations import Path

_SSH = "port 22 is open to nobody: Session Manager needs no port"
REASONS = {
    "Imds.ImdsSupport": "else a forged request gets the credentials of a node",
    "HeadNode.Ssh.AllowedIps": _SSH,
    "LoginNodes.Pools.Ssh.AllowedIps": _SSH,
    "HeadNode.LocalStorage.RootVolume.Size": "room for /home",
    "HeadNode.SharedStorageEfsSettings.Encrypted": "what is stored is encrypted",
    "Scheduling.SlurmSettings.QueueUpdateStrategy": "a change waits for jobs, and needs no stopped fleet",
    "Scheduling.SlurmSettings.CustomSlurmSettings": "the scheduler looks at more jobs, and more often",
    "Scheduling.SlurmQueues.JobExclusiveAllocation": "Slurm does not see NeuronCores: two jobs would share them",
    "Scheduling.SlurmQueues.Networking.PlacementGroup.Name": "nodes are near one another",
    "Scheduling.SlurmQueues.ComputeSettings.LocalStorage.RootVolume.Size": "room for images and logs",
    "Scheduling.SlurmQueues.ComputeResources.Efa.Enabled": "nodes with Trainium train by it",
    "DevSettings.EfaInterfaceType": "one address for each node",
}
"""Why, by the key of what is added."""
DEFAULTS: dict[str, Any] = {
    "HeadNode.Imds.Secured": True,
    "HeadNode.LocalStorage.RootVolume.Encrypted": True,
    "HeadNode.LocalStorage.RootVolume.VolumeType": "gp3",
    "LoginNodes.Pools.GracetimePeriod": 10,
    "DirectoryService.LdapTlsReqCert": "hard",
    "DirectoryService.GenerateSshKeysForUsers": True,
    "Scheduling.ScalingStrategy": "all-or-nothing",
    "Scheduling.SlurmSettings.ScaledownIdletime": 10,
    "Scheduling.SlurmQueues.CapacityType": "ONDEMAND",
    "Scheduling.SlurmQueues.JobExclusiveAllocation": False,
    "Scheduling.SlurmQueues.Networking.PlacementGroup.Enabled": False,
    "Scheduling.SlurmQueues.ComputeSettings.LocalStorage.RootVolume.Encrypted": True,
    "Scheduling.SlurmQueues.ComputeSettings.LocalStorage.RootVolume.VolumeType": "gp3",
    "Scheduling.SlurmQueues.ComputeSettings.LocalStorage.EphemeralVolume.MountDir": "/scratch",
    "Scheduling.SlurmQueues.ComputeResources.MinCount": 0,
    "Scheduling.SlurmQueues.ComputeResources.MaxCount": 10,
    "Scheduling.SlurmQueues.ComputeResources.Efa.Enabled": False,
    "Scheduling.SlurmQueues.ComputeResources.DisableSimultaneousMultithreading": False,
    "Monitoring.DetailedMonitoring": False,
    "Monitoring.Logs.CloudWatch.Enabled": True,
    "Monitoring.Logs.CloudWatch.RetentionInDays": 180,
    "Monitoring.Logs.CloudWatch.DeletionPolicy": "Retain",
    "Monitoring.Dashboards.CloudWatch.Enabled": True,
    "Monitoring.Alarms.Enabled": True,
}
"""What ParallelCluster itself does where nothing is said (aws-parallelcluster 3.16.1, config/cluster_config.py)."""
_ELSEWHERE = ("Region", "Scheduling.Scheduler", "SharedStorage")
_SUBNETS = ("Networking.SubnetId", "Networking.SubnetIds")
"""What is told of in other words."""


def additions(wanted: Section, configuration: Section) -> Iterator[Change]:
    """Yield what a configuration does that one of ParallelCluster, with its own defaults, does not.

    Args:
        wanted: What was taken over.
        configuration: What the settings lead to.
    """
    told = set[tuple[str, str]]()
    for path, value in _further(wanted, configuration, ()):
        key = without_indices(path)
        if key.startswith(_ELSEWHERE) or key.endswith(_SUBNETS) or (key in DEFAULTS and DEFAULTS[key] == value):
            continue
        if (key, repr(value)) not in told:
            told.add((key, repr(value)))
            reason = next((REASONS[each] for each in REASONS if f"{key}.".startswith(f"{each}.")), "a default here")
            yield Change(path, None, value, reason)


def _further(wanted: Any, has: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield place and value of what one has and the other lacks."""
    if isinstance(has, dict):
        for key, value in has.items():
            yield from _further(wanted.get(key) if isinstance(wanted, dict) else None, value, (*path, key))
    elif isinstance(has, list) and has and all(isinstance(each, dict) for each in has):
        for index, item in enumerate(has):
            key = named(path, item)
            own = [each for each in mappings(wanted) if each == item or (key and each.get(key) == item[key])]
            yield from _further(own[0] if own else None, item, (*path, index))
    elif wanted is None and has != []:
        yield path, has
