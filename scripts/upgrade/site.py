"""What an upgrade looks at and changes in AWS."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from scripts import generations
from scripts.clock import Clock
from scripts.command import OperationError, Say, UnusableError
from scripts.deployment import Deployment
from scripts.fleet import control as fleet
from scripts.fleet.jobs import Changes, patiently
from scripts.remote.head_node import Answer, HeadNode
from scripts.stacks import CLUSTER, resources

if TYPE_CHECKING:
    from rich.console import Console

    from config.settings import Settings
    from scripts.plan.model import Plan
    from scripts.preflight.check import Check
    from scripts.upgrade.file import Candidate

_SECONDS_BETWEEN_LOOKS = 15.0
_SECONDS_OF_A_STACK = 2 * 3600.0
_SECONDS_OF_A_FLEET = 900.0


class AwsSite:
    """The account of the credentials in use, through the programs for one thing each."""

    def __init__(
        self,
        environment: str,
        console: Console,
        clock: Clock,
        say: Say,
        *,
        skip: Sequence[str] = (),
        drain_limit: float | None = None,
    ) -> None:
        """Look at nothing yet.

        Args:
            environment: File name in config/ without .yaml.
            console: Where plans and checks are shown; a quiet one: the CDK's output goes to standard error.
            clock: Time.
            say: Told what is waited for.
            skip: Checks that are left out, as preflight names them.
            drain_limit: Seconds to wait for the last job at most; None: as long as it takes.

        Raises:
            UnusableError: There is no such check.
        """
        self._environment = environment
        self._console = console
        self._clock = clock
        self._say = say
        self._checks = _checks(skip)
        self._drain_limit = drain_limit

    def clusters(self, settings: Settings) -> Mapping[int, str]:
        """Return the statuses of the clusters' stacks that exist, by generation, as `generations.existing` does.

        Two calls more for each that exists. Needs cloudformation:DescribeStacks and cloudformation:ListStackResources.

        Raises:
            OperationError: A cluster has another name than the settings give it.
        """
        found = generations.existing(self._deployment(settings))
        for generation in found:
            deployment = self._deployment(settings.of_generation(generation))
            name = deployment.stack_name("cluster")
            if deployment.stack(name) is not None:  # else only ParallelCluster's own is left
                _check_name(deployment, name, deployment.settings.cluster_spec.name)
        return found

    def watched(self, settings: Settings) -> set[str]:
        """Return the names of the clusters that alarms are set on. One call; needs cloudformation:GetTemplate."""
        deployment = self._deployment(settings)
        name = deployment.stack_name("monitoring")
        if deployment.stack(name) is None:
            return set()
        template = deployment.account.ask("cloudformation", "get_template", StackName=name)["TemplateBody"]
        return {
            dimension["Value"]
            for resource in template["Resources"].values()
            for dimension in resource.get("Properties", {}).get("Dimensions", [])
            if dimension["Name"] == "Cluster"
        }

    def plan(self, found: Candidate) -> Plan:
        """Return what a deployment of a candidate would do, once nothing is under way in its cluster's stack.

        Needs what ``make plan`` needs.
        """
        from scripts.plan.command import PlanError, make_plan, synthesize

        self._settle(found.settings)
        assembly = _assembly(found)
        try:
            if not assembly.exists():
                synthesize(str(found.path.with_suffix("")), assembly)
            return make_plan(self._environment, assembly)
        except PlanError as error:
            raise UnusableError(str(error)) from None

    def show(self, plan: Plan) -> None:
        """Show a plan to the person."""
        from scripts.plan import text

        text.show(plan, self._console)

    def check(self, new: Settings) -> None:
        """Let preflight look whether the account has what a new cluster needs; nodes that run count as somebody else's.

        Needs what preflight needs.

        Raises:
            OperationError: Something is missing.
        """
        from scripts.preflight.model import PreflightReport
        from scripts.preflight.runner import run
        from scripts.preflight.screen import show, watch

        deployment = self._deployment(new)
        if always := sum(r.min_count for queue in new.cluster.queues for r in queue.compute_resources):
            self._say(
                f"{always} nodes of {new.cluster_spec.name} always run (min_count): they need capacity beside those of "
                "the first cluster, or creation fails. To do without until that is gone: "
                "--set cluster.queues[0].compute_resources[0].min_count=0"
            )
        results = watch(self._checks, run(self._checks, deployment, first=self._checks[0]), self._console)
        report = PreflightReport(environment=self._environment, account=None, results=tuple(results))
        if not report.ok:
            show(report, self._console)
            faults = ", ".join(result.id for result in results if result.status in ("FAIL", "UNKNOWN"))
            raise OperationError(
                f"The account is not ready for a second cluster: {faults}. The settings file is as it was. "
                "`--skip ID,ID` leaves out what you know better, such as a quota that drained nodes make room in."
            )
        self._say("The account has what a second cluster needs beside the first.")

    def deploy(self, found: Candidate, stack: str | None) -> None:
        """Let the CDK deploy a candidate that was planned, and wait.

        Raises:
            OperationError: The CDK failed.
        """
        from scripts.deploy import deploy

        stacks = ("--all",) if stack is None else (stack,)
        output = sys.stderr if self._console.quiet else None
        code = deploy(self._environment, _assembly(found), (), stacks=stacks, output=output)
        if code != 0:
            raise OperationError(
                f"The CDK failed with exit code {code}. Why: make diagnose ENV={self._environment}. The same command "
                "tries it once more."
            )

    def verify(self, new: Settings) -> None:
        """Look whether the fleet runs, Slurm answers on the head node, and the file system is mounted there.

        Needs what `fleet.status` and `HeadNode` need.

        Raises:
            OperationError: One of them is not so.
        """
        deployment, name = self._deployment(new), new.cluster_spec.name

        def runs() -> bool:
            deployment.account.forget()
            return fleet.status(deployment) == fleet.RUNNING

        look = patiently(runs, self._clock, Changes(self._say))
        if not self._clock.until(look, every=_SECONDS_BETWEEN_LOOKS, limit=_SECONDS_OF_A_FLEET):
            raise OperationError(f"The fleet of {name} is {fleet.status(deployment)}; allowed: RUNNING")
        answer = self._ask(deployment, _verification(new.storage.file_system.mount_dir))
        if answer.code != 0:
            raise OperationError(f"The head node of {name} is not as it should be: {answer.errors or answer.output}")
        self._say(f"{name} is RUNNING, its head node answers, and mounts {answer.output.strip()}.")

    def drain(self, old: Settings) -> None:
        """Let a cluster take no new jobs, and wait until none is left. Needs what `fleet.drain` needs."""
        fleet.drain(self._deployment(old), clock=self._clock, say=self._say, limit=self._drain_limit)

    def resume(self, old: Settings) -> None:
        """Let a cluster take jobs again. Needs what `fleet.start` needs."""
        fleet.start(self._deployment(old), clock=self._clock, say=self._say)

    def destroy(self, old: Settings) -> None:
        """Destroy a cluster and its stack, also one that is protected, once jobs have ended.

        Needs what `destruction.destroy` needs.

        Raises:
            OperationError: Something of it is left.
        """
        from scripts.destroy.destroy import destroy

        self._settle(old)
        outcome = destroy(
            self._deployment(old),
            clock=self._clock,
            say=self._say,
            drain=True,
            drain_limit=self._drain_limit,
            unprotect=True,
        )
        if outcome.failures:
            raise OperationError("\n".join(outcome.failures))

    def connect(self, settings: Settings) -> str:
        """Return the command that opens a shell on a cluster's head node; empty: there is none."""
        deployment = self._deployment(settings)
        return deployment.outputs(deployment.stack_name("cluster")).get("Connect", "")

    def _deployment(self, settings: Settings) -> Deployment:
        return Deployment(self._environment, settings)

    def _ask(self, deployment: Deployment, script: str) -> Answer:
        """Return what a script says on the head node, asked for again while there is no answer."""
        answers: list[Answer] = []

        def answered() -> bool:
            answers.append(HeadNode(deployment, self._clock).run(script))
            return True

        look = patiently(answered, self._clock, Changes(self._say))
        self._clock.until(look, every=_SECONDS_BETWEEN_LOOKS, limit=inf)
        return answers[0]

    def _settle(self, settings: Settings) -> None:
        """Wait until CloudFormation has ended what it does with a cluster's stack: it takes no change until then."""
        deployment = self._deployment(settings)
        name = deployment.stack_name("cluster")
        told = Changes(self._say)

        def settled() -> bool:
            deployment.account.forget()
            status = (deployment.stack(name) or {}).get("StackStatus", "")
            busy = status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS"
            if busy:
                told(f"{name} is {status}: waiting for its end.")
            return not busy

        look = patiently(settled, self._clock, told)
        if not self._clock.until(look, every=_SECONDS_BETWEEN_LOOKS, limit=_SECONDS_OF_A_STACK):
            raise OperationError(f"{name} is still not settled. More: make status ENV={self._environment} ARGS=--watch")


