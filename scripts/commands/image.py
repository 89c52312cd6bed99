"""Make an image with the Neuron software of a deployment in it, so that its nodes start sooner."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from scripts import options, terminal
from scripts.errors import ExitCode, OperationError

if TYPE_CHECKING:
    from scripts.deployment import Deployment
    from scripts.image.build import ImageBuild


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


@click.group("image", cls=options.Group, help=__doc__)
def command() -> None:
    """Group what is done with images."""


@options.subcommand(
    command,
    """Write what `pcluster build-image` needs, and the commands to type.

    It writes build/image-DEPLOYMENT.yaml, the configuration, and build/image-DEPLOYMENT.sh, the component that it
    names: the scripts of `nodes` in one file, which runs image.sh. ParallelCluster's own schema and validators check
    the configuration, in an emulated AWS. Nothing is created in the account.

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
@options.deployment
@_where
def render(*, deployment: Deployment, **where: str | None) -> int:
    """Write the files, print the commands, and return the exit code."""
    print(_render(deployment, **where).next_steps(), end="")
    return ExitCode.DONE


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
@options.deployment
@_where
@options.yes
def build(*, deployment: Deployment, yes: bool, **where: str | None) -> int:
    """Start to build an image, and return the exit code."""
    terminal.require_answers(given=yes)
    image = _render(deployment, **where)
    bucket = image.context.bucket
    if not yes:
        terminal.confirm(f"Build the image {image.image_id} in {deployment.settings.region}, by way of {bucket}.")
    script = options.BUILD / f"image-{deployment.environment}.sh"
    deployment.account.client("s3").upload_file(str(script), bucket, image.key)
    code = subprocess.run(image.commands()["build"], cwd=options.ROOT, check=False).returncode
    if code == ExitCode.DONE:
        print(image.following(), end="")
    return code


def _render(
    deployment: Deployment,
    *,
    parent_image: str | None,
    bucket: str | None,
    subnet: str | None,
    security_group: str | None,
) -> ImageBuild:
    """Write component and configuration, and let ParallelCluster check the latter.

    Raises:
        UsageError: A subnet without a security group, or the other way round.
        UnusableError: There is no image to build on, or no bucket.
        OperationError: ParallelCluster rejects the configuration.
    """
    if bool(subnet) != bool(security_group):
        raise click.UsageError("--subnet and --security-group go together.")

    import yaml

    from emulator.aws import EmulatedAws
    from scripts.image import build as images
    from scripts.image import configuration
    from toolchain.parallelcluster import ParallelCluster

    settings, name = deployment.settings, deployment.environment
    network = (subnet, security_group) if subnet and security_group else None
    context = images.find_context(settings, parent_image=parent_image, bucket=bucket, network=network)
    script = configuration.component(settings)
    key = configuration.component_key(script)
    document = configuration.build_configuration(settings, context, key)
    image_id = configuration.image_id(settings, document)
    options.BUILD.mkdir(exist_ok=True)
    (options.BUILD / f"image-{name}.sh").write_text(script, encoding="utf-8")
    (options.BUILD / f"image-{name}.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    with EmulatedAws() as aws, ParallelCluster(aws.environment) as parallelcluster:
        verdict = images.validate(aws, parallelcluster, settings, document, image_id)
    if not verdict.accepted:
        lines = [f"  {each.level} {each.validator}: {each.text}" for each in verdict.messages]
        raise OperationError("\n".join([f"ParallelCluster rejects build/image-{name}.yaml: {verdict.reason}", *lines]))
    return images.ImageBuild(name, settings, context, key, image_id)
