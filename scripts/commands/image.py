"""Write what `pcluster build-image` needs to make an image with the Neuron software of a deployment in it.

It writes build/image-ENV.yaml, the configuration, and build/image-ENV.sh, the component that it names: the scripts of
nodes in one file, which runs image.sh. ParallelCluster's own schema and validators look at the configuration,
in an emulated AWS. Nothing is made in the account: the commands that do are printed.

The account is asked for its number, unless the settings or --bucket tell it, and for ParallelCluster's newest image,
unless --parent-image is given; with both no credentials are needed.

Exit code 0: written and accepted; 1: ParallelCluster refuses the configuration; 2: the settings or arguments cannot be
used, or AWS did not answer.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts import environments

if TYPE_CHECKING:
    from config.settings import Settings
    from emulator.aws import EmulatedAws
    from scripts.node_image import Place
    from toolchain.parallelcluster import ParallelCluster, Verdict

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "config"
BUILD = ROOT / "build"
EXAMPLES = """\
examples:
  make image ENV=trn1-16
  make image ENV=trn1-16 ARGS='--subnet subnet-0123456789abcdef0 --security-group sg-0123456789abcdef0'
  make image ENV=trn1-16 ARGS='--parent-image ami-0123456789abcdef0 --bucket our-scripts'   # asks no account
"""


class NoImageError(LookupError):
    """There is no image to build upon; the message says which was looked for."""


def validate(
    aws: EmulatedAws, parallelcluster: ParallelCluster, settings: Settings, configuration: dict[str, Any], name: str
) -> Verdict:
    """Put a configuration before ParallelCluster, in an emulated account that has what it names.

    Not in the real one: there even a dry run makes a role (aws-parallelcluster 3.16.1,
    api/controllers/image_operations_controller.py). The emulated security group has an id of its own.
    """
    build = configuration["Build"]
    ec2 = aws.client("ec2", settings.region)
    tags = [{"Key": "_custom_id_", "Value": build["ParentImage"]}]
    ec2.register_image(
        Name="parent", Architecture="x86_64", TagSpecifications=[{"ResourceType": "image", "Tags": tags}]
    )
    if "SecurityGroupIds" in build:
        group = ec2.create_security_group(GroupName="build", Description="of the build instance")["GroupId"]
        configuration = configuration | {"Build": build | {"SecurityGroupIds": [group]}}
    return parallelcluster.build_image(name, configuration)


def find_place(settings: Settings, arguments: argparse.Namespace) -> Place:
    """Return where the image is built, and ask the account for what the arguments do not tell.

    Raises:
        NoImageError: Amazon has no image of ParallelCluster's for version and OS, or the build instance could not read
            the CDK's bucket.
    """
    from scripts.deployment import Account
    from scripts.node_image import Place
    from scripts.preflight.images import newest_official_image, official_name
    from toolchain.bootstrap import assets_bucket

    aws = Account(settings.region)
    bucket = arguments.bucket
    if not bucket and settings.bootstrap.kms_key_arn:
        raise NoImageError(
            "The build instance may not decrypt what lies in the CDK's bucket (`bootstrap.kms_key_arn`): name another "
            "bucket with --bucket, without a key of yours"
        )
    if not bucket:
        account = settings.account or str(aws.ask("sts", "get_caller_identity")["Account"])
        bucket = assets_bucket(settings.bootstrap, account, settings.region)
    parent = arguments.parent_image
    if not parent:
        image = newest_official_image(aws, settings.cluster)
        if image is None:
            raise NoImageError(
                f"Amazon has no image {official_name(settings.cluster)} in {settings.region}: change `cluster.os`, or "
                "name one with --parent-image"
            )
        parent = str(image["ImageId"])
    return Place(parent, bucket, arguments.subnet, arguments.security_group)


def next_steps(environment: str, settings: Settings, place: Place, key: str, name: str) -> str:
    """Return what is to be done with what was written."""
    pcluster, region = ".venv-pcluster/bin/pcluster", ("--region", settings.region)
    target = f"s3://{place.bucket}/{key}"
    upload = ("aws", "s3", "cp", f"build/image-{environment}.sh", target, *region)
    file = f"build/image-{environment}.yaml"
    build = (pcluster, "build-image", *region, "--image-id", name, "--image-configuration", file)
    follow = (pcluster, "describe-image", *region, "--image-id", name)
    stream = f"{settings.cluster.parallelcluster_version}/1"
    failure = (pcluster, "get-image-log-events", *region, "--image-id", name, "--log-stream-name", stream)
    delete = (pcluster, "delete-image", *region, "--image-id", name)
    return f"""\
