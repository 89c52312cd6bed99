"""The table of Neuron releases: complete, exact, and with what the settings choose by default."""

import re
from dataclasses import asdict
from pathlib import Path

from ultracluster.domain.neuron import RELEASES, SYSTEMS, blocker


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
