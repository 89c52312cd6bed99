"""What an upgrade checks and changes in AWS."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from scripts.account import compute_fleet, generations, homes
from scripts.account.deployment import Deployment
from scripts.account.remote import program
from scripts.account.remote.head_node import Answer, HeadNode, is_head_node
from scripts.account.stack_state import StackState
from scripts.account.stacks import CLUSTER, existing
from scripts.change.candidate import Candidate
from scripts.change.fleet import control as fleet
from scripts.change.upgrade.homes import copy
from scripts.core.clock import Changes, Clock
from scripts.core.errors import HeadNodeError, OperationError, UnusableError
from scripts.core.figures import counted
from scripts.core.terminal import Say

if TYPE_CHECKING:
    from rich.console import Console

    from config.settings import Settings
    from scripts.check.plan.report import Plan

VERIFICATION = Path(__file__).with_name("verify.sh")
_EVERY = 15.0
_SECONDS_OF_A_STACK = 2 * 3600.0
_SECONDS_OF_A_FLEET = 900.0
_SECONDS_TO_ANSWER = 30
HeadNodeState = Literal["answers", "silent", "stopped", "lost"]


class UpgradeBackend:
    """The account of the credentials in use."""

    def __init__(
        self,
        deployment_name: str,
        console: Console,
        clock: Clock,
        say: Say,
        *,
        skip: Sequence[str] = (),
        drain_limit: float | None = None,
        final_backup: bool = True,
    ) -> None:
        """Ask AWS nothing yet.

        Plans are shown on the console; if it is quiet, the CDK's output goes to standard error. Checks to skip have the
        names of preflight. A drain waits `drain_limit` seconds at most; None: as long as jobs take. With `final_backup`
        a last snapshot is made of the head node of a cluster before that is destroyed.

        Raises:
            UnusableError: There is no such check.
        """
        from scripts.check.preflight.catalog import CATALOG, select

        self._deployment_name = deployment_name
        self._console = console
        self._clock = clock
        self._say = say
        self._drain_limit = drain_limit
        self._final_backup = final_backup
        try:
            self._checks = select(CATALOG, (), skip)
        except UnusableError as error:
            raise UnusableError(f"--skip: {error}") from None

    def clusters(self, settings: Settings) -> Mapping[int, StackState]:
        """Return the statuses of the clusters' stacks, by generation, as `generations.existing` does.

        Raises:
            OperationError: A cluster has another name than the settings give it: no other command would find it.
        """
        statuses = generations.existing(self._deployment(settings))
        for generation in statuses:
            deployment = self._deployment(settings.of_generation(generation))
            stack, name = deployment.stack_name("cluster"), deployment.settings.cluster_spec.name
            named = {each.physical_id for each in existing(deployment, stack) if each.type == CLUSTER}
            if others := named - {name, ""}:
                raise OperationError(
                    f"The cluster of {stack} is called {', '.join(others)}, in {deployment.file} "
                    f"{name}; allowed: cluster.name and name as they were when it was created"
                )
        return statuses

    def metric_sources(self, settings: Settings) -> set[str]:
        """Return the names of the clusters whose metrics the alarms use."""
        deployment = self._deployment(settings)
        name = deployment.stack_name("monitoring")
        if deployment.stack(name) is None:
            return set()
        return {
            dimension["Value"]
            for resource in deployment.template(name)["Resources"].values()
            for dimension in resource.get("Properties", {}).get("Dimensions", [])
            if dimension["Name"] == "Cluster"
        }

    def plan(self, candidate: Candidate) -> Plan:
        """Return what a deployment of a candidate would do, once nothing is in progress in its cluster's stack."""
        self._settle(candidate.settings)
        return candidate.plan()

    def show(self, plan: Plan) -> None:
        """Show a plan."""
        from scripts.core.view import View

        View(self._console).show(plan.blocks())

    def check(self, candidate: Candidate) -> None:
        """Let preflight check whether the account has room for a second cluster beside the nodes that run."""
        new = candidate.settings
        if always := sum(r.min_count for queue in new.cluster.queues for r in queue.compute_resources):
            self._say(
                f"{new.cluster_spec.name} has {counted(always, 'static nodes')} (min_count), which need capacity "
                "beside those of the first cluster, or creation fails. To start without them: "
                "--set cluster.queues[0].compute_resources[0].min_count=0"
            )
        try:
            candidate.check(self._checks, self._say, fail_on="unknown")
        except OperationError as error:
            raise OperationError(
                str(error),
                "`--skip ID,ID` skips checks, such as of a quota in which drained nodes make room",
            ) from None
        self._say("The account has room for a second cluster beside the first.")

    def deploy(self, candidate: Candidate, *stacks: str) -> None:
        """Deploy stacks of a candidate that was planned, and those that they depend on; without a name: all stacks."""
        candidate.deploy(*stacks, quiet=self._console.quiet)

    def verify(self, new: Settings) -> None:
        """Check that the fleet runs, Slurm answers on the head node, and file system and homes are mounted there."""
        deployment, name = self._deployment(new), new.cluster_spec.name
        homes_too = () if new.homes is None else ("homes",)
        script = shlex.join(program.of_file(VERIFICATION, new.storage.file_system.mount_dir, *homes_too))
        report, answers = Changes(self._say), list[Answer]()

        def answered() -> bool:
            deployment.account.forget()
            report(f"The fleet of {name} is {(status := compute_fleet.status(deployment))}.")
            if status == compute_fleet.RUNNING:
                answers.append(HeadNode(deployment, self._clock).run(script))
            return bool(answers)

        self._clock.wait(answered, report, every=_EVERY, limit=_SECONDS_OF_A_FLEET)
        [answer] = answers
        if answer.code != 0:
            raise OperationError(f"The head node of {name} is unhealthy: {answer.errors or answer.output}")
        self._say(f"The head node of {name} answers, and mounts {answer.output.strip()}.")

    def moves_homes(self, old: Settings, new: Settings) -> bool:
        """Tell whether a cluster that exists has another file system on /home than the other settings."""
        return homes.differs(self._deployment(old), new)

    def copy_homes(self, old: Settings, new: Settings, *, last: bool) -> None:
        """Copy /home from the head node of a cluster to the homes of the other settings; `last`: all of it."""
        copy(self._deployment(old), new, self._clock, self._say, last=last)

    def drain(self, old: Settings) -> None:
        """Let a cluster take no new jobs, and wait until none is left."""
        fleet.drain(self._deployment(old), clock=self._clock, say=self._say, limit=self._drain_limit)

    def resume(self, old: Settings) -> None:
        """Let a cluster take jobs again."""
        fleet.start(self._deployment(old), clock=self._clock, say=self._say)

    def destroy(self, old: Settings, *, force: bool = False) -> None:
        """Destroy a cluster and its stack, also if it is protected, once jobs have ended; with `force` at once."""
        from scripts.change.destroy.destroy import destroy
        from scripts.change.destroy.model import DestroyOptions

        self._settle(old)
        options = DestroyOptions(
            final_backup=self._final_backup,
            drain=not force,
            drain_limit=self._drain_limit,
            force=force,
            unprotect=True,
        )
        outcome = destroy(self._deployment(old), options, clock=self._clock, say=self._say)
        for each in outcome.backups:
            self._say(f"{each.id} has /home of {old.cluster_spec.name}: ./ultracluster restore {self._deployment_name}")
        if outcome.failures:
            raise OperationError("\n".join(outcome.failures))

    def last_copy(self, old: Settings) -> str:
        """Return what remains of what only the head node of a cluster has, once that is destroyed."""
        from scripts.change.destroy import head_node

        deployment = self._deployment(old)
        if not homes.on_head_node(deployment):
            return "/home is not on its head node's volume, of which no snapshot is made."
        if not self._final_backup:
            return "No last snapshot of its head node is made, as requested: its /home is lost."
        volume = head_node.collect(deployment)
        if volume is None:
            return "It has no head node that was ever ready, to make a last snapshot of."
        return head_node.announcement(deployment, volume)

    def head_node(self, settings: Settings) -> HeadNodeState:
        """Return what state the head node of a cluster is in."""
        deployment = self._deployment(settings)
        deployment.account.forget()
        states = {each["State"]["Name"] for each in deployment.nodes() if is_head_node(each)} - {"shutting-down"}
        if not states:
            return "lost"
        if states <= {"stopping", "stopped"}:
            return "stopped"
        try:
            HeadNode(deployment, self._clock).run("true", seconds=_SECONDS_TO_ANSWER)
        except HeadNodeError:
            return "silent"
        return "answers"

    def revive(self, settings: Settings, state: HeadNodeState) -> None:
        """Start a head node that is stopped, reboot one that is silent, and wait until it answers."""
        deployment = self._deployment(settings)
        ec2, report = deployment.account.client("ec2"), Changes(self._say)
        [instance_id] = [each["InstanceId"] for each in deployment.nodes() if is_head_node(each)]
        if state == "stopped":
            ec2.get_waiter("instance_stopped").wait(InstanceIds=[instance_id])
            ec2.start_instances(InstanceIds=[instance_id])
        else:
            ec2.reboot_instances(InstanceIds=[instance_id])

        def answers() -> bool:
            report(f"{instance_id} boots.")
            return self.head_node(settings) == "answers"

        self._clock.wait(answers, report, every=_EVERY, limit=_SECONDS_OF_A_FLEET)
        self._say(f"{instance_id} answers. Jobs of nodes that ended meanwhile are queued again.")

    def home_left(self, lost: Settings, snapshot: str | None) -> str:
        """Return what remains of /home on the disk of a lost head node: that of a snapshot; None: of the newest.

        Raises:
            OperationError: There is no such snapshot.
        """
        from scripts.change import restoration

        known = restoration.snapshots(self._deployment(lost))
        if not known and snapshot is None:
            return "There is no snapshot of it: what was in /home is lost."
        chosen = restoration.choose(known, (), snapshot)
        hours = (self._clock.now() - chosen.since).total_seconds() / 3600
        return (
            f"Of /home remains what {chosen.id} has, which was taken {counted(round(hours), 'hours')} ago, "
            f"at {chosen.since:%Y-%m-%d %H:%M} UTC; what was written since is lost."
        )

    def has_snapshot(self, settings: Settings) -> bool:
        """Tell whether there is a snapshot of a head node of any cluster of the deployment."""
        from scripts.change import restoration

        return bool(restoration.snapshots(self._deployment(settings)))

    def restore(self, settings: Settings, snapshot: str | None) -> None:
        """Copy /home of a snapshot to the head node; None: of the newest of an earlier head node."""
        from scripts.change import restoration

        restoration.restore(self._deployment(settings), snapshot, self._clock, self._say)

    def _deployment(self, settings: Settings) -> Deployment:
        return Deployment(self._deployment_name, settings)

    def _settle(self, settings: Settings) -> None:
        """Wait until no operation is in progress in a cluster's stack: CloudFormation accepts no change until then."""
        deployment = self._deployment(settings)
        name = deployment.stack_name("cluster")
        report = Changes(self._say)

        def settled() -> bool:
            deployment.account.forget()
            stack = deployment.stack(name)
            if stack is None or not StackState.of(stack).is_in_progress:
                return True
            report(f"{name} is {StackState.of(stack)}: waiting.")
            return False

        self._clock.wait(settled, report, every=_EVERY, limit=_SECONDS_OF_A_STACK)
