"""Updates of a cluster, on its nodes (cookbook: update_head_node.rb, update_compute.rb, check_update)."""

from __future__ import annotations

import base64
import json
import logging
import re
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from emulator.machines.guest import accounting, aws, cloud_init, compute_node, head_node, pace, supervisor
from emulator.machines.guest import node as nodes
from emulator.machines.guest.node import DNA, SHARED, Node, StepError, write
from emulator.machines.guest.slurm_configuration import CONFIGURATION, INSTALLED

_TRIGGER: Final = SHARED / "update_trigger"
_CHECKPOINT: Final = Path("/opt/parallelcluster/.update_checkpoint")
_CHANGE_SET: Final = SHARED / "change-set.json"
_ATTEMPTS: Final = 10
_LIVE: Final = ("pending", "running")
_REASON: Final = "updating node state during cluster update"
log = logging.getLogger("update")


def update_head_node(node: Node) -> None:
    """Do what an update of the cluster asks of its head node.

    Raises:
        StepError: A step failed, or nodes do not follow.
    """
    supervisor.ask("stop", "clustermgtd")
    database = accounting.database(nodes.cluster_configuration())
    head_node.fetch_configuration(node)
    _share_dna()
    write(_TRIGGER, str(node.cluster["cluster_config_version"]))
    nodes.mount_file_systems(node)
    configuration = nodes.cluster_configuration()
    changes = json.loads(_CHANGE_SET.read_text(encoding="utf-8"))["changeSet"]
    strategy = str(configuration["Scheduling"]["SlurmSettings"].get("QueueUpdateStrategy"))
    for queue in queues_to_replace(changes):
        _replace(strategy, queue)
    head_node.write_slurm_configuration(node)
    nodes.stop_daemon(head_node.PID_FILE)
    wanted = accounting.database(configuration)
    changed = wanted != database
    if wanted and changed:
        accounting.configure(node, head_node.slurm_user())
    elif wanted:
        accounting.update_password()
    elif changed:
        accounting.clear()
    head_node.start_controller()
    if wanted and changed:
        accounting.bootstrap(node, head_node.slurm_user())
    speed = pace.load()
    time.sleep(speed.settle_seconds)
    nodes.run("reload config for running nodes", f"{INSTALLED}/bin/scontrol", "reconfigure")
    time.sleep(3 * speed.settle_seconds)
    supervisor.ask("start", "clustermgtd")
    compute_node.record(node, "DEPLOYED_UPDATE")
    _wait_until_nodes_have(node, str(node.cluster["cluster_config_version"]))


