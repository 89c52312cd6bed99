"""Run the workflows of .github/workflows on this machine: from clean clones of HEAD, without GitHub or AWS.

Each step runs in the shell that GitHub would run it in; expressions, outputs, environment files, summaries and masks
are GitHub's. Credentials are those of an emulated account, in which all workflows of a run work, one after the other.
Actions of others are left out, and it says so, but for those of checkout, caches, artifacts and credentials. What is
not committed is not seen. Exit code 0: no step failed; 1: one did, or printed a secret, which is masked; 2: the
arguments or workflows cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from config import pipeline
from config.settings import SettingsError
from scripts.delivery.workflows.cloud import Cloud, EmulatedCloud
from scripts.delivery.workflows.expressions import ExpressionError
from scripts.delivery.workflows.jobs import Choice, inputs_of, run_workflow, triggers
from scripts.delivery.workflows.output import Output
from scripts.delivery.workflows.steps import Status, World, read
from scripts.delivery.workflows.tree import Tree
from scripts.operations.command import DONE, FAILED, INTERRUPTED, UNUSABLE, UnusableError
from scripts.operations.screen import duration

ROOT = Path(__file__).parents[1]
FOLDER = ".github/workflows"
REPOSITORY = "example-org/ultracluster"
"""In place of the one that pipeline.yaml names."""
ORDER = ("pull-request.yaml", "deploy.yaml", "scheduled.yaml", "destroy.yaml")
"""Each works on what the ones before have left in the account; any others come after them."""
_NOT_INHERITED = ("AWS_", "GITHUB_", "MAKE", "MFLAGS", "PYTHON", "VIRTUAL_ENV")
"""Beginnings of variables that a fresh machine has not; `make ci-local` has some for its own."""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    found = argparse.ArgumentParser(prog="python -m scripts.ci_local", description=__doc__)
    found.add_argument("--workflow", metavar="FILE", help=f"only this one of {FOLDER}")
    found.add_argument("--job", metavar="JOB", help="only this job, and those that it needs")
    found.add_argument("--without", metavar="JOB", action="append", default=[], help="leave this job out, such as test")
    found.add_argument(
        "--input", metavar="NAME=VALUE", action="append", default=[], help="for a workflow that is begun by hand"
    )
    found.add_argument(
        "--reuse-environments",
        action="store_true",
        help="link the environments of this tree into the clones: quick, but they are not built anew",
    )
    return found


def run(root: Path, given: argparse.Namespace, cloud: Cloud, output: Output, directory: Path) -> int:
    """Run what is asked for, tell what became of it, and return the exit code.

    Args:
        root: The working tree.
        given: The arguments, parsed.
        cloud: The account to work in.
        output: Where lines go.
        directory: For clones and files, empty.

    Raises:
        UnusableError: The arguments or the repository cannot be used.
        ExpressionError: An expression outside of a step cannot be evaluated.
        SettingsError: pipeline.yaml cannot be used.
    """
    tree = Tree(root, reuse_environments=given.reuse_environments)
    source = directory / "source"
    tree.checkout(source, "")
    token = secrets.token_hex(20)
    output.hide(token)
    environment = _environment(root, directory)
    world = World(tree, cloud, output, directory, environment, REPOSITORY, {"GITHUB_TOKEN": token})
    for path in _workflows(source / FOLDER, given):
        output.line(f"== {path.name}")
        definition = read(path)
        by_hand = _takes_inputs(definition, given)
        typed = {**_typed(path.name, source), **_inputs(given.input)} if by_hand else {}
        contexts = {
            "github": _github(tree, definition, path.name, token),
            "inputs": inputs_of(definition, typed),
            "secrets": world.secrets,
            "vars": {},
            "runner": {"os": "Linux", "arch": "X64", "temp": str(directory)},
        }
        only = [given.job] if given.job else []
        run_workflow(world, path, contexts, Choice(only, given.without))
    return _tell(world)


def _takes_inputs(definition: Mapping[Any, Any], given: argparse.Namespace) -> bool:
    return bool(given.workflow) or triggers(definition)[0] == "workflow_dispatch"


def _workflows(folder: Path, given: argparse.Namespace) -> list[Path]:
    """Return the files of what is to run: those that are not only called by others, and have the job that is wanted."""
    found = {path.name: path for path in sorted(folder.glob("*.y*ml")) if triggers(read(path)) != ["workflow_call"]}
    if given.workflow and given.workflow not in found:
        known = ", ".join(found) or f"none: {FOLDER} of HEAD has none"
        raise UnusableError(f"got workflow {given.workflow}; allowed: {known}")
    order = [name for name in ORDER if name in found] + [name for name in found if name not in ORDER]
    wanted = [given.workflow] if given.workflow else order
    jobs = {name: read(found[name])["jobs"] for name in wanted}
    known_jobs = {job for each in jobs.values() for job in each}
    if unknown := [job for job in (given.job, *given.without) if job and job not in known_jobs]:
        raise UnusableError(f"got job {', '.join(unknown)}; allowed: {', '.join(sorted(known_jobs))}")
    return [found[name] for name in wanted if not given.job or given.job in jobs[name]]


def _typed(name: str, source: Path) -> dict[str, str]:
    """Return what a person would type who begins a workflow: for destroy.yaml, to end all of the first stage."""
    if name != "destroy.yaml":
        return {}
    stage = pipeline.load(source / pipeline.PATH.name).stages[0]
    names = {"stage": stage.name, "name": stage.settings(source / "config").name}
    return {**names, "everything": "true", "without_backup": "true"}


def _inputs(given: Sequence[str]) -> dict[str, str]:
    if wrong := [each for each in given if "=" not in each]:
        raise UnusableError(f"got --input {wrong[0]}; allowed: NAME=VALUE")
    return dict(each.split("=", 1) for each in given)


def _environment(root: Path, directory: Path) -> dict[str, str]:
    """Return what a step finds of this machine's variables, and what keeps it from this machine's AWS credentials.

    Args:
        root: The working tree, whose programs are not for the clones.
        directory: For what the CDK keeps.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    path = [each for each in kept["PATH"].split(os.pathsep) if not Path(each).is_relative_to(root)]
    nothing = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    own = {"PATH": os.pathsep.join(path), "CDK_HOME": str(directory / "cdk-home")}  # there: accounts by access key
    return {**kept, **nothing, **own, "AWS_EC2_METADATA_DISABLED": "true"}


