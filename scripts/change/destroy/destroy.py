"""Ends a deployment, or parts of it: tells what blocks it before anything is deleted.

All state is in AWS: a call after an interruption continues where the first one stopped, on another machine once what is
in progress has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from scripts.account import compute_fleet, operations
from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import HeadNode
from scripts.change.destroy import head_node as destroy_head_node
from scripts.change.destroy import stacks as destroy_stacks
from scripts.change.destroy import team as destroy_team
from scripts.change.destroy.model import BENEATH, Backup, DestroyOptions, DestroyOutcome, Part
from scripts.change.destroy.plan import plan
from scripts.change.destroy.storage import BUCKET, back_up, backup_cost, collect
from scripts.change.fleet import control as fleet
from scripts.core.aws_errors import credentials_hint
from scripts.core.clock import Changes, Clock, with_retries
from scripts.core.errors import OperationError, UnusableError, told
from scripts.core.figures import counted
from scripts.core.terminal import Say
from scripts.core.text import echo
from scripts.watch.inventory import leftovers
from scripts.watch.inventory.costs import costs
from scripts.watch.inventory.model import Leftover, priced
from scripts.watch.inventory.removal import InUseError, remove

_EVERY, _LIMIT = 15.0, 1800.0
"""Seconds between two tries to remove what is in use or being deleted, and until it must be gone."""
_IDS_PER_CALL = 1000
_CONTINUES = "The same command continues where it stopped."


def destroy(
    deployment: Deployment, options: DestroyOptions, *, clock: Clock, say: Say, outcome: DestroyOutcome | None = None
) -> DestroyOutcome:
    """Delete the cluster, and other parts of a deployment on request, and search for leftovers.

    Once the fleet is stopped, what AWS refuses is recorded, and what does not depend on it is done. A given outcome is
    filled meanwhile, for a caller who must know it after an interruption.

    Raises:
        OperationError: Something blocks it, somebody else changes a stack, jobs have nodes, the fleet does not stop, or
            there is no last snapshot of the head node; nothing is deleted.
        botocore.exceptions.BotoCoreError: AWS does not answer, or there are no credentials any more.
        botocore.exceptions.ClientError: The credentials are not valid any more, or AWS refuses to stop the fleet.
    """
    planned = plan(deployment, options)
    if planned.blockers:
        raise OperationError("\n".join(planned.blockers))
    operations.check(deployment)
    outcome = DestroyOutcome(started=clock.now()) if outcome is None else outcome
    steps = _Steps(deployment, options, clock, say, outcome)
    if "cluster" in planned.parts:
        stop_fleet(deployment, options, clock, say)
        steps.back_up_head_node()
    beneath = [part for part in planned.parts if part in BENEATH]
    for part in planned.parts:
        if options.sweep and beneath[:1] == [part]:
            steps.sweep(last=False)
        steps.delete(part)
    if options.sweep:
        steps.sweep(last=True)
    steps.find_leftovers()
    outcome.ended = clock.now()
    return outcome


@contextmanager
def resumable() -> Iterator[None]:
    """Say of what ends a destruction that the same command continues it.

    Raises:
        UnusableError: The credentials cannot be used any more.
        OperationError: AWS refuses, or does not answer.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except KeyboardInterrupt:
        echo(f"What AWS has started continues. {_CONTINUES}", err=True)
        raise
    except (BotoCoreError, ClientError) as error:
        problem, hint = f"{error}\n{_CONTINUES}", credentials_hint(error)
        raise (UnusableError if hint else OperationError)(problem, hint) from error


def stop_fleet(deployment: Deployment, options: DestroyOptions, clock: Clock, say: Say) -> None:
    """Let ParallelCluster stop its fleet; if it cannot any more, terminate the compute nodes.

    Raises:
        OperationError: Jobs have nodes, or Slurm cannot be asked, or the fleet does not stop.
    """
    try:
        _end_jobs(deployment, options, clock, say)
    except OperationError as error:
        if not options.force:
            raise
        say(f"{told(error).rstrip('.')}. Continuing, as requested.")
    deployment.account.forget()
    nodes = [each["InstanceId"] for each in compute_fleet.instances(deployment)]
    if not nodes:
        return
    for first in range(0, len(nodes), _IDS_PER_CALL):
        deployment.account.client("ec2").terminate_instances(InstanceIds=nodes[first : first + _IDS_PER_CALL])
    report = Changes(say)
    report(f"Being terminated: {counted(len(nodes), 'compute nodes')}.")

    def are_terminated() -> bool:
        deployment.account.forget()
        left = len(compute_fleet.instances(deployment))
        report(f"Left: {counted(left, 'compute nodes')}.")
        return not left

    clock.wait(are_terminated, report, every=_EVERY, limit=_LIMIT)


