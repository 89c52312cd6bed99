"""Each setting reaches a template, and can change when its declaration says so.

What a change does is taken from what `./ultracluster plan` takes it from: ParallelCluster's own update check, and the
properties that CloudFormation cannot change in place, by cfn-lint's schemas.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from config.settings import Settings
from scripts.check.plan.cluster import plan_cluster
from scripts.check.plan.comparison import Comparison
from scripts.check.plan.model import REPLACING, Effect, Kind, Source, StackPlan
from scripts.upkeep.settings_reference import settings_page
from tests.config.settings_files import put
from tests.config.test_users import ED25519
from tests.stacks.deployments import Raw, deploy, raw_settings
from toolchain.assembly import Assembly
from toolchain.cluster import CLUSTER_TYPE, as_strings
from toolchain.parallelcluster import ParallelCluster, Update
from ultracluster.domain.spec import Change

ACCOUNT = "123456789012"
KEY = f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
VPC = {"vpc_id": "vpc-01234567", "public_subnet_id": "subnet-01234567", "private_subnet_id": "subnet-76543210"}
BLOCKS = {"cidr": "10.0.0.0/16", "public_subnet_cidr": "10.0.0.0/24", "private_subnet_cidr": "10.0.64.0/18"}
DATABASE = {
    "host": "db",
    "user": "slurm",
    "password_secret_arn": f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:db-AbCdEf",
    "security_group_id": "sg-01234567",
}
QUEUE, NODES = "cluster.queues[0]", "cluster.queues[0].compute_resources[0]"
HEAD, LOGIN, DISK, LINK = (
    "cluster.head_node",
    "cluster.login_nodes[0]",
    "storage.file_system",
    "storage.data_repositories[0]",
)
OWN_GROUP = {f"{QUEUE}.placement_group": "none"}

DIRECTORY = {
    "domain_name": "corp.example.com",
    "domain_addr": "ldaps://corp.example.com",
    "password_secret_arn": f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:directory-AbCdEf",
    "domain_read_only_user": "cn=ReadOnly",
}

Values = dict[str, Any]

BUDGET = {"monthly_usd": 9000, "emails": ["a@example.com"]}
CHANGES: dict[str, Any] = {
    "name": "other",
    "region": {"region": "us-east-1", "zone_id": "use1-az4"},
    "zone_id": "usw2-az1",
    "tags": {"project": "y"},
    "bootstrap.qualifier": "mine",
    "bootstrap.kms_key_arn": KEY,
    "roles": {},
    "roles.permissions_boundary_arn": f"arn:aws:iam::{ACCOUNT}:policy/boundary",
    "roles.path": "/parallelcluster/lab/",
    "roles.name_prefix": "lab-",
    "network.cidr": "10.0.0.0/17",
    "network.public_subnet_cidr": "10.0.1.0/24",
    "network.private_subnet_cidr": "10.0.128.0/18",
    "network.interface_endpoints": ["ssm"],
    "network.existing": {"network": {**BLOCKS, "existing": VPC}},
    "network.existing.vpc_id": "vpc-76543210",
    "network.existing.public_subnet_id": "subnet-00000000",
    "network.existing.private_subnet_id": "subnet-00000000",
    f"{DISK}.deployment_type": {
        f"{DISK}.deployment_type": "PERSISTENT_1",
        f"{DISK}.throughput_mbps_per_tib": 200,
    },
    f"{DISK}.capacity_gib": 7200,
    f"{DISK}.throughput_mbps_per_tib": 500,
    f"{DISK}.metadata_iops": 12_000,
    f"{DISK}.kms_key_arn": KEY,
    f"{DISK}.mount_dir": "/lustre",
    "storage.data_repositories": {
        "storage.data_repositories": [{"path": "/data"}],
        f"{DISK}.backup_retention_days": 0,
    },
    f"{LINK}.path": "/other",
    f"{LINK}.bucket": "mine",
    f"{LINK}.prefix": "mine",
    f"{LINK}.import_events": [],
    f"{LINK}.export_events": [],
    "cluster.name": "other",
    "cluster.os": {"cluster.os": "alinux2023", "cluster.pytorch": "2.8"},
    "cluster.custom_ami": "ami-01234567",
    "cluster.neuron_driver": "2.28.0.0",
    "cluster.pytorch": "2.8",
    f"{HEAD}.instance_type": "c6i.8xlarge",
    f"{HEAD}.shared_storage": {f"{HEAD}.shared_storage": "efs", f"{HEAD}.snapshots": None},
    f"{HEAD}.ssh_key_name": {f"{HEAD}.ssh_key_name": "mine", f"{HEAD}.ssh_cidr": "10.0.0.0/8"},
    f"{HEAD}.ssh_cidr": "10.0.0.0/8",
    f"{HEAD}.snapshots": None,
    "cluster.login_nodes": [{"name": "login"}, {"name": "second"}],
    f"{LOGIN}.name": "other",
    f"{LOGIN}.instance_type": "c6i.4xlarge",
    f"{LOGIN}.ssh_cidr": "10.0.0.0/8",
    "cluster.queues": [
        {"name": name, "compute_resources": [{"name": "trn1-32xl", "max_count": 16}]} for name in ("trn1", "second")
    ],
    f"{QUEUE}.name": "other",
    f"{QUEUE}.compute_resources": [{"name": name, "max_count": 16} for name in ("trn1-32xl", "second")],
    f"{QUEUE}.placement_group": "mine",
    f"{QUEUE}.existing_placement_group": {
        f"{QUEUE}.existing_placement_group": "mine",
        f"{QUEUE}.placement_group": None,
    },
    f"{QUEUE}.scratch_dir": "/local",
    f"{QUEUE}.custom_slurm_settings": {"MaxNodes": "4"},
    f"{NODES}.name": "other",
    f"{NODES}.instance_type": "trn1n.32xlarge",
    f"{NODES}.max_count": 20,
    f"{NODES}.efa": False,
    f"{NODES}.capacity_reservation_id": {f"{NODES}.capacity_reservation_id": "cr-0123456789abcdef0", **OWN_GROUP},
    f"{NODES}.capacity_reservation_group_arn": {
        f"{NODES}.capacity_reservation_group_arn": f"arn:aws:resource-groups:us-west-2:{ACCOUNT}:group/trn1",
        **OWN_GROUP,
    },
    "cluster.slurm.custom_settings": {"MessageTimeout": "60"},
    "cluster.munge_key_secret_arn": f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:munge-AbCdEf",
    "cluster.directory": DIRECTORY,
    "cluster.directory.domain_name": "other.example.com",
    "cluster.directory.domain_addr": "ldaps://other.example.com",
    "cluster.directory.password_secret_arn": f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:other-AbCdEf",
    "cluster.directory.domain_read_only_user": "cn=Other",
    "cluster.directory.ldap_tls_ca_cert": "/etc/ca.pem",
    "cluster.directory.ldap_access_filter": "(memberOf=hpc)",
    "cluster.directory.additional_sssd_configs": {"ldap_id_mapping": "False"},
    "groups": {"cv": 3001},
    "users": [{"name": "alice", "uid": 2001}],
    "users[0].name": "bob",
    "users[0].uid": 2002,
    "users[0].gid": 2002,
    "users[0].groups": ["nlp"],
    "users[0].ssh_keys": [ED25519],
    "cluster.accepted_warnings": [{"validator": "DcvValidator", "reason": "a small screen"}],
    "monitoring.emails": ["a@example.com"],
    "accounting": {},
    "accounting.database.instance_class": "db.t4g.small",
    "accounting.database.engine_version": "8.4.11",
    "accounting.database.second_zone_id": "usw2-az2",
    "accounting.database.subnet_cidrs": ["10.0.1.0/28", "10.0.2.0/28"],
    "accounting.existing": DATABASE,
    "accounting.existing.host": "other",
    "accounting.existing.user": "other",
    "accounting.existing.password_secret_arn": f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:other-AbCdEf",
    "accounting.existing.security_group_id": "sg-76543210",
    "accounting.database_name": "other",
    "accounting.accounts": [],
    "accounting.accounts[0].name": "other",
    "accounting.accounts[0].parent": "dept",
    "accounting.accounts[0].share": 2,
    "accounting.accounts[0].max_nodes": 2,
    "accounting.accounts[0].node_hours_per_month": 2,
    "accounting.accounts[0].max_hours": 2,
    "accounting.qos": [],
    "accounting.qos[0].name": "other",
    "accounting.qos[0].max_nodes": 2,
    "accounting.qos[0].node_hours_per_month": 2,
    "accounting.qos[0].max_hours": 2,
    "accounting.qos[0].preempts": ["normal"],
    "accounting.qos[0].accounts": ["dept"],
    "homes.type": "fsx-openzfs",
    "homes.openzfs.deployment_type": {
        "homes.openzfs.deployment_type": "SINGLE_AZ_2",
        "homes.openzfs.throughput_mbps": 160,
    },
    "homes.openzfs.capacity_gib": 512,
    "homes.openzfs.throughput_mbps": 128,
    "homes.openzfs.quota_gib_per_user": 5,
    "homes.kms_key_arn": f"arn:aws:kms:us-west-2:{ACCOUNT}:key/own",
    "homes.file_system_id": "fs-0123456789abcdef0",
    "budget": BUDGET,
    "budget.monthly_usd": 9001,
    "budget.emails": ["b@example.com"],
    "budget.actual_percent": [90],
    "budget.forecast_percent": [90],
    "budget.max_usd_per_hour": 100,
    "budget.usd_per_hour": {"trn1.32xlarge": 10},
}
_SITE = [{"script": "https://example.com/site.sh", "args": ["a"]}]
STORED = "cluster.shared_storage"
_EFS = {"file_system_id": "fs-0123456789abcdef0"}
CHANGES |= {
    STORED: [{"name": "a", "mount_dir": "/a", "efs": _EFS}],
    **{f"{nodes}.security_group_ids": ["sg-01234567"] for nodes in (HEAD, QUEUE, LOGIN)},
    **{f"{nodes}.s3_access": [{"bucket": "my-corpus"}] for nodes in (HEAD, QUEUE)},
    **{
        f"{nodes}.s3_access[0].{field}": value
        for nodes in (HEAD, QUEUE)
        for field, value in (("bucket", "others"), ("key", "corpus/*"), ("write", True))
    },
    **{
        f"{nodes}.instance_role_arn": f"arn:aws:iam::{ACCOUNT}:role/parallelcluster/nodes"
        for nodes in (HEAD, QUEUE, LOGIN)
    },
    f"{NODES}.alternative_types": ["trn1n.32xlarge"],
    f"{QUEUE}.allocation_strategy": "prioritized",
    f"{QUEUE}.further_subnet_ids": ["subnet-01234567"],
}
FACTS = f"{NODES}.type_facts"
_OF_INF2 = {"vcpus": 192, "memory_gib": 384, "neuron_devices": 12, "neuron_cores": 24}
CHANGES |= {
    FACTS: _OF_INF2,
    f"{FACTS}.efa_devices": 1,
    f"{FACTS}.neuron_devices": 11,
    f"{FACTS}.neuron_cores": 48,
}
CHANGES |= {
    "cluster.head_node.custom_actions": {"on_node_configured": _SITE},
    "cluster.login_node_actions": {"on_node_updated": _SITE},
    f"{QUEUE}.custom_actions": {"on_node_start": _SITE},
}
CHANGES |= {
    f"{nodes}.{event}": _SITE
    for nodes, events in (
        ("cluster.head_node.custom_actions", ("on_node_start", "on_node_configured", "on_node_updated")),
        ("cluster.login_node_actions", ("on_node_start", "on_node_configured", "on_node_updated")),
        (f"{QUEUE}.custom_actions", ("on_node_start", "on_node_configured")),
    )
    for event in events
}
"""Another value of a setting, or with what must change beside it the values by their places. `another` has others."""

ELSEWHERE = {
    "account": "in the assembly's manifest; templates are for any account",
    "termination_protection": "in the assembly's manifest, and set by the CDK",
    "cluster.overrides": "another answer for each key",
    **{
        f"{place}[0].{field}": "as the list that it is in"
        for place in CHANGES
        if place.rpartition(".")[2].startswith("on_node_")
        for field in ("script", "args")
    },
    **{
        f"{STORED}[0].{field}": "as ParallelCluster says of all storage: tests/stacks/test_storage.py"
        for field in (
            *("name", "mount_dir", "efs", "fsx_lustre", "fsx_openzfs", "fsx_ontap", "ebs", "efs.file_system_id"),
            *("efs.access_point_id", "efs.iam_authorization", "fsx_lustre.file_system_id", "fsx_openzfs.volume_id"),
            *("fsx_ontap.volume_id", "ebs.volume_id", "ebs.snapshot_id", "ebs.size_gib", "ebs.type", "ebs.iops"),
            *("ebs.throughput_mibps", "ebs.kms_key_arn", "ebs.retention"),
        )
    },
    **{
        f"{FACTS}.{field}": "counted before a deployment: tests/scripts/check/estimate/test_estimate.py"
        for field in ("vcpus", "memory_gib", "network_cards", "first_neuron_sdk", "usd_per_hour")
    },
    "users[0].account": "needs a database; the document of users has it, as the rest of them",
    "cluster.accepted_warnings[0].validator": "as cluster.accepted_warnings",
    "cluster.accepted_warnings[0].reason": "for people who read the settings and reports",
}
"""Settings that reach no template, or are not changed here, and why."""


def linked(raw: Raw) -> None:
    raw["storage"] = {"file_system": {"backup_retention_days": 0}, "data_repositories": [{"path": "/data"}]}


def in_existing_vpc(raw: Raw) -> None:
    raw["network"] = {**BLOCKS, "existing": VPC}


def with_accounting(raw: Raw) -> None:
    raw["accounting"] = {"accounts": [{"name": "lab"}, {"name": "dept"}], "qos": [{"name": "high"}]}


def with_existing_database(raw: Raw) -> None:
    raw["accounting"] = {"existing": DATABASE}


def with_homes(raw: Raw) -> None:
    raw["homes"] = {"type": "efs"}


def with_homes_on_openzfs(raw: Raw) -> None:
    raw.update(homes={"type": "fsx-openzfs", "openzfs": {}}, users=[{"name": "alice", "uid": 2001}])


def with_a_budget(raw: Raw) -> None:
    raw["budget"] = BUDGET


def with_people(raw: Raw) -> None:
    raw.update(groups={"nlp": 3000}, users=[{"name": "alice", "uid": 2001}])


def with_directory(raw: Raw) -> None:
    raw["cluster"]["directory"] = DIRECTORY


def with_actions(raw: Raw) -> None:
    cluster = raw["cluster"]
    for nodes, field in (("head_node", "custom_actions"), (None, "login_node_actions")):
        (cluster[nodes] if nodes else cluster)[field] = {}
    cluster["queues"][0]["custom_actions"] = {}


def with_fleets(raw: Raw) -> None:
    queue = raw["cluster"]["queues"][0]
    queue["placement_group"] = "none"
    queue["compute_resources"][0].update(alternative_types=["trn1n.32xlarge"], efa=False)


def with_a_type_that_is_not_known(raw: Raw) -> None:
    raw["cluster"]["queues"][0]["compute_resources"][0].update(instance_type="inf2.48xlarge")


def with_facts(raw: Raw) -> None:
    raw["cluster"]["queues"][0]["compute_resources"][0].update(instance_type="inf2.48xlarge", type_facts=_OF_INF2)


def with_buckets(raw: Raw) -> None:
    for nodes in (raw["cluster"]["head_node"], raw["cluster"]["queues"][0]):
        nodes["s3_access"] = [{"bucket": "my-corpus", "key": "a"}]


def with_roles(raw: Raw) -> None:
    raw["roles"] = {}


BASES: dict[str, Callable[[Raw], None]] = {
    "roles.": with_roles,
    f"{LINK}.": linked,
    "network.existing.": in_existing_vpc,
    "accounting.existing.": with_existing_database,
    "accounting.": with_accounting,
    "budget.": with_a_budget,
    "homes.openzfs.": with_homes_on_openzfs,
    "homes.": with_homes,
    "users[0].": with_people,
    "cluster.directory.": with_directory,
    "cluster.head_node.custom_actions.": with_actions,
    f"{QUEUE}.allocation_strategy": with_fleets,
    f"{QUEUE}.further_subnet_ids": with_fleets,
    f"{FACTS}.": with_facts,
    FACTS: with_a_type_that_is_not_known,
    f"{HEAD}.s3_access[0].": with_buckets,
    f"{QUEUE}.s3_access[0].": with_buckets,
    "cluster.login_node_actions.": with_actions,
    f"{QUEUE}.custom_actions.": with_actions,
}
"""What is deployed before the change, where it is more than the settings of 16 nodes and a pool of login nodes."""


def leaves(schema: dict[str, Any], node: dict[str, Any], place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield place and schema of each setting; of a list that of its first item, too."""
    for each in (node, *node.get("anyOf", ())):
        if "$ref" in each:
            yield from leaves(schema, schema["$defs"][each["$ref"].rpartition("/")[2]], place)
    if "items" in node:
        yield from leaves(schema, node["items"], f"{place}[0]")
    for name, each in node.get("properties", {}).items():
        below = f"{place}.{name}" if place else name
        if "x-change" in each or not {"$ref", "properties"} & each.keys():
            yield below, each
        yield from leaves(schema, each, below)


