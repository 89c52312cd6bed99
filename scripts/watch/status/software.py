"""What the head node reports beside Slurm: software of jobs, nodes that failed, what was made in accounting by hand."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from scripts.account.remote import program
from scripts.account.remote.values import Line

UNIT = "ultracluster-software"
"""The unit on the head node that builds it (nodes/software.sh). A restart is a retry."""
NONE = "none"
"""State of a cluster without a Neuron SDK."""
_LOG_LINES = 5
_SECONDS = 5
"""How long the file system may take: the answer about Slurm comes after this one."""


@dataclass(frozen=True)
class FailedNode:
    """A node that failed to start."""

    name: Line = Field(description="Its name in Slurm.")
    time: Line = Field(description="When it failed, ISO 8601 in UTC without a zone.")
    reason: Line = Field(description="Why, as the last line of its log.")


@dataclass(frozen=True)
class Software:
    """The Python environment and programs of training jobs."""

    state: Line = Field(
        description="`building`, `ready` or `failed`; `none`: the cluster has no Neuron SDK; empty: not known yet."
    )
    unit: Line = Field(description="State of the systemd unit, such as `active`.")
    environment: Line = Field(description="Its name; empty: not known.")
    since: Line = Field(description="Since when it has the state, ISO 8601; empty: not known.")
    reason: Line = Field(description="Why it failed; empty: it did not.")
    log: tuple[Line, ...] = Field(description="The end of its log.")
    failed_nodes: tuple[FailedNode, ...] = Field(description="Compute nodes that failed to start.")
    by_hand: tuple[Line, ...] = Field(
        default=(),
        description="The first accounts, QoS and users that were made with `sacctmgr`, as of the last update.",
    )

    @property
    def is_interrupted(self) -> bool:
        """Whether it is not ready and nothing builds it.

        The state may be that of an earlier build: one that fails early writes none.
        """
        if self.state == NONE:
            return False
        if self.unit == "failed":
            return self.state != "failed"
        return self.state in ("", "building") and self.unit not in ("active", "activating")


def command(user: str) -> list[str]:
    """Return the command that asks the head node; nodes are those that failed within a day and did not start since."""
    return program.as_user(user, ["timeout", str(_SECONDS), *program.words("files", "software", str(_LOG_LINES))])


def parse(text: str) -> Software | None:
    """Return what `command` printed; None: it did not."""
    try:
        answer = program.read(text, "software", dict[str, Any])
        nodes = tuple(FailedNode(*each) for each in answer["failed_nodes"])
        return Software(
            **{**answer, "log": tuple(answer["log"]), "failed_nodes": nodes, "by_hand": tuple(answer["by_hand"])}
        )
    except (ValueError, TypeError, LookupError):
        return None
