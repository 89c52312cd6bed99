"""The steps of a destruction after the fleet is stopped: each stack, file systems, and leftovers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from scripts.clock import Clock
from scripts.command import OperationError, Say
from scripts.deployment import Deployment
from scripts.destroy import stacks as destruction_stacks
from scripts.destroy.outcome import Backup, Outcome
from scripts.destroy.storage import back_up, backup_cost, going, hindrance, is_freed, look
from scripts.inventory import leftovers
from scripts.inventory.costs import costs
from scripts.inventory.leftovers_model import Found
from scripts.inventory.leftovers_removal import InUseError, remove

BENEATH = ("storage", "network")
"""The parts that others stand on."""
_AGAIN, _RELEASED_WITHIN = 15.0, 900.0
"""Seconds between two tries to remove what is in use, and until AWS must have given it back."""


class Steps:
    """The steps of one destruction. What AWS refuses is noted, and hides nothing else."""

    def __init__(
        self,
        deployment: Deployment,
        clock: Clock,
        say: Say,
        outcome: Outcome,
        *,
        unprotect: bool,
        final_backup: bool,
    ) -> None:
        self._deployment = deployment
        self._clock = clock
        self._say = say
        self._unprotect = unprotect
        self._final_backup = final_backup
        self._standing: list[str] = []
        self._backed_up: set[str] = set()
        self._outcome = outcome

    def delete_part(self, part: str) -> bool:
        """Delete the stack of a part, with the cluster's also the one of ParallelCluster; tell whether all went."""
        names = [self._deployment.stack_name(part)]
        if part == "cluster":
            names.append(self._deployment.settings.cluster_spec.name)
        if part in BENEATH and self._standing:
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

    def sweep(self, *, last: bool) -> None:
        """Remove the leftovers that nothing keeps on purpose, and that hold no data.

        Args:
            last: Whether what stays is a failure; else it is only told, for it is tried again.
        """
        failures = self._outcome.failures
        before = len(failures)
        self._attempt("leftovers", self._sweep)
        if not last:
            del failures[before:]

    def look_for_leftovers(self) -> None:
        """Note what is left."""
        self._attempt("leftovers", self._look_for_leftovers)

    def _sweep(self) -> None:
        found = leftovers.find(self._deployment, missing=self._outcome.failures)
        self._remove([each for each in found if each.is_swept])

    def _look_for_leftovers(self) -> None:
        left = leftovers.find(self._deployment, missing=self._outcome.failures)
        self._outcome.left = left
        self._outcome.costs = costs(self._deployment, [(each.type, each.id) for each in left])

    def _remove(self, wanted: Sequence[Found]) -> list[Found]:
        """Remove things, again and again where they are in use, and return what stays."""
        in_use = dict.fromkeys(wanted, "")
        stays: list[Found] = []

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
                    stays.append(each)
            return not in_use

        self._clock.until(none_in_use, every=_AGAIN, limit=_RELEASED_WITHIN)
        for each, why in in_use.items():
            self._fail(f"{each.id} could not be removed within {_RELEASED_WITHIN / 60:.0f} minutes: {why}")
        return [*stays, *in_use]

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
            made = back_up(self._deployment, each, self._clock, self._say)
            self._outcome.backups.append(Backup(made, backup_cost(self._deployment, each)))
            self._backed_up.add(name)

    def _delete_kept(self, *, bucket: bool) -> None:
        self._deployment.account.forget()
        stays = self._remove(going(look(self._deployment).kept, bucket=bucket))
        self._standing += [each.id for each in stays if each.type != "AWS::S3::Bucket"]  # that stands in no network

    def _delete_stack(self, name: str) -> bool:
        if self._attempt(name, partial(self._delete_own_stack, name)):
            return True
        if name != self._deployment.stack_name("monitoring"):  # nothing stands on that one
            self._standing.append(name)
        return False

    def _delete_own_stack(self, name: str) -> None:
        self._deployment.account.forget()
        if name == self._deployment.settings.cluster_spec.name:
            found = destruction_stacks.of_cluster(self._deployment)
        else:
            found = self._deployment.stack(name)
        if found is not None:
            destruction_stacks.delete(
                self._deployment, name, clock=self._clock, say=self._say, unprotect=self._unprotect
            )
            self._outcome.deleted.append(name)

    def _attempt(self, what: str, step: Callable[[], object]) -> bool:
        """Take a step, and tell whether it worked; that credentials or the network fail is for the caller."""
        from botocore.exceptions import ClientError

        from scripts.aws_errors import credentials_hint

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
