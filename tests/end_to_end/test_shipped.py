"""Each deployment of config/ on this computer, by the command that shows it: deployed, used, destroyed.

Faults under them, and other settings, are in the scenarios of tests/end_to_end/lives.
"""

from __future__ import annotations

import pytest

from tests.end_to_end.lives.life import END, assert_in_order, rehearse
from tests.stacks.deployments import CONFIGURATIONS

pytestmark = [pytest.mark.slow, pytest.mark.system, pytest.mark.validation]


def live(name: str) -> None:
    """Let a deployment of config/ live."""
    said = rehearse(name)
    healthy = rf"\$ ./ultracluster status {name}\n.*?  Healthy\.\n.*?  exit code 0"
    replaced = rf"EC2 terminates i-.*?\$ ./ultracluster jobs list {name}\n  1 running"
    assert_in_order((healthy, replaced, *END), said)


class TestTheOneHalf:
    """Two classes, because workers share out classes."""

    @pytest.mark.parametrize("name", CONFIGURATIONS[::2])
    def test_a_shipped_deployment(self, name: str) -> None:
        live(name)


class TestTheOtherHalf:
    """The rest of them."""

    @pytest.mark.parametrize("name", CONFIGURATIONS[1::2])
    def test_a_shipped_deployment(self, name: str) -> None:
        live(name)
