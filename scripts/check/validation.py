"""Validation of a deployment by ParallelCluster's own code, in an emulated account."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import computed_field

from config.settings import Settings
from scripts.core import options
from scripts.core.document import DeploymentName, Document, Result
from scripts.core.figures import counted
from scripts.core.report import Block, Gap, Line
from scripts.core.temporary import temporary_directory
from scripts.core.text import echo
from scripts.emulated import EmulatedAws, Resolver, accounts, controller, publish_files
from toolchain.assembly import Assembly
from toolchain.cluster import ClusterRequest, cluster_request
from toolchain.parallelcluster import Message, ParallelCluster
from toolchain.synthesis import SynthesisError, synthesize
from ultracluster.domain.parallelcluster_versions import PINNED, not_asked
from ultracluster.domain.validator_warnings import Verdict, judge
from ultracluster.domain.validators import TIMED_OUT


class Validation(Document):
    """What ParallelCluster says of a deployment.

    Attributes:
        cluster_name: ParallelCluster's name of the cluster.
        queues: Number of queues.
        messages: What schema and validators say, nothing suppressed, each once.
        verdicts: What the warnings among them do to the deployment, by validator.
        slurm: Whether Slurm's controller started with the custom settings; empty: there are none.
        problems: Why the deployment would fail, or should not be made; none: it is valid.
        not_asked: What another version of ParallelCluster in the settings leaves open; empty: nothing.
    """

    cluster_name: str
    queues: int
    messages: tuple[Message, ...]
    verdicts: dict[str, Verdict]
    slurm: str = ""
    problems: tuple[str, ...]
    not_asked: str = ""


class ValidationOutcome(Result):
    """The result of one configuration: a report, or the reason why there is none."""

    deployment: DeploymentName
    report: Validation | None = None
    error: str = ""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def code(self) -> int:
        """The exit code that this outcome alone would give."""
        if self.report is None:
            return 2
        return 1 if self.report.problems else 0

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        if self.report is None:
            yield Line(f"{self.deployment}: NOT EXAMINED")
            yield from (Line(line, level=1) for line in self.error.splitlines())
            yield Gap()
            return
        said = self.report
        queues = counted(said.queues, "queues")
        yield Line(f"{self.deployment}: {'REJECTED' if said.problems else 'accepted'}")
        asked = f"schema and all validators of ParallelCluster {PINNED}, with real types and as strings"
        yield Line(f"cluster {said.cluster_name}, {queues}; {asked}", level=1)
        if said.not_asked:
            yield Line(f"WARNING {said.not_asked}", level=1)
        for message in said.messages:
            yield Line(f"{message.level:7} {message.validator}: {message.text}", level=1)
            if message.level == "WARNING":
                yield Line(f"        {said.verdicts[message.validator].explanation}", level=1)
        if said.slurm:
            yield Line(f"Slurm's custom settings: {said.slurm}", level=1)
        for problem in said.problems:
            first, *more = problem.splitlines()
            yield Line(f"FAIL    {first}", level=1)
            yield from (Line(f"        {line}", level=1) for line in more)
        yield Gap()


def prepare(aws: EmulatedAws, settings: Settings, assembly: Assembly) -> ClusterRequest:
    """Create in an emulated AWS what the cluster of an assembly is attached to, and return what its provider gets."""
    accounts.create_prerequisites(aws, settings)
    accounts.bootstrap(aws, settings)
    publish_files(assembly, aws)
    request = cluster_request(assembly, Resolver(assembly, aws).resolve)
    [queue, *_] = request.configuration["Scheduling"]["SlurmQueues"]
    accounts.create_in_subnet(aws, settings, queue["Networking"]["SubnetIds"][0])
    return request


def examine(parallelcluster: ParallelCluster, request: ClusterRequest, accepting: Mapping[str, str]) -> Validation:
    """Let ParallelCluster validate a cluster: with the types of its template, and as CloudFormation would send it.

    `accepting` is the result of ``validator_warnings.accepted``.
    """
    messages = parallelcluster.validate(request.configuration)
    warned = {message.validator for message in messages if message.level == "WARNING"}
    verdicts = {validator: judge(validator, accepting) for validator in sorted(warned)}
    suppressed = [name.removeprefix("type:") for name in request.properties.get("SuppressValidators", [])]
    unexplained = [name for name in suppressed if judge(name, accepting).stops]
    problems = [f"SuppressValidators has {name}, whose warnings stop a deployment" for name in unexplained]
    left = [message for message in messages if message.validator not in suppressed]
    # To suppress a validator for its warnings silences its errors, too; here they still count.
    problems += [
        f"{each.level} {each.validator}: {each.text}"
        for each in messages
        if each.level == "ERROR" or (each.level == "WARNING" and (each in left or _is_missing(each)))
    ]
    sent = parallelcluster.create(request, strings=True)
    if not sent.accepted:
        problems.append(f"rejected as CloudFormation sends it: {sent.reason}")
    if list(sent.messages) != left:
        problems.append(f"as CloudFormation sends it the validators say something else: {sent.messages}")
    queues = request.configuration.get("Scheduling", {}).get("SlurmQueues", [])
    return Validation(
        cluster_name=request.name,
        queues=len(queues),
        messages=tuple(dict.fromkeys(messages)),
        verdicts=verdicts,
        problems=tuple(problems),
        not_asked=not_asked(parallelcluster.version or PINNED),
    )


def with_slurm(report: Validation, parallelcluster: ParallelCluster, configuration: dict[str, Any]) -> Validation:
    """Let Slurm's controller judge the custom settings of a cluster that ParallelCluster accepts."""
    judgement = controller.judge(parallelcluster.head_node_files(configuration), partial(echo, err=True))
    problems = (*report.problems, *filter(None, [judgement.problem]))
    return report.model_copy(update={"slurm": judgement.text, "problems": problems})


