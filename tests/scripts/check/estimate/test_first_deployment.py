"""docs/tutorials/first-deployment.md: settings and commands of each rung are valid, and cost what the page says."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import submit
from bert import options
from config.settings import Settings
from scripts.check.estimate.costs import Costs, costs
from scripts.check.estimate.prices import Prices

PROJECT = Path(__file__).parents[4]
PAGE = (PROJECT / "docs/tutorials/first-deployment.md").read_text(encoding="utf-8")


def ladder(nodes: int) -> Settings:
    """Return config/dev.yaml, changed as the page says up to rung 4, with `nodes` in the queue trn1."""
    raw: dict[str, Any] = yaml.safe_load((PROJECT / "config/dev.yaml").read_text(encoding="utf-8"))
    raw.update(name="first", tags={"project": "first-deployment"})
    raw["network"]["nat_addresses"] = 2
    raw["storage"]["file_system"].update(deployment_type="PERSISTENT_2", throughput_mbps_per_tib=125, capacity_gib=2400)
    [trn1] = raw["cluster"]["queues"]
    trn1["compute_resources"][0]["max_count"] = nodes
    [block] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    [small] = yaml.safe_load(block)
    resources = [{**trn1["compute_resources"][0], **resource} for resource in small["compute_resources"]]
    raw["cluster"]["queues"].append({**trn1, **small, "compute_resources": resources})
    return Settings.model_validate(raw)


def sum_of(estimated: Costs, *names: str) -> float:
    return float(sum(cost.at_max_count.hour or 0 for cost in estimated.parts if cost.name.startswith(names)))


def network_and_storage(estimated: Costs) -> float:
    return sum_of(estimated, "file system", "NAT gateway")


def without(queue: str) -> Callable[[Costs], float]:
    """Return the sum at MaxCount, without what depends on the nodes of a queue."""
    return lambda estimated: float(estimated.at_max_count.hour or 0) - sum_of(estimated, f"{queue}/")


@pytest.mark.parametrize(
    ("rung", "nodes", "hourly"),
    [
        (1, 2, network_and_storage),
        (2, 2, lambda estimated: float(estimated.hourly_without_nodes)),
        (3, 2, lambda estimated: float(estimated.hourly_without_nodes)),
        (4, 2, without("trn1")),
        (5, 2, without("small")),
        (6, 16, without("small")),
    ],
)
def test_a_rung_costs_what_the_page_says(rung: int, nodes: int, hourly: Callable[[Costs], float]) -> None:
    dollars = hourly(costs(ladder(nodes), Prices("us-west-2", remark="a test")))
    [(an_hour, hours, sum_)] = re.findall(
        rf"^\| \[{rung}\. .*?\| ([\d.]+) \| (\d+) \| ([\d,]+) \|$", PAGE, re.MULTILINE
    )
    assert float(an_hour) == pytest.approx(dollars, abs=0.006)
    assert float(sum_.replace(",", "")) == pytest.approx(dollars * int(hours), abs=0.6)


SUBMIT = re.compile(r"(?:submit\.py\"|ultracluster submit [\w-]+) (--[^`\n#]*--output[^`\n#]*)")
SUBMITTED = [
    (path.name, command)
    for path in sorted((PROJECT / "docs").rglob("*.md"))
    for command in SUBMIT.findall(path.read_text(encoding="utf-8").replace("\\\n", ""))
]


@pytest.mark.parametrize(("page", "command"), SUBMITTED)
def test_the_training_program_takes_what_a_page_submits(page: str, command: str) -> None:
    words = shlex.split(command)
    end = words.index("--") if "--" in words else len(words)
    given, further = submit.parser().parse_args(words[:end]), words[end + 1 :]
    if given.program != "bert":
        return
    parsed = options.parse(["check", f"--nodes={given.nodes}", f"--output={given.output}", *further])
    assert options.contradictions(parsed) == []
