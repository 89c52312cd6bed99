"""A second cluster beside the first, on the same network and file system; jobs move over, then the first is destroyed.

Where an upgrade stands is told by two things alone: the generation in the settings file, and which stacks of clusters
exist. So whoever runs it again goes on, from another machine, too:

| file | clusters | what is next |
|---|---|---|
| N | N | nothing has begun, or all is done but the alarms |
| N + 1 | N | the second is to be made |
| N + 1 | N, N + 1 | the second is to be made or finished; jobs are drained from the first, which is then destroyed |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from scripts.command import OperationError, Say, UnusableError
from scripts.plan.live import NOT_THERE
from scripts.upgrade.file import Candidate, Edit, candidate, write

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.plan.model import Plan

DONE, ALREADY, PLANNED = "done", "already", "planned"
"""What becomes of a step."""
COMPLETE, NOTHING, STOPPED, ABANDONED, TRIED = "complete", "nothing to do", "stopped", "abandoned", "dry run"
"""What becomes of an upgrade."""


class Site(Protocol):
    """What an upgrade looks at and changes."""

    def clusters(self, settings: Settings) -> Mapping[int, str]:
        """Return the statuses of the clusters' stacks that exist, by generation."""

    def watched(self, settings: Settings) -> set[str]:
        """Return the names of the clusters that alarms are set on."""

    def plan(self, found: Candidate) -> Plan:
        """Return what a deployment of a candidate would do, once nothing is under way in its cluster's stack."""

    def show(self, plan: Plan) -> None:
        """Show a plan to the person."""

    def check(self, new: Settings) -> None:
        """Look whether the account has what a new cluster needs beside those that run."""

    def deploy(self, found: Candidate, stack: str | None) -> None:
        """Deploy a stack of a candidate, which was planned before, and those that it needs; None: all stacks."""

    def verify(self, new: Settings) -> None:
        """Look whether a cluster works."""

    def drain(self, old: Settings) -> None:
        """Let a cluster take no new jobs, and wait until none is left."""

    def resume(self, old: Settings) -> None:
        """Let a cluster take jobs again."""

    def destroy(self, old: Settings) -> None:
        """Destroy a cluster and its stack, and nothing else of the deployment."""


@dataclass(frozen=True)
class Step:
    """A step of an upgrade: its name, what it does in a sentence, and what became of it."""

    name: str
    text: str
    outcome: str


@dataclass(frozen=True)
class Options:
    """How to go about it.

    Attributes:
        edits: Other values for the settings file.
        anyway: Whether to make a second cluster although the first could be changed in place.
        dry_run: Whether to change nothing.
        agreed: Asked before each step that changes something, with what it does.
        say: Told what happens, a sentence at a time.
    """

    agreed: Callable[[str], bool]
    say: Say
    edits: Sequence[Edit] = ()
    anyway: bool = False
    dry_run: bool = False


class _StoppedError(Exception):
    """Somebody said no."""


