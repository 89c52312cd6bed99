"""The parts of the metrics: how they are counted, asked for and sent."""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from emulator.machines.hardware.files import neuron_monitor_report
from nodes.metrics import cloudwatch, counters, neuron_monitor, service
from nodes.metrics.cloudwatch import CloudWatch, Metric
from tests.fake_commands import write_commands

PROJECT = Path(__file__).parents[2]


def test_a_command_that_is_not_there_or_hangs_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    some = [Metric("NodesReporting", 1, "Count", {"Cluster": "a"})]
    assert not CloudWatch("us-west-2").send(some, 0)
    write_commands(tmp_path, {"aws": "exec /bin/sleep 60"})
    monkeypatch.setattr(cloudwatch, "_TIME_LIMIT", 0.2)
    assert not CloudWatch("us-west-2").send(some, 0)
    assert [each.partition(":")[0] for each in capfd.readouterr().out.splitlines()] == [
        "FileNotFoundError",
        "TimeoutExpired",
    ]


def test_a_device_that_appears_is_counted_from_then_on() -> None:
    before = {"EfaSentBytes": {"a": 5}}
    assert counters.increases(before, {"EfaSentBytes": {"a": 6, "b": 1000}}) == {"EfaSentBytes": 1}
    assert counters.increases({}, {"EfaSentBytes": {"b": 1000}}) == {"EfaSentBytes": 0}


def test_several_reports_in_a_minute_are_averaged_and_their_errors_added() -> None:
    first = neuron_monitor_report("trn1.2xlarge")
    second = json.loads(json.dumps(first))
    report = second["neuron_runtime_data"][0]["report"]
    report["neuroncore_counters"]["neuroncores_in_use"]["1"]["neuroncore_utilization"] = 50
    report["memory_used"]["neuron_runtime_used_bytes"]["neuron_device"] = 5
    assert neuron_monitor.summarize([first, second]) == {
        "NeuronCoreUtilization": pytest.approx((1.3560819560861623 * 2 + 50) / 2 / 2),
        "NeuronDeviceMemoryUsed": 5,
    }
    assert neuron_monitor.execution_errors([first, second]) == 2 * 23692


def test_groups_may_be_missing() -> None:
    used = neuron_monitor_report("trn1.2xlarge")
    report = {**used, "neuron_runtime_data": [{"report": None}, {"report": {"execution_stats": None}}]}
    assert neuron_monitor.execution_errors([report]) == 0
    assert neuron_monitor.summarize([report]) == {"NeuronCoreUtilization": 0, "NeuronDeviceMemoryUsed": 0}
    assert neuron_monitor.summarize([{**used, "neuron_hardware_info": None}]) == {}, "without devices"
    unused = {**used, "neuron_runtime_data": []}
    assert neuron_monitor.summarize([used, unused]) == neuron_monitor.summarize([used]), "the job has just ended"


def test_nodes_spread_their_calls_over_the_minute_and_each_keeps_its_moment() -> None:
    turns = [service.next_turn(1_800_000_000, f"trn1-dy-trn1-32xl-{number}") % 60 for number in range(1875)]
    of_seconds = Counter(map(int, turns))
    assert len(of_seconds) == 60
    assert max(of_seconds.values()) < 60, "of 1,875 nodes, 31 a second in the mean"
    first = service.next_turn(1_800_000_000, "a")
    assert 0 < first - 1_800_000_000 <= 60
    assert service.next_turn(first, "a") == pytest.approx(first + 60)
    assert service.next_turn(first + 59, "a") == pytest.approx(first + 60)
    assert service.next_turn(first + 61, "a") == pytest.approx(first + 120)


def test_it_asks_neuron_monitor_once_a_minute_for_what_it_uses() -> None:
    path = PROJECT / "nodes/metrics/neuron_monitor.json"
    configuration = json.loads(path.read_text(encoding="utf-8"))
    assert configuration["period"] == f"{service.PERIOD:.0f}s"
    [runtimes] = configuration["neuron_runtimes"]
    assert {metric["type"] for metric in runtimes["metrics"]} == {
        "neuroncore_counters", "memory_used", "execution_stats"
    }  # fmt: skip


PROGRAMS = [*(PROJECT / "nodes").rglob("*.py"), PROJECT / "training/submit.py"]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_of_nodes_are_python_3_9(path: Path) -> None:
    """That of Amazon Linux 2023. What only newer Pythons know in annotations is never evaluated."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 9))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
    if "def " in text:
        assert "from __future__ import annotations" in text
