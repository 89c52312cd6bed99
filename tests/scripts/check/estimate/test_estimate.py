"""`./ultracluster estimate`: its sums, against the domain and AWS's published figures."""

from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from config import rules
from config.settings import Settings, load
from scripts.check.estimate import products
from scripts.check.estimate.costs import Costs, Part, costs, paid_by_use, parts
from scripts.check.estimate.estimate import estimate
from scripts.check.estimate.prices import Prices
from scripts.check.estimate.products import instance, table_price
from scripts.check.estimate.quotas import STANDARD, Quota, Share, quotas
from scripts.check.estimate.sizes import GIB_PER_FILE_SERVER, fleet, others
from scripts.check.estimate.training import estimate_run, node_counts
from scripts.check.estimate.workloads import WORKLOADS, Basis, WorkloadError
from tests.configurations import SHIPPED
from ultracluster.domain import node_arguments
from ultracluster.domain.instance_types import TRAINIUM_TYPES

PROJECT = Path(__file__).parents[4]
TABLE = Prices("us-west-2", remark="a test")
each_environment = pytest.mark.parametrize("environment", SHIPPED)


@cache
def settings(environment: str = "trn1-16") -> Settings:
    return load(PROJECT / "config" / f"{environment}.yaml")


def changed(**sections: dict[str, Any]) -> Settings:
    """Return trn1-16 with some keys of some sections changed; `queue` and `nodes` are those of its only queue."""
    document = settings().model_dump()
    [queue] = document["cluster"]["queues"]
    places = {"queue": queue, "nodes": queue["compute_resources"][0], "file_system": document["storage"]["file_system"]}
    for section, keys in sections.items():
        places.get(section, document.get(section, document["cluster"])).update(keys)
    return Settings.model_validate(document)


# --- sizes ---


@each_environment
def test_sums_are_those_of_the_domain(environment: str) -> None:
    spec, at_max = settings(environment).cluster_spec, fleet(settings(environment).cluster_spec).at_max
    assert (at_max.nodes, at_max.interfaces, at_max.addresses) == (
        spec.max_nodes,
        spec.max_node_interfaces,
        spec.max_node_addresses,
    )
    assert at_max.vcpus == spec.max_trainium_vcpus


def test_an_ultracluster_is_what_aws_says() -> None:
    at_max = fleet(settings("ultracluster").cluster_spec).at_max
    assert (at_max.nodes, at_max.chips, at_max.neuron_cores) == (1875, 30_000, 60_000)
    assert (at_max.vcpus, at_max.memory_gib, at_max.efa_gbps) == (240_000, 960_000, 1_500_000)
    assert at_max.bf16_pflops == pytest.approx(5700)
    reserved = fleet(settings("reserved").cluster_spec)
    assert (reserved.at_min.nodes, reserved.at_max.nodes, reserved.largest_job("trn1.32xlarge")) == (4, 12, 8)


def test_nodes_without_efa_and_of_unknown_hardware() -> None:
    plain = fleet(changed(nodes={"efa": False}, queue={"placement_group": "none"}).cluster_spec).at_max
    assert (plain.efa_gbps, plain.interfaces, plain.addresses) == (0, 128, 128)
    unknown = changed(nodes={"instance_type": "p4d.24xlarge", "efa": None}, queue={"placement_group": "none"})
    assert fleet(unknown.cluster_spec).at_max.vcpus == 0
    assert any(remark.startswith("p4d.24xlarge: ") for remark in estimate("unknown", unknown, TABLE).remarks)


DESCRIBED = {
    "vcpus": 200,
    "memory_gib": 4096,
    "network_cards": 16,
    "efa_devices": 8,
    "neuron_devices": 16,
    "neuron_cores": 64,
    "usd_per_hour": 50.5,
}


def test_what_the_settings_say_of_a_type_is_counted_and_its_price_where_there_is_no_other() -> None:
    new = changed(nodes={"instance_type": "trn9.48xlarge", "type_facts": DESCRIBED})
    at_max, needed = fleet(new.cluster_spec).at_max, {each.code: each.needed for each in quotas(new)}
    assert (at_max.vcpus, at_max.chips, at_max.neuron_cores, at_max.memory_gib) == (3200, 256, 1024, 65_536)
    assert (needed["L-2C3B7624"], at_max.interfaces, at_max.addresses) == (3200, 16 * 9, 16)
    remarks = estimate("new", new, TABLE).remarks
    assert not any("sums" in each for each in remarks)
    asked = Prices("us-west-2", {"trn9.48xlarge": Decimal(40)}, date(2026, 11, 1))
    for prices, dollars, source in ((TABLE, "50.5", "settings"), (asked, "40", "Price List API")):
        [nodes] = [each for each in costs(new, prices).parts if each.product.name == "trn9.48xlarge"]
        assert nodes.price is not None
        assert (nodes.price.dollars, nodes.price.source) == (Decimal(dollars), source)


