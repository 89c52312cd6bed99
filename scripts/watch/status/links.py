"""Addresses of pages of the AWS console."""

from __future__ import annotations

import os
from urllib.parse import quote


def links(name: str, region: str, cluster: str) -> dict[str, str]:
    """Return the addresses of a deployment's pages by what they show.

    There are none where AWS_ENDPOINT_URL names another AWS, such as an emulated one.
    """
    if os.environ.get("AWS_ENDPOINT_URL"):
        return {}
    host = f"https://{region}.console.aws.amazon.com"
    log_group = quote(quote(f"/aws/parallelcluster/{cluster}", safe=""), safe="").replace("%", "$")
    stacks = f"{host}/cloudformation/home?region={region}#/stacks?filteringText="
    return {
        "stacks": f"{stacks}{quote(name)}",
        "cluster": f"{stacks}{quote(cluster)}",
        "nodes": f"{host}/ec2/home?region={region}#Instances:tag:parallelcluster:cluster-name={quote(cluster)}",
        "storage": f"{host}/fsx/home?region={region}#file-systems",
        "dashboard": f"{host}/cloudwatch/home?region={region}#dashboards",
        "logs": f"{host}/cloudwatch/home?region={region}#logsV2:log-groups$3FlogGroupNameFilter$3D{log_group}",
    }
