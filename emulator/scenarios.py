"""Accounts with one thing wrong, each for one check of `./ultracluster preflight`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from emulator import prerequisites
from emulator.aws import EmulatedAws
from emulator.prerequisites import Prerequisites
from emulator.resources import make_bucket

_OTHER_REGION = "eu-west-1"
_TRN_VCPUS = {"ServiceCode": "ec2", "QuotaCode": "L-2C3B7624"}
_ADDRESSES = ("ec2", "L-0263D0A3")
_NO_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}


class NotApplicableError(ValueError):
    """The deployment has nothing that the scenario is about; the message says what it lacks."""


@dataclass(frozen=True)
class ScenarioAccount:
    """The emulated account of a deployment, with the environment variables of its user, and what ends with it."""

    aws: EmulatedAws
    prerequisites: Prerequisites
    environment: dict[str, str]
    stack: ExitStack

    def client(self, service: str) -> Any:
        """Return a client of a service in the deployment's Region."""
        return self.aws.client(service, self.prerequisites.region)


Change = Callable[[ScenarioAccount, str], object]
Target = Callable[[Prerequisites], str | None]


@dataclass(frozen=True)
class Scenario:
    """One thing that is wrong with an account that is ready for a deployment otherwise.

    Attributes:
        what: What is wrong, in one line.
        caught_by: Id of the check in `scripts.check.preflight` that says so.
        after: Makes it wrong when everything exists. Like `before` it gets the account and the target.
        before: Makes it wrong before anything exists.
        needs: What the settings must have; empty: all settings do.
        target: Finds what is concerned; None: the deployment does not have it.
        bootstrapped: Whether the account is bootstrapped for the CDK.
    """

    what: str
    caught_by: str
    after: Change = lambda account, target: None
    before: Change = lambda account, target: None
    needs: str = ""
    target: Target = lambda wanted: ""
    bootstrapped: bool = True


@contextmanager
def account(
    aws: EmulatedAws, wanted: Prerequisites, scenario: Scenario, bootstrap: Callable[[], object]
) -> Iterator[dict[str, str]]:
    """Make the account of a scenario, and yield the environment variables of its user.

    Args:
        aws: An emulated AWS with nothing in it.
        wanted: What the deployment expects.
        scenario: What is wrong with the account.
        bootstrap: Called to bootstrap it for the CDK.

    Raises:
        NotApplicableError: The deployment has nothing that the scenario is about.
    """
    target = scenario.target(wanted)
    if target is None:
        raise NotApplicableError(f"the scenario needs settings with {scenario.needs}")
    with ExitStack() as stack:
        made = ScenarioAccount(aws, wanted, dict(aws.settings), stack)
        scenario.before(made, target)
        prerequisites.create(aws, wanted)
        if scenario.bootstrapped:
            bootstrap()
        scenario.after(made, target)
        yield made.environment


