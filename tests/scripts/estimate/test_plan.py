"""`make estimate`: its sums, against the domain, the stacks' templates and AWS's published figures."""

import json
import re
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from config import rules
from config.settings import Settings, load
from scripts.estimate import products
from scripts.estimate.costs import Costs, costs, paid_by_use, parts
from scripts.estimate.plan import plan, plan_run
from scripts.estimate.prices import Prices
from scripts.estimate.products import SOURCES, TABLE_REGIONS, instance, table_price
from scripts.estimate.quotas import Quota, Share, is_standard, quotas
from scripts.estimate.sizes import GIB_PER_FILE_SERVER, file_system, fleet, others, subnets
from scripts.estimate.workloads import WORKLOADS, Basis, WorkloadError, node_counts
from tests.configurations import SHIPPED
from toolchain.golden import read_golden

PROJECT = Path(__file__).parents[3]
TABLE = Prices("us-west-2", remark="a test")
each_environment = pytest.mark.parametrize("environment", SHIPPED)
each_workload = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)


@cache
def raw(environment: str = "trn1-16") -> str:
    return json.dumps(yaml.safe_load((PROJECT / "config" / f"{environment}.yaml").read_text(encoding="utf-8")))


@cache
def settings(environment: str = "trn1-16") -> Settings:
    return load(PROJECT / "config" / f"{environment}.yaml")


def changed(**sections: dict[str, Any]) -> Settings:
    """Return trn1-16 with some keys of some sections changed; `queue` and `nodes` are those of its only queue."""
    found = json.loads(raw())
    [queue] = found["cluster"]["queues"]
    places = {"queue": queue, "nodes": queue["compute_resources"][0], "file_system": found["storage"]["file_system"]}
    for section, keys in sections.items():
        places.get(section, found.get(section, found["cluster"])).update(keys)
    return Settings.model_validate(found)


# --- sizes ---


@each_environment
def test_sums_are_those_of_the_domain_and_of_the_cluster_stack(environment: str) -> None:
    spec, at_max = settings(environment).cluster_spec, fleet(settings(environment).cluster_spec).at_max
    assert (at_max.nodes, at_max.interfaces, at_max.addresses) == (
        spec.max_nodes,
        spec.max_node_interfaces,
        spec.max_node_addresses,
    )
    assert at_max.vcpus == spec.max_trainium_vcpus
    template = read_golden(PROJECT / "tests/snapshots" / environment)[f"{environment}-cluster"]
    summary = "".join(map(str, template["Outputs"]["Summary"]["Value"]["Fn::Join"][1]))
    told = {key: int(value) for key, value in re.findall(r'"(max_\w+)":(\d+)', summary)}
    assert told == {
        "max_nodes": at_max.nodes,
        "max_trainium_vcpus": at_max.vcpus,
        "max_node_interfaces": at_max.interfaces,
    }


def test_an_ultracluster_is_what_aws_says() -> None:
    at_max = fleet(settings("ultracluster").cluster_spec).at_max
    assert (at_max.nodes, at_max.chips, at_max.neuron_cores) == (1875, 30_000, 60_000)
    assert (at_max.vcpus, at_max.memory_gib, at_max.efa_gbps) == (240_000, 960_000, 1_500_000)
    assert at_max.bf16_pflops == pytest.approx(5700)


def test_min_count_counts_what_always_runs() -> None:
    nodes = fleet(settings("reserved").cluster_spec)
    assert (nodes.at_min.nodes, nodes.at_max.nodes) == (4, 12)
    assert nodes.largest_job("trn1.32xlarge") == 8
    assert nodes.largest_job("trn1n.32xlarge") == 0


def test_nodes_without_efa_have_no_efa_bandwidth() -> None:
    at_max = fleet(changed(nodes={"efa": False}, queue={"placement_group": "none"}).cluster_spec).at_max
    assert (at_max.efa_gbps, at_max.interfaces, at_max.addresses) == (0, 128, 128)


def test_types_of_unknown_hardware_are_told() -> None:
    found = changed(nodes={"instance_type": "p4d.24xlarge", "efa": None}, queue={"placement_group": "none"})
    assert fleet(found.cluster_spec).at_max.vcpus == 0
    assert any(remark.startswith("p4d.24xlarge: its vCPUs") for remark in plan(found, TABLE).remarks)


