"""What `pcluster build-image` gets for an image with the Neuron software of a deployment."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import shlex
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.settings import Settings
from scripts.check.preflight.images import SDK_TAG
from scripts.core.errors import UnusableError
from ultracluster.domain import neuron

_NODES = Path(__file__).parents[3] / "nodes"


@dataclass(frozen=True)
class BuildContext:
    """Where an image is built, and on what.

    Attributes:
        parent_image: Id of the image to build on.
        bucket: The bucket that has the component.
        network: Ids of subnet and security group of the build instance; None: the default VPC.
    """

    parent_image: str
    bucket: str
    network: tuple[str, str] | None = None


def release_of(settings: Settings) -> str:
    """Return the release of the Neuron SDK that an image gets.

    Raises:
        UnusableError: There is none.
    """
    sdk = settings.cluster.neuron_sdk
    if sdk is None:
        raise UnusableError(
            "cluster.neuron_sdk: got null; allowed: a release, which is what images are made for here",
            "`pcluster build-image` makes an image of anything else",
        )
    return sdk


def facts(settings: Settings) -> dict[str, str]:
    """Return the arguments of image.sh."""
    sdk = release_of(settings)
    release = neuron.RELEASES[sdk]
    return {
        "sdk": sdk,
        **release.packages(settings.cluster.os, settings.cluster.neuron_driver),
        "python": neuron.SYSTEMS[settings.cluster.os].python,
    }


def component(settings: Settings) -> str:
    """Return the script that EC2 Image Builder runs on the build instance, without arguments, as root."""
    files = base64.encodebytes(_archive(_NODES)).decode()
    arguments = shlex.join(f"{name}={value}" for name, value in facts(settings).items())
    return (
        "#!/bin/bash\n"
        "# Made by `./ultracluster image render`: unpacks nodes, and runs image.sh.\n"
        "set -euo pipefail\n"
        "directory=$(mktemp --directory)\n"
        "base64 --decode <<'FILES' | tar --extract --gzip --directory \"$directory\"\n"
        f"{files}"
        "FILES\n"
        f'bash "$directory/image.sh" {arguments}\n'
        'rm -r "$directory"\n'
    )


def component_key(script: str) -> str:
    """Return the key of a component in its bucket: another script, another key."""
    return f"ultracluster-images/{_digest(script, 16)}.sh"


def build_configuration(settings: Settings, context: BuildContext, key: str) -> dict[str, Any]:
    """Return the configuration of `pcluster build-image`.

    ParallelCluster's official image of the same version may be the parent
    (https://docs.aws.amazon.com/parallelcluster/latest/ug/Build-v3.html, ParentImage), and packages of the system are
    not updated. ParallelCluster's own component runs first. Its last step, RemoveKernelPinAndCleanup, releases the
    kernel that it held, and cleans up; ours comes after it, and the one for tags only when the image is tested
    (aws-parallelcluster 3.16.1, resources/imagebuilder/parallelcluster.yaml and parallelcluster_tag.yaml,
    templates/imagebuilder_stack.py, _add_imagebuilder_components). So image.sh checks itself for a new kernel.
    ParallelCluster lets the build instance read the component (_add_default_instance_role there). The instance is of
    the head node's type, which the Region has.
    """
    network: dict[str, Any] = {}
    if context.network:
        subnet, security_group = context.network
        network = {"SubnetId": subnet, "SecurityGroupIds": [security_group]}
    return {
        "Region": settings.region,
        "Image": {"Tags": _tags(settings.all_tags | {SDK_TAG: release_of(settings)})},
        "Build": {
            "InstanceType": settings.cluster.head_node.instance_type,
            "ParentImage": context.parent_image,
            **network,
            "Components": [{"Type": "script", "Value": f"s3://{context.bucket}/{key}"}],
            "Tags": _tags(settings.all_tags),
        },
    }


def image_id(settings: Settings, configuration: dict[str, Any]) -> str:
    """Return ParallelCluster's name of an image: another configuration, another name."""
    release = release_of(settings).replace(".", "-")
    return f"ultracluster-{settings.cluster.os}-neuron-{release}-{_digest(repr(configuration), 8)}"


def _tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": name, "Value": value} for name, value in tags.items()]


def _archive(directory: Path) -> bytes:
    """Return a tar file of the scripts in a directory, compressed, and the same for the same scripts."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for path in sorted(directory.rglob("*.sh")):
            entry = tarfile.TarInfo(str(path.relative_to(directory)))
            entry.size = path.stat().st_size
            archive.addfile(entry, io.BytesIO(path.read_bytes()))
    return gzip.compress(content.getvalue(), mtime=0)


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