def test_a_budget_counts_nodes_by_the_price_that_the_settings_say() -> None:
    described = changed(nodes={"instance_type": "trn9.48xlarge", "type_facts": DESCRIBED})
    budget = {"monthly_usd": 9000, "emails": ["a@example.com"]}
    new = Settings.model_validate(described.model_dump() | {"budget": budget})
    told = node_arguments.head_node(new.cluster_spec, "/fsx", deployment="new", metrics=True, budget=new.budget)
    assert told["budget"] == "9000.0,none,trn9.48xlarge=50.5"


@pytest.mark.parametrize("prices", [TABLE, Prices("us-west-2", {}, date(2026, 11, 1))])
@pytest.mark.parametrize("name", TRAINIUM_TYPES)
def test_a_type_has_a_price_in_the_sums_or_a_remark_that_says_so(name: str, prices: Prices) -> None:
    of_type = changed(nodes={"instance_type": name, "efa": None}, network={"private_subnet_cidr": "10.0.64.0/18"})
    found = estimate("other", of_type, prices)
    is_left_out = any(name in each for each in found.costs.not_in_the_sums)
    assert is_left_out == (TRAINIUM_TYPES[name].usd_per_hour is None)
    assert is_left_out == any(each.startswith(f"{name}: ") and "price of it" in each for each in found.remarks)


WITH_LOGIN_NODES = {"login_nodes": [{"name": "a", "count": 3, "public": True}]}


def test_everything_that_can_be_switched_on_is_counted() -> None:
    edited = changed(
        network={"nat_addresses": 2, "interface_endpoints": ["ssm"]},
        cluster=WITH_LOGIN_NODES,
        file_system={"capacity_gib": 7200, "metadata_iops": 24_000},
        monitoring={"node_metrics": True},
    )
    public, private = others(edited, public=True), others(edited, public=False)
    assert (public.addresses, public.interfaces) == (2 + 1 + 3 + 1, 1 + 1 + 3 + 1)
    assert (private.addresses, private.interfaces) == (6 + 1, 6 + 1)
    assert GIB_PER_FILE_SERVER == rules._GIB_PER_FILE_SERVER_INTERFACE
    at_max = {part.name: part.units.at_max_count for part in parts(edited)}
    assert at_max["login nodes a, c6i.2xlarge"] == 3
    assert at_max["login nodes a, root volumes of 45 GiB"] == 135
    assert at_max["login nodes a, load balancer"] == 1
    assert at_max["interface endpoints"] == 1
    assert at_max["file system, metadata IOPS above the default"] == 18_000
    assert at_max["public IPv4 addresses"] == 1 + 3 + 1 + 2


# --- costs ---


def of(estimated: Costs, name: str) -> Any:
    [cost] = [cost for cost in estimated.parts if cost.name == name]
    return cost


@each_environment
def test_the_table_prices_every_part_that_is_not_prepaid(environment: str) -> None:
    estimated = costs(settings(environment), TABLE)
    assert all((cost.price is None) == cost.prepaid for cost in estimated.parts)
    assert all(each.price for each in estimated.by_use)


def test_what_is_not_on_demand_says_what_its_price_means() -> None:
    estimated = costs(settings("reserved"), TABLE)
    assert estimated.not_in_the_sums == ("block/trn1-32xl, trn1.32xlarge",)
    assert of(estimated, "block/trn1-32xl, root volumes of 200 GiB").at_min_count.hour > 0
    assert "used or not" in of(estimated, "odcr/trn1-32xl, trn1.32xlarge").remark
    assert "at most" in parts(changed(queue={"capacity_type": "SPOT"}))[0].remark


