"""Each deployment of config/ on this computer, by the command that shows it: deployed, used, destroyed.

What befalls them, and what else can be set, is in the scenarios of tests/end_to_end/lives.
"""

from __future__ import annotations

import pytest

from tests.end_to_end.lives.life import END, assert_in_order, rehearse
from tests.stacks.deployments import CONFIGURATIONS


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.validation
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_shipped_deployment(name: str) -> None:
    said = rehearse(name)
    healthy = rf"\$ ./ultracluster status {name}\n.*?  Healthy\.\n.*?  exit code 0"
    replaced = rf"EC2 terminates i-.*?\$ ./ultracluster jobs list {name}\n  1 running"
    assert_in_order((healthy, replaced, *END), said)