def _checks(skip: Sequence[str]) -> tuple[Check, ...]:
    from scripts.preflight.catalog import CATALOG, SelectionError, select

    try:
        return select(CATALOG, (), skip)
    except SelectionError as error:
        raise UnusableError(f"--skip: {error}") from None


def _check_name(deployment: Deployment, stack: str, wanted: str) -> None:
    """Refuse a cluster whose name is not that of the settings: nothing else would find it."""
    named = {each.physical_id for each in resources(deployment, stack) if each.type == CLUSTER and each.physical_id}
    if named - {wanted}:
        raise OperationError(
            f"The cluster of {stack} is called {', '.join(named)}, by config/{deployment.environment}.yaml {wanted}; "
            "allowed: cluster.name and name as they were when it was made"
        )


def _assembly(found: Candidate) -> Path:
    return found.path.parent / "cdk.out"


def _verification(mount_dir: str) -> str:
    """Return a script that fails with a word of why, or prints what is mounted."""
    return f"""\
export PATH=/opt/slurm/bin:$PATH
sinfo --noheader >/dev/null || exit 1
findmnt --noheadings --types lustre --mountpoint {mount_dir} --output SOURCE ||
    {{ echo "no Lustre file system is mounted at {mount_dir}" >&2; exit 1; }}
"""
