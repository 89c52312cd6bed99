"""Wrong arguments of all kinds, of each function that puts something into the tree: named, and nothing is there."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

import ultracluster as uc
from tests.constructs.test_configured_cluster import CONFIGURATION
from ultracluster.domain.violations import dotted

NUMBERS = count()
ELSEWHERE = {"ConfiguredCluster", *(name for name in uc.__all__ if name[0] == "I" and name[1].isupper())}
"""Bases, which nobody makes, and what a function makes."""


NETWORK = {
    "vpc_id": "vpc-0123456789abcdef0",
    "availability_zone": "us-west-2a",
    "public_subnet_id": "subnet-0123456789abcdef0",
    "private_subnet_id": "subnet-0123456789abcdef1",
    "nat_gateway_id": "nat-0123456789abcdef0",
}


class Tree:
    """A stack with one construct of each kind that others need."""

    def __init__(self) -> None:
        app = cdk.App(builtin_cloud_formation_validation=False, analytics_reporting=False)
        self.stack = cdk.Stack(app, "Training", env=cdk.Environment(region="us-west-2"))
        self.vpc = ec2.Vpc(self.stack, "Vpc", availability_zones=["us-west-2a", "us-west-2b"])
        self.group = ec2.SecurityGroup.from_security_group_id(self.stack, "Group", "sg-0123456789abcdef0")
        self.data = uc.LustreFileSystem(self.stack, "Data", vpc=self.vpc, backup_retention_days=0)
        self.database = uc.AccountingDatabase(self.stack, "Database", vpc=self.vpc, subnets=self.vpc.private_subnets)
        self.cluster = self.of(uc.ParallelCluster)
        self.volume = self.of(uc.OpenZfsFileSystem)
        self.homes = self.of(uc.ElasticFileSystem)
        self.network = uc.UltraClusterNetwork.from_network_attributes(self.stack, "Network", **NETWORK)

    @cached_property
    def misnamed(self) -> list[Any]:
        """Return what exists beside the app by the ids of other things, or by all ids in one token."""
        ids = cdk.CfnParameter(self.stack, "Ids", type="CommaDelimitedList").value_as_list
        place = Construct(self.stack, "Misnamed")
        subnets = [
            ec2.Subnet.from_subnet_id(place, "Subnet", "vpc-0123456789abcdef0"),
            ec2.Subnet.from_subnet_id(place, "Subnets", ids[0]),
        ]
        group = ec2.SecurityGroup.from_security_group_id(place, "SecurityGroup", "sg-mine")
        homes: dict[str, Any] = {"file_system_id": "fsvol-0123456789abcdef0", "security_group": self.group}
        every = [
            ec2.Vpc.from_vpc_attributes(place, "Vpc", vpc_id="vpc-1", availability_zones=["us-west-2a"]),
            group,
            efs.FileSystem.from_file_system_attributes(place, "Homes", **homes),
        ]
        return [*every, *subnets, [group], subnets, [subnets[1], subnets[1]]]

    def of(self, construct: type[Construct]) -> Any:
        return construct(self.stack, f"Made{next(NUMBERS)}", **self.arguments[construct])

    @property
    def queue(self) -> uc.Queue:
        nodes = [uc.ComputeResource(name="nodes", instance_type="c7i.large", max_count=1)]
        return uc.Queue(name=f"q{next(NUMBERS)}", compute_resources=nodes)

    @property
    def arguments(self) -> Mapping[Any, dict[str, Any]]:
        """What each construct needs."""
        budget = uc.BudgetSpec(monthly_usd=1.0)
        return {
            uc.AccountingDatabase: {"vpc": self.vpc, "subnets": self.vpc.private_subnets},
            uc.ClusterMonitoring: {"cluster": getattr(self, "cluster", None)},
            uc.ElasticFileSystem: {"vpc": self.vpc},
            uc.HeadNodeSnapshots: {"deployment": "research"},
            uc.IsolatedSubnet: {"vpc": self.vpc, "zone_id": "usw2-az1", "cidr": "10.0.64.0/24"},
            uc.LustreFileSystem: {"vpc": self.vpc},
            uc.MonthlyBudget: {"budget": budget, "emails": ["me@example.com"], "tags": {"a": "b"}},
            uc.OpenZfsFileSystem: {"vpc": self.vpc},
            uc.ParallelCluster: {"vpc": self.vpc, "queues": [self.queue]},
            uc.UltraClusterNetwork: {"zone_id": "usw2-az4"},
        }

    @property
    def functions(self) -> Mapping[Callable[..., Any], Callable[[], dict[str, Any]]]:
        """What each function needs that is not the making of a class."""
        return {
            self.cluster.add_queue: lambda: {"queue": self.queue},
            self.cluster.add_shared_storage: lambda: {
                "storage": uc.SharedStorage.lustre(self.data, f"/fsx{next(NUMBERS)}", name=f"fsx{next(NUMBERS)}")
            },
            self.data.add_data_repository: lambda: {"path": f"/data{next(NUMBERS)}"},
            self.database.accounting: lambda: {"database_name": "research"},
            uc.AccountingDatabase.from_database_attributes: lambda: {
                "host": "db.example.com",
                "password": self.database.password,
                "client_group": self.group,
            },
            uc.ElasticFileSystem.from_file_system_attributes: lambda: {
                "file_system_id": "fs-0123456789abcdef0",
                "security_group": self.group,
            },
            uc.UltraClusterNetwork.from_network_attributes: lambda: NETWORK,
            uc.ParallelCluster.from_configuration: lambda: {
                "configuration": CONFIGURATION,
                "cluster_name": f"it{next(NUMBERS)}",
            },
            uc.LustreFileSystem.from_lustre_file_system_attributes: lambda: {
                "file_system_id": "fs-0123456789abcdef0",
                "security_group": self.group,
            },
            uc.OpenZfsFileSystem.from_volume_attributes: lambda: {
                "volume_id": "fsvol-0123456789abcdef0",
                "security_group": self.group,
            },
            uc.ParallelCluster.from_cluster_attributes: lambda: {"cluster_name": "research"},
            self.cluster.apply_removal_policy: lambda: {"policy": cdk.RemovalPolicy.DESTROY},
            self.cluster.metric: lambda: {"metric_name": "NodesDrained"},
            self.cluster.metric_of_parallelcluster: lambda: {"metric_name": "InsufficientCapacityErrors"},
            self.cluster.metric_head_node: lambda: {"metric_name": "CPUUtilization"},
            self.data.metric: lambda: {"metric_name": "DataReadBytes"},
            self.network.metric_nat_gateway: lambda: {"metric_name": "BytesInFromSource"},
            uc.SharedStorage.lustre: lambda: {"file_system": self.data},
            uc.SharedStorage.efs: lambda: {"file_system": self.homes},
            uc.SharedStorage.openzfs: lambda: {"volume": self.volume},
        }

    def place(self) -> Construct:
        return Construct(self.stack, f"Place{next(NUMBERS)}")


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree()


CONSTRUCTS = [
    each
    for name in uc.__all__
    if name not in ELSEWHERE and inspect.isclass(each := getattr(uc, name)) and issubclass(each, Construct)
]
INSIDE = re.compile(
    r"\b_[A-Z]\w*|\w*Proxy\b|\bImported\w+| object at 0x|<class|\ban? \[?secrets?manager(?<!\ba secretsmanager)"
)
"""What nobody writes: private classes, those of jsii, and addresses in memory."""
NEVER_RIGHT = [object(), ec2.Vpc, uc.Queue, [object()], {"key": object()}, secretsmanager.SecretStringGenerator()]
MAY_BE_RIGHT = [5, "text", [["text"]], {"key": 5}, [None]]


def look(
    tree: Tree, make: Callable[..., Any], good: Callable[[], dict[str, Any]], name: str, scope: Construct
) -> list[str]:
    """Return what is wrong about how wrong values of one argument are told."""
    faults = []
    before = len(scope.node.find_all())
    never_right = [*NEVER_RIGHT, *tree.misnamed, tree.stack]
    for value in [*never_right, *(() if name == "construct_id" else MAY_BE_RIGHT)]:
        try:
            make(**{**good(), name: value})
        except (uc.InvalidArguments, TypeError) as error:
            places = [str(each.path[0]) for each in getattr(error, "violations", ())]
            if name not in places and not (isinstance(error, TypeError) and name in str(error)):
                faults.append(f"{name}={value!r} is not named: {error}")
            elif "got " not in str(error):
                faults.append(f"{name}={value!r} is not shown: {error}")
            if inside := INSIDE.search(str(error)):
                faults.append(f"{name}={value!r} is told by {inside[0]!r}: {error}")
            if len(scope.node.find_all()) != before:
                faults.append(f"{name}={value!r} leaves something in the tree")
        except Exception as error:  # what a caller gets who has no idea of the inside
            faults.append(f"{name}={value!r} ends in {type(error).__name__}: {str(error)[:100]}")
        else:
            if any(value is each for each in never_right) and name not in ("scope", "dependencies"):
                faults.append(f"{name}={value!r} is accepted")
            before = len(scope.node.find_all())
    return faults


@pytest.mark.slow
@pytest.mark.parametrize("construct", CONSTRUCTS, ids=lambda each: each.__name__)
def test_a_wrong_argument_of_a_construct_is_named_and_leaves_the_tree_as_it_was(
    tree: Tree, construct: type[Construct]
) -> None:
    scope = tree.place()
    arguments = tree.arguments[construct]

    def good() -> dict[str, Any]:
        alone = {"alarm_prefix": f"a{next(NUMBERS)}"} if construct is uc.ClusterMonitoring else {}
        return {**arguments, **alone, "scope": scope, "construct_id": f"Made{next(NUMBERS)}"}

    names = [each for each in inspect.signature(construct.__init__).parameters if each != "self"]
    assert [fault for name in names for fault in look(tree, construct, good, name, scope)] == []


@pytest.mark.slow
def test_a_wrong_argument_of_a_function_is_named_and_leaves_the_tree_as_it_was(tree: Tree) -> None:
    faults = []
    ours = [each for each in CONSTRUCTS if each is not uc.IsolatedSubnet]  # it inherits those of the CDK
    imports = {getattr(each, name) for each in ours for name in dir(each) if name.startswith("from_")}
    assert imports <= tree.functions.keys()
    for function, arguments in tree.functions.items():
        own = getattr(function, "__self__", None)
        scope = own if isinstance(own, Construct) else tree.place()
        names = inspect.signature(function).parameters

        def good(
            arguments: Callable[[], dict[str, Any]] = arguments,
            scope: Construct = scope,
            place: bool = "scope" in names,
        ) -> dict[str, Any]:
            made = {"scope": scope, "construct_id": f"Made{next(NUMBERS)}"} if place else {}
            return {**arguments(), **made}

        for name in names:
            faults += [f"{function.__name__}: {each}" for each in look(tree, function, good, name, scope)]
    assert faults == []


def test_a_wrong_field_of_what_a_cluster_gets_is_named_and_leaves_the_tree_as_it_was(tree: Tree) -> None:
    good: dict[str, Any] = {"software": uc.NeuronSoftware(), "accounting": tree.database.accounting("research")}
    given = {**good, "shared_storage": uc.SharedStorage.lustre(tree.data)}
    wrong: list[tuple[str, Any, str]] = [
        (argument, dataclasses.replace(value, **{field.name: object()}), f"{argument}.{field.name}")
        for argument, value in given.items()
        for field in dataclasses.fields(value)
    ]
    wrong.append(("software", uc.NeuronSoftware(jobs="/no/such/folder"), "software.jobs"))
    wrong.append(("software", uc.NeuronSoftware(neuron_sdk=None, jobs=Path(__file__).parent), "software.jobs"))
    scope = tree.place()
    for argument, value, place in wrong:
        arguments = {**given, argument: value}
        arguments["shared_storage"] = [arguments["shared_storage"]]
        with pytest.raises(uc.InvalidArguments) as refused:
            uc.ParallelCluster(scope, "Cluster", vpc=tree.vpc, queues=[tree.queue], **arguments)
        places = [dotted(each.path).replace("shared_storage[0]", "shared_storage") for each in refused.value.violations]
        assert place in places, refused.value
    assert len(scope.node.find_all()) == 1


def test_ids_of_a_network_that_exists_are_those_of_its_parts(tree: Tree) -> None:
    *names, zone = sorted(NETWORK, key="availability_zone".__eq__)
    of_others = {name: NETWORK[other] for name, other in zip(names, [*names[2:], *names[:2]], strict=True)}
    with pytest.raises(uc.InvalidArguments) as refused:
        uc.UltraClusterNetwork.from_network_attributes(tree.place(), "It", **{**of_others, zone: "usw2-az4"})
    assert {each.path for each in refused.value.violations} == {(name,) for name in NETWORK}
    tokens = {name: cdk.Fn.import_value(name) for name in NETWORK}
    assert uc.UltraClusterNetwork.from_network_attributes(tree.place(), "It", **tokens).nat_gateway_id


@pytest.mark.parametrize("ids", [["sn-1"], None], ids=["wrong", "a token"])
def test_what_is_wrong_about_the_first_subnet_of_a_vpc_is_told_by_the_vpc(tree: Tree, ids: list[str] | None) -> None:
    place = tree.place()
    several = cdk.CfnParameter(place, "Several", type="CommaDelimitedList").value_as_list if ids is None else ids
    attributes: dict[str, Any] = {"vpc_id": "vpc-01234567", "availability_zones": ["us-west-2a"]}
    vpc = ec2.Vpc.from_vpc_attributes(place, "Vpc", **attributes, private_subnet_ids=several)
    before = len(place.node.find_all())
    for construct in (uc.ElasticFileSystem, uc.LustreFileSystem, uc.OpenZfsFileSystem, uc.ParallelCluster):
        with pytest.raises(
            uc.InvalidArguments, match="a token that stands for a list" if ids is None else "'sn-1'"
        ) as e:
            construct(place, "It", **{**tree.arguments[construct], "vpc": vpc})
        [violation] = e.value.violations
        assert (violation.path, "ec2.Subnet.from_subnet_id" in violation.reason) == (("vpc",), True)
    assert len(place.node.find_all()) == before


@pytest.mark.parametrize("method", ["lustre", "efs", "openzfs"])
def test_a_file_system_of_another_kind_is_refused_and_the_method_for_it_named(tree: Tree, method: str) -> None:
    place = tree.place()
    attributes: dict[str, Any] = {"file_system_id": "fs-0123456789abcdef0", "security_group": tree.group}
    kinds = {
        "lustre": [
            tree.data,
            uc.LustreFileSystem.from_lustre_file_system_attributes(place, "Data", **attributes),
            fsx.LustreFileSystem.from_lustre_file_system_attributes(place, "Theirs", dns_name="data", **attributes),
        ],
        "efs": [
            tree.homes,
            efs.FileSystem(place, "Homes", vpc=tree.vpc),
            efs.FileSystem.from_file_system_attributes(place, "TheirHomes", **attributes),
        ],
        "openzfs": [tree.volume],
    }
    for kind, file_systems in kinds.items():
        for file_system in file_systems:
            if kind == method:
                getattr(uc.SharedStorage, method)(file_system)
            else:
                with pytest.raises(uc.InvalidArguments, match=f"one for SharedStorage.{kind}|an IOpenZfsVolume"):
                    getattr(uc.SharedStorage, method)(file_system)

    class Own:
        """A file system of a class that nobody knows."""

        file_system_id = volume_id = cdk.Aws.NO_VALUE
        connections = ec2.Connections()

    getattr(uc.SharedStorage, method)(Own())


def elsewhere(tree: Tree) -> Iterator[tuple[Callable[..., Any], dict[str, Any], str]]:
    """Yield what takes a subnet or a security group, with one of another VPC, and the place that messages have."""
    other = ec2.Vpc(tree.stack, "Other", availability_zones=["us-west-2a", "us-west-2b"])
    subnet, group = other.private_subnets[0], ec2.SecurityGroup(tree.stack, "OfOther", vpc=other)
    storage = uc.SharedStorage.lustre(uc.LustreFileSystem(tree.stack, "OtherData", vpc=other))
    head_node, login = uc.HeadNode(subnet=subnet), uc.LoginPool(name="login", subnet=subnet)
    queue = uc.Queue(name="there", compute_resources=tree.queue.compute_resources, subnet=subnet)
    accounting = dataclasses.replace(tree.database.accounting("research"), security_groups=[group])
    for construct in (uc.ElasticFileSystem, uc.LustreFileSystem, uc.OpenZfsFileSystem):
        yield construct, {"subnet": subnet}, "subnet"
    yield uc.AccountingDatabase, {"subnets": other.private_subnets}, "subnets[0]"
    for name, value, place in (
        ("private_subnet", subnet, ""),
        ("public_subnet", subnet, ""),
        ("security_groups", [group], "[0]"),
        ("shared_storage", [storage], "[0].security_groups[0]"),
        ("head_node", head_node, ".subnet"),
        ("login_nodes", [login], "[0].subnet"),
        ("queues", [queue], "[0].subnet"),
        ("accounting", accounting, ".security_groups[0]"),
    ):
        yield uc.ParallelCluster, {name: value}, f"{name}{place}"
    yield tree.cluster.add_queue, {"queue": queue}, "queue.subnet"
    yield tree.cluster.add_shared_storage, {"storage": storage}, "storage.security_groups[0]"


def test_what_is_in_another_vpc_is_refused_everywhere(tree: Tree) -> None:
    for function, wrong, place in elsewhere(tree):
        scope = tree.place()
        made = {**tree.arguments[function], "scope": scope, "construct_id": "It"} if inspect.isclass(function) else {}
        with pytest.raises(uc.InvalidArguments) as refused:
            function(**{**made, **wrong})
        told = {dotted(each.path): str(each) for each in refused.value.violations}
        assert "of another VPC" in told.get(place, ""), refused.value
        assert len(scope.node.find_all()) == 1


@pytest.mark.parametrize(
    ("instance_type", "given", "refused"),
    [
        ("trn1.32xlarge", {}, True),
        ("p5.48xlarge", {"efa_interface_type": "efa"}, True),
        ("c5n.18xlarge", {}, True),
        ("c5n.18xlarge", {"efa_interface_type": "efa"}, False),
        ("c7i.large", {}, False),
    ],
)
def test_nodes_with_several_interfaces_are_in_no_public_subnet(
    tree: Tree, instance_type: str, given: dict[str, Any], refused: bool
) -> None:
    place = tree.place()
    ids: dict[str, Any] = {"public_subnet_ids": ["subnet-01234567"], "isolated_subnet_ids": ["subnet-12345678"]}
    theirs = ec2.Vpc.from_vpc_attributes(place, "Vpc", vpc_id="vpc-01234567", availability_zones=["a"], **ids)
    nodes = [uc.ComputeResource(name="nodes", instance_type=instance_type, max_count=1)]
    for index, vpc in enumerate((tree.vpc, theirs)):
        public = vpc.public_subnets[0]
        queue = uc.Queue(name="q", compute_resources=nodes, subnet=public)
        default = uc.Queue(name="q", compute_resources=nodes)
        for number, (queues, subnet, told) in enumerate(
            (([queue], None, "queues[0].subnet"), ([default], public, "private_subnet"))
        ):
            arguments = {"vpc": vpc, "queues": queues, "private_subnet": subnet, **given}
            if not refused:
                uc.ParallelCluster(place, f"Cluster{index}{number}", **arguments)
                continue
            with pytest.raises(uc.InvalidArguments) as error:
                uc.ParallelCluster(place, "Cluster", **arguments)
            assert [dotted(each.path) for each in error.value.violations] == [told]
            assert f"nodes of {instance_type} have several network interfaces" in str(error.value)
    unknown = ec2.Subnet.from_subnet_id(place, "Unknown", "subnet-01234567")
    uc.ParallelCluster(place, "Unclear", vpc=theirs, queues=[default], private_subnet=unknown, **given)


def test_a_name_in_the_tree_that_is_taken_is_told_by_its_argument(tree: Tree) -> None:
    for construct in CONSTRUCTS:
        scope = tree.place()
        Construct(scope, "Taken")
        for wrong in ("Taken", cdk.Aws.REGION):
            with pytest.raises(uc.InvalidArguments) as refused:
                construct(scope, wrong, **tree.arguments[construct])
            assert [each.path for each in refused.value.violations] == [("construct_id",)], refused.value
    assert "construct_id: got a token" in str(refused.value)
