"""An estimate, and its tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Literal

from scripts.check.estimate.costs import Costs
from scripts.check.estimate.products import HOURS_PER_MONTH, SOURCES, Source, SourceName, table_dates
from scripts.check.estimate.quotas import Quota
from scripts.check.estimate.sizes import FileSystemSizes, NodeSizes, Sizes, Subnet
from scripts.check.estimate.training import TrainingRun
from scripts.check.estimate.workloads import INSTANCE_TYPE, WORKLOADS
from scripts.core.document import DeploymentName, Document, Result
from scripts.core.figures import NONE, counted, hours, number, usd
from scripts.core.report import Block, Column, Gap, Line, Table, Toned

if TYPE_CHECKING:
    from scripts.check.estimate.costs import Amounts
    from scripts.check.estimate.prices import Price

_EXAMPLE_GB = 100
_TABLE_MARK = "(t)"
_LARGE_BATCH_MARK = "!"


class PriceSources(Document):
    """Where the prices are from.

    Attributes:
        price_list_day: The day on which the Price List API answered; None: all prices are those of the table.
        remark: Why the Price List API was not asked, or that its answer is a kept one; empty when neither.
    """

    currency: Literal["USD"] = "USD"
    hours_per_month: int = HOURS_PER_MONTH
    price_list_day: date | None
    remark: str
    table_sources: Mapping[SourceName, Source] = SOURCES


class Estimate(Result):
    """What a deployment is, needs and costs."""

    deployment: DeploymentName
    region: str
    zone_id: str
    nodes: tuple[NodeSizes, ...]
    at_min_count: Sizes
    at_max_count: Sizes
    subnets: tuple[Subnet, ...]
    file_system: FileSystemSizes
    prices: PriceSources
    costs: Costs
    quotas: tuple[Quota, ...]
    remarks: tuple[str, ...]
    run: TrainingRun | None

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        yield Line([Toned(f"Estimate of {self.deployment}", "strong"), f", {self.region}, {self.zone_id}"])
        for each in tables(self):
            yield Gap()
            yield each
        yield from (Line(f"Note: {remark}") for remark in self.remarks)


def tables(estimate: Estimate) -> list[Table]:
    """Return all tables of an estimate."""
    makers = (_nodes, _sizes, _addresses, _file_system, _costs, _by_use, _quotas)
    return [*(make(estimate) for make in makers), *([_run(estimate.run)] if estimate.run else [])]


def _price_sentence(estimate: Estimate) -> str:
    """Return where the prices are from, in one sentence."""
    prices = estimate.prices
    if day := prices.price_list_day:
        kept = f" ({prices.remark})" if prices.remark else ""
        listed = f"AWS Price List API, {estimate.region}, {day.isoformat()}{kept}"
        return f"Prices: {listed}; {_TABLE_MARK} marks those of the dated table."
    return f"Prices: the dated table, {table_dates()} ({prices.remark}). Sources: docs/reference/prices.md."


def _nodes(estimate: Estimate) -> Table:
    rows = [
        (
            kind.label,
            kind.instance_type,
            kind.capacity_type + (", reserved" if kind.reserved else ""),
            number(kind.min_count),
            number(kind.max_count),
        )
        for kind in estimate.nodes
    ]
    columns = [Column("Queue/compute resource", False), Column("Instance type", False), Column("Capacity", False)]
    return Table("Nodes", [*columns, Column("MinCount"), Column("MaxCount")], rows)


def _sizes(estimate: Estimate) -> Table:
    each = {kind.instance_type: kind.per_node for kind in estimate.nodes}
    columns = [*each.values(), estimate.at_min_count, estimate.at_max_count]

    def row(label: str, field: str) -> tuple[str, ...]:
        return (label, *(number(getattr(sizes, field)) for sizes in columns))

    titles = [f"one {name}" for name in each] + ["all at MinCount", "all at MaxCount"]
    labels = {
        "nodes": "nodes",
        "chips": "Trainium chips",
        "neuron_cores": "NeuronCores",
        "bf16_pflops": "dense BF16, PFLOPS",
        "vcpus": "vCPUs",
        "memory_gib": "memory, GiB",
        "accelerator_memory_gib": "memory of the chips, GiB",
        "efa_gbps": "EFA bandwidth, Gbps",
        "nvme_tb": "local NVMe, TB",
        "interfaces": "network interfaces",
        "addresses": "IPv4 addresses",
    }
    rows = [row(label, field) for field, label in labels.items()]
    return Table("Sizes", [Column("", False), *map(Column, titles)], rows)


def _addresses(estimate: Estimate) -> Table:
    rows = [
        (subnet.name, subnet.cidr, *map(number, (subnet.usable, subnet.at_min, subnet.at_max, subnet.left_at_max)))
        for subnet in estimate.subnets
    ]
    titles = ("usable", "used at MinCount", "used at MaxCount", "left at MaxCount")
    return Table("Addresses", [Column("Subnet", False), Column("Block", False), *map(Column, titles)], rows)


def _file_system(estimate: Estimate) -> Table:
    system = estimate.file_system
    row = (
        system.deployment_type,
        number(system.capacity_gib),
        number(system.throughput_mbps),
        number(system.throughput_mbps_per_node_at_max) if estimate.at_max_count.nodes else NONE,
        NONE if system.metadata_iops is None else number(system.metadata_iops),
    )
    titles = ("capacity, GiB", "baseline, MB/s", "per node at MaxCount, MB/s", "metadata IOPS")
    return Table("File system", [Column("FSx for Lustre", False), *map(Column, titles)], [row])


def _costs(estimate: Estimate) -> Table:
    rows = [
        (
            cost.name,
            "paid before" if cost.prepaid else _unit_price(estimate, cost.price),
            *_amounts(cost.at_min_count),
            *_amounts(cost.at_max_count),
        )
        for cost in estimate.costs.parts
    ]
    rows.append(("sum", "", *_amounts(estimate.costs.at_min_count), *_amounts(estimate.costs.at_max_count)))
    titles = [f"{period}\nat {count}" for count in ("Min", "Max") for period in ("hour", "month")]
    notes = [
        _price_sentence(estimate),
        f"US dollars, on demand, before tax, discounts and Savings Plans; a month is {HOURS_PER_MONTH} hours. Sums "
        "are of amounts before rounding.",
        *(f"{cost.name}: {cost.remark}." for cost in estimate.costs.parts if cost.remark),
    ]
    if estimate.costs.not_in_the_sums:
        notes.append(f"NOT in the sums: {'; '.join(estimate.costs.not_in_the_sums)}.")
    return Table("Costs, US dollars", [Column("Part", False), Column("price"), *map(Column, titles)], rows, 1, notes)


def _by_use(estimate: Estimate) -> Table:
    rows = [
        (
            each.name,
            _unit_price(estimate, each.price),
            usd(each.price.dollars * _EXAMPLE_GB) if each.price else NONE,
        )
        for each in estimate.costs.by_use
    ]
    columns = [Column("Paid by use", False), Column("price"), Column(f"{_EXAMPLE_GB} GB cost")]
    notes = ["Amounts depend on use, and are in no sum. Data from the internet and within the zone is free."]
    return Table("Paid by use, US dollars", columns, rows, notes=notes)


def _quotas(estimate: Estimate) -> Table:
    rows = [
        (
            quota.name,
            f"{quota.service} {quota.code or NONE}",
            counted(quota.needed, quota.unit),
            "may be 0" if quota.default is None else number(quota.default),
            "ask" if quota.to_ask_for else "",
        )
        for quota in estimate.quotas
    ]
    columns = [Column("Quota", False), Column("Code", False), Column("needed"), Column("default"), Column("", False)]
    notes = ["Needed by this deployment alone, at MaxCount. `ask`: more than a new account has."]
    return Table("Quotas", columns, rows, notes=notes)


def _run(run: TrainingRun) -> Table:
    workload = WORKLOADS[run.workload]
    measured_batch = max(row.batch for row in run.measurements)
    rows = [
        (
            number(each.nodes) + ("" if each.fits else " *"),
            each.basis.value,
            number(round(each.sequences_per_second, 1)),
            number(each.batch) + (f" {_LARGE_BATCH_MARK}" if each.batch > measured_batch else ""),
            number(each.steps),
            hours(each.hours),
            usd(each.dollars_of_nodes),
            usd(each.dollars_of_everything),
        )
        for each in run.estimates
    ]
    titles = ("sequences/s", "global batch", "steps", "time", "cost of nodes", "cost of everything")
    measured = "; ".join(
        f"{counted(row.nodes, 'nodes')} {number(row.sequences_per_second)}/s (Neuron {row.sdk})"
        for row in run.measurements
    )
    notes = [
        f"{run.sequences:,} sequences of {workload.sequence_length:,} tokens on {INSTANCE_TYPE}. Measured by AWS: "
        f"{measured}.",
        f"Beyond the measured rows: weak scaling, {workload.efficiency:.1%} per node for 16 times the nodes "
        f"({workload.efficiency_of}), the batch growing with the nodes.",
        f"{workload.remark[:1].upper()}{workload.remark[1:]}.",
        "Training alone: without start of nodes, compilation, checkpoints, evaluation and failures. US dollars at "
        "on-demand prices, other nodes off.",
    ]
    if any(each.batch > measured_batch for each in run.estimates):
        notes.append(
            f"{_LARGE_BATCH_MARK} A larger batch than any published for this model: how fast the nodes would be, "
            "not whether the model would learn."
        )
    if not all(each.fits for each in run.estimates):
        notes.append(f"* More than the {counted(run.largest_job_nodes, 'nodes')} of this deployment's largest queue.")
    return Table(workload.title, [Column("Nodes"), Column("basis", False), *map(Column, titles)], rows, notes=notes)


def _amounts(amounts: Amounts) -> tuple[str, ...]:
    return tuple(NONE if each is None else usd(each) for each in (amounts.hour, amounts.month))


def _unit_price(estimate: Estimate, price: Price | None) -> str:
    if price is None:
        return "not known"
    plain = price.dollars.normalize()
    decimals = max(2, -int(plain.as_tuple().exponent))
    mark = f" {_TABLE_MARK}" if estimate.prices.price_list_day and price.source == "table" else ""
    return f"{plain:.{decimals}f}/{price.unit}{mark}"
