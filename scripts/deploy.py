"""Deploy a configuration: synthesize it, show what would change, ask, and let the CDK deploy exactly that.

Exit code: the CDK's own once it was started; before that 1: something stands against the deployment, or the answer was
no; 2: the settings or arguments cannot be used, AWS did not answer, or nobody can be asked.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence

from scripts.change_plan import cdk
from scripts.change_plan.command import INTERRUPTED, UNUSABLE, PlanError, make_plan, settings_of, show, synthesize

ASSEMBLY = cdk.ROOT / "cdk.out"
BUILD = cdk.ROOT / "build"


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    found = argparse.ArgumentParser(prog="python -m scripts.deploy", description=__doc__)
    found.add_argument("environment", metavar="ENV", help="file name in config/ without .yaml")
    found.add_argument("--yes", action="store_true", help="do not ask: for pipelines")
    found.add_argument(
        "--accept-replacement", action="store_true", help="what holds data or stands under everything may be replaced"
    )
    found.usage = f"{found.prog} ENV [--yes] [--accept-replacement] [-- further arguments of cdk deploy]"
    return found


def deploy(environment: str, arguments: Sequence[str]) -> int:
    """Let the CDK deploy the assembly, and return its exit code."""
    BUILD.mkdir(exist_ok=True)
    outputs = BUILD / f"outputs-{environment}.json"
    command = cdk.command("deploy", "--all", "--app", str(ASSEMBLY), "--require-approval", "never")
    with subprocess.Popen(
        [*command, "--outputs-file", str(outputs), *arguments], cwd=cdk.ROOT, env=cdk.environment()
    ) as process:
        # A terminal sends Ctrl-C to both. The CDK decides what becomes of it; ending first would leave it alone.
        interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
        end = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        try:
            code = process.wait()
        finally:
            signal.signal(signal.SIGINT, interrupt)
            signal.signal(signal.SIGTERM, end)
    if code < 0:
        print(
            "The CDK was ended. CloudFormation goes on with what it has begun; deploy again to follow.", file=sys.stderr
        )
        return 128 - code
    return code


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the arguments before and after the first `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:end], arguments[end + 1 :]


def main() -> int:
    """Deploy what the command line names, and return the exit code."""
    own, further = _split(sys.argv[1:])
    given = parser().parse_args(own)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: clean up
    try:
        settings_of(given.environment)
        if not given.yes and not sys.stdin.isatty():
            raise PlanError("got no terminal to ask at; allowed: --yes")
        shutil.rmtree(ASSEMBLY, ignore_errors=True)
        synthesize(given.environment, ASSEMBLY)
        plan = make_plan(given.environment, ASSEMBLY, accepted=given.accept_replacement)
        show(plan)
        if not plan.ok:
            return 1
        if not plan.empty and not given.yes and input("\nDeploy? [y/N] ").strip().lower() not in ("y", "yes"):
            print("Nothing was changed.")
            return 1
    except PlanError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    except (EOFError, KeyboardInterrupt):
        print("\nNothing was changed.", file=sys.stderr)
        return INTERRUPTED
    return deploy(given.environment, further)


if __name__ == "__main__":
    sys.exit(main())
