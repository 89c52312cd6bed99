"""The health checks, with fakes of what they look at and of the commands that they ask."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emulator.machines.hardware.files import DEVICES, NODE_FACTS, SHAPES, hardware_files, node_facts
from tests.fake_commands import write_commands

PROJECT = Path(__file__).parents[2]
HEALTH = PROJECT / "nodes" / "health"
NAME = "trn1-dy-trn1-32xl-7"
HARDWARE_ERRORS = (SHAPES / "hardware_errors.txt").read_text(encoding="utf-8").splitlines()

COMMAND_FAKES = {
    "journalctl": '[[ ! -e $HEALTH_ROOT/no-journal ]] && cat "$HEALTH_ROOT/kernel.log"',
    "dmesg": 'cat "$HEALTH_ROOT/ring-buffer"',
    "mountpoint": "[[ ! -e $2/unmounted ]]",
    "modprobe": """
        echo "modprobe $*" >>"$HEALTH_ROOT/calls"
        [[ ! -e $HEALTH_ROOT/in-use ]] || exit 1
        if [[ $1 == --remove ]]; then exit; fi
        mkdir -p "$HEALTH_ROOT/sys/module/neuron"
        for counter in "$HEALTH_ROOT"/sys/devices/virtual/neuron_device/*/stats/hardware/*; do
            echo 0 >"$counter"
        done""",
    "pgrep": 'for process in $(cat "$HEALTH_ROOT/processes"); do kill -0 "$process" && echo "$process"; done; true',
    "pkill": 'echo "pkill $*" >>"$HEALTH_ROOT/calls"; false',
    "scontrol": """
        case $1 in
            listpids) cat "$HEALTH_ROOT/listpids" ;;
            update) shift; printf '%s\\n' "$@" >"$HEALTH_ROOT/update" ;;
        esac""",
    "systemctl": """
        [[ $2 != is-enabled ]] || exec test -e "$HEALTH_ROOT/metrics"
        echo "systemctl $*" >>"$HEALTH_ROOT/calls\"""",
}


class Node:
    """A node whose file system is a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.fit("trn1.32xlarge")
        self.write("/listpids", "PID JOBID STEPID LOCALID GLOBALID\n")
        self.write("/processes", "")
        for directory in ("fsx", "scratch", "proc"):
            (root / directory).mkdir()
        write_commands(root / "bin", COMMAND_FAKES)

    def fit(self, instance_type: str, **facts: str) -> None:
        for directory in ("sys", "var"):
            shutil.rmtree(self.root / directory, ignore_errors=True)
        if instance_type.startswith("trn"):
            for path, text in hardware_files(instance_type).items():
                self.write(path, text)
            shutil.copy(SHAPES / instance_type / "dmesg.txt", self.root / "kernel.log")
        self.write(NODE_FACTS, node_facts(instance_type, f"{self.root}/fsx", f"{self.root}/scratch", **facts))

    def write(self, path: str, text: str) -> None:
        """Write a file, and the directories that it is in."""
        target = self.root / path.removeprefix("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def remove(self, path: str) -> None:
        shutil.rmtree(self.root / path.removeprefix("/"))

    def hold_device(self, process: int, name: str) -> None:
        """Let a process have a Neuron device open."""
        self.write(f"/proc/{process}/comm", f"{name}\n")
        (self.root / f"proc/{process}/fd").mkdir()
        (self.root / f"proc/{process}/fd/5").symlink_to("/dev/neuron3")

    def read(self, path: str) -> str:
        file = self.root / path.removeprefix("/")
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def check(self, when: str = "prolog", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the check. The time limit only ends a check that hangs."""
        return subprocess.run(
            ["bash", str(HEALTH / "check.sh"), when],
            env={
                "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}", "HEALTH_ROOT": str(self.root),
                "SLURMD_NODENAME": NAME, **environment,
            },
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip

    @property
    def reason(self) -> str:
        """Reason that the node was drained with; empty if it was not."""
        update = self.read("/update")
        if not update:
            return ""
        node, state, reason, comment = update.splitlines()
        assert (node, state) == (f"nodename={NAME}", "state=drain")
        assert re.fullmatch(r"comment=ultracluster: drained at \d+", comment)
        return reason.removeprefix("reason=")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as sleeping:
        yield sleeping
        sleeping.kill()


def assert_healthy(node: Node, when: str = "prolog", **environment: str) -> None:
    done = node.check(when, **environment)
    assert (done.returncode, done.stdout, done.stderr, node.reason) == (0, "", "", "")


@pytest.mark.parametrize(
    ("instance_type", "when"),
    [
        ("trn1.32xlarge", "prolog"),
        ("trn1.32xlarge", "epilog"),
        ("trn1n.32xlarge", "prolog"),
        ("trn1.2xlarge", "prolog"),
        ("c6i.4xlarge", "prolog"),
    ],
)
def test_nothing_is_found_on_a_healthy_node(node: Node, instance_type: str, when: str) -> None:
    node.fit(instance_type)
    if instance_type == "c6i.4xlarge":
        node.write("/scratch/unmounted", "")  # it has no local disks
    assert_healthy(node, when)
    assert list((node.root / "fsx").iterdir()) == []


def show_in_ring_buffer_only(node: Node, line: str) -> None:
    node.write("/no-journal", "")
    node.write("/ring-buffer", f"{line}\n")


def fill(node: Node) -> None:
    """Let writing to the shared storage fail as Lustre does: when data are written through."""
    sync = '[[ $1 != */fsx/* ]] || { echo "sync: error syncing $1: No space left on device" >&2; exit 1; }'
    write_commands(node.root / "bin", {"sync": sync})


Fault = Callable[[Node], object]
FAULTS: list[tuple[str, str, str, Fault]] = [
    ("NODE_UNKNOWN", "{root}/var/lib/ultracluster/node.env does not tell what the node is", "drain-requeue",
     lambda node: node.fit("")),
    ("NEURON_DRIVER", "the driver is not loaded", "reload-driver", lambda node: node.remove("/sys/module/neuron")),
    ("NEURON_DEVICES", "15 of 16 Neuron devices of trn1.32xlarge are there", "replace",
     lambda node: node.remove(f"{DEVICES}/neuron9")),
    ("EFA_DEVICES", "7 of 8 EFA devices of trn1.32xlarge work", "replace",
     lambda node: node.remove("/sys/class/infiniband/rdmap3s26")),
    ("SRAM_ECC", "neuron4 has sram_ecc_uncorrected 2", "replace",
     lambda node: node.write(f"{DEVICES}/neuron4/stats/hardware/sram_ecc_uncorrected", "2\n")),
    ("HBM_ECC", "neuron15 has mem_ecc_uncorrected 1", "replace",
     lambda node: node.write(f"{DEVICES}/neuron15/stats/hardware/mem_ecc_uncorrected", "1\n")),
    ("HBM_ECC_REPAIRABLE", "neuron0 has mem_ecc_repairable_uncorrected 1", "reload-driver",
     lambda node: node.write(f"{DEVICES}/neuron0/stats/hardware/mem_ecc_repairable_uncorrected", "1\n")),
    ("NEURON_HW_ERR", "DMA_ERROR nd-id=1", "replace",
     lambda node: show_in_ring_buffer_only(node, "NEURON_HW_ERR=DMA_ERROR nd-id=1")),
    ("KERNEL_LOG", "the check gave no answer", "drain-requeue", lambda node: node.write("/no-journal", "")),
    ("SHARED_STORAGE", "nothing is mounted on {root}/fsx", "drain-requeue",
     lambda node: node.write("/fsx/unmounted", "")),
    ("SHARED_STORAGE", "{root}/fsx cannot be written: No space left on device", "drain-requeue",
     fill),
    ("SCRATCH", "nothing is mounted on {root}/scratch", "drain-requeue",
     lambda node: node.write("/scratch/unmounted", "")),
    ("STALE_PROCESS", "process 4711 (python3) holds Neuron devices", "drain-requeue",
     lambda node: node.hold_device(4711, "python3")),
]  # fmt: skip


@pytest.mark.parametrize(("code", "what", "action", "fault"), FAULTS)
def test_a_fault_drains_the_node_and_says_why(node: Node, code: str, what: str, action: str, fault: Fault) -> None:
    fault(node)
    done = node.check()
    assert (done.returncode, done.stderr) == (1, "")
    assert node.reason == f"ultracluster: {code}: {what.format(root=node.root)} ({action})"
    assert done.stdout == f"{node.reason}\n"


def test_nobody_takes_the_name_of_the_file_that_the_check_writes(node: Node) -> None:
    """All users may write where it does: who knew the name could get nodes drained."""
    take = f"""
        for ((process = PPID; process > 1; process = parent)); do
            mkdir "$2/.health-{NAME}-$process"
            read -r _ _ _ parent _ <"/proc/$process/stat"
        done
        true"""
    write_commands(node.root / "bin", {"mountpoint": take})
    done = node.check()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    left = [*(node.root / "fsx").iterdir(), *(node.root / "scratch").iterdir()]
    assert [path for path in left if path.is_file()] == []


COMMANDS = (
    "awk", "basename", "cat", "dmesg", "find", "grep", "head", "journalctl", "mktemp", "mountpoint", "rm", "scontrol",
    "sed", "sort", "sync",
)  # fmt: skip
"""What a prolog may call."""


@pytest.mark.slow
def test_a_prolog_whose_every_command_hangs_ends_within_ten_seconds(node: Node) -> None:
    """No time is measured: each limit is noted, and they are added up. A command without a limit would never end."""
    hanging = dict.fromkeys(COMMANDS, f"exec {shutil.which('sleep')} 20")
    write_commands(node.root / "bin", {**hanging, "timeout": 'echo "$*" >>"$HEALTH_ROOT/limits"'})
    (node.root / "bin/bash").symlink_to("/bin/bash")
    counter = node.root / DEVICES[1:] / "neuron0/stats/hardware/sram_ecc_uncorrected"
    counter.unlink()
    os.mkfifo(counter)
    try:
        done = node.check(PATH=str(node.root / "bin"))
    finally:
        os.close(os.open(counter, os.O_RDWR))  # lets the probe continue
    assert (done.returncode, done.stderr) == (1, ""), "and it calls nothing else"
    script = (HEALTH / "check.sh").read_text(encoding="utf-8")
    probes = re.findall(r"^readonly PROBES=\((.*)\)$", script, re.MULTILINE)[0].split()
    assert [line.split(": ")[1:2] for line in done.stdout.splitlines()] == [[probe] for probe in probes]
    assert done.stdout.count(": the check gave no answer (") == len(probes)

    patience = float(re.findall(r"^readonly PATIENCE=(\d+)", script, re.MULTILINE)[0])
    other_reads = sum(map(float, re.findall(r"read .*-t (\d+)", script)))
    limits = [line.split(maxsplit=1) for line in node.read("/limits").splitlines()]
    others = sum(float(limit) for limit, command in limits if command != "scontrol listpids")
    assert others > 0
    assert patience + 1 + 0.1 * len(probes) + other_reads + others < 10, "with a second, as SECONDS has no fractions"


def test_the_reason_names_a_critical_finding_first(node: Node) -> None:
    node.write("/scratch/unmounted", "")
    node.remove("/sys/class/infiniband")
    node.write(f"{DEVICES}/neuron0/stats/hardware/mem_ecc_repairable_uncorrected", "1\n")
    done = node.check()
    assert node.reason == (
        "ultracluster: EFA_DEVICES: 0 of 8 EFA devices of trn1.32xlarge work (replace), 2 more in slurmd.log"
    )
    assert len(done.stdout.splitlines()) == 3


def test_a_compute_resource_without_efa_needs_none(node: Node) -> None:
    node.fit("trn1.32xlarge", without_efa="other,trn1-32xl")
    node.remove("/sys/class/infiniband")
    assert_healthy(node)
    node.fit("trn1.32xlarge", without_efa="trn1-32xlarge,trn1-32")
    node.remove("/sys/class/infiniband")
    assert node.check().returncode == 1


@pytest.mark.parametrize("error", HARDWARE_ERRORS, ids=lambda error: error.split()[0])
def test_the_kernel_log_shows_hardware_errors_but_a_hang_may_be_of_another_node(node: Node, error: str) -> None:
    node.write("/kernel.log", f"{node.read('/kernel.log')}[21531.105295] {error}\n")
    if "HANG_ON_COLLECTIVES" in error:
        assert_healthy(node)
    else:
        assert node.check().returncode == 1
        assert node.reason == f"ultracluster: {error.replace('=', ': ', 1)} (replace)"


def test_running_jobs_and_monitors_may_hold_devices(node: Node) -> None:
    node.hold_device(100, "python3")
    node.hold_device(200, "neuron-monitor")
    node.write("/listpids", "PID JOBID STEPID LOCALID GLOBALID\n100 41 0 - -\n")
    assert_healthy(node, SLURM_JOB_ID="42")
    node.check(SLURM_JOB_ID="41")  # the job that ends is none of them
    assert node.reason == "ultracluster: STALE_PROCESS: process 100 (python3) holds Neuron devices (drain-requeue)"


def test_the_name_of_a_process_forges_no_finding(node: Node) -> None:
    node.hold_device(100, "a\nNEURON_HW_ERR x\x1b[2J")
    node.check()
    hidden = "a?NEURON_HW_ERR?x??2J"
    assert node.reason == f"ultracluster: STALE_PROCESS: process 100 ({hidden}) holds Neuron devices (drain-requeue)"


def test_a_finding_can_be_ignored(node: Node) -> None:
    node.write("/opt/slurm/etc/ultracluster_ignored_findings", "SCRATCH\nEFA_DEVICES\n")
    node.remove("/sys/class/infiniband")
    done = node.check()
    assert (done.returncode, node.reason) == (0, "")
    assert done.stdout == "ultracluster: EFA_DEVICES: 0 of 8 EFA devices of trn1.32xlarge work (ignored)\n"
    node.remove(f"{DEVICES}/neuron1")
    assert node.check().returncode == 1


def test_an_epilog_loads_the_driver_again_and_a_prolog_does_not(node: Node) -> None:
    node.write(f"{DEVICES}/neuron0/stats/hardware/mem_ecc_repairable_uncorrected", "1\n")
    assert (node.check().returncode, node.read("/calls")) == (1, "")
    node.write("/update", "")
    done = node.check("epilog")
    assert (done.returncode, node.reason) == (0, "")
    assert done.stdout.count("reload-driver") == 1
    assert node.read("/calls").splitlines()[1:] == ["modprobe --remove neuron", "modprobe neuron"]


@pytest.mark.parametrize("in_use", [False, True])
def test_the_service_of_the_metrics_makes_room_for_the_driver_and_comes_back(node: Node, in_use: bool) -> None:
    node.write("/metrics", "")
    if in_use:
        node.write("/in-use", "")
    node.remove("/sys/module/neuron")
    done = node.check("epilog")
    assert (done.returncode, done.stdout.count("reload-driver")) == (in_use, 1), "and nothing is looked at twice"
    assert ("NEURON_DRIVER" in node.reason) == in_use
    assert [call for call in node.read("/calls").splitlines() if not call.startswith("pkill")] == [
        "systemctl stop ultracluster-metrics.service",
        "modprobe --remove neuron",
        *([] if in_use else ["modprobe neuron"]),
        "systemctl --no-block start ultracluster-metrics.service",
    ]


@pytest.mark.parametrize("also", [True, False])
def test_the_driver_stays_where_it_would_not_help_or_hurt(node: Node, also: bool) -> None:
    node.write(f"{DEVICES}/neuron0/stats/hardware/mem_ecc_repairable_uncorrected", "1\n")
    if also:
        node.write(f"{DEVICES}/neuron1/stats/hardware/sram_ecc_uncorrected", "1\n")
    else:
        node.write("/listpids", "PID JOBID STEPID LOCALID GLOBALID\n100 41 0 - -\n")
    assert node.check("epilog", SLURM_JOB_ID="42").returncode == 1
    assert node.read("/calls") == ""


@pytest.mark.parametrize(
    ("when", "user", "job"), [("prolog", "1001", "42"), ("epilog", "0", "42"), ("epilog", "1001", "41")]
)
def test_other_processes_live_on(node: Node, process: subprocess.Popen[bytes], when: str, user: str, job: str) -> None:
    """Those of root, those of another job of the user, and all before a job."""
    node.write("/processes", f"{process.pid}\n")
    node.write("/listpids", f"PID JOBID STEPID LOCALID GLOBALID\n{process.pid} 42 0 - -\n")
    node.check(when, SLURM_JOB_UID=user, SLURM_JOB_ID=job)
    assert process.poll() is None


def findings() -> dict[str, list[str]]:
    """Severity and action by code, as the scripts have them."""
    script = 'source "$1"; for code in "${!FINDINGS[@]}"; do echo "$code ${FINDINGS[$code]}"; done'
    lines = subprocess.check_output(["bash", "-c", script, "bash", str(HEALTH / "findings.sh")], text=True).splitlines()
    return {code: rest for code, *rest in map(str.split, lines)}


def test_the_documented_table_has_every_finding_and_each_is_tested() -> None:
    assert {code for code, *_ in FAULTS} == findings().keys()
    text = (PROJECT / "docs/reference/health-checks.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `([A-Z_]+)` \| (\S+) \| `(\S+)` \|", text, re.MULTILINE)
    assert {code: list(rest) for code, *rest in documented} == findings()
