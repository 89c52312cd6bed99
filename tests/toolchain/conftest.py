"""One emulated AWS and one ParallelCluster process for all tests here; each deployment is synthesized once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from config.settings import Settings, load
from emulator.aws import EmulatedAws
from scripts.check.validation import prepare
from scripts.core.options import CONFIG
from tests.stacks.deployments import deploy
from toolchain.assembly import Assembly
from toolchain.cluster import ClusterRequest
from toolchain.parallelcluster import ParallelCluster, Templates


@dataclass(frozen=True)
class Prepared:
    """Settings, their templates, and the cluster that comes out of them."""

    settings: Settings
    assembly: Assembly
    request: ClusterRequest


@pytest.fixture(scope="session")
def aws() -> Iterator[EmulatedAws]:
    with EmulatedAws() as server:
        yield server


@pytest.fixture(scope="session")
def parallelcluster(aws: EmulatedAws) -> Iterator[ParallelCluster]:
    with ParallelCluster(aws.environment) as process:
        yield process


@pytest.fixture(scope="session")
def deployment(aws: EmulatedAws, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Prepared]:
    """Return the deployment of a file: its name in config/, or its path, without .yaml."""

    @cache
    def prepared(environment: str) -> Prepared:
        settings = load(CONFIG / f"{environment}.yaml")
        assembly = Assembly(deploy(settings, tmp_path_factory.mktemp(settings.name)).directory)
        return Prepared(settings, assembly, prepare(aws, settings, assembly))

    return prepared


@pytest.fixture(scope="session")
def templates(deployment: Callable[[str], Prepared], parallelcluster: ParallelCluster) -> Callable[[str], Templates]:
    @cache
    def built(environment: str) -> Templates:
        request = deployment(environment).request
        return parallelcluster.build_templates(request.configuration, request.name)

    return built
