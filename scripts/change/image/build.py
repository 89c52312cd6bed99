"""Where an image is built, whether ParallelCluster accepts its configuration, and the commands that build it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

import yaml

from config.settings import Settings
from scripts.account.deployment import Account, Deployment
from scripts.change.image import configuration as configurations
from scripts.change.image.configuration import BuildContext
from scripts.check.preflight.images import newest_official_image, official_name
from scripts.core import options
from scripts.core.errors import ENDED, OperationError, UnusableError
from scripts.core.interrupts import changing, run
from scripts.core.text import echo
from scripts.emulated import EmulatedAws
from toolchain.bootstrap import assets_bucket
from toolchain.parallelcluster import DryRun, ParallelCluster
from ultracluster.domain.parallelcluster_versions import PINNED


def find_context(
    settings: Settings, *, parent_image: str | None, bucket: str | None, network: tuple[str, str] | None
) -> BuildContext:
    """Return where the image is built; the account is asked for what is not given.

    Args:
        settings: Those of the deployment.
        parent_image: Id of the image to build on; None: ParallelCluster's newest for version and OS.
        bucket: The bucket for the component; None: that of the CDK's bootstrap stack.
        network: Ids of subnet and security group of the build instance; None: the default VPC.

    Raises:
        UnusableError: Amazon has no image of ParallelCluster's for version and OS, or the build instance could not read
            the CDK's bucket.
    """
    aws = Account(settings.region)
    if not bucket and settings.bootstrap.kms_key_arn:
        raise UnusableError(
            "The build instance may not decrypt the CDK's bucket (`bootstrap.kms_key_arn`)",
            "name another bucket with --bucket, without a key of yours",
        )
    if not bucket:
        account = settings.account or str(aws.ask("sts", "get_caller_identity")["Account"])
        bucket = assets_bucket(settings.bootstrap, account, settings.region)
    if not parent_image:
        image = newest_official_image(aws, settings.cluster)
        if image is None:
            raise UnusableError(
                f"Amazon has no image {official_name(settings.cluster)} in {settings.region}",
                "change `cluster.os`, or name one with --parent-image",
            )
        parent_image = str(image["ImageId"])
    return BuildContext(parent_image, bucket, network)


def validate(
    aws: EmulatedAws, parallelcluster: ParallelCluster, settings: Settings, configuration: dict[str, Any], name: str
) -> DryRun:
    """Validate a configuration by ParallelCluster's own code, in an emulated account that has what it names.

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


@dataclass(frozen=True)
class ImageBuild:
    """An image whose component and configuration are written to build/, and what to type to build it."""

    deployment_name: str
    settings: Settings
    context: BuildContext
    key: str
    image_id: str

    def commands(self) -> dict[str, tuple[str, ...]]:
        """Return the commands that build the image, by what they do."""
        pcluster, region, name = ".venv-pcluster/bin/pcluster", self.settings.region, self.deployment_name
        image = ("--region", region, "--image-id", self.image_id)
        object_url = f"s3://{self.context.bucket}/{self.key}"
        stream = f"{self.settings.cluster.parallelcluster_version}/1"
        return {
            "upload": ("aws", "s3", "cp", f"build/image-{name}.sh", object_url, "--region", region),
            "build": (pcluster, "build-image", *image, "--image-configuration", f"build/image-{name}.yaml"),
            "follow": (pcluster, "describe-image", *image),
            "failure": (pcluster, "get-image-log-events", *image, "--log-stream-name", stream),
            "delete": (pcluster, "delete-image", *image),
            "check": ("./ultracluster", "preflight", name, "--only", "custom-image"),
        }

    def next_steps(self) -> str:
        """Return what to type to build the image."""
        words, cluster, name = self.commands(), self.settings.cluster, self.deployment_name
        return f"""\
Wrote build/image-{name}.sh and build/image-{name}.yaml: Neuron SDK {cluster.neuron_sdk} for \
{cluster.os}, on {self.context.parent_image}. ParallelCluster accepts it.

`./ultracluster image build {name}` does the first two steps. By hand, in this directory, after
`. .venv/bin/activate`, which has the Node that pcluster needs:

1. Upload the component:
   {shlex.join(words["upload"])}
2. Build the image:
   {shlex.join(words["build"])}
3. {self.following()}"""

    def following(self) -> str:
        """Return what to type while and after an image is built."""
        words = self.commands()
        return f"""\
Follow it, until imageBuildStatus is BUILD_COMPLETE:
   {shlex.join(words["follow"])}
   If it fails, read why:
   {shlex.join(words["failure"])}
   and delete what is left, the log too, before you build again:
   {shlex.join(words["delete"])}
4. Name ec2AmiInfo.amiId of that answer as `cluster.custom_ami` in the settings file, and check it:
   {shlex.join(words["check"])}
"""


def render(
    deployment: Deployment, *, parent_image: str | None, bucket: str | None, network: tuple[str, str] | None
) -> ImageBuild:
    """Write component and configuration to build/, and let ParallelCluster check the latter.

    Raises:
        UnusableError: There is no image to build on, or no bucket, or the settings have no Neuron SDK, or another
            version of ParallelCluster than the package here, whose number the image would bear.
        OperationError: ParallelCluster rejects the configuration.
    """
    settings, name = deployment.settings, deployment.name
    version = settings.cluster.parallelcluster_version
    if version != PINNED:
        raise UnusableError(
            f"cluster.parallelcluster_version: got {version}; allowed: {PINNED}, whose package builds images here",
            f"render and build the image with a checkout whose requirements-pcluster.txt pins {version}",
        )
    configurations.release_of(settings)
    context = find_context(settings, parent_image=parent_image, bucket=bucket, network=network)
    script = configurations.component(settings)
    key = configurations.component_key(script)
    document = configurations.build_configuration(settings, context, key)
    image_id = configurations.image_id(settings, document)
    options.BUILD.mkdir(exist_ok=True)
    (options.BUILD / f"image-{name}.sh").write_text(script, encoding="utf-8")
    (options.BUILD / f"image-{name}.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    with EmulatedAws() as aws, ParallelCluster(aws.environment) as parallelcluster:
        verdict = validate(aws, parallelcluster, settings, document, image_id)
    if not verdict.accepted:
        lines = [f"  {each.level} {each.validator}: {each.text}" for each in verdict.messages]
        raise OperationError("\n".join([f"ParallelCluster rejects build/image-{name}.yaml: {verdict.reason}", *lines]))
    return ImageBuild(name, settings, context, key, image_id)


def start(deployment: Deployment, image: ImageBuild) -> int:
    """Upload the component, start `pcluster build-image`, and return its exit code."""
    words = image.commands()
    script = options.BUILD / f"image-{deployment.name}.sh"
    with changing("PutObject"):
        deployment.account.client("s3").upload_file(str(script), image.context.bucket, image.key)
    code = run(words["build"], options.ROOT)
    if code in ENDED:
        echo(f"If the build has started, it continues: {shlex.join(words['follow'])}", err=True)
    return code
