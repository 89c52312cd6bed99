"""What an upgrade checks and changes in AWS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from scripts import generations
from scripts.candidate import Candidate
from scripts.clock import Changes, Clock, with_retries
from scripts.command import OperationError, Say, UnusableError
from scripts.deployment import Deployment
from scripts.fleet import control as fleet
from scripts.remote.head_node import Answer, HeadNode
from scripts.stacks import CLUSTER, resources

if TYPE_CHECKING:
    from rich.console import Console

    from config.settings import Settings
    from scripts.plan.model import Plan
    from scripts.preflight.check import Check

_EVERY = 15.0
_SECONDS_OF_A_STACK = 2 * 3600.0
_SECONDS_OF_A_FLEET = 900.0


class UpgradeBackend:
    """The account of the credentials in use."""

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
        """Ask AWS nothing yet.

        Plans and checks are shown on the console; if it is quiet, the CDK's output goes to standard error. Checks to
        skip have the names of preflight. A drain waits `drain_limit` seconds at most; None: as long as jobs take.

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
        """Return the statuses of the clusters' stacks, by generation, as `generations.existing` does.

        Two calls more for each that exists. Needs cloudformation:DescribeStacks and cloudformation:ListStackResources.

        Raises:
            OperationError: A cluster has another name than the settings give it.
        """
        statuses = generations.existing(self._deployment(settings))
        for generation in statuses:
            deployment = self._deployment(settings.of_generation(generation))
            name = deployment.stack_name("cluster")
            if deployment.stack(name) is not None:  # else only ParallelCluster's own exists
                _check_name(deployment, name, deployment.settings.cluster_spec.name)
        return statuses

    def metric_sources(self, settings: Settings) -> set[str]:
        """Return the names of the clusters whose metrics the alarms use. One call; needs cloudformation:GetTemplate."""
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

    def plan(self, candidate: Candidate) -> Plan:
        """Return what a deployment of a candidate would do, once nothing is in progress in its cluster's stack."""
        self._settle(candidate.settings)
        return candidate.plan()

    def show(self, plan: Plan) -> None:
        """Show a plan."""
        from scripts.plan import text

        text.show(plan, self._console)

    def check(self, new: Settings) -> None:
        """Let preflight check whether the account has room for a second cluster beside the nodes that run.

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
                f"{always} nodes of {new.cluster_spec.name} are static (min_count): they need capacity beside those of "
                "the first cluster, or creation fails. To start without them: "
                "--set cluster.queues[0].compute_resources[0].min_count=0"
            )
        results = watch(self._checks, run(self._checks, deployment), self._console)
        report = PreflightReport(environment=self._environment, account=None, results=tuple(results))
        if not report.ok:
            show(report, self._console)
            failed = ", ".join(result.id for result in results if result.status in ("FAIL", "UNKNOWN"))
            raise OperationError(
                f"The account is not ready for a second cluster: {failed}. The settings file is unchanged. "
                "`--skip ID,ID` skips checks, such as of a quota that drained nodes make room in."
            )
        self._say("The account has room for a second cluster beside the first.")

    def deploy(self, candidate: Candidate, *stacks: str) -> None:
        """Deploy stacks of a candidate that was planned, and those that they depend on; without a name: all stacks.

        Raises:
            OperationError: The CDK failed.
        """
        candidate.deploy(*stacks, quiet=self._console.quiet)

    def verify(self, new: Settings) -> None:
        """Check that the fleet runs, Slurm answers on the head node, and the file system is mounted there.

        Needs what `fleet.status` and `HeadNode` need.

        Raises:
            OperationError: One of them is not the case.
        """
        deployment, name = self._deployment(new), new.cluster_spec.name

        def runs() -> bool:
            deployment.account.forget()
            return fleet.status(deployment) == fleet.RUNNING

        condition = with_retries(runs, self._clock, Changes(self._say))
        if not self._clock.until(condition, every=_EVERY, limit=_SECONDS_OF_A_FLEET):
            raise OperationError(f"The fleet of {name} is {fleet.status(deployment)}; allowed: RUNNING")
        answer = self._ask(deployment, _verification(new.storage.file_system.mount_dir))
        if answer.code != 0:
            raise OperationError(f"The head node of {name} is unhealthy: {answer.errors or answer.output}")
        self._say(f"{name} is RUNNING, its head node answers, and mounts {answer.output.strip()}.")

    def drain(self, old: Settings) -> None:
        """Let a cluster take no new jobs, and wait until none is left. Needs what `fleet.drain` needs."""
        fleet.drain(self._deployment(old), clock=self._clock, say=self._say, limit=self._drain_limit)

    def resume(self, old: Settings) -> None:
        """Let a cluster take jobs again. Needs what `fleet.start` needs."""
        fleet.start(self._deployment(old), clock=self._clock, say=self._say)

    def destroy(self, old: Settings) -> None:
        """Destroy a cluster and its stack, also if it is protected, once jobs have ended.

        Needs what `scripts.destroy` needs.

        Raises:
            OperationError: Something of it remains.
        """
        from scripts.destroy.destroy import destroy
        from scripts.destroy.model import DestroyOptions

        self._settle(old)
        options = DestroyOptions(drain=True, drain_limit=self._drain_limit, unprotect=True)
        outcome = destroy(self._deployment(old), options, clock=self._clock, say=self._say)
        if outcome.failures:
            raise OperationError("\n".join(outcome.failures))

    def _deployment(self, settings: Settings) -> Deployment:
        return Deployment(self._environment, settings)

    def _ask(self, deployment: Deployment, script: str) -> Answer:
        """Return what a script says on the head node, asked for again while there is no answer."""
        answers: list[Answer] = []

        def answered() -> bool:
            answers.append(HeadNode(deployment, self._clock).run(script))
            return True

        condition = with_retries(answered, self._clock, Changes(self._say))
        self._clock.until(condition, every=_EVERY, limit=inf)
        return answers[0]

    def _settle(self, settings: Settings) -> None:
        """Wait until no operation is in progress in a cluster's stack: CloudFormation accepts no change until then."""
        deployment = self._deployment(settings)
        name = deployment.stack_name("cluster")
        report = Changes(self._say)

        def settled() -> bool:
            deployment.account.forget()
            status = (deployment.stack(name) or {}).get("StackStatus", "")
            busy = status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS"
            if busy:
                report(f"{name} is {status}: waiting.")
            return not busy

        condition = with_retries(settled, self._clock, report)
        if not self._clock.until(condition, every=_EVERY, limit=_SECONDS_OF_A_STACK):
            raise OperationError(f"{name} is still in progress. More: make status ENV={self._environment} ARGS=--watch")


def _checks(skip: Sequence[str]) -> tuple[Check, ...]:
    from scripts.preflight.catalog import CATALOG, SelectionError, select

    try:
        return select(CATALOG, (), skip)
    except SelectionError as error:
        raise UnusableError(f"--skip: {error}") from None


def _check_name(deployment: Deployment, stack: str, wanted: str) -> None:
    """Reject a cluster whose name is not that of the settings: no other command would find it."""
    named = {each.physical_id for each in resources(deployment, stack) if each.type == CLUSTER and each.physical_id}
    if named - {wanted}:
        raise OperationError(
            f"The cluster of {stack} is called {', '.join(named)}, in config/{deployment.environment}.yaml {wanted}; "
            "allowed: cluster.name and name as they were when it was created"
        )


def _verification(mount_dir: str) -> str:
    """Return a script that fails with a reason, or prints what is mounted."""
    return f"""\
export PATH=/opt/slurm/bin:$PATH
sinfo --noheader >/dev/null || exit 1
findmnt --noheadings --types lustre --mountpoint {mount_dir} --output SOURCE ||
    {{ echo "no Lustre file system is mounted at {mount_dir}" >&2; exit 1; }}
"""
