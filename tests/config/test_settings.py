"""Settings files: what is accepted, and what is said of what is not."""

from pathlib import Path
from textwrap import dedent

import pytest
from pydantic import ValidationError

from config.settings import (
    DataRepositorySettings,
    LoginPoolSettings,
    MonitoringSettings,
    NetworkSettings,
    SettingsError,
    StorageSettings,
    load,
)
from tests.config.settings_files import A_VPC, GOOD, GROUP, KEY, MORE, RESOURCE, Write, changed, outcome

CONFIG = Path(__file__).parents[2] / "config"
LAUGHS = "a: &a x\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
"""Ten times as many values line by line: 10^8 on the last one."""
LONG_ALIASES = f"a: &a\n  b: [&b {'x' * 600_000}]\nc: *a\ntermination_protection: [*b{', *b' * 5_000}]\n"
"""Few values, but 3 GB of text."""


def test_the_base_of_the_tables_is_in_order(write: Write) -> None:
    assert load(write(GOOD)).warnings == []


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


def test_faults_of_all_sections_are_told_at_once(write: Write) -> None:
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


def test_cross_rules_are_told_beside_shape_faults_of_other_sections(write: Write) -> None:
    text = GOOD.replace("account: null", "account: 1").replace("10.0.64.0/18", "10.0.64.0/28")
    assert [line.split(": ")[1] for line in outcome(write(text))] == ["account", "network.private_subnet_cidr"]


def test_shapes_and_rules_of_one_section_are_told_at_once(write: Write) -> None:
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


def test_a_required_key_of_a_wrong_shape_hides_no_other_fault(write: Write) -> None:
    for old, new, place in (
        ("max_count: 16", "max_count: four", f"{RESOURCE}.max_count"),
        ("max_count: 16", "min_count: 0", f"{RESOURCE}.max_count"),
        ("name: trn1\naccount", "name: TRN1\naccount", "name"),
    ):
        assert old in GOOD, old
        text = changed(old, new).replace("ssh_cidr: null", "ssh_cidr: 0.0.0.0/0").replace("retain: true", "retain: 1")
        told = [line.split(": ")[1] for line in outcome(write(text))]
        assert sorted(told) == sorted([place, "cluster.head_node.ssh_cidr", "storage.retain"]), told


def test_a_default_in_the_place_of_a_wrong_value_is_not_blamed(write: Write) -> None:
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


def test_an_unknown_key_is_told_with_the_one_that_was_meant(write: Write) -> None:
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


def test_a_missing_key_is_told_with_its_meaning(write: Write) -> None:
    path = write(changed("max_count: 16", "min_count: 0"))
    assert outcome(path) == [
        f"{path}:28: cluster.queues[0].compute_resources[0].max_count: missing; this key is required (Nodes at most)"
    ]


def test_what_is_no_settings_file_is_told(write: Write) -> None:
    odd = [
        ("", "settings.yaml:1: (file): got None; should be a mapping"),
        ("# nothing", "settings.yaml:1: (file): got None; should be a mapping"),
        ("- name: trn1", "settings.yaml:1: (file): got [{'name': 'trn1'}]; should be a mapping"),
        ("name: a: b", "settings.yaml: not YAML: mapping values are not allowed"),
        ("a: 1\n---\nb: 2", "settings.yaml: not YAML: expected a single document"),
        ("a: 2026-13-45", "settings.yaml: not YAML: month must be in 1..12"),
        ("x: 1\na: &a\n  - *a", "settings.yaml:3: got *a within what it names"),
        ("\n" + "[" * 500_000, "settings.yaml:2: got mappings and lists 101 deep; allowed: 100"),
        ("# x\n" * 300_000, "settings.yaml:262145: got more than 1 MiB up to here; allowed: 1 MiB"),
        (LONG_ALIASES, "settings.yaml:4: got aliases that stand for 1200001 characters; allowed: 1048576 in a file"),
        (LAUGHS, "settings.yaml:5: got aliases that stand for 10118 values; allowed: 10000"),
        ("a: !!python/name:os.system", "settings.yaml: not YAML: could not determine a constructor"),
        ("name: a\nname: b", "settings.yaml:2: name: given twice, first on line 1"),
        ("network:\n  cidr: a\n  cidr: b", "settings.yaml:3: cidr: given twice, first on line 2"),
        ("- {a: 1, a: 2}", "settings.yaml:1: a: given twice, first on line 1"),
    ]
    for text, told in odd:
        assert told in "\n".join(outcome(write(text))), text


