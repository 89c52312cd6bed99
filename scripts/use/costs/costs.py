"""What jobs cost: Slurm's accounting, added up on the head node, and the prices of the estimate."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from scripts.account.deployment import Deployment
from scripts.account.remote import program
from scripts.account.remote.head_node import OUTPUT_LIMIT, HeadNode
from scripts.account.remote.values import Line
from scripts.check.estimate import products
from scripts.check.estimate.prices import find_prices
from scripts.core.clock import Clock
from scripts.core.errors import OperationError
from scripts.core.figures import counted
from scripts.core.interrupts import uninterrupted
from scripts.use.costs.report import By, Cost, CostReport
from ultracluster.domain import metrics
from ultracluster.domain.accounting import JOBS_OF_A_GENERATION, first_job_id

if TYPE_CHECKING:
    from config.settings import Settings

Names = tuple[str, ...]
"""What jobs are added up by: a name, or of each job number, user, account and queue."""
PART = OUTPUT_LIMIT - 200
"""Characters of the result in one answer of Systems Manager."""
SECONDS = 300
"""How long the head node may take to add up."""
Hours = Mapping[datetime, tuple[float, float]]
"""Mean of the samples of an hour, and how many there are: the head node sends one a minute."""
_HOUR, _MINUTE = timedelta(hours=1), timedelta(minutes=1)
_STATISTICS = ("Average", "SampleCount")
_QUERIES = 500
"""What GetMetricData takes in one call."""
_KEPT = timedelta(days=455)
"""How long CloudWatch keeps values of an hour."""
_GRACE = timedelta(minutes=5)
"""The newest hour may have no value yet."""
_NEGLIGIBLE = Decimal("0.1")
"""Node hours that jobs may have more than ran, as nodes are sampled once a minute."""
_QUEUE = re.compile(r"-(st|dy)-.*")
"""What follows the queue in the name of a node."""
_DIMENSION = re.compile("[!-9;-~][ -~]{0,1023}")
"""What CloudWatch takes as value of a dimension (API reference of CloudWatch, Dimension)."""
_PROGRAM = Path(__file__).with_name("summary.py")


@dataclass(frozen=True)
class Summary:
    """What the head node added up.

    Attributes:
        sums: What jobs are added up by, kind of node (its name without number), node seconds.
        counts: Number of jobs and of runs, by what they are added up by.
        first: When the first of them started; None: there was none.
        queues: Queues that had jobs, also those that the settings no longer have.
        cut: Number of runs that were lost with their head node, and end with the last nodes of their cluster.
        unknown: Number of runs without an end that are not counted.
        unreadable: Number of records that cannot be read.
    """

    sums: Sequence[tuple[Names, str, float]]
    counts: Mapping[Names, tuple[int, int]]
    first: datetime | None
    queues: Sequence[str] = ()
    cut: int = 0
    unknown: int = 0
    unreadable: int = 0


class _Summary(TypedDict):
    """The answer of the program on the head node, whose names are texts: of users, accounts, queues and jobs."""

    sums: list[tuple[tuple[Line, ...], Line, float]]
    counts: list[tuple[tuple[Line, ...], int, int]]
    first: datetime | None
    queues: list[Line]
    cut: int
    unknown: int
    unreadable: int


def collect(deployment: Deployment, since: datetime, until: datetime, by: By) -> CostReport:
    """Ask head node, CloudWatch and Price List.

    Raises:
        OperationError: The head node cannot be asked, or there is no accounting.
    """
    settings = deployment.settings
    before = clusters_before(deployment, until)
    summary = summarize(deployment, HeadNode(deployment), since, until, by, before=before)
    ran, silent = running(deployment, since, until, summary)
    prices, source = node_prices(settings)
    made = report(deployment.name, settings, prices, summary, (ran, silent), window=(since, until), by=by)
    return made.model_copy(update={"notes": (*made.notes, source)})


def node_prices(settings: Settings) -> tuple[dict[str, Decimal], str]:
    """Return what an hour of nodes costs by instance type, and a sentence that says by what.

    That is the settings, the Price List, or the table.
    """
    stated = settings.cluster.stated_prices
    wanted = {each: products.instance(each, stated.get(each)) for each in settings.cluster.instance_types}
    listed = find_prices(settings.region, wanted.values(), "auto")
    own = {} if settings.budget is None else settings.budget.usd_per_hour
    known = {each: price for each, product in wanted.items() if each not in own and (price := listed.of(product))}
    sources = sorted({f"the {price.source}" + (price.date and f" of {price.date}") for price in known.values()})
    sources += ["`budget.usd_per_hour`"] if own else []
    by_type = {each: price.dollars for each, price in known.items()}
    sentence = f"US dollars by {' and '.join(sources)}." if sources else "No price of these nodes is known."
    return {**by_type, **{each: Decimal(str(price)) for each, price in own.items()}}, sentence


# --- the head node ---


def summarize(
    deployment: Deployment,
    head_node: HeadNode,
    since: datetime,
    until: datetime,
    by: By,
    *,
    before: Sequence[tuple[int, int, int | None]] = (),
) -> Summary:
    """Let the head node add up its accounting; what does not fit into an answer is fetched in parts.

    Of clusters `before` it are the first and last number of a job, and when the last nodes ended.

    Raises:
        OperationError: It cannot, or there is no accounting.
    """
    arguments = [str(int(since.timestamp())), str(int(until.timestamp())), by, str(PART), json.dumps(before)]
    answer = head_node.run(shlex.join(program.of_file(_PROGRAM, *arguments)), seconds=SECONDS)
    if answer.code:
        reason = answer.errors.strip() or f"exit code {answer.code}"
        hint = "" if deployment.settings.accounting else "without `accounting` in the settings Slurm forgets jobs"
        raise OperationError(f"Slurm's accounting cannot be read: {reason}", hint)
    header, _, text = answer.output.partition("\n")
    length, _, path = header.partition(" ")
    unreadable = OperationError(f"The head node's answer cannot be read: {answer.output[:200].strip() or 'none'}")
    if not re.fullmatch(r"(/[\w./-]+)?", path, re.ASCII):
        raise unreadable
    try:
        text = text.strip()
        while path and len(text) < int(length):
            text += _part(head_node, path, len(text))
        found = TypeAdapter(_Summary).validate_python(json.loads(gzip.decompress(base64.b64decode(text))))
    except (ValueError, EOFError, OSError):
        raise unreadable from None
    finally:
        if path:
            with uninterrupted():
                head_node.run(shlex.join(["rm", "--force", "--", path]))
    counts = {names: (jobs, runs) for names, jobs, runs in found["counts"]}
    numbers = found["cut"], found["unknown"], found["unreadable"]
    return Summary(found["sums"], counts, found["first"], found["queues"], *numbers)


def _part(head_node: HeadNode, path: str, start: int) -> str:
    answer = head_node.run(f"tail --bytes=+{start + 1} -- {shlex.quote(path)} | head --bytes={PART}")
    if not answer.output:
        raise OperationError(f"{path} on the head node is gone: {answer.errors.strip()}")
    return answer.output


# --- nodes that ran ---


def clusters_before(deployment: Deployment, until: datetime) -> list[tuple[int, int, int | None]]:
    """Return of the generations before this one their jobs' first and last number, and when their last nodes ended.

    That is the end of the last hour in which nodes ran, in seconds since 1970; None: CloudWatch knows nothing. It may
    be long before the window: Slurm books the end of runs that were lost with a head node when the next one starts.
    """
    settings = deployment.settings
    generations = range(1, settings.cluster.generation)
    names = {each: settings.of_generation(each).cluster_spec.name for each in generations}
    found = samples(deployment, until - _KEPT, until, [(name, "") for name in names.values()])
    clusters = []
    for generation, name in names.items():
        first = first_job_id(generation)
        clusters.append((first, first + JOBS_OF_A_GENERATION - 1, last_end(found[name, ""], until)))
    return clusters


def last_end(hours: Hours, until: datetime) -> int | None:
    """Return the end of the last hour in which nodes ran, else the start of the first; None: nothing is known.

    Nodes that ran until shortly before `until` ran on: the newest hour may have no value yet.
    """
    ran = [hour + _HOUR for hour, (average, _) in hours.items() if average]
    end = max(ran, default=min(hours, default=None))
    return None if end is None else int((until if until - end <= _GRACE else end).timestamp())


def running(
    deployment: Deployment, since: datetime, until: datetime, summary: Summary
) -> tuple[dict[str, Decimal], timedelta]:
    """Return the node hours that ran by queue, and for how long of the time that is not known.

    An hour without a value of the metric is not known, unless it is before the first value and the first job: then
    there was no cluster yet. Needs cloudwatch:GetMetricData.
    """
    settings = deployment.settings
    clusters = [settings.of_generation(each).cluster_spec.name for each in range(1, settings.cluster.generation + 1)]
    queues = sorted({*filter(_DIMENSION.fullmatch, summary.queues), *(queue.name for queue in settings.cluster.queues)})
    found = samples(deployment, since, until, [(cluster, queue) for cluster in clusters for queue in queues])
    ran = dict.fromkeys(queues, Decimal(0))
    for (_, queue), of_hours in found.items():
        ran[queue] += node_hours(of_hours, since, until)
    known = {hour for of_hours in found.values() for hour in of_hours}
    start = min([*known, *([_whole(summary.first)] if summary.first else [])], default=None)
    silent, hour = timedelta(), _whole(since) if start is None else max(start, _whole(since))
    while hour < until:
        length = min(hour + _HOUR, until) - max(hour, since)
        if hour not in known and length > _GRACE:
            silent += length
        hour += _HOUR
    return ran, silent


def samples(
    deployment: Deployment, since: datetime, until: datetime, wanted: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], Hours]:
    """Return what CloudWatch has of clusters and their queues by the hour; without a queue, of all together.

    An hour that has only one of the statistics so far is left out.
    """
    found: dict[tuple[str, str], dict[datetime, dict[str, float]]] = {each: defaultdict(dict) for each in wanted}
    queries = {f"m{index}": (each, stat) for index, (each, stat) in enumerate(product(wanted, _STATISTICS))}
    pages = deployment.account.client("cloudwatch").get_paginator("get_metric_data")
    names = [*queries]
    for some in (names[start : start + _QUERIES] for start in range(0, len(names), _QUERIES)):
        for page in pages.paginate(
            MetricDataQueries=[_query(name, *queries[name]) for name in some],
            StartTime=_whole(since),
            EndTime=until,
            ScanBy="TimestampAscending",
        ):
            for each in page["MetricDataResults"]:
                series, stat = queries[each["Id"]]
                for time, value in zip(each["Timestamps"], each["Values"], strict=True):
                    found[series][time.astimezone(UTC)][stat] = value
    return {
        series: {
            hour: (values["Average"], values["SampleCount"])
            for hour, values in of_hours.items()
            if len(values) == len(_STATISTICS)
        }
        for series, of_hours in found.items()
    }


def node_hours(hours: Hours, since: datetime, until: datetime) -> Decimal:
    """Return the node hours of a series: of its first and last hour only the minutes that it has.

    In them the cluster may have started or ended. In between, minutes without a sample are like those beside them: the
    head node is silent while it starts again, but nodes run.
    """
    total = Decimal(0)
    ends = (min(hours, default=None), max(hours, default=None))
    for hour, (average, count) in hours.items():
        length = max(timedelta(), min(hour + _HOUR, until) - max(hour, since))
        if hour in ends:
            length = min(length, count * _MINUTE)
        total += Decimal(average) * Decimal(length / _HOUR)
    return total


def _query(key: str, series: tuple[str, str], stat: str) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in zip(("Cluster", "Queue"), series, strict=True)]
    metric = {
        "Namespace": metrics.NAMESPACE,
        "MetricName": metrics.NODES_RUNNING,
        "Dimensions": [each for each in dimensions if each["Value"]],
    }
    return {"Id": key, "MetricStat": {"Metric": metric, "Period": 3600, "Stat": stat}}


def _whole(time: datetime) -> datetime:
    return time.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


# --- both together ---


def report(
    deployment_name: str,
    settings: Settings,
    prices: Mapping[str, Decimal],
    summary: Summary,
    ran: tuple[Mapping[str, Decimal], timedelta],
    *,
    window: tuple[datetime, datetime],
    by: By,
) -> CostReport:
    """Return node hours and what they cost."""
    types = {
        f"{queue.name}-{life}-{resource.name}": resource.instance_type
        for queue in settings.cluster.queues
        for resource in queue.compute_resources
        for life in ("st", "dy")
    }
    hours: dict[Names, Decimal] = defaultdict(Decimal)
    usd: dict[Names, Decimal] = {}
    unpriced: dict[str, Decimal] = defaultdict(Decimal)
    of_queues: dict[str, Decimal] = defaultdict(Decimal)
    for key, kind, seconds in summary.sums:
        of_kind, price = Decimal(seconds) / 3600, prices.get(types.get(kind, ""))
        hours[key] += of_kind
        of_queues[_QUEUE.sub("", kind)] += of_kind
        if price is None:
            unpriced[types.get(kind, kind) or "nodes whose names are not known"] += of_kind
        else:
            usd[key] = usd.get(key, Decimal(0)) + of_kind * price
    costs = [_cost(key, summary.counts[key], hours[key], usd.get(key)) for key in hours]
    costs.sort(key=lambda each: (-each.node_hours, each.name))
    jobs = Cost(
        name="all jobs",
        jobs=sum(each.jobs for each in costs),
        runs=sum(each.runs for each in costs),
        node_hours=float(sum(hours.values())),
        usd=sum(usd.values(), Decimal(0)) if usd or not hours else None,
    )
    hours_by_queue, silent = ran
    notes = list(_notes(summary))
    ran_hours, left, ran_usd, left_usd = None, None, None, None
    if silent:
        notes.append(
            f"How long nodes ran is not known: of {silent / _HOUR:,.1f} h CloudWatch has no {metrics.NODES_RUNNING}. "
            "The head node sends it with `monitoring.node_metrics`."
        )
    else:
        ran_hours = sum(hours_by_queue.values(), Decimal(0))
        left = ran_hours - sum(hours.values())
        queue_prices: dict[str, set[Decimal | None]] = defaultdict(lambda: {None})
        for queue in settings.cluster.queues:
            queue_prices[queue.name] = {prices.get(resource.instance_type) for resource in queue.compute_resources}
        ran_usd = _usd_of_queues(queue_prices, hours_by_queue)
        # Job by job a queue may have kinds of nodes that the settings no longer have: all have the queue's price here.
        left_by_queue = {name: each - of_queues[name] for name, each in hours_by_queue.items()}
        left_usd = None if ran_usd is None else _usd_of_queues(queue_prices, left_by_queue)
        for name, each in left_by_queue.items():
            if each > 0 and queue_prices[name] == {None}:
                unpriced[f"queue {name} without a job"] += each
        if left <= -_NEGLIGIBLE:
            notes.append(
                f"Jobs have {-float(left):,.2f} node hours more than ran: {metrics.NODES_RUNNING} was not sent all the "
                "time, or jobs ran beside this deployment's clusters."
            )
    if unpriced:
        listed = ", ".join(f"{kind} ({float(each):,.2f} node hours)" for kind, each in sorted(unpriced.items()))
        notes.append(f"No price is known of {listed}: no amount has them. `budget.usd_per_hour` gives prices.")
    return CostReport(
        deployment=deployment_name,
        since=window[0],
        until=window[1],
        by=by,
        costs=tuple(costs),
        jobs=jobs,
        ran_node_hours=None if ran_hours is None else float(ran_hours),
        ran_usd=ran_usd,
        unattributed_node_hours=None if left is None else float(left),
        unattributed_usd=left_usd,
        unpriced_node_hours={kind: float(each) for kind, each in sorted(unpriced.items())},
        notes=tuple(notes),
    )


def _notes(summary: Summary) -> Iterator[str]:
    if summary.cut:
        runs = counted(summary.cut, "runs")
        yield f"Without an end of their own, so until the last nodes of their cluster ended: {runs}."
    if summary.unknown:
        yield (
            f"Not counted: {counted(summary.unknown, 'runs')} without an end, for CloudWatch has no "
            f"{metrics.NODES_RUNNING} of their cluster, an earlier one."
        )
    if summary.unreadable:
        yield f"Not counted: {counted(summary.unreadable, 'records')} of Slurm's accounting that cannot be read."


def _cost(names: Names, counts: tuple[int, int], hours: Decimal, usd: Decimal | None) -> Cost:
    name, *others = names
    of_job = dict(zip(("user", "account", "queue"), others, strict=False))
    return Cost(name=name, jobs=counts[0], runs=counts[1], node_hours=float(hours), usd=usd, **of_job)


def _usd_of_queues(prices: Mapping[str, Set[Decimal | None]], hours: Mapping[str, Decimal]) -> Decimal | None:
    """Return what node hours of queues cost, but for queues without a price.

    None: there are only such, or one has nodes of several prices.
    """
    amounts = []
    for queue, each in hours.items():
        price, *others = prices[queue]
        if each and others:
            return None
        if each and price is not None:
            amounts.append(each * price)
    return sum(amounts, Decimal(0)) if amounts or not any(hours.values()) else None


def month(clock: Clock) -> tuple[datetime, datetime]:
    """Return the start of this month in UTC, and now."""
    now = clock.now().astimezone(UTC).replace(microsecond=0)
    return now.replace(day=1, hour=0, minute=0, second=0), now