def _remove_permissions(account: ScenarioAccount, _: str) -> None:
    allowed = {"Effect": "Allow", "Action": "cloudformation:DescribeStacks", "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [allowed]}
    account.environment.update(account.stack.enter_context(account.aws.restricted(policy)))


def _withhold_type(account: ScenarioAccount, _: str) -> None:
    wanted = account.prerequisites
    account.aws.inject("offering", f"{wanted.zone_id}/{wanted.instance_type}")


def _use_up_addresses(account: ScenarioAccount, __: str) -> None:
    for _ in range(prerequisites.RAISED_QUOTAS[_ADDRESSES]):
        account.client("ec2").allocate_address(Domain="vpc")


def _shrink_reservation(account: ScenarioAccount, reservation_id: str) -> None:
    _remake_reservation(account, reservation_id, lambda old: {"InstanceCount": old["TotalInstanceCount"] - 1})


def _end_block(account: ScenarioAccount, reservation_id: str) -> None:
    now = datetime.now(UTC)
    period = {"StartDate": now - timedelta(days=15), "EndDate": now - timedelta(days=1)}
    _remake_reservation(account, reservation_id, lambda _: period)


def _remake_reservation(
    account: ScenarioAccount, reservation_id: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> None:
    """Put another reservation in the place of one, under the same id."""
    ec2 = account.client("ec2")
    [old] = ec2.describe_capacity_reservations(CapacityReservationIds=[reservation_id])["CapacityReservations"]
    arguments = {
        **{key: old[key] for key in ("InstanceType", "InstancePlatform", "AvailabilityZoneId")},
        "InstanceMatchCriteria": old["InstanceMatchCriteria"],
        "InstanceCount": old["TotalInstanceCount"],
        **change(old),
    }
    ec2.create_capacity_reservation(**arguments, **_tagged("capacity-reservation", reservation_id, old["Tags"]))


def _make_rsa_key(account: ScenarioAccount, name: str) -> None:
    account.client("ec2").delete_key_pair(KeyName=name)
    account.client("ec2").create_key_pair(KeyName=name, KeyType="rsa")


def _use_name(account: ScenarioAccount, _: str) -> None:
    resource = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "somebody else's"}}
    account.client("cloudformation").create_stack(
        StackName=account.prerequisites.cluster_name, TemplateBody=json.dumps({"Resources": {"Parameter": resource}})
    )


def _remove_images(account: ScenarioAccount, _: str) -> None:
    ec2 = account.client("ec2")
    for image in ec2.describe_images(Owners=["amazon"])["Images"]:
        ec2.deregister_image(ImageId=image["ImageId"])


def _remove_provider(account: ScenarioAccount, _: str) -> None:
    version = account.prerequisites.parallelcluster_version
    account.client("s3").delete_object(
        Bucket=f"{account.prerequisites.region}-aws-parallelcluster",
        Key=f"parallelcluster/{version}/templates/custom_resource/cluster.yaml",
    )


def _shrink_subnet(account: ScenarioAccount, subnet_id: str) -> None:
    ec2 = account.client("ec2")
    [old] = ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"]
    table = _route_table(account, subnet_id)
    [association] = [each for each in table["Associations"] if each.get("SubnetId") == subnet_id]
    ec2.disassociate_route_table(AssociationId=association["RouteTableAssociationId"])
    ec2.delete_subnet(SubnetId=subnet_id)
    ec2.create_subnet(
        VpcId=old["VpcId"],
        CidrBlock=f"{old['CidrBlock'].partition('/')[0]}/28",
        AvailabilityZoneId=old["AvailabilityZoneId"],
        **_tagged("subnet", subnet_id, old["Tags"]),
    )
    ec2.associate_route_table(RouteTableId=table["RouteTableId"], SubnetId=subnet_id)


def _remove_route(account: ScenarioAccount, subnet_id: str) -> None:
    table_id = _route_table(account, subnet_id)["RouteTableId"]
    account.client("ec2").delete_route(RouteTableId=table_id, DestinationCidrBlock="0.0.0.0/0")


def _route_table(account: ScenarioAccount, subnet_id: str) -> dict[str, Any]:
    inside = [{"Name": "association.subnet-id", "Values": [subnet_id]}]
    [table] = account.client("ec2").describe_route_tables(Filters=inside)["RouteTables"]
    return dict(table)


def _move_bucket(account: ScenarioAccount, name: str) -> None:
    account.client("s3").delete_bucket(Bucket=name)
    make_bucket(account.aws.client("s3", _OTHER_REGION), name, _OTHER_REGION)


def _tagged(resource_type: str, chosen_id: str, tags: list[dict[str, str]]) -> dict[str, Any]:
    """Return tags with the one that chooses an id here, which only some resources keep."""
    others = [tag for tag in tags if tag["Key"] != "_custom_id_"]
    listed = [*others, {"Key": "_custom_id_", "Value": chosen_id}]
    return {"TagSpecifications": [{"ResourceType": resource_type, "Tags": listed}]}