@dataclass
class Upgrade:
    """An upgrade of the cluster of a settings file.

    Attributes:
        path: The file.
        settings: What is in it.
        directory: For candidates; it must be empty, and may go afterwards.
        site: What is looked at and changed.
        options: How to go about it.
        steps: What was done.
        cluster: ParallelCluster's name of the cluster that is there in the end.
    """

    path: Path
    settings: Settings
    directory: Path
    site: Site
    options: Options
    steps: list[Step] = field(default_factory=list)
    cluster: str = ""

    def run(self) -> str:
        """Upgrade, and return what became of it.

        Raises:
            OperationError: A step cannot be done, or failed; run again, it is tried once more.
            UnusableError: Settings or arguments cannot be used.
        """
        return self._until_stopped(self._go_on)

    def abandon(self) -> str:
        """Go back to the first cluster, and return what became of it.

        Raises:
            OperationError: There is no first cluster to go back to, or a step failed.
            UnusableError: Settings or arguments cannot be used.
        """
        return self._until_stopped(self._go_back)

    def document(self, outcome: str) -> dict[str, Any]:
        """Return all of it as JSON has it (docs/schemas/upgrade.json)."""
        return {
            "environment": self.path.stem,
            "outcome": outcome,
            "cluster": self.cluster,
            "steps": [{"name": each.name, "text": each.text, "outcome": each.outcome} for each in self.steps],
        }

    def _until_stopped(self, act: Callable[[], str]) -> str:
        try:
            outcome = act()
        except _StoppedError:
            self.options.say(
                "Stopped. The same command goes on here. Until the first cluster is destroyed, --abandon goes back."
            )
            return STOPPED
        return TRIED if self.options.dry_run and outcome != NOTHING else outcome

    def _go_on(self) -> str:
        here, there = self._here, self.site.clusters(self.settings)
        match sorted(there):
            case [only] if only == here:
                return self._begin(only)
            case [first, *second] if first == here - 1 and second in ([], [here]):
                return self._replace(first, there, self._candidate(here))
        raise OperationError(self._odd(there))

    def _begin(self, first: int) -> str:
        self.cluster = self.settings.cluster_spec.name
        watched = self.site.watched(self.settings)
        if watched and self.cluster not in watched:
            self.options.say(f"The cluster is {self.cluster} by now; alarms are still set on {', '.join(watched)}.")
            return self._finish(self._candidate(first))
        plan = self.site.plan(self._candidate(first))
        if not plan.cluster.exists:
            why = f"Why: make diagnose ENV={self.path.stem}. Then: make deploy ENV={self.path.stem}"
            name = self.settings.stack_name("cluster")
            raise OperationError(f"{name} has no cluster: its creation failed, or it is being deleted. {why}")
        reasons = [each.path for each in plan.cluster.changes if each.kind == "refused"]
        if not reasons and not self.options.anyway:
            self.options.say("Nothing needs a new cluster. A deployment makes in place whatever is to be changed.")
            return NOTHING
        if reasons:
            self.options.say(f"The cluster {self.cluster} cannot be changed in: {', '.join(reasons)}.")
        return self._replace(first, {first: ""}, self._candidate(first + 1))

    def _replace(self, first: int, there: Mapping[int, str], second: Candidate) -> str:
        old, new = self.settings.of_generation(first), second.settings
        self.cluster = new.cluster_spec.name
        status = there.get(new.cluster.generation)
        exists = status is not None and status not in NOT_THERE
        written = second.path.read_text(encoding="utf-8") == self.path.read_text(encoding="utf-8")
        if exists and not written:
            raise UnusableError(
                f"--set: the cluster {self.cluster} is there already; allowed: its values, or --abandon first"
            )
        leaving = there[first].startswith("DELETE_")
        if not leaving:
            self._make(second, exists=exists, written=written)
        names = {"old": old.cluster_spec.name, "new": self.cluster}
        self._step("drain", _DRAIN.format(**names), lambda: self.site.drain(old), already=leaving)
        self._step("destroy", _DESTROY.format(**names), lambda: self.site.destroy(old))
        return self._finish(second)

    def _make(self, second: Candidate, *, exists: bool, written: bool) -> None:
        """Make the second cluster, unless it is there as it shall be."""
        new = second.settings
        plan = self.site.plan(second)
        stacks = [new.stack_name(part) for part in ("network", "storage", "cluster")]
        pending = [each for each in plan.stacks if each.name in stacks and (each.changes or each.other)]
        if pending:
            self.site.show(plan)
            if not plan.ok:
                raise OperationError("Something stands against the second cluster. The settings file is as it was.")
        if not exists:
            self.site.check(new)
        generation = new.cluster.generation
        text = f"Write generation {generation} to config/{self.path.name}"
        self._step("settings", text, lambda: write(self.path, self.options.edits, generation), already=written)
        text = f"Deploy {stacks[-1]}, with the cluster {self.cluster}"
        self._step("deploy", text, lambda: self.site.deploy(second, stacks[-1]), already=not pending)
        text = f"Look whether {self.cluster} works: fleet, head node, file system"
        self._step("verify", text, lambda: self.site.verify(new), asks=False)

    def _finish(self, found: Candidate) -> str:
        if not self.options.dry_run:
            plan = self.site.plan(found)
            self.site.show(plan)
            if not plan.ok:
                raise OperationError("Something stands against the deployment that lets alarms follow.")
        text = f"Deploy what is left, so that alarms and dashboard follow to {self.cluster}"
        self._step("monitoring", text, lambda: self.site.deploy(found, None))
        return COMPLETE

    def _go_back(self) -> str:
        here, there = self._here, self.site.clusters(self.settings)
        match sorted(there):
            case [first, second] if second == first + 1 and here in (first, second):
                self._destroy_second(first, there)
            case [first] if first == here - 1:
                pass
            case _:
                raise OperationError(f"There is no upgrade to go back from. {self._odd(there)}")
        self.cluster = self.settings.of_generation(first).cluster_spec.name
        self._candidate(first)  # before anything is written: whether it breaks rules
        text = f"Write generation {first} to config/{self.path.name}; other values stay unless --set gives them back"
        edits = self.options.edits
        self._step("settings", text, lambda: write(self.path, edits, first), already=here == first and not edits)
        return ABANDONED

    def _destroy_second(self, first: int, there: Mapping[int, str]) -> None:
        old, new = self.settings.of_generation(first), self.settings.of_generation(first + 1)
        if there[first].startswith("DELETE_"):
            raise OperationError(
                f"The stack {old.stack_name('cluster')} is {there[first]}: there is no way back to its cluster. "
                "Without --abandon the upgrade goes on."
            )
        text = f"Let {old.cluster_spec.name} take jobs again"
        self._step("resume", text, lambda: self.site.resume(old))
        text = f"Destroy the cluster {new.cluster_spec.name} with what is on its head node; the file system stays"
        self._step("destroy", text, lambda: self.site.destroy(new))

    @property
    def _here(self) -> int:
        return self.settings.cluster.generation

    def _candidate(self, generation: int) -> Candidate:
        directory = self.directory / str(generation)
        directory.mkdir()
        return candidate(self.path, directory, self.options.edits, generation)

    def _odd(self, there: Mapping[int, str]) -> str:
        found = ", ".join(self.settings.of_generation(each).stack_name("cluster") for each in sorted(there))
        if not there:
            return f"There is no cluster of config/{self.path.name} yet. First: make deploy ENV={self.path.stem}"
        return (
            f"config/{self.path.name} has cluster.generation {self._here}, and there is {found}; allowed: two clusters "
            "at most that follow each other, and the generation of the last of them or the next one."
        )

    def _step(self, name: str, text: str, act: Callable[[], None], *, already: bool = False, asks: bool = True) -> None:
        """Show a step, ask, and take it."""
        number = len(self.steps) + 1
        if already or self.options.dry_run:
            outcome = ALREADY if already else PLANNED
            self.options.say(f"{number}. {text}: {outcome}.")
            self.steps.append(Step(name, text, outcome))
            return
        self.options.say(f"{number}. {text}.")
        if asks and not self.options.agreed(text):
            raise _StoppedError
        act()
        self.steps.append(Step(name, text, DONE))


_DRAIN = "Let {old} take no new jobs, and wait until its last job has ended; from now on people work on {new}"
_DESTROY = (
    "Destroy the cluster {old}, with all that is on its head node (/home!), also if it is protected. Network and file "
    "system stay. From here on there is no way back"
)