def test_of_a_long_value_only_the_beginning_is_told(write: Write) -> None:
    """Whether its shape or a rule is broken."""
    for old, text in (("region: us-west-2", "region: "), ("ssh_cidr: null", "ssh_cidr: ")):
        (told,) = outcome(write(changed(old, text + "x" * 900_000)))
        assert f"got '{'x' * 199}...; " in told
        assert len(told) < 500


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    assert outcome(tmp_path / "none.yaml")[0].startswith(f"{tmp_path}/none.yaml: cannot be read: ")
    assert outcome(tmp_path)[0].startswith(f"{tmp_path}: cannot be read: ")
    (tmp_path / "latin.yaml").write_bytes(b"name: \xe9")
    assert outcome(tmp_path / "latin.yaml")[0].startswith(f"{tmp_path}/latin.yaml: cannot be read: ")


def test_values_may_come_from_anchors_and_merges(write: Write) -> None:
    text = changed("max_count: 16", "max_count: &n 16").replace("capacity_gib: 4800", "capacity_gib: 4800\n    <<: {}")
    assert load(write(text)).cluster.queues[0].compute_resources[0].max_count == 16


def test_the_private_subnet_holds_an_ultracluster(write: Write) -> None:
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


def test_other_things_in_the_private_subnet_are_counted(write: Write) -> None:
    """32, file servers, login nodes outside the public subnet, and interface endpoints."""
    text = (
        GOOD.replace("capacity_gib: 4800", "capacity_gib: 96000")
        .replace("login_nodes: []", "login_nodes: [{name: a, count: 3}, {name: b, count: 4}, {name: c, public: true}]")
        .replace("nat_addresses: 1", "interface_endpoints: [ssm, parallelcluster, logs]")
        .replace("10.0.64.0/18", "10.0.64.0/26")
    )
    (told,) = outcome(write(text))
    assert f"other things {32 + 80 + 7 + 4}; this subnet has 59)" in told


def test_what_stands_in_the_public_subnet_is_counted(write: Write) -> None:
    """The head node, addresses of the NAT gateway, login nodes that are public, and a load balancer for each pool."""
    small = GOOD.replace("10.0.0.0/24", "10.0.0.0/28").replace("nat_addresses: 1", "nat_addresses: 3")
    pools = "login_nodes: [{name: a, public: true, count: #}, {name: b, count: 9}]"
    assert load(write(small.replace("login_nodes: []", pools.replace("#", "5")))).network.nat_addresses == 3
    (told,) = outcome(write(small.replace("login_nodes: []", pools.replace("#", "6"))))
    assert "network.public_subnet_cidr: got '10.0.0.0/28'; allowed: a /27 or larger (" in told
    assert "take 12 addresses; this subnet has 11)" in told


def test_regions_of_other_partitions_are_told(write: Write) -> None:
    for region in ("cn-north-1", "us-gov-west-1", "us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1"):
        (told,) = outcome(write(changed("region: us-west-2", f"region: {region}")))
        assert f" region: got '{region}'; allowed: a Region of AWS's standard partition (" in told


def test_keys_and_reservation_groups_of_the_region_are_taken(write: Write) -> None:
    text = changed("max_count: 16", MORE.replace("§", "") + GROUP).replace("retain: true", "retain: false")
    loaded = load(write(text.replace("capacity_gib: 4800", f"kms_key_arn: {KEY}")))
    assert loaded.storage.file_system.kms_key_arn == KEY
    assert loaded.cluster.queues[0].compute_resources[0].capacity_reservation_group_arn is not None


def test_a_fleet_that_no_subnet_holds_is_told(write: Write) -> None:
    text = GOOD.replace("max_count: 16", "max_count: 70000").replace("ssh_cidr: null", "instance_type: m6i.16xlarge")
    assert any("allowed: fewer nodes: no subnet is that large" in line for line in outcome(write(text)))


def test_a_zone_without_the_instance_type_is_a_warning_with_the_zones(write: Write) -> None:
    (warning,) = load(write(changed("zone_id: usw2-az4", "zone_id: usw2-az2"))).warnings
    assert warning == (
        "cluster.queues[0].compute_resources[0].instance_type: got 'trn1.32xlarge'; allowed: zones that offer it: "
        "usw2-az1, usw2-az4, aps1-az2, apse2-az1, apse2-az2, apse4-az1, use1-az4, use1-az5, use1-az6, use2-az3 "
        "(usw2-az2 was not seen to)"
    )


