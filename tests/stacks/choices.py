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
    raw.update(name="much", account=ACCOUNT, tags={"b": "x", "a": "y"})
    raw["network"].update(interface_endpoints=["parallelcluster", "ecr.api"], flow_log_retention_days=None)
    raw["storage"]["data_repositories"] = [DATA, NAMED]
    raw["storage"]["file_system"].update(
        backup_retention_days=0,
        kms_key_arn=f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab",
        metadata_iops=12_000,
    )
    raw["homes"] = {
        "type": "fsx-openzfs",
        "openzfs": {
            "deployment_type": "SINGLE_AZ_HA_2",
            "capacity_gib": 1000,
            "throughput_mbps": 320,
            "compression": "ZSTD",
            "backup_retention_days": 14,
            "quota_gib_per_user": 50,
        },
        "kms_key_arn": f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    }
    raw["users"] = [{"name": "ada", "uid": 2001}]
    boundary = f"arn:aws:iam::{ACCOUNT}:policy/boundary"
    raw["roles"] = {"permissions_boundary_arn": boundary, "path": "/parallelcluster/lab/", "name_prefix": "lab-"}
    emails = ["a@example.com", "b@example.com"]
    raw["monitoring"].update(emails=emails, file_system_full_percent=60, dashboard=False)
    raw["budget"] = {"monthly_usd": 50_000, "max_usd_per_hour": 400, "action": "drain"}
    cluster = raw["cluster"]
    cluster.update(os="alinux2023", neuron_sdk="2.27.1", pytorch="2.8", efa_interface_type="efa")
    cluster["custom_ami"] = "ami-01234567"
    cluster["head_node"].update(
        public=False, root_volume_gib=500, shared_storage="efs", ssh_key_name="mine", ssh_cidr="10.0.0.0/8"
    )
    cluster["login_nodes"] = [
        {"name": "public", "count": 2, "public": True, "grace_minutes": 5},
        {"name": "private", "ssh_cidr": "10.0.0.0/8"},
    ]
    cluster["slurm"] = {
        "idle_minutes": -1,
        "queue_update_strategy": "TERMINATE",
        "scaling_strategy": "best-effort",
        "custom_settings": {"MessageTimeout": "60", "TCPTimeout": "30"},
    }
    cluster["monitoring"] = {
        "log_retention_days": 7,
        "retain_logs": False,
        "dashboard": False,
        "alarms": False,
        "detailed_monitoring": True,
    }
    cluster["munge_key_secret_arn"] = f"{SECRET}munge-AbCdEf"
    database = {"Uri": "db", "UserName": "u", "PasswordSecretArn": f"{SECRET}db-a"}
    cluster["overrides"] = {"Scheduling": {"SlurmSettings": {"Database": database}}}
    [queue] = cluster["queues"]
    [nodes] = queue["compute_resources"]
    other = {"exclusive_jobs": False, "root_volume_gib": None, "scratch_dir": "/local"}
    without_efa = {**nodes, "name": "off", "min_count": 2, "efa": False, "simultaneous_multithreading": False}
    small = {**nodes, "name": "small", "instance_type": "trn1.2xlarge", "efa": False}
    group = {"capacity_reservation_group_arn": f"arn:aws:resource-groups:us-west-2:{ACCOUNT}:group/trn1"}
    cluster["queues"] = [
        {**queue, "name": "q0", "placement_group": "left-wing"},
        {**queue, "name": "q1", "placement_group": "right-wing", **other},
        {**queue, "name": "q2", "placement_group": "left-wing", "compute_resources": [nodes, without_efa, small]},
        {**queue, "name": "q3", "placement_group": "leftwing", "custom_slurm_settings": {"MaxNodes": "4"}},
        {**queue, "name": "q4", "placement_group": None, "compute_resources": [{**nodes, **group}]},
    ]


def use_little(raw: Raw) -> None:
    """Choose the VPC of somebody else, file system, homes and database that go with their stacks, and no metrics."""
    raw["name"] = "little"
    raw["network"] = {**{key: raw["network"][key] for key in raw["network"] if key.endswith("cidr")}, "existing": VPC}
    raw["storage"].update(data_repositories=[DATA], retain=False)
    raw["storage"]["file_system"]["backup_retention_days"] = 0
    raw["homes"] = {"type": "efs", "retain": False}
    raw["users"] = [{"name": "ann", "uid": 3000, "account": "lab", "admin": True}, {"name": "bob", "uid": 3001}]
    raw["accounting"] = {
        "database": {"retain": False, "subnet_cidrs": ["10.0.128.0/28", "10.0.128.16/28"]},
        "accounts": [{"name": "lab", "share": 2, "max_nodes": 4, "node_hours_per_month": 1000, "max_hours": 24}],
        "qos": [{"name": "urgent", "priority": 10, "preempts": ["normal"]}],
    }
    raw["monitoring"].update(node_metrics=False)
    raw["cluster"]["login_nodes"] = [{"name": "login"}]


def use_arm(raw: Raw) -> None:
    """Choose nodes of Graviton, which have no Neuron SDK, and all that needs none."""
    raw.update(name="arm", users=[{"name": "ada", "uid": 2001}])
    raw["monitoring"].update(emails=["a@example.com"])
    raw["budget"] = {"monthly_usd": 5000, "max_usd_per_hour": 90, "action": "drain"}
    cluster = raw["cluster"]
    cluster.update(neuron_sdk=None, login_nodes=[{"name": "login", "instance_type": "c7g.large"}])
    cluster["head_node"].update(instance_type="c7g.4xlarge")
    facts = {"vcpus": 64, "memory_gib": 128, "efa_devices": 1, "usd_per_hour": 4}
    nodes = {"name": "c7gn", "instance_type": "c7gn.16xlarge", "type_facts": facts, "max_count": 8}
    cluster["queues"] = [{"name": "hpc", "compute_resources": [nodes]}]


CHOICES: dict[str, Callable[[Raw], None]] = {"much": use_much, "little": use_little}


def chosen(name: str) -> Settings:
    """Return the settings of one of the choices."""
    return edited("trn1-16", CHOICES[name])
