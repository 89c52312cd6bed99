"""head_node.sh, software.sh and login_node.sh, for real: venv, uv with its hashes, the lock, the link, the state.

What is not real is told in base.py: the content of the Python packages.
"""

from __future__ import annotations

import fcntl
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.nodes.base import NODES, Base
from tests.nodes.facts import HEAD_NODE, LOGIN_NODE, WITHOUT_SDK
from tests.nodes.interruptions import (
    FORGET_HOSTS,
    HOLD_DNF,
    HOLD_DPKG,
    RECALL_HOSTS,
    RELEASE_DNF,
    RELEASE_DPKG,
    assert_paused_once,
)
from tests.nodes.machine import MIRROR_FAULT, NO_INTERNET, SITES, Machine, Outcome, time_limit
from tests.nodes.packages import IMPOSTOR, NEEDED_OF_NEURON, NEURON_NAMES, PYTHON

pytestmark = [pytest.mark.slow, pytest.mark.system]

Machines = Callable[..., Machine]
SCRIPT = "software.sh"
ENVIRONMENTS = "/fsx/ultracluster/python"
CURRENT = f"{ENVIRONMENTS}/current-{HEAD_NODE['cluster']}"
TYPE = "c6i.4xlarge"


[UV] = re.findall(r"^uv==(\S+)", (NODES / "requirements-uv.txt").read_text(encoding="utf-8"), re.MULTILINE)


ARGUMENTS = " ".join(f"{name}={value}" for name, value in (HEAD_NODE | {"python": PYTHON}).items())


def configure(machine: Machine, *, sites: str = NO_INTERNET, **changes: str) -> Outcome:
    """Run the script that CloudFormation waits for."""
    return machine.run("head_node.sh", HEAD_NODE | {"python": PYTHON} | changes, sites=sites)


def run(machine: Machine, *, sites: str = SITES, seconds_left: int | None = None, **changes: str) -> Outcome:
    """Run what the unit runs, and return its log with what it prints beside."""
    before = len(log(machine))
    done = machine.run(SCRIPT, HEAD_NODE | {"python": PYTHON} | changes, sites=sites, seconds_left=seconds_left)
    return Outcome(done.code, log(machine)[before:] + done.output)


def log(machine: Machine) -> str:
    path = machine.path(f"{CURRENT}.log")
    return path.read_text(encoding="utf-8") if path.exists() else ""


def state(machine: Machine) -> dict[str, str]:
    """Return what jobs and `./ultracluster status` read."""
    lines = machine.read(f"{CURRENT}.state").splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def link(machine: Machine) -> Path:
    """Return the link to the environment of the machine's release and system, which the cluster's own leads to."""
    environments = machine.path(ENVIRONMENTS)
    return environments / (environments / f"current-{HEAD_NODE['cluster']}").readlink()


def environments(machine: Machine) -> set[str]:
    return {path.name for path in machine.path(ENVIRONMENTS).glob("*.build-*")}


def fingerprints(directory: Path) -> dict[str, tuple[int, int]]:
    """Return what shows whether anything in an environment was changed."""
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in sorted(directory.rglob("*"))}


@pytest.fixture(scope="module")
def _head_node(base: Base) -> Iterator[Machine]:
    machine = Machine(base, "ubuntu2404", TYPE, "ip-10-0-0-9")
    for outcome in (configure(machine), run(machine)):
        assert outcome.code == 0, outcome.output
    yield machine
    machine.discard()


@pytest.fixture
def head_node(_head_node: Machine) -> Iterator[Machine]:
    """A head node on which the script has run, and its shared file system."""
    copy = _head_node.clone()
    yield copy
    copy.discard()


