import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def pcluster_constants() -> Callable[[str], dict[str, Any]]:
    """Read the plain constants of a module of ParallelCluster, which cannot be imported beside our CDK."""

    @cache
    def constants(module: str) -> dict[str, Any]:
        (path,) = PROJECT.glob(f".venv-pcluster/lib/python*/site-packages/pcluster/{module}")
        found = {}
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.Assign):
                try:
                    value = ast.literal_eval(statement.value)
                except ValueError:
                    continue
                found.update({target.id: value for target in statement.targets if isinstance(target, ast.Name)})
        return found

    return constants
