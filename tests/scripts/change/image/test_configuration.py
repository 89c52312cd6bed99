"""What `pcluster build-image` gets: the configuration, and the component that it names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import Settings, load
from scripts.account.deployment import Deployment
from scripts.change.image import build, configuration
from scripts.change.image.configuration import BuildContext
from scripts.core.errors import UnusableError
from tests.configurations import CONFIG
from tests.parallelcluster_versions import OTHER, another_version
from tests.stacks.choices import use_arm
from tests.stacks.deployments import edited
from ultracluster.domain.parallelcluster_versions import PINNED

PARENT = "ami-0123456789abcdef0"
KEY = "ultracluster-images/0123456789abcdef.sh"
CONTEXT = BuildContext(PARENT, "our-scripts", ("subnet-0123456789abcdef0", "sg-0123456789abcdef0"))
GOLDEN = Path(__file__).with_name("trn1-16.yaml")


def settings(**cluster: Any) -> Settings:
    raw = load(CONFIG / "trn1-16.yaml").model_dump(mode="json")
    raw["cluster"] |= cluster
    return Settings.model_validate(raw)


def test_the_configuration_is_the_golden_one() -> None:
    made = configuration.build_configuration(settings(), CONTEXT, KEY)
    assert made == yaml.safe_load(GOLDEN.read_text(encoding="utf-8"))


def test_without_a_subnet_image_builder_takes_the_default_vpc() -> None:
    build = configuration.build_configuration(settings(), BuildContext(PARENT, "our-scripts"), KEY)["Build"]
    assert not {"SubnetId", "SecurityGroupIds"} & build.keys()


def test_an_image_is_built_by_the_package_of_its_version_alone() -> None:
    with another_version():
        deployment = Deployment("trn1-16", settings(parallelcluster_version=OTHER))
        with pytest.raises(UnusableError, match=rf"got {OTHER}; allowed: {PINNED}, whose package builds images here"):
            build.render(deployment, parent_image=PARENT, bucket="b", network=None)


def test_without_a_neuron_sdk_there_is_no_image_to_build() -> None:
    deployment = Deployment("arm", edited("trn1-16", use_arm))
    with pytest.raises(UnusableError, match=r"neuron_sdk: got null; allowed: a release"):
        build.render(deployment, parent_image=None, bucket=None, network=None)


def test_another_release_is_another_component_and_another_image() -> None:
    def names(release: str) -> tuple[str, str]:
        chosen = settings(neuron_sdk=release)
        key = configuration.component_key(configuration.component(chosen))
        return key, configuration.image_id(chosen, configuration.build_configuration(chosen, CONTEXT, key))

    assert names("2.28.1") == names("2.28.1")
    assert not set(names("2.28.1")) & set(names("2.27.1"))
    assert names("2.28.1")[1].startswith("ultracluster-ubuntu2404-neuron-2-28-1-")


def test_the_component_is_linted() -> None:
    script = configuration.component(settings())
    shellcheck = [str(Path(sys.executable).with_name("shellcheck")), "-"]
    done = subprocess.run(shellcheck, input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_component_runs_image_sh_with_all_scripts_and_ends_as_it_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nodes, temporary = tmp_path / "nodes", tmp_path / "temporary"
    (nodes / "lib").mkdir(parents=True)
    temporary.mkdir()
    (nodes / "lib/print.sh").write_text('print() { echo "$*"; }\n', encoding="utf-8")
    (nodes / "image.sh").write_text('source "${0%/*}/lib/print.sh"\nprint "$@"\nexit 7\n', encoding="utf-8")
    monkeypatch.setattr(configuration, "_NODES", nodes)
    script = configuration.component(settings())
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(temporary)},
    )
    arguments = [f"{name}={value}" for name, value in configuration.facts(settings()).items()]
    assert (done.returncode, done.stdout, done.stderr) == (7, " ".join(arguments) + "\n", "")
    (nodes / "image.sh").write_text("exit 0\n", encoding="utf-8")
    subprocess.run(
        ["bash", "-c", configuration.component(settings())],
        check=True,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(temporary)},
    )
    assert len(list(temporary.iterdir())) == 1  # what the run that failed left
