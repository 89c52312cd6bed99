"""What the provider makes of the properties of a cluster resource. Runs where ParallelCluster's package is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pcluster.utils import to_snake_case

_META_PROPERTIES = ("ServiceToken", "DeletionPolicy")
_OWN_TAG = {"Key": "parallelcluster:custom_resource", "Value": "cluster"}


def arguments(properties: Mapping[str, Any], stack_tags: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of `pcluster.lib.create_cluster` or `update_cluster`.

    Each property but two becomes one. Tags of the stack are added to the cluster's, which win, and one of the provider.
    """
    given = {to_snake_case(key): value for key, value in properties.items() if key not in _META_PROPERTIES}
    configuration = given["cluster_configuration"]
    tags = configuration.get("Tags", [])
    own = {tag["Key"] for tag in tags}
    inherited = [
        {"Key": key, "Value": value}
        for key, value in stack_tags.items()
        if key not in own and not key.startswith("aws:")
    ]
    return {**given, "cluster_configuration": {**configuration, "Tags": [*inherited, *tags, _OWN_TAG]}, "wait": False}
