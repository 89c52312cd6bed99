"""How long what runs in a machine waits: as ParallelCluster does, or so that a whole life passes in minutes."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

FILE: Final = Path("/run/emulator/pace.json")
"""Where a machine finds its pace: {"speed": "real" or "fast"}, and fields of `Pace` that differ from it."""


@dataclass(frozen=True)
class Pace:
    """Times in seconds, by default those of ParallelCluster 3.16.1 and of its cookbook.

    Attributes:
        loop_time: Between the starts of two loops of clustermgtd.
        longest_sleep: Of clustermgtd, which in each loop also waits for 5 seconds until EC2 lists what was launched.
        status_seconds: Between two looks of clusterstatusmgtd at the fleet's status.
        hup_seconds: Between two looks of cfn-hup at the head node's metadata.
        check_update_seconds: Between two looks of a compute node for an update of the cluster.
        log_seconds: Between two looks of the log agent at the files.
        static_seconds: Between two looks of the head node at static nodes that start.
        heartbeat_seconds: Between two looks of the head node for clustermgtd's first heartbeat.
        database_seconds: Between two looks of the head node for slurmdbd's database, and for its own cluster there.
        ready_seconds: Between two tries of an update to read the launch templates, and two looks at the nodes' records.
        look_seconds: How long an update waits at most, between two looks at the nodes' records, until nodes without it
            have looked for it once more: on a busy computer they do so later.
        template_seconds: Of an update for each launch template. A cluster has 50 at most, and has needed more than 30
            seconds for them (https://github.com/aws/aws-parallelcluster/issues/7519).
        settle_seconds: What an update waits after slurmctld's start; thrice that before it starts clustermgtd.
        power_save_seconds: Between two looks of slurmctld for nodes to power up or down.
        nodes_seconds: Between two looks for the nodes of a job that powers them up; 0: slurmctld's own, every 30.
        resume_timeout: Until a node that does not come is down; None: what the cluster's configuration says.
        suspend_seconds: Until an idle node is powered down; None: what the cluster's configuration says.
        suspend_timeout: Until a node that is powered down may be used again.
        slurmd_timeout: Until a node that does not answer is down.
        message_timeout: Of Slurm's messages.
        credential_seconds: How long the credential of a job is valid; it is not requeued before.
        health_check_timeout: Until clustermgtd drains a node that EC2 calls impaired.
        orphan_seconds: Until clustermgtd terminates an instance that is no node.
        capacity_seconds: How long clustermgtd leaves a compute resource without capacity alone.
        console_seconds: Until clustermgtd fetches the console of a node that failed.
        failures: Bootstrap failures after which clustermgtd closes a queue.
    """

    loop_time: int = 60
    longest_sleep: float = 60
    status_seconds: float = 60
    hup_seconds: float = 60
    check_update_seconds: float = 60
    log_seconds: float = 5
    static_seconds: float = 15
    heartbeat_seconds: float = 10
    database_seconds: float = 10
    ready_seconds: float = 90
    look_seconds: float = 0
    template_seconds: float = 0.6
    settle_seconds: float = 5
    power_save_seconds: int = 30
    nodes_seconds: float = 0
    resume_timeout: int | None = None
    suspend_seconds: int | None = None
    suspend_timeout: int = 120
    slurmd_timeout: int = 180
    message_timeout: int = 60
    credential_seconds: int = 70
    health_check_timeout: int = 180
    orphan_seconds: int = 300
    capacity_seconds: int = 600
    console_seconds: int = 300
    failures: int = 10


REAL: Final = Pace()
FAST: Final = Pace(
    loop_time=5,
    longest_sleep=1.5,
    status_seconds=1,
    hup_seconds=1,
    check_update_seconds=1,
    log_seconds=1,
    static_seconds=1,
    heartbeat_seconds=0.5,
    database_seconds=1,
    ready_seconds=1,
    look_seconds=120,
    settle_seconds=0,
    power_save_seconds=1,
    nodes_seconds=0.5,
    suspend_timeout=10,
    slurmd_timeout=10,
    message_timeout=10,
    credential_seconds=5,
    health_check_timeout=10,
    orphan_seconds=30,
    capacity_seconds=10,
    console_seconds=10,
    failures=2,
)


def parse(text: str) -> Pace:
    """Return what the text of a file says; fields that the guest does not know are left out."""
    said: dict[str, Any] = json.loads(text)
    base = {"real": REAL, "fast": FAST}[said.pop("speed", "real")]
    return replace(base, **{name: value for name, value in said.items() if name in Pace.__dataclass_fields__})


def cap_sleep(longest: float) -> None:
    """Let no `time.sleep` of this process take longer than this, in seconds."""
    sleep = time.sleep

    def short(seconds: float) -> None:
        sleep(min(seconds, longest))

    time.sleep = short  # type: ignore[assignment]


def load() -> Pace:
    """Return this machine's pace; the real one if it has no file."""
    return parse(FILE.read_text(encoding="utf-8")) if FILE.exists() else REAL
