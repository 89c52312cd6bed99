"""What the cookbook's recipes do on a head node, in their order."""

from __future__ import annotations

import base64
import json
import logging
import secrets
import subprocess
import time
from pathlib import Path
from typing import Final

from emulator.machines.guest import accounting, aws, cfn, compute_node, fleet, pace, slurm_configuration, supervisor
from emulator.machines.guest import node as nodes
from emulator.machines.guest.node import CLUSTER_CONFIGURATION, LOGS, SHARED, Node, StepError, write
from emulator.machines.guest.slurm_configuration import CONFIGURATION, INSTALLED, SCRIPTS, SHARED_PLUGIN

SLURMCTLD: Final = ("/usr/sbin/slurmctld",)
PID_FILE: Final = Path("/run/slurmctld.pid")
INSTANCE_TYPES: Final = SHARED / "instance-types-data.json"
_HEARTBEAT_SECONDS: Final = 300
_CONTROLLER_SECONDS: Final = 15
"""Until slurmctld has left its process in its file; as long as that runs, it is waited for `_BUSY_SECONDS`."""
_BUSY_SECONDS: Final = 120
_FLEET_STATUS: Final = SHARED / "computefleet-status.json"
log = logging.getLogger("head_node")

_RESUME = """#!/bin/bash
# Slurm's controller deletes the file when this program has ended, and gives it none of its own environment.
set -a
. /run/emulator/public
set +a
if [[ ${SLURM_RESUME_FILE-} ]]; then
    copy=$(mktemp)
    cp "$SLURM_RESUME_FILE" "$copy"
    export SLURM_RESUME_FILE=$copy
fi
exec sudo -E /opt/parallelcluster/bin/slurm_resume "$@"
"""
_PROGRAM = """#!/bin/bash
set -a
. /run/emulator/public
set +a
exec sudo -E /opt/parallelcluster/bin/{name} "$@"
"""

_WAIT_FOR_NODES = """#!/bin/bash
# PrologSlurmctld: ends when the nodes of the job are there, or the job no longer waits for them.
while [[ $(/usr/bin/squeue -h -j "$SLURM_JOB_ID" -o %T) == CONFIGURING ]] &&
    [[ $(/usr/bin/sinfo -h -n "$SLURM_JOB_NODELIST" -o %t) == *[#~%!*]* ]]; do
    sleep {seconds}
done
"""


def init(node: Node) -> None:
    """Share directories, and fetch the cluster's configuration."""
    nodes.export_directories("opt_parallelcluster_shared")
    nodes.share_home(node)
    fetch_configuration(node)
    name, _, domain = node.ec2_hostname.partition(".")
    nodes.search_domains(node, domain)
    nodes.set_host_name(node, name, domain)


def config(node: Node) -> None:
    """Mount all file systems, and start Slurm's controller."""
    nodes.mount_local_disks(node)
    nodes.export_directories("opt_intel")
    nodes.guard_metadata(node)
    nodes.mount_file_systems(node)
    fleet.put_status(node, "RUNNING")
    write_munge_key(node)
    nodes.export_directories("opt_slurm")
    compute_node.start_munge()
    compute_node.profile()
    for name, text in (
        ("slurm_resume", _RESUME),
        *((name, _PROGRAM.format(name=name)) for name in ("slurm_suspend", "slurm_fleet_status_manager")),
    ):
        write(f"{SCRIPTS}/slurm/{name}", text, 0o744, user=slurm_user())
    text = _WAIT_FOR_NODES.format(seconds=pace.load().nodes_seconds)
    write(slurm_configuration.WAIT_FOR_NODES, text, 0o755, user=slurm_user())
    for name in "clustermgtd.events", "slurm_resume.events", "slurm_resume.log", "slurm_suspend.log":
        write(LOGS / name, "", user=slurm_user())
    for name in "compute_console_output.log", "slurm_fleet_status_manager.log":
        write(LOGS / name, "")
    state = Path("/var/spool/slurm.state")
    state.mkdir(parents=True, exist_ok=True)
    nodes.own(state, slurm_user())
    write("/var/log/slurmctld.log", "", user=slurm_user())
    for name in "prolog.d", "epilog.d":
        Path(f"{CONFIGURATION}/scripts/{name}").mkdir(parents=True, exist_ok=True)
    Path(SHARED_PLUGIN).mkdir(parents=True, exist_ok=True)
    write_slurm_configuration(node)
    # Since 3.12.0: https://github.com/aws/aws-parallelcluster-cookbook/pull/2838. slurmdbd and slurmd stay down.
    nodes.service("slurmctld", str(PID_FILE), SLURMCTLD, restart="on-failure")
    with_accounting = accounting.database(nodes.cluster_configuration()) is not None
    if with_accounting:
        accounting.configure(node, slurm_user())
    start_controller()
    if with_accounting:
        accounting.bootstrap(node, slurm_user())


def finalize(node: Node) -> None:
    """Start ParallelCluster's daemons, and wait for static nodes.

    Raises:
        StepError: The daemons do not start, or the static nodes fail too often.
    """
    cfn.remember(node)
    compute_node.record(node, "DEPLOYED_BOOTSTRAP")
    supervisor.ask("start", "all")
    speed = pace.load()
    end = time.monotonic() + _HEARTBEAT_SECONDS  # also at a fast pace: this computer may be busy
    while not Path(slurm_configuration.HEARTBEAT).exists():
        if time.monotonic() >= end or "FATAL" in supervisor.ask("status", "clustermgtd"):
            raise StepError("check if clustermgtd heartbeat is available", f"no {slurm_configuration.HEARTBEAT}")
        time.sleep(speed.heartbeat_seconds)
    wait_for_static_nodes(node)


