"""The built library in an empty environment: it is complete, and each example passes what checks clusters."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator import prerequisites
from emulator.aws import ACCOUNT, EmulatedAws
from emulator.prerequisites import Bootstrap, ExistingNetwork, Prerequisites
from emulator.templates import Resolver, publish_files
from scripts.check.validation import examine
from scripts.core.environments import ROOT, UV
from scripts.emulated import accounts
from tests.stacks.small_app import FLAGS
from tests.stacks.test_validation import lint, violations
from toolchain.assembly import Assembly
from toolchain.cluster import CLUSTER_TYPE, ClusterRequest
from toolchain.parallelcluster import ParallelCluster
from ultracluster.domain.parallelcluster_versions import PINNED

pytestmark = [pytest.mark.slow, pytest.mark.validation]

CONSTRUCTS = ROOT / "constructs"
EXAMPLES = sorted((CONSTRUCTS / "examples").glob("*.py"))
NOT_SHIPPED = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
ZONES = {"us-east-1": "use1-az1", "us-west-2": "usw2-az4"}
EXISTING = ExistingNetwork(
    "vpc-0123456789abcdef0",
    "10.0.0.0/16",
    "subnet-0123456789abcdef0",
    "10.0.0.0/24",
    "subnet-0123456789abcdef1",
    "10.0.64.0/18",
)
CHECKED = """
import runpy, sys
import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

synth = cdk.App.synth

def checked(app):
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return synth(app)

cdk.App.synth = checked
runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""Runs an app with the rules of AwsSolutions beside CDK's own."""


def run(*command: str | Path, directory: Path, environment: dict[str, str] | None = None) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(each) for each in command],
        cwd=directory,
        env=kept | {"UV_PYTHON_DOWNLOADS": "never"} | (environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with an sdist, and with the wheel that is built from it."""
    directory = tmp_path_factory.mktemp("built")
    shutil.copytree(CONSTRUCTS, directory / "constructs", ignore=NOT_SHIPPED)
    checked = ("--build-constraints", ROOT / "constraints.txt", "--require-hashes")
    run(UV, "build", "--quiet", "constructs", "--out-dir", "dist", *checked, directory=directory)
    return directory / "dist"


@pytest.fixture(scope="module")
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with the wheel, what it requires, and cdk-nag for these tests."""
    directory = tmp_path_factory.mktemp("environment")
    [wheel] = built.glob("*.whl")
    [nag] = re.findall(r"^cdk-nag==\S+", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE)
    run(UV, "venv", "--quiet", "--python", ROOT / ".uv/bin/python", directory, directory=directory)
    constraints = ("--constraints", ROOT / "constraints.txt")
    run(UV, "pip", "install", "--quiet", "--python", directory, *constraints, wheel, nag, directory=directory)
    return directory / "bin/python"


@pytest.fixture(scope="module")
def aws() -> Iterator[EmulatedAws]:
    with EmulatedAws() as server:
        yield server


@pytest.fixture(scope="module")
def parallelcluster(aws: EmulatedAws) -> Iterator[ParallelCluster]:
    with ParallelCluster(aws.environment) as process:
        yield process


def test_the_wheel_holds_the_library_and_nothing_else(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
        [metadata] = (opened.read(name).decode() for name in opened.namelist() if name.endswith("/METADATA"))
        [licence] = (opened.read(name).decode() for name in opened.namelist() if name.endswith("/LICENSE"))
    library = CONSTRUCTS / "ultracluster"
    files = [Path(folder, name) for folder, _, files in os.walk(library, followlinks=True) for name in files]
    assert names == {str(path.relative_to(CONSTRUCTS)) for path in files if "__pycache__" not in path.parts}
    assert "License-Expression: Apache-2.0" in metadata
    assert "A Trn1 cluster in twelve lines" in metadata
    assert licence == (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_an_installed_library_is_its_own_and_typed(python: Path, tmp_path: Path) -> None:
    program = (
        "import pathlib, ultracluster; root = pathlib.Path(ultracluster.__file__).parent; print(root)\n"
        "assert (root / 'py.typed').exists() and (root / 'nodes' / 'head_node.sh').exists()\n"
        "for name in ultracluster.__all__: getattr(ultracluster, name)"
    )
    assert str(python.parents[1]) in run(python, "-c", program, directory=tmp_path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_passes_cdk_cfn_lint_and_parallelcluster(
    example: Path, python: Path, aws: EmulatedAws, parallelcluster: ParallelCluster, tmp_path: Path
) -> None:
    out = tmp_path / "cdk.out"
    program = tmp_path / "checked.py"
    program.write_text(CHECKED, encoding="utf-8")
    environment = {"CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": json.dumps(FLAGS)}
    run(python, program, shutil.copy(example, tmp_path), directory=tmp_path, environment=environment)

    assert violations(out) == ""
    assert lint(*out.glob("*.template.json")) == []
    problems, asked = _ask(parallelcluster, aws, Assembly(out))
    assert asked
    assert problems == []


def _ask(parallelcluster: ParallelCluster, aws: EmulatedAws, assembly: Assembly) -> tuple[list[str], int]:
    """Return what ParallelCluster does not like about the clusters of an assembly, and their number."""
    [region] = {stack.region for stack in assembly.stacks.values()}
    bucket = Bootstrap("/cdk-bootstrap/hnb659fds/version", "99", f"cdk-hnb659fds-assets-{ACCOUNT}-{region}")
    aws.reset()
    prerequisites.create(
        aws,
        Prerequisites(
            region, ZONES[region], PINNED, "none", "trn1.32xlarge", bucket, accounts.published(), network=EXISTING
        ),
    )
    prerequisites.bootstrap(aws, region, bucket)
    publish_files(assembly, aws)
    resolver = Resolver(assembly, aws)
    problems: list[str] = []
    asked = 0
    for stack in assembly.stacks.values():
        for resource in stack.resources.values():
            if resource["Type"] == CLUSTER_TYPE:
                properties = {name: value for name, value in resource["Properties"].items() if name != "ServiceToken"}
                request = ClusterRequest(stack.region, resolver.resolve(stack, properties), stack.tags)
                suppressed = (each.removeprefix("type:") for each in request.properties["SuppressValidators"])
                problems += examine(parallelcluster, request, dict.fromkeys(suppressed, "")).problems
                asked += 1
    return problems, asked