@each_environment
def test_addresses_fit_as_the_rules_of_the_settings_say(environment: str) -> None:
    public, private = subnets(settings(environment), fleet(settings(environment).cluster_spec))
    assert public.left_at_max > 0
    assert private.at_max - private.at_min == (
        fleet(settings(environment).cluster_spec).at_max.addresses
        - fleet(settings(environment).cluster_spec).at_min.addresses
    )
    assert private.left_at_max > 0


def test_addresses_of_everything_else() -> None:
    pools = [{"name": "a", "count": 3, "public": True}, {"name": "b", "count": 2}]
    found = changed(
        network={"nat_addresses": 2, "interface_endpoints": ["parallelcluster", "ssm"]},
        cluster={"login_nodes": pools},
        file_system={"capacity_gib": 7200},
    )
    public, private = others(found, public=True), others(found, public=False)
    assert (public.addresses, public.interfaces) == (2 + 1 + 3 + 1, 1 + 1 + 3 + 1)
    assert (private.addresses, private.interfaces) == (6 + 4 + 2 + 1, 6 + 4 + 2 + 1)


def test_file_servers_are_counted_as_the_rules_count_them() -> None:
    assert GIB_PER_FILE_SERVER == rules._GIB_PER_FILE_SERVER_INTERFACE


@pytest.mark.parametrize(
    ("environment", "mbps", "iops", "paid"),
    [("trn1-16", 1200, 6000, 0), ("dev", 240, None, 0), ("ultracluster", 96_000, 96_000, 48_000)],
)
def test_file_system(environment: str, mbps: float, iops: int | None, paid: int) -> None:
    found = file_system(settings(environment).storage.file_system)
    assert (found.throughput_mbps, found.metadata_iops, found.paid_metadata_iops) == (mbps, iops, paid)


# --- costs ---


def of(found: Costs, name: str) -> Any:
    [cost] = [cost for cost in found.standing if cost.part.name == name]
    return cost


def test_costs_are_those_that_the_readme_tells() -> None:
    found = costs(settings(), TABLE)
    assert of(found, "trn1/trn1-32xl, trn1.32xlarge").hourly_max * 24 == 8256
    assert round(of(found, "file system, PERSISTENT_2").hourly_min * 24) == 33
    head = of(found, "head node, c6i.4xlarge").hourly_min + of(found, "head node, root volume of 200 GiB").hourly_min
    assert round(head * 24) == 17
    addresses = of(found, "public IPv4 addresses")
    assert round((of(found, "NAT gateway").hourly_min + addresses.hourly_min) * 24, 1) == Decimal("1.3")
    assert found.unpriced == []


@each_environment
def test_sums_are_sums_of_the_parts(environment: str) -> None:
    found = costs(settings(environment), TABLE)
    assert found.hourly_max == sum(cost.hourly_max or 0 for cost in found.standing)
    assert found.hourly_min == sum(cost.hourly_min or 0 for cost in found.standing)
    nodes = sum(cost.hourly_max or 0 for cost in found.standing if cost.part.of_nodes)
    assert found.hourly_without_nodes == pytest.approx(found.hourly_max - nodes)


@each_environment
def test_the_table_prices_every_part_that_is_not_prepaid(environment: str) -> None:
    found = costs(settings(environment), TABLE)
    assert [cost.part.name for cost in found.standing if cost.price is None] == [
        cost.part.name for cost in found.standing if cost.part.prepaid
    ]
    assert all(price for _, price in found.by_use)


def test_a_capacity_block_is_paid_before_and_in_no_sum() -> None:
    found = costs(settings("reserved"), TABLE)
    assert found.unpriced == ["block/trn1-32xl, trn1.32xlarge"]
    assert of(found, "block/trn1-32xl, root volumes of 200 GiB").hourly_min > 0
    assert "used or not" in of(found, "odcr/trn1-32xl, trn1.32xlarge").part.remark


def test_spot_is_told_to_be_a_ceiling() -> None:
    assert "at most" in parts(changed(queue={"capacity_type": "SPOT"}))[0].remark


def test_everything_that_can_be_switched_on_is_paid() -> None:
    pools = [{"name": "a", "count": 3, "public": True}]
    found = changed(
        network={"nat_addresses": 2, "interface_endpoints": ["ssm"]},
        cluster={"login_nodes": pools},
        file_system={"metadata_iops": 12_000},
        monitoring={},
    )
    units = {part.name: part.at_max for part in parts(found)}
    assert units["login nodes a, c6i.2xlarge"] == 3
    assert units["login nodes a, root volumes of 45 GiB"] == 135
    assert units["login nodes a, load balancer"] == 1
    assert units["interface endpoints"] == 1
    assert units["file system, metadata IOPS above the default"] == 6000
    assert units["public IPv4 addresses"] == 1 + 3 + 1 + 2


