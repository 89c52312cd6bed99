"""Emulated accounts for a deployment: what they hold, the way into them, and the one of `./ultracluster emulate`."""

from __future__ import annotations

import shlex
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from emulator import prerequisites
from emulator.aws import ACCOUNT, EmulatedAws
from emulator.machinery import Machinery
from emulator.machines import image, support
from emulator.machines.support import MachineError
from emulator.prerequisites import Bootstrap, ExistingNetwork, Prerequisites, PublishedVersion, ReservationPrerequisite
from scripts.core.clock import LONGEST_PAUSE
from scripts.core.environments import ROOT, was_built
from scripts.core.errors import OperationError
from scripts.core.terminal import Say
from scripts.emulated.references import references
from toolchain.bootstrap import assets_bucket, newest_version, version_parameter
from toolchain.parallelcluster import PYTHON
from ultracluster.domain.instance_types import architecture
from ultracluster.domain.overrides import at
from ultracluster.domain.parallelcluster_versions import VERSIONS

if TYPE_CHECKING:
    from config.sections import ClusterSettings, NetworkSettings
    from config.settings import Settings


TRAINING: Final = ROOT / ".venv-training"
"""The environment of `make setup-training`, in which the training program runs on CPUs."""
_SECONDS_OF_SILENCE: Final = 1.0
_MAKING: Final = "Making the root directory of nodes in {}, once: Debian with Slurm, 400 MB, half a minute or more ..."


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
        published=published(),
        os=cluster.os,
        architecture=architecture(cluster.head_node.instance_type),
        existing=references(settings),
        munge_key_secret_arn=cluster.munge_key_secret_arn,
        permissions_boundary_arn=_boundary(settings),
        file_system_key_id=_key_id(file_system.kms_key_arn),
        network=_network(settings.network),
        reservations=_reservations(cluster),
    )


def published() -> tuple[PublishedVersion, ...]:
    """Return the versions of ParallelCluster that AWS publishes here: all that a cluster may have."""
    return tuple(
        PublishedVersion(each.version, each.root_volume_gib, each.lambda_runtime) for each in VERSIONS.values()
    )


def create_prerequisites(aws: EmulatedAws, settings: Settings) -> None:
    """Make what a deployment expects, but for the CDK's bootstrap stack.

    What is in a network is made in the one that settings name as existing, or later by `create_in_subnet`.
    """
    prerequisites.create(aws, prerequisites_of(settings))


def create_in_subnet(aws: EmulatedAws, settings: Settings, subnet_id: str) -> None:
    """Make what settings name as existing in the network that an earlier deployment of theirs has made."""
    if settings.network.existing is None:
        prerequisites.create_in_subnet(aws, prerequisites_of(settings), subnet_id)


def bootstrap(aws: EmulatedAws, settings: Settings) -> None:
    """Leave what a deployment needs of the CDK's bootstrap stack, in a moment instead of seconds."""
    prerequisites.bootstrap(aws, settings.region, prerequisites_of(settings).bootstrap)


@dataclass(frozen=True)
class Account:
    """An emulated AWS that runs.

    Attributes:
        aws: The account.
        machines: Whether the nodes of clusters run in it.
    """

    aws: EmulatedAws
    machines: bool


@contextmanager
def account(say: Say, *, speed: Literal["fast", "real"] = "fast", nodes: bool = True) -> Iterator[Account]:
    """Start an emulated AWS, in which nodes run if they are wanted and this computer can run any.

    Raises:
        OperationError: What nodes start from cannot be made.
    """
    machinery = None
    if nodes and (reason := support.reason()):
        say(reason)
    elif nodes:
        machinery = Machinery(machine_image(say), borrowed())
        if warning := support.warning(machinery.image):
            say(warning)
    with EmulatedAws(speed=speed, machinery=machinery) as aws:
        yield Account(aws, machines=machinery is not None)


def machine_image(say: Say) -> Path:
    """Return the root directory that nodes start from; if it has to be made, say where and how long that takes."""
    started = time.monotonic()
    telling = threading.Timer(_SECONDS_OF_SILENCE, say, [_MAKING.format(image.default_cache())])
    telling.start()
    try:
        made = image.prepare(say=say)
    except MachineError as error:
        raise OperationError(f"the root directory of nodes could not be made: {error}") from None
    finally:
        telling.cancel()
    if (seconds := time.monotonic() - started) > _SECONDS_OF_SILENCE:
        say(f"It is there after {seconds:.0f} s, and stays there.")
    return made


def borrowed() -> tuple[Path, ...]:
    """Return what nodes borrow from this computer for PyTorch: .venv-training and its Python, if that is built."""
    if not was_built(TRAINING.name):
        return ()
    return (TRAINING, (TRAINING / "bin/python").resolve().parents[1])


def variables(region: str) -> dict[str, str]:
    """Return further variables for commands on an emulated AWS: its Region, and that it is quick."""
    return {"AWS_REGION": region, "AWS_DEFAULT_REGION": region, LONGEST_PAUSE: "0.2"}


def exports(environment: Mapping[str, str], region: str) -> list[str]:
    """Return what to type in another shell, so that `aws`, `cdk`, `pcluster` and `make` talk to an emulated AWS."""
    given = [f"export {name}={shlex.quote(value)}" for name, value in {**environment, **variables(region)}.items()]
    path = ":".join(shlex.quote(str(program.parent)) for program in (Path(sys.executable), PYTHON))
    return [*given, f"export PATH={path}:$PATH"]


def reason_to_stay(settings: Settings, resource_type: str, name: str) -> str:
    """Return why AWS, too, keeps this resource after everything was destroyed; empty: it does not."""
    if resource_type == "AWS::S3::Bucket" and name.startswith("parallelcluster-") and name.endswith("-do-not-delete"):
        return "ParallelCluster's own, one in each Region"
    functions = (f"/aws/lambda/{settings.name}-", "/aws/lambda/pcluster-")
    if resource_type == "AWS::Logs::LogGroup" and name.startswith(functions):
        return "the log of a Lambda function, which outlives it"
    if resource_type == "AWS::Logs::LogGroup" and name == f"/ultracluster/{settings.name}/commands":
        return "the outputs of exec and submit, for a week"
    if resource_type == "AWS::Logs::LogGroup" and settings.cluster.monitoring.retain_logs:
        return "kept by cluster.monitoring.retain_logs"
    return ""


def _boundary(settings: Settings) -> str | None:
    """Return the policy that bounds roles, where settings or overrides name one."""
    overridden = at(settings.cluster.overrides, ("Iam", "PermissionsBoundary"))
    return overridden if isinstance(overridden, str) else settings.permissions_boundary_arn


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
