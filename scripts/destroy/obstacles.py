"""What stands against a destruction, a sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from scripts import stacks
from scripts.deployment import PARTS, Deployment
from scripts.destroy.storage import DRAINING, LINKED, Storage, hindrance, is_freed
from scripts.fleet import control as fleet
from scripts.inventory.leftovers_model import Found

_NAMED = 10
"""Things of others that a sentence names."""


def of_status(standing: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield stacks that CloudFormation is at work on."""
    for each in standing:
        status = each["StackStatus"]
        if status.endswith("_IN_PROGRESS") and status not in ("DELETE_IN_PROGRESS", "REVIEW_IN_PROGRESS"):
            yield f"{each['StackName']} is {status}: wait until that has ended."


def of_protection(protected: Sequence[str], storage: Storage) -> Iterator[str]:
    """Yield what is protected, and file systems that their stack keeps as it was deployed."""
    for name in protected:
        yield f"{name} has termination protection: --unprotect takes it away."
    ids = [each["FileSystemId"] for each in storage.file_systems if each["FileSystemId"] in storage.retained]
    if ids:
        begin = f"storage.retain keeps file system {', '.join(ids)}, as it was deployed"
        yield f"{begin}: --unprotect deletes it all the same."


def of_backup(deployment: Deployment, storage: Storage) -> Iterator[str]:
    """Yield file systems that would go without a backup. Needs what `hindrance` needs."""
    for each in storage.file_systems:
        why = "" if each["Lifecycle"] == "DELETING" else hindrance(deployment, each)
        if why and not is_freed(deployment, storage, each):
            begin = f"File system {each['FileSystemId']} would go without a backup: {why}."
            yield f"{begin} --no-final-backup deletes it all the same.{DRAINING if why == LINKED else ''}"


def of_clusters(deployment: Deployment, others: Mapping[int, str]) -> Iterator[str]:
    """Yield clusters of other generations, which stand on storage and network."""
    for generation, status in others.items():
        yield f"{about_cluster(deployment, generation, status)} It stands on storage and network."


def about_cluster(deployment: Deployment, generation: int, status: str) -> str:
    """Return that there is a cluster of another generation, and how it is destroyed."""
    stack = deployment.settings.of_generation(generation).stack_name("cluster")
    return (
        f"There is another cluster of this deployment, {stack} ({status}). To destroy that one: set "
        f"cluster.generation to {generation} in config/{deployment.environment}.yaml, and run this again."
    )


def of_network(deployment: Deployment, storage: Storage) -> Iterator[str]:
    """Yield file systems that stand in the network, where they are to stay."""
    vpcs = _vpcs(deployment)
    for each in storage.file_systems:
        if each["VpcId"] in vpcs:
            yield f"File system {each['FileSystemId']} stands in the network: name --storage, too."


def of_users(
    deployment: Deployment, parts: Sequence[str], storage: Storage, left: Sequence[Found], *, sweep: bool
) -> Iterator[str]:
    """Yield what uses what would go and stays itself, so that this would go half: others' things, and leftovers.

    1,000 interfaces in each call: 15 calls for 1,875 nodes. Needs ec2:DescribeInstances, :DescribeNetworkInterfaces,
    :DescribeSecurityGroups and :DescribeVpcEndpoints, cloudformation:ListStackResources.

    Args:
        deployment: Whose network and storage.
        parts: What would go.
        storage: What there is of the storage.
        left: Leftovers of the deployment.
        sweep: Whether those of them that hold no data go first.
    """
    vpcs = _vpcs(deployment) if "network" in parts else []
    groups = storage.groups if "storage" in parts else []
    own = _own(deployment, storage) if vpcs or groups else set()
    swept = {each.id for each in left if each.is_swept}
    swept -= {each["InstanceId"] for each in fleet.instances(deployment)}  # terminated before, swept or not
    users: dict[str, None] = {}
    leftovers: dict[str, None] = {}

    def note(ids: set[str], name: str, text: str, *, is_own: bool) -> None:
        if ids & swept:
            leftovers[name] = None
        elif not (is_own or ids & own):
            users[text] = None

    of_cluster: set[str] = set()
    for each in _listed(deployment, "describe_security_groups", "vpc-id", vpcs):
        name = each["GroupId"]
        if _is_tagged(deployment, each.get("Tags", [])):
            of_cluster.add(name)
        is_own = name in of_cluster or each["GroupName"] == "default"
        note({name}, name, f"{name} ({each['GroupName']})", is_own=is_own)
    for filtered, values in (("vpc-id", vpcs), ("group-id", groups)):
        for each in _listed(deployment, "describe_network_interfaces", filtered, values):
            name = each.get("Attachment", {}).get("InstanceId") or each["NetworkInterfaceId"]
            text = name if name.startswith("i-") else f"{name} ({each['Description'] or 'no description'})"
            ids = {name, each["NetworkInterfaceId"], *each["Description"].split()}
            note(ids, name, text, is_own=_goes_with_cluster(deployment, each, of_cluster))
    if leftovers and not sweep:
        yield f"Leftovers of the deployment use what would go: {_named(leftovers)}. --sweep removes them first."
    if users:
        yield f"What is not the deployment's uses what would go: {_named(users)}. Delete it first."


def _named(things: Iterable[str]) -> str:
    names = [*things]
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _listed(deployment: Deployment, operation: str, name: str, values: Sequence[str]) -> list[dict[str, Any]]:
    if not values:
        return []
    filters = [{"Name": name, "Values": list(values)}]
    return deployment.account.list("ec2", operation, Filters=filters, PaginationConfig={"PageSize": 1000})


def _vpcs(deployment: Deployment) -> list[str]:
    """Return the VPC that the network stack made; none: it uses one that existed."""
    ids = deployment.physical_ids(deployment.stack_name("network"))
    return [each for each in ids.values() if each.startswith("vpc-")]


def _own(deployment: Deployment, storage: Storage) -> set[str]:
    """Return what is the deployment's, by id and by the words with which AWS describes interfaces that it makes.

    These end with the id of the gateway or file system, or are ``ELB net/NAME/ID``, as the end of the balancer's ARN.
    https://docs.aws.amazon.com/elasticloadbalancing/latest/network/network-load-balancers.html
    """
    names = [deployment.stack_name(part) for part in PARTS] + [deployment.settings.cluster_spec.name]
    own = {
        each.physical_id
        for name in names
        if deployment.stack(name) is not None
        for each in stacks.all_resources(deployment, name)
        if each.physical_id and each.status != "DELETE_COMPLETE"
    }
    own |= {each.rpartition(":loadbalancer/")[2] for each in own}
    own |= {each.id for each in storage.kept} | {each["InstanceId"] for each in deployment.nodes()}
    for each in storage.file_systems:
        own |= {each["FileSystemId"], *each["NetworkInterfaceIds"]}
    for each in deployment.account.list("ec2", "describe_vpc_endpoints"):
        if each["VpcEndpointId"] in own:
            own.update(each.get("NetworkInterfaceIds", []))
    return own


def _goes_with_cluster(deployment: Deployment, interface: Mapping[str, Any], groups: Set[str]) -> bool:
    """Tell whether an interface goes with the cluster: it has its tag, or is detached and in its groups alone."""
    within = {each["GroupId"] for each in interface["Groups"]}
    return _is_tagged(deployment, interface.get("TagSet", [])) or (
        interface["Status"] == "available" and bool(within) and within <= groups
    )


def _is_tagged(deployment: Deployment, tags: Sequence[Mapping[str, str]]) -> bool:
    return {"Key": "parallelcluster:cluster-name", "Value": deployment.settings.cluster_spec.name} in tags
