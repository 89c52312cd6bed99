"""Lines in the log group of a deployment's cluster."""

from __future__ import annotations

import re
import time

from scripts.account.remote import nodes
from tests.scripts.operated import Operated

GONE, GONE_HOST = "i-0123456789abcdef0", "ip-10-0-99-9"
_TIME = "launch_time=datetime.datetime(2026, 11, 20, 4, 55, 8, tzinfo=tzlocal()), slurm_node=None"
ASSIGNED = (
    "2026-11-20 04:55:09,414 - [slurm_plugin.instance_manager:_update_slurm_node_addrs] - INFO - "
    f"Nodes are now configured with instances (x2) [\"('trn1-dy-trn1-32xl-1', EC2Instance(id='{GONE}', "
    f"private_ip='10.0.99.9', hostname='ip-10-0-99-9', {_TIME}))\", \"('trn1-dy-trn1-32xl-10', "
    f"EC2Instance(id='i-0fedcba9876543210', private_ip='10.0.99.10', hostname='ip-10-0-99-10', {_TIME}))\"]"
)
"""As ParallelCluster 3 logs it, two nodes at once."""


def without_times(output: str) -> str:
    """Return the output without the times at the start of each line of a log."""
    text, count = re.subn(r"^\d\d:\d\d:\d\d ", "", output, flags=re.MULTILINE)
    assert count == len([line for line in output.splitlines() if " output | " not in line])
    return text


def head_prefix(operated: Operated) -> str:
    return nodes.list_present(operated.deployment())[0].prefix


def log_at(operated: Operated, stream: str, *ages: float, text: str = "{}") -> None:
    """Write an event for each of the ages in minutes, which says its age."""
    logs, now = operated.client("logs"), time.time()
    group = operated.log_group
    if not logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=stream)["logStreams"]:
        logs.create_log_stream(logGroupName=group, logStreamName=stream)
    events = [{"timestamp": int((now - age * 60) * 1000), "message": text.format(age)} for age in ages]
    logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)
