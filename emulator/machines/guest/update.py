"""Updates of a cluster, on its nodes (cookbook: update_head_node.rb, update_compute.rb, check_update)."""

from __future__ import annotations

import base64
import json
import logging
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from emulator.machines.guest import accounting, aws, cloud_init, compute_node, head_node, pace, supervisor
from emulator.machines.guest import node as nodes
from emulator.machines.guest.node import DNA, SHARED, Node, StepError, write
from emulator.machines.guest.slurm_configuration import CONFIGURATION, INSTALLED

_TRIGGER: Final = SHARED / "update_trigger"
_DNA: Final = SHARED / "dna"
_CHECKPOINT: Final = Path("/opt/parallelcluster/.update_checkpoint")
_CHANGE_SET: Final = SHARED / "change-set.json"
_LOOKS: Final = nodes.RUN / "exports" / ".looks"
"""Has for each node how often it has looked for an update."""
_RETRIES: Final = 10
_SHARING_SECONDS: Final = 30
"""How long the head node takes at most to read all launch templates (cookbook: fetch_dna_files.rb)."""
_SHARING: Final = "Run manage_fleet_dna.py to get user_data.sh and share dna.json with ComputeFleet and LoginNodes"
_REASON: Final = "updating node state during cluster update"
log = logging.getLogger("update")


def update_head_node(node: Node) -> None:
    """Do what an update of the cluster asks of its head node.

    After a failure clustermgtd runs again, and nodes take nothing over (cookbook: update_failure_handler.rb;
    aws-parallelcluster-cookbook#3063).

    Raises:
        StepError: A step failed, or nodes do not follow.
    """
    try:
        _update(node)
    except StepError:
        for path in _DNA.glob("*"):
            path.unlink()
        supervisor.ask("start", "clustermgtd")
        raise


def _update(node: Node) -> None:
    supervisor.ask("stop", "clustermgtd")
    database = accounting.database(nodes.cluster_configuration())
    head_node.fetch_configuration(node)
    _retried(_share_dna)
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
    version, since = str(node.cluster["cluster_config_version"]), datetime.now(UTC)
    _retried(lambda: _check_that_nodes_have(node, version, since), _let_nodes_look)


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
    seconds, looks = pace.load().check_update_seconds, 0
    counter = _LOOKS / Node.load().instance_id
    while not ended.wait(seconds):
        looks += 1
        with suppress(OSError):  # of a cluster that has ended
            write(counter, str(looks))
        if not _TRIGGER.exists():
            continue
        version = _TRIGGER.read_text(encoding="utf-8").strip()
        node = Node.load()
        if node.kind == "LoginNode" and is_ending():
            continue
        shared = _DNA / f"{node.cluster['launch_template_id']}-dna.json"
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


def is_ending() -> bool:
    """Return whether Auto Scaling is about to terminate this node; such a node was seen not to follow updates.

    https://github.com/aws/aws-parallelcluster/issues/7172 (3.14.0; of later versions nothing is known)
    """
    return aws.metadata("meta-data/autoscaling/target-lifecycle-state") == "Terminated"


def update_other_node(node: Node) -> None:
    """Do what an update of the cluster asks of a compute or login node."""
    nodes.mount_file_systems(node)
    compute_node.record(node, "DEPLOYED_UPDATE")


def _share_dna() -> None:
    """Share the dna.json of nodes that start from now on, from the user data of their launch templates.

    The head node reads one after the other, and has 30 seconds for all (aws-parallelcluster#7519). How long it takes is
    not waited for but counted, so that the limit does not depend on this machine.

    Raises:
        StepError: They are too many.
    """
    templates = json.loads((SHARED / "launch-templates-config.json").read_text(encoding="utf-8"))
    resources = [each for queue in templates["Queues"].values() for each in queue["ComputeResources"].values()]
    listed = [each["LaunchTemplate"] for each in (*resources, *templates.get("LoginPools", {}).values())]
    if len(listed) * pace.load().template_seconds >= _SHARING_SECONDS:
        raise StepError(
            _SHARING,
            f"Mixlib::ShellOut::CommandTimeout: Command timed out after {_SHARING_SECONDS}s:\n"
            "Command exceeded allowed execution time, process terminated\n"
            "---- Begin output of python manage_fleet_dna.py ----",
        )
    for template in listed:
        which = {f"LaunchTemplate{key}": template[key] for key in ("Id", "Name") if key in template}
        asked = {**which, "LaunchTemplateVersion.1": template["Version"]}
        answer = aws.query("ec2", "DescribeLaunchTemplateVersions", **asked)
        said = cloud_init.parse(base64.b64decode(answer.findtext(".//userData") or "").decode())
        [dna] = [text for path, text, _ in said.files if path.endswith("/dna.json")]
        write(_DNA / f"{template['LogicalId']}-dna.json", dna)


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


