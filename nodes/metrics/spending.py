"""What nodes have cost since the month began, and what happens at a limit: a file, Slurm's states, no database.

The file is on the file system that all nodes share, beside those of other clusters of the deployment, so that a restart
of the service, another head node and the next generation of the cluster continue to count. ``./ultracluster fleet
start`` overrules the guard until the month ends, by another file.
"""

from __future__ import annotations

import calendar
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

DIRECTORY = "ultracluster/spending"
"""Below the shared file system."""
OVERRULED = "overruled"
"""File with the month in which a person opened the queues again."""
_GAP = 600
"""Seconds without a report that are charged as if nothing had changed: afterwards nodes end without their head node
(ParallelCluster's computemgtd), so that of a longer time only nodes count that ran before and after it."""


@dataclass(frozen=True)
class Budget:
    """What nodes may cost in a month, what happens then (none, drain or stop), and prices by instance type."""

    limit: float
    action: str
    prices: Mapping[str, float]

    @staticmethod
    def of(argument: str) -> Budget:
        """Return what an argument such as ``10000,drain,trn1.32xlarge=21.5`` says."""
        limit, action, *prices = argument.split(",")
        return Budget(
            float(limit), action, {name: float(price) for name, _, price in (p.partition("=") for p in prices)}
        )


@dataclass(frozen=True)
class Record:
    """What is known of a cluster.

    Attributes:
        month: Such as 2026-11, in UTC as AWS's bills.
        usd: What its nodes have cost in it.
        time: Until when, in seconds since 1970.
        usd_per_hour: What those cost that ran then.
        closed: Queues that the guard has closed.
    """

    month: str
    usd: float
    time: float
    usd_per_hour: float
    closed: Sequence[str] = ()


class Spending:
    """The spending of a cluster, and of others on the same file system."""

    def __init__(self, directory: Path, cluster: str, mount: Path | None = None) -> None:
        """Read nothing yet.

        Args:
            directory: Where the files are.
            cluster: Name of the cluster.
            mount: The file system that has the directory, which may be not mounted; None: it is always there.
        """
        self._directory = directory
        self._file = directory / f"{cluster}.json"
        self._mount = mount
        self.record: Record | None = None

    def add(self, timestamp: float, usd_per_hour: float) -> float | None:
        """Count until now, with what runs from now on, and return what nodes of all clusters have cost this month.

        None: it is not known, as files cannot be read. Then nothing is counted or written until they can; what ran
        before and afterwards is counted at that time.
        """
        month = month_of(timestamp)
        try:
            if self._mount and not self._mount.is_mount():
                raise FileNotFoundError(f"{self._mount} is not mounted")
            if self.record is None:
                self.record = self._own()
            others = [_read(path) for path in self._directory.glob("*.json") if path != self._file]
        except OSError as error:
            print(f"{type(error).__name__}: what nodes cost is not known: {error}")
            return None
        before = self.record or Record(month, 0.0, timestamp, usd_per_hour)
        seconds = timestamp - max(before.time, _start(month))
        rate = before.usd_per_hour if seconds <= _GAP else min(before.usd_per_hour, usd_per_hour)
        usd = (before.usd if before.month == month else 0.0) + rate * max(seconds, 0.0) / 3600
        self._write(Record(month, usd, timestamp, usd_per_hour, before.closed))
        return usd + sum(other.usd for other in others if other and other.month == month)

    def _own(self) -> Record | None:
        """Return this cluster's record; one that is damaged is kept under another name.

        Raises:
            OSError: It cannot be read.
        """
        record = _read(self._file)
        if record is None and self._file.exists():
            damaged = self._file.with_suffix(".damaged")
            self._file.replace(damaged)
            print(
                f"What nodes have cost this month is counted from now on; {damaged} has what was there. Queues that "
                "the budget has closed stay closed: `scontrol update partition=QUEUE state=up` opens one"
            )
        return record

    @property
    def closed(self) -> Sequence[str]:
        """The queues that the guard has closed."""
        return self.record.closed if self.record else ()

    def close(self, queues: Sequence[str]) -> None:
        """Remember which queues are closed."""
        if self.record and list(queues) != list(self.record.closed):
            self._write(replace(self.record, closed=list(queues)))

    def is_overruled(self) -> bool:
        """Return whether a person opened the queues in this month; also if that cannot be read."""
        month = self.record.month if self.record else None
        try:
            return (self._directory / OVERRULED).read_text(encoding="ascii").strip() == month
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def _write(self, record: Record) -> None:
        """Keep a record. Where the file system is full, it is kept in memory until it can be written."""
        self.record = record
        new = self._file.with_suffix(".new")
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            new.write_text(json.dumps(asdict(record)), encoding="ascii")
            new.replace(self._file)
        except OSError as error:
            print(f"{type(error).__name__}: what nodes cost is not kept in {self._file}")


def changes(budget: Budget, spent: float, states: Mapping[str, str], closed: Sequence[str]) -> dict[str, str]:
    """Return the queues whose state changes, with the new one.

    DOWN and not DRAIN: in a queue that drains, jobs that wait still start, as they do in none that is down; those that
    run continue in both (https://slurm.schedmd.com/scontrol.html). INACTIVE is ParallelCluster's, which ends nodes.

    Args:
        budget: The limit, and what happens.
        spent: What nodes have cost this month.
        states: State of each queue.
        closed: Queues that were closed here before.
    """
    if budget.action != "none" and spent >= budget.limit:
        return {queue: "DOWN" for queue, state in states.items() if state in ("UP", "DRAIN")}
    return {queue: "UP" for queue in closed if states.get(queue) == "DOWN"}


def month_of(timestamp: float) -> str:
    """Return the month of a time, in UTC."""
    return time.strftime("%Y-%m", time.gmtime(timestamp))


def _start(month: str) -> float:
    return float(calendar.timegm(time.strptime(month, "%Y-%m")))


def _read(path: Path) -> Record | None:
    """Return a record; None: there is none, or it is damaged.

    Raises:
        OSError: It cannot be read.
    """
    try:
        return Record(**json.loads(path.read_text(encoding="ascii")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        print(f"{type(error).__name__}: {path} tells nothing of what nodes cost")
        return None
