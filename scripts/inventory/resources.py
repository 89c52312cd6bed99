"""Every resource of a deployment: those of its stacks, what its fleet launched, and what outlived a stack."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import partial

from scripts import stacks
from scripts.deployment import Deployment
from scripts.fleet import control as fleet
from scripts.inventory import leftovers, leftovers_stacks
from scripts.inventory.costs import Facts, facts
from scripts.inventory.leftovers_model import FINAL_BACKUP, allowed, holds_data

KEPT = "(kept)"
LEFT = "(left over)"
"""In the place of a stack: its stack is gone; the first was meant so."""

FLEET = "(fleet)"
"""In the place of a stack: launched by the cluster's daemons for a queue."""


@dataclass(frozen=True)
class Resource:
    """A resource.

    Attributes:
        type: As CloudFormation names it.
        id: What its service calls it.
        stack: Name of its stack, or why it has none: `FLEET`, `KEPT` or `LEFT`.
        since: When it was made, or last changed by its stack; None: not known.
        tags: Its tags; none: it has none, or cannot have any.
        monthly: Dollars per month as it stands; None: paid by use, or the price is not known.
        root: Name of the stack that its stack is nested in, whichever number of times; empty: in none.
    """

    type: str
    id: str
    stack: str
    since: datetime | None = None
    tags: Mapping[str, str] | None = None
    monthly: Decimal | None = Decimal(0)
    root: str = ""

    @property
    def service(self) -> str:
        """Name of its service, such as EC2."""
        return self.type.split("::")[1] if self.type.startswith("AWS::") else "CloudFormation"

    @property
    def data(self) -> bool:
        """Whether it holds data of people."""
        return holds_data(self.type, self.id)


@dataclass(frozen=True)
class Inventory:
    """All resources of a deployment.

    Attributes:
        name: The deployment.
        resources: By service, type, stack and id.
        missing: What could not be looked at, for want of a right.
    """

    name: str
    resources: tuple[Resource, ...]
    missing: tuple[str, ...]

    @property
    def monthly(self) -> Decimal:
        """Dollars per month of all whose price is known."""
        return sum((each.monthly or Decimal(0) for each in self.resources), Decimal(0))


def inventory(deployment: Deployment) -> Inventory:
    """Return every resource of a deployment, with all clusters that there are of it.

    With 1,875 nodes about 120 calls. That is an estimate: 90 of them are for tags, 100 resources in each, as instance
    and volume of each node carry both the settings' tags and the cluster's. Prices are those of the table of
    `scripts.estimate`. Needs what `leftovers.find` and `costs_of_resources.facts` need, fsx:DescribeBackups and
    tag:GetResources.
    """
    missing: list[str] = []
    deployment.account.forget()
    clusters = leftovers_stacks.present(deployment, missing)
    found: dict[tuple[str, str], Resource] = {}
    looks: list[Callable[[], Iterable[Resource]]] = [
        *(partial(_of_stack, deployment, name) for name in leftovers_stacks.names(clusters)),
        *(partial(_of_fleet, each) for each in clusters),
        partial(_without_stack, deployment, missing),
    ]
    for look in looks:
        for each in allowed(look, missing):
            found.setdefault((each.type, each.id), each)
    for each in allowed(partial(_backups, deployment, list(found.values())), missing):
        found[each.type, each.id] = each
    known: dict[tuple[str, str], Facts] = {}
    for ask in facts(deployment, clusters, found.keys()):
        known.update(allowed(ask, missing))
    tags = dict(allowed(partial(_tags, deployment, clusters), missing))
    resources = [_with(each, known.get(each_key), tags.get(each.id)) for each_key, each in found.items()]
    resources.sort(key=lambda each: (each.service, each.type, each.root or each.stack, each.id))
    return Inventory(deployment.settings.name, tuple(resources), tuple(missing))


def _with(resource: Resource, known: Facts | None, tags: Mapping[str, str] | None) -> Resource:
    if known is not None:
        resource = replace(resource, since=known.since or resource.since, monthly=known.monthly)
    return replace(resource, tags=tags or {})


def _of_stack(deployment: Deployment, name: str) -> Iterator[Resource]:
    stack = deployment.stack(name)
    if stack is None:
        return
    yield Resource(stacks.NESTED, stack["StackId"], name, stack["CreationTime"])
    for each in stacks.all_resources(deployment, name):
        if each.physical_id and each.status != "DELETE_COMPLETE":
            yield Resource(
                each.type, each.physical_id, each.stack, each.changed, root="" if each.stack == name else name
            )


def _of_fleet(deployment: Deployment) -> Iterator[Resource]:
    """Yield nodes that stacks do not know, and the volumes and interfaces of all nodes."""
    launched = {each["InstanceId"] for each in fleet.instances(deployment)}
    for node in deployment.nodes():
        stack = FLEET if node["InstanceId"] in launched else deployment.settings.cluster_spec.name
        yield Resource("AWS::EC2::Instance", node["InstanceId"], stack, node["LaunchTime"])
        for each in node.get("BlockDeviceMappings", []):
            yield Resource("AWS::EC2::Volume", each["Ebs"]["VolumeId"], stack, each["Ebs"]["AttachTime"])
        for each in node.get("NetworkInterfaces", []):
            yield Resource("AWS::EC2::NetworkInterface", each["NetworkInterfaceId"], stack, node["LaunchTime"])


def _without_stack(deployment: Deployment, missing: list[str]) -> Iterator[Resource]:
    for each in leftovers.find(deployment, missing=missing):
        yield Resource(each.type, each.id, KEPT if each.kept else LEFT)


def _backups(deployment: Deployment, found: Iterable[Resource]) -> Iterator[Resource]:
    """Yield the backups of file systems, those of deleted ones included, and those made before a deletion.

    Automatic ones go with their file system.
    https://docs.aws.amazon.com/fsx/latest/APIReference/API_DeleteFileSystem.html
    """
    stack_of = {each.id: each.stack for each in found if each.type == "AWS::FSx::FileSystem"}
    for each in deployment.account.list("fsx", "describe_backups"):
        tags = {tag["Key"]: tag["Value"] for tag in each.get("Tags", [])}
        last, name = tags.get(FINAL_BACKUP) == deployment.settings.name, each["FileSystem"]["FileSystemId"]
        if name in stack_of or last:
            stack = stack_of.get(name, KEPT) if each["Type"] == "AUTOMATIC" else KEPT
            yield Resource("AWS::FSx::Backup", each["BackupId"], stack, each["CreationTime"], tags, None)


def _tags(deployment: Deployment, clusters: Sequence[Deployment]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield id and tags of all that carries the tags of the settings, or a cluster's; an ARN ends with the id."""
    client = deployment.account.client("resourcegroupstaggingapi")
    of_settings = {key: [value] for key, value in deployment.settings.tags.items()}
    of_clusters = {"parallelcluster:cluster-name": [each.settings.cluster_spec.name for each in clusters]}
    for wanted in (of_settings, of_clusters):
        if not wanted:
            continue
        filters = [{"Key": key, "Values": values} for key, values in wanted.items()]
        for page in client.get_paginator("get_resources").paginate(TagFilters=filters, ResourcesPerPage=100):
            for each in page["ResourceTagMappingList"]:
                tags = {tag["Key"]: tag["Value"] for tag in each["Tags"]}
                name = each["ResourceARN"].split(":", 5)[5]
                short = re.split("[/:]", name, maxsplit=1)[-1]
                yield from dict.fromkeys((each["ResourceARN"], name, short, f"/{short}"), tags).items()