def _github(tree: Tree, definition: Mapping[Any, Any], name: str, token: str) -> dict[str, Any]:
    """Return what a run is told of itself: as begun by its first event, for the newest commit."""
    event = triggers(definition)[0]
    place = {"repo": {"full_name": REPOSITORY}}
    request = {
        "number": 1,
        "user": {"login": "somebody"},
        "head": {"sha": tree.sha, "ref": "change", **place},
        "base": {"sha": tree.parent(), "ref": "main", **place},
    }
    of_request = {"number": 1, "pull_request": request} if event == "pull_request" else {}
    return {
        "actor": "somebody",
        "base_ref": "main" if of_request else "",
        "event": of_request,
        "event_name": event,
        "head_ref": "change" if of_request else "",
        "ref": "refs/pull/1/merge" if of_request else "refs/heads/main",
        "ref_name": "1/merge" if of_request else "main",
        "repository": REPOSITORY,
        "repository_owner": REPOSITORY.split("/", maxsplit=1)[0],
        "run_attempt": "1",
        "run_id": "1",
        "run_number": "1",
        "sha": tree.sha,
        "token": token,
        "workflow": str(definition.get("name", name)),
    }


def _tell(world: World) -> int:
    """Print the summaries of jobs and what became of each step, and return the exit code."""
    for job, text in world.summaries:
        world.output.line(f"-- Summary of {job}")
        for line in text.splitlines():
            world.output.line(line)
        world.output.line()
    world.output.line("-- Steps")
    for line in _table(world):
        world.output.line(line)
    failed = [each for each in world.results if each.status is Status.FAILURE]
    left_out = [each for each in world.results if each.status is Status.LEFT_OUT]
    world.output.line()
    if world.output.masked_lines:
        world.output.line(f"{world.output.masked_lines} lines had secrets, which are masked: no step may print any.")
    world.output.line(f"{len(world.results)} steps: {len(failed)} failed, {len(left_out)} do not run here.")
    return FAILED if failed or world.output.masked_lines else DONE


def _table(world: World) -> Iterator[str]:
    for each in world.results:
        yield f"{each.status:9} {duration(timedelta(seconds=each.seconds)):>13}  {each.job}: {each.name}"


def main(make_cloud: Callable[[], EmulatedCloud] = EmulatedCloud) -> int:
    """Run what the command line asks for, and return the exit code."""
    given = parser().parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: clean up
    output = Output(lambda line: print(line, flush=True))
    try:
        with TemporaryDirectory() as directory, closing(make_cloud()) as cloud:
            return run(ROOT, given, cloud, output, Path(directory))
    except (UnusableError, ExpressionError, SettingsError) as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
