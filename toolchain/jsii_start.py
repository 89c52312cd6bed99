"""Lets the CDK of ParallelCluster's package start in half the time."""

from __future__ import annotations

from functools import cache
from pathlib import Path

CHECKED = "loadAssemblyFromPath)(packageDir)"
"""A call in jsii's JavaScript; the function's second parameter, `validate`, is true unless told otherwise."""


UNPACKED = {"JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache" / "aws" / "jsii" / "package-cache")}
"""Environment of a process that gets another HOME: it would unpack the CDK again, for seconds.

https://github.com/aws/jsii/blob/main/packages/@jsii/kernel/src/tar-cache/default-cache-root.ts
"""


@cache
def trust_packages() -> None:
    """Let the JavaScript of jsii, if it is not running yet, load the CDK's packages without checking each.

    jsii 1.85, which ParallelCluster pins, checks each of 50 packages against a schema that it compiles each time:
    1.5 of the 3 seconds of CPU that a start takes. Later versions check only if told to, by JSII_VALIDATE_ASSEMBLIES
    (aws/jsii, packages/@jsii/runtime/bin/jsii-runtime.ts). The packages are those whose hashes
    constraints-pcluster.txt has.
    """
    from jsii._kernel.providers.process import _NodeProcess  # noqa: PLC0415 - most callers need no CDK

    copied = _NodeProcess._jsii_runtime

    def copied_without_checks(process: _NodeProcess) -> str:
        """Copy the JavaScript into a directory of the process, as jsii does, and return the file to start."""
        start: str = copied(process)
        program = Path(start).parents[1] / "lib/program.js"
        text = program.read_text(encoding="utf-8")
        program.write_text(text.replace(CHECKED, f"{CHECKED[:-1]}, false)"), encoding="utf-8")
        return start

    _NodeProcess._jsii_runtime = copied_without_checks  # type: ignore[assignment, method-assign]
