"""The file system of /home: how clients reach it, what a cluster has there, and the move from an earlier cluster."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from config.settings import Settings
from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import HeadNode
from scripts.account.stacks import CLUSTER
from scripts.core.clock import Clock
from scripts.core.errors import OperationError
from scripts.core.terminal import Say
from ultracluster.domain.homes import HOME, VOLUME_PATH

HOURS = 12
"""How long a copy may take."""
_EFS = "efs -o tls {}:/"
_OPENZFS = "nfs -o nfsvers=4.2 {}.fsx.{}.amazonaws.com:{}"


def file_system_id(deployment: Deployment) -> str | None:
    """Return the id of the file system that the settings, or their stack, have for /home; None: there is none."""
    homes = deployment.settings.homes
    if homes is None:
        return None
    if homes.file_system_id is None:
        return deployment.outputs(deployment.stack_name("team")).get("HomesFileSystemId")
    if homes.type == "efs":
        return homes.file_system_id
    return str(_volume(deployment, homes.file_system_id)["FileSystemId"])


def differs(old: Deployment, new: Settings) -> bool:
    """Tell whether a cluster that exists has another file system on /home than settings want, so that files must move.

    What a cluster has on /home never changes. That of the stack NAME-team does not, either, while a cluster imports it.
    """
    if new.homes is None:
        return False
    stack = old.stack_name("cluster")
    template = old.account.ask("cloudformation", "get_template", StackName=stack)["TemplateBody"]
    ids = [_id(each) for each in _shared_storage(template) if str(each.get("MountDir")).strip("/") == HOME.strip("/")]
    if not ids:
        return True
    return not isinstance(ids[0], dict) if new.homes.is_made else ids[0] != new.homes.file_system_id


def on_head_node(deployment: Deployment) -> bool:
    """Tell whether /home of a cluster is on its head node's volume, as it was deployed, not by the settings file.

    True, too, if its stack is deleted already and the head node is there: that is not known any more.
    """
    stack = deployment.stack_name("cluster")
    answer = deployment.account.find("cloudformation", "get_template", StackName=stack)
    if answer is None:
        return True
    in_efs = any(
        each.get("HeadNode", {}).get("SharedStorageType") == "Efs" for each in _configurations(answer["TemplateBody"])
    )
    mounted = {str(each.get("MountDir")).strip("/") for each in _shared_storage(answer["TemplateBody"])}
    return not in_efs and HOME.strip("/") not in mounted


def copy(old: Deployment, new: Settings, clock: Clock, say: Say, *, last: bool) -> None:
    """Copy /home from the head node of an earlier cluster to the file system of other settings.

    A file that is newer there stays. Called again, it copies the rest; a copy that still runs on the node is awaited.

    Args:
        old: The deployment with the earlier cluster.
        new: The settings with the homes.
        clock: The clock.
        say: Tells the result.
        last: Whether every file must be there afterwards: nobody works on the earlier cluster any more.

    Raises:
        OperationError: The copy failed, or is incomplete.
    """
    source = where(Deployment(old.name, new))
    answer = HeadNode(old, clock).run(script(source, last=last), seconds=HOURS * 3600)
    if answer.code:
        said = (answer.errors or answer.output).strip()
        raise OperationError(f"/home of {old.settings.cluster_spec.name} is not copied: {said}")
    for line in answer.output.strip().splitlines():
        say(line)


def where(deployment: Deployment) -> str:
    """Return what `mount --types` takes to mount the homes of the settings: type, options and source."""
    homes, region = deployment.settings.homes, deployment.settings.region
    name = file_system_id(deployment)
    if homes is None or name is None:
        raise OperationError(f"There are no homes of {deployment.settings.name}")
    if homes.type == "efs":
        return _EFS.format(name)
    path = VOLUME_PATH
    if homes.file_system_id is not None:
        path = _volume(deployment, homes.file_system_id)["OpenZFSConfiguration"]["VolumePath"]
    return _OPENZFS.format(name, region, shlex.quote(path))


def script(source: str, *, last: bool) -> str:
    """Return a shell script for root that copies /home to a file system, and prints files and bytes of both.

    NFS keeps no POSIX ACLs and extended attributes. `last` as of `copy`.
    """
    return f"""\
set -eu
exec 9>/run/ultracluster-homes.lock
flock 9
target=$(mktemp --directory)
trap 'umount "$target" 2>/dev/null || true; rmdir "$target"' EXIT
mount --types {source} "$target"
set -- --archive --hard-links --numeric-ids --no-devices --no-specials --one-file-system --update
count() {{
    find "$1" -xdev -type f -printf '%s\\n' |
        awk '{{ files++; bytes += $1 }} END {{ printf "%d files, %d bytes", files, bytes }}'
}}
# Each home, not {HOME} itself: users.py sets its mode, and FSx for OpenZFS may refuse another one.
copy() {{
    (cd {HOME} && find . -mindepth 1 -maxdepth 1 -printf '%P\\0') |
        rsync --recursive --from0 --files-from=- "$@" {HOME}/ "$target/"
}}
tries=0 left=''
while [ "$left" != 0 ]; do
    tries=$((tries + 1))
    [ "$tries" -le 3 ] || {{ echo "$left files change while they are copied" >&2; exit 1; }}
    status=0
    copy "$@" || status=$?
    case $status in 0 | 24) ;; *) exit "$status" ;; esac # 24: a file was deleted meanwhile
    {"" if last else "break"}
    left=$(copy --dry-run --itemize-changes "$@" | grep --count '^>f' || true)
done
echo "{HOME} of this head node: $(count {HOME}); on the homes: $(count "$target")."
"""


def _volume(deployment: Deployment, volume_id: str) -> dict[str, Any]:
    [volume] = deployment.account.ask("fsx", "describe_volumes", VolumeIds=[volume_id])["Volumes"]
    found: dict[str, Any] = volume
    return found


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
