"""Python environments of programs on a cluster: made, listed and removed by its head node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import Field

from scripts.account.deployment import Deployment
from scripts.account.remote import program
from scripts.account.remote.head_node import HeadNode
from scripts.account.remote.streamed_command import MOST_INPUT, login_command, print_output, start
from scripts.account.remote.values import Line as Text
from scripts.core.document import Document, Result
from scripts.core.errors import UnusableError
from scripts.core.figures import counted
from scripts.core.report import Block, Line, Table, columns
from scripts.use.submission import jobs_directory

_SECONDS: Final = 3600
"""How long uv may take, which downloads."""
_PROGRAM: Final = Path(__file__).parents[2] / "training" / "environments.py"


class Environment(Document):
    """A Python environment of programs."""

    name: Text = Field(description="What `submit --env` takes.")
    user: Text = Field(description="Whose it is.")
    problem: Text = Field(default="", description="Why it cannot be used; empty: it can.")
    created: float | None = Field(default=None, description="When it was made, in seconds since 1970.")
    base: Text | None = Field(default=None, description="The cluster's environment it stands on; null: none.")
    python: Text | None = Field(default=None, description="The version of Python that was asked for; null: none.")
    requirements: tuple[Text, ...] = Field(default=(), description="Lines of its requirements.")


class EnvironmentList(Result):
    """What ``env list --output json`` prints."""

    environments: tuple[Environment, ...] = Field(description="The newest first, 100 at most.")

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        yield Line(counted(len(self.environments), "environments"))
        yield Table("", columns("environment", "user", "made, UTC", "requirements"), list(map(_row, self.environments)))


def _row(environment: Environment) -> list[str]:
    made = environment.created and f"{datetime.fromtimestamp(environment.created, UTC):%Y-%m-%d %H:%M}"
    return [environment.name, environment.user, made or "", environment.problem or ", ".join(environment.requirements)]


def create(deployment: Deployment, file: Path, *, alone: bool, python: str | None) -> int:
    """Let the head node make an environment of a requirements file, and return the exit code.

    Raises:
        UnusableError: The file cannot be read, or is too long.
        HeadNodeError: The head node cannot be reached.
    """
    try:
        given = file.read_bytes()
    except OSError as error:
        raise UnusableError(f"got {file}; allowed: a requirements file ({error})") from None
    if not given.strip():
        raise UnusableError(f"got {file}, which is empty; allowed: a requirements file")
    if len(given) > MOST_INPUT:
        raise UnusableError(f"got {file} with {len(given):,} bytes; allowed: up to {MOST_INPUT:,}")
    options = [*(["--alone"] if alone else []), *([f"--python={python}"] if python else [])]
    return _run(deployment, ["create", *options], given)


def remove(deployment: Deployment, environment: str) -> int:
    """Let the head node remove an environment, and return the exit code.

    Raises:
        HeadNodeError: The head node cannot be reached.
    """
    return _run(deployment, ["remove", "--", environment])


def list_environments(deployment: Deployment) -> EnvironmentList:
    """Return the environments on the cluster, which the head node reads as its own user.

    Raises:
        HeadNodeError: The head node cannot be asked, or its answer cannot be read.
    """
    directory = f"{deployment.settings.storage.file_system.mount_dir}/ultracluster/envs"
    words = program.of_file(_PROGRAM, f"--directory={directory}", "list", "--format=json")
    as_user = program.as_user(deployment.system_user, words)
    found = program.ask(HeadNode(deployment), as_user, "environments", tuple[Environment, ...])
    return EnvironmentList(environments=found)


def _run(deployment: Deployment, words: Sequence[str], given: bytes = b"") -> int:
    there = ["python3", f"{jobs_directory(deployment)}/environments.py", *words]
    login = login_command(deployment.system_user, there)
    sent = start(deployment, HeadNode(deployment), login, seconds=_SECONDS, given=given)
    return sent.follow_or_cancel(print_output)
