"""What a warning of each class does to a cluster, as its template asks the provider."""

from collections.abc import Iterator
from typing import Any

import pytest

from config.settings import load
from emulator.aws import EmulatedAws
from scripts.commands.validate import CONFIG
from tests.emulator.clusters import Clusters
from ultracluster.domain.cluster import AcceptedWarning
from ultracluster.domain.validator_warnings import suppressed

pytestmark = [pytest.mark.validation, pytest.mark.slow]

BROKEN, NOT_ACCEPTED = "DuplicateMountDirValidator", "PlacementGroupCapacityReservationValidator"
ACCEPTED, TRANSIENT = "CustomAmiTagValidator", "AsyncTimedUrlValidator"


@pytest.fixture(scope="module")
def clusters(rehearsal_server: EmulatedAws, tmp_path_factory: pytest.TempPathFactory) -> Clusters:
    return Clusters(rehearsal_server, tmp_path_factory.mktemp("cdk.out"))


@pytest.fixture(scope="module")
def asked() -> dict[str, Any]:
    """Return the properties of the cluster resource that are about warnings."""
    spec = load(CONFIG / "trn1-16.yaml").cluster_spec
    accepted = [AcceptedWarning(validator=ACCEPTED, reason="a copied image")]
    spec = spec.model_copy(update={"accepted_warnings": accepted})
    return {"SuppressValidators": suppressed(spec), "ValidationFailureLevel": "WARNING"}


@pytest.fixture(autouse=True)
def without_faults(clusters: Clusters) -> Iterator[None]:
    yield
    clusters.aws.clear_faults()


@pytest.mark.parametrize("validator", [BROKEN, NOT_ACCEPTED])
def test_creation_stops(validator: str, clusters: Clusters, asked: dict[str, Any]) -> None:
    clusters.aws.inject("warning", validator)
    clusters.create(**asked)
    assert clusters.stacks.status("parent") == "ROLLBACK_COMPLETE"
    assert f'"type": "{validator}"' in clusters.failure("Cluster", "CREATE_FAILED")
    clusters.delete()


def test_creation_and_updates_pass_or_stop(clusters: Clusters, asked: dict[str, Any]) -> None:
    clusters.aws.inject("warning", TRANSIENT)
    clusters.create(**asked)
    assert clusters.stacks.status("parent") == "CREATE_COMPLETE"
    for nodes, validator in enumerate((TRANSIENT, ACCEPTED), 17):
        clusters.aws.inject("warning", validator)
        clusters.update(clusters.with_max_count(nodes), **asked)
        assert clusters.stacks.status("parent") == "UPDATE_COMPLETE", validator
    for validator in (BROKEN, NOT_ACCEPTED):
        clusters.aws.inject("warning", validator)
        clusters.update(clusters.with_max_count(20), **asked)
        assert f'"type": "{validator}"' in clusters.failure("Cluster", "UPDATE_FAILED")
        # What is wrong with the cluster as it was, too, stops the way back until it is fixed.
        assert clusters.stacks.status("parent") == "UPDATE_ROLLBACK_FAILED"
        clusters.aws.clear_faults()
        clusters.stacks.client.continue_update_rollback(StackName="parent")
        clusters.wait()
        assert clusters.stacks.status("parent") == "UPDATE_ROLLBACK_COMPLETE"
    assert clusters.stacks.status(clusters.name) == "UPDATE_COMPLETE", "nothing was asked of the cluster's own stack"
    clusters.delete()
    assert clusters.left_over() == set()
