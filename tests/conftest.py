"""What all tests share: the option that rewrites golden files, and an emulated AWS."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from tests.shared import shared_server

if TYPE_CHECKING:
    from emulator.aws import EmulatedAws
    from tests.deployed import DeployedAccount


collect_ignore = ["training/programs", "training/ultracluster_job"] if find_spec("torch") is None else []
"""The tests of the training program run in .venv-training: `make test-training`, and a step of `make test-all`."""


os.environ.pop("COLUMNS", None)  # pytest-xdist sets it in its workers, and commands follow it


def pytest_configure() -> None:
    """Let Ctrl-C interrupt, also where a shell lets what it runs in the background ignore it: tests send it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import all tests without the collector of garbage, and let it leave alone what they brought in.

    There is no garbage in hundreds of MB of modules, and to look for it takes a third of the CPU time of collecting.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000)
        gc.enable()


def pytest_report_header() -> str:
    return f"tests/training/programs, ultracluster_job: {'left to .venv-training' if collect_ignore else 'here'}"


_LONGEST = (
    "tests/end_to_end/lives/test_dev.py::",
    "tests/end_to_end/lives/test_team.py::",
    "tests/end_to_end/slurm/test_disturbed_training.py::",
    "tests/end_to_end/test_shipped.py::",
    "tests/emulator/test_provider.py::",
    "tests/nodes/test_head_node.py::",
    "tests/config/test_fuzz.py::",
    "tests/end_to_end/lives/",
    "tests/end_to_end/test_",
    "tests/end_to_end/slurm/",
    "tests/scripts/test_s",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the modules that take longest: started last, they would run alone at the end.

    Two lives are enough to wait for the machines' root directory to be made; in `make test-all`, one.
    """
    items.sort(
        key=lambda item: next((at for at, of in enumerate(_LONGEST) if item.nodeid.startswith(of)), len(_LONGEST))
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="write the golden files")


@pytest.fixture(scope="session", autouse=True)
def without_template_validator() -> Iterator[None]:
    """Let no command that tests start spend half of its synth in the CDK's template validator.

    tests/stacks/test_validation.py runs it on every kind of deployment, in the process of jsii that was started with
    its import; tests/end_to_end runs it as users do, in test_plain_cdk.py and in scenarios of test_shipped.py.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDK_VALIDATION", "false")
        yield


@pytest.fixture(scope="session")
def boto3_data() -> Iterator[None]:
    """Let boto3's sessions share what they make of its data, which takes a short test longer than all else.

    That is the data as parsed, each service's rules for endpoints, the methods of its client, and the names of events.
    """
    from botocore.client import ClientCreator
    from botocore.endpoint_provider import EndpointProvider
    from botocore.hooks import EventAliaser
    from botocore.loaders import create_loader

    create_methods, alias = ClientCreator._create_methods, EventAliaser._alias_event_name
    names: dict[str, str] = {}
    methods: dict[str, dict[str, Any]] = {}
    providers: dict[tuple[int, int], EndpointProvider] = {}

    def methods_of(creator: ClientCreator, model: Any) -> dict[str, Any]:
        if model.service_name not in methods:
            methods[model.service_name] = create_methods(creator, model)
        return dict(methods[model.service_name])  # a session may add its own

    def provider_of(ruleset_data: Any, partition_data: Any, **more: Any) -> EndpointProvider:
        key = (id(ruleset_data), id(partition_data))  # of the loader's, which keeps them
        if key not in providers:
            providers[key] = EndpointProvider(ruleset_data, partition_data, **more)
        return providers[key]

    def name_of(aliaser: EventAliaser, name: str) -> str:
        if name not in names:
            names[name] = alias(aliaser, name)
        return names[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EventAliaser, "_alias_event_name", name_of)
        patch.setattr("botocore.session.create_loader", cache(create_loader))
        patch.setattr(ClientCreator, "_create_methods", methods_of)
        patch.setattr("botocore.regions.EndpointProvider", provider_of)
        yield


@pytest.fixture(scope="session")
def rehearsal_server(boto3_data: None) -> Iterator[EmulatedAws]:
    """One emulated AWS for all tests of a worker: a clone of one that all workers share, started at the first use."""
    with shared_server("emulated-aws") as (origin, _), origin.clone() as server:
        yield server


@pytest.fixture
def rehearsed_aws(rehearsal_server: EmulatedAws) -> EmulatedAws:
    """An emulated AWS with nothing in it yet."""
    rehearsal_server.reset()
    return rehearsal_server


@pytest.fixture(scope="session")
def deployed(boto3_data: None) -> Iterator[Callable[[str], DeployedAccount]]:
    """Return the deployed account of a configuration of config/, given by name; `clone` it to work with it."""
    from tests.deployed import deployed_account

    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(deployed_account(name)))


@pytest.fixture
def aws(rehearsed_aws: EmulatedAws) -> EmulatedAws:
    return rehearsed_aws


@pytest.fixture
def wait_for() -> Callable[[Callable[[], bool]], None]:
    """Return a function that waits until a condition holds, ten minutes at most: machines are busy."""

    def wait(holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 600
        while not holds():
            assert time.monotonic() < deadline, "the condition did not hold within ten minutes"
            time.sleep(0.1)

    return wait
