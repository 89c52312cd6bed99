"""Make an image with the Neuron software of a deployment in it, so that its nodes start sooner."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode
from scripts.core.text import echo

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


def _where(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say of what and where an image is built."""
    for decorate in (
        click.option("--security-group", metavar="GROUP", help="Its security group; goes with --subnet."),
        click.option(
            "--subnet",
            metavar="SUBNET",
            help="Subnet of the build instance, with a way to the internet; default: one of the default VPC.",
        ),
        click.option("--bucket", help="Bucket for the component; default: that of the CDK's bootstrap stack."),
        click.option(
            "--parent-image",
            metavar="AMI",
            help="Image to build on; default: ParallelCluster's newest for version and OS.",
        ),
    ):
        function = decorate(function)
    return function


def _network(subnet: str | None, security_group: str | None) -> tuple[str, str] | None:
    if bool(subnet) != bool(security_group):
        raise click.UsageError("--subnet and --security-group go together.")
    return (subnet, security_group) if subnet and security_group else None


@click.group("image", cls=options.Group, help=__doc__)
def command() -> None:
    """Group what is done with images."""


@options.subcommand(
    command,
    """Write what `pcluster build-image` needs, and the commands to type.

    It writes build/image-DEPLOYMENT.yaml, the configuration, and build/image-DEPLOYMENT.sh, the component that it
    names: the scripts of `nodes` in one file, which runs image.sh. ParallelCluster's own schema and validators check
    the configuration, in an emulated AWS. Nothing is created in the account. Programs read the files.

    The account is asked for its number, unless the settings or --bucket say it, and for ParallelCluster's newest image,
    unless --parent-image is given; with both no credentials are needed.

    Exit code 0: written and accepted; 1: ParallelCluster rejects the configuration; 2: the settings or arguments cannot
    be used, or AWS did not answer.
    """,
    ("image render research", "to read, or to build by hand"),
    (
        "image render research --subnet subnet-0123456789abcdef0 --security-group sg-0123456789abcdef0",
        "without a default VPC",
    ),
    ("image render research --parent-image ami-01234567 --bucket our-scripts", "asks no account"),
)
@argument.deployment
@_where
def render(
    *,
    deployment: Deployment,
    parent_image: str | None,
    bucket: str | None,
    subnet: str | None,
    security_group: str | None,
) -> int:
    """Write the files, print the commands, and return the exit code."""
    network = _network(subnet, security_group)
    options.check_build()

    from scripts.change.image import build as images

    echo(images.render(deployment, parent_image=parent_image, bucket=bucket, network=network).next_steps(), end="")
    terminal.suggest(f"image build {deployment.name}")
    return ExitCode.DONE


@options.changing
@options.subcommand(
    command,
    """Render, upload the component and start `pcluster build-image`, after a question. AWS then takes an hour or more.

    `pcluster describe-image`, which it names with its arguments, has the state as JSON. What was asked for is in
    build/image-DEPLOYMENT.yaml.

    Exit code: that of `pcluster build-image`; before that 1: ParallelCluster rejects the configuration, or the answer
    was no; 2: the settings or arguments cannot be used, AWS did not answer, or standard input is not a terminal.
    """,
    ("image build research", "an image in the account"),
)
@argument.deployment
@_where
@options.yes
def build(
    *,
    deployment: Deployment,
    parent_image: str | None,
    bucket: str | None,
    subnet: str | None,
    security_group: str | None,
    yes: bool,
) -> int:
    """Start to build an image, and return the exit code."""
    network = _network(subnet, security_group)
    options.check_build()
    terminal.require_answers(given=yes)

    from scripts.change.image import build as images

    image = images.render(deployment, parent_image=parent_image, bucket=bucket, network=network)
    if not yes:
        region = deployment.settings.region
        terminal.confirm(f"Build the image {image.image_id} in {region}, by way of {image.context.bucket}.")
    code = images.start(deployment, image)
    if code == ExitCode.DONE:
        echo(image.following(), end="")
        terminal.suggest(f"plan {deployment.name}", "once cluster.custom_ami names the image")
    return code
