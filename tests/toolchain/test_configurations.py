"""Every configuration in config/ passes ParallelCluster's own schema and validators."""

from collections.abc import Callable
from typing import Any

import pytest

from scripts.options import deployments
from scripts.validation import Validation
from ultracluster.domain.validator_warnings import accepted

pytestmark = [
    pytest.mark.slow,
    pytest.mark.validation,
    pytest.mark.parametrize("environment", deployments()),
]


def test_parallelcluster_accepts_it(
    environment: str, deployment: Callable[[str], Any], report: Callable[[str], Validation]
) -> None:
    validation = report(environment)
    assert validation.problems == ()
    warned = {message.validator for message in validation.messages}
    accepting = accepted(deployment(environment).settings.cluster_spec)
    assert accepting.keys() <= warned, "no warning is accepted that does not occur"


def test_the_provider_stops_at_warnings_and_gets_nothing_that_breaks_creation_or_update(
    environment: str, deployment: Callable[[str], Any]
) -> None:
    properties = deployment(environment).request.properties
    assert properties["ValidationFailureLevel"] == "WARNING"
    both_accept = {"ClusterName", "ClusterConfiguration", "SuppressValidators", "ValidationFailureLevel", "Region"}
    assert properties.keys() <= both_accept | {"DeletionPolicy"}
