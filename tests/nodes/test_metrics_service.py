"""The service of the metrics on whole machines: installed, run as its unit has it, ended and removed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

import pytest

from emulator.machines.hardware.files import FAKES
from tests.nodes.facts import COMPUTE_NODE
from tests.nodes.machine import NO_INTERNET, Machine, Outcome

pytestmark = [pytest.mark.slow, pytest.mark.system]

Machines = Callable[..., Machine]
NAME = "ultracluster-metrics.service"
UNIT = f"/etc/systemd/system/{NAME}"
LINK = f"/etc/systemd/system/multi-user.target.wants/{NAME}"
SERVICE = COMPUTE_NODE | {"metrics": "on"}


def run(machine: Machine, facts: Mapping[str, str] = SERVICE) -> Outcome:
    outcome = machine.run("compute_node.sh", facts, sites=NO_INTERNET)
    assert outcome.code == 0, outcome.output
    return outcome


def unit_of(machine: Machine) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", machine.read(UNIT), re.MULTILINE))


@pytest.fixture
def trn1(compute_node: Machines) -> Machine:
    """A trn1.2xlarge that sends metrics, with neuron-monitor; what it sends is kept."""
    machine = compute_node(instance_type="trn1.2xlarge")
    machine.write("/etc/neuron-monitor.period", "0.1")
    machine.write_program("/opt/aws/neuron/bin/neuron-monitor", (FAKES / "neuron-monitor").read_text(encoding="utf-8"))
    # aws cloudwatch put-metric-data ... --cli-input-json JSON ...
    aws = 'while [[ $1 != --cli-input-json ]]; do shift; done; echo "$2" >>/var/log/metrics'
    machine.write_program("/usr/local/bin/aws", aws)
    run(machine)
    return machine


def test_it_is_there_while_it_is_switched_on(trn1: Machine) -> None:
    calls = trn1.read("/var/log/systemctl").splitlines()
    assert calls[calls.index(f"enable --now {NAME}") - 1] == "daemon-reload"
    assert trn1.path(LINK).is_symlink()
    again = run(trn1)
    assert "wrote" not in again.output
    assert f"disable --now {NAME}" not in trn1.read("/var/log/systemctl")
    run(trn1, COMPUTE_NODE | {"metrics": "off"})
    calls = trn1.read("/var/log/systemctl").splitlines()
    assert calls[calls.index(f"disable --now {NAME}") + 1] == "daemon-reload"
    assert not trn1.path(UNIT).exists()
    assert not trn1.path(LINK).is_symlink()


def test_it_runs_as_its_unit_has_it_and_ends_with_a_last_report(trn1: Machine) -> None:
    unit = unit_of(trn1)
    assert unit["ExecStart"] == "/usr/bin/python3 -Bu -m metrics.compute_node us-west-2 trn1-16 trn1"
    trn1.write("/command.sh", f"""
        cd {unit["WorkingDirectory"]}
        export {unit["Environment"]}
        {unit["ExecStart"]} &
        until (($(cat /var/log/neuron-monitor 2>/dev/null | wc -l) > 2)); do sleep 0.1; done
        kill -TERM $!
        wait $!
        ! pgrep --full /opt/aws/neuron/bin/neuron-monitor || exit 1
        """)  # fmt: skip
    assert trn1.output_of("timeout 500 bash /command.sh") == ""
    request = json.loads(trn1.read("/var/log/metrics").splitlines()[-1])  # one of a minute that ended may be before it
    of_node = {"Cluster": "trn1-16", "Queue": "trn1", "Node": trn1.name}
    values = {
        datum["MetricName"]: datum["Value"]
        for datum in request["MetricData"]
        if {each["Name"]: each["Value"] for each in datum["Dimensions"]} == of_node
    }
    assert "NodesReporting" not in values
    assert values["NeuronDeviceMemoryUsed"] == 101876188
    assert values["ExecutionErrors"] % 23692 == 0
