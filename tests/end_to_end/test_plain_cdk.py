"""What CDK users type: its own commands in a fresh clone, with their own environment and without the launcher."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from config.settings import load
from emulator.aws import EmulatedAws
from scripts.emulated import accounts
from toolchain.jsii_start import UNPACKED

pytestmark = [pytest.mark.slow, pytest.mark.validation]

ROOT = Path(__file__).parents[2]
CDK = ROOT / "node_modules" / ".bin" / "cdk"
DEFAULT = "Deployment: trn1-16, default-env in cdk.json; for another: -c env=NAME\n"

Cdk = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy as git has it, with what `pip install -r requirements.txt` installs in an environment beside it."""
    home = tmp_path_factory.mktemp("plain")
    clone, environment, pins = home / "a clone", home / "environment", home / "pins.txt"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"):
        if name and os.path.lexists(ROOT / name):
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name, follow_symlinks=False)
    # What CI installs is what was reviewed; hashes cannot be demanded, since the library is installed from its folder.
    pinned = re.findall(r"^[\w.-]+==[^\\\n]+", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    pins.write_text("\n".join(pinned), encoding="utf-8")
    # The pip of this environment, which is no other than a new one would get, but for the seconds to install it.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
    subprocess.run(
        [*pip, "install", "--quiet", "--no-compile", "-r", "requirements.txt"],
        cwd=clone,
        env={**os.environ, "PIP_CONSTRAINT": str(pins), "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        check=True,
    )
    return clone


@pytest.fixture
def cdk(clone: Path, tmp_path: Path) -> Cdk:
    """Return a function that runs the CDK in the clone: its environment is active, and nothing else of this process."""

    def run(*words: str, environment: Mapping[str, str] | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        given = environment or {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        left = {key: value for key, value in given.items() if not key.startswith(("CDK_", "PYTHON", "VIRTUAL_ENV"))}
        return subprocess.run(
            [CDK, "--no-notices", *words],
            cwd=clone,
            env={
                **left,
                "HOME": str(tmp_path),
                "PATH": os.pathsep.join([str(clone.parent / "environment" / "bin"), "/usr/bin", "/bin"]),
                "CDK_DISABLE_CLI_TELEMETRY": "1",
                **UNPACKED,
                **more,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_without_an_account_it_lists_and_synthesizes_the_default_deployment_and_says_so(cdk: Cdk, clone: Path) -> None:
    listed = cdk("list", CDK_VALIDATION="false")
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.split() == [f"trn1-16-{part}" for part in ("network", "storage", "cluster", "monitoring")]
    assert DEFAULT in listed.stderr

    # Without CDK_VALIDATION, as for users: the template validator runs.
    synthesized = cdk("synth", "--quiet")
    assert synthesized.returncode == 0, synthesized.stderr
    assert DEFAULT in synthesized.stderr
    assert (clone / "cdk.out" / "trn1-16-cluster.template.json").is_file()


def test_a_deployment_that_does_not_exist_is_answered_with_those_that_do(cdk: Cdk) -> None:
    done = cdk("list", "-c", "env=mine")
    assert done.returncode != 0
    assert "-c env=NAME: got mine" in done.stderr
    assert "allowed: dev, reserved, team, trn1-16, two-queues, ultracluster\n" in done.stderr


def test_violations_of_a_file_reach_the_user_each_with_its_line(cdk: Cdk, tmp_path: Path) -> None:
    text = (ROOT / "config" / "dev.yaml").read_text(encoding="utf-8")
    bad = tmp_path / "bad.yaml"
    bad.write_text(text.replace("zone_id: usw2-az4", "zone_id: use1-az4").replace("max_count: 2", "max_count: -1"))
    lines = bad.read_text(encoding="utf-8").splitlines()
    zone, count = (next(n for n, line in enumerate(lines, 1) if key in line) for key in ("use1-az4", "max_count: -1"))
    done = cdk("synth", "--quiet", "-c", f"env={bad.with_suffix('')}")
    assert done.returncode != 0
    assert f"bad.yaml:{zone}: zone_id: got 'use1-az4'" in done.stderr
    assert f"bad.yaml:{count}: cluster.queues[0].compute_resources[0].max_count: got -1" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_deploys_and_destroys(cdk: Cdk, aws: EmulatedAws) -> None:
    """Without the CDK's template validator, which the synth of the first test runs: it would run three times."""
    settings = load(ROOT / "config" / "dev.yaml")
    accounts.create_prerequisites(aws, settings)
    accounts.bootstrap(aws, settings)

    def stacks() -> set[str]:
        found = aws.client("cloudformation", settings.region).describe_stacks()["Stacks"]
        return {each["StackName"] for each in found}

    def run(*words: str) -> str:
        done = cdk(*words, "-c", "env=dev", environment=aws.environment, CDK_VALIDATION="false")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "default-env" not in done.stderr
        return done.stdout + done.stderr

    run("deploy", "--all", "--require-approval", "never")
    assert stacks() >= {settings.stack_name(part) for part in settings.parts}
    assert "Number of stacks with differences: 0" in run("diff")
    run("destroy", "--all", "--force")
    assert not stacks()
