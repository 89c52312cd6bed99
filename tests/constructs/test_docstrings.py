"""What editors and ``help()`` show of the library: fields with their facts, and nothing that its users do not have."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ultracluster
from scripts.upkeep.library_docstrings import written
from ultracluster.domain.spec import Setting, Spec

ROOT = Path(ultracluster.__file__).parent
NOT_THEIRS = re.compile(r"\./ultracluster|\bdocs/|\bYAML\b|settings file|`[a-z_.]+: [^`]+`")
"""Commands, pages and spellings of the project around the library."""
OF_THE_COMMAND_LINE = ("domain/validators.py", "domain/validator_warnings.py")
"""What commands say of warnings; the library says none of it."""
OPTIONS = [
    each
    for name in ultracluster.__all__
    if inspect.isclass(each := getattr(ultracluster, name)) and issubclass(each, Spec)
]


def test_docstrings_have_what_models_say() -> None:
    changed = [path.name for path, text in written().items() if path.read_text(encoding="utf-8") != text]
    assert changed == [], "make snapshots"


@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: each.__name__)
def test_help_shows_each_field_with_its_facts(options: type[Spec]) -> None:
    docstring = inspect.getdoc(options) or ""
    assert docstring.splitlines()[-1] in pydoc.plain(pydoc.render_doc(options))
    for name, field in options.model_fields.items():
        entry = re.search(rf"^    {name}: .*(\n {{8}}.*)*", docstring, re.MULTILINE)
        assert entry is not None, name
        if any(isinstance(each, Setting) for each in field.metadata):
            said = " ".join(entry[0].split())
            assert "change: " in said, name
            assert ("required" if field.is_required() else "default ") in said, name


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module, its docstrings among them, but what rules warn of: commands do, no construct."""
    nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        if not (isinstance(node, ast.FunctionDef) and node.name.endswith("warnings")):
            nodes += ast.iter_child_nodes(node)


def test_nothing_names_a_command_or_a_spelling_that_users_do_not_have() -> None:
    paths = (*ROOT.glob("*.py"), *ROOT.glob("domain/*.py"))
    named = [
        f"{path.relative_to(ROOT)}:{line}: {found[0]}"
        for path in paths
        if str(path.relative_to(ROOT)) not in OF_THE_COMMAND_LINE
        for line, text in texts(path)
        if (found := NOT_THEIRS.search(text))
    ]
    assert named == []


def test_docstrings_of_fields_have_values_of_python() -> None:
    spellings = [
        f"{model.__name__}.{name}: {word[0]}"
        for model in {base for each in OPTIONS for base in each.__mro__ if issubclass(base, Spec)}
        for name, text in model.documented().items()
        if (word := re.search(r"\b(null|true:|false:)", text))
    ]
    assert spellings == []