def test_detailed_monitoring_is_paid_by_instance() -> None:
    found = json.loads(raw())
    found["cluster"]["monitoring"]["detailed_monitoring"] = True
    [part] = [part for part in parts(Settings.model_validate(found)) if part.name == "metrics of detailed monitoring"]
    assert (part.at_min, part.at_max) == (7, 17 * 7)
    assert part.product == products.METRIC


def test_metrics_of_nodes_are_paid_by_running_node_and_by_queue() -> None:
    found = {part.name: part for part in parts(settings("two-queues"))}
    of_nodes = found["metrics of compute nodes"]
    assert (of_nodes.at_min, of_nodes.at_max, of_nodes.of_nodes) == (0, 16 * 8, True)
    assert found["requests of compute nodes that send metrics"].at_max == 16
    assert found["metrics of queues and head node"].at_min == 2 * (8 + 2) + 2 + 1


def test_without_metrics_of_nodes_little_of_the_monitoring_is_paid() -> None:
    raw_settings = json.loads(raw())
    raw_settings["monitoring"] = {"node_metrics": False, "dashboard": False}
    found = {part.name: part.at_max for part in parts(Settings.model_validate(raw_settings))}
    assert not [name for name in found if "metrics" in name]
    assert found["alarms of nodes, file system and NAT gateway"] == 2
    assert found["key of alarm notifications"] == 1
    assert "dashboard of nodes, file system and NAT gateway" not in found


def test_an_existing_vpc_costs_nothing_here() -> None:
    existing = {"vpc_id": "vpc-0123456789abcdef0"}
    existing |= {f"{kind}_subnet_id": f"subnet-{digit * 17}" for kind, digit in (("public", "1"), ("private", "2"))}
    found = changed(network={"existing": existing})
    names = {part.name for part in parts(found)}
    assert "NAT gateway" not in names
    assert products.NAT_DATA not in paid_by_use(found)
    assert products.FLOW_LOG_INGESTION not in paid_by_use(found)
    assert {quota.code for quota in quotas(found)}.isdisjoint({"L-0263D0A3", "L-FE5A380F", "L-F678F1CE"})
    assert any("exists already" in remark for remark in plan(found, TABLE).remarks)


def test_a_region_without_prices_says_so_instead_of_guessing() -> None:
    found = costs(settings(), Prices("ap-southeast-4"))
    assert found.hourly_max == 0
    assert len(found.unpriced) == len(found.standing)


def test_the_price_list_goes_before_the_table() -> None:
    listed = Prices("us-west-2", {"trn1.32xlarge": Decimal("20")}, date(2026, 11, 20))
    price = listed.of(instance("trn1.32xlarge"))
    assert price is not None
    assert (price.dollars, price.source, price.date) == (Decimal(20), "Price List API", "2026-11-20")
    fallback = listed.of(products.NAT_GATEWAY)
    assert fallback is not None
    assert (fallback.source, fallback.date) == ("table", "2026-11-21")


@pytest.mark.parametrize(
    ("instance_type", "price"),
    [
        ("c6i.xlarge", "0.17"),
        ("c6i.4xlarge", "0.68"),
        ("m6i.16xlarge", "3.072"),
        ("r7i.large", "0.1323"),
        ("c7a.2xlarge", "0.41056"),
        ("t3.large", "0.0832"),
        ("t3a.2xlarge", "0.3008"),
        ("trn1.2xlarge", "1.34375"),
    ],
)
def test_prices_of_the_table_are_those_that_aws_published(instance_type: str, price: str) -> None:
    found = table_price(instance(instance_type))
    assert found is not None
    assert found[0] == Decimal(price)
    assert found[1] in SOURCES.values()


@pytest.mark.parametrize("instance_type", ["trn2.48xlarge", "c6gn.xlarge", "t2.large", "x"])
def test_the_table_does_not_guess(instance_type: str) -> None:
    assert table_price(instance(instance_type)) is None


def test_sources_of_the_table_have_dates() -> None:
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\d", source.date) and source.text for source in SOURCES.values())
    assert "us-west-2" in TABLE_REGIONS


# --- quotas ---


