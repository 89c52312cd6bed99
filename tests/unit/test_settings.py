"""Settings files: what is accepted, and what is said of what is not."""

import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from textwrap import dedent

import pytest
from pydantic import ValidationError

from config.settings import (
    DataRepositorySettings,
    LoginPoolSettings,
    MonitoringSettings,
    NetworkSettings,
    Settings,
    SettingsError,
    StorageSettings,
    load,
)

CONFIG = Path(__file__).parents[2] / "config"
FILES = sorted(CONFIG.glob("*.yaml"))

GOOD = dedent("""\
    name: trn1
    account: null
    region: us-west-2
    zone_id: usw2-az4
    tags: {project: trn1}
    termination_protection: [network]
    network:
      cidr: 10.0.0.0/16
      public_subnet_cidr: 10.0.0.0/24
      private_subnet_cidr: 10.0.64.0/18
      nat_addresses: 1
    storage:
      file_system:
        capacity_gib: 4800
        backup_retention_days: 7
      data_repositories: []
      retain: true
    cluster:
      name: null
      pytorch: "2.9"
      head_node:
        ssh_cidr: null
      login_nodes: []
      queues:
        - name: trn1
          capacity_type: ONDEMAND
          compute_resources:
            - name: trn1-32xl
              instance_type: trn1.32xlarge
              max_count: 16
      slurm: {custom_settings: {}}
      overrides: {}
    monitoring: {}
    """)
"""A file that is in order. The tables change a line or two of it; § stands before the line that is at fault."""

RESERVED = "capacity_reservation_id: cr-0123456789abcdef0"
GROUP = "capacity_reservation_group_arn: arn:aws:resource-groups:us-west-2:123456789012:group/trn1"
KEY = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
A_VPC = "{vpc_id: vpc-01234567, public_subnet_id: subnet-01234567, private_subnet_id: subnet-76543210}"


