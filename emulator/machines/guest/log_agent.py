"""CloudWatch's agent of a node: sends what is written to log files to streams of the cluster's log group.

Which file goes to which stream is in the cookbook (cloudwatch_agent_config.json); a stream's name is
``<hostname>.<instance-id>.<suffix>``, with the host name that EC2 gave.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from emulator.machines.guest import aws, pace
from emulator.machines.guest.node import DNA, LOGS, Node

_HEAD, _COMPUTE, _LOGIN = "HeadNode", "ComputeFleet", "LoginNode"
_ALL = (_HEAD, _COMPUTE, _LOGIN)
_FILES: Final[Sequence[tuple[str, str, Sequence[str]]]] = (
    ("syslog", "/var/log/syslog", _ALL),
    ("system-messages", "/var/log/messages", _ALL),
    ("cloud-init", "/var/log/cloud-init.log", _ALL),
    ("chef-client", "/var/log/chef-client.log", _ALL),
    ("supervisord", "/var/log/supervisord.log", _ALL),
    ("cfn-init", "/var/log/cfn-init.log", (_HEAD, _LOGIN)),
    ("cfn-hup", "/var/log/cfn-hup.log", (_HEAD,)),
    ("clustermgtd", f"{LOGS}/clustermgtd", (_HEAD,)),
    ("clustermgtd_events", f"{LOGS}/clustermgtd.events", (_HEAD,)),
    ("clusterstatusmgtd", f"{LOGS}/clusterstatusmgtd", (_HEAD,)),
    ("slurm_resume", f"{LOGS}/slurm_resume.log", (_HEAD,)),
    ("slurm_resume_events", f"{LOGS}/slurm_resume.events", (_HEAD,)),
    ("slurm_suspend", f"{LOGS}/slurm_suspend.log", (_HEAD,)),
    ("slurm_fleet_status_manager", f"{LOGS}/slurm_fleet_status_manager.log", (_HEAD,)),
    ("compute_console_output", f"{LOGS}/compute_console_output.log", (_HEAD,)),
    ("slurmctld", "/var/log/slurmctld.log", (_HEAD,)),
    ("slurmdbd", "/var/log/slurmdbd.log", (_HEAD,)),
    ("cloud-init-output", "/var/log/cloud-init-output.log", (_COMPUTE, _LOGIN)),
    ("bootstrap_error_msg", f"{LOGS}/bootstrap_error_msg", (_COMPUTE,)),
    ("computemgtd", f"{LOGS}/computemgtd", (_COMPUTE,)),
    ("slurmd", "/var/log/slurmd.log", (_COMPUTE,)),
    ("slurm_health_check", f"{LOGS}/slurm_health_check.log", (_COMPUTE,)),
    ("slurm_health_check_events", f"{LOGS}/slurm_health_check.events", (_COMPUTE,)),
    ("pcluster-check-update", f"{LOGS}/pcluster-check-update.log", (_COMPUTE,)),
)
_TIME: Final = re.compile(r"\[?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{3}))?")
_BATCH: Final = 1000
_STATE: Final = Path("/var/lib/log-agent.json")
"""What was sent of each file, for the time after a reboot."""


def event_time(line: str, now: datetime) -> int:
    """Return the time of a line in milliseconds since 1970: the one that it starts with, or now."""
    if not (match := _TIME.match(line)):
        return int(now.timestamp() * 1000)
    parsed = datetime.fromisoformat(f"{match[1]}T{match[2]}").replace(tzinfo=UTC)
    return int(parsed.timestamp() * 1000) + int(match[3] or 0)


@dataclass
class Tail:
    """What was read of a file.

    Attributes:
        path: Of the file, which need not be there.
        offset: In bytes, what of it is sent.
        inode: Of the file that the offset is about; another one under the path is read from its start.
    """

    path: Path
    offset: int = 0
    inode: int = field(default=0, repr=False)

    def lines(self) -> list[str]:
        """Return the whole lines that were written since the last time."""
        try:
            status = os.stat(self.path)  # noqa: PTH116 - once a second for each file
        except OSError:
            return []
        if status.st_ino != self.inode or status.st_size < self.offset:
            self.inode, self.offset = status.st_ino, 0
        if status.st_size == self.offset:
            return []
        with self.path.open("rb") as file:
            file.seek(self.offset)
            read = file.read()
        end = read.rfind(b"\n") + 1
        self.offset += end
        return read[:end].decode(errors="replace").splitlines()


class LogAgent:
    """Sends the log files of a node, as soon as the node knows what it is."""

    def __init__(self) -> None:
        self._host = socket.gethostname()
        self._tails: dict[str, Tail] = {}
        self._streams: set[str] = set()
        self._group, self._instance_id = "", ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send what is left, and end."""
        self._ended.set()
        self._thread.join(2)

    def _live(self) -> None:
        seconds = pace.load().log_seconds
        while not self._ended.wait(seconds):
            self._look()
        self._look()

    def _look(self) -> None:
        try:
            self._send_new_lines()
        except OSError as error:  # such as of a full disk
            print(f"log agent: {error}", flush=True)

    def _send_new_lines(self) -> None:
        if not self._tails and not self._configure():
            return
        before = [tail.offset for tail in self._tails.values()]
        for suffix, tail in self._tails.items():
            if lines := [line for line in tail.lines() if line.strip()]:
                self._send(f"{self._host}.{self._instance_id}.{suffix}", lines)
        if before != [tail.offset for tail in self._tails.values()]:
            sent = {suffix: [tail.offset, tail.inode] for suffix, tail in self._tails.items()}
            _STATE.write_text(json.dumps(sent), encoding="utf-8")

    def _configure(self) -> bool:
        try:
            node = Node.load()
        except (OSError, ValueError):  # it is not there, or being written
            return False
        if node.cluster.get("cw_logging_enabled") != "true" or not DNA.stat().st_size:
            return False
        self._group, self._instance_id = str(node.cluster["log_group_name"]), node.instance_id
        sent = json.loads(_STATE.read_text(encoding="utf-8")) if _STATE.exists() else {}
        self._tails = {
            suffix: Tail(Path(path), *sent.get(suffix, ())) for suffix, path, kinds in _FILES if node.kind in kinds
        }
        return True

    def _send(self, stream: str, lines: Sequence[str]) -> None:
        now = datetime.now(UTC)
        events = sorted(((event_time(line, now), line) for line in lines), key=lambda event: event[0])
        try:
            if stream not in self._streams:
                self._streams.add(stream)
                _tolerate("ResourceAlreadyExistsException", lambda: self._call("CreateLogStream", stream))
            for batch in _batches(events):
                content = [{"timestamp": time, "message": line} for time, line in batch]
                self._call("PutLogEvents", stream, logEvents=content)
        except aws.AwsError as error:
            print(f"log agent: {stream}: {error}", flush=True)

    def _call(self, action: str, stream: str, **more: object) -> None:
        aws.call("logs", action, logGroupName=self._group, logStreamName=stream, **more)


def _batches(events: Sequence[tuple[int, str]]) -> Iterator[Sequence[tuple[int, str]]]:
    return (events[start : start + _BATCH] for start in range(0, len(events), _BATCH))


def _tolerate(code: str, call: Callable[[], object]) -> None:
    try:
        call()
    except aws.AwsError as error:
        if error.code != code:
            raise
