"""The service of the metrics on whole machines: installed, run as its unit has it, ended and removed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.nodes.facts import COMPUTE_NODE
from tests.nodes.hardware_files import SHAPES
from tests.nodes.machine import NO_INTERNET, Machine, Outcome
from tests.nodes.packages import HERE

pytestmark = [pytest.mark.slow, pytest.mark.system]

Machines = Callable[..., Machine]
NAME = "ultracluster-metrics.service"
UNIT = f"/etc/systemd/system/{NAME}"
LINK = f"/etc/systemd/system/multi-user.target.wants/{NAME}"
CALLS = "/var/log/systemctl"
AWS = """\
#!/bin/bash
# aws cloudwatch put-metric-data ... --cli-input-json JSON ...: keeps what is sent.
while [[ $1 != --cli-input-json ]]; do shift; done
echo "$2" >>/var/log/metrics
"""
SERVICE = {"metrics": "on"}


def run(machine: Machine, script: str = "compute_node.sh", facts: Mapping[str, str] = COMPUTE_NODE) -> Outcome:
    return machine.run(script, facts)


def unit_of(machine: Machine) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", machine.read(UNIT), re.MULTILINE))


def calls(machine: Machine) -> list[str]:
    """Return what systemctl was told of the service since the last time, with the daemon-reload that it takes."""
    if not machine.path(CALLS).exists():
        return []
    text = machine.read(CALLS)
    machine.write(CALLS, "")
    told = ["", *text.splitlines(), ""]
    return [
        call
        for before, call, after in zip(told, told[1:], told[2:], strict=False)
        if NAME in call
        or (call == "daemon-reload" and (f"disable --now {NAME}" in before or after == f"enable --now {NAME}"))
    ]


def give(machine: Machine, path: str, program: str) -> None:
    machine.write(path, program)
    machine.path(path).chmod(0o755)


def sent(machine: Machine, command: str) -> list[dict[str, float]]:
    """Run a command on the machine and return what it sent for the node, by metric, call by call."""
    give(machine, "/usr/local/bin/aws", AWS)
    machine.write("/command.sh", command)
    with machine.execute(["timeout", "500", "bash", "/command.sh"], sites=NO_INTERNET) as process:
        output, errors = process.communicate(timeout=600)
    assert (process.returncode, output, errors) == (0, "", "")
    requests: list[Any] = [json.loads(line) for line in machine.read("/var/log/metrics").splitlines()]
    assert {each["Namespace"] for each in requests} == {"UltraCluster"}
    return [
        {
            datum["MetricName"]: datum["Value"]
            for datum in each["MetricData"]
            if [dimension["Value"] for dimension in datum["Dimensions"]] == ["trn1-16", "trn1", machine.name]
        }
        for each in requests
    ]


@pytest.fixture
def trn1(compute_node: Machines) -> Machine:
    """A trn1.2xlarge that sends metrics, with neuron-monitor."""
    machine = compute_node(instance_type="trn1.2xlarge")
    shape = (SHAPES / "trn1.2xlarge/neuron-monitor.json").read_text(encoding="utf-8")
    machine.write("/etc/neuron-monitor.json", shape)
    monitor = (HERE / "fakes/neuron-monitor").read_text(encoding="utf-8")
    give(machine, "/opt/aws/neuron/bin/neuron-monitor", monitor)
    assert run(machine, facts=COMPUTE_NODE | SERVICE).code == 0
    return machine


def test_it_is_there_while_it_is_switched_on_and_a_second_run_changes_nothing(machine: Machines) -> None:
    node = machine(instance_type="c6i.4xlarge")
    outcome = run(node, facts=COMPUTE_NODE | SERVICE)
    assert outcome.code == 0, outcome.output
    assert unit_of(node)["WorkingDirectory"] == "/opt/ultracluster/current"
    assert unit_of(node)["ExecStart"] == "/usr/bin/python3 -Bu -m metrics.compute_node us-west-2 trn1-16 trn1"
    assert node.path(LINK).is_symlink()
    assert calls(node) == ["daemon-reload", f"enable --now {NAME}"]
    before = node.manifest()
    again = run(node, facts=COMPUTE_NODE | SERVICE)
    assert (again.code, "wrote" in again.output) == (0, False)
    assert {path for path, state in node.manifest().items() if before.get(path) != state} <= {
        "upper/var/log/lctl", f"upper{CALLS}"
    }  # fmt: skip
    assert f"disable --now {NAME}" not in calls(node)
    for told in ([f"disable --now {NAME}", "daemon-reload"], []):
        assert run(node, facts=COMPUTE_NODE | {"metrics": "off"}).code == 0
        assert calls(node) == told
    assert not node.path(UNIT).exists()
    assert not node.path(LINK).is_symlink()


def test_it_runs_as_its_unit_has_it_and_ends_with_a_last_report(trn1: Machine) -> None:
    unit = unit_of(trn1)
    [last] = sent(trn1, f"""
        cd {unit["WorkingDirectory"]}
        export {unit["Environment"]}
        {unit["ExecStart"]} &
        until (($(cat /var/log/neuron-monitor 2>/dev/null | wc -l) > 2)); do sleep 0.1; done
        kill -TERM $!
        wait $!
        ! pgrep --full /opt/aws/neuron/bin/neuron-monitor || exit 1
        """)  # fmt: skip
    assert "NodesReporting" not in last
    assert last["NeuronDeviceMemoryUsed"] == 101876188
    assert last["ExecutionErrors"] % 23692 == 0