@each_environment
def test_quotas_of_nodes_are_those_of_the_domain(environment: str) -> None:
    found = {quota.name: quota.needed for quota in quotas(settings(environment))}
    blocks = found.get("Capacity Blocks, instances of all together", 0) * 128
    trainium = found.get("Running On-Demand Trn instances", 0) + found.get("All Trn Spot Instance Requests", 0)
    assert trainium + blocks == settings(environment).cluster_spec.max_trainium_vcpus
    assert found["Network interfaces per Region"] >= settings(environment).cluster_spec.max_node_interfaces


def test_an_ultracluster_needs_more_than_a_new_account_has() -> None:
    asked = {quota.code: quota.needed for quota in quotas(settings("ultracluster")) if quota.to_ask_for}
    assert asked == {
        "L-2C3B7624": 240_000,
        "L-1216C47A": 64,
        "L-DF5E4CA3": 16_875 + 80 + 2 + 1,  # the last is EFS's
        "L-0263D0A3": 8,
        "L-5F53652F": 8,
        "L-7A658B76": 367,  # 1,876 x 200 GiB
    }


def test_capacity_blocks_have_quotas_of_their_own() -> None:
    found = {quota.name: (quota.code, quota.needed, quota.to_ask_for) for quota in quotas(settings("reserved"))}
    assert found["Concurrent Trn1 Capacity Blocks per account"] == ("L-2E30FD7D", 4 * 128, True)
    assert found["Capacity Blocks, instances of all together"] == ("", 4, False)
    assert found["Running On-Demand Trn instances"] == ("L-2C3B7624", 8 * 128, True)
    second = json.loads(raw("reserved"))
    second["cluster"]["queues"][1]["compute_resources"][0]["instance_type"] = "trn2.48xlarge"
    needed = {quota.code: quota.needed for quota in quotas(Settings.model_validate(second))}
    assert needed["L-64569A79"] == 4 * 192
    assert "L-2E30FD7D" not in needed


def test_spot_and_plain_nodes_have_quotas_of_their_own() -> None:
    spot = changed(queue={"capacity_type": "SPOT"})
    assert {quota.code: quota.needed for quota in quotas(spot)}["L-6B0D517C"] == 2048
    assert "L-2C3B7624" not in {quota.code for quota in quotas(spot)}
    plain = changed(nodes={"instance_type": "c6i.2xlarge", "efa": None}, queue={"placement_group": "none"})
    assert {quota.code: quota.needed for quota in quotas(plain)}["L-1216C47A"] == 16 * 8 + 16
    plain_spot = changed(
        nodes={"instance_type": "c6i.2xlarge", "efa": None}, queue={"placement_group": "none", "capacity_type": "SPOT"}
    )
    assert {quota.code: quota.needed for quota in quotas(plain_spot)}["L-34B43A08"] == 16 * 8


@pytest.mark.parametrize(
    ("keys", "storage", "number"),
    [
        (
            {"deployment_type": "SCRATCH_2", "throughput_mbps_per_tib": None, "backup_retention_days": 0},
            "L-AD2FC696",
            "L-C48231E5",
        ),
        ({"deployment_type": "PERSISTENT_1", "throughput_mbps_per_tib": 100}, "L-C8640C82", "L-9AFA1F09"),
        ({}, "L-8F1B9C74", "L-FD6F2F22"),
    ],
)
def test_each_type_of_file_system_has_quotas_of_its_own(keys: dict[str, Any], storage: str, number: str) -> None:
    found = {quota.code: quota.needed for quota in quotas(changed(file_system=keys)) if quota.service == "fsx"}
    assert found == {storage: 4800, number: 1}


@pytest.mark.parametrize(
    ("instance_type", "standard"),
    [
        *((name, True) for name in ("c6i.4xlarge", "a1.large", "t3.micro", "im4gn.large", "is4gen.large", "i4i.large")),
        *((name, False) for name in ("trn1.32xlarge", "inf2.xlarge", "hpc7a.96xlarge", "mac2.metal", "dl1.24xlarge")),
        *((name, False) for name in ("g5.xlarge", "p4d.24xlarge", "x2idn.metal", "u-6tb1.56xlarge", "vt1.3xlarge")),
    ],
)
def test_families_of_the_standard_quotas_are_told_by_all_of_their_name(instance_type: str, standard: bool) -> None:
    assert is_standard(instance_type) is standard


