"""The image of the nodes, and what AWS publishes for this version of ParallelCluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from config.sections import ClusterSettings
from scripts.account.deployment import Account, Deployment, filters, tags_of
from scripts.check.preflight.check import check
from scripts.core.aws_errors import code_of, is_denied, is_not_found
from scripts.core.findings import FAIL, PASS, WARN, Finding
from ultracluster.domain.instance_types import architecture

NAME_PARTS: Mapping[str, str] = {
    "alinux2023": "amzn2023-hvm",
    "ubuntu2204": "ubuntu-2204-lts-hvm",
    "ubuntu2404": "ubuntu-2404-lts-hvm",
}
"""Part of the official images' names by OS (aws-parallelcluster 3.16.1, constants.py, OS_TO_IMAGE_NAME_PART_MAP)."""
SDK_TAG = "ultracluster:neuron-sdk"
"""Tag of an image that `./ultracluster image render` made: the release of the Neuron SDK in it."""
_POLICIES = "templates/policies/policies.yaml"
_PUBLISHED = ("templates/custom_resource/cluster.yaml", "layers/aws-parallelcluster/lambda-layer.zip")
"""The provider's template and the layer of its function, below `parallelcluster/VERSION/`.

https://docs.aws.amazon.com/parallelcluster/latest/ug/cfn-provider-stack.html,
https://github.com/aws/aws-parallelcluster/blob/develop/cloudformation/custom_resource/cluster.yaml
"""


@check("official-image", "ParallelCluster's image for version and OS", calls=("ec2:DescribeImages",))
def official_image(deployment: Deployment) -> Finding | None:
    """ParallelCluster would find no image, and reject the cluster."""
    cluster = deployment.settings.cluster
    if cluster.custom_ami:
        return None
    name = official_name(cluster)
    newest = newest_official_image(deployment.account, cluster)
    words = ("--owners", "amazon", "--include-deprecated", "--filters", f"Name=name,Values={name}")
    command = deployment.command("ec2", "describe-images", *words)
    if newest:
        return Finding(PASS, f"{newest['ImageId']}, {newest['Name']}", command=command)
    hint = f"change `cluster.os`, or name an image of your own in `cluster.custom_ami` ({_file(deployment)})"
    return Finding(FAIL, f"Amazon has no image {name} in {deployment.settings.region}", hint, command)


@check("custom-image", "Image of your own", calls=("ec2:DescribeImages",))
def custom_image(deployment: Deployment) -> Iterator[Finding]:
    """ParallelCluster would reject the cluster, or its nodes would never join.

    Check all that ParallelCluster requires of an image. Its warnings count, as they stop our deployments.
    """
    image_id = deployment.settings.cluster.custom_ami
    if image_id is None:
        return
    command = deployment.command("ec2", "describe-images", "--image-ids", image_id)
    answer = deployment.account.find("ec2", "describe_images", ImageIds=[image_id])
    if answer is None or not answer["Images"]:
        sentence = f"this account sees no image {image_id} in {deployment.settings.region}"
        hint = f"change `cluster.custom_ami` in {_file(deployment)}, or have the image copied or shared there"
        yield Finding(FAIL, sentence, hint, command)
        return
    [image] = answer["Images"]
    problems = list(_problems(deployment, image))
    if not any(each.status is FAIL for each in problems):
        problems.append(Finding(PASS, f"{image_id} ({image['Name']}) fits version, OS and volumes"))
    for each in problems:
        yield each.of(each.subject, command)


@check("provider-template", "Provider of ParallelCluster's custom resource")
def provider_template(deployment: Deployment) -> Iterator[Finding]:
    """The cluster stack would fail at its provider, after network and file system are being billed.

    Find what AWS publishes of the version in the Region, without credentials.

    Without them no permission can be missing: S3 answers 403 for an object that does not exist, and 404 if there is not
    even the bucket. With credentials 403 could as well mean that these lack s3:GetObject.
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html. That the bucket is public:
    https://docs.aws.amazon.com/parallelcluster/latest/ug/api-reference-v3.html
    """
    from botocore.exceptions import ClientError

    region, version = deployment.settings.region, deployment.settings.cluster.parallelcluster_version
    bucket = f"{region}-aws-parallelcluster"
    client = _anonymous_s3(region)
    for path in (*_PUBLISHED, *([_POLICIES] if deployment.settings.roles is not None else [])):
        key = f"parallelcluster/{version}/{path}"
        words = ("s3api", "head-object", "--no-sign-request", "--bucket", bucket, "--key", key)
        command, subject = deployment.command(*words), path.rpartition("/")[2]
        try:
            client.head_object(Bucket=bucket, Key=key)
        except ClientError as error:
            if not (is_denied(error) or is_not_found(error)):
                raise
            sentence = f"AWS has not published s3://{bucket}/{key} (S3 answers {code_of(error)})"
            hint = f"ParallelCluster {version} cannot be deployed in {region}: change `region` in {_file(deployment)}"
            yield Finding(FAIL, sentence, hint, command, subject)
        else:
            yield Finding(PASS, f"s3://{bucket}/{key} exists", command=command, subject=subject)


