"""Run LocalStack's and moto's tests that passed on AWS against the emulated one: `make test-recordings`.

They come from checkouts of those repositories, which CONTRIBUTING.md says how to get; nothing of theirs is here.
`recorder.py` runs with them, in .venv-recordings; `expected.toml` says what is expected of them, and why. Exit code 0:
all is as expected; 1: something is not; 2: a checkout is missing or of another commit.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from emulator.aws import EmulatedAws
from emulator.inventory import LISTINGS
from tests.recordings.outcomes import Expected, Result, summary, surprises

ROOT = Path(__file__).parents[2]
_PYTHON = ROOT / ".venv-recordings" / "bin" / "python"

_FOLDERS = {"lambda": "awslambda"}
"""moto's name of a service in its tests, where boto3 has another."""


def main() -> int:
    """Run what the arguments name, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="with the checkouts `localstack` and `moto`")
    parser.add_argument("tests", nargs="*", help="of these, such as localstack/tests/aws/...: only they are run")
    parser.add_argument("--results", type=Path, help="file for how each test ended, a line of JSON each")
    arguments = parser.parse_intermixed_args()
    expected = Expected.read()
    checkouts = {name: arguments.folder.resolve() / name for name in expected.commits}
    for name, checkout in checkouts.items():
        if problem := _problem(checkout, expected.commits[name]):
            print(f"error: {problem}", file=sys.stderr)
            return 2
    with tempfile.TemporaryDirectory() as scratch:
        file = (arguments.results or Path(scratch, "results")).resolve()
        file.unlink(missing_ok=True)
        file.touch()
        ended = [_run(name, checkouts[name], arguments.tests, file, Path(scratch)) for name in checkouts]
        results = [_result(line) for line in file.read_text(encoding="utf-8").splitlines()]
    found = surprises(results, expected, complete=not arguments.tests)
    found.extend(f"pytest ended with exit code {code}" for code in ended if code not in (0, 1, 5))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("\n".join(["", *summary(results, expected), "", *found]))
    print(f"{len(found)} surprises; {used.ru_utime + used.ru_stime:.0f} seconds of CPU time")
    return 1 if found else 0


def _problem(checkout: Path, commit: str) -> str:
    """Return what is wrong with a checkout; empty: nothing."""
    if not (checkout / "tests").is_dir():
        return f"{checkout} has no tests; CONTRIBUTING.md says how to get the checkouts"
    if not (checkout / ".git").exists():
        print(f"{checkout} does not tell its commit; expected is {commit}", file=sys.stderr)
        return ""
    git = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    at = git.stdout.strip()
    return "" if at == commit else f"{checkout} is at {at}; expected.toml is of {commit}"


def _run(name: str, checkout: Path, wanted: Sequence[str], results: Path, scratch: Path) -> int:
    """Run the tests of a checkout against an emulated AWS of its own, and return pytest's exit code."""
    tests = [each.removeprefix(f"{name}/") for each in wanted if each.startswith(f"{name}/")]
    if wanted and not tests:
        return 0
    command = [str(_PYTHON), "-m", "pytest", "-p", "recorder", "--recordings", name, "-c", os.devnull]
    command += ["--rootdir", str(checkout), "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    command += ["-p", "no:localstack.testing.pytest.validation_tracking"]  # it writes into the checkout
    command += ["--ignore-glob", "*/test_server.py"]  # of moto's own server
    command += ["-W", "ignore", "--quiet", "--no-header", "--tb=short", "--no-summary"]
    with EmulatedAws() as aws:
        environment = {
            **aws.environment,
            "AWS_DEFAULT_REGION": "us-east-1",
            "FILESYSTEM_ROOT": str(scratch),  # where LocalStack would keep its files
            "HOME": str(scratch),
            "MOTO_TEST_ALLOW_AWS_REQUEST": "true",
            "PYTHONDONTWRITEBYTECODE": "1",  # in a checkout of somebody
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(checkout)]),
            "RECORDINGS_RESULTS": str(results),
            "TEST_TARGET": "AWS_CLOUD",
        }
        command += tests or _tests(name, checkout)
        return subprocess.run(command, cwd=checkout, env=environment, check=False).returncode


def _tests(name: str, checkout: Path) -> list[str]:
    """Return where the tests of the services are that are emulated."""
    if name == "localstack":
        return ["tests/aws/services/cloudformation"]
    services = {service for service, _, _ in LISTINGS.values()}
    folders = sorted(f"tests/test_{_FOLDERS.get(service, service)}" for service in services)
    return [folder for folder in folders if (checkout / folder).is_dir()]


def _result(line: str) -> Result:
    written = json.loads(line)
    return Result(
        written["test"], written["outcome"], tuple(written["answers"]), tuple(written["outside"]), written["failure"]
    )


if __name__ == "__main__":
    sys.exit(main())
