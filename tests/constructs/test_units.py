"""Numbers with a unit: each argument whose name ends in one takes the CDK's type as well, and it means the same."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

import ultracluster as uc
from tests.stacks.small_app import new_app
from ultracluster.domain.spec import Spec
from ultracluster.domain.types import UNITS
from ultracluster.options import Values

pytestmark = pytest.mark.slow

VALUES: Final[Mapping[str, tuple[int, Any, Any]]] = {
    "_gib": (2400, cdk.Size.mebibytes(2400 * 1024), cdk.Size.mebibytes(100)),
    "_days": (5, cdk.Duration.hours(120), cdk.Duration.hours(5)),
    "_hours": (12, cdk.Duration.minutes(720), cdk.Duration.minutes(90)),
    "_minutes": (20, cdk.Duration.seconds(1200), cdk.Duration.seconds(90)),
}
"""By unit: a number that each argument takes, the same as the CDK has it, and what is no whole number of units."""
REQUIRED: Final[Mapping[type[Spec], dict[str, Any]]] = {
    uc.AccountSpec: {"name": "vision"},
    uc.BudgetSpec: {"monthly_usd": 1.0},
    uc.InstanceTypeFacts: {"vcpus": 192},
    uc.LoginPool: {"name": "login"},
    uc.QosSpec: {"name": "urgent"},
    uc.Queue: {"name": "nodes", "compute_resources": []},
}
CLASSES = [each for name in uc.__all__ if inspect.isclass(each := getattr(uc, name))]


def units(names: Iterator[str]) -> dict[str, str]:
    """Return the units of the names that end in one."""
    return {name: unit for name in names for unit in UNITS if name.endswith(unit)}


OPTIONS = [
    (each, name, unit)
    for each in CLASSES
    if issubclass(each, Spec)
    for name, unit in units(iter(each.model_fields)).items()
]
ARGUMENTS = {
    each: found
    for each in CLASSES
    if issubclass(each, Construct)
    if (found := units(iter(inspect.signature(each.__init__).parameters)))
}


@pytest.mark.parametrize(("options", "name", "unit"), OPTIONS, ids=lambda each: getattr(each, "__name__", str(each)))
def test_an_option_takes_what_the_cdk_has_for_its_unit(options: type[Spec], name: str, unit: str) -> None:
    number, same, part = VALUES[unit]
    required = REQUIRED.get(options, {})
    assert getattr(options(**required, **{name: same}), name) == number
    assert getattr(options(**required, **{name: number}), name) == number
    if issubclass(options, Values):
        with pytest.raises(uc.InvalidArguments, match="allowed: a whole number of"):
            options(**required, **{name: part})
    else:
        assert getattr(options(**required, **{name: part}), name) is part, "the cluster checks it"


def test_a_value_of_another_kind_is_told_which_is_taken() -> None:
    with pytest.raises(uc.InvalidArguments) as refused:
        uc.BudgetSpec(monthly_usd=1.0, max_idle_minutes=cdk.Size.gibibytes(5))  # type: ignore[arg-type]
    assert str(refused.value).endswith("got a cdk.Size; allowed: a whole number of minutes, or a cdk.Duration")


def made(directory: Path, value: Callable[[str], object]) -> dict[str, Any]:
    """Return the templates of each construct that has arguments with units, given so."""
    app = new_app(directory)
    for construct, found in ARGUMENTS.items():
        stack = cdk.Stack(app, construct.__name__, env=cdk.Environment(region="us-west-2"))
        vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a", "us-west-2b"])
        group = ec2.SecurityGroup(stack, "Group", vpc=vpc)
        data = uc.LustreFileSystem.from_lustre_file_system_attributes(
            stack, "Files", file_system_id="fs-0123456789abcdef0", security_group=group
        )
        required: Mapping[type[Construct], dict[str, Any]] = {
            uc.AccountingDatabase: {"vpc": vpc, "subnets": vpc.private_subnets},
            uc.ClusterMonitoring: {
                "cluster": uc.ParallelCluster.from_cluster_attributes(stack, "Cluster", cluster_name="research"),
                "budget": uc.BudgetSpec(monthly_usd=100),
                "file_system": data,
            },
            uc.HeadNodeSnapshots: {"deployment": "research"},
            uc.LustreFileSystem: {"vpc": vpc},
            uc.OpenZfsFileSystem: {"vpc": vpc},
        }
        construct(stack, "Made", **required[construct], **{name: value(unit) for name, unit in found.items()})
    app.synth()
    return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in directory.glob("*.template.json")}


def test_constructs_take_what_the_cdk_has_for_units(tmp_path: Path) -> None:
    numbers = made(tmp_path / "numbers", lambda unit: VALUES[unit][0])
    assert len(numbers) == len(ARGUMENTS)
    assert made(tmp_path / "values", lambda unit: VALUES[unit][1]) == numbers


def test_type_checkers_let_them_pass() -> None:
    """Of options, programs of users tell: ``tests/constructs/apps``."""
    narrow = [
        f"{construct.__name__}.{name}: {kind}"
        for construct, found in ARGUMENTS.items()
        for name in found
        if "Size" not in (kind := str(inspect.signature(construct.__init__).parameters[name].annotation))
        and "Duration" not in kind
    ]
    assert narrow == []


def test_alarms_of_a_cluster_of_the_app_know_when_its_nodes_end(tmp_path: Path) -> None:
    stack = cdk.Stack(new_app(tmp_path), "Training", env=cdk.Environment(region="us-west-2"))
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a"])
    data = uc.LustreFileSystem(stack, "Data", vpc=vpc)
    spec = uc.BudgetSpec(monthly_usd=10_000, max_idle_minutes=cdk.Duration.hours(1))
    cluster = uc.ParallelCluster(
        stack,
        "Cluster",
        vpc=vpc,
        queues=[uc.Queue(name="trn1", compute_resources=[uc.ComputeResource(name="nodes", max_count=2)])],
        shared_storage=[uc.SharedStorage.lustre(data)],
        software=uc.NeuronSoftware(budget=spec),
        slurm=uc.Slurm(idle_minutes=cdk.Duration.minutes(45)),
    )
    monitoring = uc.ClusterMonitoring(stack, "Monitoring", cluster=cluster, budget=spec)
    [idle] = [each for each in monitoring.alarms if each.node.id == "NodesIdle"]
    threshold = idle.node.default_child.threshold  # type: ignore[union-attr]
    assert threshold == (45 + 60) * 60
