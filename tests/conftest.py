"""What all tests share: the option that rewrites golden files."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="write the golden templates anew")
