"""What the head node reports beside Slurm: software of jobs, nodes that failed, what was made in accounting by hand."""

from __future__ import annotations

import re

from pydantic import Field
from pydantic.dataclasses import dataclass

UNIT = "ultracluster-software"
"""The unit on the head node that builds it (nodes/software.sh). A restart is a retry."""
_BY_HAND = "/opt/slurm/etc/ultracluster/team.by-hand"
"""What nodes/team/accounting.py has found at the last update."""
_LOG_LINES, _NODES, _BY_HAND_LINES, _WIDTH = 5, 5, 10, 200
"""Together with the answer of Slurm, this stays below the limit of Systems Manager for a command's output."""
_END = "# end of software\n"
SCRIPT = f"""\
(
    export TZ=UTC
    . /etc/profile.d/ultracluster.sh
    cut_lines() {{ cut --characters=1-{_WIDTH} | sed 's/^/ /'; }}
    echo '# software'
    echo " unit=$(systemctl is-active {UNIT})"
    timeout 5 cat "$ULTRACLUSTER_PYTHON.state" | cut_lines
    echo '# log'
    timeout 5 tail --lines={_LOG_LINES} "$ULTRACLUSTER_PYTHON.log" | cut_lines
    echo '# by_hand'
    head --lines={_BY_HAND_LINES} {_BY_HAND} | cut_lines
    echo '# nodes'
    cd "${{ULTRACLUSTER_PYTHON%/python/*}}/nodes/${{ULTRACLUSTER_PYTHON##*/current-}}" &&
        timeout 5 find . -type f -mmin -1440 -printf '%TFT%TH:%TM %f ' -exec head --lines=1 {{}} \\; |
        sort --reverse | head --lines={_NODES} | cut_lines
    echo '{_END.strip()}'
) 2>/dev/null
"""
"""For a shell on the head node, before another script; `parse` reads what it prints.

Lines within a section start with a space. Nodes are those that failed in the last 24 hours and have not started since.
"""


@dataclass(frozen=True)
class FailedNode:
    """A node that failed to start."""

    name: str = Field(description="Its name in Slurm.")
    time: str = Field(description="When it failed, ISO 8601 in UTC without a zone.")
    reason: str = Field(description="Why, as the last line of its log.")


@dataclass(frozen=True)
class Software:
    """The Python environment and programs of training jobs."""

    state: str = Field(description="`building`, `ready` or `failed`; empty: not known yet.")
    unit: str = Field(description="State of the systemd unit, such as `active`.")
    environment: str = Field(description="Its name; empty: not known.")
    since: str = Field(description="Since when it has the state, ISO 8601; empty: not known.")
    reason: str = Field(description="Why it failed; empty: it did not.")
    log: tuple[str, ...] = Field(description="The end of its log.")
    failed_nodes: tuple[FailedNode, ...] = Field(description="Compute nodes that failed to start.")
    by_hand: tuple[str, ...] = Field(
        default=(),
        description="The first accounts, QoS and users that were made with `sacctmgr`, as of the last update.",
    )

    @property
    def is_interrupted(self) -> bool:
        """Whether it is not ready and nothing builds it.

        The state may be that of an earlier build: one that fails early writes none.
        """
        if self.unit == "failed":
            return self.state != "failed"
        return self.state in ("", "building") and self.unit not in ("active", "activating")


def parse(text: str) -> tuple[Software | None, str]:
    """Return what `SCRIPT` printed, None if it did not, and the rest of the text."""
    printed, end, rest = text.partition(_END)
    if not end:
        return None, text
    sections = dict(re.findall(r"^# (\w+)\n((?: .*\n?)*)", printed, re.MULTILINE))
    lines = {name: [line[1:] for line in body.splitlines()] for name, body in sections.items()}
    facts = dict(line.partition("=")[::2] for line in lines["software"])
    nodes = [line.split(" ", 2) for line in lines["nodes"]]
    return Software(
        state=facts.get("state", ""),
        unit=facts.get("unit", ""),
        environment=facts.get("environment", ""),
        since=facts.get("since", ""),
        reason=facts.get("reason", ""),
        log=tuple(lines["log"]),
        failed_nodes=tuple(FailedNode(name, time, reason) for time, name, reason in nodes),
        by_hand=tuple(lines.get("by_hand", ())),
    ), rest