def test_the_environment_has_neurons_packages_and_those_of_the_training(head_node: Machine) -> None:
    found = dict(line.split("==") for line in (link(head_node) / "installed.txt").read_text(encoding="utf-8").split())
    assert {name: version.partition("+")[0] for name, version in found.items()} == {
        "torch": HEAD_NODE["pytorch"],
        "torch_xla": HEAD_NODE["torch_xla"],
        "torch_neuronx": HEAD_NODE["torch_neuronx"],
        "neuronx_cc": HEAD_NODE["compiler"],
        "libneuronxla": HEAD_NODE["libneuronxla"],
        NEEDED_OF_NEURON[0]: NEEDED_OF_NEURON[1],
        "islpy": "2025.2.5",
        "numpy": "1.26.4",
        "h5py": "3.16.0",
        "transformers": "4.57.6",
        "tensorboard": "2.21.0",
        "uv": UV,
    }
    name = f"{HEAD_NODE['sdk']}-pytorch{HEAD_NODE['pytorch']}-ubuntu24.04"
    assert link(head_node).name == name
    head_node.write(
        "/job.sh",
        ". /etc/profile.d/ultracluster.sh; . $ULTRACLUSTER_PYTHON/bin/activate\n"
        "python -c 'import sys, torch; print(sys.prefix)'\n",
    )
    prefix = head_node.output_of("useradd trainee; su trainee --command 'sh /job.sh'").strip()
    assert re.fullmatch(rf"{ENVIRONMENTS}/{re.escape(name)}\.build-\w+", prefix)


def test_what_neurons_index_has_comes_from_no_other(head_node: Machine) -> None:
    """The public index has higher versions of all these names; Neuron's packages say of one no version."""
    found = dict(line.split("==") for line in (link(head_node) / "installed.txt").read_text(encoding="utf-8").split())
    assert found.keys() >= set(NEURON_NAMES)
    assert IMPOSTOR not in found.values()


def test_a_second_run_changes_nothing_and_needs_no_network(head_node: Machine) -> None:
    def manifest() -> dict[str, str]:
        found = head_node.manifest()
        return {path: found[path] for path in found if not path.endswith(("/var/log/systemctl", ".log"))}

    before = manifest()
    for outcome in (configure(head_node), run(head_node, sites=NO_INTERNET)):
        assert outcome.code == 0, outcome.output
        assert "wrote" not in outcome.output
    assert manifest() == before


def test_creation_and_updates_end_within_two_minutes_whatever_the_mirrors_do(machine: Machines) -> None:
    """They use no network at all, and what else may hang has a limit, 10 s before it is killed."""
    assert time_limit("head_node.sh") + 10 <= 120
    node = machine(instance_type=TYPE)
    assert configure(node).code == 0
    node.write(MIRROR_FAULT, "stall /")
    outcome = configure(node, sites=SITES, sdk="2.99.0")
    assert outcome.code == 0, outcome.output
    calls = node.read("/var/log/systemctl").splitlines()
    assert calls.count("restart --no-block ultracluster-software.service") == 2, "other arguments replace a build"
    assert configure(node, sdk="2.99.0").code == 0
    assert node.read("/var/log/systemctl").splitlines()[-1] == "start --no-block ultracluster-software.service"


def test_without_a_neuron_sdk_nothing_is_built_any_more_and_what_was_stays(head_node: Machine) -> None:
    environment = link(head_node)
    for wrote in (True, False):
        outcome = head_node.run("head_node.sh", WITHOUT_SDK["head_node.sh"], sites=NO_INTERNET)
        assert outcome.code == 0, outcome.output
        assert ("wrote" in outcome.output) is wrote
    assert not head_node.path("/etc/systemd/system/ultracluster-software.service").exists()
    assert head_node.read("/var/log/systemctl").count("disable --now ultracluster-software.service") == 1
    assert link(head_node) == environment


@pytest.mark.parametrize("script", ["compute_node.sh", "login_node.sh"])
def test_without_a_neuron_sdk_nodes_ask_no_mirror(script: str, machine: Machines) -> None:
    node = machine(instance_type=TYPE)
    outcome = node.run(script, WITHOUT_SDK[script], sites=NO_INTERNET)
    assert outcome.code == 0, outcome.output
    assert node.path("/etc/security/limits.d/99_ultracluster.conf").exists()


