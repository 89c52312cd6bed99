"""Write what `pcluster build-image` needs to make an image with the Neuron software of a deployment in it.

It writes build/image-ENV.yaml, the configuration, and build/image-ENV.sh, the component that it names: the scripts of
`nodes` in one file, which runs image.sh. ParallelCluster's own schema and validators check the configuration, in an
emulated AWS. Nothing is created in the account: the commands that do are printed.

The account is asked for its number, unless the settings or --bucket tell it, and for ParallelCluster's newest image,
unless --parent-image is given; with both no credentials are needed.

Exit code 0: written and accepted; 1: ParallelCluster rejects the configuration; 2: the settings or arguments cannot be
used, or AWS did not answer.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

from scripts import environments

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "config"
BUILD = ROOT / "build"
EXAMPLES = """\
examples:
  make image ENV=trn1-16
  make image ENV=trn1-16 ARGS='--subnet subnet-0123456789abcdef0 --security-group sg-0123456789abcdef0'
  make image ENV=trn1-16 ARGS='--parent-image ami-0123456789abcdef0 --bucket our-scripts'   # asks no account
"""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    command = argparse.ArgumentParser(
        prog="python -m scripts image",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EXAMPLES,
    )
    environments.add_argument(command, CONFIG)
    command.add_argument(
        "--parent-image",
        type=_id("ami"),
        metavar="AMI",
        help="image to build on (default: ParallelCluster's newest for version and OS)",
    )
    command.add_argument(
        "--bucket", type=_bucket, help="bucket for the component (default: that of the CDK's bootstrap stack)"
    )
    command.add_argument(
        "--subnet",
        type=_id("subnet"),
        metavar="SUBNET",
        help="subnet of the build instance, with a way to the internet (default: one of the default VPC)",
    )
    command.add_argument(
        "--security-group", type=_id("sg"), metavar="GROUP", help="its security group; goes with --subnet"
    )
    return command


def main() -> int:
    """Write what the command line asks for, and return the exit code."""
    command = parser()
    arguments = command.parse_args()
    environment = arguments.environment
    if bool(arguments.subnet) != bool(arguments.security_group):
        command.error("--subnet and --security-group go together: give both, or neither")

    import yaml
    from botocore.exceptions import BotoCoreError, ClientError

    from config.settings import SettingsError, load
    from emulator.aws import EmulatedAws
    from scripts.image import build, configuration
    from toolchain.parallelcluster import ParallelCluster

    try:
        settings = load(CONFIG / f"{environment}.yaml")
        network = (arguments.subnet, arguments.security_group) if arguments.subnet else None
        context = build.find_context(
            settings, parent_image=arguments.parent_image, bucket=arguments.bucket, network=network
        )
    except (BotoCoreError, ClientError, SettingsError, build.NoImageError) as error:
        print(error, file=sys.stderr)
        return 2
    script = configuration.component(settings)
    key = configuration.component_key(script)
    made = configuration.build_configuration(settings, context, key)
    name = configuration.image_id(settings, made)
    BUILD.mkdir(exist_ok=True)
    (BUILD / f"image-{environment}.sh").write_text(script, encoding="utf-8")
    (BUILD / f"image-{environment}.yaml").write_text(yaml.safe_dump(made, sort_keys=False), encoding="utf-8")
    with EmulatedAws() as aws, ParallelCluster(aws.environment) as parallelcluster:
        verdict = build.validate(aws, parallelcluster, settings, made, name)
    if not verdict.accepted:
        print(f"ParallelCluster rejects build/image-{environment}.yaml: {verdict.reason}", file=sys.stderr)
        for each in verdict.messages:
            print(f"  {each.level} {each.validator}: {each.text}", file=sys.stderr)
        return 1
    print(build.next_steps(environment, settings, context, key, name), end="")
    return 0


def _id(kind: str) -> Callable[[str], str]:
    """Return what checks an id of EC2."""

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
