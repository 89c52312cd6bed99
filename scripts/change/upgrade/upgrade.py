"""A second cluster beside the first, on the same network and file system; jobs move over, then the first is destroyed.

The state of an upgrade is known by two things alone: the generation in the settings file, and which stacks of clusters
exist. So the same command continues after an interruption, also on another machine:

| file | clusters | next |
|---|---|---|
| N | N | nothing has started, or everything is done but the alarms |
| N + 1 | N | the second is to be created |
| N + 1 | N, N + 1 | the second is to be created or finished; jobs are drained from the first, which is then destroyed |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from scripts.account.stack_state import StackState
from scripts.change.candidate import Candidate
from scripts.core import interrupts, options
from scripts.core.document import DeploymentName, Document, Result
from scripts.core.errors import ExitCode, OperationError, UnusableError
from scripts.core.report import Block, Line
from scripts.core.terminal import Say
from scripts.core.text import echo

if TYPE_CHECKING:
    from config.edit import Scalar
    from config.settings import Settings
    from scripts.change.upgrade.backend import UpgradeBackend
    from ultracluster.domain.violations import Path as KeyPath

_GENERATION = ("cluster", "generation")
_VERSION = ("cluster", "parallelcluster_version")
_NOT_SET = (_GENERATION, ("cluster", "name"))
_KEY = re.compile(r"cluster(\.[a-z_]+|\[\d+\])+")

Outcome = Literal["complete", "nothing to do", "abandoned", "dry run", "stopped"]
_Name = Literal["settings", "start", "deploy", "verify", "copy", "drain", "resume", "destroy", "restore", "monitoring"]
_StepOutcome = Literal["done", "already", "planned"]


class UpgradeStep(Document):
    """A step of an upgrade."""

    name: _Name = Field(
        description="settings: the file is changed; start: the head node is started or rebooted; deploy: the second "
        "cluster is created; verify: it is checked; copy: /home of the first is copied to the homes of the second, and "
        "once more after the drain; restore: /home is copied of a snapshot; "
        "drain: the first takes no new jobs, and its last one ends; resume: the first takes jobs again; destroy: a "
        "cluster is destroyed; monitoring: alarms follow."
    )
    text: str = Field(description="What the step does, in a sentence for people.")
    outcome: _StepOutcome = Field(
        description="done: in this call; already: before it; planned: not done, because of --dry-run."
    )


class UpgradeResult(Result):
    """The result of an upgrade."""

    deployment: DeploymentName
    outcome: Outcome = Field(
        description="complete: the second cluster has replaced the first; nothing to do: nothing needs a new cluster; "
        "abandoned: the first cluster is the only one again; dry run: nothing was changed; stopped: the answer was no."
    )
    cluster: str = Field(description="ParallelCluster's name of the cluster to work on when all steps are done.")
    steps: tuple[UpgradeStep, ...] = Field(
        description="The steps, in order. A step that was not reached is not listed."
    )

    @property
    def exit_code(self) -> int:
        """That of the command."""
        return ExitCode.FAILED if self.outcome == "stopped" else ExitCode.DONE

    def blocks(self) -> Iterator[Block]:
        """Yield it for people, who have seen the steps and why it stopped."""
        if self.outcome in ("complete", "abandoned"):
            yield Line(f"{self.outcome.capitalize()}. The cluster is {self.cluster}.")

    def page(self) -> Iterator[Block]:
        """Yield it with the steps."""
        about = f" The cluster is {self.cluster}." if self.outcome in ("complete", "abandoned") else ""
        yield Line(f"{self.outcome.capitalize()}.{about}")
        yield from (Line(f"{number}. {each.text}: {each.outcome}.") for number, each in enumerate(self.steps, 1))


_TWO_WRITERS = (
    "Both clusters write to the accounting database until the first is destroyed. AWS warns of deadlocks between two "
    "slurmdbd, so keep that time short: docs/guides/accounting.md."
)
"""https://docs.aws.amazon.com/parallelcluster/latest/ug/slurm-accounting-v3.html"""