Wrote build/image-{environment}.sh and {file}: Neuron SDK {settings.cluster.neuron_sdk} for {settings.cluster.os}, on \
{place.parent_image}. ParallelCluster accepts it.

In this directory, after `. .venv/bin/activate`, which has the Node that pcluster needs:

1. Upload the component:
   {shlex.join(upload)}
2. Build the image:
   {shlex.join(build)}
3. Follow it, until imageBuildStatus is BUILD_COMPLETE:
   {shlex.join(follow)}
   If it fails, read why:
   {shlex.join(failure)}
   and delete what is left, the log too, before you build again:
   {shlex.join(delete)}
4. Name ec2AmiInfo.amiId of that answer as `cluster.custom_ami` in config/{environment}.yaml, and look at it:
   make preflight ENV={environment} ARGS='--only custom-image'
"""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    found = argparse.ArgumentParser(
        prog="python -m scripts image",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EXAMPLES,
    )
    environments.add_argument(found, CONFIG)
    found.add_argument(
        "--parent-image",
        type=_id("ami"),
        metavar="AMI",
        help="image to build upon (default: ParallelCluster's newest for version and OS)",
    )
    found.add_argument(
        "--bucket", type=_bucket, help="bucket for the component (default: that of the CDK's bootstrap stack)"
    )
    found.add_argument(
        "--subnet",
        type=_id("subnet"),
        metavar="SUBNET",
        help="subnet of the build instance, with a way to the internet (default: one of the default VPC)",
    )
    found.add_argument(
        "--security-group", type=_id("sg"), metavar="GROUP", help="its security group; goes with --subnet"
    )
    return found


def main() -> int:
    """Write what the command line asks for, and return the exit code."""
    arguments_parser = parser()
    arguments = arguments_parser.parse_args()
    environment = arguments.environment
    if bool(arguments.subnet) != bool(arguments.security_group):
        arguments_parser.error("--subnet and --security-group go together: give both, or neither")

    import yaml
    from botocore.exceptions import BotoCoreError, ClientError

    from config.settings import SettingsError, load
    from emulator.aws import EmulatedAws
    from scripts import node_image
    from toolchain.parallelcluster import ParallelCluster

    try:
        settings = load(CONFIG / f"{environment}.yaml")
        place = find_place(settings, arguments)
    except (BotoCoreError, ClientError, NoImageError, SettingsError) as error:
        print(error, file=sys.stderr)
        return 2
    script = node_image.component(settings)
    key = node_image.component_key(script)
    made = node_image.configuration(settings, place, key)
    name = node_image.image_id(settings, made)
    BUILD.mkdir(exist_ok=True)
    (BUILD / f"image-{environment}.sh").write_text(script, encoding="utf-8")
    (BUILD / f"image-{environment}.yaml").write_text(yaml.safe_dump(made, sort_keys=False), encoding="utf-8")
    with EmulatedAws() as aws, ParallelCluster(aws.environment) as parallelcluster:
        verdict = validate(aws, parallelcluster, settings, made, name)
    if not verdict.accepted:
        print(f"ParallelCluster refuses build/image-{environment}.yaml: {verdict.reason}", file=sys.stderr)
        print(
            *(f"  {each.level} {each.validator}: {each.text}" for each in verdict.messages), sep="\n", file=sys.stderr
        )
        return 1
    print(next_steps(environment, settings, place, key, name), end="")
    return 0


def _id(kind: str) -> Callable[[str], str]:
    """Return what checks the id of something in EC2."""

    def check(text: str) -> str:
        if not re.fullmatch(rf"{kind}-([0-9a-f]{{8}}|[0-9a-f]{{17}})", text):
            raise argparse.ArgumentTypeError(f"got {text!r}; allowed: {kind}- and 8 or 17 hexadecimal digits")
        return text

    return check


def _bucket(text: str) -> str:
    """Check the name of a bucket (https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html)."""
    if not re.fullmatch("[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", text):
        raise argparse.ArgumentTypeError(
            f"got {text!r}; allowed: 3 to 63 of a-z, 0-9, '.' and '-', a letter or digit first and last"
        )
    return text
