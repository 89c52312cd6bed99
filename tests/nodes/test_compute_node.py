"""compute_node.sh, for real: with the package managers, keys, repositories and limits of an operating system.

What is not real is told in base.py: the content of packages, the kernel's modules and the hardware.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from scripts.account.remote.program import words
from scripts.watch.status.software import Software, parse
from tests.nodes.base import Base
from tests.nodes.facts import COMPUTE_NODE, IMAGE, PLAIN_NODE, PROJECT
from tests.nodes.interruptions import HOLD_DPKG, assert_paused_once, break_network
from tests.nodes.machine import ADDRESS, NO_INTERNET, SITES, Machine, Outcome
from tests.nodes.packages import APT, DNF, KERNELS, SYSTEM_PYTHON
from ultracluster.domain.neuron import RELEASES

pytestmark = [pytest.mark.slow, pytest.mark.system]

Machines = Callable[..., Machine]
each_os = pytest.mark.parametrize("os_name", KERNELS)
each_manager = pytest.mark.parametrize("os_name", ["ubuntu2404", "alinux2023"])

DOCUMENT = (PROJECT / "docs/explanation/nodes.md").read_text(encoding="utf-8")
OLDER = RELEASES["2.27.1"]
OLDER_VERSIONS = {
    "driver": OLDER.driver,
    "runtime": OLDER.runtime,
    "collectives": OLDER.collectives,
    "tools": OLDER.tools,
}
PACKAGES = ("dkms", "runtime-lib", "collectives", "tools")
SCRIPT = "compute_node.sh"
_NO_CHANGES = ("/var/log/lctl", "/var/log/systemctl", "rpmdb.sqlite-shm")
LIMITS = "/etc/security/limits.d/99_ultracluster.conf"


def run(machine: Machine, *, sites: str = SITES, seconds_left: int | None = None, **changes: str) -> Outcome:
    return machine.run(SCRIPT, COMPUTE_NODE | changes, sites=sites, seconds_left=seconds_left)


def on_second_try(machine: Machine) -> Machine:
    """Let a machine not try again what cannot be installed."""
    machine.prepare("export SECOND_TRY=1")
    return machine


def assert_failed(outcome: Outcome, code: int, what: str, to_do: str, script: str = SCRIPT) -> None:
    """The last line says what failed and what to do."""
    start, _, end = outcome.last_line.partition(". To do: ")
    assert (outcome.code, start) == (code, f"{script}: failed ({code}): {what}"), outcome.output
    assert to_do in end


def versions(machine: Machine) -> list[str]:
    """Return the versions of Neuron's packages, in the order of PACKAGES, without what a repository adds to them."""
    ask = "rpm -q --qf '%{VERSION}\\n'" if machine.os_name == "alinux2023" else "dpkg-query -W -f '${Version}\\n'"
    found = machine.output_of("; ".join(f"{ask} aws-neuronx-{name}" for name in PACKAGES))
    return [line.replace("-", "_").partition("_")[0] for line in found.splitlines()]


def wanted_versions() -> list[str]:
    return [COMPUTE_NODE[name] for name in OLDER_VERSIONS]


def with_headers(machine: Machine) -> Machine:
    """Give a machine the headers of its kernel, as ParallelCluster's images have them."""
    machine.write(f"/usr/lib/modules/{KERNELS[machine.os_name]}/build/Makefile", "")
    return machine


@pytest.fixture(scope="module")
def _older_nodes(base: Base) -> Callable[[str], Machine]:
    @cache
    def ready(os_name: str) -> Machine:
        machine = Machine(base, os_name)
        outcome = machine.run(SCRIPT, COMPUTE_NODE | OLDER_VERSIONS)
        assert outcome.code == 0, outcome.output
        return machine

    return ready


@pytest.fixture
def older_node(_older_nodes: Callable[[str], Machine], use: Callable[[Machine], Machine]) -> Machines:
    """Return a function that gives a copy of a node on which the script has installed an older release."""
    return lambda os_name: use(_older_nodes(os_name).clone())


@contextmanager
def altered_sites(base: Base, name: str) -> Iterator[tuple[str, Path]]:
    """Give a copy of what is on the internet."""
    directory = base.build / name
    shutil.copytree(base.build / SITES, directory)
    yield name, directory
    shutil.rmtree(directory)


