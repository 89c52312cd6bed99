"""Where things are, and who imports whom, as far as import-linter does not tell."""

import ast
import sys
from importlib.util import find_spec
from pathlib import Path

PROJECT = Path(__file__).parents[1]
DOMAIN = sorted((PROJECT / "constructs" / "ultracluster" / "domain").glob("*.py"))


def test_constructs_is_a_source_root_and_no_package() -> None:
    """A package of that name would hide the one of PyPI, which aws_cdk imports."""
    assert not (PROJECT / "constructs" / "__init__.py").exists()
    spec = find_spec("constructs")
    assert spec is not None
    assert spec.origin is not None
    assert PROJECT / "constructs" not in Path(spec.origin).parents
    assert "site-packages" in spec.origin


def test_the_library_is_the_one_of_this_project() -> None:
    spec = find_spec("ultracluster")
    assert spec is not None
    assert spec.origin == str(PROJECT / "constructs" / "ultracluster" / "__init__.py")


def test_the_domain_is_plain_python() -> None:
    assert len(DOMAIN) > 1
    for path in DOMAIN:
        imported = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, path
                imported.add(node.module or "")
        foreign = {name for name in imported if name.partition(".")[0] not in sys.stdlib_module_names}
        assert {name for name in foreign if not name.startswith("ultracluster.domain")} == set(), path