@pytest.fixture(scope="session")
def write(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    path = tmp_path_factory.mktemp("settings") / "settings.yaml"

    def writer(text: str) -> Path:
        path.write_text(text, encoding="utf-8")
        return path

    return writer


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, f"{old!r} stands {GOOD.count(old)} times in the good file"
    return GOOD.replace(old, new)


def repeated(template: str, count: int) -> str:
    """Return a YAML list on one line."""
    return "[" + ", ".join(template.replace("#", str(index)) for index in range(count)) + "]"


def compute_resources(template: str) -> tuple[str, str]:
    """Return a change that gives the only queue these compute resources."""
    old = GOOD[GOOD.index("compute_resources:") : GOOD.index("  slurm:")].rstrip()
    return old, f"§compute_resources: {template}"


def queues(template: str) -> tuple[str, str]:
    """Return a change of all queues."""
    old = GOOD[GOOD.index("queues:") : GOOD.index("  slurm:")].rstrip()
    return old, f"§queues: {template}"


NODES = "compute_resources: [{name: a, max_count: 1}]"

# What changes; where; what was got, as it is shown; what is allowed.
SHAPES = {
    "name": (
        "name: trn1\naccount",
        "§name: Trn1\naccount",
        "name",
        "'Trn1'",
        "pattern '^[a-z][a-z0-9-]{1,39}$' (Name of the",
    ),
    "long name": ("name: trn1\naccount", f"§name: {'a' * 41}\naccount", "name", f"'{'a' * 41}'", "[a-z0-9-]{1,39}$"),
    "short name": ("name: trn1\naccount", "§name: a\naccount", "name", "'a'", "[a-z0-9-]{1,39}$"),
    "number for a name": (
        "name: trn1\naccount",
        "§name: 16\naccount",
        "name",
        "16",
        "a valid string, put it in quotes",
    ),
    "unquoted account": ("account: null", "§account: 123456789012", "account", "123456789012", "put it in quotes"),
    "short account": (
        "account: null",
        '§account: "12345"',
        "account",
        "'12345'",
        r"'^\d{12}$' (AWS account, in quotes",
    ),
    "region": ("region: us-west-2", "§region: us-west-2a", "region", "'us-west-2a'", r"'^[a-z]{2}(-[a-z]+)+-\d$'"),
    "zone name": ("zone_id: usw2-az4", "§zone_id: us-west-2a", "zone_id", "'us-west-2a'", "(a zone name such as"),
    "tag": ("{project: trn1}", "{\n§project: 16}", "tags.project", "16", "a valid string, put it in quotes"),
    "tag key": ("{project: trn1}", "{1: trn1}", "tags[1]", "1", "a valid string, put it in quotes"),
    "long tag": ("{project: trn1}", f"\n§  a: {'x' * 257}", "tags.a", f"'{'x' * 257}'", "at most 256 characters"),
    "tags": ("tags: {project: trn1}", "§tags: [project]", "tags", "['project']", "a mapping"),
    "protection": (
        "[network]",
        "\n§  - all",
        "termination_protection[0]",
        "'all'",
        "'network', 'storage', 'cluster' or 'monitoring'",
    ),
    "protection of one": ("[network]", "network", "termination_protection", "'network'", "should be a list"),
    "too many nats": ("nat_addresses: 1", "§nat_addresses: 9", "network.nat_addresses", "9", "less than or equal to 8"),
    "no nat": ("nat_addresses: 1", "§nat_addresses: 0", "network.nat_addresses", "0", "greater than or equal to 1"),
    "text": ("nat_addresses: 1", '§nat_addresses: "1"', "network.nat_addresses", "'1'", "a valid integer (Public"),
    "fraction": ("nat_addresses: 1", "§nat_addresses: 1.0", "network.nat_addresses", "1.0", "a valid integer"),
    "truth": ("nat_addresses: 1", "§nat_addresses: true", "network.nat_addresses", "True", "a valid integer"),
    "endpoint": (
        "nat_addresses: 1",
        "§interface_endpoints: [SSM]",
        "network.interface_endpoints[0]",
        "'SSM'",
        "^[a-z]",
    ),
    "vpc": (
        "nat_addresses: 1",
        "§existing: " + A_VPC.replace("vpc-01234567", "vpc-1"),
        "network.existing.vpc_id",
        "'vpc-1'",
        "'^vpc-[0-9a-f]{8,17}$' (Id of the VPC",
    ),
    "public subnet": (
        "nat_addresses: 1",
        "§existing: " + A_VPC.replace("subnet-01234567", "public"),
        "network.existing.public_subnet_id",
        "'public'",
        "'^subnet-[0-9a-f]{8,17}$'",
    ),
    "private subnet": (
        "nat_addresses: 1",
        "§existing: " + A_VPC.replace("subnet-76543210", "private"),
        "network.existing.private_subnet_id",
        "'private'",
        "'^subnet-[0-9a-f]{8,17}$'",
    ),
    "email": (
        "monitoring: {}",
        "monitoring:\n§  emails: [nobody]",
        "monitoring.emails[0]",
        "'nobody'",
        r"should match pattern '^[A-Za-z0-9_%+-]+(\.",
    ),
    "long email": (
        "monitoring: {}",
        f"monitoring:\n§  emails: [{'a' * 243}@example.com]",
        "monitoring.emails[0]",
        f"'{'a' * 243}@example.com'",
        "at most 254 characters",
    ),
    "full percent": (
        "monitoring: {}",
        "monitoring:\n§  file_system_full_percent: 100",
        "monitoring.file_system_full_percent",
        "100",
        "less than or equal to 99",
    ),
    "empty percent": (
        "monitoring: {}",
        "monitoring:\n§  file_system_full_percent: 49",
        "monitoring.file_system_full_percent",
        "49",
        "greater than or equal to 50",
    ),
    "retain": ("retain: true", "§retain: keep", "storage.retain", "'keep'", "a valid boolean"),
    "section": ("slurm: {custom_settings: {}}", "§slurm: []", "cluster.slurm", "[]", "should be a mapping"),
    "file system": (
        "capacity_gib: 4800",
        "§deployment_type: SCRATCH_1",
        "storage.file_system.deployment_type",
        "'SCRATCH_1'",
        "'SCRATCH_2', 'PERSISTENT_1' or 'PERSISTENT_2'",
    ),
    "compression": (
        "capacity_gib: 4800",
        "§compression: ZSTD",
        "storage.file_system.compression",
        "'ZSTD'",
        "'LZ4' or",
    ),
    "cluster name": ("name: null", "§name: 1-trn", "cluster.name", "'1-trn'", "'^[a-zA-Z][a-zA-Z0-9-]{1,59}$'"),
    "long cluster name": ("name: null", f"§name: {'a' * 61}", "cluster.name", f"'{'a' * 61}'", "{1,59}$"),
    "unquoted pytorch": (
        'pytorch: "2.9"',
        "§pytorch: 2.9",
        "cluster.pytorch",
        "2.9",
        "put it in quotes (PyTorch version",
    ),
    "unquoted sdk": ('pytorch: "2.9"', "§neuron_sdk: 2.28", "cluster.neuron_sdk", "2.28", "put it in quotes"),
    "pcluster": (
        'pytorch: "2.9"',
        "§parallelcluster_version: 3.16.3",
        "cluster.parallelcluster_version",
        "'3.16.3'",
        "'3.16.1' (Version of ParallelCluster; another one means a new cluster)",
    ),
    "os": (
        'pytorch: "2.9"',
        "§os: rhel9",
        "cluster.os",
        "'rhel9'",
        "or 'alinux2023' (Operating system of all nodes, one that AWS makes the Neuron SDK for)",
    ),
    "image": ('pytorch: "2.9"', "§custom_ami: ami-1", "cluster.custom_ami", "'ami-1'", "^ami-"),
    "efa type": (
        'pytorch: "2.9"',
        "§efa_interface_type: ena",
        "cluster.efa_interface_type",
        "'ena'",
        "'efa-only' or 'efa'",
    ),
    "head volume": ("ssh_cidr: null", "§root_volume_gib: 40", "cluster.head_node.root_volume_gib", "40", "equal to 45"),
    "head type": (
        "ssh_cidr: null",
        "§instance_type: c6i",
        "cluster.head_node.instance_type",
        "'c6i'",
        "(x86 instance type",
    ),
    "capacity type": (
        "capacity_type: ONDEMAND",
        "§capacity_type: on-demand",
        "cluster.queues[0].capacity_type",
        "'on-demand'",
        "'ONDEMAND', 'SPOT' or 'CAPACITY_BLOCK'",
    ),
    "group label": (
        "capacity_type: ONDEMAND",
        "§placement_group: Fleet",
        "cluster.queues[0].placement_group",
        "'Fleet'",
        "'^[a-z][a-z0-9-]{0,24}$' (Label of a cluster placement group",
    ),
    "volume": (
        "capacity_type: ONDEMAND",
        "§root_volume_gib: 8",
        "cluster.queues[0].root_volume_gib",
        "8",
        "equal to 45",
    ),
    "slurm number": (
        "capacity_type: ONDEMAND",
        "custom_slurm_settings:\n§        MaxNodes: 4",
        "cluster.queues[0].custom_slurm_settings.MaxNodes",
        "4",
        "put it in quotes",
    ),
    "min": (
        "max_count: 16",
        "max_count: 16\n§          min_count: -1",
        f"{'cluster.queues[0]'}.compute_resources[0].min_count",
        "-1",
        "equal to 0",
    ),
    "max": ("max_count: 16", "§max_count: 0", "cluster.queues[0].compute_resources[0].max_count", "0", "equal to 1"),
    "reservation": (
        "max_count: 16",
        "max_count: 16\n§          capacity_reservation_id: cr-1",
        "cluster.queues[0].compute_resources[0].capacity_reservation_id",
        "'cr-1'",
        "'^cr-[0-9a-f]{17}$'",
    ),
    "reservation group": (
        "max_count: 16",
        "max_count: 16\n§          capacity_reservation_group_arn: trn1",
        "cluster.queues[0].compute_resources[0].capacity_reservation_group_arn",
        "'trn1'",
        ":resource-groups:",
    ),
    "grace": (
        "login_nodes: []",
        "login_nodes:\n§    - {name: login, grace_minutes: 2}",
        "cluster.login_nodes[0].grace_minutes",
        "2",
        "greater than or equal to 3",
    ),
    "long grace": (
        "login_nodes: []",
        "login_nodes:\n§    - {name: login, grace_minutes: 121}",
        "cluster.login_nodes[0].grace_minutes",
        "121",
        "less than or equal to 120",
    ),
    "logins": (
        "login_nodes: []",
        "login_nodes:\n§    - {name: login, count: -1}",
        "cluster.login_nodes[0].count",
        "-1",
        "greater than or equal to 0",
    ),
    "idle": (
        "slurm: {custom_settings: {}}",
        "§slurm: {idle_minutes: -2}",
        "cluster.slurm.idle_minutes",
        "-2",
        "equal to -1",
    ),
    "strategy": (
        "slurm: {custom_settings: {}}",
        "§slurm: {queue_update_strategy: WAIT}",
        "cluster.slurm.queue_update_strategy",
        "'WAIT'",
        "'DRAIN', 'TERMINATE' or 'COMPUTE_FLEET_STOP'",
    ),
    "scaling": (
        "slurm: {custom_settings: {}}",
        "§slurm: {scaling_strategy: some}",
        "cluster.slurm.scaling_strategy",
        "'some'",
        "'all-or-nothing', 'greedy-all-or-nothing' or 'best-effort'",
    ),
    "overrides": ("overrides: {}", "§overrides: []", "cluster.overrides", "[]", "should be a mapping"),
}
QUEUE = "cluster.queues[0]"
RESOURCE = f"{QUEUE}.compute_resources[0]"
MORE = "max_count: 16\n§          "
RULES = {
    "not a block": ("cidr: 10.0.0.0/16", "§cidr: ten", "network.cidr", "'ten'", "an IPv4 block such as 10.0.0.0/16"),
    "netmask": (
        "cidr: 10.0.0.0/16",
        "§cidr: 10.0.0.0/255.255.0.0",
        "network.cidr",
        "'10.0.0.0/255.255.0.0'",
        "an IPv4 block",
    ),
    "bits": (
        "cidr: 10.0.0.0/16",
        "§cidr: 10.0.0.1/16",
        "network.cidr",
        "'10.0.0.1/16'",
        "no bits set after the prefix",
    ),
    "vpc size": (
        "cidr: 10.0.0.0/16",
        "§cidr: 10.0.0.0/15",
        "network.cidr",
        "'10.0.0.0/15'",
        "a prefix from /16 to /28",
    ),
    "subnet size": (
        "public_subnet_cidr: 10.0.0.0/24",
        "§public_subnet_cidr: 10.0.0.0/29",
        "network.public_subnet_cidr",
        "'10.0.0.0/29'",
        "a prefix from /16 to /28",
    ),
    "outside": (
        "public_subnet_cidr: 10.0.0.0/24",
        "§public_subnet_cidr: 10.1.0.0/24",
        "network.public_subnet_cidr",
        "'10.1.0.0/24'",
        "a block inside 10.0.0.0/16",
    ),
    "overlap": (
        "private_subnet_cidr: 10.0.64.0/18",
        "§private_subnet_cidr: 10.0.0.0/18",
        "network.private_subnet_cidr",
        "'10.0.0.0/18'",
        "a block apart from public_subnet_cidr 10.0.0.0/24 (subnets overlap)",
    ),
    "too small": (
        "private_subnet_cidr: 10.0.64.0/18",
        "§private_subnet_cidr: 10.0.64.0/27",
        "network.private_subnet_cidr",
        "'10.0.64.0/27'",
        "a /26 or larger (16 nodes take 16 addresses with EFA interface type efa-only, other things 36; this",
    ),
    "flow logs": (
        "nat_addresses: 1",
        "§flow_log_retention_days: 8",
        "network.flow_log_retention_days",
        "8",
        "one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288",
    ),
    "nat of an existing vpc": (
        "nat_addresses: 1",
        f"existing: {A_VPC}\n§  nat_addresses: 2",
        "network.nat_addresses",
        "2",
        "leave it out (an existing VPC is not changed)",
    ),
    "endpoints of an existing vpc": (
        "nat_addresses: 1",
        f"existing: {A_VPC}\n§  interface_endpoints: [ssm]",
        "network.interface_endpoints",
        "['ssm']",
        "leave it out",
    ),
    "flow logs of an existing vpc": (
        "nat_addresses: 1",
        f"existing: {A_VPC}\n§  flow_log_retention_days: 30",
        "network.flow_log_retention_days",
        "30",
        "leave it out",
    ),
    "vpc block of an existing vpc": (
        "network:\n  cidr: 10.0.0.0/16\n",
        f"§network:\n  existing: {A_VPC}\n",
        "network.cidr",
        "None",
        "the block of the existing VPC or subnet (it is not looked up)",
    ),
    "public block of an existing vpc": (
        "network:\n  cidr: 10.0.0.0/16\n  public_subnet_cidr: 10.0.0.0/24\n",
        f"§network:\n  cidr: 10.0.0.0/16\n  existing: {A_VPC}\n",
        "network.public_subnet_cidr",
        "None",
        "the block of the existing VPC or subnet",
    ),
    "private block of an existing vpc": (
        GOOD[GOOD.index("network:") : GOOD.index("  nat_addresses")],
        f"§network:\n  cidr: 10.0.0.0/16\n  public_subnet_cidr: 10.0.0.0/24\n  existing: {A_VPC}\n",
        "network.private_subnet_cidr",
        "None",
        "the block of the existing VPC or subnet",
    ),
    "one subnet of an existing vpc": (
        "nat_addresses: 1",
        "§existing: " + A_VPC.replace("subnet-76543210", "subnet-01234567"),
        "network.existing.private_subnet_id",
        "'subnet-01234567'",
        "another subnet (nodes of several interfaces take no public addresses)",
    ),
    "region of another partition": (
        "region: us-west-2",
        "§region: us-gov-west-1",
        "region",
        "'us-gov-west-1'",
        "a Region of AWS's standard partition",
    ),
    "public subnet size": (
        GOOD[GOOD.index("public_subnet_cidr") : GOOD.index("queues:")],
        GOOD[GOOD.index("public_subnet_cidr") : GOOD.index("queues:")]
        .replace("public_subnet_cidr: 10.0.0.0/24", "§public_subnet_cidr: 10.0.0.0/28")
        .replace("login_nodes: []", "login_nodes: [{name: a, public: true, count: 9}]"),
        "network.public_subnet_cidr",
        "'10.0.0.0/28'",
        "a /27 or larger (head node, NAT gateway and login nodes take 12 addresses; this subnet has 11)",
    ),
    "zone of another region": (
        "zone_id: usw2-az4",
        "§zone_id: use1-az4",
        "zone_id",
        "'use1-az4'",
        "usw2-az1, usw2-az2",
    ),
    "capacity": (
        "capacity_gib: 4800",
        "§capacity_gib: 3600",
        "storage.file_system.capacity_gib",
        "3600",
        "1200, 2400 or a",
    ),
    "throughput": (
        "capacity_gib: 4800",
        "§throughput_mbps_per_tib: 200",
        "storage.file_system.throughput_mbps_per_tib",
        "200",
        "125, 250, 500 or 1000",
    ),
    "lustre logs": (
        "capacity_gib: 4800",
        "§log_retention_days: 2",
        "storage.file_system.log_retention_days",
        "2",
        "one of 1, 3, 5, 7",
    ),
    "key of another region": (
        "capacity_gib: 4800",
        f"§kms_key_arn: {KEY.replace('us-west-2', 'us-east-1')}",
        "storage.file_system.kms_key_arn",
        f"'{KEY.replace('us-west-2', 'us-east-1')}'",
        "one in us-west-2 (it must be in the deployment's Region)",
    ),
    "mount": ("capacity_gib: 4800", "§mount_dir: /home", "storage.file_system.mount_dir", "'/home'", "outside /home"),
    "backups of a linked one": (
        "data_repositories: []",
        "data_repositories: [{path: /data}]",
        "storage.file_system.backup_retention_days",
        "7",
        "0 with data repositories",
    ),
    "repositories": (
        "backup_retention_days: 7\n  data_repositories: []",
        "backup_retention_days: 0\n§  data_repositories: " + repeated("{path: /d#, prefix: p#}", 9),
        "storage.data_repositories",
        "9",
        "at most 8",
    ),
    "cluster named like a stack": (
        "name: null",
        "§name: trn1-cluster",
        "cluster.name",
        "'trn1-cluster'",
        "another name than trn1-network, trn1-storage, trn1-cluster, trn1-monitoring",
    ),
    "cluster named like the stack of a generation": (
        "name: null",
        "§name: trn1-cluster-2",
        "cluster.name",
        "'trn1-cluster-2'",
        "another name than trn1-network, trn1-storage, trn1-cluster, trn1-monitoring",
    ),
    "generation named like its stack": (
        "name: null",
        "§name: trn1-cluster\n  generation: 2",
        "cluster.name",
        "'trn1-cluster-2'",
        "another name than trn1-network, trn1-storage, trn1-cluster, trn1-monitoring",
    ),
    "name with accounting": (
        GOOD[GOOD.index("name: null") :],
        GOOD[GOOD.index("name: null") :]
        .replace("name: null", f"§name: {'a' * 41}")
        .replace("overrides: {}", "overrides: {Scheduling: {SlurmSettings: {Database: {Uri: db}}}}"),
        "cluster.name",
        f"'{'a' * 41}'",
        "at most 40 characters (with Slurm accounting",
    ),
    "sdk": (
        'pytorch: "2.9"',
        "§neuron_sdk: 2.33.0",
        "cluster.neuron_sdk",
        "'2.33.0'",
        "2.27.1 or 2.28.1 (2.28 is the last line that trains with PyTorch on Trn1",
    ),
    "pytorch": (
        'pytorch: "2.9"',
        '§pytorch: "2.6"',
        "cluster.pytorch",
        "'2.6'",
        "2.8 or 2.9 (what Neuron SDK 2.28.1 has for ubuntu2404)",
    ),
    "pytorch of the os": (
        'pytorch: "2.9"',
        'os: alinux2023\n§  pytorch: "2.9"',
        "cluster.pytorch",
        "'2.9'",
        "2.8 (PyTorch 2.9.0 needs glibc 2.35, and alinux2023 has 2.34)",
    ),
    "reserved tag": (
        "{project: trn1}",
        "\n§  AWS:x: y",
        "tags.AWS:x",
        "'AWS:x'",
        "no key that begins with parallelcluster: or aws:",
    ),
    "reserved tag of pcluster": (
        "{project: trn1}",
        '\n§  "parallelcluster:x": y',
        "tags.parallelcluster:x",
        "'parallelcluster:x'",
        "no key that begins with",
    ),
    "tag key length": (
        "{project: trn1}",
        f"\n§  {'k' * 129}: y",
        f"tags.{'k' * 129}",
        f"'{'k' * 129}'",
        "1 to 128 characters",
    ),
    "empty tag key": ("{project: trn1}", '\n§  "": y', "tags.", "''", "1 to 128 characters"),
    "tags": ("{project: trn1}", "{" + repeated("k#: v", 40)[1:-1] + "}", "tags", "40", "at most 39 tags"),
    "arm head": (
        "ssh_cidr: null",
        "§instance_type: c7g.4xlarge",
        "cluster.head_node.instance_type",
        "'c7g.4xlarge'",
        "an x86",
    ),
    "small head": (
        "ssh_cidr: null",
        "§instance_type: t3.micro",
        "cluster.head_node.instance_type",
        "'t3.micro'",
        "a type larger than micro (too small for ubuntu2404)",
    ),
    "ssh from the world": (
        "ssh_cidr: null",
        "§ssh_cidr: 0.0.0.0/0",
        "cluster.head_node.ssh_cidr",
        "'0.0.0.0/0'",
        "a block of /8 or smaller, best your office's (port 22 open to the world)",
    ),
    "ssh from half of the world": (
        "ssh_cidr: null",
        "§ssh_cidr: 128.0.0.0/1",
        "cluster.head_node.ssh_cidr",
        "'128.0.0.0/1'",
        "/8",
    ),
    "ssh from an address": (
        "ssh_cidr: null",
        "§ssh_cidr: 203.0.113.5",
        "cluster.head_node.ssh_cidr",
        "'203.0.113.5'",
        "an IPv4 block such as 203.0.113.0/24, or a prefix list pl-...",
    ),
    "key behind a shut port": (
        "ssh_cidr: null",
        "ssh_key_name: mine\n§    ssh_cidr: null",
        "cluster.head_node.ssh_cidr",
        "None",
        "your own address range, such as 203.0.113.0/24",
    ),
    "login pools": (
        "login_nodes: []",
        "§login_nodes: " + repeated("{name: p#}", 11),
        "cluster.login_nodes",
        "11",
        "at most 10 pools",
    ),
    "login name": (
        "login_nodes: []",
        "§login_nodes: [{name: Login}]",
        "cluster.login_nodes[0].name",
        "'Login'",
        "a lower-case letter",
    ),
    "arm login": (
        "login_nodes: []",
        "§login_nodes: [{name: login, instance_type: m7g.large}]",
        "cluster.login_nodes[0].instance_type",
        "'m7g.large'",
        "an x86 instance type",
    ),
    "ssh from the world to login nodes": (
        "login_nodes: []",
        "login_nodes:\n§    - {name: login, ssh_cidr: 0.0.0.0/0}",
        "cluster.login_nodes[0].ssh_cidr",
        "'0.0.0.0/0'",
        "a block of /8 or smaller",
    ),
    "no queue": (*queues("[]"), "cluster.queues", "0", "1 to 50 queues"),
    "51 queues": (*queues(repeated(f"{{name: q#, {NODES}}}", 51)), "cluster.queues", "51", "1 to 50 queues"),
    "51 compute resources": (
        *queues(
            "["
            + f"{{name: a, compute_resources: {repeated('{name: r#, max_count: 1}', 26)}}}, "
            + f"{{name: b, compute_resources: {repeated('{name: r#, max_count: 1}', 25)}}}]"
        ),
        "cluster.queues",
        "51",
        "at most 50 compute resources over all queues",
    ),
    "queue name": (
        "  - name: trn1\n",
        "§  - name: trn_1\n",
        f"{QUEUE}.name",
        "'trn_1'",
        "a lower-case letter, then letters",
    ),
    "queue named default": ("  - name: trn1\n", "§  - name: default\n", f"{QUEUE}.name", "'default'", "not `default`"),
    "long queue name": (
        "  - name: trn1\n",
        f"§  - name: {'q' * 26}\n",
        f"{QUEUE}.name",
        f"'{'q' * 26}'",
        "at most 25 in all",
    ),
    "same queue": (
        *queues(f"[{{name: a, {NODES}}}, {{name: a, {NODES}}}]"),
        "cluster.queues[1].name",
        "'a'",
        "a name of its own (given twice)",
    ),
    "no compute resource": (*compute_resources("[]"), f"{QUEUE}.compute_resources", "0", "at least 1 compute resource"),
    "same compute resource": (
        *compute_resources("[{name: a, max_count: 1}, {name: a, max_count: 1}]"),
        f"{QUEUE}.compute_resources[1].name",
        "'a'",
        "a name of its own",
    ),
    "two groups": (
        "capacity_type: ONDEMAND",
        "placement_group: fleet\n§      existing_placement_group: mine",
        f"{QUEUE}.existing_placement_group",
        "'mine'",
        "this or placement_group, not both",
    ),
    "scratch": (
        "capacity_type: ONDEMAND",
        "§scratch_dir: scratch",
        f"{QUEUE}.scratch_dir",
        "'scratch'",
        "an absolute path",
    ),
    "scratch on the root": (
        "capacity_type: ONDEMAND",
        "§scratch_dir: /",
        f"{QUEUE}.scratch_dir",
        "'/'",
        "an absolute path",
    ),
    "scratch on the system": (
        "capacity_type: ONDEMAND",
        "§scratch_dir: /usr",
        f"{QUEUE}.scratch_dir",
        "'/usr'",
        "another directory",
    ),
    "scratch on home": (
        "capacity_type: ONDEMAND",
        "§scratch_dir: /home/me",
        f"{QUEUE}.scratch_dir",
        "'/home/me'",
        "outside /home",
    ),
    "scratch on the file system": (
        "capacity_type: ONDEMAND",
        "§scratch_dir: /fsx/scratch",
        f"{QUEUE}.scratch_dir",
        "'/fsx/scratch'",
        "a path neither above nor below /fsx (the file system is mounted there)",
    ),
    "queue setting": (
        "capacity_type: ONDEMAND",
        "custom_slurm_settings:\n§        OverSubscribe: EXCLUSIVE",
        f"{QUEUE}.custom_slurm_settings.OverSubscribe",
        "'OverSubscribe'",
        "any parameter that ParallelCluster does not set itself (reserved)",
    ),
    "cluster setting": (
        "slurm: {custom_settings: {}}",
        "slurm:\n    custom_settings:\n§      GresTypes: neuron",
        "cluster.slurm.custom_settings.GresTypes",
        "'GresTypes'",
        "any parameter that ParallelCluster does not set itself",
    ),
    "accounting setting": (
        "slurm: {custom_settings: {}}\n  overrides: {}",
        "slurm:\n    custom_settings:\n§      AccountingStorageHost: db\n"
        "  overrides: {Scheduling: {SlurmSettings: {Database: {Uri: db}}}}",
        "cluster.slurm.custom_settings.AccountingStorageHost",
        "'AccountingStorageHost'",
        "any parameter that ParallelCluster does not set itself",
    ),
    "min over max": ("max_count: 16", MORE + "min_count: 17", f"{RESOURCE}.min_count", "17", "at most max_count, 16"),
    "arm nodes": (
        "instance_type: trn1.32xlarge",
        "§instance_type: c7gn.xlarge",
        f"{RESOURCE}.instance_type",
        "'c7gn.xlarge'",
        "an x86",
    ),
    "small nodes": (
        "instance_type: trn1.32xlarge",
        "§instance_type: t3.nano",
        f"{RESOURCE}.instance_type",
        "'t3.nano'",
        "than micro",
    ),
    "efa on a small one": (
        "instance_type: trn1.32xlarge",
        "instance_type: trn1.2xlarge\n§          efa: true",
        f"{RESOURCE}.efa",
        "True",
        "trn1.32xlarge, trn1n.32xlarge, trn2.3xlarge, trn2.48xlarge, trn2u.48xlarge (trn1.2xlarge is not known",
    ),
    "two reservations": (
        "max_count: 16",
        f"max_count: 16\n          {RESERVED}\n§          {GROUP}",
        f"{RESOURCE}.capacity_reservation_group_arn",
        f"'{GROUP.partition(': ')[2]}'",
        "this or capacity_reservation_id, not both",
    ),
    "reservation group of another region": (
        "max_count: 16",
        f"{MORE}{GROUP.replace('us-west-2', 'us-east-1')}",
        f"{RESOURCE}.capacity_reservation_group_arn",
        f"'{GROUP.replace('us-west-2', 'us-east-1').partition(': ')[2]}'",
        "one in us-west-2 (it must be in the deployment's Region)",
    ),
    "reservation in a group of ours": (
        GOOD[GOOD.index("capacity_type") : GOOD.index("  slurm:")],
        GOOD[GOOD.index("capacity_type") : GOOD.index("  slurm:")]
        .replace("capacity_type: ONDEMAND", "§placement_group: fleet")
        .replace("max_count: 16", f"max_count: 16\n          {RESERVED}"),
        f"{QUEUE}.placement_group",
        "'fleet'",
        "none, or existing_placement_group: the group that the reservation was made in",
    ),
    "burstable nodes in a group": (
        GOOD[GOOD.index("capacity_type") : GOOD.index("  slurm:")],
        GOOD[GOOD.index("capacity_type") : GOOD.index("  slurm:")]
        .replace("capacity_type: ONDEMAND", "§placement_group: fleet")
        .replace("trn1.32xlarge", "t3.large"),
        f"{QUEUE}.placement_group",
        "'fleet'",
        "none (burstable types take no cluster placement group)",
    ),
    "unknown trn type": (
        "instance_type: trn1.32xlarge",
        "§instance_type: trn1.16xlarge",
        f"{RESOURCE}.instance_type",
        "'trn1.16xlarge'",
        "another family, or one of trn1.2xlarge, trn1.32xlarge, trn1n.32xlarge, trn2.3xlarge, trn2.48xlarge",
    ),
    "no block id": (
        "capacity_type: ONDEMAND",
        "capacity_type: CAPACITY_BLOCK",
        f"{RESOURCE}.capacity_reservation_id",
        "None",
        "the id of the Capacity Block, cr-... (nodes come from it alone)",
    ),
    "override of a modelled key": (
        "overrides: {}",
        "overrides:\n    HeadNode:\n§      InstanceType: m6i.large",
        "cluster.overrides.HeadNode.InstanceType",
        "'m6i.large'",
        "the setting cluster.head_node.instance_type (the rules of this stack count on it)",
    ),
    "override of the head node's role": (
        "overrides: {}",
        "overrides:\n    HeadNode:\n      Iam:\n§        InstanceRole: mine",
        "cluster.overrides.HeadNode.Iam.InstanceRole",
        "'mine'",
        "the setting HeadNode.Iam.AdditionalIamPolicies",
    ),
    "override that drops the head node's policies": (
        "overrides: {}",
        "overrides:\n    HeadNode:\n      Iam:\n§        AdditionalIamPolicies: null",
        "cluster.overrides.HeadNode.Iam.AdditionalIamPolicies",
        "None",
        "a list, whose policies are added (nodes need those that they have)",
    ),
    "override of a queue's access to S3": (
        "overrides: {}",
        "overrides: {Scheduling: {SlurmQueues: [{Name: trn1, Iam: {\n§S3Access: []}}]}}",
        "cluster.overrides.Scheduling.SlurmQueues[0].Iam.S3Access",
        "[]",
        "the setting Iam.AdditionalIamPolicies, for a policy whose name begins with parallelcluster",
    ),
    "override of the monitoring": (
        "overrides: {}",
        "overrides:\n    Monitoring:\n§      DetailedMonitoring: true",
        "cluster.overrides.Monitoring.DetailedMonitoring",
        "True",
        "the setting cluster.monitoring.detailed_monitoring",
    ),
    "override that hides modelled keys": (
        "overrides: {}",
        "overrides:\n§    HeadNode: null",
        "cluster.overrides.HeadNode",
        "None",
        "the setting cluster.head_node.instance_type",
    ),
    "override of an unknown queue": (
        "overrides: {}",
        "overrides:\n    Scheduling:\n      SlurmQueues:\n§        - {Name: other}",
        "cluster.overrides.Scheduling.SlurmQueues[0].Name",
        "'other'",
        "one of trn1 (names the queue to change)",
    ),
    "override of a nameless queue": (
        "overrides: {}",
        "overrides:\n    Scheduling:\n      SlurmQueues:\n§        - {AllocationStrategy: lowest-price}",
        "cluster.overrides.Scheduling.SlurmQueues[0].Name",
        "None",
        "one of trn1",
    ),
    "override of an odd queue": (
        "overrides: {}",
        "overrides:\n    Scheduling:\n      SlurmQueues:\n§        - Name: [trn1]",
        "cluster.overrides.Scheduling.SlurmQueues[0].Name",
        "['trn1']",
        "one of trn1",
    ),
    "override of queues as a mapping": (
        "overrides: {}",
        "overrides:\n    Scheduling:\n§      SlurmQueues: {trn1: {AllocationStrategy: lowest-price}}",
        "cluster.overrides.Scheduling.SlurmQueues",
        "{'trn1': {'AllocationStrategy': 'lowest-price'}}",
        "a list, each item with the Name of a queue",
    ),
    "override of an unknown compute resource": (
        "overrides: {}",
        "overrides: {Scheduling: {SlurmQueues: [{Name: trn1, ComputeResources: [\n§{Name: other}]}]}}",
        "cluster.overrides.Scheduling.SlurmQueues[0].ComputeResources[0].Name",
        "'other'",
        "one of trn1-32xl (names the compute resource to change)",
    ),
    "override with a date": (
        "overrides: {}",
        "overrides:\n§    AdditionalResources: 2026-11-21",
        "cluster.overrides.AdditionalResources",
        repr(date(2026, 11, 21)),
        "text (in quotes), a number, true, false or null",
    ),
    "override with a number for a key": (
        "overrides: {}",
        "overrides:\n§    DevSettings: {1: x}",
        "cluster.overrides.DevSettings",
        "1",
        "keys of text, in quotes if need be",
    ),
    "an address twice": (
        "monitoring: {}",
        "monitoring:\n  emails:\n    - a@example.com\n§    - A@example.com",
        "monitoring.emails[1]",
        "'A@example.com'",
        "each address once",
    ),
    "cluster logs": (
        "overrides: {}",
        "monitoring:\n§    log_retention_days: 100",
        "cluster.monitoring.log_retention_days",
        "100",
        "one of 1, 3, 5, 7",
    ),
}


def outcome(path: Path) -> list[str]:
    with pytest.raises(SettingsError) as error:
        load(path)
    return str(error.value).splitlines()


def line_of_mark(text: str) -> int:
    return text[: text.index("§")].count("\n") + 1


def test_the_base_of_the_tables_is_in_order(write: Callable[[str], Path]) -> None:
    assert load(write(GOOD)).warnings == []


def is_told(write: Callable[[str], Path], case: tuple[str, str, str, str, str]) -> None:
    old, new, place, got, allowed = case
    text = changed(old, new)
    path = write(text.replace("§", ""))
    told = outcome(path)
    ours = [line for line in told if f": {place}: " in line and allowed in line]
    assert len(ours) == 1, (case, told)
    assert f" {place}: got {got}; " in ours[0]
    if "§" in text:
        assert ours[0].startswith(f"{path}:{line_of_mark(text)}: ")


def test_a_wrong_shape_is_told_with_its_place_value_and_what_is_allowed(write: Callable[[str], Path]) -> None:
    for case in SHAPES.values():
        is_told(write, case)


@pytest.mark.parametrize("case", RULES.values(), ids=RULES)
def test_a_broken_rule_is_told_with_its_place_value_and_what_is_allowed(
    write: Callable[[str], Path], case: tuple[str, str, str, str, str]
) -> None:
    is_told(write, case)


@pytest.mark.parametrize(
    "address",
    [
        *("mailto:a@b.com", "<a@b.com>", "Me <a@b.com>", "a;b@c.de", "a,b@c.de", "mé@x.de", "a@é.de"),
        *("a", "@b.de", "a@b", "a@b.c", "a@b..de", "a@-b.de", "a@b-.de", "a@b.de.", ".a@b.de", "a..b@c.de", "a.@b.de"),
        *("a@b@c.de", "a@b.de ", "a@b.de\n", f"a@{'b' * 250}.de"),
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValidationError, match="emails"):
        MonitoringSettings(emails=[address])


def test_addresses_of_companies_and_lists_are_accepted() -> None:
    addresses = ["a@b.de", "First.Last+trn1@mail.example.co.uk", "on_call-2@x-1.xn--p1ai", f"a@{'b' * 249}.de"]
    assert MonitoringSettings(emails=addresses).emails == addresses


def test_faults_of_all_sections_are_told_at_once(write: Callable[[str], Path]) -> None:
    """Shapes, rules of one section, and rules over several sections that are sound by themselves."""
    text = (
        GOOD.replace("account: null", "account: 1")
        .replace("zone_id: usw2-az4", "zone_id: use1-az4")
        .replace("nat_addresses: 1", "nat_address: 1")
        .replace("capacity_gib: 4800", "capacity_gib: 3600")
        .replace("retain: true", "retain: perhaps")
        .replace("instance_type: trn1.32xlarge", "instance_type: c7g.large")
        .replace("ssh_cidr: null", "ssh_cidr: 0.0.0.0/0")
    )
    path = write(text)
    told = [line.split(": got")[0].split(": unknown")[0].removeprefix(f"{path}:") for line in outcome(path)]
    assert told == [
        "2: account",
        "4: zone_id",
        "11: network.nat_address",
        "14: storage.file_system.capacity_gib",
        "17: storage.retain",
        "22: cluster.head_node.ssh_cidr",
        "29: cluster.queues[0].compute_resources[0].instance_type",
    ]


def test_cross_rules_are_told_beside_shape_faults_of_other_sections(write: Callable[[str], Path]) -> None:
    text = GOOD.replace("account: null", "account: 1").replace("10.0.64.0/18", "10.0.64.0/28")
    assert [line.split(": ")[1] for line in outcome(write(text))] == ["account", "network.private_subnet_cidr"]


def test_shapes_and_rules_of_one_section_are_told_at_once(write: Callable[[str], Path]) -> None:
    """A wrong shape or an unknown key hides no rule that is broken elsewhere in its section."""
    text = (
        GOOD.replace("10.0.64.0/18", "10.0.64.0/27")
        .replace("name: null", "nome: null")
        .replace('pytorch: "2.9"', "efa_interface: efa")
        .replace("ssh_cidr: null", "instance_type: t3.micro")
        .replace("instance_type: trn1.32xlarge", "instance_type: trn1.16xlarge")
        .replace("slurm: {custom_settings: {}}", "slurm: {idle_minutes: ten}")
        .replace("overrides: {}", "overrides: {HeadNode: {InstanceType: m6i.large}}")
        .replace("retain: true", "retain: perhaps")
        .replace("backup_retention_days: 7", "backup_retention_days: 91")
        .replace("nat_addresses: 1", "flow_log_retention_days: 8\n  nat_addresses: 9")
    )
    assert [line.split(": ")[1] for line in outcome(write(text))] == [
        "network.private_subnet_cidr",
        "network.flow_log_retention_days",
        "network.nat_addresses",
        "storage.file_system.backup_retention_days",
        "storage.retain",
        "cluster.nome",
        "cluster.efa_interface",
        "cluster.head_node.instance_type",
        "cluster.head_node.instance_type",
        "cluster.queues[0].compute_resources[0].instance_type",
        "cluster.slurm.idle_minutes",
        "cluster.overrides.HeadNode.InstanceType",
    ]


def test_a_required_key_of_a_wrong_shape_hides_no_other_fault(write: Callable[[str], Path]) -> None:
    for old, new, place in (
        ("max_count: 16", "max_count: four", f"{RESOURCE}.max_count"),
        ("max_count: 16", "min_count: 0", f"{RESOURCE}.max_count"),
        ("name: trn1\naccount", "name: TRN1\naccount", "name"),
    ):
        assert old in GOOD, old
        text = changed(old, new).replace("ssh_cidr: null", "ssh_cidr: 0.0.0.0/0").replace("retain: true", "retain: 1")
        told = [line.split(": ")[1] for line in outcome(write(text))]
        assert sorted(told) == sorted([place, "cluster.head_node.ssh_cidr", "storage.retain"]), told


def test_a_default_in_the_place_of_a_wrong_value_is_not_blamed(write: Callable[[str], Path]) -> None:
    """The default of the left-out key breaks a rule beside what stands in the same mapping; the file may not."""
    for old, new, place in (
        ("ssh_cidr: null", "ssh_key_name: mine\n    ssh_cidr: 5", "cluster.head_node.ssh_cidr"),
        ("ssh_cidr: null", "ssh_key_name: mine\n    ssh_cdir: 10.0.0.0/8", "cluster.head_node.ssh_cdir"),
        (
            "backup_retention_days: 7",
            "deployment_type: PERSISTENT_1\n    throughput_mbps_per_tib: '100'\n    backup_retention_days: 7",
            "storage.file_system.throughput_mbps_per_tib",
        ),
        (
            "backup_retention_days: 7\n  data_repositories: []",
            "backup_retention_days: none\n  data_repositories: [{path: /data}]",
            "storage.file_system.backup_retention_days",
        ),
    ):
        assert [line.split(": ")[1] for line in outcome(write(changed(old, new)))] == [place]


def test_an_unknown_key_is_told_with_the_one_that_was_meant(write: Callable[[str], Path]) -> None:
    for key, near, place in (
        ("nat_addresses: 1", "nat_adresses: 1", "network.nat_adresses"),
        ("retain: true", "retian: true", "storage.retian"),
        ("max_count: 16", "max_count: 16\n          max_counts: 16", f"{RESOURCE}.max_counts"),
        ("ssh_cidr: null", "ssh_cdir: null", "cluster.head_node.ssh_cdir"),
    ):
        (told,) = outcome(write(changed(key, near)))
        meant = key.partition(":")[0]
        assert f" {place}: unknown key; did you mean {meant}? allowed: " in told
        assert f" {meant}" in told.partition("allowed:")[2]


def test_a_missing_key_is_told_with_its_meaning(write: Callable[[str], Path]) -> None:
    path = write(changed("max_count: 16", "min_count: 0"))
    assert outcome(path) == [
        f"{path}:28: cluster.queues[0].compute_resources[0].max_count: missing; this key is required (Nodes at most)"
    ]


def test_what_is_no_settings_file_is_told(write: Callable[[str], Path]) -> None:
    odd = [
        ("", "settings.yaml:1: (file): got None; should be a mapping"),
        ("# nothing", "settings.yaml:1: (file): got None; should be a mapping"),
        ("- name: trn1", "settings.yaml:1: (file): got [{'name': 'trn1'}]; should be a mapping"),
        ("name: a: b", "settings.yaml: not YAML: mapping values are not allowed"),
        ("a: 1\n---\nb: 2", "settings.yaml: not YAML: expected a single document"),
        ("a: 2026-13-45", "settings.yaml: not YAML: month must be in 1..12"),
        ("a: &a [*a]", "settings.yaml: not YAML: "),
        ("[" * 500, "settings.yaml: not YAML: "),
        ("a: !!python/name:os.system", "settings.yaml: not YAML: could not determine a constructor"),
        ("name: a\nname: b", "settings.yaml:2: name: given twice, first on line 1"),
        ("network:\n  cidr: a\n  cidr: b", "settings.yaml:3: cidr: given twice, first on line 2"),
        ("- {a: 1, a: 2}", "settings.yaml:1: a: given twice, first on line 1"),
    ]
    for text, told in odd:
        assert told in "\n".join(outcome(write(text))), text


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    assert outcome(tmp_path / "none.yaml")[0].startswith(f"{tmp_path}/none.yaml: cannot be read: ")
    assert outcome(tmp_path)[0].startswith(f"{tmp_path}: cannot be read: ")
    (tmp_path / "latin.yaml").write_bytes(b"name: \xe9")
    assert outcome(tmp_path / "latin.yaml")[0].startswith(f"{tmp_path}/latin.yaml: cannot be read: ")


def test_values_may_come_from_anchors_and_merges(write: Callable[[str], Path]) -> None:
    text = changed("max_count: 16", "max_count: &n 16").replace("capacity_gib: 4800", "capacity_gib: 4800\n    <<: {}")
    assert load(write(text)).cluster.queues[0].compute_resources[0].max_count == 16


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.stem)
def configuration(request: pytest.FixtureRequest) -> Settings:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return load(request.param)


def test_the_configurations_are_in_order(configuration: Settings) -> None:
    assert configuration.warnings == []
    assert configuration.name in {path.stem for path in FILES}


def test_there_is_a_configuration_for_each_use() -> None:
    assert {path.stem for path in FILES} >= {"dev", "trn1-16", "two-queues", "reserved", "ultracluster"}
    assert all(load(path).name == path.stem for path in FILES)


def test_the_configurations_are_what_they_are_called() -> None:
    fleets = {path.stem: load(path).cluster_spec for path in FILES}
    assert {name: spec.max_nodes for name, spec in fleets.items()} == {
        "dev": 2,
        "trn1-16": 16,
        "two-queues": 16,
        "reserved": 12,
        "ultracluster": 1875,
    }
    assert fleets["two-queues"].placement_group_labels == ["fleet"]
    assert fleets["reserved"].placement_group_labels == []
    assert fleets["ultracluster"].max_trainium_vcpus == 240_000
    assert fleets["ultracluster"].max_node_interfaces == 16_875


def test_the_private_subnet_holds_an_ultracluster(write: Callable[[str], Path]) -> None:
    for interface_type, subnet, prefix in (
        ("efa-only", "10.0.128.0/20", None),  # 1875 nodes, 32 + 4 others: 1911 of 4091
        ("efa-only", "10.0.128.0/21", None),  # 1911 of 2043
        ("efa-only", "10.0.128.0/22", 21),
        ("efa", "10.0.128.0/17", None),  # 15000 + 36 of 32763
        ("efa", "10.0.128.0/18", None),  # 15036 of 16379
        ("efa", "10.0.128.0/19", 18),
    ):
        path = write(
            GOOD.replace("10.0.64.0/18", subnet)
            .replace("max_count: 16", "max_count: 1875")
            .replace('pytorch: "2.9"', f"efa_interface_type: {interface_type}")
            .replace("ssh_cidr: null", "instance_type: m6i.16xlarge")
        )
        if prefix is None:
            assert load(path).cluster_spec.max_nodes == 1875
        else:
            allowed = f"allowed: a /{prefix} or larger (1875 nodes take "
            assert [f"network.private_subnet_cidr: got '{subnet}'; {allowed}" in line for line in outcome(path)] == [
                True
            ]


def test_other_things_in_the_private_subnet_are_counted(write: Callable[[str], Path]) -> None:
    """32, file servers, login nodes outside the public subnet, and interface endpoints."""
    text = (
        GOOD.replace("capacity_gib: 4800", "capacity_gib: 96000")
        .replace("login_nodes: []", "login_nodes: [{name: a, count: 3}, {name: b, count: 4}, {name: c, public: true}]")
        .replace("nat_addresses: 1", "interface_endpoints: [ssm, parallelcluster, logs]")
        .replace("10.0.64.0/18", "10.0.64.0/26")
    )
    (told,) = outcome(write(text))
    assert f"other things {32 + 80 + 7 + 4}; this subnet has 59)" in told


def test_what_stands_in_the_public_subnet_is_counted(write: Callable[[str], Path]) -> None:
    """The head node, addresses of the NAT gateway, login nodes that are public, and a load balancer for each pool."""
    small = GOOD.replace("10.0.0.0/24", "10.0.0.0/28").replace("nat_addresses: 1", "nat_addresses: 3")
    pools = "login_nodes: [{name: a, public: true, count: #}, {name: b, count: 9}]"
    assert load(write(small.replace("login_nodes: []", pools.replace("#", "5")))).network.nat_addresses == 3
    (told,) = outcome(write(small.replace("login_nodes: []", pools.replace("#", "6"))))
    assert "network.public_subnet_cidr: got '10.0.0.0/28'; allowed: a /27 or larger (" in told
    assert "take 12 addresses; this subnet has 11)" in told


def test_regions_of_other_partitions_are_told(write: Callable[[str], Path]) -> None:
    for region in ("cn-north-1", "us-gov-west-1", "us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1"):
        (told,) = outcome(write(changed("region: us-west-2", f"region: {region}")))
        assert f" region: got '{region}'; allowed: a Region of AWS's standard partition (" in told


def test_keys_and_reservation_groups_of_the_region_are_taken(write: Callable[[str], Path]) -> None:
    text = changed("max_count: 16", MORE.replace("§", "") + GROUP).replace("retain: true", "retain: false")
    loaded = load(write(text.replace("capacity_gib: 4800", f"kms_key_arn: {KEY}")))
    assert loaded.storage.file_system.kms_key_arn == KEY
    assert loaded.cluster.queues[0].compute_resources[0].capacity_reservation_group_arn is not None


def test_a_fleet_that_no_subnet_holds_is_told(write: Callable[[str], Path]) -> None:
    text = GOOD.replace("max_count: 16", "max_count: 70000").replace("ssh_cidr: null", "instance_type: m6i.16xlarge")
    assert any("allowed: fewer nodes: no subnet is that large" in line for line in outcome(write(text)))


def test_a_zone_without_the_instance_type_is_a_warning_with_the_zones(write: Callable[[str], Path]) -> None:
    (warning,) = load(write(changed("zone_id: usw2-az4", "zone_id: usw2-az2"))).warnings
    assert warning == (
        "cluster.queues[0].compute_resources[0].instance_type: got 'trn1.32xlarge'; allowed: zones that offer it: "
        "usw2-az1, usw2-az4, aps1-az2, apse2-az1, apse2-az2, apse4-az1, use1-az4, use1-az5, use1-az6, use2-az3 "
        "(usw2-az2 was not seen to)"
    )


def test_a_region_with_an_odd_name_has_any_zone(write: Callable[[str], Path]) -> None:
    text = changed("region: us-west-2", "region: us-moon-2").replace("usw2-az4", "usm2-az1")
    assert load(write(text)).region == "us-moon-2"


def test_settings_and_their_sections_are_frozen(write: Callable[[str], Path]) -> None:
    loaded = load(write(GOOD))
    with pytest.raises(ValidationError, match="frozen"):
        loaded.name = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        loaded.cluster.head_node.public = False  # type: ignore[misc]


def test_defaults_are_not_shared(write: Callable[[str], Path]) -> None:
    path = write(GOOD)
    one, other = load(path), load(path)
    one.cluster.overrides["Iam"] = {}
    one.cluster.queues[0].custom_slurm_settings["MaxNodes"] = "4"
    one.network.interface_endpoints.append("ssm")
    one.cluster.slurm.custom_settings["MessageTimeout"] = "60"
    assert other.cluster.overrides == {}
    assert other.cluster.queues[0].custom_slurm_settings == {}
    assert NetworkSettings().interface_endpoints == other.network.interface_endpoints == []
    assert other.cluster.slurm.custom_settings == {}
    first = StorageSettings()
    first.data_repositories.append(None)  # type: ignore[arg-type]
    assert StorageSettings().data_repositories == []


def test_an_existing_vpc_is_taken(write: Callable[[str], Path]) -> None:
    network = load(write(changed("nat_addresses: 1", f"existing: {A_VPC}"))).network
    assert network.placement("usw2-az4") == ("vpc-01234567", "subnet-76543210")


def test_another_private_subnet_has_another_placement(write: Callable[[str], Path]) -> None:
    def placement(text: str) -> tuple[str, ...]:
        loaded = load(write(text))
        return loaded.network.placement(loaded.zone_id)

    changes = [("10.0.0.0/16", "10.0.0.0/17"), ("10.0.64.0/18", "10.0.64.0/19"), ("usw2-az4", "usw2-az1")]
    assert len({placement(text) for text in (GOOD, *(changed(*change) for change in changes))}) == 4


def test_the_preset_of_endpoints_is_written_out_once() -> None:
    network = NetworkSettings(interface_endpoints=["ssm", "parallelcluster", "logs"])
    assert network.endpoint_services == ["ssm", "logs", "cloudformation", "ec2"]


def test_the_cluster_is_named_like_the_deployment_unless_it_has_a_name(write: Callable[[str], Path]) -> None:
    assert load(write(GOOD)).cluster_spec.name == "trn1"
    assert load(write(changed("name: null", "name: Mine"))).cluster_spec.name == "Mine"


SHORT = dedent("""\
    name: trn1-16
    region: us-west-2
    zone_id: usw2-az4
    tags: {project: trn1-ultracluster}
    cluster:
      queues:
        - name: trn1
          placement_group: fleet
          compute_resources: [{name: trn1-32xl, max_count: 16, efa: true}]
    """)


def test_a_generation_has_names_of_its_own(write: Callable[[str], Path]) -> None:
    first = load(write(changed("name: null", "name: null\n  generation: 1")))
    second = load(write(changed("name: null", "name: null\n  generation: 2")))
    named = load(write(changed("name: null", "name: mine\n  generation: 3")))

    assert first == load(write(GOOD))
    assert (first.cluster_spec.name, first.stack_name("cluster")) == ("trn1", "trn1-cluster")
    assert (second.cluster_spec.name, second.stack_name("cluster")) == ("trn1-2", "trn1-cluster-2")
    assert (named.cluster_spec.name, named.stack_name("cluster")) == ("mine-3", "trn1-cluster-3")
    assert {each.stack_name("storage") for each in (first, second, named)} == {"trn1-storage"}
    assert second.of_generation(1) == first


def test_node_names_are_counted_with_the_generation(write: Callable[[str], Path]) -> None:
    def text(name: str) -> str:
        return changed("name: null", f"name: {name}\n  generation: 10")

    assert load(write(text("a" * 30)))
    with pytest.raises(SettingsError, match=r"shorter names: .* has 64 characters, 63 are allowed"):
        load(write(text("a" * 31)))


def test_what_is_left_out_is_what_the_configuration_of_16_nodes_says(write: Callable[[str], Path]) -> None:
    assert load(write(SHORT)).model_dump() == load(CONFIG / "trn1-16.yaml").model_dump()


def test_defaults_that_no_configuration_says() -> None:
    assert LoginPoolSettings(name="login").model_dump() == {
        "name": "login",
        "instance_type": "c6i.2xlarge",
        "count": 1,
        "public": False,
        "grace_minutes": 10,
        "ssh_cidr": None,
    }
    link = DataRepositorySettings(path="/data")
    assert (link.bucket, link.prefix) == (None, "")
    assert link.import_events == link.export_events == ["NEW", "CHANGED", "DELETED"]


def test_flow_logs_can_be_off(write: Callable[[str], Path]) -> None:
    text = changed("nat_addresses: 1", "flow_log_retention_days: null")
    assert load(write(text)).network.flow_log_retention_days is None


def test_sections_that_are_left_out_take_part_in_the_rules_of_a_faulty_file(write: Callable[[str], Path]) -> None:
    text = (
        SHORT.replace("region: us-west-2", "region: us-west-2\naccount: 1")
        .replace("usw2-az4", "use1-az4")
        .replace("placement_group: fleet", "scratch_dir: /fsx")
        .replace("tags:", "network: {private_subnet_cidr: 10.0.64.0/28}\ntags:")
    )
    assert [line.split(": ")[1] for line in outcome(write(text))] == [
        "account",
        "zone_id",
        "network.private_subnet_cidr",
        "cluster.queues[0].scratch_dir",
    ]


def test_the_whole_of_a_message(write: Callable[[str], Path]) -> None:
    messages = [
        ("retain: true", "zzz: true", "storage.zzz: unknown key; allowed: data_repositories, file_system, retain"),
        ("nat_addresses: 1", "cidr_block: [1]", "allowed: cidr, existing, "),
        (
            "zone_id: usw2-az4",
            "zone_id: [1]",
            "zone_id: got [1]; should be a valid string (Availability zone id, the same place in every account "
            "(a zone name such as us-west-2a is not))",
        ),
        (
            "nat_addresses: 1",
            "nat_addresses: 9",
            "network.nat_addresses: got 9; should be less than or equal to 8 (Public addresses of the NAT gateway; "
            "each carries 55,000 connections to one destination. More than 2 need raised quotas of addresses per NAT "
            "gateway and, beyond 5, of Elastic IP addresses in the Region)",
        ),
        ("{project: trn1}", "{project: 1}", "tags.project: got 1; should be a valid string, put it in quotes"),
        (GOOD, "", "(file): got None; should be a mapping"),
    ]
    for old, new, told in messages:
        (line,) = outcome(write(changed(old, new)))
        if told.startswith("allowed"):
            assert told in line
        else:
            assert line.partition("settings.yaml:")[2].partition(": ")[2] == told
