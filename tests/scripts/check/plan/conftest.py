"""ParallelCluster's code, golden templates, and a deployed cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from scripts.check.plan import change_sets, plan
from scripts.check.plan.comparison import Comparison
from tests.command_line import ultracluster
from tests.deployed import DeployedAccount
from tests.scripts.check.plan.account import ENVIRONMENT, DeployedCluster
from toolchain.assembly import EXAMPLE_ACCOUNT, Stack
from toolchain.cluster import CLUSTER_TYPE
from toolchain.golden import read_golden
from toolchain.parallelcluster import Configuration, ParallelCluster

SNAPSHOTS = Path(__file__).parents[3] / "snapshots"
REGION = "us-west-2"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def parallelcluster() -> Iterator[ParallelCluster]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with ParallelCluster({**environment, "AWS_EC2_METADATA_DISABLED": "true"}) as process:
        yield process


def golden(environment: str = "trn1-16") -> dict[str, Stack]:
    return {
        name: Stack(name, REGION, EXAMPLE_ACCOUNT, template, {})
        for name, template in read_golden(SNAPSHOTS / environment).items()
    }


@pytest.fixture(scope="session")
def configuration() -> Configuration:
    """The ParallelCluster configuration of trn1-16, with names for ids."""
    stacks = golden()
    [properties] = [
        resource["Properties"]
        for resource in stacks["trn1-16-cluster"].resources.values()
        if resource["Type"] == CLUSTER_TYPE
    ]
    resolved: Configuration = Comparison(stacks, stacks).before("trn1-16-cluster", properties["ClusterConfiguration"])
    return resolved


def find(stacks: dict[str, Stack], part: str, resource_type: str) -> tuple[str, dict[str, Any]]:
    resources = stacks[f"trn1-16-{part}"].resources
    return next((name, resource) for name, resource in resources.items() if resource["Type"] == resource_type)


@pytest.fixture(scope="module")
def deployed_cluster(
    deployed: Callable[[str], DeployedAccount], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DeployedCluster]:
    """One clone of the deployment for the tests of a module."""
    cluster = DeployedCluster(deployed(ENVIRONMENT), tmp_path_factory.mktemp("assemblies"))
    yield cluster
    cluster.close()


@pytest.fixture
def cluster(deployed_cluster: DeployedCluster, monkeypatch: pytest.MonkeyPatch) -> DeployedCluster:
    """The deployment, with this process's credentials for its account."""
    deployed_cluster.act_as_owner(monkeypatch)
    return deployed_cluster


@pytest.fixture
def without_change_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Any, stacks: list[Stack], __: str) -> dict[str, change_sets.ChangeSetError]:
        return {stack.name: change_sets.ChangeSetError("not authorized") for stack in stacks}

    monkeypatch.setattr(change_sets, "describe", refuse)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def called(*words: str) -> tuple[int, str, str]:
        capfd.readouterr()
        return ultracluster(*words), *capfd.readouterr()

    return called


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, parallelcluster: ParallelCluster) -> None:
    """Have no credentials and no endpoint, and ParallelCluster's code loaded once for all tests."""
    monkeypatch.setattr(plan, "ParallelCluster", lambda _: nullcontext(parallelcluster))
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
