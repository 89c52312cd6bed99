"""`make image`: in an account, without one, and with arguments that cannot be used."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from config.settings import Settings, load
from emulator.aws import ACCOUNT, EmulatedAws
from scripts import emulated, node_image
from scripts.commands import image
from scripts.node_image import Place
from tests.configurations import SHIPPED
from toolchain.parallelcluster import ParallelCluster

PARENT = "ami-0123456789abcdef0"
NO_ACCOUNT = ("--parent-image", PARENT, "--bucket", "our-scripts")
NETWORK = ("--subnet", "subnet-0123456789abcdef0", "--security-group", "sg-0123456789abcdef0")

validation = pytest.mark.validation
Command = Callable[..., int]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run the command with these arguments; it writes to a directory of the test, and has no credentials."""
    monkeypatch.setattr(image, "BUILD", tmp_path)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))

    def run(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["image", *arguments])
        try:
            return image.main()
        except SystemExit as end:  # of argparse
            return int(str(end.code))

    return run


@pytest.fixture
def account(rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> EmulatedAws:
    """Let this process's credentials be for an emulated account, with nothing in it."""
    for name, value in rehearsed_aws.settings.items():
        monkeypatch.setenv(name, value)
    return rehearsed_aws


@pytest.fixture(scope="module")
def parallelcluster(rehearsal_server: EmulatedAws) -> Iterator[ParallelCluster]:
    with ParallelCluster(rehearsal_server.environment) as process:
        yield process


def shown(text: str, program: str) -> list[list[str]]:
    """Return the commands of a program among what was printed."""
    return [shlex.split(line) for line in re.findall(rf"^ .*?({re.escape(program)} .*)$", text, re.MULTILINE)]


@validation
def test_in_an_account_it_takes_parallelclusters_newest_image_and_the_cdks_bucket(
    command: Command, account: EmulatedAws, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    emulated.create_prerequisites(account, load(image.CONFIG / "trn1-16.yaml"))
    ec2 = account.client("ec2", "us-west-2")
    names = [{"Name": "name", "Values": ["aws-parallelcluster-3.16.1-ubuntu-2404-lts-hvm-x86_64-*"]}]
    [official] = ec2.describe_images(Owners=["amazon"], Filters=names)["Images"]
    iam = account.client("iam", "us-east-1")
    roles = [role["RoleName"] for role in iam.list_roles()["Roles"]]
    assert command("trn1-16") == 0
    made = yaml.safe_load((tmp_path / "image-trn1-16.yaml").read_text(encoding="utf-8"))
    script = (tmp_path / "image-trn1-16.sh").read_text(encoding="utf-8")
    component = f"s3://cdk-hnb659fds-assets-{ACCOUNT}-us-west-2/{node_image.component_key(script)}"
    assert made["Build"]["ParentImage"] == official["ImageId"]
    assert made["Build"]["Components"] == [{"Type": "script", "Value": component}]
    text = capsys.readouterr().out
    [upload] = shown(text, "aws s3 cp")
    assert upload[3:5] == ["build/image-trn1-16.sh", component]
    commands = shown(text, ".venv-pcluster/bin/pcluster")
    assert [words[1] for words in commands] == ["build-image", "describe-image", "get-image-log-events", "delete-image"]
    assert commands[0][-1] == "build/image-trn1-16.yaml"
    for option in ("--region", "--image-id"):
        assert len({words[words.index(option) + 1] for words in commands}) == 1
    assert [role["RoleName"] for role in iam.list_roles()["Roles"]] == roles


@validation
def test_with_image_and_bucket_no_account_is_asked(command: Command, tmp_path: Path) -> None:
    assert command("trn1-16", *NO_ACCOUNT, *NETWORK) == 0
    build = yaml.safe_load((tmp_path / "image-trn1-16.yaml").read_text(encoding="utf-8"))["Build"]
    assert (build["ParentImage"], build["SubnetId"]) == (PARENT, NETWORK[1])
    assert build["Components"][0]["Value"].startswith("s3://our-scripts/")


def test_without_credentials_it_says_so(command: Command, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command("trn1-16") == 2
    assert "credentials" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_build_instance_is_not_sent_to_a_bucket_that_it_cannot_decrypt(
    command: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    raw = load(image.CONFIG / "trn1-16.yaml").model_dump(mode="json")
    key = f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({**raw, "bootstrap": {"kms_key_arn": key}}), encoding="utf-8")
    monkeypatch.setattr(image, "CONFIG", tmp_path)

    assert command("own", "--parent-image", PARENT) != 0
    assert "name another bucket with --bucket" in capsys.readouterr().err


def test_where_amazon_has_no_image_it_says_which(
    command: Command, account: EmulatedAws, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("trn1-16") == 2
    said = capsys.readouterr().err
    assert "Amazon has no image aws-parallelcluster-3.16.1-ubuntu-2404-lts-hvm-x86_64* in us-west-2" in said
    assert "--parent-image" in said


@validation
def test_what_parallelcluster_refuses_is_told(
    command: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    raw = load(image.CONFIG / "trn1-16.yaml").model_dump(mode="json")
    raw["cluster"]["head_node"]["instance_type"] = "c6i.huge"
    (tmp_path / "odd.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    monkeypatch.setattr(image, "CONFIG", tmp_path)
    assert command("odd", *NO_ACCOUNT) == 1
    captured = capsys.readouterr()
    assert "refuses build/image-odd.yaml: " in captured.err
    assert "ERROR InstanceTypeBaseAMICompatibleValidator" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "no such file in config/: nowhere; there is "),
        (["trn1-16", *NETWORK[:2]], "--subnet and --security-group go together"),
        (["trn1-16", *NETWORK[2:]], "--subnet and --security-group go together"),
        (["trn1-16", "--parent-image", "ubuntu"], "got 'ubuntu'; allowed: ami- and 8 or 17 hexadecimal digits"),
        (["trn1-16", "--subnet", "subnet-1"], "got 'subnet-1'; allowed: subnet- and"),
        (["trn1-16", "--security-group", "default"], "got 'default'; allowed: sg- and"),
        (["trn1-16", "--bucket", "s3://Our_Bucket/x"], "got 's3://Our_Bucket/x'; allowed: 3 to 63 of a-z, 0-9"),
        (["trn1-16", "--bucket", "b"], "got 'b'; allowed: 3 to 63"),
        (["trn1-16", "--bucket", "b" * 64], f"got '{'b' * 64}'; allowed: 3 to 63"),
        (["trn1-16", "--bucket", "our-scripts-"], "got 'our-scripts-'; allowed: 3 to 63"),
        (["trn1-16", "--bucket", ".our-scripts"], "got '.our-scripts'; allowed: 3 to 63"),
    ],
)
def test_arguments_that_cannot_be_used_are_told(
    arguments: list[str], said: str, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*arguments) == 2
    assert said in capsys.readouterr().err


@validation
@pytest.mark.parametrize("environment", SHIPPED)
@pytest.mark.parametrize("tags", [True, False], ids=["tags", "no-tags"])
def test_parallelcluster_accepts_every_configuration(
    environment: str, tags: bool, rehearsed_aws: EmulatedAws, parallelcluster: ParallelCluster
) -> None:
    settings = load(image.CONFIG / f"{environment}.yaml")
    chosen = settings if tags else Settings.model_validate(settings.model_dump(mode="json") | {"tags": {}})
    made = node_image.configuration(chosen, Place(PARENT, "our-scripts"), "component.sh")
    verdict = image.validate(rehearsed_aws, parallelcluster, chosen, made, node_image.image_id(chosen, made))
    assert verdict.accepted, verdict
    assert verdict.messages == ()


@validation
@pytest.mark.parametrize(
    ("key", "value", "validator"),
    [
        ("ParentImage", "ubuntu", "ImageSchemaValidator"),
        ("Components", [{"Type": "script", "Value": "http://somewhere"}], "ImageSchemaValidator"),
        ("Komponents", [], "ImageSchemaValidator"),
        ("SubnetId", "subnet-0123456789abcdef0", "SecurityGroupsAndSubnetValidator"),
    ],
)
def test_parallelcluster_would_refuse_another(
    key: str, value: object, validator: str, rehearsed_aws: EmulatedAws, parallelcluster: ParallelCluster
) -> None:
    settings = load(image.CONFIG / "trn1-16.yaml")
    made = node_image.configuration(settings, Place(PARENT, "our-scripts"), "component.sh")
    made["Build"][key] = value
    verdict = image.validate(rehearsed_aws, parallelcluster, settings, made, "image")
    assert not verdict.accepted
    assert [(message.level, message.validator) for message in verdict.messages] == [("ERROR", validator)]


@validation
def test_the_build_instance_may_read_the_component_and_runs_it_after_parallelclusters_own(
    rehearsed_aws: EmulatedAws, parallelcluster: ParallelCluster
) -> None:
    settings = load(image.CONFIG / "trn1-16.yaml")
    emulated.create_prerequisites(rehearsed_aws, settings)
    images = rehearsed_aws.client("ec2", settings.region).describe_images(Owners=["amazon"])["Images"]
    made = node_image.configuration(settings, Place(images[0]["ImageId"], "our-scripts"), "component.sh")
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
    tags = resources["DistributionConfiguration"]["Properties"]["Distributions"][0]["AmiDistributionConfiguration"][
        "AmiTags"
    ]
    assert tags["ultracluster:neuron-sdk"] == settings.cluster.neuron_sdk
    assert tags["parallelcluster:version"] == settings.cluster.parallelcluster_version