@pytest.mark.parametrize("daemon", ["slurmctld", "slurmdbd"])
def test_slurms_daemons_come_back_when_they_are_killed(head_node: Machine, daemon: str) -> None:
    """By systemd's own parser, which tells unknown names of a drop-in."""
    unit = f"/etc/systemd/system/{daemon}.service"
    head_node.write(unit, "[Service]\nExecStart=/bin/true\n")
    assert head_node.output_of(f"systemd-analyze verify --man=no {unit} 2>&1") == ""
    assert "Restart=on-failure\n" in head_node.read(f"{unit}.d/50-ultracluster.conf")


def test_the_unit_is_one_that_systemd_takes_and_builds_the_environment(head_node: Machine) -> None:
    unit = "/etc/systemd/system/ultracluster-software.service"
    assert head_node.output_of(f"systemd-analyze verify --man=no {unit} 2>&1") == ""
    [command] = re.findall(r"^ExecStart=(.*)$", head_node.read(unit), re.MULTILINE)
    assert head_node.output_of(command).endswith(f"the Python environment is {state(head_node)['environment']}\n")
    assert head_node.path("/etc/systemd/system/multi-user.target.wants/ultracluster-software.service").is_symlink()


@pytest.mark.parametrize(("kind", "prefix"), [("stall", "/simple/uv/"), ("500", "/simple/torch/")])
def test_a_mirror_that_gives_nothing_fails_the_build_with_the_reason(
    kind: str, prefix: str, head_node: Machine
) -> None:
    head_node.write(MIRROR_FAULT, f"{kind} {prefix}")
    before = link(head_node).resolve()
    outcome = run(head_node, seconds_left=10, sdk="2.99.0")
    assert outcome.code == 10
    failure = "failed (10): the Python packages cannot be downloaded. To do: "
    assert outcome.last_line.startswith(f"{SCRIPT}: {failure}")
    assert outcome.last_line.endswith(f"Its log: {CURRENT}.log")
    assert state(head_node)["state"] == "failed"
    assert state(head_node)["environment"] == f"2.99.0-pytorch{HEAD_NODE['pytorch']}-ubuntu24.04"
    assert state(head_node)["reason"].startswith(failure)
    assert link(head_node).resolve() == before, "jobs keep what they had"


def test_a_mirror_that_recovers_is_asked_again(head_node: Machine) -> None:
    head_node.write(MIRROR_FAULT, "cut /torch-neuronx/")
    head_node.write_program("/usr/local/bin/sleep", f"rm --force {MIRROR_FAULT}")
    outcome = run(head_node, sdk="2.99.0")
    assert outcome.code == 0, outcome.output
    assert_paused_once(outcome.output, "the Python packages cannot be downloaded")
    assert state(head_node)["state"] == "ready"
    assert link(head_node).name == f"2.99.0-pytorch{HEAD_NODE['pytorch']}-ubuntu24.04"
    assert not head_node.path(f"{ENVIRONMENTS}/.cache").exists()


def test_other_requirements_of_the_same_release_move_the_link_and_change_nothing_in_place(
    head_node: Machine, base: Base
) -> None:
    [old] = environments(head_node)
    before = fingerprints(link(head_node).resolve())
    requirements = base.workspace / "bundle" / "requirements-training.txt"
    text = requirements.read_text(encoding="utf-8")
    requirements.write_text(f"{text}# more\n", encoding="utf-8")
    try:
        outcome = run(head_node)
    finally:
        requirements.write_text(text, encoding="utf-8")
    assert outcome.code == 0, outcome.output
    assert f"{ENVIRONMENTS}/{old} is another environment; once no job uses it: sudo rm -r" in outcome.output
    assert link(head_node).resolve().name != old
    assert environments(head_node) == {old, link(head_node).resolve().name}
    assert fingerprints(head_node.path(ENVIRONMENTS) / old) == before


def test_the_environment_of_amazon_linux(machine: Machines) -> None:
    """Made by Python's own venv, of which all other tests take a copy."""
    node = machine("alinux2023", TYPE)
    node.write_program(f"/usr/local/bin/python{PYTHON}", f'exec /usr/bin/python{PYTHON} "$@"')
    outcome = run(node)
    assert outcome.code == 0, outcome.output
    assert link(node).name.endswith("-amzn2023")
    assert (
        node.output_of("rpm --query --queryformat '%{NAME} ' gcc-c++ libxcrypt-compat") == "gcc-c++ libxcrypt-compat "
    )


