"""Programs that go to the head node: each is one text of the modules that it consists of."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from scripts.account.remote import program, programs

PROGRAMS = [
    path.stem
    for path in sorted(Path(programs.__path__[0]).glob("*.py"))
    if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_all_that_it_uses_and_no_name_twice(name: str) -> None:
    """What two modules call the same would be that of the last one, where it goes to, and nowhere else."""
    assert {"jobs", "state"} <= {*PROGRAMS}
    [*start, text] = program.words(name)
    assert start == ["python3", "-I", "-c"]
    body = ast.parse(text).body
    defined = [each.name for each in body if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    defined += [ast.unparse(each.targets[0]) for each in body if isinstance(each, ast.Assign)]
    assert [each for each, count in Counter(defined).items() if count > 1] == []
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F", "--ignore=F811", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
