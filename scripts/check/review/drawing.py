"""The architecture of a deployment, drawn from its templates in the language of Mermaid (https://mermaid.js.org).

The same templates give the same text. Borders have the colour of the stack that makes what they enclose; nodes are
made by ParallelCluster, for the cluster's stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from scripts.check.plan.permissions import ports
from scripts.check.review.templates import NOBODY, Part, Resource, listed, resources_of
from scripts.core.figures import counted
from toolchain.assembly import Stack
from toolchain.cluster import CLUSTER_TYPE
from ultracluster.domain.parallelcluster_versions import version_of_provider

_HEAD: Final = """\
---
config:
  flowchart:
    wrappingWidth: 400
---
flowchart TB"""
MOST_BOXES: Final = 6
"""Boxes of queues; where there are more queues, those alike share a box."""
_COLOURS: Final = ("#3b82f6", "#16a34a", "#ea7a1b", "#a855f7")
"""Of stacks, in the order of their deployment; they show on white and on black."""
_CAPACITY: Final = {"ONDEMAND": "on demand", "SPOT": "Spot", "CAPACITY_BLOCK": "Capacity Block"}
_LINKS: Final = {"AutoImportPolicy": "imports", "AutoExportPolicy": "exports"}
_SQUARE, _ROUND, _STORE = ("[", "]"), ("([", "])"), ("[(", ")]")


class Box:
    """A box, or a frame around others.

    Attributes:
        id: Its name in Mermaid.
        stack: Name of the stack that makes it; empty: none of the deployment.
        members: What a frame is around; a box has none.
    """

    def __init__(self, name: str, *words: str, stack: str = "", shape: tuple[str, str] = _SQUARE) -> None:
        text = "<br>".join(_escaped(each) for each in words if each)
        self.id = name
        self.stack = stack
        self.members: list[Box] = []
        self._text = f'{name}{shape[0]}"{text}"{shape[1]}'

    def add(self, *boxes: Box) -> None:
        """Add boxes to a frame."""
        self.members.extend(boxes)

    def all(self) -> Iterator[Box]:
        """Yield the box and what is inside."""
        yield self
        for each in self.members:
            yield from each.all()

    def lines(self) -> Iterator[str]:
        """Yield it in Mermaid's language."""
        if not self.members:
            yield self._text
            return
        yield f"subgraph {self._text}"
        for each in self.members:
            yield from (f"  {line}" for line in each.lines())
        yield "end"


def draw(stacks: Mapping[str, Stack]) -> str:
    """Return the drawing of a deployment's stacks, given in the order of their deployment.

    It has some two dozen boxes, however many queues there are.
    """
    drawing = _Drawing(list(resources_of(stacks)))
    drawing.add_network()
    drawing.add_storage()
    drawing.add_clusters()
    drawing.add_team()
    drawing.add_monitoring()
    drawing.add_stacks(list(stacks))
    return drawing.text()


