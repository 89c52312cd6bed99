"""The metrics of compute nodes: what arrives in CloudWatch, sent by the real AWS command line to an emulated AWS."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from moto.cloudwatch.models import cloudwatch_backends
from moto.core.models import DEFAULT_ACCOUNT_ID as ACCOUNT_ID
from moto.server import ThreadedMotoServer

from nodes.metrics.cloudwatch import CloudWatch, Metric
from nodes.metrics.compute_node import ComputeNode
from nodes.metrics.neuron_monitor import PROGRAM
from tests.nodes.hardware_files import DEVICES, hardware_files, neuron_monitor_report
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


class Account:
    """An emulated account, empty at first."""

    def __init__(self, server: ThreadedMotoServer) -> None:
        self.endpoint = f"http://127.0.0.1:{server.get_host_and_port()[1]}"

    def arrived(self, of: tuple[tuple[str, str], ...] = OF_NODE) -> Values:
        """Return the sum of each metric with these dimensions. moto's own statistics take more dimensions for less."""
        sums: Counter[str] = Counter()
        for metric in cloudwatch_backends[ACCOUNT_ID][REGION].metric_data:
            assert metric.namespace == "UltraCluster"
            if tuple(sorted((each.name, each.value) for each in metric.dimensions)) == of:
                sums[metric.name] += metric.value  # type: ignore[attr-defined]
        return dict(sums)


@pytest.fixture(scope="module")
def _server() -> Iterator[ThreadedMotoServer]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def account(_server: ThreadedMotoServer, monkeypatch: pytest.MonkeyPatch) -> Account:
    """Return an account that the AWS command line of the tests reaches."""
    account = Account(_server)
    for name, value in {
        "PATH": f"{PROJECT / '.venv-pcluster/bin'}:/usr/local/bin:/usr/bin:/bin",
        "AWS_ENDPOINT_URL": account.endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }.items():
        monkeypatch.setenv(name, value)
    urllib.request.urlopen(f"{account.endpoint}/moto-api/reset", data=b"")  # noqa: S310
    return account


class Node:
    """A compute node whose root directory is one of the tests; it begins to count when it is made."""

    def __init__(self, root: Path, instance_type: str) -> None:
        self.root = root
        self._turn = time.time()
        if instance_type.startswith("trn"):
            for path, text in hardware_files(instance_type).items():
                self.write(path, text)
            os.mkfifo(root / "reports")
            # It prints each line that tests write, as neuron-monitor prints a line at each period.
            self.write(f"/{PROGRAM}", f"#!/bin/bash\necho $$ >{root}/process\nexec cat <>{root}/reports\n")
            (root / PROGRAM).chmod(0o755)
        self.service = ComputeNode(CloudWatch(REGION), DIMENSIONS, root)

    def write(self, path: str, text: str) -> None:
        target = self.root / path.removeprefix("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def start_monitor(self) -> int:
        """Let the service see to it that neuron-monitor runs, and return its process."""
        (self.root / "process").unlink(missing_ok=True)
        self.service.monitor.keep_running()
        wait_until(lambda: (self.root / "process").exists() and (self.root / "process").read_text("utf-8") != "")
        return int((self.root / "process").read_text(encoding="utf-8"))

    def tell(self, *lines: str) -> None:
        """Let neuron-monitor print lines, and wait until the service has them."""
        known = len(self.service.monitor._lines)
        with (self.root / "reports").open("w", encoding="utf-8") as reports:
            reports.writelines(f"{line}\n" for line in lines)
        wait_until(lambda: len(self.service.monitor._lines) == known + len(lines))

    def report(self) -> None:
        self._turn += 60
        self.service.report(self._turn)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Callable[[str], Node]]:
    made = []

    def make(instance_type: str) -> Node:
        made.append(Node(tmp_path, instance_type))
        return made[-1]

    yield make
    for each in made:
        each.service.monitor.stop()


def line(instance_type: str) -> str:
    return json.dumps(neuron_monitor_report(instance_type))


def test_a_trn1_32xlarge_tells_everything_of_itself_and_of_its_queue(
    account: Account, node: Callable[[str], Node]
) -> None:
    trn1 = node("trn1.32xlarge")
    trn1.start_monitor()
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
    assert account.arrived() == expected
    assert account.arrived(OF_QUEUE) == expected
    assert expected.keys() == set(metrics.OF_COMPUTE_NODES)
    assert account.arrived(OF_CLUSTER) == {metrics.HELD_IDLE: 0}


def test_a_trn1_2xlarge_has_no_efa(account: Account, node: Callable[[str], Node]) -> None:
    small = node("trn1.2xlarge")
    small.start_monitor()
    small.tell(line("trn1.2xlarge"))
    small.report()
    assert account.arrived() == {
        "NeuronCoreUtilization": 1.3560819560861623 / 2,
        "NeuronDeviceMemoryUsed": 101876188,
        "ExecutionErrors": 23692,
        "UncorrectableErrors": 0,
        "NodesReporting": 1,
    }