SCHEMA = Settings.model_json_schema()
SETTINGS = dict(leaves(SCHEMA, SCHEMA))


def another(node: dict[str, Any]) -> Any:
    """Return a value of a setting beside its default, None where only `CHANGES` can tell."""
    default, kinds = node.get("default"), [node, *node.get("anyOf", ())]
    choices = [choice for kind in kinds for choice in kind.get("enum", ()) if choice != default]
    if isinstance(default, bool):
        return not default
    return default + 1 if isinstance(default, int) and not choices else next(iter(choices), None)


VALUES = {place: another(node) for place, node in SETTINGS.items() if place not in ELSEWHERE} | CHANGES


def test_each_setting_has_another_value_or_says_why_not() -> None:
    assert [place for place, value in VALUES.items() if value is None and place not in CHANGES] == []
    assert VALUES.keys() | ELSEWHERE.keys() == SETTINGS.keys()


def test_each_setting_says_what_it_may_be_and_when_it_can_change_under_a_heading_of_the_reference() -> None:
    headings = re.findall(r"^### (.*)$", page(), re.MULTILINE)

    assert re.findall(r"### (\S+)\n\n.*\n\ntext(?:, or null)?;", page()) == [
        *("cluster.head_node.ssh_key_name", "cluster.queues[].existing_placement_group"),
        "cluster.accepted_warnings[].reason",
    ]
    assert [place for place, node in SETTINGS.items() if "x-change" not in node] == []
    repeated = re.findall(r"^## (.*)\n\n.*\n\nAs \[", page(), re.MULTILINE)
    places = [place.replace("[0]", "[]") for place in SETTINGS]
    assert sorted(headings) == sorted(
        each for each in places if not each.startswith(tuple(f"{one}." for one in repeated))
    )


