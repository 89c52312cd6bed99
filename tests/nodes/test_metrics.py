"""The metrics of compute nodes: what the service sends, and what arrives by the real AWS command line."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from moto.cloudwatch.models import cloudwatch_backends
from moto.core.models import DEFAULT_ACCOUNT_ID as ACCOUNT_ID
from moto.server import ThreadedMotoServer

from emulator.machines.hardware.files import DEVICES, hardware_files, neuron_monitor_report
from nodes.metrics import cloudwatch
from nodes.metrics.cloudwatch import CloudWatch, Metric
from nodes.metrics.compute_node import ComputeNode
from nodes.metrics.neuron_monitor import PROGRAM
from ultracluster.domain import metrics

PROJECT = Path(__file__).parents[2]
REGION = "us-west-2"
DIMENSIONS = {"Cluster": "trn1-16", "Queue": "trn1", "Node": "trn1-dy-trn1-32xl-7"}
OF_NODE = tuple(sorted(DIMENSIONS.items()))
OF_CLUSTER = (("Cluster", "trn1-16"),)
OF_QUEUE = (("Cluster", "trn1-16"), ("Queue", "trn1"))
EFA = "/sys/class/infiniband/rdmap{}s26/ports/1/hw_counters/{}"
SRAM = f"{DEVICES}/neuron4/stats/hardware/sram_ecc_uncorrected"

Values = dict[str, float]
Dimensions = tuple[tuple[str, str], ...]


class Recorder(CloudWatch):
    """Keeps what arrives; nothing does while there is no network."""

    def __init__(self) -> None:
        super().__init__(REGION)
        self.network = True
        self._metrics: list[Metric] = []

    def send(self, metrics: Sequence[Metric], timestamp: float) -> bool:
        if self.network:
            self._metrics.extend(metrics)
        return self.network

    def reset(self) -> None:
        self._metrics.clear()

    def arrived(self, of: Dimensions = OF_NODE) -> Values:
        """Return the sum of each metric with these dimensions."""
        sums: Values = defaultdict(float)
        for metric in self._metrics:
            if tuple(sorted(metric.dimensions.items())) == of:
                sums[metric.name] += metric.value
        return dict(sums)


class Node:
    """A compute node whose root directory is one of the tests; it counts from when it is made."""

    def __init__(self, root: Path, instance_type: str) -> None:
        self.root = root
        self._turn = time.time()
        if instance_type.startswith("trn"):
            for path, text in hardware_files(instance_type).items():
                self.write(path, text)
        self.cloudwatch = Recorder()
        self.service = ComputeNode(self.cloudwatch, DIMENSIONS, root)

    def write(self, path: str, text: str) -> None:
        target = self.root / path.removeprefix("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def tell(self, *lines: str) -> None:
        """Let the service have lines of neuron-monitor."""
        self.service.monitor._lines.extend(lines)

    def report(self) -> None:
        self._turn += 60
        self.service.report(self._turn)


@pytest.fixture
def node(tmp_path: Path) -> Callable[[str], Node]:
    return lambda instance_type: Node(tmp_path, instance_type)


def line(instance_type: str) -> str:
    return json.dumps(neuron_monitor_report(instance_type))


def test_a_trn1_32xlarge_tells_everything_of_itself_and_of_its_queue(node: Callable[[str], Node]) -> None:
    trn1 = node("trn1.32xlarge")
    trn1.tell(line("trn1.32xlarge"))
    trn1.write(SRAM, "2\n")
    trn1.write(f"{DEVICES}/neuron15/stats/hardware/mem_ecc_uncorrected", "10\n")
    trn1.write(f"{DEVICES}/neuron0/stats/hardware/mem_ecc_repairable_uncorrected", "100\n")
    for adapter, counter, value in ((0, "rx_bytes", 1500), (7, "rx_bytes", 1001), (3, "tx_bytes", 9000)):
        trn1.write(EFA.format(adapter, counter), f"{value}\n")
    for part in ("recv_bytes", "send_bytes", "rdma_read_bytes"):
        trn1.write(EFA.format(0, part), "7777\n")
    trn1.report()
    expected: Values = {
        "NeuronCoreUtilization": 24 * 80 / 32,
        "NeuronDeviceMemoryUsed": 3 * 141649980,
        "ExecutionErrors": 3,
        "UncorrectableErrors": 112,
        "EfaReceivedBytes": 501,
        "EfaSentBytes": 8000,
        "EfaRetransmittedBytes": 0,
        "NodesReporting": 1,
    }
    assert trn1.cloudwatch.arrived() == expected
    assert trn1.cloudwatch.arrived(OF_QUEUE) == expected
    assert expected.keys() == set(metrics.OF_COMPUTE_NODES)
    assert trn1.cloudwatch.arrived(OF_CLUSTER) == {metrics.HELD_IDLE: 0}
    trn1.write(SRAM, "3\n")
    trn1.service.report_last()  # the epilog of a job that met an error stops the service, to load the driver again
    assert trn1.cloudwatch.arrived() == expected | {"UncorrectableErrors": 113}, "one node counts once a minute"


def test_a_trn1_2xlarge_has_no_efa_and_without_a_program_no_utilization(node: Callable[[str], Node]) -> None:
    small = node("trn1.2xlarge")
    small.tell(json.dumps({**neuron_monitor_report("trn1.2xlarge"), "neuron_runtime_data": None}))
    small.report()
    assert (
        small.cloudwatch.arrived()
        == small.cloudwatch.arrived(OF_QUEUE)
        == {"UncorrectableErrors": 0, "NodesReporting": 1}
    )
    small.cloudwatch.reset()
    small.tell(line("trn1.2xlarge"))
    small.report()
    assert small.cloudwatch.arrived() == {
        "NeuronCoreUtilization": 1.3560819560861623 / 2,
        "NeuronDeviceMemoryUsed": 101876188,
        "ExecutionErrors": 23692,
        "UncorrectableErrors": 0,
        "NodesReporting": 1,
    }


def test_a_node_that_a_job_holds_without_use_of_its_cores_tells_for_how_long(node: Callable[[str], Node]) -> None:
    held = node("trn1.2xlarge")
    waits = neuron_monitor_report("trn1.2xlarge")
    cores = waits["neuron_runtime_data"][0]["report"]["neuroncore_counters"]["neuroncores_in_use"]
    for core in cores.values():
        core["neuroncore_utilization"] = 0
    held.write("/proc/70/cmdline", "slurmstepd infinity\0")
    unused = {**waits, "neuron_runtime_data": []}
    used, no_driver = neuron_monitor_report("trn1.2xlarge"), {**unused, "neuron_hardware_info": None}
    no_report: dict[str, object] = {}
    told = []
    # Nothing but Slurm itself; a job whose program does not hold the cores, then holds them, then uses them; no job.
    for step, report in ((0, unused), (1, unused), (1, waits), (1, used), (1, unused), (0, unused),
                         # What nobody measured is neither idle nor in use.
                         (1, no_report), (1, unused), (1, no_report), (1, no_driver), (1, waits),
                         # A job after another one, between two reports.
                         (0, no_report), (1, unused)):  # fmt: skip
        held.write("/proc/71/cmdline", "slurmstepd: [13.batch]\0" if step else "bash\0")
        if report:
            held.tell(json.dumps(report))
        held.cloudwatch.reset()
        held.report()
        told.append(
            (
                held.cloudwatch.arrived(OF_CLUSTER).get(metrics.HELD_IDLE),
                held.cloudwatch.arrived().get(metrics.HELD_IDLE),
            )
        )
    unknown, starts = (None, None), (0, None)
    assert told[:6] == [starts, starts, (60, 60), starts, starts, starts]
    assert told[6:11] == [unknown, starts, unknown, unknown, (180, 180)]
    assert told[11:] == [unknown, starts]


def test_counters_are_reported_once_and_may_start_again_at_0(node: Callable[[str], Node]) -> None:
    trn1 = node("trn1.32xlarge")
    for value in ("3\n", "3\n", "1\n"):  # the driver was loaded again, and there is another error
        trn1.write(SRAM, value)
        trn1.write(EFA.format(0, "rx_bytes"), f"{value.strip()}000\n")
        trn1.report()
    arrived = trn1.cloudwatch.arrived()
    assert arrived["UncorrectableErrors"] == 3 + 0 + 1
    assert arrived["EfaReceivedBytes"] == 2000 + 0 + 1000


def test_neuron_monitor_may_die_in_the_middle_of_a_line_and_comes_back(node: Callable[[str], Node]) -> None:
    small = node("trn1.2xlarge")
    dies = f"if mkdir {small.root}/died; then printf '{{\"neuron_runtime_data\": ['; exit 1; fi"
    small.write(f"/{PROGRAM}", f"#!/bin/bash\n{dies}\necho '{line('trn1.2xlarge')}'\nexec sleep 600\n")
    (small.root / PROGRAM).chmod(0o755)
    monitor = small.service.monitor
    monitor.keep_running()
    assert monitor._process
    assert monitor._process.wait() == 1
    small.report()
    assert small.cloudwatch.arrived() == {"UncorrectableErrors": 0, "NodesReporting": 1}
    end = time.monotonic() + 600
    while not monitor._lines or not monitor._lines[-1].endswith("\n"):
        assert time.monotonic() < end
        time.sleep(0.02)
    small.report()
    monitor.stop()
    assert small.cloudwatch.arrived()["NeuronDeviceMemoryUsed"] == 101876188


def test_without_a_network_it_continues_and_what_was_counted_comes_later(node: Callable[[str], Node]) -> None:
    small = node("trn1.2xlarge")
    small.cloudwatch.network = False
    for errors in ("1\n", "2\n"):
        small.write(f"{DEVICES}/neuron0/stats/hardware/mem_ecc_uncorrected", errors)
        small.tell(line("trn1.2xlarge"))
        small.report()
    small.cloudwatch.network = True
    small.report()
    small.report()
    arrived = small.cloudwatch.arrived()
    assert (arrived["UncorrectableErrors"], arrived["ExecutionErrors"], arrived["NodesReporting"]) == (2, 2 * 23692, 2)


@pytest.fixture
def aws_command_line(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The real AWS command line, and an emulated account that it reaches."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    for name, value in {
        "PATH": f"{PROJECT / '.venv-pcluster/bin'}:/usr/local/bin:/usr/bin:/bin",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.get_host_and_port()[1]}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cloudwatch, "_TIME_LIMIT", 600)  # however slow this machine is
    yield
    server.stop()


@pytest.mark.slow
@pytest.mark.usefixtures("aws_command_line")
def test_metrics_arrive_and_what_fails_is_reported_and_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    sender, some = CloudWatch(REGION), [Metric("EfaSentBytes", 5, "Bytes", DIMENSIONS)]
    assert sender.send(some, 1_800_000_000.9)
    [metric] = cloudwatch_backends[ACCOUNT_ID][REGION].metric_data
    assert (metric.namespace, metric.name, metric.unit) == (metrics.NAMESPACE, "EfaSentBytes", "Bytes")
    assert {each.name: each.value for each in metric.dimensions} == DIMENSIONS
    assert metric.timestamp.isoformat() == "2027-01-15T08:00:00"
    with ThreadingHTTPServer(("127.0.0.1", 0), Throttling) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        assert not sender.send(some, 0)
        server.shutdown()
    assert Throttling.calls == 1
    assert "(Throttling)" in capfd.readouterr().out


class Throttling(BaseHTTPRequestHandler):
    """A service that has enough of everybody."""

    calls = 0

    def do_POST(self) -> None:
        Throttling.calls += 1
        self.send_response(400)
        self.send_header("x-amzn-query-error", "Throttling;Sender")
        self.end_headers()
        self.wfile.write(b'{"__type": "Throttling", "message": "Rate exceeded"}')
