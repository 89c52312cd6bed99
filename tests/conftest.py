"""What all tests share: the option that rewrites golden files, and an emulated AWS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rehearsal.aws import EmulatedAws


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="write the golden templates anew")


@pytest.fixture(scope="session")
def rehearsal_server() -> Iterator[EmulatedAws]:
    """One server for the whole run, started when the first test asks for it."""
    from rehearsal.aws import EmulatedAws  # boto3 takes its time, and most tests need none

    with EmulatedAws() as server:
        yield server


@pytest.fixture
def rehearsed_aws(rehearsal_server: EmulatedAws) -> EmulatedAws:
    """An emulated AWS with nothing in it yet."""
    rehearsal_server.reset()
    return rehearsal_server
