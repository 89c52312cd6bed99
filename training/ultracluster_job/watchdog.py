"""The end of a run that stands still: each node's launcher watches its workers, the first node's compares all of them.

The nodes tell each other through the store of torchrun, at which there is one more connection for each node. While all
is well they ask it whether anybody has called, a few times a minute.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

from torch import distributed

from .heartbeat import SIGNAL, Beat, Beats, Stage, stacks
from .ranks import node_names

STALLED = 76
"""The exit code of a run that stood still."""
RECORDS = "ULTRACLUSTER_STALLS"
"""The variable that names the directory, on the shared file system, for the stacks of this start of the run."""
NAMED = "named"
"""The file in it with the nodes that were named, one a line; train.sbatch reads it."""
_MOST_LINES = 20
_PERIODS = (1.0, 15.0)  # seconds between two looks, at the start and at most
_LOOKS = 20  # within the limit
_ANSWER_SECONDS = 60  # for a node to answer a call, and to write its stacks
_STACK_SECONDS = 10  # for all workers of a node to write theirs
_STOPPED = ("T", "t")  # https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html


@dataclass(frozen=True)
class Rank:
    """A rank when a stall was called.

    Attributes:
        rank: Its number.
        node: The name of its node.
        count: Its heartbeats so far; 0: it has none, and nothing else is known of it.
        step: The last step whose numbers it has seen.
        stage: What it does.
        seconds: For how long.
        state: The state of its process, a letter as in /proc/PID/stat; empty if there is none.
    """

    rank: int
    node: str
    count: int
    step: int
    stage: int
    seconds: float
    state: str

    def __str__(self) -> str:
        if not self.count:
            return f"rank {self.rank} on {self.node}: it has not told anything yet"
        state = ", its process is stopped" if self.state in _STOPPED else "" if self.state else ", its process is gone"
        return (
            f"rank {self.rank} on {self.node}: {f'after step {self.step}' if self.step else 'before its first step'} "
            f"it {Stage(self.stage).words}, for {self.seconds:.0f} s{state}"
        )


@dataclass(frozen=True)
class Verdict:
    """What stops a run.

    Attributes:
        ranks: The ranks that the others wait for.
        nodes: The nodes to name: those of the ranks and those that did not answer. None if it is more than half of
            several nodes, which then have something in common, such as the file system.
        lines: All of it, for people.
    """

    ranks: Sequence[int]
    nodes: Sequence[str]
    lines: Sequence[str]


def judge(reports: Mapping[int, Sequence[Rank]], nodes: Sequence[str]) -> Verdict:
    """Return which ranks the others wait for.

    A rank that waits for others in a collective is as far as all who wait there. So the ones to name are behind: they
    have the fewest heartbeats. A process that is stopped or gone is named even if it stands where the others do.
    A rank without any heartbeat has not come to it; if others have made steps, its program lets it be silent.

    Args:
        reports: The ranks of each node that has answered, by the node's number.
        nodes: The names of all nodes, in the order of their numbers.
    """
    silent = [name for number, name in enumerate(nodes) if number not in reports]
    all_ranks = [rank for number in sorted(reports) for rank in reports[number]]
    starting = not any(rank.step for rank in all_ranks)
    ranks = [rank for rank in all_ranks if rank.count or starting]
    named = [rank for rank in ranks if rank.count and (not rank.state or rank.state in _STOPPED)]
    if not named and not silent:
        fewest, most = (pick(rank.count for rank in ranks) for pick in (min, max))
        named = [rank for rank in ranks if rank.count == fewest < most]
    guilty = list(dict.fromkeys([*(rank.node for rank in named), *silent]))
    lines = [str(rank) for rank in named[:_MOST_LINES]]
    if len(named) > _MOST_LINES:
        lines.append(f"and {len(named) - _MOST_LINES} more ranks")
    lines += [f"node {node} does not answer" for node in silent[:_MOST_LINES]]
    if not lines:
        last = max(ranks, key=lambda rank: rank.count)
        lines.append(f"no rank is behind the others; all stand where this one does: {last}")
    if len(guilty) > max(1, len(nodes) / 2):
        lines.append("more than half of the nodes: what they share is the cause, not a node")
        guilty = []
    return Verdict([rank.rank for rank in named], guilty, lines)


class Watchdog(Thread):
    """The watchdog of a node. It ends the process, and all workers of the node, when the run stands still."""

    def __init__(
        self, directory: Path, *, workers: int, node: int, nodes: int, address: tuple[str, int],
    ) -> None:  # fmt: skip
        """Watch a node's heartbeats, in a directory; the address is that of torchrun's store, on the first node."""
        super().__init__(name="watchdog", daemon=True)
        self._directory, self._workers, self._node, self._nodes = directory, workers, node, nodes
        self._address = address
        self._names = node_names(nodes)
        self._records = Path(os.environ[RECORDS]) if RECORDS in os.environ else None
        self._beats = Beats(directory, workers)
        self._store: Any = None
        self._stalled = Event()

    def end_if_stalled(self) -> None:
        """Leave the end of the process to the watchdog if a stall was called, however the workers ended since."""
        if self._stalled.is_set():
            self.join()

    def run(self) -> None:
        """Look at the heartbeats until one of them, or those of another node, is overdue."""
        period = _PERIODS[0]
        while True:
            time.sleep(period)
            beats, now = self._beats.read(), time.monotonic()
            if not any(
                beat.count for beat in beats
            ):  # of a program that never tells anything nobody knows what it does
                continue
            limits = [beat.limit for beat in beats if beat.limit]
            period = min([_PERIODS[1], *(limit / _LOOKS for limit in limits)])
            if self._is_called(overdue=any(beat.is_overdue(now) for beat in beats)):
                break
        self._stalled.set()
        self._end(beats)

    def _is_called(self, *, overdue: bool) -> bool:
        """Return whether a stall was called, by this node or another."""
        try:
            store = self._connected()
            if overdue:
                store.set("called", "")
            return overdue or bool(store.check(["called"]))
        except RuntimeError:  # the first node is gone; if that ends nothing, the heartbeats here will be overdue
            return overdue

    def _connected(self) -> Any:
        """Return the store, which is there once the workers are under way."""
        if self._store is None:
            store = distributed.HashStore()
            if self._nodes > 1:
                patience = timedelta(seconds=_ANSWER_SECONDS)
                store = distributed.TCPStore(*self._address, is_master=False, timeout=patience, wait_for_workers=False)
            self._store = distributed.PrefixStore("stall", store)
        return self._store

    def _end(self, beats: Sequence[Beat]) -> None:
        """Find out who is behind, write the stacks, and end the workers and this process."""
        own = [self._rank(number, beat) for number, beat in enumerate(beats)]
        try:
            verdict = self._agree(own)
        except RuntimeError as error:
            verdict = Verdict([], [], [f"the first node does not answer ({error})"])
            self._tell(verdict)
        self._within(_ANSWER_SECONDS, lambda: self._collect(beats, own, verdict.ranks))
        self._await_all_collected()
        for process in {*(beat.process for beat in beats), *_children()}:
            _send(process, signal.SIGKILL)
        shutil.rmtree(self._directory, ignore_errors=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(STALLED)

    def _rank(self, number: int, beat: Beat) -> Rank:
        return Rank(
            rank=self._node * self._workers + number,
            node=self._names[self._node],
            count=beat.count,
            step=beat.step,
            stage=beat.stage,
            seconds=time.monotonic() - beat.time,
            state=_state(beat.process),
        )

    def _agree(self, own: Sequence[Rank]) -> Verdict:
        """Return the first node's verdict on what all nodes tell of their ranks.

        Raises:
            RuntimeError: The first node does not answer.
        """
        store = self._connected()
        store.set(f"ranks/{self._node}", json.dumps([asdict(rank) for rank in own]))
        if self._node:
            store.wait(["verdict"], timedelta(seconds=2 * _ANSWER_SECONDS))
            return Verdict(**json.loads(store.get("verdict")))
        reports = {
            node: [Rank(**rank) for rank in json.loads(store.get(f"ranks/{node}"))] for node in self._answers("ranks")
        }
        verdict = judge(reports, self._names)
        self._tell(verdict)
        store.set("verdict", json.dumps(asdict(verdict)))
        return verdict

    def _answers(self, name: str) -> list[int]:
        """Wait for all nodes to set a key, but not for ever, and return those that did."""
        store = self._connected()
        with suppress(RuntimeError):
            store.wait([f"{name}/{node}" for node in range(self._nodes)], timedelta(seconds=_ANSWER_SECONDS))
        return [node for node in range(self._nodes) if store.check([f"{name}/{node}"])]

    def _await_all_collected(self) -> None:
        """Wait until all nodes have their stacks, but not for ever.

        Workers that end change the stacks of those who wait for them on other nodes.
        """
        with suppress(RuntimeError):
            store = self._connected()
            store.set(f"collected/{self._node}", "")
            if self._node:
                store.wait(["collected"], timedelta(seconds=2 * _ANSWER_SECONDS))
            else:
                self._answers("collected")
                store.set("collected", "")

    def _tell(self, verdict: Verdict) -> None:
        """Print a verdict, and keep the names of its nodes."""
        for line in verdict.lines:
            print(f"stalled: {line}", file=sys.stderr, flush=True)
        if self._records:
            print(f"stalled: the stacks of all ranks are in {self._records}", file=sys.stderr, flush=True)
        self._within(_ANSWER_SECONDS, lambda: self._keep(NAMED, "".join(f"{node}\n" for node in verdict.nodes)))

    def _collect(self, beats: Sequence[Beat], own: Sequence[Rank], named: Sequence[int]) -> None:
        """Let the workers of the node write their stacks, and keep them; those of named ranks are printed, too."""
        files = []
        for number, (beat, rank) in enumerate(zip(beats, own, strict=True)):
            if rank.state and rank.state not in _STOPPED:  # one that is stopped handles no signal
                _send(beat.process, SIGNAL)
                files.append(stacks(self._directory, number))
        _wait_until_written(files)
        texts = []
        for number, rank in enumerate(own):
            file = stacks(self._directory, number)
            text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
            texts.append(f"{rank}\n{text or 'It wrote no stack.'}\n")
            if rank.rank in named:
                print(texts[-1], file=sys.stderr, flush=True)
        self._keep(f"{self._names[self._node]}.txt", "\n".join(texts))

    def _keep(self, name: str, text: str) -> None:
        if self._records:
            try:
                self._records.mkdir(parents=True, exist_ok=True)
                (self._records / name).write_text(text, encoding="utf-8")
            except OSError as error:
                print(f"stalled: {self._records / name} was not written: {error}", file=sys.stderr, flush=True)

    @staticmethod
    def _within(seconds: float, action: Any) -> None:
        """Do something that may hang, as a file system that does not answer does."""
        thread = Thread(target=action, daemon=True)
        thread.start()
        thread.join(seconds)


def _state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _children() -> list[int]:
    """Return the processes of this one: those of workers without heartbeats are known by that alone."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
            found += [int(path.parent.name)] if int(parent) == os.getpid() else []
    return found


def _send(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        if process:  # 0 would be this one and its like
            os.kill(process, number)


def _wait_until_written(files: Sequence[Path]) -> None:
    """Wait until all files have something and none has grown for a second, but not for ever."""
    sizes: list[int] = []
    for _ in range(_STACK_SECONDS):
        before, sizes = sizes, [file.stat().st_size if file.exists() else 0 for file in files]
        if all(sizes) and sizes == before:
            return
        time.sleep(1)
