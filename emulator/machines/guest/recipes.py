"""cinc-client: runs what stands here for a recipe of ParallelCluster's cookbook, and writes Chef's log."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from emulator.machines.guest import aws, compute_node, head_node, login_node, preinstalled, update
from emulator.machines.guest.node import BOOTSTRAP_ERROR, Node, StepError, write

_LOG: Final = Path("/var/log/chef-client.log")
_RECIPES: Final[Mapping[tuple[str, str], Callable[[Node], None]]] = {
    ("HeadNode", "init"): head_node.init,
    ("HeadNode", "config"): head_node.config,
    ("HeadNode", "finalize"): head_node.finalize,
    ("HeadNode", "update"): update.update_head_node,
    ("HeadNode", "update_computefleet_status"): head_node.update_fleet_status,
    ("ComputeFleet", "init"): compute_node.init,
    ("ComputeFleet", "config"): compute_node.config,
    ("ComputeFleet", "finalize"): compute_node.finalize,
    ("ComputeFleet", "update"): update.update_other_node,
    ("LoginNode", "init"): login_node.init,
    ("LoginNode", "config"): login_node.config,
    ("LoginNode", "finalize"): login_node.finalize,
    ("LoginNode", "update"): update.update_other_node,
}

_RECIPES_OF: Final = "aws-parallelcluster-entrypoints"
_MOUNTED: Final[Mapping[str, str]] = {"mount ebs": "EBS volume", "mount efs": "EFS", "mount fsx": "FSX"}
"""What a head node says that it could not mount, by which ParallelCluster's command line knows the failure."""
_WHERE_TO_LOOK: Final = (
    "Please check /var/log/chef-client.log in the head node, or check the chef-client.log in CloudWatch logs. "
    "Please refer to https://docs.aws.amazon.com/parallelcluster/latest/ug/troubleshooting-v3.html"
    "#troubleshooting-v3-get-logs for more details on ParallelCluster logs."
)


class _Format(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        now = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds")
        return f"[{now}] {record.levelname.replace('WARNING', 'WARN')}: {record.getMessage()}"


def cinc_client(arguments: Sequence[str]) -> int:
    """Run the recipe that --override-runlist names; return the exit code."""
    name = arguments[-1].rpartition("::")[2]
    handlers: list[logging.Handler] = [logging.FileHandler(_LOG), logging.StreamHandler(sys.stdout)]
    for handler in handlers:
        handler.setFormatter(_Format())
    logging.basicConfig(level=logging.INFO, handlers=handlers)
    log = logging.getLogger("cinc")
    node = Node.load()
    started = time.monotonic()
    log.info("*** Cinc Client: run list [recipe[%s]] ***", arguments[-1])
    if name == "init":
        preinstalled.set_system(str(node.cluster["base_os"]))
    if name == "config":
        preinstalled.lift_protection(str(node.cluster["base_os"]))
    try:
        _RECIPES[node.kind, name](node)
    except (StepError, aws.AwsError, OSError) as error:
        resource = error.resource if isinstance(error, StepError) else type(error).__name__
        log.error("%s: %s", resource, error)
        log.fatal("Stacktrace dumped to /etc/chef/local-mode-cache/cache/cinc-stacktrace.out")
        _tell(node, name, resource, error)
        return 1
    log.info("Cinc Run complete in %.1f seconds", time.monotonic() - started)
    return 0


def _tell(node: Node, recipe: str, resource: str, error: Exception) -> None:
    """Leave what failed where the node's end reads it (cookbook: emit_chef_error_event.rb and its twin for heads)."""
    if node.kind == "ComputeFleet":
        failure = {
            "exception-type": type(error).__name__,
            "error-title": str(error),
            "recipe-name": recipe,
            "resource-name": resource,
        }
        told = compute_node.event(
            node, recipe, "chef-recipe-exception", "Chef recipe exception", {"failures": [failure]}
        )
        write(BOOTSTRAP_ERROR, json.dumps(told) + "\n")
    elif recipe != "update":
        what = _MOUNTED.get(resource)
        failed = (
            f"Failed to mount {what}." if what else f"Failed to run chef recipe {_RECIPES_OF}::{recipe} ({resource})."
        )
        write(BOOTSTRAP_ERROR, f"{failed} {_WHERE_TO_LOOK}\n")