def edit(text: str) -> tuple[KeyPath, Scalar]:
    """Return what ``KEY=VALUE`` asks for: the key as messages about settings write it, the value as YAML.

    Raises:
        UnusableError: It is something else, or a key that an upgrade does not set.
    """
    from config.yaml_text import NotYamlError, parse

    key, equals, value = text.partition("=")
    if not (equals and _KEY.fullmatch(key)):
        raise UnusableError(f"--set: got {text}; allowed: cluster.KEY=VALUE, such as cluster.os=ubuntu2204")
    path = tuple(int(part) if part.isdigit() else part for part in re.findall(r"\w+", key))
    if path in _NOT_SET:
        raise UnusableError(f"--set: got {text}; allowed: other keys: this one must stay, or is counted by the upgrade")
    try:
        parsed = parse(value).value
    except NotYamlError as error:
        raise UnusableError(f"--set: got {text}; allowed: a value in YAML ({error})") from None
    if not isinstance(parsed, str | int | float | None):
        raise UnusableError(f"--set: got {text}; allowed: one value, no list and no mapping", "edit the file for those")
    return path, parsed


class _StoppedError(Exception):
    pass


@dataclass
class Upgrade:
    """An upgrade of the cluster of a settings file."""

    path: Path
    settings: Settings
    directory: Path
    """For candidates; it must be empty, and may be deleted afterwards."""
    backend: UpgradeBackend
    agreed: Callable[[str], bool]
    """Asks before each step that changes something."""
    say: Say
    edits: Mapping[KeyPath, Scalar] = field(default_factory=dict)
    """Other values for the settings file."""
    anyway: bool = False
    """Create a second cluster although the first could be changed in place."""
    dry_run: bool = False
    steps: list[UpgradeStep] = field(default_factory=list)
    cluster: str = ""
    """ParallelCluster's name of the cluster that remains."""
    has_started: bool = False
    """Whether a step was started that changes something."""

    stopped: ClassVar = (
        "Stopped. The same command continues here. Until the first cluster is destroyed, --abandon goes back."
    )
    """What is said when somebody does not agree."""

    def run(self, *, abandon: bool = False) -> UpgradeResult:
        """Upgrade, or go back to the first cluster.

        Raises:
            OperationError: A step is impossible, or failed; run again, it is tried once more.
            UnusableError: Settings or arguments cannot be used.
        """
        try:
            outcome = self._go_back() if abandon else self._continue()
        except _StoppedError:
            self.say(self.stopped)
            outcome = "stopped"
        except BaseException:
            if self.has_started:
                done = ", ".join(each.name for each in self.steps) or "no step"
                same = "The same command, without --anyway," if self.anyway else "The same command"
                rest = f"What AWS has started continues. {same} continues where this one stopped."
                echo(f"Done so far: {done}. {rest}", err=True)
            raise
        else:
            outcome = "dry run" if self.dry_run and outcome != "nothing to do" else outcome
        return UpgradeResult(deployment=self.path.stem, outcome=outcome, cluster=self.cluster, steps=tuple(self.steps))

    def _continue(self) -> Outcome:
        here, clusters = self._here, self.backend.clusters(self.settings)
        match sorted(clusters):
            case [only] if only == here:
                return self._start(only)
            case [first, *second] if first == here - 1 and second in ([], [here]):
                return self._replace(first, clusters, self._candidate(here))
        raise self._mismatch(clusters)

    def _start(self, first: int) -> Outcome:
        self.cluster = self.settings.cluster_spec.name
        sources = self.backend.metric_sources(self.settings)
        if sources and self.cluster not in sources:
            self.say(f"The cluster is {self.cluster} now; alarms are still set on {', '.join(sources)}.")
            return self._finish(self._candidate(first))
        plan = self.backend.plan(self._candidate(first))
        if not plan.cluster.exists:
            hint = f"./ultracluster diagnose {self.path.stem}, then ./ultracluster deploy {self.path.stem}"
            name = self.settings.stack_name("cluster")
            raise OperationError(f"{name} has no cluster: its creation failed, or it is being deleted", hint)
        reasons = [each.path for each in plan.cluster.changes if each.kind == "refused"]
        if not reasons and not self.anyway:
            self.say("Nothing needs a new cluster. A deployment makes all changes in place.")
            return "nothing to do"
        if reasons:
            self.say(f"The cluster {self.cluster} cannot be changed in: {', '.join(reasons)}.")
            for need in (need for each in plan.cluster.changes for need in each.needs):
                self.say(f"- {need}")
        return self._replace(first, {}, self._candidate(first + 1))

    def _replace(self, first: int, clusters: Mapping[int, StackState], second: Candidate) -> Outcome:
        old, new = self.settings.of_generation(first), second.settings
        self.cluster = new.cluster_spec.name
        status = clusters.get(new.cluster.generation)
        exists = status is not None and not status.has_nothing
        written = second.path.read_text(encoding="utf-8") == self.path.read_text(encoding="utf-8")
        if exists and not written:
            raise UnusableError(
                f"--set: the cluster {self.cluster} exists already; allowed: its values, or --abandon first"
            )
        is_leaving = first in clusters and clusters[first].is_leaving
        if not is_leaving:
            if new.accounting is not None:
                self.say(_TWO_WRITERS)
            self._create(second, exists=exists, written=written)
        name = old.cluster_spec.name
        moves = not is_leaving and self.backend.moves_homes(old, new)
        if moves:
            text = f"Copy /home of {name} to the homes of {self.cluster}; people may go on working on {name}"
            self._step("copy", text, lambda: self.backend.copy_homes(old, new, last=False))
        text = f"Let {name} take no new jobs, and wait until its last job has ended; people work on {self.cluster} now"
        self._step("drain", text, lambda: self.backend.drain(old), already=is_leaving)
        if moves:
            text = f"Copy what is new in /home of {name} since; nobody works there any more"
            self._step("copy", text, lambda: self.backend.copy_homes(old, new, last=True))
        on_disk = old.homes is None and new.homes is None
        lost = "with everything on its head node (/home!)" if on_disk else "with its head node, without /home"
        self.say(self.backend.last_copy(old))
        text = (
            f"Destroy the cluster {name}, {lost}, also if it is protected. Network and file system stay. After this "
            "there is no way back"
        )
        self._step("destroy", text, lambda: self.backend.destroy(old))
        return self._finish(second)

    def _create(self, second: Candidate, *, exists: bool, written: bool) -> None:
        new = second.settings
        plan = self.backend.plan(second)
        stacks = [new.stack_name(part) for part in new.parts if part != "monitoring"]
        pending = [each for each in plan.stacks if each.name in stacks and (each.changes or each.other)]
        unchanged = "" if written else " The settings file is unchanged."
        if pending:
            self.backend.show(plan)
            if not plan.ok:
                raise OperationError(f"The cluster {self.cluster} is blocked.{unchanged}")
        if not exists:
            try:
                self.backend.check(second)
            except OperationError as error:
                raise OperationError(
                    f"{error}\nThere is no cluster {self.cluster} yet.{unchanged}", error.hint
                ) from None
        generation = new.cluster.generation
        text = f"Write generation {generation} to {options.shown(self.path)}"
        if "settings" not in [each.name for each in self.steps]:
            self._step("settings", text, lambda: self._write(generation), already=written)
        text = f"Deploy {stacks[-1]}, with the cluster {self.cluster}"
        self._step("deploy", text, lambda: self.backend.deploy(second, stacks[-1]), already=not pending)
        text = f"Verify {self.cluster}: fleet, head node, file system"
        self._step("verify", text, lambda: self.backend.verify(new), asks=False)

    def _finish(self, candidate: Candidate) -> Outcome:
        if not self.dry_run:
            plan = self.backend.plan(candidate)
            self.backend.show(plan)
            if not plan.ok:
                raise OperationError("The deployment after which alarms follow is blocked.")
        text = f"Deploy the rest, so that alarms and dashboard follow to {self.cluster}"
        self._step("monitoring", text, lambda: self.backend.deploy(candidate))
        return "complete"

    def _go_back(self) -> Outcome:
        here, clusters = self._here, self.backend.clusters(self.settings)
        match sorted(clusters):
            case [first, second] if second == first + 1 and here in (first, second):
                self._destroy_second(first, clusters)
            case [first] if first == here - 1:
                pass
            case _:
                raise self._mismatch(clusters, "There is no upgrade to go back from. ")
        self.cluster = self.settings.of_generation(first).cluster_spec.name
        self._candidate(first)  # before anything is written: whether it breaks rules
        text = f"Write generation {first} to {options.shown(self.path)}; other values stay unless --set changes them"
        self._step("settings", text, lambda: self._write(first), already=here == first and not self.edits)
        return "abandoned"

    def _destroy_second(self, first: int, clusters: Mapping[int, StackState]) -> None:
        old, new = self.settings.of_generation(first), self.settings.of_generation(first + 1)
        if clusters[first].is_leaving:
            raise OperationError(
                f"The stack {old.stack_name('cluster')} is {clusters[first]}: there is no way back to its cluster",
                "without --abandon the upgrade continues",
            )
        text = f"Let {old.cluster_spec.name} take jobs again"
        self._step("resume", text, lambda: self.backend.resume(old))
        self.say(self.backend.last_copy(new))
        text = f"Destroy the cluster {new.cluster_spec.name} with everything on its head node; the file system stays"
        self._step("destroy", text, lambda: self.backend.destroy(new))

    @property
    def _here(self) -> int:
        return self.settings.cluster.generation

    def _values(self, generation: int) -> dict[KeyPath, Scalar]:
        return {**self.edits, _GENERATION: generation}

    def _candidate(self, generation: int) -> Candidate:
        try:
            return Candidate.create(self.path, self.directory / str(generation), self._values(generation))
        except UnusableError as error:
            hint = "add another version of ParallelCluster to the project first (CONTRIBUTING.md, Versions)"
            raise UnusableError(str(error), hint if _VERSION in self.edits else "") from None

    def _write(self, generation: int) -> None:
        """Write other values and another generation into the settings file; changes that others made stay.

        Raises:
            UnusableError: They changed it so that the values cannot be written.
        """
        from config.edit import EditError, set_values

        try:
            set_values(self.path, self._values(generation))
        except EditError as error:
            raise UnusableError(f"{options.shown(self.path)} was changed meanwhile: {error}") from None

    def _mismatch(self, clusters: Mapping[int, StackState], first: str = "") -> OperationError:
        names = ", ".join(self.settings.of_generation(each).stack_name("cluster") for each in sorted(clusters))
        if not clusters:
            problem = f"{first}There is no cluster of {options.shown(self.path)} yet"
            return OperationError(problem, f"./ultracluster deploy {self.path.stem}")
        return OperationError(
            f"{first}{options.shown(self.path)} has cluster.generation {self._here}, and there is {names}; allowed: "
            "two clusters at most that follow each other, and the generation of the last of them or the next one."
        )

    def _step(
        self,
        name: _Name,
        text: str,
        act: Callable[[], None],
        *,
        already: bool = False,
        asks: bool = True,
    ) -> None:
        outcome: _StepOutcome = "already" if already else "planned" if self.dry_run else "done"
        self.say(f"{len(self.steps) + 1}. {text}{'' if outcome == 'done' else f': {outcome}'}.")
        if outcome == "done":
            if asks and not self.agreed(text):
                raise _StoppedError
            interrupts.check()
            self.has_started = True
            act()
        self.steps.append(UpgradeStep(name=name, text=text, outcome=outcome))
