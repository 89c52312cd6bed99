"""The steps of one job, in order: shell, actions of the repository, and the few other actions that are known here."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import yaml

from rehearsal.aws import ACCOUNT
from scripts.delivery.workflows.cloud import Cloud
from scripts.delivery.workflows.expressions import (
    FUNCTIONS,
    ExpressionError,
    holds,
    interpolate,
    resolve,
    to_text,
    truthy,
)
from scripts.delivery.workflows.files import StepFiles
from scripts.delivery.workflows.output import Output
from scripts.delivery.workflows.tree import Tree

_SHELLS: Final[Mapping[str, Sequence[str]]] = {
    "": ("bash", "-e"),
    "bash": ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail"),
    "sh": ("sh", "-e"),
}
"""By the value of ``shell``; without one there is no pipefail.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax#jobsjob_idstepsshell
"""
_NOTHING_TO_DO: Final = ("actions/cache", "actions/setup-python")
Contexts = Mapping[str, Any]


class Status(StrEnum):
    """What became of a step or a job."""

    SUCCESS = "success"
    FAILURE = "failure"
    FORGIVEN = "forgiven"
    """It failed, and has ``continue-on-error``."""
    SKIPPED = "skipped"
    """By its ``if``, or because something before it failed."""
    LEFT_OUT = "left out"
    """It cannot run here, or was not wanted."""


@dataclass(frozen=True)
class StepResult:
    """What became of a step.

    Attributes:
        job: Name of its job.
        name: Its own.
        status: What became of it.
        seconds: How long it took.
    """

    job: str
    name: str
    status: Status
    seconds: float


@dataclass
class World:
    """What all jobs of a run share.

    Attributes:
        tree: What they check out.
        cloud: The account that they work in.
        output: Where their lines go.
        directory: Where workspaces, files of steps and artifacts are.
        environment: Variables of all steps, without any of AWS.
        repository: OWNER/NAME, in which the run pretends to be.
        secrets: The workflow's secrets by name.
        results: What became of the steps so far.
        summaries: Name of the job and Markdown, of each step that wrote some.
    """

    tree: Tree
    cloud: Cloud
    output: Output
    directory: Path
    environment: Mapping[str, str]
    repository: str
    secrets: Mapping[str, str]
    results: list[StepResult] = field(default_factory=list)
    summaries: list[tuple[str, str]] = field(default_factory=list)


def status_functions(*, ok: bool) -> Mapping[str, Callable[..., Any]]:
    """Return all functions of expressions, where all before is well or not."""
    states = {"success": lambda: ok, "failure": lambda: not ok, "always": lambda: True, "cancelled": lambda: False}
    return {**FUNCTIONS, **states}


def read(path: Path) -> dict[str, Any]:
    """Return what a workflow or an action says; its ``on`` is YAML's true."""
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