def queues_to_replace(changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the queues whose nodes an update's changes replace, in their order."""
    named = (
        re.search(r"Scheduling\.SlurmQueues\[([^\]]*)\]", str(change["parameter"]))
        for change in changes
        if change["updatePolicy"] == "QUEUE_UPDATE_STRATEGY"
    )
    return list(dict.fromkeys(match[1] for match in named if match))


def follow_updates(ended: threading.Event) -> None:
    """Run the update of this node whenever the head node has announced one (the timer pcluster-check-update)."""
    seconds = pace.load().check_update_seconds
    while not ended.wait(seconds):
        if not _TRIGGER.exists():
            continue
        version = _TRIGGER.read_text(encoding="utf-8").strip()
        node = Node.load()
        shared = SHARED / "dna" / f"{node.cluster['launch_template_id']}-dna.json"
        known = (
            _CHECKPOINT.read_text(encoding="utf-8") if _CHECKPOINT.exists() else node.cluster["cluster_config_version"]
        )
        if version == known or not shared.exists():
            continue
        write(DNA, shared.read_text(encoding="utf-8"))
        runlist = "aws-parallelcluster-entrypoints::update"
        done = subprocess.run(["/usr/local/sbin/cinc-client", "--override-runlist", runlist], check=False)
        if not done.returncode:
            write(_CHECKPOINT, version)


def update_other_node(node: Node) -> None:
    """Do what an update of the cluster asks of a compute or login node."""
    nodes.mount_file_systems(node)
    compute_node.record(node, "DEPLOYED_UPDATE")


def _share_dna() -> None:
    """Share the dna.json of nodes that start from now on, from the user data of their launch templates."""
    templates = json.loads((SHARED / "launch-templates-config.json").read_text(encoding="utf-8"))
    resources = [each for queue in templates["Queues"].values() for each in queue["ComputeResources"].values()]
    for each in (*resources, *templates.get("LoginPools", {}).values()):
        template = each["LaunchTemplate"]
        which = {f"LaunchTemplate{key}": template[key] for key in ("Id", "Name") if key in template}
        asked = {**which, "LaunchTemplateVersion.1": template["Version"]}
        answer = aws.query("ec2", "DescribeLaunchTemplateVersions", **asked)
        said = cloud_init.parse(base64.b64decode(answer.findtext(".//userData") or "").decode())
        [dna] = [text for path, text, _ in said.files if path.endswith("/dna.json")]
        write(SHARED / "dna" / f"{template['LogicalId']}-dna.json", dna)


def _replace(strategy: str, queue: str) -> None:
    path = Path(f"{CONFIGURATION}/pcluster/slurm_parallelcluster_{queue}_partition.conf")
    match = (
        re.search(r"^NodeSet=\S+ Nodes=(\S+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        if path.exists()
        else None
    )
    lists = match[1].split(",") if match else []
    static = [each for each in lists if f"{queue}-st-" in each]
    dynamic = [each for each in lists if f"{queue}-dy-" in each]
    log.info("Updating node state for queue (%s) with strategy %s", queue, strategy)
    if strategy == "DRAIN":
        _set_state("DRAIN", static)
        _set_state("POWER_DOWN_ASAP", dynamic)
    elif strategy == "TERMINATE":
        _set_state("POWER_DOWN_FORCE", lists)


def _set_state(state: str, lists: Sequence[str]) -> None:
    if lists:
        program = f"{INSTALLED}/bin/scontrol"
        arguments = (f"state={state}", f"nodename={','.join(lists)}", f"reason={_REASON}")
        nodes.run("replace slurm queue nodes", program, "update", *arguments)


def _wait_until_nodes_have(node: Node, version: str) -> None:
    """Wait until all nodes that run say that they have a version of the configuration.

    Raises:
        StepError: They do not.
    """
    wrong: list[tuple[str, str]] = []
    for attempt in range(_ATTEMPTS):
        time.sleep(pace.load().ready_seconds if attempt else 0)
        wrong = [(each, known) for each in _compute_nodes(node) if (known := _version(node, each)) != version]
        if not wrong:
            return
    missing = [each for each, known in wrong if not known]
    wrong = [each for each in wrong if each[1]]
    raise StepError(
        "Check cluster readiness",
        "Check failed due to the following erroneous records:\n"
        f"  * missing records ({len(missing)}): {missing}\n  * incomplete records (0): []\n"
        f"  * wrong records ({len(wrong)}): {wrong}",
    )


def _compute_nodes(node: Node) -> list[str]:
    filters = {
        "tag:parallelcluster:cluster-name": [str(node.cluster["stack_name"])],
        "tag:parallelcluster:node-type": ["Compute", "LoginNode"],
        "instance-state-name": _LIVE,
    }
    parameters = {}
    for number, (name, values) in enumerate(filters.items(), 1):
        parameters[f"Filter.{number}.Name"] = name
        parameters |= {f"Filter.{number}.Value.{place}": value for place, value in enumerate(values, 1)}
    answer = aws.query("ec2", "DescribeInstances", **parameters)
    return [each.text or "" for each in answer.findall(".//instancesSet/item/instanceId")]


def _version(node: Node, instance_id: str) -> str:
    key = {"Id": {"S": f"CLUSTER_CONFIG.{instance_id}"}}
    item = aws.call("dynamodb", "GetItem", TableName=node.table, Key=key).get("Item", {})
    return str(item.get("Data", {}).get("M", {}).get("cluster_config_version", {}).get("S", ""))
