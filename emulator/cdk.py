"""The real CDK command line, pointed at the emulated AWS."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from emulator.aws import ACCOUNT, EmulatedAws
from toolchain.jsii_start import UNPACKED

ROOT = Path(__file__).parents[1]


class CommandLine:
    """Runs `cdk` in the project's directory, without questions, telemetry or notices.

    The CDK caches whose account an access key is, in HOME: it gets one of its own, which ends with this object.
    """

    def __init__(self, aws: EmulatedAws) -> None:
        self._home = TemporaryDirectory()
        # Node is looked up on PATH; `make setup` puts it and `cdk` beside this interpreter.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = {
            **UNPACKED,
            **aws.environment,
            "HOME": self._home.name,
            "PATH": path,
            "CDK_DISABLE_CLI_TELEMETRY": "1",
            "CDK_DEFAULT_ACCOUNT": ACCOUNT,
        }

    def run(self, *arguments: str, report: Callable[[str], object] = lambda line: None, directory: Path = ROOT) -> int:
        """Run one command, hand each line of its output to `report`, and return its exit code."""
        with self._start(*arguments, directory=directory) as process:
            assert process.stdout is not None  # noqa: S101 - stdout=PIPE
            for line in process.stdout:
                report(line.rstrip())
        return process.returncode

    def bootstrap(
        self, region: str, report: Callable[[str], object] = lambda line: None, arguments: Sequence[str] = ()
    ) -> int:
        """Prepare the account and a Region, outside the app's directory: there is nothing to synthesize for it."""
        with TemporaryDirectory() as elsewhere:
            target = f"aws://{ACCOUNT}/{region}"
            return self.run("bootstrap", target, *arguments, report=report, directory=Path(elsewhere))

    def run_until(self, condition: Callable[[], bool], *arguments: str) -> int:
        """Kill one command once a condition holds, looked at ten times a second, and return its exit code."""
        with self._start(*arguments, output=subprocess.DEVNULL) as process:
            while process.poll() is None:
                if condition():
                    process.kill()
                    break
                time.sleep(0.1)
        return process.returncode

    def close(self) -> None:
        """Remove the directory that served as HOME."""
        self._home.cleanup()

    def _start(self, *arguments: str, directory: Path = ROOT, output: int = subprocess.PIPE) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["cdk", "--no-notices", "--no-version-reporting", "--progress", "events", *arguments],
            cwd=directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
