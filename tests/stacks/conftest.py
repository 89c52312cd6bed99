"""Each deployment is synthesized once for all tests here."""

from collections.abc import Callable
from functools import cache

import pytest

from config.settings import load
from tests.configurations import SHIPPED
from tests.stacks.deployments import CONFIG, Deployment, deploy


@pytest.fixture(scope="session")
def synth(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Deployment]:
    """Return the deployment of a file in config/."""

    @cache
    def synthesized(environment: str) -> Deployment:
        return deploy(load(CONFIG / f"{environment}.yaml"), tmp_path_factory.mktemp(environment))

    return synthesized


@pytest.fixture(params=SHIPPED)
def deployment(request: pytest.FixtureRequest, synth: Callable[[str], Deployment]) -> Deployment:
    """Return each deployment that the project ships in turn."""
    return synth(request.param)
