"""Accounts that are spoilt in one way, to see what `make preflight` says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from config.settings import Settings
from emulator import damage, stand_ins
from emulator.aws import EmulatedAws
from emulator.damage import Account


class NothingToSpoilError(ValueError):
    """The settings have nothing that can be spoilt in this way; the message says what they lack."""


Act = Callable[[Account, str], object]


def nothing(_: Account, __: str) -> None:
    """Leave an account as it is."""


def anything(_: Settings) -> str:
    """Fit all settings."""
    return ""


@dataclass(frozen=True)
class Spoil:
    """One way to spoil an account that is ready for a deployment.

    Attributes:
        what: What is wrong with it then, in one line.
        caught_by: Id of the check in `scripts.preflight` that says so.
        after: Spoils it when it is there. Like `before` it gets the account and its target.
        before: Spoils it before anything is there.
        needs: What the settings must have; empty: all settings do.
        target: Finds in the settings what is spoilt; None: they do not have it.
        bootstrapped: Whether it is prepared for the CDK.
    """

    what: str
    caught_by: str
    after: Act = nothing
    before: Act = nothing
    needs: str = ""
    target: Callable[[Settings], str | None] = anything
    bootstrapped: bool = True


@contextmanager
def account(
    aws: EmulatedAws, settings: Settings, spoil: Spoil, bootstrap: Callable[[], object]
) -> Iterator[dict[str, str]]:
    """Make the account of a deployment, spoil it, and yield the environment variables with which to look at it.

    Args:
        aws: An emulated AWS with nothing in it.
        settings: Those of the deployment.
        spoil: What is done to it.
        bootstrap: Prepares it for the CDK.

    Raises:
        NothingToSpoilError: The settings do not fit.
    """
    target = spoil.target(settings)
    if target is None:
        raise NothingToSpoilError(f"nothing to spoil: that needs settings with {spoil.needs}")
    with ExitStack() as stack:
        made = Account(aws, settings, dict(aws.settings), stack)
        spoil.before(made, target)
        stand_ins.create(aws, settings)
        if spoil.bootstrapped:
            bootstrap()
        spoil.after(made, target)
        yield made.environment


def _ssh_key(settings: Settings) -> str | None:
    return settings.cluster.head_node.ssh_key_name


def _reservation(settings: Settings) -> str | None:
    return _reservation_of(settings, "ONDEMAND")


def _block(settings: Settings) -> str | None:
    return _reservation_of(settings, "CAPACITY_BLOCK")


def _reservation_of(settings: Settings, capacity_type: str) -> str | None:
    queues = [queue for queue in settings.cluster.queues if queue.capacity_type == capacity_type]
    named = [resource.capacity_reservation_id for queue in queues for resource in queue.compute_resources]
    return next(filter(None, named), None)


def _vpc(settings: Settings) -> str | None:
    return settings.network.existing.vpc_id if settings.network.existing else None


def _private_subnet(settings: Settings) -> str | None:
    return settings.network.existing.private_subnet_id if settings.network.existing else None


def _new_network(settings: Settings) -> str | None:
    return None if settings.network.existing else ""


def _bucket(settings: Settings) -> str | None:
    return next((link.bucket for link in settings.storage.data_repositories if link.bucket), None)


def _key(settings: Settings) -> str | None:
    return settings.storage.file_system.kms_key_arn


GOOD = Spoil("nothing is wrong with it", "")
SPOILS: Mapping[str, Spoil] = {
    "no-credentials": Spoil("nobody is signed in", "credentials", damage.sign_out),
    "no-read-rights": Spoil("the user may describe stacks, and nothing else", "zone", damage.take_rights),
    "missing-bootstrap": Spoil("the CDK's bootstrap stack is missing", "cdk-bootstrap", bootstrapped=False),
    "wrong-zone": Spoil("the zone does not offer the nodes' instance type", "instance-types", damage.withhold_type),
    "no-quota": Spoil(
        "no Trn instance may run: 8 vCPUs are granted", "quota-trn-on-demand", before=damage.grant_little
    ),
    "no-addresses": Spoil(
        "all Elastic IP addresses are in use",
        "quota-elastic-ips",
        damage.take_addresses,
        needs="a network of its own",
        target=_new_network,
    ),
    "small-reservation": Spoil(
        "the capacity reservation is one instance short",
        "capacity-reservation",
        damage.shrink_reservation,
        needs="capacity_reservation_id in an ONDEMAND queue",
        target=_reservation,
    ),
    "expired-block": Spoil(
        "the Capacity Block ended yesterday",
        "capacity-block",
        damage.end_block,
        needs="capacity_reservation_id in a CAPACITY_BLOCK queue",
        target=_block,
    ),
    "rsa-key": Spoil(
        "the SSH key is of a type that the OS does not take",
        "ssh-key",
        damage.make_rsa_key,
        needs="cluster.head_node.ssh_key_name",
        target=_ssh_key,
    ),
    "name-taken": Spoil("another stack has the cluster's name", "cluster-name", damage.take_name),
    "missing-image": Spoil("ParallelCluster's images are gone", "official-image", damage.remove_images),
    "missing-provider": Spoil("the provider's template is gone", "provider-template", damage.remove_provider),
    "dns-off": Spoil(
        "the existing VPC gives no DNS names", "vpc", damage.switch_dns_off, needs="network.existing", target=_vpc
    ),
    "full-subnet": Spoil(
        "the existing private subnet has 11 addresses",
        "free-addresses",
        damage.shrink_subnet,
        needs="network.existing",
        target=_private_subnet,
    ),
    "no-default-route": Spoil(
        "the existing private subnet has no way out",
        "routes",
        damage.remove_route,
        needs="network.existing",
        target=_private_subnet,
    ),
    "bucket-elsewhere": Spoil(
        "the bucket behind the file system is in another Region",
        "data-bucket",
        damage.move_bucket,
        needs="a bucket in storage.data_repositories",
        target=_bucket,
    ),
    "key-pending-deletion": Spoil(
        "the file system's key is about to be deleted",
        "kms-key",
        damage.schedule_deletion,
        needs="storage.file_system.kms_key_arn",
        target=_key,
    ),
}
"""All of them, by name."""
