"""Every resource of a deployment: those of its stacks, what its fleet launched, and what is left of deleted stacks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from scripts.account import backups, compute_fleet, stacks
from scripts.account.deployment import Deployment, tags_of
from scripts.watch.inventory import clusters as of_clusters
from scripts.watch.inventory import leftovers
from scripts.watch.inventory.costs import Facts, facts
from scripts.watch.inventory.model import Inventory, Key, Resource, permitted

KEPT = "(kept)"
LEFT = "(left over)"
"""In place of a stack: its stack is deleted; the first was kept on purpose."""
FLEET = "(fleet)"
"""In place of a stack: launched by the cluster's daemons for a queue."""
WITHOUT_STACK = frozenset({KEPT, LEFT, FLEET})
"""What is in place of a stack."""


def inventory(deployment: Deployment) -> Inventory:
    """Return every resource of a deployment, of all its clusters.

    With 1,875 nodes about 120 calls. That is an estimate: 90 of them are for tags, 100 resources in each, as instance
    and volume of each node carry both the settings' tags and the cluster's. Prices are those of the table of
    `scripts.check.estimate`.
    """
    denied: list[str] = []
    deployment.account.forget()
    clusters = of_clusters.present(deployment, denied)
    sources: list[Iterable[Resource]] = [
        *(_of_stack(deployment, name) for name in of_clusters.names(clusters)),
        *(_of_fleet(each) for each in clusters),
        _without_stack(deployment, denied),
    ]
    by_key: dict[Key, Resource] = {}
    for source in sources:
        for each in permitted(source, denied):
            by_key.setdefault(each.key, each)
    by_key |= {each.key: each for each in permitted(_backups(deployment, [*by_key.values()]), denied)}
    known = facts(clusters, by_key.keys(), denied)
    tags = dict(permitted(_tags(deployment, clusters), denied))
    resources = []
    for key, each in by_key.items():
        fact = known.get(key, Facts(each.dollars_per_month))
        since, own_tags = fact.since or each.since, tags.get(each.id, {})
        update = {"since": since, "dollars_per_month": fact.monthly, "tags": own_tags}
        resources.append(each.model_copy(update=update))
    resources.sort(key=lambda each: (each.service, each.type, each.root or each.stack, each.id))
    return Inventory(deployment=deployment.name, resources=tuple(resources), not_listed=tuple(denied))


def _of_stack(deployment: Deployment, name: str) -> Iterator[Resource]:
    stack = deployment.stack(name)
    if stack is None:
        return
    yield Resource(type=stacks.NESTED, id=stack["StackId"], stack=name, since=stack["CreationTime"])
    for each in stacks.existing(deployment, name):
        root = "" if each.stack == name else name
        yield Resource(type=each.type, id=each.physical_id, stack=each.stack, since=each.changed, root=root)


def _of_fleet(deployment: Deployment) -> Iterator[Resource]:
    """Yield nodes that are in no stack, and the volumes and interfaces of all nodes."""
    launched = {each["InstanceId"] for each in compute_fleet.instances(deployment)}
    for node in deployment.nodes():
        stack = FLEET if node["InstanceId"] in launched else deployment.settings.cluster_spec.name
        since = node["LaunchTime"]
        yield Resource(type="AWS::EC2::Instance", id=node["InstanceId"], stack=stack, since=since)
        for each in node.get("BlockDeviceMappings", []):
            volume = each["Ebs"]
            yield Resource(type="AWS::EC2::Volume", id=volume["VolumeId"], stack=stack, since=volume["AttachTime"])
        for each in node.get("NetworkInterfaces", []):
            name = each["NetworkInterfaceId"]
            yield Resource(type="AWS::EC2::NetworkInterface", id=name, stack=stack, since=since)


def _without_stack(deployment: Deployment, denied: list[str]) -> Iterator[Resource]:
    for each in leftovers.find(deployment, denied):
        yield Resource(type=each.type, id=each.id, stack=KEPT if each.kept_on_purpose else LEFT)


def _backups(deployment: Deployment, resources: Iterable[Resource]) -> Iterator[Resource]:
    """Yield the backups of file systems, those of deleted ones included, and those made before a deletion.

    Automatic ones go with their file system.
    https://docs.aws.amazon.com/fsx/latest/APIReference/API_DeleteFileSystem.html
    """
    stack_of = {each.id: each.stack for each in resources if each.type == "AWS::FSx::FileSystem"}
    for each in backups.of_fsx(deployment.account):
        if each.of in stack_of or each.final_of == deployment.settings.name:
            stack = stack_of.get(each.of, KEPT) if each.is_automatic else KEPT
            yield Resource(type="AWS::FSx::Backup", id=each.id, stack=stack, since=each.started)


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
                name = each["ResourceARN"].split(":", 5)[5]
                short = re.split("[/:]", name, maxsplit=1)[-1]
                yield from dict.fromkeys((each["ResourceARN"], name, short, f"/{short}"), tags_of(each)).items()