def test_a_build_that_was_killed_half_way_is_repeated_and_leaves_nothing_that_is_used(machine: Machines) -> None:
    node = machine("ubuntu2204", TYPE)
    node.write(MIRROR_FAULT, "stall /simple/torch/")
    with node.start(SCRIPT, HEAD_NODE | {"python": PYTHON}) as process:
        while "installing packages into" not in log(node):
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    assert state(node)["state"] == "building"
    node.remove(MIRROR_FAULT)
    [unfinished] = environments(node)
    outcome = run(node)
    assert outcome.code == 0, outcome.output
    assert f"removing {ENVIRONMENTS}/{unfinished}, which was never finished" in outcome.output
    assert environments(node) == {link(node).resolve().name}
    assert link(node).name.endswith("-ubuntu22.04")
    assert state(node)["state"] == "ready"


def test_a_build_that_is_stopped_is_not_ready(machine: Machines) -> None:
    """Bash knows no exit code in its trap then."""
    node = machine(instance_type=TYPE)
    node.write_program(f"/usr/local/bin/python{PYTHON}", 'kill "$PPID"; exec sleep 5')
    node.output_of(f"exec 2>/dev/null; ! bash /opt/ultracluster/current/{SCRIPT} {ARGUMENTS}")
    assert (state(node)["state"], state(node)["reason"]) == ("failed", "interrupted.")


def test_it_waits_for_another_node_that_makes_an_environment_and_says_for_which(head_node: Machine) -> None:
    lock = head_node.path(f"{ENVIRONMENTS}/.lock")
    holder = "ip-10-0-0-77, process 4711, since 2026-11-20T08:00:00Z"
    lock.write_text(f"{holder}\n", encoding="utf-8")
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        outcome = run(head_node, sites=NO_INTERNET, seconds_left=4, sdk="2.99.0")
    assert outcome.code == 19
    assert outcome.last_line.startswith(f"{SCRIPT}: failed (19): {holder} holds {ENVIRONMENTS}/.lock. To do: ")


def test_a_full_file_system_is_reported_before_anything_is_made(machine: Machines) -> None:
    node = machine(instance_type=TYPE)
    node.limit("fsx", "64m")
    outcome = run(node, sites=NO_INTERNET)
    assert outcome.code == 18
    assert outcome.last_line == (
        f"{SCRIPT}: failed (18): {ENVIRONMENTS} has 1 GiB left, 20 are needed. "
        f"To do: delete what nobody needs there, or make it larger. Its log: {CURRENT}.log"
    )


def test_a_file_system_that_becomes_full_is_reported(machine: Machines) -> None:
    node = machine(instance_type=TYPE)
    node.limit("fsx", "64m")
    node.write_program("/usr/local/bin/df", "echo 99")
    fill = "dd if=/dev/zero of=/fsx/rest bs=1M 2>/dev/null"
    venv = f'/usr/local/bin/python{PYTHON} "$@"; {fill} || true'
    node.write_program(f"/usr/local/sbin/python{PYTHON}", venv)
    outcome = run(node)
    assert outcome.code == 18
    assert re.search(rf"failed \(18\): {ENVIRONMENTS} or /tmp is full\. To do: make room", outcome.last_line)


def test_a_package_with_another_content_is_refused(head_node: Machine, base: Base) -> None:
    wheel = next((base.build / SITES / "archive.test/simple/torch").glob("*.whl"))
    content = wheel.read_bytes()
    with ZipFile(wheel, "a") as archive:
        archive.writestr("more.py", "")
    try:
        outcome = run(head_node, sdk="2.99.0")
    finally:
        wheel.write_bytes(content)
    assert outcome.code == 20
    assert "Hash mismatch for `torch==" in outcome.output
    assert outcome.last_line.startswith(f"{SCRIPT}: failed (20): the Python packages cannot be installed. To do: ")
    assert len(environments(head_node)) == 2, "the new one, unfinished, without a link"
    assert state(head_node)["state"] == "failed"
    assert link(head_node).resolve().name in environments(head_node)