def has_custom_settings(settings: Settings) -> bool:
    """Return whether settings have parameters of slurm.conf beside the stack's own."""
    cluster = settings.cluster
    of_queues = any(queue.custom_slurm_settings for queue in cluster.queues)
    return bool(cluster.slurm.custom_settings) or of_queues or "CustomSlurmSettings" in json.dumps(cluster.overrides)


def _is_missing(warning: Message) -> bool:
    """Return whether a script is missing: here all are published, and no permission is still propagating."""
    return warning.validator == "AsyncTimedUrlValidator" and TIMED_OUT not in warning.text


def outcomes(
    names: Sequence[str], synthesize: Callable[[Path, Path], Assembly] = synthesize
) -> Iterator[ValidationOutcome]:
    """Examine deployments one after the other, in an emulated AWS that is empty before each.

    `synthesize` makes the assembly of one, if it likes in the directory that it gets, which does not stay.
    """
    from config.settings import SettingsError

    wrong: dict[str, str] = {}
    for name in names:
        try:
            options.settings_of(name)
        except SettingsError as error:
            wrong[name] = str(error)
    right = [name for name in names if name not in wrong]
    with closing(_examined(right, synthesize)) as examined:  # which starts only if there are any: that takes seconds
        for name in names:
            yield ValidationOutcome(deployment=name, error=wrong[name]) if name in wrong else next(examined)


def _examined(
    names: Sequence[str], synthesize: Callable[[Path, Path], Assembly]
) -> Generator[ValidationOutcome, None, None]:
    from botocore.exceptions import BotoCoreError, ClientError

    from config.settings import SettingsError
    from toolchain.parallelcluster import RunnerError
    from toolchain.values import UnsupportedError
    from ultracluster.domain.validator_warnings import accepted

    of_aws, of_toolchain = (BotoCoreError, ClientError), (RunnerError, SynthesisError, UnsupportedError)
    with (
        temporary_directory() as directory,
        ThreadPoolExecutor(max_workers=1) as synthesis,
        EmulatedAws() as aws,
        ParallelCluster(aws.environment) as parallelcluster,
    ):
        # One deployment is synthesized while the one before it is examined.
        assemblies = {
            name: synthesis.submit(synthesize, options.settings_file(name), directory / name) for name in names
        }
        for name in names:
            aws.reset()
            try:
                settings = options.settings_of(name)
                parallelcluster.version = settings.cluster.parallelcluster_version
                request = prepare(aws, settings, assemblies[name].result())
                report = examine(parallelcluster, request, accepted(settings.cluster_spec))
                if not report.problems and has_custom_settings(settings):
                    report = with_slurm(report, parallelcluster, request.configuration)
            except (*of_aws, *of_toolchain, LookupError, SettingsError) as error:
                yield ValidationOutcome(deployment=name, error=str(error))
            else:
                yield ValidationOutcome(deployment=name, report=report)
