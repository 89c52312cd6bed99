"""The steps of a destruction after the fleet is stopped: each stack, file systems, and leftovers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from scripts.aws_errors import credentials_hint
from scripts.clock import Clock
from scripts.command import OperationError, Say
from scripts.deployment import Deployment
from scripts.destroy import stacks as destroy_stacks
from scripts.destroy.model import Backup, DestroyOptions, DestroyOutcome
from scripts.destroy.storage import back_up, backup_cost, collect
from scripts.inventory import leftovers
from scripts.inventory.costs import costs
from scripts.inventory.model import Leftover, priced
from scripts.inventory.removal import InUseError, remove

BENEATH = ("storage", "network")
"""The parts that others depend on."""
_EVERY, _RELEASED_WITHIN = 15.0, 900.0
"""Seconds between two tries to remove what is in use, and until AWS must have released it."""


class Steps:
    """The steps of one destruction. What AWS refuses is recorded, and hides nothing else."""

    def __init__(
        self, deployment: Deployment, options: DestroyOptions, clock: Clock, say: Say, outcome: DestroyOutcome
    ) -> None:
        self._deployment = deployment
        self._options = options
        self._clock = clock
        self._say = say
        self._outcome = outcome
        self._remaining: list[str] = []
        self._backed_up: set[str] = set()

    def delete_part(self, part: str) -> bool:
        """Delete the stack of a part, with the cluster's also that of ParallelCluster; tell whether all are deleted."""
        names = [self._deployment.stack_name(part)]
        if part == "cluster":
            names.append(self._deployment.settings.cluster_spec.name)
        if part in BENEATH and self._is_needed(names[0]):
            return False
        deleted = [self._delete_stack(name) for name in names]
        return all(deleted)

    def delete_storage(self) -> None:
        """Back up each file system, then delete stack and file systems, and the bucket if requested.

        A file system that the stack links to S3, and keeps, is backed up after the stack, which removes its links.
        """
        storage = self._deployment.stack_name("storage")
        if self._is_needed(storage):
            return
        if not self._attempt(storage, partial(self._back_up, linked_later=True)):
            self._remaining.append(storage)
            return
        if not self.delete_part("storage"):
            return
        steps = (partial(self._back_up, linked_later=False), self._delete_kept)
        if not all(self._attempt(storage, step) for step in steps):
            self._remaining.append(f"what {storage} kept")

    def sweep(self, *, last: bool) -> None:
        """Remove the leftovers that are not kept on purpose, and hold no data.

        Args:
            last: Whether what remains is a failure; else it is only reported, for it is tried again.
        """
        failures = self._outcome.failures
        before = len(failures)
        self._attempt("leftovers", self._sweep)
        if not last:
            del failures[before:]

    def find_leftovers(self) -> None:
        """Record what is left."""
        self._attempt("leftovers", self._find_leftovers)

    def _sweep(self) -> None:
        left = leftovers.find(self._deployment, self._outcome.failures)
        self._remove([each for each in left if each.is_swept])

    def _find_leftovers(self) -> None:
        left = leftovers.find(self._deployment, self._outcome.failures)
        self._outcome.left = left
        self._outcome.left = [*priced(left, costs(self._deployment, [each.key for each in left]))]

    def _remove(self, wanted: Sequence[Leftover]) -> list[Leftover]:
        """Remove leftovers, again and again where they are in use, and return what remains."""
        in_use = dict.fromkeys(wanted, "")
        remaining: list[Leftover] = []

        def none_in_use() -> bool:
            for each, why in [*in_use.items()]:
                if not why:
                    self._say(f"{each.id} is being removed ({each.reason}).")
                try:
                    removed = self._attempt(each.id, partial(remove, self._deployment, each, self._clock, self._say))
                except InUseError as error:
                    in_use[each] = str(error)
                    continue
                del in_use[each]
                if removed:
                    self._outcome.deleted.append(each.id)
                else:
                    remaining.append(each)
            return not in_use

        self._clock.until(none_in_use, every=_EVERY, limit=_RELEASED_WITHIN)
        for each, why in in_use.items():
            self._fail(f"{each.id} could not be removed within {_RELEASED_WITHIN / 60:.0f} minutes: {why}")
        return [*remaining, *in_use]

    def _back_up(self, *, linked_later: bool) -> None:
        """Back up the file systems that are not backed up yet, unless no backup is wanted.

        Args:
            linked_later: Whether to skip for now what is linked to S3 until its stack is deleted.
        """
        if not self._options.final_backup:
            return
        self._deployment.account.forget()
        storage = collect(self._deployment)
        for each in storage.file_systems:
            name = each["FileSystemId"]
            if each["Lifecycle"] == "DELETING" or name in self._backed_up:
                continue
            if why := storage.backup_blocker(each):
                if linked_later and storage.is_freed(each):
                    continue
                raise OperationError(f"{name} is kept: {why}.")
            made = back_up(self._deployment, each, self._clock, self._say)
            monthly = backup_cost(self._deployment, each)
            self._outcome.backups.append(Backup(id=made, dollars_per_month_at_most=monthly))
            self._backed_up.add(name)

    def _delete_kept(self) -> None:
        self._deployment.account.forget()
        kept = collect(self._deployment).kept_to_delete(bucket=self._options.bucket)
        # A bucket that remains is in no network.
        self._remaining += [each.id for each in self._remove(kept) if each.type != "AWS::S3::Bucket"]

    def _delete_stack(self, name: str) -> bool:
        if self._attempt(name, partial(self._delete_own_stack, name)):
            return True
        if name != self._deployment.stack_name("monitoring"):  # nothing depends on that one
            self._remaining.append(name)
        return False

    def _delete_own_stack(self, name: str) -> None:
        self._deployment.account.forget()
        if name == self._deployment.settings.cluster_spec.name:
            stack = destroy_stacks.of_cluster(self._deployment)
        else:
            stack = self._deployment.stack(name)
        if stack is not None:
            unprotect = self._options.unprotect
            destroy_stacks.delete(self._deployment, name, clock=self._clock, say=self._say, unprotect=unprotect)
            self._outcome.deleted.append(name)

    def _is_needed(self, stack: str) -> bool:
        """Tell whether something remains that depends on a stack, which is a failure then."""
        if self._remaining:
            self._fail(f"{stack} is kept, because {', '.join(self._remaining)} could not be deleted.")
        return bool(self._remaining)

    def _attempt(self, what: str, step: Callable[[], object]) -> bool:
        """Take a step, and tell whether it worked; failing credentials or network are for the caller."""
        from botocore.exceptions import ClientError

        try:
            step()
        except OperationError as error:
            self._fail(str(error))
        except ClientError as error:
            if credentials_hint(error):
                raise
            self._fail(f"{what}: {error}")
        else:
            return True
        return False

    def _fail(self, text: str) -> None:
        self._say(text)
        self._outcome.failures.append(text)
