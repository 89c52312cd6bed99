"""Ends a deployment, or parts of it: what stands against it is said before anything is touched.

All state is AWS's: a call after an interruption, on whichever machine, goes on where the first one stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from scripts.deployment import Deployment
from scripts.operations.clock import Clock
from scripts.operations.command import OperationError, Say
from scripts.operations.destruction import stacks as destruction_stacks
from scripts.operations.destruction.plan import plan
from scripts.operations.destruction.storage import back_up, going, hindrance, is_freed, look, remove_kept
from scripts.operations.fleet import control as fleet
from scripts.operations.inventory import leftovers
from scripts.operations.inventory.leftovers_model import Found, is_refusal
from scripts.operations.inventory.leftovers_removal import remove, terminate
from scripts.operations.remote.head_node import HeadNode, HeadNodeError

_HEALTHY = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")
"""Statuses of a cluster's own stack in which ParallelCluster stops its fleet."""


@dataclass
class Outcome:
    """What came of it.

    Attributes:
        began: When.
        deleted: Stacks and other things that this call deleted.
        backups: Ids of the backups that were made.
        failures: What could not be done, and why.
        left: What is left.
        ended: When; None: not yet.
    """

    began: datetime
    deleted: list[str] = field(default_factory=list)
    backups: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    left: list[Found] = field(default_factory=list)
    ended: datetime | None = None

    @property
    def duration(self) -> timedelta:
        """How long it took."""
        return (self.ended or self.began) - self.began


def destroy(
    deployment: Deployment,
    *,
    parts: Sequence[str] = ("cluster",),
    clock: Clock,
    say: Say,
    final_backup: bool = True,
    drain: bool = False,
    force: bool = False,
    drain_limit: float | None = None,
    unprotect: bool = False,
    bucket: bool = False,
    sweep: bool = False,
) -> Outcome:
    """Delete the cluster, and other parts of a deployment on request, and look for leftovers.

    Needs what `plan`, `scripts.operations.fleet.control.stop` and the deletions need; where a right is missing, what
    does not depend on it is done.

    Args:
        deployment: What to delete. Its settings say which cluster.
        parts: Of `ORDER`; those that stand on others go first.
        clock: Time.
        say: Told what happens, a sentence at a time.
        final_backup: Whether to back up each file system before anything of the storage is deleted.
        drain: Whether to let jobs end first.
        force: Whether to take nodes from jobs, and to go on where the head node cannot be asked.
        drain_limit: Seconds to wait for the jobs at most; None: as long as they take.
        unprotect: Whether to take termination protection away, and to delete what ``storage.retain`` keeps.
        bucket: Whether to delete the deployment's bucket, too, which ``storage.retain`` kept.
        sweep: Whether to remove leftovers that nothing keeps on purpose.

    Raises:
        OperationError: Something stands against it, jobs have nodes, or the fleet does not stop; nothing is deleted.
        botocore.exceptions.ClientError: The credentials are no longer good; what is deleted is deleted.
    """
    planned = plan(deployment, parts, unprotect=unprotect, final_backup=final_backup, bucket=bucket, sweep=sweep)
    if planned.obstacles:
        raise OperationError("\n".join(planned.obstacles))
    work = _Work(deployment, clock, say, unprotect=unprotect, final_backup=final_backup)
    if "cluster" in planned.parts:
        _stop_fleet(deployment, clock, say, drain=drain, force=force, drain_limit=drain_limit)
    for part in planned.parts:
        if part == "storage":
            work.delete_storage(bucket=bucket)
        else:
            work.delete_part(part)
    if sweep:
        work.sweep()
    work.outcome.left = leftovers.find(deployment, missing=work.outcome.failures)
    work.outcome.ended = clock.now()
    return work.outcome


def _stop_fleet(
    deployment: Deployment, clock: Clock, say: Say, *, drain: bool, force: bool, drain_limit: float | None
) -> None:
    """Let ParallelCluster stop its fleet; where it cannot any more, terminate the compute nodes.

    Raises:
        OperationError: Jobs have nodes, or nobody can tell, or the fleet does not stop.
    """
    try:
        _end_jobs(deployment, clock, say, drain=drain, force=force, drain_limit=drain_limit)
    except OperationError as error:
        if not force:
            advice = "\n--force deletes it all the same." if isinstance(error, HeadNodeError) else ""
            raise OperationError(f"{error}{advice}") from error
        say(f"{error} Going on, as asked for.")
    deployment.account.forget()
    nodes = [each["InstanceId"] for each in fleet.instances(deployment)]
    if nodes:
        say(f"{len(nodes):,} compute nodes are being terminated.")
        terminate(deployment, nodes, clock)


