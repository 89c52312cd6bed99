"""What the commands that show a plan share: settings in, a plan or one error out."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from scripts import options
from scripts.errors import UnusableError
from scripts.plan import cdk

if TYPE_CHECKING:
    from scripts.plan.model import Plan


class PlanError(UnusableError):
    """There is no plan; the message says why, and what would help."""


def synthesize(environment: str, directory: Path) -> None:
    """Synthesize a configuration with the CDK command line, its own validation included.

    Raises:
        PlanError: It failed; the message is its output, or its exit code.
    """
    done = subprocess.run(
        cdk.command("--context", f"env={environment}", "synth", "--quiet", "--output", str(directory)),
        cwd=cdk.ROOT,
        env=cdk.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise PlanError(done.stdout.strip() or f"cdk synth ended with exit code {done.returncode}, without a word")


def make_plan(
    environment: str, assembly: Path | None = None, against: Path | None = None, *, accepted: bool = False
) -> Plan:
    """Return the plan of a configuration.

    Args:
        environment: The deployment, or the path of its settings without .yaml.
        assembly: What would be deployed; None: it is synthesized first.
        against: What it is compared with; None: what runs in the account of the credentials in use.
        accepted: Whether replacing and removing what holds data was accepted.

    Raises:
        PlanError: There is no plan; the message says why.
        botocore.exceptions.BotoCoreError: AWS does not answer, or there are no credentials.
        botocore.exceptions.ClientError: AWS refuses a call.
    """
    from scripts.plan.live import MANIFEST
    from scripts.plan.plan import plan_of_account, plan_of_directories
    from toolchain.parallelcluster import RunnerError
    from toolchain.values import UnsupportedError

    settings = options.settings_of(environment)
    for directory in (assembly, against):
        if directory is not None and not directory.is_dir():
            raise PlanError(f"got {directory}; allowed: a directory")
    if against is None and assembly is not None and not (assembly / MANIFEST).exists():
        raise PlanError(f"got {assembly}; allowed: a directory that cdk synth wrote, with a {MANIFEST}")
    try:
        with TemporaryDirectory() as temporary:
            if assembly is None:
                assembly = Path(temporary) / "cdk.out"
                synthesize(environment, assembly)
            if against is None:
                return plan_of_account(environment, settings, assembly, accepted=accepted)
            return plan_of_directories(environment, settings, against, assembly, accepted=accepted)
    except (FileNotFoundError, UnsupportedError) as error:
        raise PlanError(str(error)) from None
    except RunnerError as error:
        raise PlanError(f"ParallelCluster's code broke down:\n{error}") from None
