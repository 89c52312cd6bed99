"""The plan as tables of text, which the terminal and the page show alike."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from scripts.estimate.costs import EXAMPLE_GB
from scripts.estimate.products import HOURS_PER_MONTH, SOURCES
from scripts.estimate.workloads import INSTANCE_TYPE
from scripts.pages import Column, Table

if TYPE_CHECKING:
    from scripts.estimate.plan import Plan, Run
    from scripts.estimate.prices import Price

_CENTS_BELOW = 1000
_SMALLEST = Decimal("0.01")
_HOURS_PER_DAY = 24
_MINUTES_PER_HOUR = 60
NONE = "-"
TABLE_MARK = "(t)"
LARGE_BATCH_MARK = "!"


def tables(plan: Plan) -> list[Table]:
    """Return all tables of a plan."""
    found = [
        _nodes(plan),
        _sizes(plan),
        _addresses(plan),
        _file_system(plan),
        _costs(plan),
        _by_use(plan),
        _quotas(plan),
    ]
    return [*found, run_table(plan.run)] if plan.run else found


def dollars(amount: Decimal | None) -> str:
    """Return an amount with cents, and from a thousand on without."""
    if amount is None:
        return "not known"
    if 0 < amount < _SMALLEST:
        return f"<{_SMALLEST}"
    return f"{amount:,.2f}" if amount < _CENTS_BELOW else f"{amount:,.0f}"


def number(value: float) -> str:
    """Return a number with thousands apart, and without digits that mean nothing."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}".rstrip("0").rstrip(".")


def hours(value: float) -> str:
    """Return a time in minutes, from one hour on in hours, from two days on in days."""
    if value < 1:
        return f"{value * _MINUTES_PER_HOUR:.1f} min"
    if value < 2 * _HOURS_PER_DAY:
        return f"{value:.1f} h"
    return f"{value / _HOURS_PER_DAY:,.1f} days"


def price_sentence(plan: Plan) -> str:
    """Return where the prices are from, in one sentence."""
    prices = plan.prices
    if prices.listed_on is not None:
        kept = f" ({prices.remark})" if prices.remark else ""
        day = prices.listed_on.isoformat()
        return f"Prices: AWS Price List API, {prices.region}, {day}{kept}; {TABLE_MARK} marks those of the dated table."
    dates = sorted(source.date for source in SOURCES.values())
    return f"Prices: the dated table, {dates[0]} to {dates[-1]} ({prices.remark}). Sources: docs/estimate.md."


def _nodes(plan: Plan) -> Table:
    rows = [
        (
            kind.label,
            kind.instance_type,
            kind.capacity_type + (", reserved" if kind.reserved else ""),
            number(kind.min_count),
            number(kind.max_count),
        )
        for kind in plan.fleet.kinds
    ]
    columns = [Column("Queue/compute resource", False), Column("Instance type", False), Column("Capacity", False)]
    return Table("Nodes", [*columns, Column("MinCount"), Column("MaxCount")], rows)


def _sizes(plan: Plan) -> Table:
    each = {kind.instance_type: kind.each for kind in plan.fleet.kinds}
    columns = [*each.values(), plan.fleet.at_min, plan.fleet.at_max]

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


def _addresses(plan: Plan) -> Table:
    rows = [
        (subnet.name, subnet.cidr, *map(number, (subnet.usable, subnet.at_min, subnet.at_max, subnet.left_at_max)))
        for subnet in plan.subnets
    ]
    titles = ("usable", "used at MinCount", "used at MaxCount", "left at MaxCount")
    return Table("Addresses", [Column("Subnet", False), Column("Block", False), *map(Column, titles)], rows)


def _file_system(plan: Plan) -> Table:
    system, nodes = plan.file_system, plan.fleet.at_max.nodes
    row = (
        system.deployment_type,
        number(system.capacity_gib),
        number(system.throughput_mbps),
        number(system.throughput_mbps / nodes) if nodes else NONE,
        NONE if system.metadata_iops is None else number(system.metadata_iops),
    )
    titles = ("capacity, GiB", "baseline, MB/s", "per node at MaxCount, MB/s", "metadata IOPS")
    return Table("File system", [Column("FSx for Lustre", False), *map(Column, titles)], [row])


