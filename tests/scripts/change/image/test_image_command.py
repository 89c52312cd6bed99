"""`./ultracluster image render`: in an account, without one, and with arguments that cannot be used."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml

from config.settings import Settings, load
from emulator.aws import ACCOUNT, EmulatedAws
from scripts.account.deployment import Account
from scripts.change.image import build, configuration
from scripts.change.image.configuration import BuildContext
from scripts.core import options
from scripts.core.errors import UnusableError
from scripts.emulated import accounts
from tests.command_line import ultracluster
from tests.configurations import CONFIG
from toolchain.parallelcluster import DryRun, Message, ParallelCluster

PARENT = "ami-0123456789abcdef0"
NO_ACCOUNT = ("--parent-image", PARENT, "--bucket", "our-scripts")
NETWORK = ("--subnet", "subnet-0123456789abcdef0", "--security-group", "sg-0123456789abcdef0")
CONTEXT = BuildContext(PARENT, "our-scripts")

Command = Callable[..., int]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run the command with these arguments; it writes to a directory of the test, and has no credentials."""
    monkeypatch.setattr(options, "BUILD", tmp_path)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))

    def run(*arguments: str) -> int:
        return ultracluster("image", "render", *arguments)

    return run


def with_key(**others: Any) -> Settings:
    key = f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    raw = load(CONFIG / "trn1-16.yaml").model_dump(mode="json")
    return Settings.model_validate({**raw, "bootstrap": {"kms_key_arn": key}, **others})


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The images of the account, which has a number."""
    images = [
        {"ImageId": "ami-new", "CreationDate": "2026-09-02"},
        {"ImageId": "ami-old", "CreationDate": "2026-09-01"},
    ]
    monkeypatch.setattr(Account, "ask", lambda *_: {"Account": ACCOUNT})
    monkeypatch.setattr(Account, "list", lambda *_, **__: images)
    return images


def test_it_takes_parallelclusters_newest_image_and_the_cdks_bucket(
    answers: list[dict[str, str]],
) -> None:
    context = build.find_context(load(CONFIG / "trn1-16.yaml"), parent_image=None, bucket=None, network=None)
    assert context == BuildContext("ami-new", f"cdk-hnb659fds-assets-{ACCOUNT}-us-west-2")
    answers.clear()
    with pytest.raises(UnusableError, match=r"no image aws-parallelcluster-3\.16\.1-ubuntu-2404-lts-hvm-x86_64"):
        build.find_context(load(CONFIG / "trn1-16.yaml"), parent_image=None, bucket=None, network=None)


def test_a_build_instance_gets_no_bucket_that_it_cannot_decrypt() -> None:
    with pytest.raises(UnusableError, match="may not decrypt the CDK's bucket"):
        build.find_context(with_key(), parent_image=PARENT, bucket=None, network=None)
    assert build.find_context(with_key(), parent_image=PARENT, bucket="our-scripts", network=None) == CONTEXT


def test_without_credentials_it_says_so(command: Command, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command("trn1-16") == 2
    assert "credentials" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_network_is_a_subnet_and_a_security_group(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("trn1-16", *NETWORK[:2]) == 2
    assert "--subnet and --security-group go together" in capsys.readouterr().err


def test_a_configuration_that_parallelcluster_rejects(
    command: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, rehearsed_aws: EmulatedAws
) -> None:
    rejected = DryRun(False, (Message("ERROR", "InstanceTypeBaseAMICompatibleValidator", "no"),), "Invalid")

    class Fake:
        def __enter__(self) -> EmulatedAws:
            return rehearsed_aws

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(build, "EmulatedAws", Fake)
    monkeypatch.setattr(build, "validate", lambda *_: rejected)
    assert command("trn1-16", *NO_ACCOUNT) == 1
    captured = capsys.readouterr()
    assert "rejects build/image-trn1-16.yaml: Invalid\n  ERROR InstanceTypeBaseAMI" in captured.err
    assert captured.out == ""


def test_a_build_uploads_the_component_and_starts_pcluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(options, "BUILD", tmp_path)
    uploads, started = Mock(), Mock(return_value=0)
    rendered = build.ImageBuild("trn1-16", load(CONFIG / "trn1-16.yaml"), CONTEXT, "key.sh", "trn1-16-image")
    monkeypatch.setattr(build, "render", lambda *_, **__: rendered)
    monkeypatch.setattr(Account, "client", lambda *_: uploads)
    monkeypatch.setattr(build, "run", started)
    assert ultracluster("image", "build", "trn1-16") == 2
    assert not started.called
    assert ultracluster("image", "build", "trn1-16", "--yes") == 0
    uploads.upload_file.assert_called_once_with(str(tmp_path / "image-trn1-16.sh"), "our-scripts", "key.sh")
    [(words, _)] = [call.args for call in started.call_args_list]
    assert words[:2] == (".venv-pcluster/bin/pcluster", "build-image")
    assert "describe-image" in capsys.readouterr().out


# By ParallelCluster's own code


@pytest.fixture(scope="module")
def parallelcluster(rehearsal_server: EmulatedAws) -> Iterator[ParallelCluster]:
    with ParallelCluster(rehearsal_server.environment) as process:
        yield process


@pytest.mark.slow
@pytest.mark.validation
def test_the_command(command: Command, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command("trn1-16", *NO_ACCOUNT, *NETWORK) == 0
    written = yaml.safe_load((tmp_path / "image-trn1-16.yaml").read_text(encoding="utf-8"))["Build"]
    script = (tmp_path / "image-trn1-16.sh").read_text(encoding="utf-8")
    component = f"s3://our-scripts/{configuration.component_key(script)}"
    assert (written["ParentImage"], written["SubnetId"]) == (PARENT, NETWORK[1])
    assert written["Components"] == [{"Type": "script", "Value": component}]
    lines = re.findall(r"^ +((?:aws|\.venv-pcluster).*)$", capsys.readouterr().out, re.MULTILINE)
    upload, *commands = map(shlex.split, lines)
    assert upload[3:5] == ["build/image-trn1-16.sh", component]
    assert [words[1] for words in commands] == ["build-image", "describe-image", "get-image-log-events", "delete-image"]
    assert commands[0][-1] == "build/image-trn1-16.yaml"
    for option in ("--region", "--image-id"):
        assert len({words[words.index(option) + 1] for words in commands}) == 1


@pytest.mark.slow
@pytest.mark.validation
def test_parallelcluster_would_reject_another(rehearsed_aws: EmulatedAws, parallelcluster: ParallelCluster) -> None:
    settings = load(CONFIG / "trn1-16.yaml")
    made = configuration.build_configuration(settings, CONTEXT, "component.sh")
    made["Build"]["Komponents"] = []
    dry_run = build.validate(rehearsed_aws, parallelcluster, settings, made, "image")
    assert not dry_run.accepted
    assert [(each.level, each.validator) for each in dry_run.messages] == [("ERROR", "ImageSchemaValidator")]


@pytest.mark.slow
@pytest.mark.validation
def test_the_build_instance_may_read_the_component_and_runs_it_after_parallelclusters_own(
    rehearsed_aws: EmulatedAws, parallelcluster: ParallelCluster
) -> None:
    settings = load(CONFIG / "trn1-16.yaml")
    accounts.create_prerequisites(rehearsed_aws, settings)
    images = rehearsed_aws.client("ec2", settings.region).describe_images(Owners=["amazon"])["Images"]
    context = BuildContext(images[0]["ImageId"], "our-scripts")
    made = configuration.build_configuration(settings, context, "component.sh")
    resources = parallelcluster.build_image_template("image", made)["Resources"]
    [policy] = resources["InstanceRole"]["Properties"]["Policies"]
    [reading] = [each for each in policy["PolicyDocument"]["Statement"] if each["Action"] == "s3:GetObject"]
    assert "our-scripts/component.sh" in str(reading["Resource"])
    assert "*" not in str(reading["Resource"])
    recipe = resources["ImageRecipe"]["Properties"]
    assert [each["ComponentArn"]["Ref"] for each in recipe["Components"]] == [
        "ParallelClusterComponent",
        "ParallelClusterTagComponent",
        "ScriptComponent0",
    ]
    [distribution] = resources["DistributionConfiguration"]["Properties"]["Distributions"]
    tags = distribution["AmiDistributionConfiguration"]["AmiTags"]
    assert tags["ultracluster:neuron-sdk"] == settings.cluster.neuron_sdk
    assert tags["parallelcluster:version"] == settings.cluster.parallelcluster_version
