"""ParallelCluster itself refuses the images that the check refuses, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from emulator.aws import EmulatedAws
from emulator.templates import Resolver, publish_files
from scripts.preflight import images
from scripts.preflight.check import Status
from tests.scripts.preflight.cases import Case, nothing
from tests.scripts.preflight.cases_images import CASES, IMAGE, own_image
from tests.scripts.preflight.conftest import GoodAccount
from tests.scripts.preflight.deployed import assembly
from toolchain.cluster import ClusterRequest, cluster_request
from toolchain.parallelcluster import ParallelCluster

pytestmark = [pytest.mark.slow, pytest.mark.validation]

OWN = [case for case in CASES if case.check is images.custom_image and case.edit is own_image]
REAL = [case for case in OWN if case.patch is nothing]
"""The images that can be made, not only told of."""


@pytest.fixture(scope="module")
def parallelcluster(rehearsal_server: EmulatedAws) -> Iterator[ParallelCluster]:
    with ParallelCluster(rehearsal_server.environment) as process:
        yield process


def request_with_own_image(aws: EmulatedAws) -> ClusterRequest:
    publish_files(assembly("trn1-16"), aws)
    request = cluster_request(assembly("trn1-16"), Resolver(assembly("trn1-16"), aws))
    image = {**request.configuration["Image"], "CustomAmi": IMAGE}
    configuration = {**request.configuration, "Image": image}
    return replace(request, properties={**request.properties, "ClusterConfiguration": configuration})


@pytest.mark.parametrize("case", REAL, ids=lambda case: case.name)
def test_parallelcluster_agrees(
    case: Case, good_account: Callable[..., GoodAccount], parallelcluster: ParallelCluster
) -> None:
    account = good_account(case.environment, case.settings())
    request = request_with_own_image(account.aws)
    case.spoil(account)
    verdict = parallelcluster.create(request, strings=True)
    assert verdict.accepted is (case.status is not Status.FAIL), verdict
