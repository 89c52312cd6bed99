"""A value of a wrong shape hides no other violation of a file, and is no reason to blame another value."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from config.settings import Settings
from tests.config.settings_files import GOOD, NOT_YET, message, put
from ultracluster.domain import violations
from ultracluster.domain.spec import Spec
from ultracluster.domain.violations import dotted

ARN = "arn:aws:{}:us-east-1:123456789012:{}"
KEY = ARN.format("kms", "key/1")
SECRET = ARN.format("secretsmanager", "secret:x-AbCdEf")
GROUP = ARN.format("resource-groups", "group/x")

BROKEN: dict[str, Any] = {
    "account": "210987654321",
    "zone_id": "use1-az4",
    "tags": {"aws:x": "y", "ultracluster:deployment": "x", "a b": ""},
    "bootstrap": {"kms_key_arn": KEY},
    "network": {
        "public_subnet_cidr": "10.0.0.0/28",
        "private_subnet_cidr": "10.0.64.0/27",
        "nat_addresses": 8,
        "interface_endpoints": ["ecr.dkr", "ecr-dkr"],
        "existing": {
            "vpc_id": "vpc-01234567", "public_subnet_id": "subnet-01234567", "private_subnet_id": "subnet-01234567"
        },
    },
    "storage": {
        "file_system": {
            "deployment_type": "SCRATCH_2",
            "capacity_gib": 1300,
            "throughput_mbps_per_tib": 250,
            "metadata_iops": 1500,
            "backup_retention_days": 7,
            "kms_key_arn": KEY,
            "mount_dir": "/scratch/fsx",
        },
        "data_repositories": [
            {"path": "data", "bucket": "A", "prefix": "/a", "import_events": ["NEW", "NEW"]},
            {"path": "/data", "prefix": "a"},
            {"path": "/data/b", "prefix": "a/b", "export_events": ["NEW", "NEW"]},
        ],
    },
    "cluster": {
        "name": "trn1-network",
        "parallelcluster_version": "3.16.3",
        "os": "rocky9",
        "pytorch": "1.0",
        "neuron_driver": "2.99.0.0",
        "munge_key_secret_arn": SECRET,
        "head_node": {"instance_type": "t3.micro", "ssh_key_name": "x", "root_volume_gib": 45},
        "login_nodes": [
            {"name": "default", "instance_type": "c7g.large", "ssh_cidr": "0.0.0.0/0"},
            {"name": "default", "ssh_cidr": "x", "count": 20, "public": True},
        ],
        "queues": [
            {
                "name": "a",
                "capacity_type": "CAPACITY_BLOCK",
                "placement_group": "x",
                "existing_placement_group": "y",
                "root_volume_gib": 45,
                "scratch_dir": "/scratch",
                "custom_slurm_settings": {"Nodes": "x"},
                "compute_resources": [
                    {"name": "a", "max_count": 1, "min_count": 5, "instance_type": "t3.nano", "efa": True},
                    {
                        "name": "a",
                        "instance_type": "trn9.32xlarge",
                        "max_count": 60_000,
                        "capacity_reservation_id": "cr-01234567890123456",
                        "capacity_reservation_group_arn": GROUP,
                    },
                    {"name": "abcdefghijklmnopqrstuvwxy", "instance_type": "trn1.32xlarge", "max_count": 2},
                ],
            },
            {
                "name": "a",
                "capacity_type": "SPOT",
                "scratch_dir": "/home/x",
                "compute_resources": [
                    {"name": "b", "max_count": 1, "capacity_reservation_id": "cr-01234567890123456"}
                ],
            },
            {"name": "c", "compute_resources": []},
        ],
        "slurm": {"custom_settings": {"SlurmctldHost": "x", "JobCompType": "x"}},
        "directory": {
            "domain_name": "a.example.com",
            "domain_addr": "ldaps://a",
            "password_secret_arn": SECRET,
            "domain_read_only_user": "cn=x",
            "ldap_access_filter": "(x)",
            "additional_sssd_configs": {"id_provider": "ad", "access_provider": "simple"},
        },
        "overrides": {
            "HeadNode": {"InstanceType": "x"},
            "Scheduling": {"SlurmSettings": {"Database": {}, "CustomSlurmSettingsIncludeFile": "x"}},
            "SharedStorage": [{"MountDir": "/home"}],
        },
        "accepted_warnings": [{"validator": "X", "reason": " "}, {"validator": "X", "reason": "x"}],
    },
    "monitoring": {"emails": ["a@example.com", "A@example.com"], "node_metrics": False},
    "groups": {"docker": 3000, "alice": 3000, "nlp": 2002},
    "users": [
        {"name": "root", "uid": 2001, "ssh_keys": ["x"]},
        {"name": "alice", "uid": 2001, "groups": ["cv"], "account": "z"},
        {"name": "alice", "uid": 2002, "gid": 3000},
    ],
    "accounting": {
        "accounts": [
            {"name": "root", "parent": "lab", "max_hours": 9, "node_hours_per_month": 1},
            {"name": "lab", "parent": "root"},
            {"name": "lab", "parent": "z"},
        ],
        "qos": [
            {"name": "normal", "preempts": ["z", "normal"], "accounts": ["z"]},
            {"name": "b", "preempts": ["c"]},
            {"name": "c", "preempts": ["b"], "max_hours": 9, "node_hours_per_month": 1},
        ],
        "database": {"second_zone_id": "usw2-az4", "subnet_cidrs": ["10.0.0.0/28", "10.9.0.0/28"]},
    },
    "homes": {
        "type": "fsx-openzfs",
        "file_system_id": "fs-01234567",
        "kms_key_arn": KEY,
        "openzfs": {"deployment_type": "SINGLE_AZ_HA_1", "throughput_mbps": 160, "quota_gib_per_user": 1},
    },
    "budget": {
        "monthly_usd": 1,
        "emails": ["a@example.com", "A@example.com"],
        "actual_percent": [1, 1, 2, 3, 4, 5],
        "max_usd_per_hour": 1,
        "action": "stop",
    },
}  # fmt: skip
OTHERS: dict[str, dict[str, Any]] = {
    "region": {"region": "cn-north-1"},
    "existing database": {
        "accounting": {
            "database": {"storage_gib": 30},
            "existing": {"host": "x", "user": "x", "password_secret_arn": SECRET, "security_group_id": "sg-01234567"},
        },
        "users": [],
        "homes": {"type": "efs", "openzfs": {"capacity_gib": 1024}},
    },
    "defaults": {
        "accounting": None,
        "homes": {"type": "fsx-openzfs", "openzfs": {"quota_gib_per_user": 1}},
        "users": [],
        "monitoring": {"node_metrics": True},
        "budget": {"monthly_usd": 1},
        "network": {"cidr": "10.0.0.0/27", "public_subnet_cidr": "10.0.0.0/28", "private_subnet_cidr": "10.0.0.16/28"},
    },
}
"""Sections that cannot break other rules at the same time."""
FILES = {"all": BROKEN, **{name: {**BROKEN, **sections} for name, sections in OTHERS.items()}}


def places(value: Any, place: tuple[str | int, ...] = (), model: Any = Settings) -> Iterator[tuple[str | int, ...]]:
    """Yield the places of what a file has, and of keys that it leaves to their defaults."""
    kinds = [model, *get_args(model), *(each for kind in get_args(model) for each in get_args(kind))]
    spec = next((each for each in kinds if isinstance(each, type) and issubclass(each, Spec)), None)
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield (*place, index)
            yield from places(each, (*place, index), model)
    elif isinstance(value, dict) and spec is not None:
        for name, field in spec.model_fields.items():
            yield (*place, name)
            yield from places(value.get(name), (*place, name), field.annotation)


def reported(path: Path, content: Any) -> tuple[dict[str, set[str]], set[str]]:
    """Return what is reported by place, and the sections whose rules wait."""
    path.write_text(yaml.dump(content, Dumper=yaml.CSafeDumper), encoding="utf-8")
    texts, waiting = dict[str, set[str]](), set[str]()
    for line in message(path):
        if NOT_YET in line:
            named = line.partition(NOT_YET)[2].partition(" are checked")[0]
            waiting |= {*named.replace(" and ", ", ").split(", ")}
        else:
            place, _, text = line.partition(": ")[2].partition(": ")
            texts.setdefault(place, set()).add(text)
    return texts, waiting


def at(value: Any, place: tuple[str | int, ...]) -> Any:
    for key in place:
        value = value[key] if isinstance(key, int) else (value or {}).get(key)
    return value


def section(place: str) -> str:
    return place.partition(".")[0].partition("[")[0]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "wrong"), [("all", {"qqqq": 1}), *((name, [[]]) for name in FILES)])
def test_a_wrong_shape_of_any_key_hides_and_blames_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, wrong: Any
) -> None:
    monkeypatch.setattr(violations, "MAX_REPORTED", 1000)
    monkeypatch.setattr(violations, "_MAX_BYTES", 1_000_000)
    content = {**yaml.safe_load(GOOD), **FILES[name]}
    before, none = reported(tmp_path / "settings.yaml", content)
    assert not none
    tried = [place for place in places(content) if name == "all" or place[0] in OTHERS[name]]
    assert len(tried) > (200 if name == "all" else 0)
    if isinstance(wrong, dict):  # unknown keys in what there is
        tried = [place for place in tried if at(content, place) is not None]
    for place in tried:
        changed = copy.deepcopy(content)
        put(changed, place, wrong)
        after, waiting = reported(tmp_path / "settings.yaml", changed)
        own = dotted(place)
        hidden = [
            (each, texts - after.get(each, set()))
            for each, texts in before.items()
            if not each.startswith(own) and not texts <= after.get(each, set()) and section(each) not in waiting
        ]
        blamed = [
            (each, texts - before.get(each, set()))
            for each, texts in after.items()
            if not each.startswith(own) and not texts <= before.get(each, set())
        ]
        assert (own, hidden, blamed) == (own, [], [])
        assert wrong == {"qqqq": 1} or any(each.startswith(own) for each in after)
