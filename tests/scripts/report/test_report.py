"""What `make report` shows of runs: finished, under way, resumed, very long, missing or damaged."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from scripts.commands import report as command
from scripts.pages import even_ticks
from scripts.report.runs import Axis, ReportError, load
from scripts.report.sampling import samples
from training.pretraining.summary import METRICS, RUN, Attempt, Step

START = 1_790_000_000.0
FIRST = Attempt(started=START, resumed_step=0, nodes=1, workers=32, hosts=["trn1-st-1"], job="17", restarts=0)
STEP = Step(
    step=1,
    time=START + 10,
    loss=11.0,
    mlm_loss=10.3,
    nsp_loss=0.7,
    learning_rate=4e-4,
    gradient_norm=1.0,
    step_seconds=4.0,
    compute_seconds_min=3.0,
    compute_seconds_mean=3.1,
    compute_seconds_max=3.2,
    slowest_rank=5,
    slowest_host="trn1-st-1",
    waited_for_devices=True,
    data_seconds=0.04,
    checkpoint_seconds=0.02,
    sequences=16384,
    tokens=2097152,
    sequences_per_second=4096.0,
    sequences_per_second_per_node=4096.0,
    mfu=0.319,
)


def step(number: int, **changes: Any) -> Step:
    return replace(
        STEP, step=number, time=START + 10 * number, loss=11 - number / 1000, sequences=16384 * number, **changes
    )


def write(
    directory: Path,
    steps: Sequence[Step],
    attempts: Sequence[Attempt] = (FIRST,),
    options: Mapping[str, Any] | None = None,
) -> Path:
    directory.mkdir()
    facts = {"options": options or {"steps": 100}, "attempts": [asdict(attempt) for attempt in attempts]}
    (directory / RUN).write_text(json.dumps(facts))
    (directory / METRICS).write_text("".join(json.dumps(asdict(each)) + "\n" for each in steps))
    return directory


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """A function that runs the command and returns its exit code, the page, and its complaints."""

    def called(*arguments: Path | str) -> tuple[int, str, str]:
        output = tmp_path / "pages" / "report.html"
        monkeypatch.setattr("sys.argv", ["report", *map(str, arguments), "--output", str(output)])
        code = command.main()
        printed = capsys.readouterr()
        if code == 0:
            assert printed.out == f"{output}\n"
        return code, output.read_text(encoding="utf-8") if output.exists() else "", printed.err

    return called


def charts(page: str) -> dict[str, ElementTree.Element]:
    """Return the charts of a page by their titles."""
    found = [ElementTree.fromstring(text) for text in re.findall(r"<figure>.*?</figure>", page, re.DOTALL)]  # noqa: S314
    return {str(figure.findtext("figcaption")): figure for figure in found}


def table(page: str, title: str) -> list[list[str]]:
    """Return the cells of a table by row."""
    text = re.search(rf"<h2>{title}</h2>.*?(<table>.*?</table>)", page, re.DOTALL)
    assert text is not None
    rows = ElementTree.fromstring(text[1]).iter("tr")  # noqa: S314
    return [[str(cell.text) for cell in row] for row in rows]


def curves(chart: ElementTree.Element, kind: str = "curve") -> list[list[str]]:
    """Return the lines of each run in a chart."""
    groups = [group for group in chart.iter("g") if (group.get("class") or "").startswith("run")]
    return [[str(path.get("d")) for path in group.iter("path") if path.get("class") == kind] for group in groups]


def test_the_page_loads_nothing_and_names_its_charts_and_units(run: Any, tmp_path: Path) -> None:
    one = write(tmp_path / "one", [step(number) for number in range(1, 11)])
    code, page, _ = run(one)
    assert code == 0
    assert not re.search(r"<(script|link|img|iframe)|@import|url\(|\b(src|href)=", page)
    assert "prefers-color-scheme: dark" in page
    found = charts(page)
    assert list(found) == [
        "Throughput against optimizer step",
        "Throughput against time since the start",
        "Loss against optimizer step",
        "Loss against time since the start",
    ]
    for title, figure in found.items():
        drawing = figure.find("svg")
        assert drawing is not None
        assert (drawing.get("role"), drawing.get("aria-label")) == ("img", title)
        texts = [text.text for text in drawing.iter("text")]
        assert ("optimizer step" in texts) is title.endswith("step")
        assert ("seconds since the start" in texts) is title.endswith("start")
        assert ("sequences/s" in texts) is title.startswith("Throughput")
        assert ("loss (nats)" in texts) is title.startswith("Loss")


def test_the_tables_tell_what_a_run_came_to(run: Any, tmp_path: Path) -> None:
    slow = step(7, compute_seconds_max=4.1)
    steps = [slow if number == 7 else step(number) for number in range(1, 11)]
    _, page, _ = run(write(tmp_path / "one", steps))
    speeds = table(page, "Speed")[1]
    assert speeds == ["one", "1", "32", *["4,096.0"] * 3, "31.9%", "100.0%", "9.0%", "1.0%", "0.5%"]
    progress = ["one", "10 of 100", "163,840", "2,097,152", "10.9990", "10.9900", "0:00:40", "1", "2026-09-21 14:15:00"]
    assert table(page, "Progress")[1] == progress
    assert table(page, "Attempts")[1] == ["one", "1", "2026-09-21 14:13:20", "0", "1", "32", "17", "0"]
    assert table(page, "Stragglers")[1] == ["one", "5", "trn1-st-1", "1", "1.0"]


def test_without_stragglers_there_is_no_table_of_them(run: Any, tmp_path: Path) -> None:
    _, page, _ = run(write(tmp_path / "one", [step(number) for number in range(1, 11)]))
    assert "Stragglers" not in page


def test_runs_on_more_nodes_are_compared_with_that_on_one(run: Any, tmp_path: Path) -> None:
    four = replace(FIRST, nodes=4, workers=128)
    faster = [
        step(number, sequences_per_second=4 * 3072.0, sequences_per_second_per_node=3072.0) for number in range(1, 11)
    ]
    steps = [step(number) for number in range(1, 11)]
    _, page, _ = run(write(tmp_path / "four", faster, [four]), write(tmp_path / "one", steps))
    assert [row[7] for row in table(page, "Speed")[1:]] == ["75.0%", "100.0%"]
    assert "Throughput per node against optimizer step" in charts(page)
    assert page.count('<ul class="legend">') == 3
    assert "name a run on one node too" not in page


def test_runs_of_other_work_are_not_compared(tmp_path: Path) -> None:
    of_phases = [write(tmp_path / f"phase-{phase}", [step(1)], options={"phase": phase}) for phase in (1, 2)]
    wide = replace(FIRST, nodes=4)
    four = write(tmp_path / "four", [step(1, sequences_per_second_per_node=1024.0)], [wide], {"phase": 2})
    three = write(tmp_path / "three", [step(1)], [wide, FIRST], {"phase": 3})
    shown = load([*of_phases, four, three])
    assert [each.summary.scaling_efficiency for each in shown] == [1.0, 1.0, 0.25, None]


def test_without_a_run_on_one_node_the_note_tells_how_to_get_an_efficiency(run: Any, tmp_path: Path) -> None:
    _, page, _ = run(write(tmp_path / "four", [step(1)], [replace(FIRST, nodes=4)]))
    assert table(page, "Speed")[1][7] == "-"
    assert "Scaling efficiency: name a run on one node too, " in page


def test_a_resumed_run_is_marked_and_its_line_interrupted(run: Any, tmp_path: Path) -> None:
    second = replace(FIRST, started=START + 5000, resumed_step=4, restarts=1)
    steps = [step(number) for number in range(1, 5)]
    steps += [replace(step(number), time=START + 5000 + 10 * number) for number in range(5, 9)]
    _, page, _ = run(write(tmp_path / "one", steps, [FIRST, second]))
    for chart in charts(page).values():
        assert len(curves(chart)[0]) == 2
        assert len(curves(chart, "resumed")[0]) == 1
        assert "one went on from step 4 on 1 nodes" in [title.text for title in chart.iter("title")]
    assert [row[3] for row in table(page, "Attempts")[1:]] == ["0", "4"]


def test_an_attempt_without_a_step_yet_is_within_the_chart(run: Any, tmp_path: Path) -> None:
    waiting = replace(FIRST, started=START + 400, resumed_step=2)
    _, page, _ = run(write(tmp_path / "one", [step(1), step(2)], [FIRST, waiting]))
    chart = charts(page)["Loss against time since the start"]
    (mark,) = curves(chart, "resumed")[0]
    right_end = max(float(str(line.get("x2"))) for line in chart.iter("line"))
    assert mark.startswith(f"M{right_end} ")


def test_steps_have_no_parts(run: Any, tmp_path: Path) -> None:
    _, page, _ = run(write(tmp_path / "one", [step(1), step(2)]))
    texts = [text.text for text in charts(page)["Loss against optimizer step"].iter("text")]
    assert texts[-5:-2] == ["0", "1", "2"]


def test_an_attempt_that_left_no_step_draws_no_line(tmp_path: Path) -> None:
    attempts = [FIRST, *(replace(FIRST, started=START + later, resumed_step=2) for later in (100, 200))]
    (shown,) = load([write(tmp_path / "one", [step(number) for number in range(1, 5)], attempts)])
    assert shown.curve(Axis.STEP, lambda each: each.loss) == [[(1, 10.999), (2, 10.998)], [(3, 10.997), (4, 10.996)]]
    assert [place for place, _ in shown.resumptions(Axis.TIME)] == [100, 200]
    assert [place for place, _ in shown.resumptions(Axis.STEP)] == [2, 2]


def test_a_run_of_one_step_is_a_dot(run: Any, tmp_path: Path) -> None:
    _, page, _ = run(write(tmp_path / "one", [step(1)]))
    assert [len(list(chart.iter("circle"))) for chart in charts(page).values()] == [1] * 4


def test_a_run_under_way_is_shown_up_to_its_last_whole_line(run: Any, tmp_path: Path) -> None:
    one = write(tmp_path / "one", [step(1), step(2)])
    with (one / METRICS).open("a") as file:
        file.write('{"step": 3, "lo')
    code, page, _ = run(one)
    assert code == 0
    assert table(page, "Progress")[1][1] == "2 of 100"


def test_a_long_run_is_drawn_small_without_losing_a_spike(run: Any, tmp_path: Path) -> None:
    spike = 77_777
    steps = [
        replace(step(number), loss=50.0 if number == spike else 2 + number % 7 / 10) for number in range(1, 100_001)
    ]
    one = write(tmp_path / "one", steps)
    _, page, _ = run(one)
    assert len(page) < 200_000
    chart = charts(page)["Loss against optimizer step"]
    (band,) = curves(chart, "band")[0]
    highest = min(float(height) for height in re.findall(r"V([\d.]+)", band))
    top_line = min(float(str(line.get("y1"))) for line in chart.iter("line"))
    assert highest == top_line  # the uppermost line of the grid is at 50


@pytest.mark.parametrize("width", [0.5, 3, 1000])
def test_samples_keep_all_extremes_and_the_mean(width: float) -> None:
    points = [(float(number), float(number * 37 % 101)) for number in range(200)]
    found = samples(points, width)
    assert min(sample.low for sample in found) == 0
    assert max(sample.high for sample in found) == 100
    assert len(found) == min(200, -(-200 // width))
    for sample in found:
        values = [value for x, value in points if int(x / width) == int(sample.x / width)]
        assert (sample.low, sample.high) == (min(values), max(values))
        assert sample.mean == pytest.approx(sum(values) / len(values))


def remove(directory: Path) -> None:
    (directory / RUN).unlink()


def cut(directory: Path) -> None:
    (directory / RUN).write_text("{")


def garble(directory: Path) -> None:
    (directory / METRICS).write_text('{"step": 1}\n{"step": 2}\n')


def empty(directory: Path) -> None:
    (directory / METRICS).write_text("")


DAMAGES: dict[Callable[[Path], None], str] = {
    remove: "is not the directory of a run",
    cut: "run.json is damaged",
    garble: "metrics.jsonl is damaged: line 1 is no step",
    empty: "has no step yet",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_run_is_refused(damage: Callable[[Path], None], run: Any, tmp_path: Path) -> None:
    good, bad = write(tmp_path / "good", [step(1)]), write(tmp_path / "bad", [step(1)])
    damage(bad)
    code, page, told = run(good, bad)
    assert (code, page) == (2, "")
    assert DAMAGES[damage] in told
    assert str(bad) in told
    assert told.count("\n") == 1


def test_all_damaged_runs_are_told_at_once(run: Any, tmp_path: Path) -> None:
    code, _, told = run(tmp_path / "first", tmp_path / "second")
    assert code == 2
    assert [line.split(" is not ")[0] for line in told.splitlines()] == [
        str(tmp_path / "first"),
        str(tmp_path / "second"),
    ]


def test_an_output_that_cannot_be_written_is_told(run: Any, tmp_path: Path) -> None:
    (tmp_path / "pages").touch()
    code, _, told = run(write(tmp_path / "one", [step(1)]))
    assert code == 2
    assert told.startswith(f"--output: got {tmp_path}/pages/report.html; it cannot be written: ")


def test_more_runs_than_lines_can_be_told_apart_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="RUN: got 9; allowed: 1 to 8"):
        load([tmp_path] * 9)


def test_runs_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    for parent in ("a", "b"):
        (tmp_path / parent).mkdir()
    same = [write(tmp_path / parent / "run", [step(1)]) for parent in ("a", "b")]
    assert [shown.name for shown in load(same)] == [str(path) for path in same]
    assert [shown.name for shown in load(same[:1])] == ["run"]


def test_a_name_is_text_not_markup(run: Any, tmp_path: Path) -> None:
    runs = [write(tmp_path / name, [step(1)]) for name in ("<b>&", "other")]
    _, page, _ = run(*runs)
    assert "<b>" not in page
    assert "&lt;b&gt;&amp;" in page


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (0, 0.05, [0, 0.01, 0.02, 0.03, 0.04, 0.05]),
        (1.4, 11.2, [0, 2, 4, 6, 8, 10, 12]),
        (5, 5, [5, 6]),
        (0, 0, [0, 0.2]),
    ],
)
def test_ticks_reach_beyond_all_values(low: float, high: float, ticks: Sequence[float]) -> None:
    assert even_ticks(low, high) == pytest.approx(ticks)