class Changed:
    """A deployment before and after the change of a setting."""

    def __init__(self, parallelcluster: ParallelCluster, before: Assembly, after: Assembly) -> None:
        self._inverse = (parallelcluster, after, before)
        comparison = Comparison(before.stacks, after.stacks)
        self.resources = [each for all_of in comparison.changes.values() for each in all_of if not each.metadata_only]
        self.is_elsewhere = not before.stacks.keys() & after.stacks.keys()
        stacks = [StackPlan(name, Source.FILES, changes=changes) for name, changes in comparison.changes.items()]
        self.cluster = plan_cluster(parallelcluster, "trn1-16", comparison, stacks, live=False)

    def taken_back(self) -> Changed:
        """Return the opposite change."""
        return Changed(*self._inverse)

    @property
    def needs(self) -> Change:
        """What the change needs at most."""
        replaced = {change.type: change.causes for change in self.resources if change.effect in REPLACING}
        kinds = {change.kind for change in self.cluster.changes}
        if self.is_elsewhere or replaced.keys() & NETWORKS or "VpcId" in replaced.get("AWS::EC2::SecurityGroup", ()):
            return Change.NEW_DEPLOYMENT
        if "SubnetIds" in replaced.get(FILE_SYSTEM, ()):
            return Change.NEW_DEPLOYMENT
        if {FILE_SYSTEM, HOMES} & replaced.keys():
            return Change.NEW_FILE_SYSTEM
        link = "AWS::FSx::DataRepositoryAssociation"
        effects = {change.effect for change in self.resources if change.type == link}
        if (
            effects & {*REPLACING} or {Effect.ADDED, Effect.REMOVED} <= effects
        ):  # the new one is made before the old goes
            return Change.TWO_DEPLOYMENTS
        return next((needed for kind, needed in NEEDED.items() if kind in kinds), Change.AT_ONCE)

    def concerns(self, aws: str) -> bool:
        """Return whether a key of ParallelCluster, or a property in CloudFormation, is among what changes."""
        if aws.startswith("AWS::"):
            kind, *_, name = aws.split(".")
            of_kind = [each for each in self.resources if each.type == kind]
            return any(each.effect is not Effect.CHANGED or name in repr(each.properties) for each in of_kind)
        return any(
            f"{path}.".startswith(f"{aws}.") or (aws.startswith(f"{path}.") and f"'{aws.rpartition('.')[2]}'" in values)
            for path, values in self.keys
        )

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Path and values of what changes in ParallelCluster's configuration, also what its check passes unsaid."""
        resources = [each for each in self.resources if each.type == CLUSTER_TYPE]
        changes = [(each.path, each.before, each.after) for each in self.cluster.changes]
        changes += [(each.path, each.before, each.after) for all_of in resources for each in all_of.properties]
        return [
            (re.sub(r"\[[^]]*\]|^ClusterConfiguration\.", "", path), f"{before} {after}")
            for path, before, after in changes
        ]


