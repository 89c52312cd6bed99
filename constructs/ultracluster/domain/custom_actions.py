"""Scripts of your own that nodes run: custom actions in ParallelCluster's words."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import Annotated, Any, ClassVar, TypeVar

from ultracluster.domain.spec import Change, Setting, Spec
from ultracluster.domain.types import FEW, TOKENS, Items, allowing
from ultracluster.domain.violations import Path, Violation, below, is_token

PAGE = "https://docs.aws.amazon.com/parallelcluster/latest/ug/custom-bootstrap-actions-v3.html"
_OBJECT = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(?P<key>[\x21-\x7e]+)")
_URL = re.compile(r"https://[\x21-\x7e]+")
_SCRIPT = "a file below the folder of this file, s3://BUCKET/KEY or https://..."
MAX_TEXT = 2800
"""Characters of the scripts of an event of head or login nodes as a parameter of Systems Manager has them, beside this
project's own, of 4,096 (https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_PutParameter.html)."""
_ADDRESS = 130
"""Characters of the address of an asset, or of a token."""
_UPLOADED = "what a pull request names is uploaded, and nothing else of this computer is"


class NodeActionSpec(Spec):
    """A script that nodes run as root, and that ends with 0."""

    script: Annotated[str, allowing(_SCRIPT), TOKENS, Setting(Change.BY_KEY, page=PAGE)]
    """A file whose first line names its interpreter, which is deployed with the cluster: an edit is a change. Or an
    object that exists, s3://BUCKET/KEY, which nodes may read then, or https://...; what is changed there is no change
    here."""
    args: Annotated[Items[str], FEW, Setting(Change.BY_KEY, page=PAGE)] = []
    """Its arguments."""


class QueueActionsSpec(Spec):
    """Scripts of yours that the compute nodes of a queue run, one after the other; one that fails ends its node."""

    aws: ClassVar = "Scheduling.SlurmQueues.CustomActions"

    on_node_start: Annotated[Items[NodeActionSpec], FEW, Setting(Change.DRAINS, ".OnNodeStart")] = []
    """Before anything is set up on a node: no file system is mounted yet."""
    on_node_configured: Annotated[Items[NodeActionSpec], FEW, Setting(Change.DRAINS, ".OnNodeConfigured")] = []
    """When a node is set up, after the scripts of this project, before jobs."""


class NodeActionsSpec(Spec):
    """Scripts of yours that head or login nodes run, one after the other; one that fails fails the deployment."""

    on_node_start: Annotated[Items[NodeActionSpec], FEW, Setting(Change.NEW_CLUSTER, page=PAGE)] = []
    """Before anything is set up on a node: no file system is mounted yet."""
    on_node_configured: Annotated[Items[NodeActionSpec], FEW, Setting(Change.AT_ONCE, page=PAGE)] = []
    """When a node is set up, after the scripts of this project; those that are new or changed run again when the
    cluster is updated."""
    on_node_updated: Annotated[Items[NodeActionSpec], FEW, Setting(Change.AT_ONCE, page=PAGE)] = []
    """Each time the cluster is updated."""


_Actions = TypeVar("_Actions", bound=Spec | None)


def actions(actions_of: Spec | None) -> Iterator[tuple[Path, NodeActionSpec]]:
    """Yield place and content of each script of nodes."""
    for event in () if actions_of is None else type(actions_of).model_fields:
        for index, action in enumerate(getattr(actions_of, event)):
            yield (event, index), action


def violations(actions_of: Spec | None) -> Iterator[Violation]:
    """Yield what is wrong with the scripts of nodes, but for files."""
    for place, action in actions(actions_of):
        yield from below(place, _action_violations(action))
    for event in ("on_node_start", "on_node_configured") if isinstance(actions_of, NodeActionsSpec) else ():
        size = sum(map(_size, getattr(actions_of, event)))
        if size > MAX_TEXT:
            allowed = f"at most {MAX_TEXT:,} characters of scripts and arguments: name a file that has them"
            yield Violation((event,), f"{size:,} characters", allowed, "a parameter of Systems Manager holds them")


def _size(action: NodeActionSpec) -> int:
    """Return how many characters a script has in the parameter: as JSON within JSON."""
    address = "x" * _ADDRESS if is_file(action.script) or is_token(action.script) else action.script
    args = [max(each, "x" * _ADDRESS, key=len) if is_token(each) else each for each in action.args]
    given = {"name": FilePath(action.script).name, "on": "created", "script": address, "args": args}
    return len(json.dumps(json.dumps(given)))


def _action_violations(action: NodeActionSpec) -> Iterator[Violation]:
    script = action.script
    if not is_token(script) and not is_file(script) and not (_OBJECT.fullmatch(script) or _URL.fullmatch(script)):
        yield action.violation("script", _SCRIPT, "what nodes fetch")
    for index, text in enumerate(action.args):
        if not is_token(text) and any(ord(sign) < ord(" ") for sign in text):
            yield Violation(("args", index), text, "text of one line", "arguments are read line by line")


def is_file(script: str) -> bool:
    """Return whether a script is a file here."""
    return not is_token(script) and "://" not in script


def object_of(script: str) -> tuple[str, str] | None:
    """Return bucket and key of a script that is an object in S3; None: it is none, or only CloudFormation knows."""
    found = None if is_token(script) else _OBJECT.fullmatch(script)
    return None if found is None else (found["bucket"], found["key"])


def refused_file(path: FilePath, folder: FilePath | None = None) -> tuple[str, str] | None:
    """Return what is allowed instead of a file, and why; None: nodes can run it.

    Args:
        path: The script.
        folder: What it must be in, without a link on the way, and in no part that is hidden, such as `.git` with its
            credentials. None: it may be anywhere.
    """
    try:
        return _refused_place(path, folder) or _refused_content(path)
    except (OSError, ValueError, RuntimeError) as error:  # such as of a link to itself
        return "a file that can be read", str(error)


def _refused_place(path: FilePath, folder: FilePath | None) -> tuple[str, str] | None:
    if folder is None:
        return None
    if not path.is_relative_to(folder) or ".." in path.relative_to(folder).parts:
        return f"a path below {folder}, without ..", _UPLOADED
    inside = path.relative_to(folder)
    if path.resolve() != folder.resolve() / inside:
        return "a file, and no link to one", _UPLOADED
    if any(part.startswith(".") for part in inside.parts):
        return "a file that is not hidden", "hidden folders may hold credentials"
    return None


def _refused_content(path: FilePath) -> tuple[str, str] | None:
    if not path.is_file():
        return "a file that exists", f"there is no {path}"
    with path.open("rb") as file:
        if file.read(2) != b"#!":
            return "a script whose first line is such as #!/bin/bash", "nodes run it by its first line"
    return None


def below_folder(actions_of: _Actions, folder: FilePath) -> _Actions:
    """Return scripts whose files have the path that they have from elsewhere."""
    if actions_of is None:
        return actions_of
    changed = {
        event: [
            action.model_copy(update={"script": str(folder / action.script)}) if is_file(action.script) else action
            for action in getattr(actions_of, event)
        ]
        for event in type(actions_of).model_fields
    }
    return actions_of.model_copy(update=changed)


def files_of(value: Any) -> Iterator[str]:
    """Yield the files that settings as they were read name as scripts, whatever else is wrong with them."""
    members: Sequence[Any] = ()
    if isinstance(value, dict):
        if isinstance(script := value.get("script"), str) and is_file(script):
            yield script
        members = list(value.values())
    elif isinstance(value, list):
        members = value
    for member in members:
        yield from files_of(member)
