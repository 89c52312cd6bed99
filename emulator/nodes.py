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
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from emulator.cloudformation.clients import Clients
from emulator.cloudformation.clock import Clock
from emulator.faults import Faults
from toolchain.durations import BOOT_SECONDS, UPDATE_SECONDS

SCRIPT_FAILURE: Final = (
    "fetch_and_run - Failed to execute OnNodeConfigured script 1, return code: 1. Please check /var/log/cfn-init.log "
    "in the head node, or check the cfn-init.log in CloudWatch logs. Please refer to "
    "https://docs.aws.amazon.com/parallelcluster/latest/ug/troubleshooting-v3.html#troubleshooting-v3-get-logs for "
    "more details on ParallelCluster logs."
)
"""What a node reports whose script failed (aws-parallelcluster-cookbook, custom_action_executor.py)."""

_LOOK = 0.5
_TYPE_TAG, _NAME_TAG = "parallelcluster:node-type", "parallelcluster:cluster-name"
_HANDLE_FILE = "/opt/parallelcluster/tmp/wait_condition_handle.txt"
_CFN_INIT = re.compile(r"cfn-init -s (?P<stack>\S+) .*?-r (?P<resource>\S+)")
_FLEET = {"Id": {"S": "COMPUTE_FLEET"}}


class Nodes:
    """All head nodes of one server, each a thread as long as there is its instance."""

    def __init__(self, clients: Clients, clock: Clock, faults: Faults) -> None:
        self._clients = clients
        self._clock = clock
        self._faults = faults
        self._stopped = threading.Event()

    def launched(self, region: str, instance_id: str, tags: Mapping[str, str]) -> None:
        """Take notice of an instance that started; only head nodes have something to do."""
        stopped = self._stopped
        if tags.get(_TYPE_TAG) != "HeadNode":
            return

        def live() -> None:
            try:
                self._live(region, instance_id, tags[_NAME_TAG], stopped)
            except Exception:
                if not stopped.is_set():  # a reset takes everything away, also what a node is about to ask
                    raise

        threading.Thread(target=live, daemon=True).start()

    def reset(self) -> None:
        """Let all nodes end."""
        self._stopped.set()
        self._stopped = threading.Event()

    def _live(self, region: str, instance_id: str, cluster_name: str, stopped: threading.Event) -> None:
        ec2 = self._clients("ec2", region)
        user_data = ec2.describe_instance_attribute(InstanceId=instance_id, Attribute="userData")["UserData"]["Value"]
        script = base64.b64decode(user_data).decode()
        node = _HeadNode(self._clients, region, instance_id, cluster_name, script)
        self._clock.sleep(BOOT_SECONDS)
        handle = node.handle()
        if "head-node" in self._faults:
            node.signal(handle, "FAILURE", SCRIPT_FAILURE)
            return
        node.set_fleet("RUNNING")
        node.signal(handle, "SUCCESS", "HeadNode setup complete")
        while not stopped.wait(_LOOK) and (state := node.state()) != "terminated":
            if state != "running":
                continue
            node.follow_fleet_requests()
            if (changed := node.handle()) != handle:
                handle = changed
                self._clock.sleep(UPDATE_SECONDS)
                node.signal(handle, "SUCCESS", "Update complete")


class _HeadNode:
    """What one head node does."""

    def __init__(self, clients: Clients, region: str, instance_id: str, cluster_name: str, user_data: str) -> None:
        named = _CFN_INIT.search(user_data)
        if named is None:
            raise ValueError(f"{instance_id}: the user data does not say where the node's metadata is")
        self._stack, self._resource = named["stack"], named["resource"]
        self._cloudformation = clients("cloudformation", region)
        self._dynamodb = clients("dynamodb", region)
        self._ec2 = clients("ec2", region)
        self._instance_id = instance_id
        self._cluster_name = cluster_name
        self._table = f"parallelcluster-{cluster_name}"

    def state(self) -> str:
        """Return the instance's state; "terminated", too, if there is none."""
        try:
            found = self._ec2.describe_instances(InstanceIds=[self._instance_id])
        except ClientError:
            return "terminated"
        return str(found["Reservations"][0]["Instances"][0]["State"]["Name"])

    def handle(self) -> str:
        """Return the URL that the node has to report to, from its launch template's metadata."""
        resource = self._cloudformation.describe_stack_resource(
            StackName=self._stack, LogicalResourceId=self._resource
        )["StackResourceDetail"]
        files = json.loads(resource["Metadata"])["AWS::CloudFormation::Init"]["deployConfigFiles"]["files"]
        return str(files[_HANDLE_FILE]["content"])

    def signal(self, handle: str, status: str, reason: str) -> None:
        """Report, as cfn-signal does."""
        signal = {"Status": status, "Reason": reason, "UniqueId": self._instance_id, "Data": reason}
        request = urllib.request.Request(handle, json.dumps(signal).encode(), method="PUT")  # noqa: S310 - own server
        urllib.request.urlopen(request).close()  # noqa: S310

    def set_fleet(self, status: str) -> None:
        """Record the status of the compute fleet, as ParallelCluster's daemons do."""
        data = {"status": {"S": status}, "lastStatusUpdatedTime": {"S": str(datetime.now(UTC))}}
        self._dynamodb.put_item(TableName=self._table, Item={**_FLEET, "Data": {"M": data}})

    def follow_fleet_requests(self) -> None:
        """Start or stop the fleet when that was requested; what is stopped is terminated.

        https://docs.aws.amazon.com/parallelcluster/latest/ug/pcluster.update-compute-fleet-v3.html
        """
        item: dict[str, Any] = self._dynamodb.get_item(TableName=self._table, Key=_FLEET).get("Item", {})
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
        for page in self._ec2.get_paginator("describe_instances").paginate(Filters=filters):
            ids = [each["InstanceId"] for reservation in page["Reservations"] for each in reservation["Instances"]]
            if ids:
                self._ec2.terminate_instances(InstanceIds=ids)
