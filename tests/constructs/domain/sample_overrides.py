"""An override of each key that ParallelCluster knows."""

from __future__ import annotations

from typing import Any

from tests.constructs.domain.specs import CLUSTER
from ultracluster.domain.parallelcluster_schema import Field, fields

POLICY = {"Policy": "arn:aws:iam::123456789012:policy/parallelcluster-x"}
ROLE = "arn:aws:iam::123456789012:role/parallelcluster/mine"
OFFICE = "203.0.113.0/24"
VALUES: dict[str, Any] = {
    "AllowedIps": OFFICE,
    "Region": CLUSTER.region,
    "InstanceRole": ROLE,
    "ImdsSupport": "v2.0",
    "Policy": POLICY["Policy"],
    "IntelHpcPlatform": False,
    "ResourcePrefix": "/parallelcluster/mine/",
    "CustomSlurmSettings": {"Features": "x"},
    "StorageType": "Ebs",
    "Name": "own",
    "ExtraChefAttributes": "{}",
    "ThroughputMode": "bursting",
    "DatabaseName": "slurm",
    "InstanceProfile": "arn:aws:iam::123456789012:instance-profile/parallelcluster/mine",
    "PermissionsBoundary": "arn:aws:iam::123456789012:policy/boundary",
    "PasswordSecretArn": "arn:aws:secretsmanager:us-west-2:123456789012:secret:s-AbCdEf",
    "WeeklyMaintenanceStartTime": "1:00:00",
    "DailyAutomaticBackupStartTime": "00:00",
    "LambdaFunctionsRole": "arn:aws:iam::123456789012:role/parallelcluster/functions",
}
"""Values of keys that take no others of the schema's kind."""
BESIDE: dict[str, dict[str, Any]] = {
    "SharedStorage.EfsSettings.ProvisionedThroughput": {"ThroughputMode": "provisioned"},
}
"""What keys need beside them."""
SAMPLES = {"boolean": True, "mapping": {}, "any": "x", "number": 1.5}
ITEMS: dict[str, dict[str, Any]] = {
    "Scheduling.SlurmQueues": {"Name": "trn1"},
    "Scheduling.SlurmQueues.ComputeResources": {"Name": "trn1-32xl"},
    "LoginNodes.Pools": {"Name": "login"},
    "SharedStorage": {"Name": "s", "MountDir": "/s", "StorageType": "Ebs"},
    "HeadNode.Dcv": {"Enabled": True, "AllowedIps": OFFICE},
    "LoginNodes.Pools.Dcv": {"Enabled": True, "AllowedIps": OFFICE},
}


def _value_of(path: str, field: Field) -> Any:
    """Return a value that the schema takes at a path."""
    place, _, key = path.rpartition(".")
    if key in ITEMS.get(place, ()):
        return ITEMS[place][key]
    if key in VALUES and not (field.choices and VALUES[key] not in field.choices):
        value = VALUES[key]
        if path == "Scheduling.SlurmSettings.CustomSlurmSettings":
            return [{"MessageTimeout": "60"}]
        return {"MaxTime": "1"} if path == "Scheduling.SlurmQueues.CustomSlurmSettings" else value
    if field.choices:
        value = field.choices[-1]
    elif field.kind in ("integer", "text"):
        least = int(field.least or 1)
        text = next((each for each in _texts(least) if field.pattern is None or each.startswith(_start(field))), "x")
        value = least if field.kind == "integer" else text
    else:
        value = SAMPLES[field.kind]
    return [value] * max(1, field.items_least or 1) if field.list else value


def _texts(length: int) -> list[str]:
    ids = [
        f"{kind}-0123456789abcdef0"
        for kind in ("sg", "subnet", "ami", "vol", "fs", "fsvol", "snap", "fc", "fsap", "lt")
    ]
    return [*ids, "backup-01234567", "/x", "1:00:00", "00:00", "s3://b/k", "x" * length]


def _start(field: Field) -> str:
    return (field.pattern or "").lstrip("^(").partition("-")[0].partition("[")[0].partition("\\")[0].partition("|")[0]


def override_of(path: str) -> dict[str, Any]:
    """Return an override that has a value at a path, and what its sections need."""
    value = _value_of(path, fields()[path])
    *above, last = path.split(".")
    value = {last: value, **BESIDE.get(path, {})}
    while above:
        place = ".".join(above)
        section = fields()[place]
        needed = {
            each.rpartition(".")[2]: _value_of(each, fact)
            for each, fact in fields().items()
            if fact.required and each.rpartition(".")[0] == place and fact.kind != "section"
        }
        item = ITEMS.get(place, needed if section.list or section.or_sequence or place in _WHOLE else {})
        value = {**item, **value}
        if place == "SharedStorage" and path.split(".")[1].endswith("Settings"):
            value["StorageType"] = path.split(".")[1].removesuffix("Settings")
        value = {above.pop(): [value] if section.list else value}
    return value


_WHOLE = {
    "DirectoryService",
    "DeploymentSettings.LambdaFunctionsVpcConfig",
    "Scheduling.SlurmSettings.Database",
    "Scheduling.SlurmSettings.ExternalSlurmdbd",
    "SharedStorage.EbsSettings.Raid",
    "Scheduling.SlurmQueues.ComputeResources.LaunchTemplateOverrides",
    "SharedStorage.FsxOpenZfsSettings",
    "SharedStorage.FsxOntapSettings",
    "SharedStorage.FileCacheSettings",
}
LEAVES = {path: field for path, field in fields().items() if field.kind != "section"}
