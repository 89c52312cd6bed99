"""The jobs of a workflow, each after those that it needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from scripts.delivery.workflows.expressions import holds, interpolate, resolve, to_text
from scripts.delivery.workflows.steps import Contexts, JobSteps, Status, World, read, status_functions
from scripts.operations.command import UnusableError


@dataclass(frozen=True)
class Choice:
    """Which jobs of a workflow run.

    Attributes:
        only: Names of those that are wanted, with what they need; none: all.
        without: Names of those that are left out, with what needs them.
    """

    only: Collection[str] = ()
    without: Collection[str] = ()


def run_workflow(
    world: World, path: Path, contexts: Contexts, choice: Choice = Choice(), prefix: str = ""
) -> tuple[Status, dict[str, str]]:
    """Run the jobs of a workflow one after the other, and return what became of it, and its outputs if it is called.

    Args:
        world: What all jobs share.
        path: The workflow's file.
        contexts: Those of the run: github, inputs, secrets, vars.
        choice: Which jobs run.
        prefix: What stands before the names of its jobs.

    Raises:
        UnusableError: Jobs need one another in a circle, or a matrix is not a list for each name.
        ExpressionError: An expression cannot be evaluated.
    """
    definition = read(path)
    jobs = definition["jobs"]
    ended: dict[str, dict[str, Any]] = {}
    for name in _ordered(jobs, choice):
        needs = {each: ended.get(each, _without_outputs(Status.SKIPPED)) for each in _needs(jobs[name])}
        now = {**contexts, "needs": needs}
        ok = all(each["result"] == Status.SUCCESS for each in needs.values())
        failed = any(each["result"] == Status.FAILURE for each in needs.values())
        functions = {**status_functions(ok=ok), "failure": lambda failed=failed: failed}
        if name in choice.without or not holds(jobs[name].get("if"), now, functions):
            world.output.line(f"{prefix}{name}: {'left out' if name in choice.without else 'skipped'}\n")
            ended[name] = _without_outputs(Status.SKIPPED)
        elif "uses" in jobs[name]:
            inputs = {key: resolve(value, now) for key, value in jobs[name].get("with", {}).items()}
            called = path.parents[2] / jobs[name]["uses"]
            result, outputs = run_workflow(world, called, {**contexts, "inputs": inputs}, prefix=f"{prefix}{name} / ")
            ended[name] = {"result": result, "outputs": outputs}
        else:
            ended[name] = _run_job(world, f"{prefix}{name}", definition, jobs[name], now)
    results = [each["result"] for each in ended.values()]
    outputs = _trigger(definition, "workflow_call").get("outputs", {})
    values = {name: interpolate(each["value"], {**contexts, "jobs": ended}) for name, each in outputs.items()}
    return (Status.FAILURE if Status.FAILURE in results else Status.SUCCESS), values


def triggers(definition: Mapping[Any, Any]) -> list[str]:
    """Return the events that begin a workflow."""
    found = definition[True]  # YAML takes `on` for true
    return [found] if isinstance(found, str) else list(found)


def inputs_of(definition: Mapping[Any, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Return what somebody gives who begins a workflow by hand, with defaults.

    Raises:
        UnusableError: A value that is required is missing, or there is no input of a given name.
    """
    declared = _trigger(definition, "workflow_dispatch").get("inputs", {})
    if unknown := given.keys() - declared.keys():
        raise UnusableError(f"got inputs {', '.join(sorted(unknown))}; allowed: {', '.join(declared) or 'none'}")
    found = {}
    for name, each in declared.items():
        value = given.get(name, each.get("default"))
        if value is None and each.get("required"):
            raise UnusableError(f"got no input {name}; allowed: --input {name}=VALUE ({each.get('description', '')})")
        found[name] = to_text(value) == "true" if each.get("type") == "boolean" else value
    return found


def _trigger(definition: Mapping[Any, Any], event: str) -> Mapping[str, Any]:
    found = definition[True]
    return (found.get(event) or {}) if isinstance(found, dict) else {}


def _run_job(
    world: World, title: str, definition: Mapping[str, Any], job: Mapping[str, Any], contexts: Contexts
) -> dict[str, Any]:
    """Run a job, once for each combination of its matrix, and return its result and its outputs."""
    ended = [_run_once(world, title, definition, job, {**contexts, "matrix": each}) for each in _matrix(job, contexts)]
    failed = any(each["result"] is Status.FAILURE for each in ended)
    outputs = {name: value for each in ended for name, value in each["outputs"].items()}
    return {"result": Status.FAILURE if failed else Status.SUCCESS, "outputs": outputs}


def _run_once(
    world: World, title: str, definition: Mapping[str, Any], job: Mapping[str, Any], contexts: Contexts
) -> dict[str, Any]:
    values = ", ".join(to_text(each) for each in contexts["matrix"].values())
    title = f"{title} ({values})" if values else title
    world.output.line(f"{title}")
    environment = dict(world.environment)
    for level in (definition, job):
        now = {**contexts, "env": environment}
        environment.update({key: interpolate(to_text(value), now) for key, value in level.get("env", {}).items()})
    shells = [level.get("defaults", {}).get("run", {}).get("shell") for level in (job, definition)]
    steps = JobSteps(world, title, next(filter(None, shells), ""), environment)
    contexts = {**contexts, "github": {**contexts["github"], "job": title, "workspace": str(steps.workspace)}}
    ok, told = steps.run(job["steps"], contexts)
    now = {**contexts, "steps": told, "env": steps.environment}
    outputs = {name: interpolate(to_text(value), now) for name, value in job.get("outputs", {}).items()}
    world.output.line(f"{title}: {Status.SUCCESS if ok else Status.FAILURE}\n")
    return {"result": Status.SUCCESS if ok else Status.FAILURE, "outputs": outputs}


def _matrix(job: Mapping[str, Any], contexts: Contexts) -> Iterator[dict[str, Any]]:
    """Yield the combinations of a job's matrix; without one a single empty one."""
    matrix = {key: resolve(value, contexts) for key, value in job.get("strategy", {}).get("matrix", {}).items()}
    if unsupported := matrix.keys() & {"include", "exclude"}:
        raise UnusableError(f"got {', '.join(unsupported)} in a matrix; allowed: lists of values")
    for values in product(*matrix.values()):
        yield dict(zip(matrix, values, strict=True))


def _ordered(jobs: Mapping[str, Mapping[str, Any]], choice: Choice) -> list[str]:
    """Return the jobs that are wanted, each after those that it needs."""
    ordered: list[str] = []

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise UnusableError(f"got jobs that need one another: {', '.join(above)}; allowed: no circle")
        if name not in ordered:
            for each in _needs(jobs[name]):
                add(each, (*above, name))
            ordered.append(name)

    for name in choice.only or jobs:
        add(name, ())
    return ordered


def _needs(job: Mapping[str, Any]) -> list[str]:
    found = job.get("needs", [])
    return [found] if isinstance(found, str) else list(found)


def _without_outputs(result: Status) -> dict[str, Any]:
    return {"result": result, "outputs": {}}
