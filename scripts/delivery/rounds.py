"""One round of a delivery: follow what is under way, deploy what differs, and stop in time; AWS goes on by itself.

A cluster's creation takes up to an hour, and a pipeline's credentials may end before: whoever runs a round again, with
new ones, takes up where the last one stopped. All state is CloudFormation's.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from scripts.operations.clock import Clock
from scripts.operations.command import DONE
from scripts.operations.progress.watch import GOES_ON, TIMED_OUT, under_way

if TYPE_CHECKING:
    from scripts.change_plan.model import Plan

ENDED: Final = 128 + signal.SIGTERM
"""What `scripts.deploy.deploy` returns when the CDK was asked to end."""
LEAST_SECONDS: Final = 60.0
"""A deployment is not begun with less time left: the CDK publishes scripts and templates first."""


OUTDATED: Final = (
    "There are newer clusters than the settings say: cluster.generation {}. Take the settings file that the upgrade "
    "wrote, and merge it first."
)
"""Why settings from before an upgrade are refused."""


class Result(StrEnum):
    """What became of a delivery."""

    DEPLOYED = "deployed"
    UNCHANGED = "unchanged"
    """Everything was deployed already."""
    GOES_ON = "goes on"
    """Time or credentials ended; what was begun goes on in AWS."""
    REFUSED = "refused"
    """Something stands against the deployment."""
    FAILED = "failed"


EXIT_CODES: Final[Mapping[Result, int]] = {
    Result.DEPLOYED: 0,
    Result.UNCHANGED: 0,
    Result.GOES_ON: 75,  # EX_TEMPFAIL of sysexits.h: try again later
    Result.REFUSED: 1,
    Result.FAILED: 1,
}
"""Of each result."""


@dataclass(frozen=True)
class Outcome:
    """What became of a round.

    Attributes:
        result: What became of it.
        note: Why; empty: there is nothing to say.
        plan: What was to be deployed; None: it came not so far.
    """

    result: Result
    note: str = ""
    plan: Plan | None = None


class CredentialsEndedError(Exception):
    """Credentials are not, or no longer, valid; the message is what AWS says."""


class Site(Protocol):
    """What a round does in the world. Whatever needs AWS may raise `CredentialsEndedError`."""

    def stacks(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the deployment's stacks that exist, as DescribeStacks tells of them, asked for anew."""

    def newer_generations(self) -> list[int]:
        """Return the generations of the cluster that exist and are newer than that of the settings."""

    def follow(self, minutes: float) -> int:
        """Follow what is under way to its end, and return the exit code of `progress.watch`."""

    def plan(self) -> Plan:
        """Synthesize the settings, show what a deployment would do, and return that."""

    def deploy(self, seconds: float) -> int:
        """Let the CDK deploy what was planned, end it after a time, and return its exit code."""


def deliver(site: Site, clock: Clock, minutes: float) -> Outcome:
    """Bring a deployment to what its settings say, as far as time and credentials reach.

    A run that failed and has ended is tried once more, for that is what a re-run is for; one that fails while it is
    followed is not. Settings of an older generation than the newest that exists are refused: they are from before an
    upgrade, and would make the cluster anew that it replaced.

    Args:
        site: The world.
        clock: Time.
        minutes: How long it may take.

    Raises:
        UnusableError: AWS did not answer, or the settings cannot be used.
        CredentialsEndedError: Nothing could be looked at.
    """
    end = clock.now() + timedelta(minutes=minutes)
    busy = under_way(site.stacks())
    try:
        if newer := site.newer_generations():
            return Outcome(Result.REFUSED, OUTDATED.format(", ".join(map(str, newer))))
        return _deliver(site, clock, end, busy=busy)
    except CredentialsEndedError as error:
        return Outcome(Result.GOES_ON, f"The credentials have ended ({error}). {GOES_ON}")


def _deliver(site: Site, clock: Clock, end: datetime, *, busy: bool) -> Outcome:
    while True:
        if busy and (stopped := _follow(site, clock, end)):
            return stopped
        plan = site.plan()
        if stopped := _not_to_begin(plan, _seconds(clock, end), followed=busy) or _deploy(site, plan, clock, end):
            return stopped
        busy = True  # the CDK gave up, and CloudFormation did not


def _follow(site: Site, clock: Clock, end: datetime) -> Outcome | None:
    """Follow what is under way; None: it ended well."""
    code = site.follow(max(_seconds(clock, end), 1) / 60)
    if code == TIMED_OUT:
        return Outcome(Result.GOES_ON, f"The time is over. {GOES_ON}")
    return None if code == DONE else Outcome(Result.FAILED, "What was under way failed, or was rolled back.")


def _not_to_begin(plan: Plan, seconds: float, *, followed: bool) -> Outcome | None:
    """Return why there is nothing to deploy now; None: there is."""
    if not plan.ok:
        return Outcome(Result.REFUSED, "Something stands against the deployment.", plan)
    if plan.empty:
        return Outcome(Result.DEPLOYED if followed else Result.UNCHANGED, "", plan)
    if seconds < LEAST_SECONDS:
        return Outcome(Result.GOES_ON, f"The time is over; the rest is not begun. {GOES_ON}", plan)
    return None


def _deploy(site: Site, plan: Plan, clock: Clock, end: datetime) -> Outcome | None:
    """Deploy what was planned; None: the CDK gave up, and something is under way."""
    code = site.deploy(_seconds(clock, end))
    if code == DONE:
        return Outcome(Result.DEPLOYED, "", plan)
    if code == ENDED:
        return Outcome(Result.GOES_ON, f"The CDK was asked to end. {GOES_ON}", plan)
    if under_way(site.stacks()):
        return None
    return Outcome(Result.FAILED, f"The CDK failed with exit code {code}.", plan)


def _seconds(clock: Clock, end: datetime) -> float:
    return (end - clock.now()).total_seconds()