def _reservation(wanted: Prerequisites, *, is_block: bool = False) -> str | None:
    named = [each.name for each in wanted.reservations if each.is_block == is_block]
    return next((name for name in named if not name.startswith("arn:")), None)


def _private_subnet(wanted: Prerequisites) -> str | None:
    return wanted.network.private_subnet_id if wanted.network else None


GOOD = Scenario("nothing is wrong with it", "")
SCENARIOS: Mapping[str, Scenario] = {
    "no-credentials": Scenario(
        "nobody is signed in", "credentials", lambda account, _: account.environment.update(_NO_CREDENTIALS)
    ),
    "no-read-permissions": Scenario("the user may describe stacks, and nothing else", "zone", _remove_permissions),
    "missing-bootstrap": Scenario("the CDK's bootstrap stack is missing", "cdk-bootstrap", bootstrapped=False),
    "wrong-zone": Scenario("the zone does not offer the nodes' instance type", "instance-types", _withhold_type),
    "no-quota": Scenario(
        "no Trn instance may run: 8 vCPUs are granted",
        "quota-trn-on-demand",
        before=lambda account, _: account.client("service-quotas").request_service_quota_increase(
            **_TRN_VCPUS, DesiredValue=8
        ),
    ),
    "no-addresses": Scenario(
        "all Elastic IP addresses are in use",
        "quota-elastic-ips",
        _use_up_addresses,
        needs="a network of its own",
        target=lambda wanted: None if wanted.network else "",
    ),
    "small-reservation": Scenario(
        "the capacity reservation is one instance short",
        "capacity-reservation",
        _shrink_reservation,
        needs="capacity_reservation_id in an ONDEMAND queue",
        target=_reservation,
    ),
    "expired-block": Scenario(
        "the Capacity Block ended yesterday",
        "capacity-block",
        _end_block,
        needs="capacity_reservation_id in a CAPACITY_BLOCK queue",
        target=lambda wanted: _reservation(wanted, is_block=True),
    ),
    "rsa-key": Scenario(
        "the SSH key is of a type that the OS does not take",
        "ssh-key",
        _make_rsa_key,
        needs="cluster.head_node.ssh_key_name",
        target=lambda wanted: next(iter(wanted.existing.get("AWS::EC2::KeyPair", ())), None),
    ),
    "name-taken": Scenario("another stack has the cluster's name", "cluster-name", _use_name),
    "missing-image": Scenario("ParallelCluster's images are gone", "official-image", _remove_images),
    "missing-provider": Scenario("the provider's template is gone", "provider-template", _remove_provider),
    "dns-off": Scenario(
        "the existing VPC gives no DNS names",
        "vpc",
        lambda account, vpc_id: account.client("ec2").modify_vpc_attribute(
            VpcId=vpc_id, EnableDnsHostnames={"Value": False}
        ),
        needs="network.existing",
        target=lambda wanted: wanted.network.vpc_id if wanted.network else None,
    ),
    "full-subnet": Scenario(
        "the existing private subnet has 11 addresses",
        "free-addresses",
        _shrink_subnet,
        needs="network.existing",
        target=_private_subnet,
    ),
    "no-default-route": Scenario(
        "the existing private subnet has no way out",
        "routes",
        _remove_route,
        needs="network.existing",
        target=_private_subnet,
    ),
    "bucket-elsewhere": Scenario(
        "the bucket behind the file system is in another Region",
        "data-bucket",
        _move_bucket,
        needs="a bucket in storage.data_repositories",
        target=lambda wanted: next(iter(wanted.existing.get("AWS::S3::Bucket", ())), None),
    ),
    "key-pending-deletion": Scenario(
        "the file system's key is about to be deleted",
        "kms-key",
        lambda account, key_id: account.client("kms").schedule_key_deletion(KeyId=key_id),
        needs="storage.file_system.kms_key_arn",
        target=lambda wanted: wanted.file_system_key_id,
    ),
}
"""All of them, by name."""
