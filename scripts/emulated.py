"""What the commands share that start an emulated AWS: what it holds for a deployment, and the way into it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from emulator import prerequisites
from emulator.aws import ACCOUNT
from emulator.prerequisites import Bootstrap, ExistingNetwork, Prerequisites, ReservationPrerequisite
from toolchain.bootstrap import assets_bucket, newest_version, version_parameter
from toolchain.parallelcluster import PYTHON

if TYPE_CHECKING:
    from config.sections import ClusterSettings, NetworkSettings
    from config.settings import Settings
    from emulator.aws import EmulatedAws


def prerequisites_of(settings: Settings) -> Prerequisites:
    """Return what a deployment expects of its account."""
    cluster, file_system, bootstrap = settings.cluster, settings.storage.file_system, settings.bootstrap
    return Prerequisites(
        region=settings.region,
        zone_id=settings.zone_id,
        parallelcluster_version=cluster.parallelcluster_version,
        cluster_name=settings.cluster_spec.name,
        instance_type=cluster.queues[0].compute_resources[0].instance_type,
        bootstrap=Bootstrap(
            version_parameter(bootstrap),
            str(newest_version()),
            assets_bucket(bootstrap, ACCOUNT, settings.region),
            _key_id(bootstrap.kms_key_arn),
        ),
        custom_image=(cluster.custom_ami, cluster.os) if cluster.custom_ami else None,
        key_pair=cluster.head_node.ssh_key_name,
        file_system_key_id=_key_id(file_system.kms_key_arn),
        buckets=_names(link.bucket for link in settings.storage.data_repositories),
        network=_network(settings.network),
        placement_groups=_names(queue.existing_placement_group for queue in cluster.queues),
        reservations=_reservations(cluster),
    )


def create_prerequisites(aws: EmulatedAws, settings: Settings) -> None:
    """Make what a deployment expects, but for the CDK's bootstrap stack."""
    prerequisites.create(aws, prerequisites_of(settings))


def bootstrap(aws: EmulatedAws, settings: Settings) -> None:
    """Leave what a deployment needs of the CDK's bootstrap stack, in a moment instead of seconds."""
    prerequisites.bootstrap(aws, settings.region, prerequisites_of(settings).bootstrap)


def exports(environment: Mapping[str, str], region: str) -> list[str]:
    """Return what to type in another shell, so that `aws`, `cdk`, `pcluster` and `make` talk to an emulated AWS."""
    regions = {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}  # boto3 and version 1 of `aws` know the second
    path = f"{Path(sys.executable).parent}:{PYTHON.parent}:$PATH"
    return [f"export {name}={value}" for name, value in {**environment, **regions, "PATH": path}.items()]


def wait_for_ctrl_c() -> NoReturn:
    """Wait for Ctrl-C, and raise KeyboardInterrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs in the background ignore it
    while True:
        signal.pause()


def reason_to_stay(settings: Settings, resource_type: str, name: str) -> str:
    """Return why AWS, too, keeps this resource after everything was destroyed; empty: it does not."""
    if resource_type == "AWS::S3::Bucket" and name.startswith("parallelcluster-") and name.endswith("-do-not-delete"):
        return "ParallelCluster's own, one in each Region"
    functions = (f"/aws/lambda/{settings.name}-", "/aws/lambda/pcluster-")
    if resource_type == "AWS::Logs::LogGroup" and name.startswith(functions):
        return "the log of a Lambda function, which outlives it"
    if resource_type == "AWS::Logs::LogGroup" and settings.cluster.monitoring.retain_logs:
        return "kept by cluster.monitoring.retain_logs"
    return ""


def _key_id(arn: str | None) -> str | None:
    return arn.rpartition("/")[2] if arn else None


def _network(network: NetworkSettings) -> ExistingNetwork | None:
    existing = network.existing
    if existing is None:
        return None
    return ExistingNetwork(
        existing.vpc_id,
        network.cidr,
        existing.public_subnet_id,
        network.public_subnet_cidr,
        existing.private_subnet_id,
        network.private_subnet_cidr,
    )


def _names(names: Iterable[str | None]) -> tuple[str, ...]:
    """Return each name once."""
    return tuple(dict.fromkeys(filter(None, names)))


def _reservations(cluster: ClusterSettings) -> tuple[ReservationPrerequisite, ...]:
    """Return the reservations that the queues name, just large enough for all that use them."""
    reservations: dict[str, ReservationPrerequisite] = {}
    for queue in cluster.queues:
        for resource in queue.compute_resources:
            for name in _names((resource.capacity_reservation_id, resource.capacity_reservation_group_arn)):
                is_block = queue.capacity_type == "CAPACITY_BLOCK"
                new = ReservationPrerequisite(name, resource.instance_type, 0, is_block, queue.existing_placement_group)
                used = reservations.get(name, new)
                reservations[name] = replace(used, count=used.count + resource.max_count)
    return tuple(reservations.values())
