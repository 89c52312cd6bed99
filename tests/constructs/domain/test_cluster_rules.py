"""Every rule of a cluster, and the values next to it that are allowed."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.constructs.domain.specs import (
    CLUSTER,
    GROUP_ARN,
    NODES,
    QUEUE,
    RESERVATION,
    changed,
    cluster,
    with_head,
    with_nodes,
    with_queue,
)
from ultracluster.domain.cluster import (
    AcceptedWarning,
    ClusterSpec,
    HeadNodeSpec,
    LoginPoolSpec,
    OperatingSystem,
    S3AccessSpec,
    SlurmSpec,
)
from ultracluster.domain.cluster_rules import violations, zone_warnings
from ultracluster.domain.neuron import DEFAULT_SDK, RELEASES, SYSTEMS

ARM_NODES = changed(NODES, instance_type="c7g.16xlarge")
ARM_HEAD = HeadNodeSpec(instance_type="c7g.4xlarge")
BLOCK = changed(NODES, min_count=16, capacity_reservation_id=RESERVATION)
TRN1_QUEUE = "queues.0"
TRN1_NODES = "queues.0.compute_resources.0"


def with_block(**values: Any) -> ClusterSpec:
    """Return the cluster with a queue of a Capacity Block."""
    return with_queue(BLOCK, **{"capacity_type": "CAPACITY_BLOCK", **values})


def with_reserved_nodes(**values: Any) -> ClusterSpec:
    """Return the cluster with changed nodes of a Capacity Block."""
    return with_queue(changed(BLOCK, **values), capacity_type="CAPACITY_BLOCK")


def with_logins(count: int = 1, **values: Any) -> ClusterSpec:
    return cluster(login_nodes=[LoginPoolSpec(**{"name": f"p{each}", **values}) for each in range(count)])


def accepting(*warnings: tuple[str, str]) -> ClusterSpec:
    return cluster(accepted_warnings=[AcceptedWarning(validator=name, reason=reason) for name, reason in warnings])


def with_database(**values: Any) -> ClusterSpec:
    database = {
        "Uri": "db",
        "UserName": "slurm",
        "PasswordSecretArn": "arn:aws:secretsmanager:us-west-2:1:secret:s-AbCdEf",
    }
    return cluster(overrides={"Scheduling": {"SlurmSettings": {"Database": database}}}, **values)


SHORT_NAMES = changed(QUEUE, name="q", compute_resources=[changed(NODES, name="r", max_count=1)])
SMALL = changed(QUEUE, compute_resources=[changed(NODES, max_count=10)])
ON_AMAZON_LINUX: dict[str, Any] = {"os": "alinux2023", "pytorch": "2.8"}


ALLOWED = [
    with_nodes(alternative_types=["trn1n.32xlarge"]),
    CLUSTER,
    with_block(placement_group="none"),
    with_reserved_nodes(instance_type="p5.48xlarge"),
    with_nodes(min_count=16),
    with_nodes(instance_type="trn1.2xlarge"),
    with_nodes(capacity_reservation_group_arn=GROUP_ARN),
    with_queue(capacity_type="SPOT"),
    with_queue(BLOCK, existing_placement_group="mine"),
    with_queue(changed(NODES, instance_type="t3.large"), placement_group="none"),
    with_head(ssh_cidr="10.0.0.0/8", ssh_key_name="mine"),
    with_head(ssh_cidr="pl-0123456789abcdef0"),
    with_head(instance_type="x2idn.16xlarge"),  # its memory is not known
    cluster(head_node=HeadNodeSpec(instance_type="t3.micro"), queues=[SMALL], **ON_AMAZON_LINUX),
    cluster(head_node=HeadNodeSpec(instance_type="m5.xlarge"), queues=with_nodes(max_count=50_000).queues),
    cluster(tags={f"k{index}": "v" for index in range(39)}),
    cluster(tags={"k" * 128: "v", "k": "v", "awsome": "v"}),
    with_logins(10),
    cluster(slurm=SlurmSpec(custom_settings={"MessageTimeout": "60", "AccountingStorageHost": "db"})),
    cluster(queues=[changed(QUEUE, name=f"q{index}") for index in range(50)]),
    with_database(name="n" * 40, queues=[SHORT_NAMES]),
    # 25 + 4 + 9 + 1 + 3 + 1 + 11 + 9 = 63 characters: queue-dy-resource-number.cluster.pcluster
    cluster(name="c" * 11, queues=[changed(QUEUE, name="q" * 25, compute_resources=[changed(NODES, max_count=999)])]),
    accepting(("UrlValidator", "meant")),
]


@pytest.mark.parametrize("spec", ALLOWED, ids=range(len(ALLOWED)))
def test_allowed(spec: ClusterSpec) -> None:
    assert list(map(str, violations(spec))) == []


CPU = changed(NODES, instance_type="c7i.8xlarge", alternative_types=["c6i.8xlarge", "m7i.8xlarge"])
FURTHER = ["subnet-01234567"]
ROLE = "arn:aws:iam::123456789012:role/parallelcluster/nodes"
BUCKETS = [S3AccessSpec(bucket="mine"), S3AccessSpec(bucket="mine", write=True)]

VIOLATIONS: list[tuple[ClusterSpec, str, str]] = [
    # several types and subnets, buckets
    (
        with_queue(changed(CPU, alternative_types=["c7i.8xlarge"])),
        f"{TRN1_NODES}.alternative_types.0",
        "each type once",
    ),
    (with_nodes(alternative_types=["trn1.2xlarge"]), f"{TRN1_NODES}.alternative_types.0", "a type with the vCPUs"),
    (with_nodes(alternative_types=["trn1.32xlarge"]), f"{TRN1_NODES}.alternative_types.0", "each type once"),
    (
        with_queue(changed(CPU, alternative_types=["c7g.8xlarge"])),
        f"{TRN1_NODES}.alternative_types.0",
        "a type of the arch",
    ),
    (
        with_queue(changed(CPU, instance_type="c6i.32xlarge", alternative_types=["c5.18xlarge"]), placement_group="a"),
        f"{TRN1_NODES}.alternative_types.0",
        "a type that has EFA, or efa: false",
    ),
    (
        with_queue(changed(CPU, capacity_reservation_id=RESERVATION)),
        f"{TRN1_NODES}.capacity_reservation_id",
        "null, or capacity_reservation_group_arn",
    ),
    (with_queue(allocation_strategy="prioritized"), f"{TRN1_QUEUE}.allocation_strategy", "null, or alternative_types"),
    (
        with_queue(CPU, allocation_strategy="capacity-optimized"),
        f"{TRN1_QUEUE}.allocation_strategy",
        "lowest-price or prioritized or null",
    ),
    (
        with_queue(further_subnet_ids=FURTHER, placement_group="none"),
        f"{TRN1_QUEUE}.further_subnet_ids",
        "none, or efa",
    ),
    (
        with_queue(CPU, further_subnet_ids=FURTHER, placement_group="mine"),
        f"{TRN1_QUEUE}.further_subnet_ids",
        "none, or placement_group: none",
    ),
    (with_queue(CPU, further_subnet_ids=FURTHER * 2), f"{TRN1_QUEUE}.further_subnet_ids", "each subnet once"),
    *[(with_head(s3_access=BUCKETS), f"head_node.s3_access.{each}.bucket", "each bucket once") for each in range(2)],
    *[(with_queue(s3_access=BUCKETS), f"queues.0.s3_access.{each}.bucket", "each bucket once") for each in range(2)],
    *[
        (change(s3_access=BUCKETS[:1], instance_role_arn=ROLE), f"{place}.s3_access", "none beside instance_role_arn")
        for change, place in ((with_head, "head_node"), (with_queue, "queues.0"))
    ],
    # names, tags
    (with_database(name="n" * 41, queues=[SHORT_NAMES]), "name", "at most 40 characters"),
    (
        cluster(
            name="c" * 11, queues=[changed(QUEUE, name="q" * 25, compute_resources=[changed(NODES, max_count=1000)])]
        ),
        f"{TRN1_NODES}.name",
        "shorter names: qqq",
    ),
    (cluster(tags={f"k{index}": "v" for index in range(40)}), "tags", "at most 39 tags"),
    (cluster(tags={"AWS:x": "y"}), "tags.AWS:x", "no key that begins with parallelcluster: or aws:"),
    (cluster(tags={"k" * 129: "v"}), f"tags.{'k' * 129}", "a key of 1 to 128 characters"),
    (cluster(tags={"": "v"}), "tags.", "a key of 1 to 128 characters"),
    (cluster(tags={"k": "v" * 257}), "tags.k", "a value of 1 to 256 characters"),
    (cluster(tags={"k": ""}), "tags.k", "a value of 1 to 256 characters"),
    # head node, login nodes
    (with_head(instance_type="c7g.4xlarge"), "head_node.instance_type", "an x86 instance type, or neuron_sdk: null"),
    (cluster(os="rocky9"), "os", "ubuntu2404 or ubuntu2204 or alinux2023"),
    (cluster(os="rocky9"), "custom_ami", "an image of yours"),
    (with_head(instance_type="t3a.micro"), "head_node.instance_type", "a type larger than micro"),
    (
        cluster(head_node=HeadNodeSpec(instance_type="m5.large"), queues=with_nodes(max_count=1875).queues),
        "head_node.instance_type",
        "a type with at least 16.0 GiB",
    ),
    (with_head(ssh_key_name="mine"), "head_node.ssh_cidr", "your own address range"),
    *[
        (with_ssh(ssh_cidr=cidr), place, allowed)
        for with_ssh, place in ((with_head, "head_node.ssh_cidr"), (with_logins, "login_nodes.0.ssh_cidr"))
        for cidr, allowed in (("0.0.0.0/7", "a block of /8 or smaller"), ("pl-0123456789", "an IPv4 block"))
    ],
    (with_logins(11), "login_nodes", "at most 10 pools"),
    (with_logins(name="Login"), "login_nodes.0.name", "a lower-case letter"),
    (with_logins(instance_type="m7g.large"), "login_nodes.0.instance_type", "an x86 instance type"),
    # software
    (cluster(neuron_sdk="2.29.0"), "neuron_sdk", "2.27.1 or 2.28.1 or null"),
    (
        cluster(neuron_sdk=None),
        f"{TRN1_NODES}.instance_type",
        "a type without chips of AWS Neuron, or neuron_sdk: 2.28",
    ),
    (cluster(neuron_sdk=None, neuron_driver="2.27.4.0"), "neuron_driver", "null"),
    (cluster(neuron_sdk=None, pytorch="2.8"), "pytorch", "leave it out"),
    (cluster(neuron_sdk=None, os="rhel9"), "os", "ubuntu2404 or ubuntu2204 or alinux2023"),
    # queues
    (cluster(queues=[]), "queues", "1 to 50 queues"),
    (cluster(queues=[changed(QUEUE, name=f"q{each}") for each in range(51)]), "queues", "1 to 50 queues"),
    (
        with_queue(*(changed(NODES, name=f"r{each}") for each in range(51))),
        "queues",
        "at most 50 compute resources over all queues",
    ),
    *[
        (with_queue(name=name), f"{TRN1_QUEUE}.name", "a lower-case letter, then letters")
        for name in ("", "1a", "a" * 26, "default", "a\n")
    ],
    (cluster(queues=[changed(QUEUE, compute_resources=[])]), f"{TRN1_QUEUE}.compute_resources", "at least 1"),
    (
        with_queue(placement_group="fleet", existing_placement_group="mine"),
        f"{TRN1_QUEUE}.existing_placement_group",
        "this or placement_group, not both",
    ),
    (with_queue(scratch_dir="scratch"), f"{TRN1_QUEUE}.scratch_dir", "an absolute path"),
    (with_queue(custom_slurm_settings={"State": "x"}), f"{TRN1_QUEUE}.custom_slurm_settings.State", "any parameter"),
    (cluster(slurm=SlurmSpec(custom_settings={"Prolog": "x"})), "slurm.custom_settings.Prolog", "any parameter"),
    (
        with_database(slurm=SlurmSpec(custom_settings={"AccountingStorageHost": "db"})),
        "slurm.custom_settings.AccountingStorageHost",
        "any parameter that ParallelCluster does not set itself",
    ),
    # nodes
    (with_nodes(min_count=17), f"{TRN1_NODES}.min_count", "at most max_count, 16"),
    (with_nodes(instance_type="c7gn.xlarge"), f"{TRN1_NODES}.instance_type", "an x86 instance type"),
    (with_nodes(instance_type="t3.nano"), f"{TRN1_NODES}.instance_type", "a type larger than micro"),
    (with_nodes(instance_type="trn9.48xlarge"), f"{TRN1_NODES}.instance_type", "another family, one of trn1.2xl"),
    (
        with_nodes(instance_type="trn1.2xlarge", efa=True),
        f"{TRN1_NODES}.efa",
        "null or false, or an instance type that has it",
    ),
    # reservations, Capacity Blocks
    (
        with_nodes(capacity_reservation_id=RESERVATION, capacity_reservation_group_arn=GROUP_ARN),
        f"{TRN1_NODES}.capacity_reservation_group_arn",
        "this or capacity_reservation_id, not both",
    ),
    *[
        (with_queue(changed(NODES, **{key: value}), capacity_type="SPOT"), f"{TRN1_NODES}.{key}", "null")
        for key, value in (("capacity_reservation_id", RESERVATION), ("capacity_reservation_group_arn", GROUP_ARN))
    ],
    (with_queue(BLOCK, placement_group="fleet"), f"{TRN1_QUEUE}.placement_group", "none, or existing_placement_group"),
    (with_reserved_nodes(min_count=15), f"{TRN1_NODES}.min_count", "the same as max_count, 16"),
    (with_reserved_nodes(min_count=0, max_count=0), f"{TRN1_NODES}.min_count", "the same as max_count, 0"),
    (with_reserved_nodes(capacity_reservation_id=None), f"{TRN1_NODES}.capacity_reservation_id", "the id of the Cap"),
    (with_reserved_nodes(instance_type="trn1n.32xlarge"), f"{TRN1_NODES}.instance_type", "trn1.32xlarge, trn2.3xla"),
    (with_block(placement_group="fleet"), f"{TRN1_QUEUE}.placement_group", "none"),
    (with_block(existing_placement_group="fleet"), f"{TRN1_QUEUE}.existing_placement_group", "none"),
    *[
        (with_queue(changed(NODES, instance_type="t3a.2xlarge"), **{key: "g"}), f"{TRN1_QUEUE}.{key}", "none")
        for key in ("placement_group", "existing_placement_group")
    ],
    # accepted warnings
    (accepting(("DuplicateMountDirValidator", "x")), "accepted_warnings.0.validator", "AmiOsCompatibleValidator or "),
    (accepting(("UrlValidator", " ")), "accepted_warnings.0.reason", "a sentence"),
    (accepting(("UrlValidator", "a"), ("UrlValidator", "b")), "accepted_warnings.1.validator", "each validator once"),
]


@pytest.mark.parametrize(("spec", "place", "allowed"), VIOLATIONS, ids=range(len(VIOLATIONS)))
def test_violations(spec: ClusterSpec, place: str, allowed: str) -> None:
    broken = [(".".join(map(str, each.path)), each.allowed) for each in violations(spec)]
    assert [path == place and text.startswith(allowed) for path, text in broken].count(True) == 1, broken


def test_names_given_twice_are_both_reported() -> None:
    for spec, paths in (
        (cluster(queues=[QUEUE, QUEUE]), [("queues", each, "name") for each in range(2)]),
        (with_queue(NODES, NODES), [("queues", 0, "compute_resources", each, "name") for each in range(2)]),
    ):
        assert [(each.path, each.allowed) for each in violations(spec)] == [
            (path, "a name of its own") for path in paths
        ]


@pytest.mark.parametrize(
    ("system", "allowed"),
    [("ubuntu2404", ["2.8", "2.9"]), ("ubuntu2204", ["2.7", "2.8", "2.9"]), ("alinux2023", ["2.8"])],
)
def test_system_sdk_and_pytorch_go_together(system: OperatingSystem, allowed: list[str]) -> None:
    for sdk, pytorch in product(RELEASES, ["2.6", "2.7", "2.8", "2.9"]):
        broken = violations(cluster(os=system, neuron_sdk=sdk, pytorch=pytorch))
        expected = [] if pytorch in allowed else [(("pytorch",), " or ".join(allowed))]
        assert [(each.path, each.allowed) for each in broken] == expected, (sdk, pytorch)


def test_a_zone_that_does_not_offer_a_type_is_a_warning() -> None:
    nodes = [NODES, changed(NODES, instance_type="trn1n.32xlarge"), changed(NODES, instance_type="c6i.large")]
    [warning] = zone_warnings(with_queue(*nodes), "usw2-az1")
    assert warning.path == ("queues", 0, "compute_resources", 1, "instance_type")
    assert warning.allowed == "zones that offer it: usw2-az4, use1-az6, use2-az3"
    assert list(zone_warnings(with_queue(*nodes), "usw2-az4")) == []


def test_sums_over_the_fleet() -> None:
    spec = with_queue(
        NODES,
        changed(NODES, instance_type="trn1n.32xlarge", max_count=2),
        changed(NODES, instance_type="c6i.large", max_count=3),
    )
    assert (spec.max_nodes, spec.max_trainium_vcpus) == (21, 18 * 128)
    assert (spec.max_node_addresses, spec.max_node_interfaces) == (21, 16 * 9 + 2 * 17 + 3)
    legacy = changed(spec, efa_interface_type="efa")
    assert legacy.max_node_addresses == legacy.max_node_interfaces == 16 * 8 + 2 * 16 + 3


@pytest.mark.parametrize("system", SYSTEMS)
def test_without_a_neuron_sdk_all_nodes_may_be_of_arm(system: OperatingSystem) -> None:
    arm = cluster(os=system, neuron_sdk=None, queues=with_queue(ARM_NODES).queues, head_node=ARM_HEAD)
    assert violations(arm) == []
    assert [each.path[-1] for each in violations(changed(arm, neuron_sdk=DEFAULT_SDK, pytorch="2.8"))] == [
        "instance_type",
        "instance_type",
    ]


def test_without_neuron_software_all_nodes_have_the_architecture_of_the_head_node() -> None:
    arm = changed(cluster(os="rhel9", queues=[changed(QUEUE, compute_resources=[ARM_NODES])]), head_node=ARM_HEAD)
    mixed = changed(arm, queues=[*arm.queues, changed(QUEUE, name="x86")])

    assert violations(arm, neuron_software=False) == []
    assert [(each.path[1], each.allowed) for each in violations(mixed, neuron_software=False)] == [
        (1, "an Arm instance type, as the head node has")
    ]
