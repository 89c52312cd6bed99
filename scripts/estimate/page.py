"""The plan as a page of its own: one file, which loads nothing, with a chart of time and cost against nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import TYPE_CHECKING, NamedTuple

from scripts.estimate.tables import dollars, hours, number, tables
from scripts.estimate.workloads import Basis
from scripts.pages import STEPS, document, even_ticks, table_lines

if TYPE_CHECKING:
    from scripts.estimate.plan import Plan, Run
    from scripts.estimate.workloads import Estimate

_STYLE = """
:root { --first: #0a62c9; --second: #b35900; }
@media (prefers-color-scheme: dark) { :root { --first: #6cb6ff; --second: #f0a35e; } }
svg .first { --ink: var(--first); } svg .second { --ink: var(--second); }
svg .joined { fill: none; stroke: var(--ink); stroke-width: 2; } svg .guessed { stroke-dasharray: 5 5; }
svg .mark { fill: var(--back); stroke: var(--ink); stroke-width: 2; } svg .measured { fill: var(--ink); }
svg .title { font-weight: 600; } svg .name { fill: var(--ink); font-weight: 600; }
"""

_WIDTH, _HEIGHT = 960, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 150, 34, 46


class _Series(NamedTuple):
    """A line of a chart: its name, its CSS class, and the value of each estimate."""

    name: str
    ink: str
    value: Callable[[Estimate], float]
    text: Callable[[Estimate], str]


def page(plan: Plan) -> str:
    """Return the page of a plan."""
    where = f"{plan.name}, {plan.region}, {plan.zone_id}"
    shown = tables(plan)
    body = [f"<h1>Plan of {escape(plan.name)}</h1>", f"<p>{escape(where)}</p>"]
    if plan.run is not None:
        *shown, run = shown
        body += [f"<h2>{escape(run.title)}</h2>", *_charts(plan.run), *table_lines(run)]
    for table in shown:
        body += [f"<h2>{escape(table.title)}</h2>", *table_lines(table)]
    body += [f"<p>Note: {escape(remark)}</p>" for remark in plan.remarks]
    return document(f"Plan of {where}", _STYLE, body)


def _charts(run: Run) -> Iterator[str]:
    time = _Series("time", "first", lambda each: each.hours, lambda each: hours(each.hours))
    yield from _chart("Hours to train", run.estimates, [time], logarithmic=True)
    if all(each.node_dollars is not None for each in run.estimates):
        everything = _Series(
            "everything", "second", lambda each: float(each.all_dollars or 0), lambda each: dollars(each.all_dollars)
        )
        nodes = _Series(
            "nodes", "first", lambda each: float(each.node_dollars or 0), lambda each: dollars(each.node_dollars)
        )
        yield from _chart("Cost to train, US dollars", run.estimates, [nodes, everything], logarithmic=False)
    yield "<p>Full: measured by AWS. Round and empty: interpolated. Square and empty, dashed: extrapolated.</p>"


def _chart(title: str, points: Sequence[Estimate], lines: Sequence[_Series], *, logarithmic: bool) -> Iterator[str]:
    """Draw lines over the numbers of nodes, which are apart by their logarithm."""
    values = [line.value(point) for line in lines for point in points]
    ticks = _log_ticks(min(values), max(values)) if logarithmic else even_ticks(0, max(values))
    scale = log10 if logarithmic else float
    low, high = scale(ticks[0]), scale(ticks[-1])
    first, last = log10(points[0].nodes), log10(points[-1].nodes)

    def x(point: Estimate) -> float:
        part = (log10(point.nodes) - first) / (last - first) if last > first else 0.5
        return round(_LEFT + part * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(value: float) -> float:
        part = (scale(value) - low) / (high - low)
        return round(_HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM), 1)

    yield f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)} against nodes">'
    yield f'<text x="{_LEFT}" y="18" class="title">{escape(title)}</text>'
    for tick in ticks:
        yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(tick)}" y2="{y(tick)}"/>'
        yield f'<text class="dim" x="{_LEFT - 8}" y="{y(tick) + 4}" text-anchor="end">{number(tick)}</text>'
    base = _HEIGHT - _BOTTOM + 20
    for point in points:
        yield f'<text class="dim" x="{x(point)}" y="{base}" text-anchor="middle">{point.nodes:,}</text>'
    yield f'<text class="dim" x="{_WIDTH - _RIGHT + 36}" y="{base}">nodes</text>'
    for line in lines:
        yield f'<g class="{line.ink}">'
        for start, end in pairwise(points):
            guessed = " guessed" if Basis.EXTRAPOLATED in (start.basis, end.basis) else ""
            path = f"M{x(start)} {y(line.value(start))}L{x(end)} {y(line.value(end))}"
            yield f'<path class="joined{guessed}" d="{path}"/>'
        for point in points:
            told = f"{number(point.nodes)} nodes: {line.text(point)}, {point.basis.value}"
            yield _mark(x(point), y(line.value(point)), point.basis, told)
        yield "</g>"
    for line, height in zip(lines, _apart([y(line.value(points[-1])) for line in lines]), strict=True):
        if len(lines) > 1:
            yield f'<text class="name {line.ink}" x="{_WIDTH - _RIGHT + 16}" y="{height + 4}">{line.name}</text>'
    yield "</svg>"


def _mark(x: float, y: float, basis: Basis, told: str) -> str:
    title = f"<title>{escape(told)}</title>"
    if basis is Basis.EXTRAPOLATED:
        return f'<rect class="mark" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8">{title}</rect>'
    full = " measured" if basis is Basis.MEASURED else ""
    return f'<circle class="mark{full}" cx="{x}" cy="{y}" r="5">{title}</circle>'


def _apart(heights: Sequence[float]) -> list[float]:
    """Move labels down or up so that none covers another; the last line's stands above."""
    moved = list(heights)
    for lower, upper in pairwise(range(len(moved))):
        moved[upper] = min(moved[upper], moved[lower] - 16)
    return moved


def _log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten, from below the lowest value to above the highest."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    all_ticks = [step * 10.0**power for power in powers for step in STEPS[:-1]]
    start = max(tick for tick in all_ticks if tick <= low)
    end = min(tick for tick in all_ticks if tick >= high)
    chosen = [tick for tick in all_ticks if start <= tick <= end]
    return chosen if len(chosen) > 1 else [start, start * 10]