def official_name(cluster: ClusterSettings) -> str:
    """Return the pattern that the names of ParallelCluster's own images for version and OS match."""
    processors = architecture(cluster.head_node.instance_type)
    return f"aws-parallelcluster-{cluster.parallelcluster_version}-{NAME_PARTS[cluster.os]}-{processors}*"


def newest_official_image(account: Account, cluster: ClusterSettings) -> Mapping[str, Any] | None:
    """Find the image as ParallelCluster does (pcluster/aws/ec2.py, get_official_image_id)."""
    wanted = filters({"name": [official_name(cluster)], "state": ["available"]})
    images = account.list("ec2", "describe_images", Owners=["amazon"], Filters=wanted, IncludeDeprecated=True)
    return max(images, key=lambda image: str(image["CreationDate"]), default=None)


def _problems(deployment: Deployment, image: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield why ParallelCluster could not use the image, or would not find its software in it.

    Sources: aws-parallelcluster 3.16.1, validators/cluster_validators.py (CustomAmiTagValidator,
    RootVolumeSizeValidator) and validators/ec2_validators.py (AmiOsCompatibleValidator).
    """
    cluster = deployment.settings.cluster
    tags = tags_of(image)
    processors = architecture(cluster.head_node.instance_type)
    program = "pcluster build-image" if cluster.neuron_sdk is None else f"./ultracluster image render {deployment.name}"
    build = f"build one for {cluster.os} and {processors} with `{program}`"
    if image["State"] != "available":
        yield Finding(
            FAIL,
            f"the image is {image['State']}; allowed: available",
            "wait until it is, some minutes to an hour",
            subject="state",
        )
    if image["Architecture"] != processors:
        sentence = f"the image is for {image['Architecture']}; allowed: {processors}"
        yield Finding(FAIL, sentence, build, subject="architecture")
    wanted_tags = {"version": cluster.parallelcluster_version, "build_status": "available", "os": cluster.os}
    for name, wanted in wanted_tags.items():
        value = tags.get(f"parallelcluster:{name}", "missing")
        if value != wanted:
            hint = f"{build}; tag it yourself if it is a copy of such an image that lost its tags"
            yield Finding(
                FAIL, f"parallelcluster:{name} of the image is {value}; allowed: {wanted}", hint, subject=name
            )
    size = _root_volume_gib(image)
    volumes = {f"cluster.queues[{i}].root_volume_gib": queue.root_volume_gib for i, queue in enumerate(cluster.queues)}
    for path, gib in {"cluster.head_node.root_volume_gib": cluster.head_node.root_volume_gib, **volumes}.items():
        if gib is not None and gib < size:
            sentence = f"{path} is {gib}; allowed: {size}, the size of the image, or more"
            yield Finding(FAIL, sentence, f"change it in {_file(deployment)}", subject=path)
    sdk = tags.get(SDK_TAG, cluster.neuron_sdk)
    if cluster.neuron_sdk is not None and sdk != cluster.neuron_sdk:
        sentence = f"the image has the Neuron SDK {sdk}, so each node installs {cluster.neuron_sdk} when it starts"
        yield Finding(WARN, sentence, build, subject="neuron-sdk")


def _root_volume_gib(image: Mapping[str, Any]) -> int:
    devices = {each["DeviceName"]: each for each in image["BlockDeviceMappings"]}
    return int(devices[image["RootDeviceName"]]["Ebs"]["VolumeSize"])


def _anonymous_s3(region: str) -> Any:
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    config = Config(signature_version=UNSIGNED, connect_timeout=3, read_timeout=10)
    return boto3.Session().client("s3", region_name=region, config=config)


def _file(deployment: Deployment) -> str:
    return deployment.file


CHECKS = (official_image, custom_image, provider_template)
