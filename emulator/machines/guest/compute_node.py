"""What the cookbook's recipes do on a compute node, in their order."""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from emulator.machines.guest import aws, supervisor
from emulator.machines.guest import node as nodes
from emulator.machines.guest.node import SHARED, Node, StepError
from emulator.machines.guest.slurm_configuration import INSTALLED, PLUGIN

NODE_NAME: Final = Path(PLUGIN) / "slurm_nodename"
SLURMD: Final = "/usr/sbin/slurmd"
MUNGED: Final = ("/usr/sbin/munged", "--force")
_NAME_STEP: Final = "retrieve compute node info"
_ATTEMPTS: Final = 5
"""After the first one."""
_PAUSE: Final = 3
log = logging.getLogger("compute_node")


def init(node: Node) -> None:
    """Mount what the head node shares, and learn the node's name."""
    nodes.mount_exports("opt_parallelcluster_shared")
    nodes.mount_home(node)
    name = _query_name(node)
    nodes.write(NODE_NAME, name)
    of_ec2 = node.ec2_hostname.partition(".")[2]
    domain = str(node.cluster["dns_domain"] or of_ec2)
    nodes.search_domains(node, of_ec2)
    nodes.set_host_name(node, name, domain)


def config(node: Node) -> None:
    """Mount all file systems, and get ready for Slurm."""
    nodes.mount_local_disks(node)
    nodes.mount_exports("opt_intel")
    nodes.mount_file_systems(node)
    start_munge()
    nodes.mount_exports("opt_slurm")
    profile()


def finalize(node: Node) -> None:
    """Start slurmd, and tell the cluster which configuration the node has."""
    name = NODE_NAME.read_text(encoding="utf-8")
    is_static = kind(name) == "static"
    nodes.write(
        "/etc/sysconfig/slurmd",
        f"SLURMD_OPTIONS='-N {name} --instance-id={node.instance_id} --instance-type={node.instance_type}'\n",
    )
    nodes.service("slurmd", "/run/slurmd.pid", slurmd(node))
    nodes.start_daemon(*slurmd(node), resource="check slurmd status")
    if is_static:
        command = f"{INSTALLED}/bin/scontrol update nodename={name} state=resume reason='Node start up'"
        subprocess.run(["bash", "-c", command], check=False)
    record(node, "DEPLOYED_BOOTSTRAP")
    supervisor.ask("start", "all")


def slurmd(node: Node) -> list[str]:
    """Return the command line of slurmd.

    All machines share a kernel, and so its boot time: with -b, slurmd says that it has started with its node. A static
    node is resumed, which makes slurmctld take a boot that it did not ask for as a failure.
    """
    name = NODE_NAME.read_text(encoding="utf-8")
    own = [f"--instance-id={node.instance_id}", f"--instance-type={node.instance_type}"]
    return [SLURMD, "-N", name, *([] if kind(name) == "static" else ["-b"]), *own]


def start_munge() -> None:
    """Start munged with the key that the head node shares."""
    key = Path("/etc/munge/munge.key")
    shared = SHARED / ".munge" / ".munge.key"
    if not shared.exists():
        raise StepError("get_munge_key", f"cp: cannot stat '{shared}': No such file or directory")
    key.parent.mkdir(parents=True, exist_ok=True)
    key.unlink(missing_ok=True)
    shutil.copyfile(shared, key)
    key.chmod(0o400)
    Path("/run/munge").mkdir(exist_ok=True)
    nodes.service("munge", "/run/munge/munged.pid", MUNGED)
    nodes.start_daemon(*MUNGED, resource="enable munge")


def profile() -> None:
    """Let people find Slurm's programs."""
    nodes.write("/etc/profile.d/slurm.sh", f"PATH=$PATH:{INSTALLED}/bin\n", 0o755)
    configuration = Path("/etc/slurm")
    if not configuration.is_symlink():  # Debian's Slurm looks there
        shutil.rmtree(configuration, ignore_errors=True)
        configuration.symlink_to(f"{INSTALLED}/etc")


def record(node: Node, status: str) -> None:
    """Tell the cluster's table which configuration the node has."""
    version = str(node.cluster["cluster_config_version"])
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    data = {"cluster_config_version": version, "status": status, "node_type": node.kind, "lastUpdateTime": now}
    item = {
        "Id": {"S": f"CLUSTER_CONFIG.{node.instance_id}"},
        "Data": {"M": {name: {"S": value} for name, value in data.items()}},
    }
    aws.call("dynamodb", "PutItem", TableName=node.table, Item=item)


def kind(name: str) -> str:
    """Return whether a node with a name is static or dynamic."""
    match = re.fullmatch(r".+-(st|dy)-.+-\d+", name)
    return "static" if match and match[1] == "st" else "dynamic"


def event(node: Node, component: str, event_type: str, message: str, detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event of a failed bootstrap (cookbook: custom_action_executor.py, emit_chef_error_event.rb)."""
    name = NODE_NAME.read_text(encoding="utf-8") if NODE_NAME.exists() else None
    return {
        "datetime": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "version": 0,
        "scheduler": "slurm",
        "cluster-name": node.cluster["stack_name"],
        "node-role": node.kind,
        "component": component,
        "level": "ERROR",
        "instance-id": node.instance_id,
        "compute": {
            "name": name or "unknown",
            "instance-id": node.instance_id,
            "instance-type": node.instance_type,
            "availability-zone": aws.metadata("meta-data/placement/availability-zone"),
            "address": node.address,
            "hostname": node.ec2_hostname,
            "queue-name": node.cluster.get("scheduler_queue_name"),
            "compute-resource": node.cluster.get("scheduler_compute_resource_name"),
            "node-type": kind(name) if name else "unknown",
        },
        "event-type": event_type,
        "message": message,
        "detail": dict(detail),
    }


def _query_name(node: Node) -> str:
    """Ask DynamoDB for the node's name.

    Messages: https://docs.aws.amazon.com/parallelcluster/latest/ug/troubleshooting-v3-networking.html.
    """
    failed = f"{_NAME_STEP}: no entry of {node.instance_id}"
    for left in range(_ATTEMPTS, -1, -1):
        try:
            answer = aws.call(
                "dynamodb",
                "Query",
                TableName=node.cluster["slurm_ddb_table"],
                IndexName="InstanceId",
                KeyConditionExpression="InstanceId = :instanceid",
                ExpressionAttributeValues={":instanceid": {"S": node.instance_id}},
                ProjectionExpression="Id",
            )
        except aws.AwsError as error:
            log.error("%s", error)
            failed = f"Failed to query DynamoDB for compute node info: {error}"
            answer = {}
        if items := answer.get("Items"):
            name = str(items[0]["Id"]["S"])
            log.info("Retrieved Slurm nodename is: %s", name)
            return name
        if left:
            unit = "attempt" if left == 1 else "attempts"
            log.info("Retrying execution of ruby_block[%s], %d %s left", _NAME_STEP, left - 1, unit)
            time.sleep(_PAUSE)
    raise StepError(_NAME_STEP, failed)
