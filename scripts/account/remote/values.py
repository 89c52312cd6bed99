"""Values that come from a cluster, by type: what users of it write is anything, until it is read as one of these."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from scripts.core.options import USER

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"


def _whole(text: str) -> str:
    """Return text without halves of characters, which JSON may hold and no encoding can write."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


User = Annotated[str, StringConstraints(pattern=rf"^{USER}$")]
"""Whose something is."""
Name = Annotated[str, StringConstraints(pattern=rf"^{_NAME}$", max_length=255)]
"""Of a queue, a node or a kind of nodes."""
Address = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.:_-]+$", max_length=255)]
"""Of a node: an IP address, or a name where Slurm has none."""
State = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]+[^\w\s]?$", max_length=40)]
"""Of a queue or a job, in Slurm's words."""
NodeState = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]+(\+[A-Za-z_]+)*$", max_length=512)]
"""Of a node with its flags, in Slurm's words, such as ``idle+powered_down``."""
JobNumber = Annotated[str, StringConstraints(pattern=r"^[0-9]+([_+][0-9]+)?$", max_length=24)]
"""Such as 12, 12_3 of an array, or 12+1 of a heterogeneous job."""
FilePath = Annotated[str, StringConstraints(pattern=r"(?s)^(/[^\x00]*)?$", max_length=4096)]
"""Of a file, absolute; empty: there is none."""
Text = Annotated[str, AfterValidator(_whole)]
"""Any: shown by consoles that make it fit (`scripts.core.terminal`), and never a part of a command."""
Line = Annotated[Text, AfterValidator(lambda text: " ".join(text.split()))]
"""The same, on one line."""
