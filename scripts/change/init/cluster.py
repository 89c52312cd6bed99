"""The configuration of a cluster that exists, read by two questions that change nothing.

`pcluster describe-cluster` is not one: it makes or configures the bucket of the account where that is missing
(aws-parallelcluster 3.16.1, models/s3_bucket.py).
"""

from __future__ import annotations

from typing import Any

from scripts.account.deployment import Account, described
from scripts.core.errors import UnusableError

_PARAMETERS = ("ResourcesS3Bucket", "ArtifactS3RootDirectory", "ConfigVersion")
"""Of the stack of a cluster: bucket, folder, and version of the configuration (templates/cluster_stack.py)."""


def configuration_of(cluster: str, region: str) -> bytes:
    """Return the configuration of a cluster, as its owner gave it.

    Raises:
        UnusableError: There is no such cluster.
    """
    account = Account(region)
    stack = described(account, cluster)
    if stack is None:
        raise UnusableError(f"{region} has no cluster {cluster}", "pcluster list-clusters, or another --region")
    has = {each["ParameterKey"]: each.get("ParameterValue", "") for each in stack.get("Parameters", [])}
    if not all(has.get(name) for name in _PARAMETERS):
        raise UnusableError(f"the stack {cluster} in {region} is none that ParallelCluster 3 made for a cluster")
    bucket, folder, version = (has[name] for name in _PARAMETERS)
    answer: Any = account.ask(
        "s3", "get_object", Bucket=bucket, Key=f"{folder}/configs/cluster-config.yaml", VersionId=version
    )
    data: bytes = answer["Body"].read()
    return data
