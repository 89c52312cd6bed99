"""The account of the credentials in use, as a delivery works in it."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Timer
from typing import IO, TYPE_CHECKING, Any

from scripts.delivery.rounds import CredentialsEndedError
from scripts.deployment import PARTS, Deployment
from scripts.operations.clock import Clock
from scripts.operations.command import UnusableError
from scripts.operations.status.model import CostNow, Unseen, seen

if TYPE_CHECKING:
    from rich.console import Console

    from config.settings import Settings
    from scripts.change_plan.model import Plan
    from scripts.operations.diagnosis.diagnose import Diagnosis
    from scripts.operations.progress.events import StackOperation

_LOOKS = 5
"""At the newest operations: each reads 12 pages of events at most."""


@dataclass(frozen=True)
class Facts:
    """What is to be said of a deployment that is complete.

    Attributes:
        operations: The newest of each stack that ended in this round.
        cost: What it costs an hour now.
    """

    operations: Sequence[StackOperation]
    cost: CostNow


class AwsSite:
    """A deployment in AWS. Each look is made with the credentials that there are at that time.

    Attributes:
        environment: File name in config/ without .yaml.
    """

    def __init__(
        self,
        environment: str,
        settings: Settings,
        assembly: Path,
        console: Console,
        clock: Clock,
        *,
        output: IO[str] | None = None,
    ) -> None:
        """Look at nothing yet.

        Args:
            environment: File name in config/ without .yaml.
            settings: What is in it.
            assembly: A directory that does not exist yet, for what is synthesized.
            console: Where progress and plans are shown.
            clock: Time.
            output: Where the CDK's standard output goes; None: to this program's.
        """
        self.environment = environment
        self._settings = settings
        self._assembly = assembly
        self._console = console
        self._clock = clock
        self._output = output

    def deployment(self) -> Deployment:
        """Return the deployment, with nothing asked yet."""
        return Deployment(self.environment, self._settings)

    def stacks(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the stacks that exist. A call for each; needs cloudformation:DescribeStacks."""
        deployment = self.deployment()
        names = [deployment.stack_name(part) for part in PARTS]
        with self._credentials():
            return {name: found for name in names if (found := deployment.stack(name))}

    def newer_generations(self) -> list[int]:
        """Return the generations that are newer than the settings. Needs what `generations.existing` needs."""
        from scripts.operations import generations

        with self._credentials():
            found = generations.existing(self.deployment())
        return [each for each in found if each > self._settings.cluster.generation]

    def follow(self, minutes: float) -> int:
        """Follow what is under way to its end. Needs what `progress.watch` needs."""
        from scripts.operations.progress import watch as progress

        with self._credentials():
            return progress.watch(self.deployment(), self._console, clock=self._clock, as_json=False, timeout=minutes)

    def plan(self) -> Plan:
        """Synthesize the settings once, and show what a deployment would do now. Needs what ``make changes`` needs."""
        from scripts.change_plan import text
        from scripts.change_plan.command import PlanError, make_plan, synthesize

        with self._credentials():
            try:
                if not self._assembly.exists():
                    synthesize(self.environment, self._assembly)
                plan = make_plan(self.environment, self._assembly)
            except PlanError as error:
                raise UnusableError(str(error)) from None
        text.show(plan, self._console)
        return plan

    def deploy(self, seconds: float) -> int:
        """Let the CDK deploy what was planned, and ask it to end after a time. Needs what ``make deploy`` needs."""
        from scripts.deploy import deploy

        with _asked_to_end(seconds):
            return deploy(self.environment, self._assembly, ("--progress", "events"), output=self._output)

    def facts(self, since: datetime) -> Facts:
        """Return what is to be said of the deployment.

        Needs cloudformation:DescribeStackEvents and ec2:DescribeInstances.

        Args:
            since: Operations that ended before are left out.
        """
        from scripts.operations.fleet import control as fleet
        from scripts.operations.progress.stacks import Tracker
        from scripts.operations.status.cost import cost_now

        deployment = self.deployment()
        with self._credentials():
            tracker = Tracker(deployment)
            for _ in range(_LOOKS):
                tracker.refresh()
                if tracker.is_complete:
                    break
            nodes = [_tags(each) for each in fleet.instances(deployment) if each["State"]["Name"] == "running"]
        names = ("parallelcluster:queue-name", "parallelcluster:compute-resource-name")
        running = Counter((each.get(names[0], ""), each.get(names[1], "")) for each in nodes)
        newest = [root.operation for root in tracker.roots.values() if root.operation]
        return Facts(
            [each for each in newest if each.ended and each.ended >= since],
            cost_now(self._settings, running, self._clock.now().date()),
        )

    def diagnosis(self) -> Diagnosis | Unseen:
        """Return why the deployment failed, as far as that can be seen. Needs what ``make diagnose`` needs."""
        from scripts.operations.diagnosis.diagnose import diagnose

        with self._credentials():
            return seen(lambda: diagnose(self.deployment(), clock=self._clock), "what `make diagnose` needs")

    @contextmanager
    def _credentials(self) -> Iterator[None]:
        """Tell credentials that ended from any other error."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (BotoCoreError, ClientError, UnusableError):
            if reason := self._trouble():
                raise CredentialsEndedError(reason) from None
            raise

    def _trouble(self) -> str:
        """Ask who the caller is, which needs no right, and return what AWS says against the credentials."""
        from botocore.exceptions import BotoCoreError, ClientError

        from scripts.checks.access import hint_about

        try:
            self.deployment().account.ask("sts", "get_caller_identity")
        except (BotoCoreError, ClientError) as error:
            return str(error) if hint_about(error) else ""
        return ""


def _tags(instance: Mapping[str, Any]) -> dict[str, str]:
    return {each["Key"]: each["Value"] for each in instance.get("Tags", [])}


@contextmanager
def _asked_to_end(seconds: float) -> Iterator[None]:
    """Ask this process to end after a time, which `scripts.deploy.deploy` passes on to the CDK and survives."""
    timer = Timer(seconds, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