def test_volumes_that_are_made_cost_and_count() -> None:
    """Those of gp3 by their size; what is not looked up is not in the sums, and says so."""
    made = [{"size_gib": 500, "iops": 6000}, {"type": "io2", "size_gib": 100}, {}, {"volume_id": "vol-01234567"}]
    storage = [{"name": f"v{index}", "mount_dir": f"/v{index}", "ebs": ebs} for index, ebs in enumerate(made)]
    with_volumes = changed(cluster={"shared_storage": storage})
    found = {part.name: part for part in parts(with_volumes) if part.name.startswith("shared storage")}
    assert [(each.units.at_max_count, each.product) for each in found.values()] == [
        (500, products.GP3),
        (100, products.ebs("io2")),
        (40, products.GP3),
    ]
    assert found["shared storage v0, EBS volume of 500 GiB"].remark == "without its iops and throughput"
    assert "shared storage v1, EBS volume of 100 GiB" in costs(with_volumes, TABLE).not_in_the_sums
    before, after = ([each for each in quotas(one) if each.code == "L-7A658B76"] for one in (settings(), with_volumes))
    assert after[0].fixed - before[0].fixed == pytest.approx(540 / 1024)


def test_types_that_are_not_priced_are_said() -> None:
    remarks = estimate("x", changed(nodes={"alternative_types": ["trn1n.32xlarge"]}), TABLE, None).remarks
    assert any("alternative_types may cost more" in each for each in remarks)


def units(part: Part) -> tuple[int, int]:
    return part.units.at_min_count, part.units.at_max_count


def test_monitoring_is_paid_by_running_node_and_by_queue() -> None:
    two_queues, quiet = settings("two-queues").model_dump(), settings().model_dump()
    two_queues["cluster"]["monitoring"] = {"detailed_monitoring": True}
    quiet["monitoring"] = {"node_metrics": False, "dashboard": False}
    by_name = {part.name: part for part in parts(Settings.model_validate(two_queues))}
    of_nodes, detailed = by_name["metrics of compute nodes"], by_name["metrics of detailed monitoring"]
    assert (*units(of_nodes), of_nodes.of_nodes) == (0, 16 * 8, True)
    assert units(detailed) == (7, 17 * 7)
    assert by_name["requests of compute nodes that send metrics"].units.at_max_count == 16
    assert by_name["metrics of queues and head node"].units.at_min_count == 2 * (8 + 5) + 5 + 2
    without = {part.name: part for part in parts(Settings.model_validate(quiet))}
    assert not [name for name in without if "metrics" in name]
    assert units(without["alarms of nodes, file system and NAT gateway"]) == (2, 2)
    assert "dashboard of nodes, file system and NAT gateway" not in without


def test_an_existing_vpc_costs_nothing_here() -> None:
    existing = {"vpc_id": "vpc-0123456789abcdef0"}
    existing |= {f"{kind}_subnet_id": f"subnet-{digit * 17}" for kind, digit in (("public", "1"), ("private", "2"))}
    edited = changed(network={"existing": existing})
    names = {part.name for part in parts(edited)}
    assert "NAT gateway" not in names
    assert products.NAT_DATA not in paid_by_use(edited)
    assert products.FLOW_LOG_INGESTION not in paid_by_use(edited)
    assert {quota.code for quota in quotas(edited)}.isdisjoint({"L-0263D0A3", "L-FE5A380F", "L-F678F1CE"})
    assert any("existing VPC" in remark for remark in estimate("edited", edited, TABLE).remarks)


def test_a_region_without_prices_has_no_sums() -> None:
    estimated = costs(settings(), Prices("ap-southeast-4"))
    assert estimated.at_max_count.hour == 0
    assert len(estimated.not_in_the_sums) == len(estimated.parts)
    [run] = estimate_run(settings(), Prices("ap-southeast-4"), WORKLOADS["bert-large-phase1"], counts=[1]).estimates
    assert run.hours > 0
    assert (run.dollars_of_nodes, run.dollars_of_everything) == (None, None)


@pytest.mark.parametrize(
    ("instance_type", "price"),
    [
        ("c6i.4xlarge", "0.68"),
        ("t3.large", "0.0832"),
        ("trn1.2xlarge", "1.34375"),
        ("c6gn.xlarge", None),
    ],
)
def test_prices_of_the_table_are_those_that_aws_published(instance_type: str, price: str | None) -> None:
    in_table = table_price(instance(instance_type))
    assert (in_table and in_table[0]) == (price and Decimal(price))


# --- quotas ---


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


def needed(edited: Settings) -> dict[str, int]:
    return {quota.code: quota.needed for quota in quotas(edited)}