FILE_SYSTEM, HOMES, NETWORKS = "AWS::FSx::FileSystem", "AWS::EFS::FileSystem", {"AWS::EC2::Subnet", "AWS::EC2::VPC"}

NEEDED = {
    Kind.REFUSED: Change.NEW_CLUSTER,
    Kind.ALL_STOPPED: Change.STOPPED_NODES,
    Kind.FLEET_STOPPED: Change.STOPPED_FLEET,
    Kind.LOGIN_NODES_STOPPED: Change.NO_LOGIN_NODES,
    Kind.DRAINS: Change.DRAINS,
}
"""From the one that needs most."""


@pytest.fixture(scope="module")
def changed(
    parallelcluster: ParallelCluster, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, Values], Changed]:
    """Return what a change of a setting does."""
    directory = tmp_path_factory.mktemp("changes")

    @cache
    def base(prefix: str) -> tuple[Raw, Assembly]:
        raw = based(prefix)
        return raw, assembly(raw, prefix or "base")

    def assembly(raw: Raw, name: str) -> Assembly:
        return Assembly(deploy(Settings.model_validate(raw), directory / name).directory)

    def change(place: str, values: Values) -> Changed:
        raw, before = base(base_of(place))
        return Changed(parallelcluster, before, assembly(with_values(raw, values), place))

    return change


