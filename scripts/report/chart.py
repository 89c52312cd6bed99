"""Charts of several runs as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, log10
from typing import NamedTuple

from scripts.pages import even_ticks
from scripts.report.runs import Axis, ShownRun
from scripts.report.sampling import Sample, samples
from training.pretraining.summary import Step

# Three colours after Okabe and Ito, which all can tell apart, darker on white and lighter on black, and grey.
# https://jfly.uni-koeln.de/color/
STYLE = """
:root { --ink0: #0072b2; --ink1: #d55e00; --ink2: #00855f; --ink3: #6e7781; }
@media (prefers-color-scheme: dark) { :root { --ink0: #56b4e9; --ink1: #f08c4a; --ink2: #2bbf94; --ink3: #b6bec8; } }
div.charts { display: grid; gap: 1rem 2rem; margin-bottom: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
figure { margin: 0; } figcaption { font-weight: 600; }
ul.legend { display: flex; flex-wrap: wrap; gap: 0 1.2rem; list-style: none; margin: 1.2rem 0 .2rem; padding: 0; }
ul.legend svg { display: inline-block; margin-right: .4rem; vertical-align: middle; }
.curve { fill: none; stroke: var(--ink); stroke-width: 1.6; stroke-linejoin: round; }
.band { fill: none; stroke: var(--ink); stroke-opacity: .35; stroke-width: 1.6; }
.dot { fill: var(--ink); } .resumed { fill: var(--ink); stroke: var(--back); }
.run0, .run4 { --ink: var(--ink0); } .run1, .run5 { --ink: var(--ink1); }
.run2, .run6 { --ink: var(--ink2); } .run3, .run7 { --ink: var(--ink3); }
.run4 .curve, .run5 .curve, .run6 .curve, .run7 .curve { stroke-dasharray: 6 4; }
"""

_WIDTH, _HEIGHT = 520, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 30, 30, 44
_INNER_WIDTH, _INNER_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_PIXELS_PER_SAMPLE = 1.5
_UNITS = ((7200, 3600, "hours"), (120, 60, "minutes"), (0, 1, "seconds"))


@dataclass(frozen=True)
class Quantity:
    """What a chart shows.

    Attributes:
        title: Its name.
        unit: Of its values.
        value: What it is in a step.
        from_zero: The axis begins at zero.
    """

    title: str
    unit: str
    value: Callable[[Step], float]
    from_zero: bool


class _Scale(NamedTuple):
    """Where values lie along an axis, in pixels, and what stands beside it."""

    ticks: Sequence[float]
    high: float
    start: float
    length: float

    def __call__(self, value: float) -> float:
        low = self.ticks[0]
        return round(self.start + (value - low) / (self.high - low) * self.length, 1)

    def text(self, tick: float) -> str:
        digits = max(0, ceil(-log10(self.ticks[1] - self.ticks[0])))
        return f"{tick:,.{digits}f}"


def legend(runs: Sequence[ShownRun]) -> Iterator[str]:
    """Yield which line is whose, if there are several."""
    if len(runs) == 1:
        return
    yield '<ul class="legend">'
    for number, run in enumerate(runs):
        line = '<svg width="30" height="10" aria-hidden="true"><path class="curve" d="M0 5H30"/></svg>'
        yield f'<li class="run{number}">{line}{escape(run.name)}</li>'
    yield "</ul>"


def chart(quantity: Quantity, axis: Axis, runs: Sequence[ShownRun]) -> Iterator[str]:
    """Yield a chart: means of neighbouring steps as a line, their extremes as a band, and marks of resumptions."""
    drawn = [run.curve(axis, quantity.value) for run in runs]
    marked = [place for run in runs for place, _ in run.resumptions(axis)]
    last = max([part[-1][0] for parts in drawn for part in parts] + marked)
    divisor, x_unit = _x_unit(axis, last)
    width = last / (_INNER_WIDTH / _PIXELS_PER_SAMPLE)
    sampled = [[samples(part, width) for part in parts] for parts in drawn]
    values = [value for parts in sampled for part in parts for each in part for value in (each.low, each.high)]
    y_ticks = even_ticks(0 if quantity.from_zero else min(values), max(values))
    x = _Scale(_x_ticks(axis, last / divisor), last / divisor, _LEFT, _INNER_WIDTH)
    y = _Scale(y_ticks, y_ticks[-1], _HEIGHT - _BOTTOM, -_INNER_HEIGHT)
    told = f"{quantity.title} against {axis.value}"
    yield f"<figure><figcaption>{escape(told)}</figcaption>"
    yield f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(told)}">'
    yield from _grid(x, y, x_unit, quantity.unit)
    for number, (run, parts) in enumerate(zip(runs, sampled, strict=True)):
        yield f'<g class="run{number}"><title>{escape(run.name)}</title>'
        for part in parts:
            yield from _curve([each._replace(x=each.x / divisor) for each in part], x, y)
        for place, attempt in run.resumptions(axis):
            text = f"{run.name} went on from step {attempt.resumed_step:,} on {attempt.nodes:,} nodes"
            triangle = f"M{x(place / divisor)} {_HEIGHT - _BOTTOM - 9}l5 9h-10z"
            yield f'<path class="resumed" d="{triangle}"><title>{escape(text)}</title></path>'
        yield "</g>"
    yield "</svg></figure>"


def _x_unit(axis: Axis, last: float) -> tuple[float, str]:
    if axis is Axis.STEP:
        return 1, "optimizer step"
    divisor, unit = next((divisor, unit) for least, divisor, unit in _UNITS if last >= least)
    return divisor, f"{unit} since the start"


def _x_ticks(axis: Axis, last: float) -> list[float]:
    """Return ticks up to the last value; steps have no parts."""
    return [tick for tick in even_ticks(0, last) if tick <= last and (axis is Axis.TIME or tick.is_integer())]


def _grid(x: _Scale, y: _Scale, x_unit: str, y_unit: str) -> Iterator[str]:
    base = _HEIGHT - _BOTTOM
    for tick in y.ticks:
        yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(tick)}" y2="{y(tick)}"/>'
        yield f'<text class="dim" x="{_LEFT - 6}" y="{y(tick) + 4}" text-anchor="end">{y.text(tick)}</text>'
    for tick in x.ticks:
        yield f'<text class="dim" x="{x(tick)}" y="{base + 18}" text-anchor="middle">{x.text(tick)}</text>'
    yield f'<text x="{_LEFT + _INNER_WIDTH / 2}" y="{_HEIGHT - 6}" text-anchor="middle">{x_unit}</text>'
    yield f'<text x="0" y="14">{escape(y_unit)}</text>'


def _curve(part: Sequence[Sample], x: _Scale, y: _Scale) -> Iterator[str]:
    if len(part) == 1:
        yield f'<circle class="dot" cx="{x(part[0].x)}" cy="{y(part[0].mean)}" r="2.5"/>'
    apart = [f"M{x(each.x)} {y(each.low)}V{y(each.high)}" for each in part if each.low < each.high]
    if apart:
        yield f'<path class="band" d="{"".join(apart)}"/>'
    yield f'<path class="curve" d="M{"L".join(f"{x(each.x)} {y(each.mean)}" for each in part)}"/>'
