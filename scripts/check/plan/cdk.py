"""The CDK command line, for the account of the credentials in use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from scripts.check.plan.model import PlanError
from scripts.core import interrupts, options
from scripts.core.errors import ENDED, ExitCode
from scripts.core.text import echo

ROOT = Path(__file__).parents[3]


def command(*arguments: str) -> list[str]:
    """Return a command line of the CDK."""
    return ["cdk", "--no-notices", *arguments]


def environment() -> dict[str, str]:
    """Return the environment in which it is found, with Node: `make setup` puts both beside this interpreter.

    It does not ask for newer versions of itself: this project pins one.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "CDK_DISABLE_CLI_TELEMETRY": "1", "CDK_DISABLE_VERSION_CHECK": "1"}


def run(*arguments: str, output: IO[str] | None = None, directory: Path | None = None) -> int:
    """Run the CDK to its end, and return its exit code.

    Args:
        arguments: Those of the CDK.
        output: Where its standard output goes; None: to this program's.
        directory: Where it runs, and one without this app has nothing to synthesize; None: where the app is.
    """
    code = interrupts.run(command(*arguments), directory or ROOT, environment(), output)
    if code in ENDED:
        echo(
            "The CDK was terminated. What CloudFormation has started continues, and the same command follows it; of a "
            "change set that was not executed nothing comes.",
            err=True,
        )
    return code


def diff(assembly: Path) -> None:
    """Print the CDK's own diff of an assembly with the account.

    Raises:
        PlanError: It failed, or was interrupted.
    """
    code = interrupts.run(command("diff", "--app", str(assembly)), ROOT, environment())
    if code != ExitCode.DONE:
        error = PlanError(f"cdk diff ended with exit code {code}")
        error.exit_code = ExitCode(code) if code in ENDED else error.exit_code
        raise error


def synthesize(name: str, directory: Path) -> None:
    """Synthesize a deployment, with the CDK's own validation; the name may be the path of its settings without .yaml.

    Raises:
        PlanError: It failed; the message is its output, or its exit code.
    """
    with subprocess.Popen(
        command("--context", f"env={options.settings_file(name)}", "synth", "--quiet", "--output", str(directory)),
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            with interrupts.ending_together(process):
                printed, _ = process.communicate()
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise PlanError(printed.strip() or f"cdk synth ended with exit code {process.returncode}, without a word")