IN_DOCUMENT = {
    "users[0].": "users",
    "accounting.accounts[0].": "accounting.accounts",
    "accounting.qos[0].": "accounting.qos",
}
"""Settings that reach the document of the team alone, and the one beside that is synthesized for all of them."""


def list_of(place: str) -> str | None:
    """Return the list that a setting is in, if it reaches the document of the team alone."""
    return next((whole for prefix, whole in IN_DOCUMENT.items() if place.startswith(prefix)), None)


def with_values(raw: Raw, values: Values) -> Raw:
    raw = copy.deepcopy(raw)
    for each, value in values.items():
        put(raw, each, value)
    return raw


def based(prefix: str) -> Raw:
    raw = raw_settings("trn1-16")
    raw["cluster"]["login_nodes"] = [{"name": "login"}]
    if prefix:
        BASES[prefix](raw)
    return raw


def base_of(place: str) -> str:
    return next((prefix for prefix in BASES if place.startswith(prefix)), "")


@cache
def page() -> str:
    """Return the reference of settings."""
    return settings_page()


def is_several(place: str, values: Any) -> bool:
    return isinstance(values, dict) and any(key.partition(".")[0] == place.partition(".")[0] for key in values)


TAKEN_BACK: dict[str, tuple[Change, str]] = {
    f"{NODES}.max_count": (Change.STOPPED_FLEET, "Fewer need a stopped fleet"),
    f"{NODES}.capacity_reservation_id": (Change.STOPPED_FLEET, "a placement group again, which needs a stopped fleet"),
    f"{NODES}.capacity_reservation_group_arn": (Change.STOPPED_FLEET, "again, which needs a stopped fleet"),
    f"{QUEUE}.compute_resources": (Change.STOPPED_FLEET, "One is removed as a queue is"),
    f"{QUEUE}.further_subnet_ids": (Change.DRAINS, "Taking one away drains nodes"),
    "cluster.queues": (Change.STOPPED_FLEET, "One is removed while the fleet is stopped"),
    "cluster.login_nodes": (Change.NO_LOGIN_NODES, "A pool is removed while there are no login nodes"),
}
"""What the opposite change needs where that is something else, and what the reference says of it."""


