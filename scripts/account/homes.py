"""The file system of /home: that of the settings, and what a cluster has there."""

from __future__ import annotations

import json
import re
from typing import Any

from config.settings import Settings
from scripts.account import file_systems
from scripts.account.deployment import Deployment
from scripts.account.stacks import CLUSTER
from scripts.core.aws_errors import if_found
from ultracluster.domain.homes import HOME


def file_system_id(deployment: Deployment) -> str | None:
    """Return the id of the file system that the settings, or their stack, have for /home; None: there is none."""
    homes = deployment.settings.homes
    if homes is None:
        return None
    if homes.file_system_id is None:
        return deployment.outputs(deployment.stack_name("team")).get("HomesFileSystemId")
    if homes.type == "efs":
        return homes.file_system_id
    return file_systems.volume(deployment.account, homes.file_system_id).file_system_id


def differs(old: Deployment, new: Settings) -> bool:
    """Tell whether a cluster that exists has another file system on /home than settings want, so that files must move.

    What a cluster has on /home never changes. That of the stack NAME-team does not, either, while a cluster imports it.
    """
    if new.homes is None:
        return False
    template = old.template(old.stack_name("cluster"))
    ids = [_id(each) for each in _shared_storage(template) if str(each.get("MountDir")).strip("/") == HOME.strip("/")]
    if not ids:
        return True
    return not isinstance(ids[0], dict) if new.homes.is_made else ids[0] != new.homes.file_system_id


def on_head_node(deployment: Deployment) -> bool:
    """Tell whether /home of a cluster is on its head node's volume, as it was deployed, not by the settings file.

    True, too, if its stack is deleted already and the head node is there: that is not known any more.
    """
    template = if_found(lambda: deployment.template(deployment.stack_name("cluster")))
    if template is None:
        return True
    in_efs = any(each.get("HeadNode", {}).get("SharedStorageType") == "Efs" for each in _configurations(template))
    mounted = {str(each.get("MountDir")).strip("/") for each in _shared_storage(template)}
    return not in_efs and HOME.strip("/") not in mounted


def _shared_storage(template: Any) -> list[dict[str, Any]]:
    return [each for configuration in _configurations(template) for each in configuration.get("SharedStorage", [])]


def _configurations(template: Any) -> list[dict[str, Any]]:
    text = json.loads(json.dumps(template))
    clusters = [each for each in text["Resources"].values() if each["Type"] == CLUSTER]
    return [each["Properties"]["ClusterConfiguration"] for each in clusters]


def _id(storage: dict[str, Any]) -> Any:
    """Return the id in an entry of SharedStorage, a function where another stack has it."""
    settings: dict[str, Any] = next((value for key, value in storage.items() if re.fullmatch(r"\w+Settings", key)), {})
    return settings.get("FileSystemId") or settings.get("VolumeId")
