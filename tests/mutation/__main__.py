"""Break the rules of the code one by one, each in a copy of the project, and see that the tests notice.

Exit code 0: every mutation makes its tests fail; 1: one survives; 2: there is something wrong with table or tests.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutation.table import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]
LINKED = (".venv-pcluster",)
LEFT_OUT = (".*", "__pycache__", "build", "cdk.out", "docs", "node_modules")

PASSED, FAILED = 0, 1
"""Exit codes of pytest."""

PASSES = "passes"


class MutationError(RuntimeError):
    """A mutation proves nothing; the message says why."""


def copy(directory: Path) -> None:
    """Copy the project, without what Git ignores."""
    shutil.copytree(ROOT, directory, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for name in LINKED:
        (directory / name).symlink_to(ROOT / name)


def run_tests(directory: Path, tests: Iterable[str]) -> tuple[int, str]:
    """Run tests of a copy against the code of the copy, and return pytest's exit code and what it wrote."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rfE", *sorted(set(tests))],
        cwd=directory,
        # The editable install leads to the project itself; what stands here goes first.
        env={**os.environ, "PYTHONPATH": str(directory / "constructs"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def outcome(test: str, output: str) -> str:
    """Return what pytest's summary says of a test: `fails`, `set-up fails` (a rule of CDK or cdk-nag), or `passes`.

    Of a test with parameters the worst case counts.
    """
    for word, meaning in (("FAILED", "fails"), ("ERROR", "set-up fails")):
        starts = (f"{word} {test} ", f"{word} {test}[")
        if any(f"{line} ".startswith(starts) for line in output.splitlines()):
            return meaning
    return PASSES


def try_out(mutation: Mutation, directory: Path) -> dict[str, str]:
    """Make a mutation in a copy of the project, and return the outcome of its tests.

    Raises:
        MutationError: The text to replace is not there once, or the tests do not run.
    """
    copy(directory)
    file = directory / mutation.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        raise MutationError(f"{mutation.name}: stands {text.count(mutation.old)} times in {mutation.file}, not once")
    file.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    code, output = run_tests(directory, mutation.tests)
    if code not in (PASSED, FAILED):
        raise MutationError(f"{mutation.name}: the tests do not run\n{output}")
    return {test: outcome(test, output) for test in mutation.tests}


def check_tests(mutations: Sequence[Mutation], directory: Path) -> None:
    """Run all tests of the table in an untouched copy.

    Raises:
        MutationError: They do not pass.
    """
    copy(directory)
    code, output = run_tests(directory, (test for mutation in mutations for test in mutation.tests))
    if code != PASSED:
        raise MutationError(f"without any mutation the tests do not pass\n{output}")


def report(mutation: Mutation, outcomes: Mapping[str, str]) -> str:
    """Return the lines of one mutation."""
    verdict = "SURVIVES" if PASSES in outcomes.values() else "noticed"
    lines = [
        f"{verdict:8} {mutation.name}: {mutation.rule}",
        *(f"  {each:12} {test}" for test, each in outcomes.items()),
    ]
    return "\n".join(lines)


def main() -> int:
    """Make the mutations, print what came of them, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("name", nargs="*", help="mutations of tests/mutation/table.py (default: all)")
    names = parser.parse_args().name
    known = [mutation.name for mutation in MUTATIONS]
    if unknown := set(names) - set(known):
        parser.error(f"no such mutation: {', '.join(sorted(unknown))}; there is {', '.join(known)}")
    chosen = [mutation for mutation in MUTATIONS if not names or mutation.name in names]
    survivors = []
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(max_workers=os.cpu_count()) as workers:
        directory = Path(name)
        untouched = workers.submit(check_tests, chosen, directory / "untouched")
        tries = [workers.submit(try_out, mutation, directory / mutation.name) for mutation in chosen]
        try:
            untouched.result()
            for mutation, outcomes in zip(chosen, (each.result() for each in tries), strict=True):
                print(report(mutation, outcomes), flush=True)
                if PASSES in outcomes.values():
                    survivors.append(mutation.name)
        except MutationError as error:
            workers.shutdown(cancel_futures=True)
            print(error, file=sys.stderr)
            return 2
    print(f"{len(chosen)} mutations, survivors: {', '.join(survivors) or 'none'}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
