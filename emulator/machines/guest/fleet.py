"""The daemons of the compute fleet, and its status: scripts that read and change it, and who follows requests."""

from __future__ import annotations

import importlib
import json
import logging
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from emulator.machines.guest import aws, pace
from emulator.machines.guest.node import Node

REQUEST: Final = Path("/opt/parallelcluster/shared/computefleet-status.json")
_KEY: Final = {"Id": {"S": "COMPUTE_FLEET"}}
_TRANSITIONS: Final = {
    "START_REQUESTED": ("STARTING", "RUNNING"),
    "STARTING": ("STARTING", "RUNNING"),
    "STOP_REQUESTED": ("STOPPING", "STOPPED"),
    "STOPPING": ("STOPPING", "STOPPED"),
}
_CHANGED: Final = "lastStatusUpdatedTime"
_ASKED: Final = {"STARTING": "START_REQUESTED", "STOPPING": "STOP_REQUESTED"}
_RECIPE: Final = "aws-parallelcluster-entrypoints::update_computefleet_status"
log = logging.getLogger("clusterstatusmgtd")


def status(node: Node) -> str:
    """Return the fleet's status; empty: it has none."""
    return str(_read(node).get("status", ""))


def put_status(node: Node, new: str) -> None:
    """Set the fleet's status, whatever it was."""
    data = {"status": {"S": new}, _CHANGED: {"S": str(datetime.now(UTC))}}
    aws.call("dynamodb", "PutItem", TableName=node.table, Item={**_KEY, "Data": {"M": data}})


def change_status(node: Node, old: str, new: str) -> None:
    """Change the fleet's status.

    Raises:
        aws.AwsError: It is another one meanwhile.
    """
    aws.call(
        "dynamodb",
        "UpdateItem",
        TableName=node.table,
        Key=_KEY,
        UpdateExpression="set #dt.#st=:s, #dt.#lut=:t",
        ExpressionAttributeNames={"#dt": "Data", "#st": "status", "#lut": _CHANGED},
        ExpressionAttributeValues={":s": {"S": new}, ":t": {"S": str(datetime.now(UTC))}, ":old": {"S": old}},
        ConditionExpression="#dt.#st = :old",
    )


def get_compute_fleet_status(arguments: Sequence[str]) -> int:
    """Print the fleet's status as JSON (cookbook: compute_fleet_status.py)."""
    if arguments:
        return _refuse("get", f"Unrecognized option '{arguments[0]}'")
    try:
        said = _read(Node.load())
        changed = datetime.fromisoformat(said[_CHANGED]).astimezone(UTC).isoformat(timespec="milliseconds")
    except (aws.AwsError, OSError, KeyError, ValueError) as error:
        return _refuse("get", f"Failed when retrieving fleet status from DynamoDB with error {error}.")
    shown = {"status": said["status"], _CHANGED: changed.replace("+00:00", "Z")}
    print(json.dumps(shown, sort_keys=True, indent=4))
    return 0


def update_compute_fleet_status(arguments: Sequence[str]) -> int:
    """Close a fleet that is RUNNING, which is all that it does (cookbook: compute_fleet_status.py)."""
    if "=".join(arguments).split("=") != ["--status", "PROTECTED"]:
        return _refuse("update", "invalid choice for parameter --status (can be only 'PROTECTED')")
    try:
        node = Node.load()
        now = status(node)
        if now == "RUNNING":
            change_status(node, now, "PROTECTED")
        elif now != "PROTECTED":
            return _refuse("update", f"Could not update compute fleet status from '{now}' to PROTECTED.")
    except (aws.AwsError, OSError, KeyError, ValueError) as error:
        return _refuse("update", f"Failed when updating fleet status with error: {error}")
    return 0


def _refuse(action: str, why: str) -> int:
    print(f"ERROR: Failed to {action} compute fleet status, exception: {why}", file=sys.stderr)
    return 1


def clustermgtd(_: Sequence[str]) -> int:
    """Run AWS's own daemon, unchanged, at the pace of this machine."""
    pace.cap_sleep(pace.load().longest_sleep)
    importlib.import_module("slurm_plugin.clustermgtd").main()
    return 0


def clusterstatusmgtd(_: Sequence[str]) -> int:
    """Follow requests to start or stop the fleet (cookbook: clusterstatusmgtd.py)."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stdout,
        format="%(asctime)s - [%(name)s:%(funcName)s] - %(levelname)s - %(message)s",
    )  # fmt: skip
    log.info("ClusterStatusManager Startup")
    node, seconds = Node.load(), pace.load().status_seconds
    while True:
        try:
            _follow(node)
        except (aws.AwsError, subprocess.CalledProcessError) as error:
            log.error("Failed when handling compute fleet status transitions with exception %s", error)
        time.sleep(seconds)


def _follow(node: Node) -> None:
    now = status(node)
    if now not in _TRANSITIONS:
        return
    log.info("Current compute fleet status: %s", now)
    during, after = _TRANSITIONS[now]
    if now != during:
        log.info("Updating compute fleet status from %s to %s", now, during)
        change_status(node, now, during)
    REQUEST.write_text(json.dumps({**_read(node), "status": _ASKED[during]}), encoding="utf-8")
    log.info("Calling update event handler, log can be found at /var/log/chef-client.log")
    program = "/usr/local/sbin/cinc-client"
    subprocess.run([program, "--override-runlist", _RECIPE], stdout=subprocess.DEVNULL, check=True)
    log.info("Updating compute fleet status from %s to %s", during, after)
    change_status(node, during, after)


def _read(node: Node) -> dict[str, Any]:
    item = aws.call("dynamodb", "GetItem", TableName=node.table, Key=_KEY, ConsistentRead=True).get("Item", {})
    return {name: value["S"] for name, value in item.get("Data", {}).get("M", {}).items() if "S" in value}
