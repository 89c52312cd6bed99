"""Rules of a cluster that the tables of test_settings.py do not reach one by one: their edges."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

from ultracluster.domain.cluster import (
    ClusterSpec,
    ComputeResourceSpec,
    HeadNodeSpec,
    LoginPoolSpec,
    OperatingSystem,
    QueueSpec,
    SlurmSpec,
)
from ultracluster.domain.cluster_rules import MODELLED_KEYS, faults, subnet_faults, zone_warnings
from ultracluster.domain.faults import Fault, below
from ultracluster.domain.instance_types import EfaInterfaceType
from ultracluster.domain.neuron import RELEASES

TRN1 = ComputeResourceSpec(name="trn1-32xl", instance_type="trn1.32xlarge", max_count=16)
QUEUE = QueueSpec(name="trn1", compute_resources=[TRN1])
CLUSTER = ClusterSpec(
    name="trn1-16",
    region="us-west-2",
    version="3.16.1",
    head_node=HeadNodeSpec(instance_type="c6i.4xlarge"),
    queues=[QUEUE],
)
BLOCK = replace(TRN1, min_count=16, capacity_reservation_id="cr-0123456789abcdef0")
BLOCK_QUEUE = QueueSpec(name="block", capacity_type="CAPACITY_BLOCK", compute_resources=[BLOCK])
POLICY_ARN = "arn:aws:iam::123456789012:policy/parallelcluster-x"
GROUP_ARN = "arn:aws:resource-groups:us-west-2:123456789012:group/trn1"


def places(found: Iterable[Fault]) -> list[str]:
    return [".".join(map(str, fault.path)) for fault in found]


def with_queue(queue: QueueSpec) -> ClusterSpec:
    return replace(CLUSTER, queues=[queue])


def with_nodes(**changes: Any) -> ClusterSpec:
    return with_queue(replace(QUEUE, compute_resources=[replace(TRN1, **changes)]))


def with_head(**changes: Any) -> ClusterSpec:
    return replace(CLUSTER, head_node=replace(CLUSTER.head_node, **changes))


SMALL_QUEUE = replace(QUEUE, compute_resources=[replace(TRN1, max_count=10)])
SOUND = [
    CLUSTER,
    with_queue(BLOCK_QUEUE),
    with_queue(replace(BLOCK_QUEUE, placement_group="none")),
    with_nodes(min_count=16),
    with_queue(replace(QUEUE, capacity_type="SPOT")),
    replace(with_queue(replace(QUEUE, name="q", compute_resources=[replace(TRN1, name="r")])), name="n" * 41),
    with_queue(replace(BLOCK_QUEUE, compute_resources=[replace(BLOCK, instance_type="p5.48xlarge")])),
    with_nodes(efa=False),
    with_nodes(instance_type="trn1.2xlarge"),
    with_nodes(instance_type="p5.48xlarge", efa=False),
    with_nodes(capacity_reservation_group_arn=GROUP_ARN),
    with_queue(replace(QUEUE, existing_placement_group="mine")),
    with_queue(replace(QUEUE, compute_resources=[BLOCK], existing_placement_group="mine")),
    with_queue(replace(QUEUE, compute_resources=[BLOCK], placement_group="none")),
    with_queue(replace(QUEUE, placement_group="none", compute_resources=[replace(TRN1, instance_type="t3.large")])),
    with_head(ssh_cidr="10.0.0.0/8"),
    with_head(ssh_cidr="203.0.113.5/32", ssh_key_name="mine"),
    with_head(ssh_cidr="pl-01234567"),
    with_head(ssh_cidr="pl-0123456789abcdef0"),
    with_head(instance_type="x2idn.16xlarge"),
    replace(with_head(instance_type="t3.micro"), os="alinux2023", pytorch="2.8", queues=[SMALL_QUEUE]),
    replace(CLUSTER, tags={f"k{index}": "v" for index in range(39)}),
    replace(CLUSTER, tags={"k" * 128: "v", "k": "v", "awsome": "v"}),
    replace(CLUSTER, login_pools=[LoginPoolSpec(name=f"p{index}", instance_type="c6i.large") for index in range(10)]),
    replace(CLUSTER, slurm=SlurmSpec(custom_settings={"MessageTimeout": "60", "AccountingStorageHost": "db"})),
    replace(CLUSTER, queues=[replace(QUEUE, name=f"q{index}") for index in range(50)]),
]


def test_sound_clusters_have_no_fault() -> None:
    for spec in SOUND:
        assert list(map(str, faults(spec))) == [], spec


def ssh_places(cidr: str) -> list[str]:
    """Return what is told of a block for head node and login nodes."""
    pool = LoginPoolSpec(name="login", instance_type="c6i.large", ssh_cidr=cidr)
    found = faults(replace(with_head(ssh_cidr=cidr), login_pools=[pool]))
    assert all(fault.got == cidr for fault in found)
    return places(found)


def test_ssh_is_never_open_to_the_world() -> None:
    for cidr in ("0.0.0.0/0", "0.0.0.0/7", "128.0.0.0/1"):
        assert ssh_places(cidr) == ["head_node.ssh_cidr", "login_nodes.0.ssh_cidr"], cidr


def test_ssh_comes_from_a_block_or_a_prefix_list() -> None:
    for cidr in ("", "world", "203.0.113.5", "203.0.113.5/24", "fd00::/8", "pl-1", "pl-0123456789"):
        assert ssh_places(cidr) == ["head_node.ssh_cidr", "login_nodes.0.ssh_cidr"], cidr
    for cidr in ("10.0.0.0/8", "203.0.113.5/32", "pl-01234567", "pl-0123456789abcdef0"):
        assert ssh_places(cidr) == [], cidr


def test_the_head_node_has_memory_for_the_fleet() -> None:
    expected = {
        (10, "t3.micro"): [],
        (11, "t3.micro"): ["a type with at least 1.0"],
        (85, "t3.medium"): [],
        (86, "t3.medium"): ["a type with at least 4.0"],
        (1875, "m5.large"): ["a type with at least 16.0"],
        (1875, "m5.xlarge"): [],
        (50_000, "m5.xlarge"): [],
    }
    told = {}
    for nodes, instance_type in expected:
        head = HeadNodeSpec(instance_type=instance_type)
        found = faults(replace(with_nodes(max_count=nodes), head_node=head, os="alinux2023", pytorch="2.8"))
        texts = [fault.allowed for fault in found if fault.path == ("head_node", "instance_type")]
        told[nodes, instance_type] = [text.partition(" GiB")[0] for text in texts]
    assert told == expected


def test_a_node_has_at_most_63_characters() -> None:
    """Of queue-dy-resource-number.cluster.pcluster: 25 + 4 + 9 + 1 + 3 + 1 + 11 + 9 = 63."""
    for nodes, expected in ((999, []), (1000, ["queues.0.compute_resources.0.name"])):
        queue = QueueSpec(name="q" * 25, compute_resources=[replace(TRN1, max_count=nodes)])
        assert places(faults(replace(with_queue(queue), name="c" * 11))) == expected


def test_a_capacity_block_has_all_of_its_nodes_all_the_time() -> None:
    for least, most in ((0, 16), (15, 16), (17, 16), (0, 0)):
        queue = replace(BLOCK_QUEUE, compute_resources=[replace(BLOCK, min_count=least, max_count=most)])
        assert set(places(faults(with_queue(queue)))) == {"queues.0.compute_resources.0.min_count"}, (least, most)


def test_a_capacity_block_has_an_id() -> None:
    spec = with_queue(replace(BLOCK_QUEUE, compute_resources=[replace(BLOCK, capacity_reservation_id=None)]))
    assert places(faults(spec)) == ["queues.0.compute_resources.0.capacity_reservation_id"]


def test_a_capacity_block_takes_no_placement_group() -> None:
    for changes in ({"placement_group": "fleet"}, {"existing_placement_group": "fleet"}):
        found = faults(with_queue(replace(BLOCK_QUEUE, **changes)))  # type: ignore[arg-type]
        assert places(found) == [f"queues.0.{field}" for field in changes]


def test_reserved_capacity_takes_no_placement_group_of_this_deployment() -> None:
    """EC2 does not launch into a reservation from a placement group other than the one it was made in."""
    targets = ({"capacity_reservation_id": "cr-0123456789abcdef0"}, {"capacity_reservation_group_arn": GROUP_ARN})
    for target in targets:
        for label in ("fleet", "mine"):
            resources = [replace(TRN1, name="free"), replace(TRN1, **target)]  # type: ignore[arg-type]
            (fault,) = faults(with_queue(replace(QUEUE, compute_resources=resources, placement_group=label)))
            assert (fault.path, fault.got) == (("queues", 0, "placement_group"), label)
            assert fault.allowed.startswith("none, or existing_placement_group")


def test_burstable_types_are_in_no_placement_group() -> None:
    for instance_type in ("t2.medium", "t3.medium", "t3a.2xlarge"):
        burstable = replace(QUEUE, compute_resources=[TRN1, replace(TRN1, name="t", instance_type=instance_type)])
        groups = {"fleet": burstable, "mine": replace(burstable, placement_group="mine")}
        for group, queue in groups.items():
            (fault,) = faults(with_queue(queue))
            assert (fault.path, fault.got, fault.allowed) == (("queues", 0, "placement_group"), group, "none")
        assert len(faults(with_queue(replace(burstable, existing_placement_group="theirs")))) == 1
        assert faults(with_queue(replace(burstable, placement_group="none"))) == []


def test_trn_types_are_those_that_there_are() -> None:
    for instance_type in ("trn1.16xlarge", "trn2.xlarge", "trn9.48xlarge"):
        (fault,) = faults(with_nodes(instance_type=instance_type))
        assert (fault.path[-1], fault.got) == ("instance_type", instance_type)
        assert fault.allowed == (
            "another family, or one of "
            "trn1.2xlarge, trn1.32xlarge, trn1n.32xlarge, trn2.3xlarge, trn2.48xlarge, trn2u.48xlarge"
        )


def test_a_capacity_block_is_of_a_type_that_is_sold_so() -> None:
    spec = with_queue(replace(BLOCK_QUEUE, compute_resources=[replace(BLOCK, instance_type="trn1n.32xlarge")]))
    (fault,) = faults(spec)
    assert fault.path == ("queues", 0, "compute_resources", 0, "instance_type")
    assert fault.allowed == "trn1.32xlarge, trn2.3xlarge, trn2.48xlarge, trn2u.48xlarge"


def test_spot_takes_no_reservation() -> None:
    targets = {"capacity_reservation_id": "cr-0123456789abcdef0", "capacity_reservation_group_arn": GROUP_ARN}
    for field, value in targets.items():
        resource = replace(TRN1, **{field: value})  # type: ignore[arg-type]
        (fault,) = faults(with_queue(replace(QUEUE, capacity_type="SPOT", compute_resources=[resource])))
        assert (fault.path[-1], fault.got) == (field, value)


def test_efa_is_for_types_that_have_it() -> None:
    for instance_type in ("trn1.2xlarge", "c6i.4xlarge"):
        found = faults(with_nodes(instance_type=instance_type, efa=True))
        assert places(found) == ["queues.0.compute_resources.0.efa"], instance_type


def test_ubuntu_does_not_fit_into_the_smallest_types() -> None:
    for instance_type in ("t3.nano", "t3a.micro"):
        resources = [replace(TRN1, instance_type=instance_type)]
        found = faults(with_queue(replace(QUEUE, placement_group="none", compute_resources=resources)))
        assert places(found) == ["queues.0.compute_resources.0.instance_type"]
        assert "head_node.instance_type" in places(faults(with_head(instance_type=instance_type)))


def test_system_sdk_and_pytorch_go_together() -> None:
    sound = {
        ("ubuntu2404", "2.8"),
        ("ubuntu2404", "2.9"),
        ("ubuntu2204", "2.7"),
        ("ubuntu2204", "2.8"),
        ("ubuntu2204", "2.9"),
        ("alinux2023", "2.8"),
    }
    systems: list[OperatingSystem] = ["ubuntu2404", "ubuntu2204", "alinux2023"]
    for sdk, system, pytorch in product(RELEASES, systems, ["2.6", "2.7", "2.8", "2.9", "2.10", "2.9.0"]):
        found = faults(replace(CLUSTER, os=system, neuron_sdk=sdk, pytorch=pytorch))
        assert places(found) == ([] if (system, pytorch) in sound else ["pytorch"]), (system, sdk, pytorch)
        for fault in found:
            assert fault.allowed == " or ".join(version for on, version in sorted(sound) if on == system)


def test_pytorch_that_does_not_run_is_told_with_its_obstacle() -> None:
    reasons = {
        ("alinux2023", "2.9"): "PyTorch 2.9.0 needs glibc 2.35, and alinux2023 has 2.34",
        ("alinux2023", "2.7"): "PyTorch 2.7.0 has no wheels for Python 3.12, which alinux2023 has",
        ("ubuntu2404", "2.7"): "PyTorch 2.7.0 has no wheels for Python 3.12, which ubuntu2404 has",
        ("ubuntu2204", "2.6"): "what Neuron SDK 2.28.1 has for ubuntu2204",
    }
    told = {}
    for system, pytorch in reasons:
        (fault,) = faults(replace(CLUSTER, os=system, pytorch=pytorch))  # type: ignore[arg-type]
        told[system, pytorch] = fault.reason
    assert told == reasons


def test_releases_that_do_not_train_on_trn1_are_told_so() -> None:
    for sdk in ("2.29.0", "2.30.0", "2.33.0", "2.28.0", "2.21.0", "latest"):
        (fault,) = faults(replace(CLUSTER, neuron_sdk=sdk))
        assert (fault.path, fault.got, fault.allowed) == (("neuron_sdk",), sdk, "2.27.1 or 2.28.1")
        assert fault.reason.startswith("2.28 is the last line that trains with PyTorch on Trn1")


def test_accounting_shortens_the_name_of_the_cluster() -> None:
    queue = replace(QUEUE, name="q", compute_resources=[replace(TRN1, name="r", max_count=1)])
    for section in ("Database", "ExternalSlurmdbd"):
        overrides = {"Scheduling": {"SlurmSettings": {section: {"Uri": "db"}}}}
        for length, expected in ((40, []), (41, ["name"])):
            spec = replace(CLUSTER, name="n" * length, overrides=overrides, queues=[queue])
            assert places(faults(spec)) == expected, section


def test_reserved_settings_of_a_queue_are_told_in_any_case() -> None:
    for key in ("oversubscribe", "OverSubscribe", "STATE", "Nodes", "SuspendTime"):
        spec = with_queue(replace(QUEUE, custom_slurm_settings={key: "x", "MaxNodes": "4"}))
        assert places(faults(spec)) == [f"queues.0.custom_slurm_settings.{key}"]


def test_reserved_settings_of_the_cluster_are_told_in_any_case() -> None:
    for key in ("Prolog", "TREEWIDTH", "ResumeProgram"):
        spec = replace(CLUSTER, slurm=SlurmSpec(custom_settings={key: "x"}))
        assert places(faults(spec)) == [f"slurm.custom_settings.{key}"]


def override_of(pattern: str, value: object) -> dict[str, Any]:
    """Return an override of a key that a pattern of MODELLED_KEYS means."""
    keys = pattern.replace("M??Count", "MaxCount").replace("*", "").rstrip(".").split(".")
    for key in reversed(keys):
        name = {"SlurmQueues": "trn1", "ComputeResources": "trn1-32xl"}.get(key)
        value = {key: [{"Name": name, **value}] if name and isinstance(value, dict) else value}
    return value  # type: ignore[return-value]


def test_an_override_may_not_touch_what_rules_count_on() -> None:
    for pattern, setting in MODELLED_KEYS.items():
        found = faults(replace(CLUSTER, overrides=override_of(pattern, "x")))
        assert [(fault.path[0], fault.allowed) for fault in found] == [("overrides", f"the setting {setting}")], pattern


def test_what_an_override_may_not_touch() -> None:
    """Spelt out where a rule of MODELLED_KEYS is for something other than a setting of ours."""
    queue = {"Scheduling": {"SlurmQueues": [{"Name": "trn1", "Iam": {"InstanceRole": "arn"}}]}}
    guarded: list[dict[str, Any]] = [
        {"HeadNode": {"Iam": {"InstanceProfile": "arn"}}},
        {"HeadNode": {"Iam": {"InstanceRole": "arn"}}},
        {"HeadNode": {"Iam": {"S3Access": [{"BucketName": "mine"}]}}},
        queue,
        {"Scheduling": {"SlurmQueues": [{"Name": "trn1", "Iam": {"S3Access": [{"BucketName": "mine"}]}}]}},
        {"Monitoring": {"DetailedMonitoring": True}},
        {"Monitoring": {"Logs": {"CloudWatch": {"Enabled": False}}}},
        {"Monitoring": {"Dashboards": {"CloudWatch": {"Enabled": False}}}},
        {"Monitoring": {"Alarms": {"Enabled": False}}},
    ]
    for overrides in guarded:
        assert [fault.path[0] for fault in faults(replace(CLUSTER, overrides=overrides))] == ["overrides"], overrides


def test_an_override_of_a_section_is_told_once_for_each_key() -> None:
    found = faults(replace(CLUSTER, overrides={"Image": {"Os": "x", "CustomAmi": "y"}, "HeadNode": {"Ssh": {}}}))
    assert places(found) == ["overrides.Image.Os", "overrides.Image.CustomAmi", "overrides.HeadNode.Ssh"]


def test_an_override_may_not_hide_what_rules_count_on() -> None:
    below_others = [pattern.replace(".*", "") for pattern in MODELLED_KEYS if "." in pattern.replace(".*", "")]
    for parent, value in product({pattern.rpartition(".")[0] for pattern in below_others}, (None, "x", 1)):
        found = faults(replace(CLUSTER, overrides=override_of(parent, value)))
        assert any(fault.allowed.startswith(("the setting ", "a list, ")) for fault in found), parent


def test_overrides_of_what_is_not_modelled_are_free() -> None:
    free: list[dict[str, Any]] = [
        {},
        {"Iam": {"PermissionsBoundary": "arn:aws:iam::123456789012:policy/x"}},
        {"DevSettings": {"Timeouts": {"HeadNodeBootstrapTimeout": 3000}}},
        {"HeadNode": {"Dcv": {"Enabled": True}, "Networking": {"ElasticIp": True}}},
        {"HeadNode": {"Iam": {"AdditionalIamPolicies": [{"Policy": POLICY_ARN}]}}},
        {"Monitoring": {"Logs": {"Rotation": {"Enabled": False}}}},
        {"HeadNode": {}, "Scheduling": {"SlurmQueues": []}},
        {"DevSettings": {"a": 1.5, "b": None, "c": True, "d": [1, "x"]}},
        {"Scheduling": {"SlurmQueues": [{"Name": "trn1", "ComputeResources": [{"Name": "trn1-32xl", "Tags": []}]}]}},
        {"Scheduling": {"SlurmSettings": {"EnableMemoryBasedScheduling": True, "CustomSlurmSettingsIncludeFile": "s3://b/f"}}},
    ]  # fmt: skip
    for overrides in free:
        assert faults(replace(CLUSTER, overrides=overrides)) == []


def test_no_node_may_have_the_policy_that_reads_every_parameter() -> None:
    """Login pools have no overrides at all."""
    for partition in ("aws", "aws-us-gov"):
        arn = f"arn:{partition}:iam::aws:policy/AmazonSSMManagedInstanceCore"
        iam = {"Iam": {"AdditionalIamPolicies": [{"Policy": POLICY_ARN}, {"Policy": arn}]}}
        cases: dict[str, dict[str, Any]] = {
            "HeadNode": {"HeadNode": iam},
            "Scheduling.SlurmQueues.0": {"Scheduling": {"SlurmQueues": [{"Name": "trn1", **iam}]}},
        }
        for node, overrides in cases.items():
            (fault,) = faults(replace(CLUSTER, overrides=overrides))
            assert places([fault]) == [f"overrides.{node}.Iam.AdditionalIamPolicies.1.Policy"]
            assert fault.got == arn
            assert "already has Session Manager" in fault.allowed
        found = faults(replace(CLUSTER, overrides={"LoginNodes": {"Pools": [{"Name": "login", **iam}]}}))
        assert {fault.allowed for fault in found} == {"the setting cluster.login_nodes"}


def test_overrides_of_lists_name_what_they_change() -> None:
    cases: list[tuple[Any, str]] = [
        ([{"Name": "other"}], "0.Name"),
        ([{"AllocationStrategy": "lowest-price"}], "0.Name"),
        (["trn1"], "0.Name"),
        ([{"Name": ["trn1"]}], "0.Name"),
        ({"AllocationStrategy": "lowest-price"}, ""),
        ([{"Name": "trn1"}, {"Name": "other"}], "1.Name"),
        ([{"Name": "trn1", "ComputeResources": [{"Name": "other"}]}], "0.ComputeResources.0.Name"),
        ([{"Name": "trn1", "ComputeResources": [{"Tags": []}]}], "0.ComputeResources.0.Name"),
        ([{"Name": "trn1", "ComputeResources": {"Name": "trn1-32xl"}}], "0.ComputeResources"),
    ]
    for change, place in cases:
        found = places(faults(replace(CLUSTER, overrides={"Scheduling": {"SlurmQueues": change}})))
        assert f"overrides.Scheduling.SlurmQueues.{place}".rstrip(".") in found


def test_overrides_are_json() -> None:
    odd: list[dict[Any, Any]] = [
        {1: "x"},
        {"a": {None: 1}},
        {"a": [b"x"]},
        {"a": float("nan")},
        {"a": float("inf")},
    ]
    for value in odd:
        found = faults(replace(CLUSTER, overrides={"Iam": value}))
        assert [fault.reason for fault in found] == ["the configuration becomes JSON"], value
        assert all(isinstance(part, str | int) for part in found[0].path)


def test_the_private_subnet_holds_every_node() -> None:
    sound: dict[tuple[EfaInterfaceType, str, int], bool] = {
        ("efa-only", "10.0.0.0/24", 235): True,  # 16 + 235 = 251
        ("efa-only", "10.0.0.0/24", 236): False,
        ("efa", "10.0.0.0/24", 123): True,  # 16 x 8 + 123 = 251
        ("efa", "10.0.0.0/24", 124): False,
        ("efa", "not a block", 124): True,  # told by another rule
    }
    told = {}
    for kind, cidr, reserve in sound:
        spec = replace(CLUSTER, efa_interface_type=kind)
        found = list(subnet_faults(spec, private_subnet_cidr=cidr, reserve=reserve))
        assert all(fault.path == ("private_subnet_cidr",) and fault.allowed == "a /23 or larger" for fault in found)
        told[kind, cidr, reserve] = not found
    assert told == sound


def test_a_zone_is_told_for_each_type_that_it_does_not_offer() -> None:
    queue = replace(QUEUE, compute_resources=[TRN1, replace(TRN1, name="n", instance_type="trn1n.32xlarge"),
                                              replace(TRN1, name="c", instance_type="c6i.large")])  # fmt: skip
    (fault,) = zone_warnings(with_queue(queue), "usw2-az1")
    assert fault.path == ("queues", 0, "compute_resources", 1, "instance_type")
    assert fault.allowed == "zones that offer it: usw2-az4, use1-az6, use2-az3"
    assert list(zone_warnings(with_queue(queue), "usw2-az4")) == []


def test_a_fault_reads_as_a_sentence() -> None:
    (fault,) = below(("a", 0), [Fault(("b",), "x", "y", "why")])
    assert fault.path == ("a", 0, "b")
    assert str(fault) == "got 'x'; allowed: y (why)"


def test_placement_groups_are_shared_by_label_and_left_out_for_reservations() -> None:
    queues = [
        QUEUE,
        replace(QUEUE, name="b", placement_group="other"),
        replace(QUEUE, name="c", placement_group="fleet"),
        replace(QUEUE, name="d", placement_group="none"),
        replace(QUEUE, name="e", existing_placement_group="mine"),
        replace(QUEUE, name="f", compute_resources=[BLOCK]),
        replace(QUEUE, name="g", compute_resources=[BLOCK], placement_group="reserved"),
        BLOCK_QUEUE,
    ]
    labels = [queue.placement_group_label for queue in queues]
    assert labels == ["fleet", "other", "fleet", None, None, None, "reserved", None]
    assert replace(CLUSTER, queues=queues).placement_group_labels == ["fleet", "other", "reserved"]


def test_sums_over_the_fleet() -> None:
    resources = [TRN1, replace(TRN1, name="n", instance_type="trn1n.32xlarge", max_count=2),
                 replace(TRN1, name="c", instance_type="c6i.large", max_count=3)]  # fmt: skip
    spec = with_queue(replace(QUEUE, compute_resources=resources))
    assert spec.max_nodes == 21
    assert spec.max_trainium_vcpus == 18 * 128
    assert spec.max_node_addresses == 21
    assert spec.max_node_interfaces == 16 * 9 + 2 * 17 + 3
    legacy = replace(spec, efa_interface_type="efa")
    assert legacy.max_node_addresses == legacy.max_node_interfaces == 16 * 8 + 2 * 16 + 3
