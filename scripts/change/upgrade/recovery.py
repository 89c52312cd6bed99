"""A lost head node: it is started or rebooted, or the next generation of the cluster takes the place of its cluster.

As of an upgrade, the state of a recovery is known by the generation in the settings file, the stacks of clusters that
exist, and the cluster that alarms are set on; so the same command continues after an interruption:

| file | clusters | head node | next |
|---|---|---|---|
| N | N, not complete | - | it is created again |
| N | N | answers | nothing; or, while alarms are set on N - 1, /home is copied and alarms follow |
| N | N | stopped, silent | it is started, or rebooted |
| N | N | lost | the file is changed to N + 1 |
| N + 1 | N | lost | the cluster is destroyed |
| N + 1 | - | - | the next is created |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from config.settings import Settings
from scripts.change.candidate import Candidate
from scripts.change.upgrade.upgrade import Outcome, Upgrade
from scripts.core import options
from scripts.core.errors import OperationError


@dataclass
class Recovery(Upgrade):
    """A recovery of the cluster of a settings file."""

    snapshot: str | None = None
    """The snapshot that /home is copied of; None: the newest of an earlier head node."""
    without_home: bool = False
    """Copy no /home, and delete a file system of the cluster's own that has it."""

    stopped: ClassVar = "Stopped. The same command continues here."

    def _continue(self) -> Outcome:
        here, clusters = self._here, self.backend.clusters(self.settings)
        self.cluster = self.settings.cluster_spec.name
        match sorted(clusters):
            case [only] if only == here and not clusters[only].is_leaving:
                return self._recover(only)
            case [first] if first in (here - 1, here):
                lost = self.settings.of_generation(first)
                if self.backend.head_node(lost) != "lost":
                    problem = f"The head node of {lost.cluster_spec.name} is not lost, and an upgrade has started"
                    raise OperationError(problem, f"./ultracluster upgrade {self.path.stem}")
                return self._replace_lost(first, self._candidate(first + 1))
            case [] if here > 1:
                return self._create_next(self._candidate(here))
        raise self._mismatch(clusters)

    def _recover(self, generation: int) -> Outcome:
        candidate = self._candidate(generation)
        if not self.backend.plan(candidate).cluster.exists:  # its creation failed, or was interrupted
            return self._create_next(candidate)
        state = self.backend.head_node(self.settings)
        if state == "lost":
            return self._replace_lost(generation, self._candidate(generation + 1))
        if state in ("stopped", "silent"):
            verb = "Start" if state == "stopped" else "Reboot"
            text = f"{verb} the head node of {self.cluster}, which is {state}; what is on its disk stays"
            self._step("start", text, lambda: self.backend.revive(self.settings, state))
            return "complete"
        sources = self.backend.metric_sources(self.settings)
        if sources and self.cluster not in sources:
            return self._create_next(candidate)
        self.say(f"The head node of {self.cluster} answers.")
        return "nothing to do"

    def _replace_lost(self, first: int, following: Candidate) -> Outcome:
        lost = self.settings.of_generation(first)
        name, generation = lost.cluster_spec.name, following.settings.cluster.generation
        if lost.homes is None and lost.cluster.head_node.shared_storage == "efs" and not self.without_home:
            problem = f"/home is on an EFS file system of ParallelCluster, which is deleted with the cluster {name}"
            hint = "back it up first (docs/guides/recover.md), then pass --without-home"
            raise OperationError(problem, hint)
        self.cluster = following.settings.cluster_spec.name
        self.say(f"The head node of {name} is lost. {self._losses(lost)}")
        plan = self.backend.plan(following)
        if not plan.ok:
            self.backend.show(plan)
            raise OperationError(f"The cluster {self.cluster}, which would replace it, is blocked")
        text = f"Write generation {generation} to {options.shown(self.path)}"
        self._step("settings", text, lambda: self._write(generation), already=self._here == generation)
        text = f"Destroy what is left of {name}: its nodes, and the jobs on them; file systems and snapshots stay"
        self._step("destroy", text, lambda: self.backend.destroy(lost, force=True))
        return self._create_next(following)

    def _create_next(self, following: Candidate) -> Outcome:
        self.cluster = following.settings.cluster_spec.name
        self._create(following, exists=False, written=True)
        if self._home_is_copied and (self.snapshot or self.backend.has_snapshot(following.settings)):
            text = f"Copy /home of {self.snapshot or 'the newest snapshot of an earlier head node'} to the new one"
            self._step("restore", text, lambda: self.backend.restore(following.settings, self.snapshot))
        return self._finish(following)

    @property
    def _home_is_copied(self) -> bool:
        """Whether /home was on the head node's disk, and what snapshots have of it is wanted."""
        on_disk = self.settings.homes is None and self.settings.cluster.head_node.shared_storage == "ebs"
        return on_disk and not self.without_home

    def _losses(self, lost: Settings) -> str:
        """Return what goes with a head node, in sentences.

        Raises:
            OperationError: The snapshot that was asked for does not exist.
        """
        said = ["Its jobs are lost; training runs continue from their checkpoints when they are submitted again."]
        has_accounting = lost.accounting is not None
        said.append("Accounting has all jobs that ended." if has_accounting else "Slurm's job numbers start again.")
        if self._home_is_copied:
            said.append(self.backend.home_left(lost, self.snapshot))
        return " ".join(said)