class _Drawing:
    """A drawing in the making.

    Attributes:
        vpc: The frame of the VPC.
        frames: The frames of its subnets, by id.
        fleets: The frames of compute nodes, by subnet.
        others: What is outside of the VPC.
        lines: What is connected, and the colours.
    """

    def __init__(self, resources: Sequence[Resource]) -> None:
        self._resources = resources
        self.vpc = Box("vpc", "VPC, which exists")
        self.frames: dict[str, Box] = {}
        self.fleets: dict[str, Box] = {}
        self.others: list[Box] = []
        self.lines: list[str] = []

    def text(self) -> str:
        """Return it in Mermaid's language."""
        self.vpc.members[:0] = sorted(self.frames.values(), key=lambda frame: frame.id, reverse=True)  # public first
        shown = [line for each in (*self.others, self.vpc) for line in each.lines()]
        return "\n".join([_HEAD, *(f"  {line}" for line in (*shown, *self.lines))]) + "\n"

    def add_network(self) -> None:
        """Add VPC, subnets, endpoints and the ways to the internet."""
        for vpc in self._all("AWS::EC2::VPC"):
            self.vpc = Box("vpc", f"VPC {vpc.properties['CidrBlock']}", stack=vpc.stack)
        for subnet in self._all("AWS::EC2::Subnet"):
            has = subnet.properties
            kind = "Public" if has.get("MapPublicIpOnLaunch") else "Private"
            words = f"{kind} subnet {has['CidrBlock']}, {has['AvailabilityZoneId']}"
            others = sum(frame.id.startswith(kind.lower()) for frame in self.frames.values())
            name = f"{kind.lower()}_subnet{others + 1 if others else ''}"
            self.frames[subnet.id] = Box(name, words, stack=subnet.stack)
        ways = {each.id: "internet" for each in self._all("AWS::EC2::InternetGateway")}
        addresses = len(self._all("AWS::EC2::EIP"))
        for gateway in self._all("AWS::EC2::NatGateway"):
            ways[gateway.id] = "nat"
            box = Box("nat", "NAT gateway", some(addresses, "public addresses"), stack=gateway.stack)
            self._frame(gateway.properties["SubnetId"]).add(box)
        if ways:
            self.others.append(Box("internet", "Internet", shape=_ROUND))
        tables = [each.properties for each in self._all("AWS::EC2::SubnetRouteTableAssociation")]
        for route in self._all("AWS::EC2::Route"):
            way = ways.get(route.properties.get("NatGatewayId") or route.properties.get("GatewayId", ""))
            for each in tables if way else ():
                if each["RouteTableId"] == route.properties["RouteTableId"]:
                    self._connect(str(way), "---", self._frame(each["SubnetId"]).id)
        endpoints = self._all("AWS::EC2::VPCEndpoint")
        for kind in sorted({each.properties["VpcEndpointType"] for each in endpoints}):
            alike = [each for each in endpoints if each.properties["VpcEndpointType"] == kind]
            services = [each.properties["ServiceName"].split(".", 3)[3] for each in alike]
            self.vpc.add(Box(f"{kind.lower()}_endpoints", f"{kind} endpoints", listed(services), stack=alike[0].stack))

    def add_storage(self) -> None:
        """Add file systems, and the data in S3 that they are linked to."""
        buckets = {each.id: each.stack for each in self._all("AWS::S3::Bucket")}
        groups = {each.id: each.properties for each in self._all("AWS::EC2::SecurityGroup")}
        mounts = {
            each.get("FsxLustreSettings", {}).get("FileSystemId"): each["MountDir"]
            for cluster in self._all(CLUSTER_TYPE)
            for each in cluster.properties["ClusterConfiguration"].get("SharedStorage", [])
        }
        for system in self._all("AWS::FSx::FileSystem"):
            if "LustreConfiguration" not in system.properties:
                continue
            has, lustre = system.properties, system.properties["LustreConfiguration"]
            speed, days = lustre.get("PerUnitStorageThroughput"), lustre.get("AutomaticBackupRetentionDays")
            size, ways = f"{has['StorageCapacity']:,} GiB, {lustre['DeploymentType']}", has["SecurityGroupIds"]
            words = [
                f"FSx for Lustre, {mounts[system.id]} on all nodes" if system.id in mounts else "FSx for Lustre",
                size + (f", {speed} MB/s per TiB" if speed else ""),
                f"backups for {counted(days, 'days')}" if days else "",
                "stays when its stack is deleted" if system.retained else "",
                *(f"{port} from {source}" for each in ways for source, port in ports(groups[each])),
            ]
            self._frame(has["SubnetIds"][0]).add(Box(_name(system), *words, stack=system.stack, shape=_STORE))
        for link in self._all("AWS::FSx::DataRepositoryAssociation"):
            path, policies = link.properties["DataRepositoryPath"], link.properties.get("S3", {})
            bucket = next((each for each in buckets if each in path), "")
            shown = path.replace(bucket, "new-bucket") if bucket else path
            ways = [word for key, word in _LINKS.items() if policies.get(key, {}).get("Events")]
            label = f"{link.properties['FileSystemPath']}: {' and '.join(ways) or 'on request'}"
            self.others.append(Box(_name(link), shown, stack=buckets.get(bucket, ""), shape=_STORE))
            self._connect(_name(link), "<-->", link.properties["FileSystemId"].rpartition("/")[2], label)

    def add_team(self) -> None:
        """Add homes, which all nodes mount, and databases."""
        groups = {each.id: each.properties for each in self._all("AWS::EC2::SecurityGroup")}
        targets = {each.properties["FileSystemId"]: each.properties for each in self._all("AWS::EFS::MountTarget")}
        systems = [*self._all("AWS::EFS::FileSystem"), *self._all("AWS::FSx::FileSystem")]
        for system in systems:
            has = system.properties
            if "LustreConfiguration" in has or (not has.get("SubnetIds") and system.id not in targets):
                continue
            openzfs, target = has.get("OpenZFSConfiguration"), targets.get(system.id, {})
            size = [] if openzfs is None else [f"{has['StorageCapacity']:,} GiB, {openzfs['ThroughputCapacity']} MB/s"]
            ways = target.get("SecurityGroups") or has.get("SecurityGroupIds", [])
            words = [
                "Amazon EFS, homes" if openzfs is None else "FSx for OpenZFS, homes",
                *size,
                "stays when its stack is deleted" if system.retained else "",
                *(f"{port} from {source}" for each in ways for source, port in ports(groups[each])),
            ]
            subnet = target.get("SubnetId") or has["SubnetIds"][0]
            self._frame(subnet).add(Box(_name(system), *words, stack=system.stack, shape=_STORE))
            self._connect("head", "-->", _name(system), "/home of all nodes")
        for database in self._all("AWS::RDS::DBInstance"):
            has = database.properties
            stays = "stays when its stack is deleted" if database.retained else ""
            texts = (
                f"{has.get('Engine', '')} {has.get('EngineVersion', '')}",
                str(has.get("DBInstanceClass", "")),
                stays,
            )
            self.vpc.add(Box(_name(database), "Accounting of Slurm", *texts, stack=database.stack, shape=_STORE))
            self._connect("head", "-->", _name(database), "TCP 3306")

    def add_clusters(self) -> None:
        """Add nodes, and who may reach them."""
        for cluster in self._all(CLUSTER_TYPE):
            configuration = cluster.properties["ClusterConfiguration"]
            self._add_nodes(configuration, cluster.stack)
        for provider in self._all("AWS::CloudFormation::Stack"):
            version = version_of_provider(str(provider.properties))
            if version is None:  # that of its policies
                continue
            words = f"AWS ParallelCluster {version}", "creates the nodes"
            self.others.append(Box("provider", *words, stack=provider.stack))
            self._connect("provider", "-.->", "head")

    def _add_nodes(self, configuration: Part, stack: str) -> None:
        head = configuration["HeadNode"]
        storage = [str(each.get("MountDir")).strip("/") for each in configuration.get("SharedStorage", [])]
        home = "EFS" if head.get("SharedStorageType") == "Efs" else "its volume"
        home = "a file system of its own" if "home" in storage else home
        words = "Head node", head["InstanceType"], f"Slurm, /home on {home}"
        self._frame(head["Networking"]["SubnetId"]).add(Box("head", *words, stack=stack))
        nodes: list[tuple[str, Part]] = [("head", head)]
        for pool in configuration.get("LoginNodes", {}).get("Pools", []):
            name, count = _id(f"login_{pool['Name']}"), f"{pool['Count']} x {pool['InstanceType']}"
            self._frame(pool["Networking"]["SubnetIds"][0]).add(Box(name, "Login nodes", count, stack=stack))
            nodes.append((name, pool))
        nodes += self._queues(configuration["Scheduling"]["SlurmQueues"], stack)
        self._reached(nodes)
        pools = [name for name, _ in nodes if name.startswith("login")]
        for pool in pools:
            self._connect("head", "<-->", pool, "Slurm, NFS")
        for fleet in self.fleets.values():
            for name in ("head", *pools):
                self._connect(name, "<-->", fleet.id, "any port")
        mounted = str(configuration.get("SharedStorage", ""))
        systems = [_name(each) for each in self._all("AWS::FSx::FileSystem") if each.id and each.id in mounted]
        for system in systems:
            for name in (*(fleet.id for fleet in self.fleets.values()), "head", *pools):
                self._connect(name, "-->", system)
        for fleet in self.fleets.values():
            boxes = [each.id for each in fleet.all() if not each.members]
            self._connect(" ~~~ ".join([*boxes, *systems[:1]]), "", "")  # invisible: one below the other

    def _queues(self, queues: Sequence[Part], stack: str) -> Iterator[tuple[str, Part]]:
        """Add boxes of queues, within their placement groups, and yield the frames that they are in, with a queue."""
        own = {each.id: each.stack for each in self._all("AWS::EC2::PlacementGroup")}
        groups: dict[str, Box] = {}
        for alike in folded(queues):
            subnet = alike[0]["Networking"]["SubnetIds"][0]
            if subnet not in self.fleets:
                self.fleets[subnet] = Box(f"fleet{len(self.fleets)}", "Compute nodes", stack=stack)
                self._frame(subnet).add(self.fleets[subnet])
                yield self.fleets[subnet].id, alike[0]
            frame, placements = self.fleets[subnet], {_placement(each) for each in alike}
            group = placements.pop() if len(placements) == 1 else ""
            if group and group not in groups:
                words = "Placement group" if group in own else f"Placement group {group}, which exists"
                groups[group] = Box(f"group{len(groups)}", words, stack=own.get(group, ""))
                frame.add(groups[group])
            several = f"in {counted(len(placements), 'placement groups')}" if placements else ""
            (groups[group] if group else frame).add(
                Box(_id(f"queue_{alike[0]['Name']}"), *_words(alike), several, stack=stack)
            )

    def _reached(self, nodes: Sequence[tuple[str, Part]]) -> None:
        """Add who may reach nodes from outside."""
        policies = {each.id: str(each.properties) for each in self._all("AWS::IAM::ManagedPolicy")}
        sources: dict[str, Box] = {}
        for name, node in nodes:
            attached = [each.get("Policy") for each in node.get("Iam", {}).get("AdditionalIamPolicies", [])]
            allowed = node.get("Ssh", {}).get("AllowedIps", NOBODY)
            ways = [(allowed, "by SSH, TCP 22")] if allowed != NOBODY else []
            if any("ssmmessages:" in policies.get(each, "") for each in attached):
                ways.append(("Session Manager", "for those whom IAM allows"))
            for words in ways:
                box = sources.setdefault(words[0], Box(f"source{len(sources)}", *words, shape=_ROUND))
                self._connect(box.id, "-->", name)
        self.others += sources.values()

    def add_monitoring(self) -> None:
        """Add alarms, dashboard, and who gets mail."""
        alarms, dashboards = self._all("AWS::CloudWatch::Alarm"), self._all("AWS::CloudWatch::Dashboard")
        for each in (alarms + dashboards)[:1]:
            words = [some(len(alarms), "alarms"), some(len(dashboards), "dashboards")]
            self.others.append(Box("monitoring", "CloudWatch", ", ".join(filter(None, words)), stack=each.stack))
            self._connect(self._last(), "-.->", "monitoring")
        addresses = [each.properties["Endpoint"] for each in self._all("AWS::SNS::Subscription")]
        if addresses:
            self.others.append(Box("mail", listed(addresses), shape=_ROUND))
            self._connect("monitoring", "-->", "mail", "mail")

    def add_stacks(self, names: Sequence[str]) -> None:
        """Add the stacks in the order of their deployment, and colours."""
        stacks = Box("stacks", "Stacks")
        for index, name in enumerate(names):
            count = sum(each.stack == name for each in self._resources)
            stacks.add(Box(f"stack{index}", name, some(count, "resources"), stack=name))
        self.others.append(stacks)
        self._connect(" --> ".join(each.id for each in stacks.members), "", "")
        self._connect(self._last(), "~~~", "stacks")  # invisible: it puts them below
        boxes = [each for box in (*self.others, self.vpc, *self.frames.values()) for each in box.all()]
        self.lines.append("classDef frame fill:none")
        self.lines.append(f"class {','.join(each.id for each in boxes if each.members or each is self.vpc)} frame")
        for index, name in enumerate(names):
            self.lines.append(f"classDef colour{index} stroke:{_COLOURS[index % len(_COLOURS)]},stroke-width:2px")
            self.lines.append(f"class {','.join(each.id for each in boxes if each.stack == name)} colour{index}")

    # --- what the parts share ---

    def _all(self, resource_type: str) -> list[Resource]:
        return [each for each in self._resources if each.type == resource_type]

    def _frame(self, subnet: str) -> Box:
        """Return the frame of a subnet; one that no template has, exists: private is the one of compute nodes."""
        configurations = [each.properties["ClusterConfiguration"] for each in self._all(CLUSTER_TYPE)]
        queues = [queue for each in configurations for queue in each["Scheduling"]["SlurmQueues"]]
        kind = "Private" if any(subnet in each["Networking"]["SubnetIds"] for each in queues) else "Public"
        new = Box(f"{kind.lower()}_subnet{len(self.frames) or ''}", f"{kind} subnet {subnet}, which exists")
        return self.frames.setdefault(subnet, new)

    def _last(self) -> str:
        """Return what is drawn lowest in the VPC."""
        return next((_name(each) for each in self._all("AWS::FSx::FileSystem")), "vpc")

    def _connect(self, start: str, arrow: str, end: str, label: str = "") -> None:
        text = f'|"{_escaped(label)}"|' if label else ""
        self.lines.append(f"{start} {arrow}{text} {end}".rstrip())


