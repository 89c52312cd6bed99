"""Scripts of your own that nodes run: custom actions in ParallelCluster's words."""

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
MAX_TEXT = 2000
"""Characters of the scripts of head and login nodes, their arguments included: they are in a parameter of Systems
Manager, of 4,096 (https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_PutParameter.html)."""


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
    size = sum(len(text) for _, action in actions(actions_of) for text in (action.script, *action.args))
    if isinstance(actions_of, NodeActionsSpec) and size > MAX_TEXT:
        allowed = f"at most {MAX_TEXT:,} characters of scripts and arguments: name a file that has them"
        yield Violation((), f"{size:,} characters", allowed, "a parameter of Systems Manager holds them")


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
        folder: What it must be in, links followed, in no part that is hidden, such as `.git` with its credentials.
            None: it may be anywhere.
    """
    try:
        real, root = path.resolve(), None if folder is None else folder.resolve()
        if root is not None and not real.is_relative_to(root):
            return (
                f"a file below {folder}",
                "what a pull request names is uploaded, and nothing else of this computer is",
            )
        if root is not None and any(part.startswith(".") for part in real.relative_to(root).parts):
            return "a file that is not hidden", "hidden folders may hold credentials"
        if not real.is_file():
            return "a file that exists", f"there is no {path}"
        with real.open("rb") as file:
            if file.read(2) != b"#!":
                return "a script whose first line is such as #!/bin/bash", "nodes run it by its first line"
    except (OSError, ValueError) as error:
        return "a file that can be read", str(error)
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
