"""Where the construct library is; import-linter checks who imports whom."""

from importlib.util import find_spec
from pathlib import Path

PROJECT = Path(__file__).parents[1]


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
