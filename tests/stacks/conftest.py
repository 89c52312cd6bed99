"""Each deployment of config/ is synthesized once for all tests here."""

from collections.abc import Callable
from functools import cache

import pytest

from config.settings import load
from tests.stacks.deployments import CONFIG, CONFIGURATIONS, Deployment, deploy


@pytest.fixture(scope="session")
def synth(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Deployment]:
    """Return the deployment of a file in config/."""

    @cache
    def synthesized(environment: str) -> Deployment:
        return deploy(load(CONFIG / f"{environment}.yaml"), tmp_path_factory.mktemp(environment))

    return synthesized


@pytest.fixture(params=CONFIGURATIONS)
def deployment(request: pytest.FixtureRequest, synth: Callable[[str], Deployment]) -> Deployment:
    """Return each deployment of config/ in turn."""
    return synth(request.param)