@pytest.mark.slow
@pytest.mark.validation
@pytest.mark.parametrize("place", [place for place in VALUES if not list_of(place)])
def test_a_setting_reaches_a_template_and_changes_when_it_says(
    changed: Callable[[str, Values], Changed], place: str
) -> None:
    values, node = VALUES[place], SETTINGS[place]
    change = changed(place, values if is_several(place, values) else {place: values})

    assert change.resources
    assert change.needs == node["x-change"], [(each.path, each.kind) for each in change.cluster.changes]
    assert "x-aws" not in node or change.concerns(node["x-aws"]), change.keys
    back, (needed, words) = change.taken_back(), TAKEN_BACK.get(place, (node["x-change"], ""))
    assert back.needs == needed, [(each.path, each.kind) for each in back.cluster.changes]
    heading = f"### {place.replace('[0]', '[]')}\n"
    assert words in page().partition(heading)[2].partition("\n###")[0]


@pytest.mark.parametrize("place", [place for place in VALUES if list_of(place)])
def test_a_setting_of_people_reaches_their_document(place: str) -> None:
    """Which reaches a template as the lists do that it is made of."""
    raw, whole = based(base_of(place)), list_of(place)
    before, after = (Settings.model_validate(each) for each in (raw, with_values(raw, {place: VALUES[place]})))
    assert before.team
    assert after.team
    assert before.team.document() != after.team.document()
    assert SETTINGS[place]["x-change"] == SETTINGS[whole or ""]["x-change"]
    assert "x-aws" not in SETTINGS[place]