def changes(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """Return what is not as it was. What a fake writes and what SQLite needs to read its database do not count."""
    return {path for path in before | after if before.get(path) != after.get(path) and not path.endswith(_NO_CHANGES)}


@each_os
def test_a_node_gets_what_the_settings_name_and_a_second_run_changes_nothing(
    os_name: str, compute_node: Machines
) -> None:
    machine = compute_node(os_name)
    assert versions(machine) == wanted_versions()
    assert machine.read("/sys/module/neuron/version").strip() == COMPUTE_NODE["driver"]
    assert machine.read(LIMITS).count(" 131072\n") == machine.read(LIMITS).count(" unlimited\n") == 2
    if os_name == "alinux2023":
        assert "\nenabled=0\n" in machine.read("/etc/yum.repos.d/neuron.repo"), "dnf upgrade leaves Neuron alone"
    ask = "rpm -q python{} gcc-c++" if os_name == "alinux2023" else "dpkg-query -W python{}-venv g++"
    assert len(machine.output_of(ask.format(SYSTEM_PYTHON)).splitlines()) == 2, "for the shared environment"
    assert machine.read("/var/lib/ultracluster/node.env").splitlines() == [
        *(f"{name}={value}" for name, value in COMPUTE_NODE.items()),
        "instance_type=trn1.32xlarge",
    ]
    before = machine.manifest()
    again = run(machine, sites=NO_INTERNET)
    assert again.code == 0, again.output
    assert "wrote" not in again.output
    assert re.sub(r"\d+ s: ", "", again.output).splitlines()[-3:] == [
        f"{SCRIPT}: driver {COMPUTE_NODE['driver']}, 16 devices, 32 NeuronCores",
        f"{SCRIPT}: 8 EFA devices",
        f"{SCRIPT}: done",
    ]
    assert changes(before, machine.manifest()) == set()


def test_neuron_packages_and_the_kernel_are_held(compute_node: Machines) -> None:
    machine = compute_node()
    assert "signed-by=/etc/apt/keyrings/aws-neuron.asc" in machine.read("/etc/apt/sources.list.d/neuron.list")
    neuron = [f"aws-neuronx-{name}" for name in PACKAGES]
    assert machine.output_of("apt-mark showhold").split() == sorted(neuron)
    with machine.execute(["bash", "-c", "apt-get update && apt-get install --yes linux-aws"]) as process:
        output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert run(machine, sites=NO_INTERNET).code == 0
    assert machine.output_of("apt-mark showhold").split() == sorted([*neuron, "linux-aws"])


@pytest.mark.parametrize(
    ("os_name", "program", "argument", "what"),
    [
        ("ubuntu2404", "apt-cache", "madison", "apt-get cannot install aws-neuronx-dkms="),
        ("alinux2023", "dnf", "repoquery", "dnf cannot install aws-neuronx-dkms-"),
    ],
    ids=["ubuntu2404", "alinux2023"],
)
def test_an_image_with_an_older_release_is_brought_to_the_wanted_one(
    os_name: str, program: str, argument: str, what: str, older_node: Machines
) -> None:
    """Though the network dies before the packages come, and returns while the script pauses."""
    image = older_node(os_name)
    break_network(image, program, argument)
    outcome = run(image)
    assert outcome.code == 0, outcome.output
    assert_paused_once(outcome.output, what)
    assert f"loaded the driver {COMPUTE_NODE['driver']}" in outcome.output


def test_a_node_that_runs_another_kernel_than_its_image_gets_a_driver_for_it(compute_node: Machines) -> None:
    machine = compute_node("ubuntu2404")
    machine.write("/etc/kernel-release", KERNELS["ubuntu2204"] + "\n")
    machine.remove("/sys/module/neuron")
    outcome = run(machine)
    assert outcome.code == 0, outcome.output
    assert machine.read(f"/usr/lib/modules/{KERNELS['ubuntu2204']}/updates/neuron.ko").strip() == COMPUTE_NODE["driver"]


def test_a_type_without_neuron_devices_gets_the_rest(machine: Machines) -> None:
    plain = machine(instance_type="c6i.4xlarge")
    plain.unmount("scratch")
    outcome = plain.run(SCRIPT, PLAIN_NODE)
    assert outcome.code == 0, outcome.output
    assert f"nothing is mounted on {COMPUTE_NODE['scratch_dir']}: c6i.4xlarge has no local disks" in outcome.output
    assert plain.path(LIMITS).exists()
    assert not plain.path("/etc/apt/sources.list.d/neuron.list").exists()
    assert not plain.path("/sys/module/neuron").exists()


def test_a_node_with_neuron_devices_in_a_queue_that_has_none_says_what_it_lacks(compute_node: Machines) -> None:
    outcome = compute_node().run(SCRIPT, PLAIN_NODE, sites=NO_INTERNET)
    assert_failed(outcome, 2, "the argument sdk= is missing", "give it a value")


def wrap_modprobe(machine: Machine, commands: str) -> None:
    """Unload the driver, and run commands before it is loaded again."""
    machine.remove("/sys/module/neuron")
    machine.write_program("/usr/local/sbin/modprobe", f'{commands}\nexec /usr/sbin/modprobe "$@"')


def use_other_driver(machine: Machine) -> None:
    machine.write("/sys/module/neuron/version", "2.25.4.0\n")
    machine.write("/sys/module/neuron/in-use", "")


def break_build(machine: Machine) -> None:
    machine.remove("/sys/module/neuron")
    machine.remove(f"/usr/lib/modules/{KERNELS[machine.os_name]}/updates")
    machine.write_program("/usr/local/sbin/dkms", "echo 'Bad return status for module build'; exit 10")


def hang_modprobe(machine: Machine) -> None:
    machine.remove("/sys/module/neuron")
    machine.hang("/usr/local/sbin/modprobe", "modprobe")


def hang_file_system(machine: Machine) -> None:
    """Mount /fsx as systemd does at ParallelCluster's nodes, by an automounter, but one that never answers."""
    machine.prepare("""
        mkfifo /run/automount
        /usr/bin/sleep infinity <>/run/automount >/dev/null 2>&1 &
        umount /fsx
        mount -t autofs -o "fd=9,pgrp=$!,minproto=5,maxproto=5,direct" automount /fsx 9<>/run/automount
        """)
    machine.end_time_for("test")


FAULTS: dict[str, tuple[Callable[[Machine], object], int, str, str]] = {
    "15 devices": (
        lambda machine: machine.keep_devices(15),
        16,
        "15 devices with 30 NeuronCores, but trn1.32xlarge has 16 with 32",
        "scontrol update nodename=trn1-dy-trn1-32xl-1 state=power_down_force",
    ),
    "7 EFA devices": (
        lambda machine: machine.remove_efa(from_bus=True),
        17,
        "7 of 8 EFA devices work, and 7 are on the PCI bus",
        "launch template",
    ),
    "an EFA device without a driver": (
        lambda machine: machine.remove_efa(from_bus=False),
        17,
        "7 of 8 EFA devices work, and 8 are on the PCI bus",
        "modinfo efa",
    ),
    "another driver in use": (
        use_other_driver,
        15,
        f"the driver 2.25.4.0 is in use and cannot make room for {COMPUTE_NODE['driver']}",
        "fuser",
    ),
    "no scratch": (
        lambda machine: machine.unmount("scratch"),
        22,
        "nothing is mounted on /scratch, but trn1.32xlarge has local disks",
        "lsblk",
    ),
    "a file system that hangs": (
        hang_file_system,
        21,
        "the file system /fsx is not mounted, read-only, or gives no answer",
        "security group",
    ),
    "neuron-ls that hangs": (
        lambda machine: machine.hang("/opt/aws/neuron/bin/neuron-ls", "/opt/aws/neuron/bin/neuron-ls"),
        16,
        "neuron-ls does not tell which devices there are",
        "dmesg",
    ),
    "modprobe that hangs": (hang_modprobe, 15, f"the driver {COMPUTE_NODE['driver']} cannot be loaded", "dmesg"),
    "another driver loaded": (
        lambda machine: wrap_modprobe(machine, "echo 2.25.4.0 >/usr/lib/modules/$(uname -r)/updates/neuron.ko"),
        15,
        f"the driver that is loaded is 2.25.4.0, not {COMPUTE_NODE['driver']}",
        "dkms status",
    ),
    "a driver that is not built": (
        break_build,
        15,
        f"there is no driver {COMPUTE_NODE['driver']} for the kernel {KERNELS['ubuntu2404']}",
        "dkms status",
    ),
    "another system": (
        lambda machine: machine.write("/etc/os-release", 'ID=debian\nVERSION_ID="12"\n'),
        23,
        "this is debian12",
        "Ubuntu 24.04",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_with_a_node_is_reported(fault: str, compute_node: Machines) -> None:
    inject, code, what, to_do = FAULTS[fault]
    machine = on_second_try(compute_node())
    inject(machine)
    assert_failed(run(machine, sites=NO_INTERNET), code, what, to_do)


@each_manager
def test_without_headers_for_the_kernel_it_says_so(os_name: str, machine: Machines) -> None:
    node = on_second_try(machine(os_name))
    node.write("/etc/kernel-release", "6.99.0-1-aws\n")
    what = "kernel-devel-uname-r = 6.99.0-1-aws" if os_name == "alinux2023" else "linux-headers-6.99.0-1-aws"
    assert_failed(run(node), 14, f"no repository has {what}, the headers of the kernel that runs", "image")


@each_manager
def test_a_version_that_no_repository_has_is_reported_with_those_it_has(os_name: str, machine: Machines) -> None:
    node = on_second_try(with_headers(machine(os_name)))
    outcome = run(node, runtime="2.99.0.0")
    assert outcome.code == 12
    assert "no repository has aws-neuronx-runtime-lib 2.99.0.0 (there are: 2." in outcome.last_line
    assert OLDER.runtime in outcome.last_line


def test_another_key_is_not_trusted(machine: Machines, base: Base) -> None:
    with altered_sites(base, "other-key") as (sites, directory):
        shutil.copy(base.build / "keys/other.asc", directory / APT / "GPG-PUB-KEY-AMAZON-AWS-NEURON.PUB")
        outcome = run(on_second_try(with_headers(machine("ubuntu2404"))), sites=sites)
    assert outcome.code == 11
    assert "the key of Neuron's repository has the fingerprint '" in outcome.last_line
    assert "trust no package" in outcome.last_line


@each_manager
def test_what_another_key_signed_is_not_installed(os_name: str, machine: Machines, base: Base) -> None:
    node = on_second_try(with_headers(machine(os_name)))
    with altered_sites(base, "other-signature") as (sites, directory):
        if os_name == "alinux2023":
            shutil.rmtree(directory / DNF / "repodata")
            shutil.copytree(base.build / "otherwise-signed", directory / DNF, dirs_exist_ok=True)
        else:
            shutil.copy(directory / APT / "dists/noble/InRelease.other", directory / APT / "dists/noble/InRelease")
        outcome = run(node, sites=sites)
    key = (base.build / "keys/fingerprint").read_text(encoding="utf-8").strip()
    assert_failed(outcome, 11, f"Neuron's repository is not signed with the key {key}", "ask AWS")


def test_a_lock_keeps_packages_from_being_held(compute_node: Machines) -> None:
    machine = compute_node()
    machine.write("/var/lib/dpkg/status", machine.read("/var/lib/dpkg/status").replace("hold ok", "install ok"))
    machine.prepare(HOLD_DPKG)
    outcome = machine.run("image.sh", IMAGE, sites=NO_INTERNET, seconds_left=5)
    assert "dpkg frontend lock was locked by another process" in outcome.output
    assert_failed(outcome, 19, "apt-mark cannot hold aws-neuronx-dkms", "what holds the lock", "image.sh")


def test_a_run_that_failed_is_repeated_by_hand(compute_node: Machines) -> None:
    [command] = re.findall(r"`sudo (bash /var/lib/ultracluster/\S+)`", DOCUMENT)
    machine = compute_node()
    machine.remove("/var/lib/ultracluster")
    machine.unmount("fsx")
    assert run(machine, sites=NO_INTERNET).code == 21
    machine.mount("fsx")
    assert machine.output_of(command).endswith(": done\n")
    assert machine.read("/var/lib/ultracluster/node.env").endswith("\ninstance_type=trn1.32xlarge\n")


@each_manager
def test_a_run_that_was_killed_half_way_is_finished_by_the_next(os_name: str, machine: Machines) -> None:
    node = machine(os_name)
    node.run_killed(SCRIPT, COMPUTE_NODE)
    outcome = run(node)
    assert outcome.code == 0, outcome.output
    assert versions(node) == wanted_versions()


def test_the_name_of_the_node_leads_to_its_primary_address(compute_node: Machines) -> None:
    machine = compute_node()
    name = machine.name
    machine.write(
        "/etc/hosts",
        f"127.0.0.1 localhost\n127.0.1.1 {name}.trn1-16.pcluster {name}\n# {name}\n10.0.64.99 {name} other\n::1 ip6\n",
    )
    assert run(machine, sites=NO_INTERNET).code == 0
    assert machine.read("/etc/hosts") == (
        f"127.0.0.1 localhost\n# {name}\n10.0.64.99 other\n::1 ip6\n{ADDRESS} {name}\n"
    )
    addresses = machine.output_of(f"getent ahostsv4 {name}").splitlines()
    assert {line.split()[0] for line in addresses} == {ADDRESS}


def test_the_kernel_has_the_settings(compute_node: Machines) -> None:
    arguments = " ".join(f"{name}={value}" for name, value in COMPUTE_NODE.items())
    settings = "/proc/sys/net/ipv4/ip_local_reserved_ports /proc/sys/net/core/somaxconn"
    script = f"bash /opt/ultracluster/current/{SCRIPT} {arguments} >/dev/null"
    found = compute_node().output_of(f"{script}; cat {settings}")
    assert found.split() == ["2022-2023,23456,41000,44000,48620", "65535"]


def test_the_lustre_client_is_tuned_for_the_size_of_the_node(compute_node: Machines) -> None:
    machine = compute_node()
    assert set(machine.read("/var/log/lctl").split()) == {
        "osc.*.max_dirty_mb=64",
        "llite.*.statahead_max=512",
        "llite.*.statahead_agl=1",
        "ldlm.namespaces.*.lru_max_age=600000",
        "ldlm.namespaces.*.lru_size=12800",
        "osc.*OST*.max_rpcs_in_flight=32",
        "mdc.*.max_rpcs_in_flight=64",
        "mdc.*.max_mod_rpcs_in_flight=50",
    }
    small = compute_node(instance_type="trn1.2xlarge")
    small.remove("/var/log/lctl")
    outcome = run(small, sites=NO_INTERNET)
    assert outcome.code == 0, outcome.output
    assert all(each in outcome.output for each in ("1 devices, 2 NeuronCores", "0 EFA devices")), "of its type"
    assert set(small.read("/var/log/lctl").split()) == {
        "osc.*.max_dirty_mb=64",
        "llite.*.statahead_max=512",
        "llite.*.statahead_agl=1",
    }
    assert machine.path("/etc/systemd/system/multi-user.target.wants/ultracluster-lustre.service").is_symlink()


def test_what_cannot_be_installed_at_first_is_tried_again_before_the_bootstrap_fails(compute_node: Machines) -> None:
    """The index names for a moment what is not there yet, as while a mirror is updated."""
    node = compute_node()
    node.write_program("/usr/local/bin/apt-cache", '[[ ! -e /updated ]] || exec /usr/bin/apt-cache "$@"')
    node.write_program("/usr/local/bin/sleep", ">/updated")
    outcome = run(node, tools=OLDER.tools)
    assert outcome.code == 0, outcome.output
    assert f"failed (12): no repository has aws-neuronx-tools {OLDER.tools} (there are: none)" in outcome.output
    assert outcome.output.count(": the second and last try in ") == 1
    assert told(node).failed_nodes == ()


def test_a_node_that_cannot_install_says_why_where_status_finds_it(compute_node: Machines) -> None:
    node = compute_node()
    node.write_program("/usr/local/bin/sleep", "")
    outcome = run(node, tools="2.99.0.0")
    assert outcome.code == 12
    assert outcome.output.count("failed (12): no repository has aws-neuronx-tools 2.99.0.0") == 2
    node.write("/opt/slurm/etc/ultracluster/team.by-hand", "account own\nuser guest of account lab\n")
    [failed] = told(node).failed_nodes
    assert told(node).by_hand == ("account own", "user guest of account lab")
    assert failed.name == node.name
    assert outcome.last_line.startswith(f"{SCRIPT}: {failed.reason}")
    assert run(node).code == 0
    assert told(node).failed_nodes == ()


def told(node: Machine) -> Software:
    """Return what the head node, which has the same file system, would tell."""
    software = parse(node.output_of(f"exec {shlex.join(words('files', 'software', '5'))}"))
    assert software is not None
    return software