def update_fleet_status(_: Node) -> None:
    """Start or stop the fleet, as the file of clusterstatusmgtd says."""
    supervisor.ask("stop", "clustermgtd")
    program = f"{SCRIPTS}/slurm/slurm_fleet_status_manager"
    nodes.run("update compute fleet", program, "-cf", str(fleet.REQUEST))
    supervisor.ask("start", "clustermgtd")


def fetch_configuration(node: Node) -> None:
    """Fetch the cluster's configuration, and the data of its instance types.

    These in the versions that the stack names: after a roll-back there are newer ones.
    """
    bucket = str(node.cluster["cluster_s3_bucket"])
    for key, version, path in (
        ("cluster_config_s3_key", "cluster_config_version", CLUSTER_CONFIGURATION),
        ("instance_types_data_s3_key", "instance_types_data_version", INSTANCE_TYPES),
        ("change_set_s3_key", "", SHARED / "change-set.json"),
    ):
        try:
            text = aws.read_object(bucket, str(node.cluster[key]), str(node.cluster.get(version) or "")).decode()
        except aws.AwsError as error:
            if path.name != "change-set.json":  # there is one after an update
                raise StepError("fetch_config", f"{key}: {error}") from error
        else:
            write(path, text)


def write_slurm_configuration(node: Node) -> None:
    """Write the configuration of Slurm and of ParallelCluster's daemons."""
    configuration, speed = nodes.cluster_configuration(), pace.load()
    instance_types = json.loads(INSTANCE_TYPES.read_text(encoding="utf-8"))
    head = slurm_configuration.HeadNode(node.cluster, node.instance_id, node.ec2_hostname, node.address, slurm_user())
    for path, text in slurm_configuration.slurm_files(configuration, instance_types, head, speed).items():
        if path == slurm_configuration.DATABASE:
            write(f"{CONFIGURATION}/{path}", text, 0o600, slurm_user())
        else:
            write(f"{CONFIGURATION}/{path}", text)
    for path, text in slurm_configuration.plugin_files(configuration, head, speed).items():
        write(path, text)
    if included := configuration["Scheduling"]["SlurmSettings"].get("CustomSlurmSettingsIncludeFile"):
        bucket, _, key = str(included).removeprefix("s3://").partition("/")
        text = aws.read_object(bucket, key).decode()
        write(f"{CONFIGURATION}/pcluster/custom_slurm_settings_include_file_slurm.conf", text)


def write_munge_key(node: Node) -> None:
    """Make a munge key, or fetch that of the configuration, and share it."""
    shared = SHARED / ".munge" / ".munge.key"
    secret = nodes.cluster_configuration()["Scheduling"]["SlurmSettings"].get("MungeKeySecretArn")
    if secret:
        answer = aws.call("secretsmanager", "GetSecretValue", SecretId=secret)
        content = base64.b64decode(answer["SecretString"])
    elif shared.exists():
        return
    else:
        content = secrets.token_bytes(128)
    shared.parent.mkdir(parents=True, exist_ok=True)
    shared.write_bytes(content)
    shared.chmod(0o600)


def start_controller() -> None:
    """Start slurmctld, and wait until it answers.

    Raises:
        StepError: It does not.
    """
    nodes.start_daemon(*SLURMCTLD, resource="check slurmctld status")
    started = time.monotonic()
    while time.monotonic() - started < (_BUSY_SECONDS if nodes.is_running(PID_FILE) else _CONTROLLER_SECONDS):
        if not subprocess.run([f"{INSTALLED}/bin/scontrol", "ping"], capture_output=True, check=False).returncode:
            return
        time.sleep(0.2)
    said = Path("/var/log/slurmctld.log").read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
    raise StepError("check slurmctld status", "\n".join(["slurmctld does not answer:", *said]))


def wait_for_static_nodes(node: Node) -> None:
    """Wait until all static nodes are there (cookbook: helpers.rb, wait_static_fleet_running).

    Raises:
        StepError: Their queue was closed because they failed too often.
    """
    queues = nodes.cluster_configuration()["Scheduling"]["SlurmQueues"]
    expected = sum(int(each["MinCount"]) for queue in queues for each in queue["ComputeResources"])
    log.info("Count of cluster static nodes is %s", expected)
    while expected and not _are_static_nodes_ready():
        if fleet.status(node) == "PROTECTED":
            message = "Cluster has been set to PROTECTED mode due to failures detected in static node provisioning"
            raise StepError("wait for static fleet capacity", message)
        log.info("Waiting for static fleet capacity provisioning")
        time.sleep(pace.load().static_seconds)
    log.info("Static fleet capacity is ready")


def _are_static_nodes_ready() -> bool:
    done = subprocess.run(
        [f"{INSTALLED}/bin/sinfo", "-h", "-N", "-o", "%N %t"], capture_output=True, text=True, check=False
    )
    states = dict(line.split() for line in done.stdout.splitlines())
    static = [state for name, state in states.items() if compute_node.kind(name) == "static"]
    return bool(static) and all(state in ("idle", "alloc", "mix", "maint") for state in static)


def slurm_user() -> str:
    """Return the user of Slurm's controller and of slurmdbd."""
    return "slurm" if nodes.IS_ROOT else nodes.only_user()