def test_jobs_get_the_health_checks(head_node: Machine) -> None:
    """The hooks run what is in the bundle of the compute node, and nothing on one without it."""
    head_node.write("/opt/ultracluster-of-test/health/check.sh", 'echo "checked $1"; exit 3')
    for when in ("prolog", "epilog"):
        hook = f"/opt/slurm/etc/scripts/{when}.d/50_ultracluster"
        assert head_node.path(hook).stat().st_mode & 0o777 == 0o755
        elsewhere = f"sed s:/opt/ultracluster/current:/opt/ultracluster-of-test: {hook} | bash; echo $?"
        assert head_node.output_of(elsewhere) == f"checked {when}\n3\n"
        nowhere = f"sed s:/opt/ultracluster/current:/nowhere: {hook} | bash; echo $?"
        assert head_node.output_of(nowhere) == "0\n"


def test_users_find_the_programs_of_training_jobs(head_node: Machine) -> None:
    """Of which test_training_jobs.py has the failures."""
    with ZipFile(head_node.path("/fsx") / "stored.zip", "w") as archive:
        archive.writestr("job.sh", "echo trained\n")
    aws = '[[ $* == *" s3://assets/0123.zip /"* ]] && cp /fsx/stored.zip "${!#}"'
    head_node.write_program("/usr/local/bin/aws", aws)
    outcome = run(head_node, sites=NO_INTERNET, jobs="s3://assets/0123.zip")
    assert outcome.code == 0, outcome.output
    job = ". /etc/profile.d/ultracluster.sh; . $ULTRACLUSTER_JOBS/job.sh\n"
    head_node.write("/job.sh", job)
    assert head_node.output_of("useradd trainee; su trainee --command 'sh /job.sh'") == "trained\n"


@pytest.mark.parametrize(
    ("os_name", "hinder", "end"),
    [
        ("ubuntu2404", FORGET_HOSTS, RECALL_HOSTS),
        ("ubuntu2204", HOLD_DPKG, RELEASE_DPKG),
        ("alinux2023", HOLD_DNF, RELEASE_DNF),
    ],
    ids=["ubuntu2404-network", "ubuntu2204-lock", "alinux2023-lock"],
)
def test_a_login_node_gets_limits_and_the_way_to_the_environment_and_the_jobs(
    os_name: str, hinder: str, end: str, machine: Machines
) -> None:
    """Though it has to wait at first, for the network or for another program that installs; that ends in a pause."""
    node = machine(os_name, "t3.large")
    node.prepare(hinder)
    node.write_program("/usr/local/bin/sleep", end)
    outcome = node.run("login_node.sh", LOGIN_NODE)
    assert outcome.code == 0, outcome.output
    assert_paused_once(outcome.output, "dnf cannot install " if os_name == "alinux2023" else "apt-get cannot install ")
    node.remove("/prepare.sh")
    outcome = node.run("login_node.sh", LOGIN_NODE, sites=NO_INTERNET)
    assert outcome.code == 0, outcome.output
    assert "wrote" not in outcome.output
    assert node.path("/etc/security/limits.d/99_ultracluster.conf").exists()
    assert (
        node.output_of(". /etc/profile.d/ultracluster.sh; echo $ULTRACLUSTER_PYTHON")
        == f"{ENVIRONMENTS}/current-{LOGIN_NODE['cluster']}\n"
    )
    assert (
        node.output_of(". /etc/profile.d/ultracluster.sh; echo $ULTRACLUSTER_JOBS")
        == "/fsx/ultracluster/jobs/current\n"
    )


@pytest.mark.parametrize(("os_name", "size"), [("ubuntu2404", "1m"), ("alinux2023", "512k")])
def test_a_root_directory_that_becomes_full_is_reported(os_name: str, size: str, machine: Machines) -> None:
    node = machine(os_name, "t3.large")
    node.limit("root", size)
    outcome = node.run("login_node.sh", LOGIN_NODE)
    assert outcome.code == 18
    assert re.search(
        r"failed \(18\): the disk is too full to install .*\. To do: .* root_volume_gib", outcome.last_line
    )