class JobSteps:
    """Runs the steps of one job on one machine.

    Attributes:
        environment: The variables that its steps have, as they are now.
    """

    def __init__(self, world: World, job: str, shell: str, environment: Mapping[str, str]) -> None:
        self._world = world
        self._job = job
        self._shell = shell
        self._machine = world.directory / f"machine-{len(list(world.directory.iterdir()))}"
        self.workspace = self._machine / "workspace"
        self.workspace.mkdir(parents=True)
        self._path: list[str] = []
        self.environment = dict(environment)

    def run(self, steps: Sequence[Mapping[str, Any]], contexts: Contexts) -> tuple[bool, dict[str, Any]]:
        """Run steps, and return whether all went well, and what they tell: outputs, outcomes, conclusions by id."""
        told: dict[str, Any] = {}
        ok = True
        for number, step in enumerate(steps):
            now = {**contexts, "steps": told, "env": self.environment, "job": {"status": _status(ok=ok)}}
            status, outputs = self._conditionally(step, now, ok=ok)
            ok = ok and status is not Status.FAILURE
            told[step.get("id", f"__{number}")] = {"outputs": outputs, **_as_told(status)}
        return ok, told

    def _conditionally(self, step: Mapping[str, Any], contexts: Contexts, *, ok: bool) -> tuple[Status, dict[str, str]]:
        """Run a step if it is to run, and tell what becomes of it."""
        began, name = time.monotonic(), "?"
        outputs: dict[str, str] = {}
        try:
            name = interpolate(_name(step), contexts)
            if holds(step.get("if"), contexts, status_functions(ok=ok)):
                self._world.output.line(f"  {name} ...")
                status, outputs = self._step(step, contexts)
            else:
                status = Status.SKIPPED
        except (ExpressionError, OSError, ValueError, subprocess.CalledProcessError) as error:
            self._world.output.of_step(str(error))
            status = Status.FAILURE
        if status is Status.FAILURE and truthy(resolve(step.get("continue-on-error"), contexts)):
            status = Status.FORGIVEN
        result = StepResult(self._job, name, status, time.monotonic() - began)
        self._world.results.append(result)
        self._world.output.line(f"  {status}: {name} ({result.seconds:.1f} s)")
        return status, outputs

    def _step(self, step: Mapping[str, Any], contexts: Contexts) -> tuple[Status, dict[str, str]]:
        own = {key: interpolate(to_text(value), contexts) for key, value in step.get("env", {}).items()}
        contexts = {**contexts, "env": {**self.environment, **own}}
        if "run" in step:
            return self._shell_step(step, contexts, own)
        arguments = {key: resolve(value, contexts) for key, value in step.get("with", {}).items()}
        action = step["uses"].partition("@")[0]
        if action.startswith("./"):
            return self._composite(action, arguments, contexts)
        return self._action(action, arguments), {}

    def _shell_step(
        self, step: Mapping[str, Any], contexts: Contexts, own: Mapping[str, str]
    ) -> tuple[Status, dict[str, str]]:
        """Run a script, and take over what it tells."""
        place = self._machine / "steps" / str(len(self._world.results))
        files = StepFiles(place)
        script = place / "script"
        script.write_text(interpolate(step["run"], contexts), encoding="utf-8")
        path = os.pathsep.join([*self._path, self.environment["PATH"]])
        told = {**self._variables(contexts), **files.environment}
        with subprocess.Popen(
            [*_SHELLS[step.get("shell", self._shell)], str(script)],
            cwd=self.workspace / interpolate(step.get("working-directory", ""), contexts),
            env={**self.environment, "PATH": path, **told, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None  # noqa: S101 - stdout=PIPE
            for line in process.stdout:
                self._world.output.of_step(line.rstrip())
        self.environment.update(files.values("GITHUB_ENV"))
        self._path[:0] = files.text("GITHUB_PATH").splitlines()[::-1]
        if summary := files.text("GITHUB_STEP_SUMMARY"):
            self._world.summaries.append((self._job, summary))
        return _status(ok=process.returncode == 0), files.values("GITHUB_OUTPUT")

    def _composite(
        self, action: str, arguments: Mapping[str, Any], contexts: Contexts
    ) -> tuple[Status, dict[str, str]]:
        """Run the steps of an action of the repository."""
        definition = read(self.workspace / action / "action.yaml")
        defaults = {name: each.get("default", "") for name, each in definition.get("inputs", {}).items()}
        inner = {**contexts, "inputs": {**defaults, **arguments}}
        ok, told = self.run(definition["runs"]["steps"], inner)
        values = {name: each["value"] for name, each in definition.get("outputs", {}).items()}
        outputs = {name: interpolate(value, {**inner, "steps": told}) for name, value in values.items()}
        return _status(ok=ok), outputs

    def _action(self, action: str, arguments: Mapping[str, Any]) -> Status:
        """Do what an action of GitHub's or AWS's does, as far as that is known here."""
        match action:
            case "actions/checkout":
                directory = self.workspace / to_text(arguments.get("path"))
                self._world.tree.checkout(directory, to_text(arguments.get("ref")))
                self._world.tree.fill_in(directory, self._world.repository, ACCOUNT)
            case "aws-actions/configure-aws-credentials":
                found = self._world.cloud.credentials(self.workspace, to_text(arguments["aws-region"]))
                for name, value in found.items():
                    if name.endswith(("SECRET_ACCESS_KEY", "TOKEN")):
                        self._world.output.hide(value)
                self.environment.update(found)
            case "actions/upload-artifact":
                source = self.workspace / to_text(arguments["path"])
                target = self._world.directory / "artifacts" / to_text(arguments["name"])
                _copy(source, target if source.is_dir() else target / source.name)
            case "actions/download-artifact":
                target = self.workspace / to_text(arguments.get("path"))
                _copy(self._world.directory / "artifacts" / to_text(arguments["name"]), target)
            case action if action in _NOTHING_TO_DO:
                pass
            case _:
                self._world.output.of_step(f"{action} does not run here")
                return Status.LEFT_OUT
        return Status.SUCCESS

    def _variables(self, contexts: Contexts) -> dict[str, str]:
        """Return the variables that tell a step where it runs."""
        github = contexts["github"]
        names = ("event_name", "job", "ref", "ref_name", "repository", "run_attempt", "run_id", "sha", "workflow")
        return {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_OS": "Linux",
            "RUNNER_TEMP": str(self._machine),
            **{f"GITHUB_{name.upper()}": to_text(github.get(name)) for name in names},
        }


def _status(*, ok: bool) -> Status:
    return Status.SUCCESS if ok else Status.FAILURE


def _as_told(status: Status) -> dict[str, Status]:
    """Return a step's outcome, and its conclusion, as later steps are told them."""
    match status:
        case Status.FORGIVEN:
            return {"outcome": Status.FAILURE, "conclusion": Status.SUCCESS}
        case Status.LEFT_OUT:
            return {"outcome": Status.SUCCESS, "conclusion": Status.SUCCESS}
        case _:
            return {"outcome": status, "conclusion": status}


def _name(step: Mapping[str, Any]) -> str:
    return str(step.get("name") or step.get("uses", "").partition("@")[0] or step["run"].strip().splitlines()[0])


def _copy(source: Path, target: Path) -> None:
    """Copy a file or what is in a directory.

    Raises:
        FileNotFoundError: There is no such thing.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)
