"""Wrong arguments of all kinds, of each function that puts something into the tree: named, and nothing is there."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

import ultracluster as uc
from ultracluster.domain.violations import dotted

NUMBERS = count()
ELSEWHERE = {"ILustreFileSystem", "IParallelCluster"}
"""Bases, which nobody makes."""


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
            uc.LustreFileSystem.from_lustre_file_system_attributes: lambda: {
                "file_system_id": "fs-0123456789abcdef0",
                "security_group": self.group,
            },
            uc.OpenZfsFileSystem.from_volume_attributes: lambda: {
                "volume_id": "fsvol-0123456789abcdef0",
                "security_group": self.group,
            },
            uc.ParallelCluster.from_cluster_attributes: lambda: {"cluster_name": "research"},
            uc.SharedStorage.lustre: lambda: {"file_system": self.data},
            uc.SharedStorage.efs: lambda: {"file_system": self.data},
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
NEVER_RIGHT = [object(), ec2.Vpc, uc.Queue, [object()], {"key": object()}, secretsmanager.SecretStringGenerator()]
MAY_BE_RIGHT = [5, "text", [["text"]], {"key": 5}, [None]]


def look(
    tree: Tree, make: Callable[..., Any], good: Callable[[], dict[str, Any]], name: str, scope: Construct
) -> list[str]:
    """Return what is wrong about how wrong values of one argument are told."""
    faults = []
    before = len(scope.node.find_all())
    for value in [*NEVER_RIGHT, *(() if name == "construct_id" else MAY_BE_RIGHT), tree.stack]:
        try:
            make(**{**good(), name: value})
        except (uc.InvalidArguments, TypeError) as error:
            places = [str(each.path[0]) for each in getattr(error, "violations", ())]
            if name not in places and not (isinstance(error, TypeError) and name in str(error)):
                faults.append(f"{name}={value!r} is not named: {error}")
            elif "got " not in str(error):
                faults.append(f"{name}={value!r} is not shown: {error}")
            if len(scope.node.find_all()) != before:
                faults.append(f"{name}={value!r} leaves something in the tree")
        except Exception as error:  # what a caller gets who has no idea of the inside
            faults.append(f"{name}={value!r} ends in {type(error).__name__}: {str(error)[:100]}")
        else:
            if any(value is each for each in (*NEVER_RIGHT, tree.stack)) and name not in ("scope", "dependencies"):
                faults.append(f"{name}={value!r} is accepted")
            before = len(scope.node.find_all())
    return faults


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


def test_a_wrong_argument_of_a_function_is_named_and_leaves_the_tree_as_it_was(tree: Tree) -> None:
    faults = []
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
    scope = tree.place()
    for argument, value, place in wrong:
        arguments = {**given, argument: value}
        arguments["shared_storage"] = [arguments["shared_storage"]]
        with pytest.raises(uc.InvalidArguments) as refused:
            uc.ParallelCluster(scope, "Cluster", vpc=tree.vpc, queues=[tree.queue], **arguments)
        places = [dotted(each.path).replace("shared_storage[0]", "shared_storage") for each in refused.value.violations]
        assert place in places, refused.value
    assert len(scope.node.find_all()) == 1
