"""Every configuration in config/ passes ParallelCluster's own schema and validators."""

from collections.abc import Callable
from typing import Any

import pytest

from scripts.commands.validate import environments
from scripts.validation import Report
from ultracluster.domain.validator_warnings import accepted

pytestmark = [pytest.mark.validation, pytest.mark.parametrize("environment", environments())]


def test_parallelcluster_accepts_it(environment: str, report: Callable[[str], Report]) -> None:
    assert report(environment).faults == ()


def test_a_warning_stops_the_deployment(environment: str, deployment: Callable[[str], Any]) -> None:
    assert deployment(environment).request.properties["ValidationFailureLevel"] == "WARNING"


def test_no_warning_is_suppressed_that_does_not_occur(
    environment: str, deployment: Callable[[str], Any], report: Callable[[str], Report]
) -> None:
    warned = {message.validator for message in report(environment).messages}
    assert accepted(deployment(environment).settings.cluster_spec).keys() <= warned


def test_the_provider_gets_no_property_that_breaks_creation_or_update(
    environment: str, deployment: Callable[[str], Any]
) -> None:
    both_accept = {"ClusterName", "ClusterConfiguration", "SuppressValidators", "ValidationFailureLevel", "Region"}
    assert deployment(environment).request.properties.keys() <= both_accept | {"DeletionPolicy"}