DIRECTIONS: dict[str, tuple[Values, Change]] = {
    "an EBS volume": ({STORED: [{"name": "a", "mount_dir": "/a", "ebs": {"size_gib": 50}}]}, Change.NO_LOGIN_NODES),
    "fewer nodes": ({f"{NODES}.max_count": 8}, Change.STOPPED_FLEET),
    "more static nodes instead of dynamic ones": ({f"{NODES}.min_count": 4}, Change.STOPPED_FLEET),
    "more static nodes": ({f"{NODES}.min_count": 4, f"{NODES}.max_count": 20}, Change.AT_ONCE),
    "fewer login pools": ({"cluster.login_nodes": []}, Change.NO_LOGIN_NODES),
    "no login nodes": ({f"{LOGIN}.count": 0}, Change.AT_ONCE),
}
"""What documentation says beside the declarations."""


@pytest.mark.slow
@pytest.mark.validation
@pytest.mark.parametrize("name", DIRECTIONS)
def test_what_a_change_needs_may_depend_on_its_direction(changed: Callable[[str, Values], Changed], name: str) -> None:
    values, needed = DIRECTIONS[name]

    assert changed(name, values).needs == needed


@pytest.mark.slow
@pytest.mark.validation
def test_another_bundle_of_scripts_drains_the_queues_and_changes_nothing_else_but_the_head_nodes_update(
    deployment: Callable[[str], Any], parallelcluster: ParallelCluster
) -> None:
    """Nodes are replaced for it: under the strategy that does not drain them, the fleet has to be stopped."""

    def update(strategy: str) -> Update:
        old = json.dumps(as_strings(deployment("two-queues").request.configuration)).replace("DRAIN", strategy)
        [bundle] = set(re.findall(r"[0-9a-f]{64}\.zip(?=\", \"us-west-2\", \"compute_node)", old))
        return parallelcluster.check_update(json.loads(old), json.loads(old.replace(bundle, "another.zip")))

    queues = {f"Scheduling.SlurmQueues[{name}].CustomActions.OnNodeConfigured.Args" for name in ("trn1-a", "trn1-b")}
    drained, refused = update("DRAIN"), update("COMPUTE_FLEET_STOP")

    assert drained.allowed
    assert {change.path for change in drained.changes} == queues | {"HeadNode.CustomActions.OnNodeUpdated.Args"}
    assert {change.path for change in refused.changes if not change.allowed} == queues
