"""The component of an image, for real, and the nodes that start from the image."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from config.settings import load
from scripts.change.image import configuration
from scripts.core.options import CONFIG
from tests.nodes.base import Base
from tests.nodes.facts import COMPUTE_NODE, IMAGE
from tests.nodes.machine import NO_INTERNET, SITES, Machine, Outcome
from tests.nodes.packages import KERNELS

pytestmark = [pytest.mark.slow, pytest.mark.system]

Machines = Callable[..., Machine]
each_manager = pytest.mark.parametrize("os_name", ["ubuntu2404", "alinux2023"])


def build(machine: Machine, base: Base, *, sites: str = SITES) -> Outcome:
    """Run the component as EC2 Image Builder does, with the scripts that know the key of the tests' repositories."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(configuration, "_NODES", base.workspace / "bundle")
        machine.write("/component.sh", configuration.component(load(CONFIG / "trn1-16.yaml")))
    machine.path("/component.sh").chmod(0o755)
    with machine.execute(["/component.sh"], sites=sites) as process:
        output, errors = process.communicate(timeout=600)
    assert errors == "", errors
    return Outcome(process.returncode, output)


@pytest.fixture(scope="module")
def _images(base: Base) -> Callable[[str], Machine]:
    @cache
    def built(os_name: str) -> Machine:
        machine = Machine(base, os_name, "c6i.4xlarge")
        outcome = build(machine, base)
        assert outcome.code == 0, outcome.output
        assert outcome.last_line.endswith(f": Neuron SDK {IMAGE['sdk']} for the kernel {KERNELS[os_name]}")
        return machine

    return built


@pytest.fixture
def instance(_images: Callable[[str], Machine], use: Callable[[Machine], Machine]) -> Machines:
    """Return a function that starts an instance of a type from the image of an operating system."""
    return lambda os_name, instance_type="trn1.32xlarge": use(_images(os_name).clone(instance_type=instance_type))


@each_manager
def test_an_image_holds_the_driver_of_its_kernel_and_nothing_is_loaded(os_name: str, instance: Machines) -> None:
    image = instance(os_name, "c6i.4xlarge")
    assert image.read(f"/usr/lib/modules/{KERNELS[os_name]}/updates/neuron.ko").strip() == IMAGE["driver"]
    assert not image.path("/sys/module/neuron").exists()
    assert not image.path("/var/lib/ultracluster").exists()
    assert not list(image.path("/tmp").glob("tmp.*"))  # noqa: S108 - of the machine under test
    for directory in ("/var/cache/apt/archives", "/var/cache/dnf"):
        assert not {".deb", ".rpm", ".solv"} & {path.suffix for path in image.path(directory).rglob("*")}


@each_manager
def test_a_node_that_starts_from_the_image_downloads_and_installs_nothing(os_name: str, instance: Machines) -> None:
    node = instance(os_name)
    outcome = node.run("compute_node.sh", COMPUTE_NODE, sites=NO_INTERNET)
    assert outcome.code == 0, outcome.output
    assert "installed" not in outcome.output
    assert f"driver {COMPUTE_NODE['driver']}, 16 devices, 32 NeuronCores" in outcome.output


@pytest.mark.parametrize(("os_name", "manager"), [("ubuntu2404", "apt-get"), ("alinux2023", "dnf")])
def test_a_kernel_that_comes_with_the_packages_makes_no_image(
    os_name: str, manager: str, machine: Machines, base: Base
) -> None:
    image = machine(os_name, "c6i.4xlarge")
    image.write(f"/boot/vmlinuz-{KERNELS[os_name]}", "")
    image.write_program(f"/usr/local/sbin/{manager}", f'>/boot/vmlinuz-6.99.0\nexec /usr/bin/{manager} "$@"')
    outcome = build(image, base)
    assert outcome.code == 15
    said = f"vmlinuz-6.99.0 came with the packages, and the driver is built for {KERNELS[os_name]}. To do: "
    assert outcome.last_line.startswith(f"image.sh: failed (15): {said}")
