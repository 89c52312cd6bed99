"""fetch_and_run: downloads the scripts of a custom action of the cluster's configuration, and runs them.

As custom_action_executor.py of aws-parallelcluster-cookbook does it, whose messages these are. What a script prints
goes on to whoever runs this: cfn-init on a head node, the user data on a compute node.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from emulator.machines.guest import aws, compute_node, preinstalled
from emulator.machines.guest.node import BOOTSTRAP_ERROR, Node, cluster_configuration, write

_EVENTS: Final = {"-preinstall": "OnNodeStart", "-postinstall": "OnNodeConfigured", "-postupdate": "OnNodeUpdated"}
_WHERE_TO_LOOK: Final = (
    "Please check /var/log/cfn-init.log in the head node, or check the cfn-init.log in CloudWatch logs. "
    "Please refer to https://docs.aws.amazon.com/parallelcluster/latest/ug/troubleshooting-v3.html"
    "#troubleshooting-v3-get-logs for more details on ParallelCluster logs."
)


class ActionError(RuntimeError):
    """A script could not be fetched, or failed."""

    def __init__(self, step: int, stage: str, message: str, error: object) -> None:
        super().__init__(message)
        self.detail = {"step": step, "stage": stage, "error": error}


def scripts(configuration: Mapping[str, Any], kind: str, name: str, event: str) -> list[Mapping[str, Any]]:
    """Return the scripts of an event, each with Script and Args.

    Args:
        configuration: The cluster's.
        kind: Of the node: HeadNode, ComputeFleet or LoginNode.
        name: Of a compute node's queue, or of a login node's pool.
        event: Such as OnNodeConfigured.
    """
    if kind == "HeadNode":
        section = configuration["HeadNode"]
    else:
        among = configuration["Scheduling"]["SlurmQueues"]
        if kind == "LoginNode":
            among = configuration["LoginNodes"]["Pools"]
        section = next((each for each in among if each["Name"] == name), {})
    action = (section.get("CustomActions") or {}).get(event) or {}
    return list(action.get("Sequence") or ([action] if action.get("Script") else []))


def fetch_and_run(arguments: Sequence[str]) -> int:
    """Run the scripts of the event that the first argument names; return the exit code."""
    event, node = _EVENTS[arguments[0]], Node.load()
    name = node.cluster.get("scheduler_queue_name") or node.cluster.get("pool_name") or ""
    actions = scripts(cluster_configuration(), node.kind, name, event)
    if event == "OnNodeUpdated" and actions and not _is_in_update(node):
        return 0
    for step, action in enumerate(actions, 1):
        try:
            _run(event, step, str(action["Script"]), [str(each) for each in action.get("Args") or ()])
        except ActionError as error:
            _tell(node, event, error)
            return 1
    return 0


def _run(event: str, step: int, url: str, arguments: Sequence[str]) -> None:
    parts = urllib.parse.urlsplit(url)
    failed = f"Failed to download {event} script {step}"
    if parts.scheme != "s3":
        raise ActionError(step, "downloading", f"{failed} via HTTP.", "a machine reaches nothing but AWS")
    try:
        content = aws.read_object(parts.netloc, parts.path.lstrip("/"))
    except aws.AwsError as error:
        raise ActionError(step, "downloading", f"{failed} using aws s3.", str(error)) from error
    print(f"INFO:root:The hash of script {url} is: {hashlib.sha256(content).hexdigest()}", flush=True)
    preinstalled.provide([*arguments, *_within(arguments)])
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(content)
    path = Path(file.name)
    path.chmod(0o700)
    done = subprocess.run([file.name, *arguments], stderr=subprocess.PIPE, text=True, check=False, env={**os.environ})
    path.unlink(missing_ok=True)
    if done.returncode:
        message = f"Failed to execute {event} script {step}, return code: {done.returncode}."
        raise ActionError(step, "executing", message, {"exit_code": done.returncode, "stderr": done.stderr})


def _within(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments of scripts that arguments name as JSON, as those of run_actions.sh do."""
    for each in arguments:
        if each.startswith("{"):
            yield from json.loads(each)["args"]


def _tell(node: Node, event: str, error: ActionError) -> None:
    if node.kind == "ComputeFleet":
        detail = {"action": event, **error.detail}
        told = compute_node.event(node, "custom-action", "custom-action-error", str(error), detail)
        write(BOOTSTRAP_ERROR, json.dumps(told) + "\n")
        print(error)
        return
    message = f"fetch_and_run - {error} {_WHERE_TO_LOOK}"
    print(f"{datetime.now(UTC):%b %d %H:%M:%S} parallelcluster: {message}", file=sys.stderr)
    if event != "OnNodeUpdated":
        write(BOOTSTRAP_ERROR, message + "\n")


def _is_in_update(node: Node) -> bool:
    answer = aws.query("cloudformation", "DescribeStacks", StackName=str(node.cluster["stack_name"]))
    status = answer.findtext(".//StackStatus")
    if status != "UPDATE_IN_PROGRESS":
        print(f"Post update hook called with CFN stack in state {status}, doing nothing")
    return status == "UPDATE_IN_PROGRESS"
