"""Print the versions of this project, and of what it pins and runs.

Exit code 0.
"""

from __future__ import annotations

import json
import platform
import re

import click

from scripts import options
from scripts.errors import ExitCode


def versions() -> dict[str, str]:
    """Return versions by what they are of, from the files that pin them."""
    project = (options.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pins = "".join(
        (options.ROOT / name).read_text(encoding="utf-8") for name in ("requirements.txt", "requirements-pcluster.txt")
    )
    node = json.loads((options.ROOT / "package.json").read_text(encoding="utf-8"))
    packages = dict(re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==(\S+)$", pins, re.MULTILINE))
    return {
        "ultracluster": re.findall(r'^version = "(.*)"$', project, re.MULTILINE)[0],
        "aws-cdk (command line)": next(
            version for group in ("dependencies", "devDependencies") for name, version in node.get(group, {}).items()
            if name == "aws-cdk"
        ),
        **{name: packages[name] for name in ("aws-cdk-lib", "aws-parallelcluster", "boto3")},
        "Python": platform.python_version(),
    }  # fmt: skip


@options.command(__doc__, ("version", "for a report of a problem"))
@click.option("--output", "-o", type=click.Choice(("text", "json")), default="text", help="Format of the result.")
def command(*, output: str) -> int:
    """Print the versions, and return the exit code."""
    shown = versions()
    if output == "json":
        print(json.dumps(shown, indent=2))
    else:
        width = max(map(len, shown))
        print(*(f"{name:{width}}  {version}" for name, version in shown.items()), sep="\n")
    return ExitCode.DONE
