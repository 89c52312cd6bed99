"""The workflows and composite actions as data."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = {path.stem: path for path in sorted((GITHUB / "workflows").iterdir())}
ACTIONS = {path.parent.name: path for path in sorted((GITHUB / "actions").glob("*/action.yaml"))}
FILES = [*WORKFLOWS.values(), *ACTIONS.values()]

Document = Mapping[Any, Any]


class Step(NamedTuple):
    """A step, and where it is."""

    file: str
    job: str
    body: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.file}/{self.job}/{self.body.get('name', self.body.get('run', self.body.get('uses')))}"


def read(path: Path) -> Document:
    document: Document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document


def events(workflow: str) -> set[str]:
    triggers = read(WORKFLOWS[workflow])[True]  # YAML 1.1 takes `on` for a truth value
    return set(triggers)


def jobs() -> Iterator[tuple[str, str, Document]]:
    """Yield workflow, name and body of each job."""
    for workflow, path in WORKFLOWS.items():
        for name, body in read(path)["jobs"].items():
            yield workflow, name, body


def steps() -> list[Step]:
    """Return the steps of all jobs and composite actions."""
    listed = [Step(workflow, job, step) for workflow, job, body in jobs() for step in body.get("steps", [])]
    listed += [Step(name, "action", step) for name, path in ACTIONS.items() for step in read(path)["runs"]["steps"]]
    return listed


def scripts() -> list[Step]:
    """Return the steps that run shell."""
    return [step for step in steps() if "run" in step.body]


def run(
    script: str, directory: Path, files: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run shell as GitHub does with `shell: bash`.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax#jobsjob_idstepsshell

    Args:
        script: The shell.
        directory: Where it runs.
        files: Directory of what it writes for GitHub, and of commands in `bin` that come first; None: where it runs.
        environment: Its variables, beside the PATH of this process.
    """
    of_github = files or directory
    written = {name: str(of_github / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=directory,
        env={"PATH": f"{of_github / 'bin'}{os.pathsep}{os.environ['PATH']}", **written, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


class Scripted(NamedTuple):
    """What a script of actions/github-script has done: its calls, and the error that ended it; empty: none."""

    calls: list[dict[str, Any]]
    error: str


def run_script(
    script: str, directory: Path, context: Mapping[str, Any], answers: Mapping[str, Any], **environment: str
) -> Scripted:
    """Run JavaScript as actions/github-script does, with a GitHub that answers as it is told (github_script.mjs)."""
    done = subprocess.run(
        ["node", str(Path(__file__).with_name("github_script.mjs"))],
        cwd=directory,
        env={"PATH": os.environ["PATH"], **environment},
        input=json.dumps({"script": script, "context": context, "answers": answers}),
        capture_output=True,
        text=True,
        check=True,
    )
    return Scripted(**json.loads(done.stdout))