def _end_jobs(deployment: Deployment, options: DestroyOptions, clock: Clock, say: Say) -> None:
    """Let ParallelCluster stop its fleet; if it cannot any more, check at least that no job has nodes."""
    deployment.account.forget()
    drain, force, limit = options.drain, options.force, options.drain_limit
    if destroy_stacks.is_healthy(destroy_stacks.of_cluster(deployment)):
        fleet.stop(deployment, clock=clock, say=say, drain=drain, force=force, drain_limit=limit)
    elif compute_fleet.instances(deployment) and drain:
        fleet.drain(deployment, clock=clock, say=say, limit=limit)
    elif compute_fleet.instances(deployment) and not force:
        fleet.check_jobs(HeadNode(deployment, clock), say, force=False)  # the plan may be old, or could not ask


def _add(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)


@dataclass
class _Steps:
    """The steps after the fleet is stopped. What AWS refuses is recorded, and hides nothing else."""

    deployment: Deployment
    options: DestroyOptions
    clock: Clock
    say: Say
    outcome: DestroyOutcome
    remaining: list[str] = field(default_factory=list)
    """What could not be deleted and is in the network or uses the storage."""
    backed_up: set[str] = field(default_factory=set)

    def delete(self, part: Part) -> None:
        """Delete the stack of a part, and what belongs to it, unless something remains that depends on it.

        With the cluster's stack also ParallelCluster's; with that of the storage what it kept, after a last backup. A
        file system that the stack links to S3, and keeps, is backed up after the stack, which removes its links.
        """
        name = self.deployment.stack_name(part)
        if part in BENEATH and self.remaining:
            self._fail(f"{name} is kept, because {', '.join(self.remaining)} could not be deleted.")
            return
        stack = partial(self._delete_stack, name)
        if part == "team":
            done = all(self._attempt(name, step) for step in (self._back_up_team, stack, self._delete_kept_team))
        elif part == "storage":
            steps = (partial(self._back_up, linked_later=True), stack, self._back_up, self._delete_kept)
            done = all(self._attempt(name, step) for step in steps)
        else:
            done = self._attempt(name, stack)
        if part == "cluster":
            own = self.deployment.settings.cluster_spec.name
            done = self._attempt(own, partial(self._delete_stack, own)) and done
        if not done and part != "monitoring":  # nothing depends on that one
            self.remaining.append(name)

    def back_up_head_node(self) -> None:
        """Make a last snapshot of the head node's volume, if it has /home, unless none is wanted.

        Raises:
            OperationError: There is none.
        """
        from botocore.exceptions import ClientError

        self.deployment.account.forget()
        volume = destroy_head_node.collect(self.deployment) if self.options.final_backup else None
        if volume is None:
            return
        try:
            snapshot = destroy_head_node.back_up(self.deployment, volume, self.clock, self.say)
        except (ClientError, OperationError) as error:
            if credentials_hint(error):
                raise
            raise destroy_head_node.failed(error, self.deployment.name) from error
        cost = destroy_head_node.monthly(self.deployment, volume)
        self.outcome.backups.append(Backup(id=snapshot, kind="ebs", dollars_per_month_at_most=cost))

    def sweep(self, *, last: bool) -> None:
        """Remove the leftovers that are not kept on purpose, and hold no data.

        Args:
            last: Whether what remains is a failure; else it is only reported, for it is tried again.
        """
        failures = self.outcome.failures
        before = len(failures)
        self._attempt("leftovers", self._sweep)
        if not last:
            del failures[before:]

    def find_leftovers(self) -> None:
        """Record what is left."""
        self._attempt("leftovers", self._find_leftovers)

    def _sweep(self) -> None:
        self._remove([each for each in leftovers.find(self.deployment, self.outcome.failures) if each.is_swept])

    def _find_leftovers(self) -> None:
        left = leftovers.find(self.deployment, self.outcome.failures)
        self.outcome.left = left
        self.outcome.left = [*priced(left, costs(self.deployment, [each.key for each in left]))]

    def _remove(self, wanted: Sequence[Leftover]) -> list[Leftover]:
        """Remove leftovers, again and again where they are in use, and return what remains."""
        in_use = dict.fromkeys(wanted, "")
        remaining: list[Leftover] = []

        def none_in_use() -> bool:
            for each, why in [*in_use.items()]:
                if not why:
                    self.say(f"{each.id} is being removed ({each.reason}).")
                try:
                    removed = self._attempt(each.id, partial(remove, self.deployment, each))
                except InUseError as error:
                    in_use[each] = str(error)
                    continue
                del in_use[each]
                if removed:
                    self.outcome.deleted.append(each.id)
                else:
                    remaining.append(each)
            return not in_use

        self.clock.until(with_retries(none_in_use, self.clock, Changes(self.say)), every=_EVERY, limit=_LIMIT)
        for each, why in in_use.items():
            self._fail(f"{each.id} could not be removed within {_LIMIT / 60:.0f} minutes: {why}")
        return [*remaining, *in_use]

    def _back_up(self, *, linked_later: bool = False) -> None:
        """Back up the file systems that are not backed up yet, unless no backup is wanted.

        Args:
            linked_later: Whether to skip for now what is linked to S3 until its stack is deleted.
        """
        if not self.options.final_backup:
            return
        self.deployment.account.forget()
        storage = collect(self.deployment)
        for each in storage.file_systems:
            name = each.id
            is_later = linked_later and storage.is_freed(each)
            if is_later or each.is_deleting or name in self.backed_up:
                continue
            if why := storage.backup_blocker(each):
                raise OperationError(f"{name} is kept: {why}.")
            backup = back_up(self.deployment, each, self.clock, self.say)
            monthly = backup_cost(self.deployment, each)
            self.outcome.backups.append(Backup(id=backup, dollars_per_month_at_most=monthly))
            self.backed_up.add(name)

    def _back_up_team(self) -> None:
        """Back up homes and database, unless no backup is wanted, and let RDS delete the database."""
        self.deployment.account.forget()
        team = destroy_team.collect(self.deployment)
        for key, holder in team.holders.items():
            if not self.options.final_backup or holder.is_deleting:
                continue
            if why := team.backup_blocker(key):
                raise OperationError(f"{key[1]} is kept: {why}.")
            backup = destroy_team.back_up(self.deployment, team, key, self.clock, self.say)
            made = Backup(id=backup, kind=destroy_team.KINDS[key[0]], dollars_per_month_at_most=None)
            self.outcome.backups.append(made)
        if self.options.unprotect:
            destroy_team.unprotect(self.deployment, team)

    def _delete_kept_team(self) -> None:
        self.deployment.account.forget()
        kept = destroy_team.collect(self.deployment).kept
        self.remaining += [each.id for each in self._remove(kept)]

    def _delete_kept(self) -> None:
        self.deployment.account.forget()
        kept = collect(self.deployment).kept_to_delete(bucket=self.options.bucket)
        self.remaining += [each.id for each in self._remove(kept) if each.type != BUCKET]  # that is in no network

    def _delete_stack(self, name: str) -> None:
        self.deployment.account.forget()
        is_own = name == self.deployment.settings.cluster_spec.name
        stack = destroy_stacks.of_cluster(self.deployment) if is_own else self.deployment.stack(name)
        if stack is not None:
            unprotect = self.options.unprotect
            progress, report = self.outcome.in_progress, partial(_add, self.outcome.in_progress, name)
            destroy_stacks.delete(
                self.deployment, name, clock=self.clock, say=self.say, unprotect=unprotect, started=report
            )
            self.outcome.deleted.append(name)
            progress.remove(name)

    def _attempt(self, what: str, step: Callable[[], object]) -> bool:
        """Take a step, and tell whether it worked; failing credentials or network are for the caller."""
        from botocore.exceptions import ClientError

        try:
            step()
        except OperationError as error:
            self._fail(told(error))
        except ClientError as error:
            if credentials_hint(error):
                raise
            self._fail(f"{what}: {error}")
        else:
            return True
        return False

    def _fail(self, text: str) -> None:
        self.say(text)
        self.outcome.failures.append(text)
