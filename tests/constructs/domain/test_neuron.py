"""The table of Neuron releases: complete, exact, and with what the settings choose by default."""

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from config.settings import Settings
from scripts.change.image.configuration import facts
from tests.constructs.domain.specs import NODES, changed, with_queue
from tests.stacks.deployments import edited
from ultracluster.domain import node_arguments
from ultracluster.domain.cluster import ClusterSpec
from ultracluster.domain.instance_types import TRAINIUM_TYPES
from ultracluster.domain.neuron import DEFAULT_SDK, RELEASES, SYSTEMS, blocker

DRIVER = "2.28.0.0"


def with_driver(sdk: str, driver: str | None) -> Settings:
    return edited("trn1-16", lambda raw: raw["cluster"].update(neuron_sdk=sdk, neuron_driver=driver))


def test_versions_are_exact() -> None:
    for sdk, release in RELEASES.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", sdk)
        versions = asdict(release)
        del versions["pytorch"], versions["kernels"], versions["broken_kernel"]
        for package, version in versions.items():
            assert re.fullmatch(r"2\.\d+\.\d+\.0", version), (sdk, package)


def test_each_system_runs_a_pytorch_of_each_release() -> None:
    for os in SYSTEMS:
        for sdk, release in RELEASES.items():
            assert None in [blocker(pytorch, os) for pytorch in release.pytorch.values()], (os, sdk)


def test_the_documentation_has_the_same_kernels() -> None:
    text = (Path(__file__).parents[3] / "docs/explanation/nodes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (2\.\d+\.\d) \| (6.*) \|$", text, re.MULTILINE)
    assert f"| release | {' | '.join(SYSTEMS)} |" in text
    assert dict(rows) == {
        sdk: " | ".join(", ".join(release.kernels[os]) for os in SYSTEMS) for sdk, release in RELEASES.items()
    }


@pytest.mark.parametrize("sdk", RELEASES)
def test_a_newer_driver_stands_beside_the_rest_of_a_release_with_a_warning(sdk: str) -> None:
    """On nodes and in images; what breaks the release's driver is not said of another one."""
    own, other = with_driver(sdk, None), with_driver(sdk, DRIVER)
    assert not any("neuron_driver" in warning for warning in own.warnings)
    [warning] = [warning for warning in other.warnings if "neuron_driver" in warning]
    assert f"cluster.neuron_driver: got '{DRIVER}'; allowed: null" in warning
    assert RELEASES[sdk].runtime in warning
    queue = own.cluster.queues[0]
    for arguments in (facts, lambda each: node_arguments.compute_node(each.cluster_spec, queue, "/fsx", metrics=False)):
        before, after = arguments(own), arguments(other)
        assert (before["driver"], after["driver"]) == (RELEASES[sdk].driver, DRIVER)
        assert {**before, "driver": DRIVER, "broken_kernel": ""} == {**after, "broken_kernel": ""}
        assert ("broken_kernel" in before, "broken_kernel" in after) == (RELEASES[sdk].broken_kernel is not None, False)


@pytest.mark.parametrize("driver", ["2.26.9.0", "2.25.0.0", "2.29.0.0", "2.31.7.0", RELEASES["2.28.1"].driver])
def test_a_driver_that_is_older_or_does_not_take_the_runtime_is_refused(driver: str) -> None:
    with pytest.raises(ValueError, match=rf"got '{driver}'; allowed: newer than 2\.26\.10\.0 and older than 2\.29"):
        with_driver("2.28.1", driver)


@pytest.mark.parametrize("driver", ["2.28", "2.28.0.*", "latest", "2.28.0.0 --allow-unauthenticated", "3.1.0.0"])
def test_a_driver_is_one_exact_version(driver: str) -> None:
    with pytest.raises(ValueError, match=r"cluster\.neuron_driver"):
        with_driver("2.28.1", driver)


@pytest.mark.parametrize("others", [[], ["c6i.4xlarge"]], ids=["alone", "beside CPUs"])
@pytest.mark.parametrize("instance_type", [*TRAINIUM_TYPES, "p5.48xlarge", "c6i.4xlarge"])
def test_nodes_are_told_of_neuron_where_there_are_its_devices(instance_type: str, others: list[str]) -> None:
    spec = with_queue(*(changed(NODES, instance_type=each) for each in (*others, instance_type)))
    of_neuron = {"sdk", *RELEASES[DEFAULT_SDK].packages(spec.os)}
    told = node_arguments.compute_node(spec, spec.queues[0], "/fsx", metrics=False).keys()
    assert of_neuron & told == (of_neuron if instance_type in TRAINIUM_TYPES else set())
    assert {"queue", "cluster", "region", "python", "mount_dir", "scratch_dir"} <= told


def told(spec: ClusterSpec) -> list[dict[str, str]]:
    """Return the arguments of all kinds of nodes."""
    return [
        node_arguments.head_node(spec, "/fsx", deployment="mine", metrics=True),
        node_arguments.compute_node(spec, spec.queues[0], "/fsx", metrics=True),
        node_arguments.login_node(spec, "/fsx"),
    ]


def test_without_a_neuron_sdk_nodes_are_told_of_all_else() -> None:
    """What an argument is for that comes with a release alone, the scripts leave out."""
    plain = with_queue(changed(NODES, instance_type="c6i.4xlarge"))
    of_environment = {"sdk", "python", "pytorch", "torch_neuronx", "compiler", "torch_xla", "libneuronxla"}
    for given, without in zip(*map(told, (plain, changed(plain, neuron_sdk=None))), strict=True):
        assert without == {name: value for name, value in given.items() if name not in of_environment}
        assert "python" in given