def _retried(step: Callable[[], None], pause: Callable[[StepError], object] = lambda _: None) -> None:
    """Run a step that is tried again while it fails, as long as the cookbook does; `pause` may take longer.

    Raises:
        StepError: It failed each time.
    """
    for _ in range(_RETRIES):
        try:
            return step()
        except StepError as error:
            log.info("%s: %s; trying again", error.resource, error)
            time.sleep(pace.load().ready_seconds)
            pause(error)
    return step()


class NodesError(StepError):
    """Nodes have not taken an update over; `late` has their ids."""

    late: Sequence[str] = ()


def _let_nodes_look(error: StepError) -> None:
    """Wait until each node that has not taken an update over has looked for it once more, or is stuck."""
    late = error.late if isinstance(error, NodesError) else ()
    before = {each: _looks(each) for each in late}
    end = time.monotonic() + pace.load().look_seconds
    while time.monotonic() < end and any(_looks(each) == count for each, count in before.items()):
        time.sleep(0.1)


def _looks(instance_id: str) -> str:
    """Return how often a node has looked for an update; empty: never."""
    try:
        return (_LOOKS / instance_id).read_text(encoding="ascii")
    except OSError:
        return ""


def _check_that_nodes_have(node: Node, version: str, since: datetime) -> None:
    """Check that all nodes that run have a version of the configuration.

    Raises:
        StepError: They do not.
    """
    records = {each: _record(node, each) for each in _other_nodes(node)}
    missing, incomplete, wrong, tolerated = sort_records(records, version, since)
    if incomplete or wrong:
        label = f"wrong records tolerated, bootstrapped after cut-off time ({since.isoformat(timespec='milliseconds')})"
        error = NodesError(
            "Check cluster readiness",
            "Check failed due to the following erroneous records "
            f"(missing records and {label} are not counted for the failure):\n"
            f"  * missing records ({len(missing)}): {missing}\n"
            f"  * incomplete records ({len(incomplete)}): {incomplete}\n"
            f"  * wrong records ({len(wrong)}): {wrong}\n"
            f"  * {label} ({len(tolerated)}): {tolerated}",
        )
        error.late = [*incomplete, *(each for each, _ in wrong)]
        raise error


Sorted = tuple[list[str], list[str], list[tuple[str, str]], list[str]]


def sort_records(records: Mapping[str, Mapping[str, str] | None], version: str, since: datetime) -> Sorted:
    """Return which nodes have no record, one without a version, another version, and one that is tolerated.

    A node that does not end its start-up before the check has no record, and one that ended it since the check began
    may have started with the version before (cookbook: check_cluster_ready.py; aws-parallelcluster-cookbook#3062, since
    3.14.1, and #3141, since 3.15.0).
    """
    missing, incomplete, wrong, tolerated = [], [], [], []
    for instance_id, record in records.items():
        known = (record or {}).get("cluster_config_version")
        if record is None:
            missing.append(instance_id)
        elif known is None:
            incomplete.append(instance_id)
        elif known != version:
            ended = datetime.fromisoformat(record["lastUpdateTime"]) if "lastUpdateTime" in record else None
            if record.get("status") == "DEPLOYED_BOOTSTRAP" and ended and ended >= since:
                tolerated.append(instance_id)
            else:
                wrong.append((instance_id, known))
    return missing, incomplete, wrong, tolerated


def _other_nodes(node: Node) -> Iterable[str]:
    """Return the compute and login nodes that run; also login nodes that are about to be terminated."""
    filters = {
        "tag:parallelcluster:cluster-name": [str(node.cluster["stack_name"])],
        "tag:parallelcluster:node-type": ["Compute", "LoginNode"],
        "instance-state-name": ["running"],
    }
    parameters = {}
    for number, (name, values) in enumerate(filters.items(), 1):
        parameters[f"Filter.{number}.Name"] = name
        parameters |= {f"Filter.{number}.Value.{place}": value for place, value in enumerate(values, 1)}
    answer = aws.query("ec2", "DescribeInstances", **parameters)
    return [each.text or "" for each in answer.findall(".//instancesSet/item/instanceId")]


def _record(node: Node, instance_id: str) -> dict[str, str] | None:
    key = {"Id": {"S": f"CLUSTER_CONFIG.{instance_id}"}}
    item = aws.call("dynamodb", "GetItem", TableName=node.table, Key=key).get("Item")
    return {name: each["S"] for name, each in item["Data"]["M"].items()} if item else None