@pytest.mark.parametrize(
    ("change", "warned"),
    [
        ("max_count: 64", False),
        ("max_count: 65", True),
        ("max_count: 32\n        - {name: more, instance_type: trn1.32xlarge, max_count: 33}", True),
        ("max_count: 32\n        - {name: plain, instance_type: c6i.4xlarge, max_count: 900}", False),
    ],
)
def test_a_large_queue_wants_an_image(write: Write, change: str, warned: bool) -> None:
    text = changed("max_count: 16", change)
    assert [("nodes of trn1 downloads" in each) for each in load(write(text)).warnings] == [True] * warned
    assert load(write(text.replace("cluster:\n", "cluster:\n  custom_ami: ami-0123456789abcdef0\n"))).warnings == []
    override = "overrides: {Scheduling: {SlurmQueues: [{Name: trn1, Image: {CustomAmi: ami-0123456789abcdef0}}]}}"
    assert load(write(text.replace("overrides: {}", override))).warnings == []


def test_snapshots_without_home_are_a_warning(write: Write) -> None:
    (warning,) = load(write(changed("ssh_cidr: null", "shared_storage: efs"))).warnings
    assert warning.startswith(
        "cluster.head_node.snapshots: got {'interval_hours': 24, 'retained': 7}; allowed: null (snapshots cost"
    )
    assert load(write(changed("ssh_cidr: null", "shared_storage: efs\n    snapshots: null"))).warnings == []


def test_a_region_with_an_odd_name_has_any_zone(write: Write) -> None:
    text = changed("region: us-west-2", "region: us-moon-2").replace("usw2-az4", "usm2-az1")
    assert load(write(text)).region == "us-moon-2"


def test_settings_and_their_sections_are_frozen(write: Write) -> None:
    loaded = load(write(GOOD))
    with pytest.raises(ValidationError, match="frozen"):
        loaded.name = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        loaded.cluster.head_node.public = False  # type: ignore[misc]


def test_defaults_are_not_shared(write: Write) -> None:
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


def test_an_existing_vpc_is_taken(write: Write) -> None:
    network = load(write(changed("nat_addresses: 1", f"existing: {A_VPC}"))).network
    assert network.placement("usw2-az4") == ("vpc-01234567", "subnet-76543210")


def test_another_private_subnet_has_another_placement(write: Write) -> None:
    def placement(text: str) -> tuple[str, ...]:
        loaded = load(write(text))
        return loaded.network.placement(loaded.zone_id)

    changes = [("10.0.0.0/16", "10.0.0.0/17"), ("10.0.64.0/18", "10.0.64.0/19"), ("usw2-az4", "usw2-az1")]
    assert len({placement(text) for text in (GOOD, *(changed(*change) for change in changes))}) == 4


def test_the_preset_of_endpoints_is_written_out_once() -> None:
    network = NetworkSettings(interface_endpoints=["ssm", "parallelcluster", "logs"])
    assert network.endpoint_services == ["ssm", "logs", "cloudformation", "ec2"]


def test_the_cluster_is_named_like_the_deployment_unless_it_has_a_name(write: Write) -> None:
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


def test_a_generation_has_names_of_its_own(write: Write) -> None:
    first = load(write(changed("name: null", "name: null\n  generation: 1")))
    second = load(write(changed("name: null", "name: null\n  generation: 2")))
    named = load(write(changed("name: null", "name: mine\n  generation: 3")))

    assert first == load(write(GOOD))
    assert (first.cluster_spec.name, first.stack_name("cluster")) == ("trn1", "trn1-cluster")
    assert (second.cluster_spec.name, second.stack_name("cluster")) == ("trn1-2", "trn1-cluster-2")
    assert (named.cluster_spec.name, named.stack_name("cluster")) == ("mine-3", "trn1-cluster-3")
    assert {each.stack_name("storage") for each in (first, second, named)} == {"trn1-storage"}
    assert second.of_generation(1) == first


def test_node_names_are_counted_with_the_generation(write: Write) -> None:
    def text(name: str) -> str:
        return changed("name: null", f"name: {name}\n  generation: 10")

    assert load(write(text("a" * 30)))
    with pytest.raises(SettingsError, match=r"shorter names: .* has 64 characters, 63 are allowed"):
        load(write(text("a" * 31)))


def test_what_is_left_out_is_what_the_configuration_of_16_nodes_says(write: Write) -> None:
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


def test_flow_logs_can_be_off(write: Write) -> None:
    text = changed("nat_addresses: 1", "flow_log_retention_days: null")
    assert load(write(text)).network.flow_log_retention_days is None


def test_sections_that_are_left_out_take_part_in_the_rules_of_a_faulty_file(write: Write) -> None:
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


def test_the_whole_of_a_message(write: Write) -> None:
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