def test_a_node_that_a_job_holds_without_use_of_its_cores_tells_for_how_long(
    account: Account, node: Callable[[str], Node]
) -> None:
    held = node("trn1.2xlarge")
    held.start_monitor()
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
        urllib.request.urlopen(f"{account.endpoint}/moto-api/reset", data=b"")  # noqa: S310
        held.report()
        told.append((account.arrived(OF_CLUSTER).get(metrics.HELD_IDLE), account.arrived().get(metrics.HELD_IDLE)))
    unknown, begins = (None, None), (0, None)
    assert told[:6] == [begins, begins, (60, 60), begins, begins, begins]
    assert told[6:11] == [unknown, begins, unknown, unknown, (180, 180)]
    assert told[11:] == [unknown, begins]


def test_a_node_without_neuron_devices_tells_that_it_is_there(account: Account, node: Callable[[str], Node]) -> None:
    other = node("c6i.4xlarge")
    other.report()
    assert account.arrived() == {"NodesReporting": 1}


@pytest.mark.parametrize("runtimes", [None, []])
def test_a_node_that_nobody_uses_has_no_utilization_and_tells_that_it_is_there(
    account: Account, node: Callable[[str], Node], runtimes: object
) -> None:
    idle = node("trn1.2xlarge")
    idle.start_monitor()
    idle.tell(json.dumps({**neuron_monitor_report("trn1.2xlarge"), "neuron_runtime_data": runtimes}))
    idle.report()
    assert account.arrived() == account.arrived(OF_QUEUE) == {"UncorrectableErrors": 0, "NodesReporting": 1}


def test_a_program_that_holds_its_cores_and_does_nothing_has_a_utilization_of_0(
    account: Account, node: Callable[[str], Node]
) -> None:
    report = neuron_monitor_report("trn1.2xlarge")
    cores = report["neuron_runtime_data"][0]["report"]["neuroncore_counters"]["neuroncores_in_use"]
    for core in cores.values():
        core["neuroncore_utilization"] = 0
    waiting = node("trn1.2xlarge")
    waiting.start_monitor()
    waiting.tell(json.dumps(report))
    waiting.report()
    arrived = account.arrived()
    assert (arrived["NeuronCoreUtilization"], arrived["NeuronDeviceMemoryUsed"]) == (0, 101876188)


def test_counters_are_told_once_and_may_begin_anew(account: Account, node: Callable[[str], Node]) -> None:
    trn1 = node("trn1.32xlarge")
    for value in ("3\n", "3\n", "1\n"):  # the driver was loaded anew, and there is another error
        trn1.write(SRAM, value)
        trn1.write(EFA.format(0, "rx_bytes"), f"{value.strip()}000\n")
        trn1.report()
    arrived = account.arrived()
    assert arrived["UncorrectableErrors"] == 3 + 0 + 1
    assert arrived["EfaReceivedBytes"] == 2000 + 0 + 1000


def test_neuron_monitor_may_die_in_the_middle_of_a_line_and_comes_back(
    account: Account, node: Callable[[str], Node]
) -> None:
    small = node("trn1.2xlarge")
    process = small.start_monitor()
    small.tell('{"neuron_runtime_data": [')
    os.kill(process, signal.SIGKILL)
    small.service.monitor._process.wait()  # type: ignore[union-attr]
    (small.root / "process").unlink()
    small.report()
    assert account.arrived() == {"UncorrectableErrors": 0, "NodesReporting": 1}
    wait_until(lambda: (small.root / "process").exists() and (small.root / "process").read_text("utf-8") != "")
    small.tell(line("trn1.2xlarge"))
    small.report()
    assert account.arrived()["NeuronDeviceMemoryUsed"] == 101876188


def test_without_a_network_it_goes_on_and_what_was_counted_comes_later(
    account: Account, node: Callable[[str], Node], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    small = node("trn1.2xlarge")
    small.start_monitor()
    with monkeypatch.context() as nowhere:
        nowhere.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        for errors in ("1\n", "2\n"):
            small.write(f"{DEVICES}/neuron0/stats/hardware/mem_ecc_uncorrected", errors)
            small.tell(line("trn1.2xlarge"))
            small.report()
    assert account.arrived() == {}
    small.report()
    small.report()
    arrived = account.arrived()
    assert (arrived["UncorrectableErrors"], arrived["ExecutionErrors"], arrived["NodesReporting"]) == (2, 2 * 23692, 2)
    outage, end = (each for each in capfd.readouterr().out.splitlines() if each)
    assert "127.0.0.1:9" in outage
    assert end == "It works again."


class Throttling(BaseHTTPRequestHandler):
    """A service that has enough of everybody."""

    calls = 0

    def do_POST(self) -> None:
        Throttling.calls += 1
        self.send_response(400)
        self.send_header("x-amzn-query-error", "Throttling;Sender")
        self.end_headers()
        self.wfile.write(b'{"__type": "Throttling", "message": "Rate exceeded"}')


def test_nothing_is_tried_again_where_cloudwatch_has_enough(
    account: Account, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Throttling) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        assert not CloudWatch(REGION).send([Metric("NodesReporting", 1, "Count", DIMENSIONS)], 0)
        server.shutdown()
    assert Throttling.calls == 1
    assert "(Throttling)" in capfd.readouterr().out


def test_what_ends_the_service_is_told_before_it_ends(account: Account, node: Callable[[str], Node]) -> None:
    """The epilog of a job that met an error stops the service, to load the driver anew."""
    trn1 = node("trn1.32xlarge")
    trn1.write(SRAM, "1\n")
    trn1.service.report_last()
    arrived = account.arrived()
    assert arrived["UncorrectableErrors"] == 1
    assert "NodesReporting" not in arrived, "one node counts once a minute"
