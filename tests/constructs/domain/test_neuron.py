"""The table of Neuron releases: complete, exact, and with what the settings choose by default."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from ultracluster.domain.cluster import OperatingSystem
from ultracluster.domain.neuron import DEFAULT_PYTORCH, DEFAULT_SDK, RELEASES, SYSTEMS, blocker


def test_the_systems_of_the_settings_are_known() -> None:
    assert set(get_args(OperatingSystem)) == SYSTEMS.keys()


def test_versions_are_exact() -> None:
    for sdk, release in RELEASES.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", sdk)
        versions = asdict(release)
        del versions["pytorch"], versions["kernels"], versions["broken_kernel"]
        for package, version in versions.items():
            assert re.fullmatch(r"2\.\d+\.\d+\.0", version), (sdk, package)


def test_wheels_of_one_pytorch_are_of_its_minor_version() -> None:
    for sdk, release in RELEASES.items():
        for minor, pytorch in release.pytorch.items():
            assert pytorch.torch == f"{minor}.0"
            assert re.fullmatch(rf"{re.escape(minor)}\.\d", pytorch.torch_xla)
            assert re.fullmatch(rf"{re.escape(pytorch.torch)}\.2\.\d+\.\d+", pytorch.torch_neuronx), sdk


def test_releases_share_no_version_of_what_is_tested_together() -> None:
    for field in ("driver", "runtime", "collectives", "tools", "compiler", "libneuronxla"):
        assert len({getattr(release, field) for release in RELEASES.values()}) == len(RELEASES), field


def test_pytorch_2_8_comes_without_the_slow_torch_xla() -> None:
    assert {release.pytorch["2.8"].torch_xla for release in RELEASES.values()} == {"2.8.1"}


def test_what_the_settings_choose_by_default_runs_on_ubuntu() -> None:
    assert blocker(RELEASES[DEFAULT_SDK].pytorch[DEFAULT_PYTORCH], "ubuntu2404") is None


def test_each_system_runs_a_pytorch_of_each_release() -> None:
    for os in SYSTEMS:
        for sdk, release in RELEASES.items():
            assert None in [blocker(pytorch, os) for pytorch in release.pytorch.values()], (os, sdk)


def test_each_system_has_kernels_that_each_release_was_tested_with() -> None:
    for sdk, release in RELEASES.items():
        assert release.kernels.keys() == SYSTEMS.keys(), sdk
        for kernels in release.kernels.values():
            assert kernels
            assert all(re.fullmatch(r"6\.\d+", kernel) for kernel in kernels), (sdk, kernels)


def test_the_documentation_has_the_same_kernels() -> None:
    text = (Path(__file__).parents[3] / "docs/nodes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (2\.\d+\.\d) \| (6.*) \|$", text, re.MULTILINE)
    assert f"| release | {' | '.join(SYSTEMS)} |" in text
    assert dict(rows) == {
        sdk: " | ".join(", ".join(release.kernels[os]) for os in SYSTEMS) for sdk, release in RELEASES.items()
    }
