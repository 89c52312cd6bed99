"""The head nodes of clusters: what they report, record and end, without being there.

A node of ParallelCluster learns from its user data and from the metadata of its launch template what to do, and reports
to a URL that it finds there. So does the one here (aws-parallelcluster, pcluster/resources/head_node/user_data.sh and
pcluster/templates/cluster_stack.py), through the same APIs. Nothing runs on it: no Slurm, no scripts.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import urllib.request
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, Final

from botocore.exceptions import ClientError

from emulator.background import Background
from emulator.clients import Clients
from emulator.clock import Clock
from emulator.faults import Faults
from emulator.moto_patches.lives import InstanceListener
from toolchain.durations import BOOT_SECONDS, UPDATE_SECONDS

SCRIPT_FAILURE: Final = (
    "fetch_and_run - Failed to execute OnNodeConfigured script 1, return code: 1. Please check /var/log/cfn-init.log "
    "in the head node, or check the cfn-init.log in CloudWatch logs. Please refer to "
    "https://docs.aws.amazon.com/parallelcluster/latest/ug/troubleshooting-v3.html#troubleshooting-v3-get-logs for "
    "more details on ParallelCluster logs."
)
"""What a node reports whose script failed (aws-parallelcluster-cookbook, custom_action_executor.py)."""

_INTERVAL = 0.5
_UNASKED = 20
"""After so many intervals a node looks around though nobody has asked for anything."""
_TYPE_TAG, _NAME_TAG = "parallelcluster:node-type", "parallelcluster:cluster-name"
_HANDLE_FILE = "/opt/parallelcluster/tmp/wait_condition_handle.txt"
_CFN_INIT = re.compile(r"cfn-init -s (?P<stack>\S+) .*?-r (?P<resource>\S+)")
_FLEET = {"Id": {"S": "COMPUTE_FLEET"}}


class Nodes(InstanceListener):
    """All head nodes of one server, each a thread as long as there is its instance."""

    def __init__(
        self, clients: Clients, clock: Clock, faults: Faults, background: Background, of_others: Callable[[], int]
    ) -> None:
        """Make it.

        Args:
            clients: Those of nodes.
            clock: What waits for them.
            faults: In force.
            background: Where they live.
            of_others: Returns how many requests the server has served that nodes did not make.
        """
        self._clients = clients
        self._clock = clock
        self._faults = faults
        self._background = background
        self._of_others = of_others

    def launched(self, region: str, instance_id: str, tags: Mapping[str, str]) -> None:
        """Take notice of an instance that started; only head nodes have something to do."""
        if tags.get(_TYPE_TAG) == "HeadNode" and _NAME_TAG in tags:
            node = _HeadNode(self._clients, region, instance_id, tags[_NAME_TAG])
            self._background.start(partial(self._live, node))

    def _live(self, node: _HeadNode, paused: threading.Event) -> bool:
        try:
            return self._is_over(node, paused)
        except Exception:
            if not paused.is_set():  # a reset removes everything, also what a node is about to ask
                raise
            return False

    def _is_over(self, node: _HeadNode, paused: threading.Event) -> bool:
        """Live until the instance is terminated; False: until the pause."""
        if not node.handle:
            self._clock.sleep(BOOT_SECONDS)
            node.handle = node.newest_handle()
            if "head-node" in self._faults:
                node.signal("FAILURE", SCRIPT_FAILURE)
                return True
            node.set_fleet("RUNNING")
            node.signal("SUCCESS", "HeadNode setup complete")
        seen, unasked = -1, 0
        while not paused.wait(_INTERVAL):
            # Accounts of which tests use clones alone would cost 2 % of a core each, as long as the tests run.
            unasked = unasked + 1 if self._of_others() == seen else 0
            if unasked % _UNASKED:
                continue
            seen = self._of_others()
            state = node.state()
            if state == "terminated":
                return True
            if state != "running":
                continue
            node.follow_fleet_requests()
            if (handle := node.newest_handle()) != node.handle:
                node.handle = handle
                self._clock.sleep(UPDATE_SECONDS)
                failed = "head-node" in self._faults
                node.signal(*(("FAILURE", "Update failed") if failed else ("SUCCESS", "Update complete")))
        return False


class _HeadNode:
    """What one head node does.

    Attributes:
        handle: The URL to which it reports; empty: it is not set up.
    """

    def __init__(self, clients: Clients, region: str, instance_id: str, cluster_name: str) -> None:
        self._client = partial(clients, region=region)
        self._instance_id = instance_id
        self._cluster_name = cluster_name
        self._table = f"parallelcluster-{cluster_name}"
        self.handle = ""

    @cached_property
    def _metadata(self) -> dict[str, str]:
        """Stack and resource whose metadata say what to do, from the user data."""
        attribute = self._client("ec2").describe_instance_attribute(InstanceId=self._instance_id, Attribute="userData")
        named = _CFN_INIT.search(base64.b64decode(attribute["UserData"]["Value"]).decode())
        if named is None:
            raise ValueError(f"{self._instance_id}: the user data does not say where the node's metadata is")
        return {"StackName": named["stack"], "LogicalResourceId": named["resource"]}

    def state(self) -> str:
        """Return the instance's state; "terminated", too, if there is none."""
        try:
            described = self._client("ec2").describe_instances(InstanceIds=[self._instance_id])
        except ClientError:
            return "terminated"
        return str(described["Reservations"][0]["Instances"][0]["State"]["Name"])

    def newest_handle(self) -> str:
        """Return the URL that the node has to report to, from its launch template's metadata."""
        resource = self._client("cloudformation").describe_stack_resource(**self._metadata)["StackResourceDetail"]
        files = json.loads(resource["Metadata"])["AWS::CloudFormation::Init"]["deployConfigFiles"]["files"]
        return str(files[_HANDLE_FILE]["content"])

    def signal(self, status: str, reason: str) -> None:
        """Report, as cfn-signal does."""
        signal = {"Status": status, "Reason": reason, "UniqueId": self._instance_id, "Data": reason}
        request = urllib.request.Request(self.handle, json.dumps(signal).encode(), method="PUT")  # noqa: S310 - own server
        urllib.request.urlopen(request).close()  # noqa: S310

    def set_fleet(self, status: str) -> None:
        """Record the status of the compute fleet, as ParallelCluster's daemons do."""
        data = {"status": {"S": status}, "lastStatusUpdatedTime": {"S": str(datetime.now(UTC))}}
        self._client("dynamodb").put_item(TableName=self._table, Item={**_FLEET, "Data": {"M": data}})

    def follow_fleet_requests(self) -> None:
        """Start or stop the fleet when that was requested; what is stopped is terminated.

        https://docs.aws.amazon.com/parallelcluster/latest/ug/pcluster.update-compute-fleet-v3.html
        """
        item: dict[str, Any] = self._client("dynamodb").get_item(TableName=self._table, Key=_FLEET).get("Item", {})
        status = item.get("Data", {}).get("M", {}).get("status", {}).get("S", "")
        if status == "START_REQUESTED":
            self.set_fleet("RUNNING")
        elif status == "STOP_REQUESTED":
            self.set_fleet("STOPPING")
            self._terminate_compute_nodes()
            self.set_fleet("STOPPED")

    def _terminate_compute_nodes(self) -> None:
        filters = [
            {"Name": f"tag:{_NAME_TAG}", "Values": [self._cluster_name]},
            {"Name": f"tag:{_TYPE_TAG}", "Values": ["Compute"]},
            {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]},
        ]
        for page in self._client("ec2").get_paginator("describe_instances").paginate(Filters=filters):
            ids = [each["InstanceId"] for reservation in page["Reservations"] for each in reservation["Instances"]]
            if ids:
                self._client("ec2").terminate_instances(InstanceIds=ids)