def _costs(plan: Plan) -> Table:
    rows = [
        (
            cost.part.name,
            "paid before" if cost.part.prepaid else _unit_price(plan, cost.price),
            *_amounts(cost.hourly_min),
            *_amounts(cost.hourly_max),
        )
        for cost in plan.costs.standing
    ]
    rows.append(("sum", "", *_amounts(plan.costs.hourly_min), *_amounts(plan.costs.hourly_max)))
    titles = [f"{period}\nat {count}" for count in ("Min", "Max") for period in ("hour", "day", "month")]
    notes = [
        price_sentence(plan),
        f"US dollars, on demand, before tax, discounts and Savings Plans; a month is {HOURS_PER_MONTH} hours. What is "
        "rounded here was added before it was rounded.",
        *(f"{cost.part.name}: {cost.part.remark}." for cost in plan.costs.standing if cost.part.remark),
    ]
    if plan.costs.unpriced:
        notes.append(f"NOT in the sums: {'; '.join(plan.costs.unpriced)}.")
    return Table("Costs, US dollars", [Column("Part", False), Column("price"), *map(Column, titles)], rows, 1, notes)


def _by_use(plan: Plan) -> Table:
    rows = [
        (product.name, _unit_price(plan, price), NONE if price is None else dollars(price.dollars * EXAMPLE_GB))
        for product, price in plan.costs.by_use
    ]
    columns = [Column("Paid by use", False), Column("price"), Column(f"{EXAMPLE_GB} GB cost")]
    notes = ["Amounts hang on what is run, and are in no sum. Data from the internet and within the zone is free."]
    return Table("Paid by use, US dollars", columns, rows, notes=notes)


def _quotas(plan: Plan) -> Table:
    rows = [
        (
            quota.service,
            quota.code or NONE,
            quota.name,
            number(quota.needed),
            quota.unit,
            "may be 0" if quota.default is None else number(quota.default),
            "ask" if quota.to_ask_for else "",
        )
        for quota in plan.quotas
    ]
    columns = [Column("Service", False), Column("Code", False), Column("Quota", False)]
    ends = [Column("needed"), Column("unit", False), Column("default"), Column("", False)]
    notes = ["Needed by this deployment alone, at MaxCount. `ask`: more than a new account has."]
    return Table("Quotas", [*columns, *ends], rows, notes=notes)


def run_table(run: Run) -> Table:
    """Return the estimates of a run."""
    workload = run.workload
    measured_batch = max(row.batch for row in workload.rows)
    rows = [
        (
            number(each.nodes) + ("" if each.fits else " *"),
            each.basis.value,
            f"{each.sequences_per_second:,.{0 if each.sequences_per_second >= _CENTS_BELOW else 1}f}",
            number(each.batch) + (f" {LARGE_BATCH_MARK}" if each.batch > measured_batch else ""),
            number(each.steps),
            hours(each.hours),
            dollars(each.node_dollars),
            dollars(each.all_dollars),
        )
        for each in run.estimates
    ]
    titles = ("sequences/s", "global batch", "steps", "time", "cost of nodes", "cost of everything")
    measured = "; ".join(
        f"{row.nodes} node{'s' if row.nodes > 1 else ''} {number(row.sequences_per_second)}/s (Neuron {row.sdk})"
        for row in workload.rows
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
            f"{LARGE_BATCH_MARK} A larger batch than any published for this model: how fast the nodes would be, "
            "not whether the model would learn."
        )
    if not all(each.fits for each in run.estimates):
        notes.append(f"* More than the {run.largest_job} nodes of this deployment's largest queue.")
    return Table(workload.title, [Column("Nodes"), Column("basis", False), *map(Column, titles)], rows, notes=notes)


def _amounts(hourly: Decimal | None) -> tuple[str, str, str]:
    if hourly is None:
        return (NONE, NONE, NONE)
    return dollars(hourly), dollars(hourly * _HOURS_PER_DAY), dollars(hourly * HOURS_PER_MONTH)


def _unit_price(plan: Plan, price: Price | None) -> str:
    if price is None:
        return "not known"
    plain = price.dollars.normalize()
    decimals = max(2, -int(plain.as_tuple().exponent))
    mark = f" {TABLE_MARK}" if plan.prices.listed_on and price.source == "table" else ""
    return f"{plain:.{decimals}f}/{price.unit}{mark}"