def _end_jobs(
    deployment: Deployment, clock: Clock, say: Say, *, drain: bool, force: bool, drain_limit: float | None
) -> None:
    """Let ParallelCluster stop its fleet; where it cannot any more, see at least that no job has nodes."""
    deployment.account.forget()
    own = destruction_stacks.of_cluster(deployment)
    if own is not None and own["StackStatus"] in _HEALTHY:
        fleet.stop(deployment, clock=clock, say=say, drain=drain, force=force, drain_limit=drain_limit)
    elif fleet.instances(deployment) and drain:
        fleet.drain(deployment, clock=clock, say=say, limit=drain_limit)
    elif fleet.instances(deployment) and not force:
        fleet.pass_jobs(HeadNode(deployment, clock), say, force=False)


class _Work:
    """The steps of one destruction. What fails for want of a right, or in AWS, is noted, and hides nothing else."""

    def __init__(self, deployment: Deployment, clock: Clock, say: Say, *, unprotect: bool, final_backup: bool) -> None:
        self._deployment = deployment
        self._clock = clock
        self._say = say
        self._unprotect = unprotect
        self._final_backup = final_backup
        self._standing: list[str] = []
        self._backed_up: set[str] = set()
        self.outcome = Outcome(clock.now())

    def delete_part(self, part: str) -> bool:
        """Delete the stack of a part, with the cluster's also the one of ParallelCluster; tell whether all went."""
        names = [self._deployment.stack_name(part)]
        if part == "cluster":
            names.append(self._deployment.settings.cluster_spec.name)
        if part in ("storage", "network") and self._standing:
            self._fail(f"{names[0]} stays, for {', '.join(self._standing)} stands on it.")
            return False
        gone = [self._delete_stack(name) for name in names]
        return all(gone)

    def delete_storage(self, *, bucket: bool) -> None:
        """Back up each file system, then delete stack and file systems, and the bucket if wanted.

        What is linked to S3 by the stack, and outlives it, is backed up after the stack, for its links go with that.
        """
        storage = self._deployment.stack_name("storage")
        if self._standing:
            self._fail(f"{storage} stays, for {', '.join(self._standing)} stands on it.")
            return
        if not self._attempt(storage, partial(self._back_up, linked_later=True)):
            self._standing.append(storage)
            return
        if not self.delete_part("storage"):
            return
        steps = (partial(self._back_up, linked_later=False), partial(self._delete_kept, bucket=bucket))
        if not all(self._attempt(storage, step) for step in steps):
            self._standing.append(f"what {storage} left behind")

    def sweep(self) -> None:
        """Remove the leftovers that nothing keeps on purpose, and that hold no data."""
        for each in leftovers.find(self._deployment, missing=self.outcome.failures):
            if each.is_swept:
                self._say(f"{each.id} is being removed ({each.reason}).")
                if self._attempt(each.id, partial(remove, self._deployment, each, self._clock)):
                    self.outcome.deleted.append(each.id)

    def _back_up(self, *, linked_later: bool) -> None:
        """Back up the file systems that are not backed up yet, unless it is to be done without.

        Args:
            linked_later: Whether to leave out for now what is linked to S3 until its stack is gone.
        """
        if not self._final_backup:
            return
        self._deployment.account.forget()
        storage = look(self._deployment)
        for each in storage.file_systems:
            name = each["FileSystemId"]
            if each["Lifecycle"] == "DELETING" or name in self._backed_up:
                continue
            if why := hindrance(self._deployment, each):
                if linked_later and is_freed(self._deployment, storage, each):
                    continue
                raise OperationError(f"{name} stays: {why}.")
            self.outcome.backups.append(back_up(self._deployment, each, self._clock, self._say))
            self._backed_up.add(name)

    def _delete_kept(self, *, bucket: bool) -> None:
        self._deployment.account.forget()
        for each in going(look(self._deployment).kept, bucket=bucket):
            self._say(f"{each.id} is being deleted.")
            if self._attempt(each.id, partial(remove_kept, self._deployment, each, self._clock)):
                self.outcome.deleted.append(each.id)
            elif each.type != "AWS::S3::Bucket":  # that stands in no network
                self._standing.append(each.id)

    def _delete_stack(self, name: str) -> bool:
        self._deployment.account.forget()
        if name == self._deployment.settings.cluster_spec.name:
            found = destruction_stacks.of_cluster(self._deployment)
        else:
            found = self._deployment.stack(name)
        if found is None:
            return True
        step = partial(
            destruction_stacks.delete,
            self._deployment,
            name,
            clock=self._clock,
            say=self._say,
            unprotect=self._unprotect,
        )
        if self._attempt(name, step):
            self.outcome.deleted.append(name)
            return True
        if name != self._deployment.stack_name("monitoring"):  # nothing stands on that one
            self._standing.append(name)
        return False

    def _attempt(self, what: str, step: Callable[[], object]) -> bool:
        """Take a step, and tell whether it worked; errors of the credentials are for the caller."""
        try:
            step()
        except OperationError as error:
            self._fail(str(error))
        except Exception as error:
            if not is_refusal(error):
                raise
            self._fail(f"{what}: {error}")
        else:
            return True
        return False

    def _fail(self, text: str) -> None:
        self._say(text)
        self.outcome.failures.append(text)