def folded(queues: Sequence[Part]) -> list[list[Part]]:
    """Return queues by the box that they are in: one each, or those alike, so that there are few boxes."""
    keys = (
        lambda queue: queue["Name"],
        lambda queue: (*_kind(queue), tuple((_type(each), each["MaxCount"]) for each in queue["ComputeResources"])),
        _kind,
    )
    for key in keys:
        boxes: dict[object, list[Part]] = {}
        for each in queues:
            boxes.setdefault(key(each), []).append(each)
        if len(boxes) <= MOST_BOXES:
            return list(boxes.values())
    return [list(queues)]


def _kind(queue: Part) -> tuple[str, str]:
    return queue["Networking"]["SubnetIds"][0], queue.get("CapacityType", "ONDEMAND")


def _placement(queue: Part) -> str:
    group = queue["Networking"].get("PlacementGroup", {})
    return str(group.get("Name") or group.get("Id") or "")


def _type(resource: Part) -> str:
    several = ", ".join(each["InstanceType"] for each in resource.get("Instances", []))
    return str(resource.get("InstanceType") or several)


def _words(queues: Sequence[Part]) -> Iterator[str]:
    """Yield the lines of a box of queues, with the nodes of all of them."""
    names = [each["Name"] for each in queues]
    yield f"Queue {names[0]}" if len(names) == 1 else f"{len(names)} queues: {listed(names)}"
    capacity = _CAPACITY[queues[0].get("CapacityType", "ONDEMAND")]
    nodes = [each for queue in queues for each in queue["ComputeResources"]]
    for instance_type in dict.fromkeys(map(_type, nodes)):
        alike = [each for each in nodes if _type(each) == instance_type]
        fewest, most = (sum(each.get(key, 0) for each in alike) for key in ("MinCount", "MaxCount"))
        count = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
        yield f"{count} x {instance_type}, {capacity}"
    targets = [each.get("CapacityReservationTarget", {}) for each in nodes]
    reservations = [str(value).rpartition("/")[2] for each in targets for value in each.values()]
    if reservations:
        yield f"reserved: {listed(list(dict.fromkeys(reservations)))}"
    if any(each.get("Efa", {}).get("Enabled") for each in nodes):
        yield "EFA"


def _name(resource: Resource) -> str:
    return resource.id.rpartition("/")[2]


def _id(name: str) -> str:
    """Return a name that may be one in Mermaid."""
    return name.replace("-", "_")


def some(number: int, things: str) -> str:
    """Return a number of things; nothing for none."""
    return counted(number, things) if number else ""


def _escaped(text: str) -> str:
    """Return text as it is in a label: all that Mermaid or HTML may read otherwise, as entities."""
    return re.sub(r"[^\w ,.:/()@-]", lambda match: f"#{ord(match[0])};", text)
