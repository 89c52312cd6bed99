"""Each deployment of config/ on this computer, by the command that shows it: deployed, used, destroyed.

In `make test-all` the job of each loses a node to a fault, but for the one with the most parts, which is changed under
its job; in `make test-scenarios` all are. Further faults and settings are in the scenarios of tests/end_to_end/lives.
"""

from __future__ import annotations

import pytest

from emulator.faults import FAULTS
from tests.end_to_end.lives.life import END, assert_in_order, rehearse
from tests.end_to_end.lives.test_reserved import SEEN
from tests.stacks.deployments import CONFIGURATIONS

pytestmark = [pytest.mark.slow, pytest.mark.system, pytest.mark.validation]

CHANGED = "team"
"""It has people, homes, accounting and a budget, which an update has to keep."""
FAULT = "lustre"
"""What strikes a node, of whatever type: the health check before a job finds it."""
SHORT = [name for name in CONFIGURATIONS if name != CHANGED]


def strike(name: str) -> None:
    """Let a fault strike a node of a deployment under a job, which runs again on another."""
    said = rehearse(name, faults=[FAULT])
    running = rf"\$ ./ultracluster jobs list {name}\n  1 running.*? RUNNING +2 "
    assert_in_order((healthy(name), f"While {FAULTS[FAULT].what}", SEEN[FAULT], running, *END), said)


def change(name: str) -> None:
    """Change a deployment in place under a job that loses a node; the CDK validates its templates, as for users."""
    said = rehearse(name, variables={"CDK_VALIDATION": "true"})
    drained, refused = r" drains nodes\n.*?exit code 0", r"HeadNode.InstanceType .*? refused.*?exit code 1"
    running = rf"\$ ./ultracluster jobs list {name}\n  1 running.*? RUNNING +2 .*? a root volume of "
    assert_in_order((healthy(name), drained, r"EC2 terminates i-", refused, running, *END), said)


def healthy(name: str) -> str:
    """Return how `status` ends for a deployment without problems, as a pattern."""
    return rf"\$ ./ultracluster status {name}\n.*?  Healthy\.\n.*?  exit code 0"


class TestTheOneHalf:
    """Several classes, because workers share out classes."""

    @pytest.mark.parametrize("name", SHORT[::2])
    def test_a_shipped_deployment_loses_a_node(self, name: str) -> None:
        strike(name)


class TestTheOtherHalf:
    """The rest of them."""

    def test_a_shipped_deployment_is_changed(self) -> None:
        change(CHANGED)

    @pytest.mark.parametrize("name", SHORT[1::2])
    def test_a_shipped_deployment_loses_a_node(self, name: str) -> None:
        strike(name)


@pytest.mark.scenario
class TestTheirChanges:
    """Changes of those that `make test-all` does not change."""

    @pytest.mark.parametrize("name", SHORT)
    def test_a_shipped_deployment_is_changed(self, name: str) -> None:
        change(name)