def test_each_kind_of_capacity_and_file_system_has_quotas_of_its_own() -> None:
    reserved = needed(settings("reserved"))
    assert (reserved["L-2E30FD7D"], reserved[""], reserved["L-2C3B7624"]) == (4 * 128, 4, 8 * 128)
    trn2 = settings("reserved").model_dump()
    trn2["cluster"]["queues"][1]["compute_resources"][0]["instance_type"] = "trn2.48xlarge"
    assert needed(Settings.model_validate(trn2)).items() >= {"L-64569A79": 4 * 192, "": 4}.items()
    spot = needed(changed(queue={"capacity_type": "SPOT"}))
    assert spot["L-6B0D517C"] == 2048
    assert "L-2C3B7624" not in spot
    standard = {"instance_type": "c6i.2xlarge", "efa": None}
    plain = needed(changed(nodes=standard, queue={"placement_group": "none"}, cluster=WITH_LOGIN_NODES))
    assert plain["L-1216C47A"] == 16 * 8 + 16 + 3 * 8
    plain_spot = needed(changed(nodes=standard, queue={"placement_group": "none", "capacity_type": "SPOT"}))
    assert plain_spot["L-34B43A08"] == 16 * 8
    persistent = needed(changed(file_system={"deployment_type": "PERSISTENT_1", "throughput_mbps_per_tib": 100}))
    assert persistent.items() >= {"L-C8640C82": 4800, "L-9AFA1F09": 1}.items()
    assert "L-8F1B9C74" not in persistent


def test_the_standard_quotas_go_by_the_whole_family() -> None:
    standard = ("c6i.4xlarge", "a1.large", "t3.micro", "im4gn.large", "is4gen.large", "i4i.large")
    others = ("trn1.32xlarge", "inf2.xlarge", "hpc7a.96xlarge", "mac2.metal", "vt1.3xlarge")
    assert [name for name in (*standard, *others) if STANDARD.match(name)] == [*standard]


def test_nodes_within_a_limit() -> None:
    quota = Quota("s", "c", "n", "u", None, (Share(8, 1), Share(8, 8.125)), fixed=106)
    assert (quota.amount, quota.needed, quota.nodes) == (179, 179, 16)
    assert [quota.nodes_within(limit) for limit in (105, 107, 115, 123, 178, 179)] == [0, 1, 8, 9, 15, 16]


# --- workloads ---


@pytest.mark.parametrize(
    ("nodes", "basis", "rate"),
    [
        (16, Basis.MEASURED, 57_407.9),
        (4, Basis.INTERPOLATED, (3826.6 * 57_407.9) ** 0.5),
        (256, Basis.EXTRAPOLATED, 57_407.9 * 49_846 / 3365),
    ],
)
def test_throughput_between_and_beyond_the_published_rows(nodes: int, basis: Basis, rate: float) -> None:
    throughput, actual = WORKLOADS["bert-large-phase1"].throughput(nodes)
    assert throughput == pytest.approx(rate)
    assert actual is basis


def test_time_and_cost_to_train_bert() -> None:
    run = estimate_run(settings(), TABLE, WORKLOADS["bert-large-phase1"], counts=[16, 1, 16])
    one, sixteen = run.estimates
    assert (one.nodes, sixteen.nodes) == (1, 16)
    assert one.hours == pytest.approx(460_800_000 / 3826.6 / 3600)  # 33.5
    assert one.steps == 28_125
    node = Decimal("21.5") + 200 * Decimal("0.08") / 730
    assert one.dollars_of_nodes == pytest.approx(node * Decimal(one.hours))
    base = costs(settings(), TABLE).hourly_without_nodes
    assert sixteen.dollars_of_everything == pytest.approx(Decimal(sixteen.hours) * (16 * node + base))
    assert sixteen.fits
    [too_many] = estimate_run(settings("two-queues"), TABLE, WORKLOADS["bert-large-phase1"], counts=[16]).estimates
    assert not too_many.fits


def test_what_a_workload_cannot_run_as() -> None:
    llama, bert = WORKLOADS["llama-2-70b"], WORKLOADS["bert-large-phase1"]
    with pytest.raises(WorkloadError, match="multiple of 8 nodes"):
        estimate_run(settings(), TABLE, llama, counts=[12])
    with pytest.raises(WorkloadError, match="fixed length"):
        estimate_run(settings(), TABLE, bert, tokens=10**9)
    with pytest.raises(WorkloadError, match=r"trn1\.32xlarge"):
        estimate_run(changed(nodes={"instance_type": "trn1n.32xlarge"}), TABLE, bert)


def test_length_and_numbers_of_nodes() -> None:
    llama, bert = WORKLOADS["llama-2-70b"], WORKLOADS["bert-large-phase1"]
    assert (llama.length(None) * 4096, llama.length(4097)) == (2_000_000_000_000, 2)
    assert [node_counts(llama, largest) for largest in (20, 2)] == [[8, 16, 32], [32]]
    assert node_counts(bert, 12) == [1, 2, 4, 8, 12, 16]
