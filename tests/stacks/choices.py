"""What people may choose and no file of ours does, in two deployments; their golden templates show what it becomes."""

from __future__ import annotations

from collections.abc import Callable

from config.settings import Settings
from tests.stacks.deployments import Raw, edited

ACCOUNT = "123456789012"
VPC = {
    "vpc_id": "vpc-0123456789abcdef0",
    "public_subnet_id": "subnet-0123456789abcdef0",
    "private_subnet_id": "subnet-0123456789abcdef1",
}
SECRET = f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:"
DATA = {"path": "/data", "prefix": "corpus", "import_events": ["NEW", "CHANGED"], "export_events": []}
NAMED = {"path": "/old", "bucket": "my-runs", "import_events": [], "export_events": []}


def use_much(raw: Raw) -> None:
    """Choose what goes together; labels of placement groups may differ by a hyphen."""
    raw.update(name="much", account=ACCOUNT)
    raw["network"].update(interface_endpoints=["parallelcluster", "ecr.api"], flow_log_retention_days=None)
    raw["storage"]["data_repositories"] = [DATA, NAMED]
    raw["storage"]["file_system"].update(
        backup_retention_days=0,
        kms_key_arn=f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab",
        metadata_iops=12_000,
    )
    raw["monitoring"].update(emails=["a@example.com", "b@example.com"], file_system_full_percent=60)
    database = {"Uri": "db", "UserName": "u", "PasswordSecretArn": f"{SECRET}db-a"}
    settings = {"Database": database, "MungeKeySecretArn": f"{SECRET}mk-b"}
    raw["cluster"]["overrides"] = {"Scheduling": {"SlurmSettings": settings}}
    raw["cluster"]["login_nodes"] = [{"name": "login", "count": 2}]
    [queue] = raw["cluster"]["queues"]
    labels = ("left-wing", "right-wing", "left-wing", "leftwing")
    raw["cluster"]["queues"] = [
        {**queue, "name": f"q{index}", "placement_group": label} for index, label in enumerate(labels)
    ]


def use_little(raw: Raw) -> None:
    """Choose the VPC of somebody else, a file system that goes with its stack, neither metrics nor a dashboard."""
    raw["name"] = "little"
    raw["network"] = {**{key: raw["network"][key] for key in raw["network"] if key.endswith("cidr")}, "existing": VPC}
    raw["storage"].update(data_repositories=[DATA], retain=False)
    raw["storage"]["file_system"]["backup_retention_days"] = 0
    raw["monitoring"].update(node_metrics=False, dashboard=False)


CHOICES: dict[str, Callable[[Raw], None]] = {"much": use_much, "little": use_little}


def chosen(name: str) -> Settings:
    """Return the settings of one of the choices."""
    return edited("trn1-16", CHOICES[name])
