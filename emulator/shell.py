"""The way into an emulated AWS from another shell."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from toolchain.parallelcluster import PYTHON


def exports(environment: Mapping[str, str], region: str) -> list[str]:
    """Return what to type there, so that `aws`, `cdk`, `pcluster` and this project's scripts talk to it.

    Args:
        environment: The variables that lead to it: `EmulatedAws.settings`.
        region: The Region of the deployment.
    """
    regions = {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}  # boto3 and version 1 of `aws` know the second
    path = f"{Path(sys.executable).parent}:{PYTHON.parent}:$PATH"
    return [f"export {name}={value}" for name, value in {**environment, **regions, "PATH": path}.items()]


def wait_for_ctrl_c() -> NoReturn:
    """Wait until the person has had enough, and raise KeyboardInterrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs in the background ignore it
    while True:
        signal.pause()