@pytest.mark.parametrize(
    ("limit", "nodes"), [(0, 0), (105, 0), (106, 0), (107, 1), (114, 8), (115, 8), (123, 9), (178, 15), (179, 16)]
)
def test_nodes_within_a_limit_are_filled_up_in_order(limit: float, nodes: int) -> None:
    quota = Quota("s", "c", "n", "u", None, (Share(8, 1), Share(8, 8.125)), fixed=106)
    assert (quota.amount, quota.needed, quota.nodes) == (179, 179, 16)
    assert quota.nodes_within(limit) == nodes


# --- workloads ---


@each_workload
def test_measured_rows_are_given_as_they_were_published(workload: Any) -> None:
    for row in workload.rows:
        assert workload.throughput(row.nodes) == (row.sequences_per_second, Basis.MEASURED)
        assert workload.batch(row.nodes) == row.batch


@each_workload
def test_more_nodes_are_faster_and_none_is_better_than_linear(workload: Any) -> None:
    counts = range(workload.nodes_per_replica, 129, workload.nodes_per_replica)
    rates = [workload.throughput(nodes)[0] for nodes in counts]
    assert rates == sorted(rates)
    per_node = [rate / nodes for rate, nodes in zip(rates, counts, strict=True)]
    assert per_node == sorted(per_node, reverse=True)
    assert 0.9 < workload.efficiency < 1


def test_between_two_rows_it_is_interpolated() -> None:
    rate, basis = WORKLOADS["bert-large-phase1"].throughput(4)
    assert basis is Basis.INTERPOLATED
    assert rate == pytest.approx((3826.6 * 57_407.9) ** 0.5)


def test_beyond_the_rows_it_scales_with_the_published_efficiency() -> None:
    rate, basis = WORKLOADS["bert-large-phase1"].throughput(256)
    assert basis is Basis.EXTRAPOLATED
    assert rate == pytest.approx(57_407.9 * 49_846 / 3365)
    rate, basis = WORKLOADS["llama-2-7b"].throughput(1)
    assert basis is Basis.EXTRAPOLATED
    assert rate == pytest.approx(101.3 * 8.23 / 122.13)


def test_time_and_cost_to_train_bert() -> None:
    run = plan_run(settings(), TABLE, WORKLOADS["bert-large-phase1"], counts=[16, 1, 16])
    one, sixteen = run.estimates
    assert (one.nodes, sixteen.nodes) == (1, 16)
    assert one.hours == pytest.approx(460_800_000 / 3826.6 / 3600)  # 33.5
    assert one.steps == 28_125
    node = Decimal("21.5") + 200 * Decimal("0.08") / 730
    assert one.node_dollars == pytest.approx(node * Decimal(one.hours))
    base = costs(settings(), TABLE).hourly_without_nodes
    assert sixteen.all_dollars == pytest.approx(Decimal(sixteen.hours) * (16 * node + base))
    assert sixteen.fits


def test_length_of_a_run() -> None:
    llama, bert = WORKLOADS["llama-2-7b"], WORKLOADS["bert-large-phase2"]
    assert llama.length(None) * 4096 == 2_000_000_000_000
    assert llama.length(4097) == 2
    assert bert.length(None) == 1563 * 32_768
    with pytest.raises(WorkloadError, match="fixed length"):
        bert.length(10**9)


def test_a_model_is_spread_over_whole_copies() -> None:
    with pytest.raises(WorkloadError, match="multiple of 8 nodes"):
        plan_run(settings(), TABLE, WORKLOADS["llama-2-70b"], counts=[12])
    assert node_counts(WORKLOADS["llama-2-70b"], 20) == [8, 16, 32]
    assert node_counts(WORKLOADS["llama-2-70b"], 2) == [32]
    assert node_counts(WORKLOADS["bert-large-phase1"], 12) == [1, 2, 4, 8, 12, 16]


def test_runs_that_do_not_fit_are_marked() -> None:
    [run] = plan_run(settings("two-queues"), TABLE, WORKLOADS["bert-large-phase1"], counts=[16]).estimates
    assert not run.fits


def test_without_a_price_there_is_time_but_no_cost() -> None:
    [run] = plan_run(settings(), Prices("ap-southeast-4"), WORKLOADS["bert-large-phase1"], counts=[1]).estimates
    assert run.hours > 0
    assert (run.node_dollars, run.all_dollars) == (None, None)


def test_other_instance_types_were_not_measured() -> None:
    with pytest.raises(WorkloadError, match=r"trn1\.32xlarge"):
        plan_run(changed(nodes={"instance_type": "trn1n.32xlarge"}), TABLE, WORKLOADS["bert-large-phase1"])
