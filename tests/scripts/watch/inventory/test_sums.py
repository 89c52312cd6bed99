"""What an estimate says before and an inventory afterwards are the same prices of the same things."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from unittest.mock import Mock

import pytest

from config.settings import Settings, load
from scripts.account.deployment import Deployment
from scripts.check.estimate import products
from scripts.check.estimate.costs import Part, costs, parts
from scripts.check.estimate.prices import Prices
from scripts.emulated import accounts
from scripts.watch.inventory.costs import facts
from scripts.watch.inventory.resources import inventory
from tests.configurations import CONFIG, SHIPPED
from tests.deployed import DeployedAccount

BY_SERVICE = {
    "AmazonFSx": "AWS::FSx::FileSystem",
    "AmazonRDS": "AWS::RDS::DBInstance",
    "AWSELB": "AWS::ElasticLoadBalancingV2::LoadBalancer",
}
"""Types of resources by the service of a product, where that is enough."""
BY_PRODUCT = {
    products.ALARM: "AWS::CloudWatch::Alarm",
    products.COMPOSITE_ALARM: "AWS::CloudWatch::CompositeAlarm",
    products.DASHBOARD: "AWS::CloudWatch::Dashboard",
    products.GP3: "AWS::EC2::Volume",
    products.HOSTED_ZONE: "AWS::Route53::HostedZone",
    products.INTERFACE_ENDPOINT: "AWS::EC2::VPCEndpoint",
    products.KMS_KEY: "AWS::KMS::Key",
    products.NAT_GATEWAY: "AWS::EC2::NatGateway",
    products.PUBLIC_ADDRESS: "AWS::EC2::Instance",
    products.SECRET: "AWS::SecretsManager::Secret",
}
ONE = {"AWS::EC2::EIP": "AWS::EC2::Instance"}
"""Addresses that EC2 gives are no resources: they are listed with their instances, unless they are Elastic."""
NO_RESOURCE = {products.METRIC: "nodes send them", products.METRIC_REQUESTS: "nodes send them"}
"""What is paid and is no resource, and why."""


def type_of(part: Part) -> str:
    """Return the type of the resources that a part of an estimate is."""
    if part.product.usage_type.startswith("BoxUsage:"):
        return "AWS::EC2::Instance"
    if part.product.name.startswith("FSx OpenZFS"):
        return "AWS::FSx::FileSystem"
    return BY_PRODUCT.get(part.product) or BY_SERVICE[part.product.service]


@pytest.mark.parametrize("name", [*SHIPPED, "team"])
def test_each_line_of_an_estimate_is_a_resource_or_it_is_said_why_not(name: str) -> None:
    for part in parts(load(CONFIG / f"{name}.yaml")):
        assert part.product in NO_RESOURCE or type_of(part).startswith("AWS::")


LUSTRE: list[dict[str, Any]] = [
    {"deployment_type": "SCRATCH_2", "throughput_mbps_per_tib": None, "capacity_gib": 2400},
    {"deployment_type": "PERSISTENT_2", "throughput_mbps_per_tib": 250, "capacity_gib": 4800},
    {"deployment_type": "PERSISTENT_2", "throughput_mbps_per_tib": 500, "capacity_gib": 2400, "metadata_iops": 12000},
]


@pytest.mark.parametrize("spec", LUSTRE, ids=lambda spec: f"{spec['deployment_type']} {spec['capacity_gib']}")
def test_a_file_system_has_the_price_of_its_estimate(spec: dict[str, Any]) -> None:
    settings = load(CONFIG / "trn1-16.yaml")
    lustre = settings.storage.file_system.model_copy(update={"metadata_iops": None, **spec})
    storage = settings.storage.model_copy(update={"file_system": lustre})
    described = {
        "FileSystemId": "fs-1",
        "FileSystemType": "LUSTRE",
        "Lifecycle": "AVAILABLE",
        "StorageCapacity": lustre.capacity_gib,
        "LustreConfiguration": {
            "DeploymentType": lustre.deployment_type,
            **({"PerUnitStorageThroughput": lustre.throughput_mbps_per_tib} if lustre.throughput_mbps_per_tib else {}),
            **({"MetadataConfiguration": {"Iops": lustre.metadata_iops}} if lustre.metadata_iops else {}),
        },
    }
    monthly = of_estimate(settings.model_copy(update={"storage": storage}))["AWS::FSx::FileSystem"]
    assert of_inventory(settings, "AWS::FSx::FileSystem", "fs-1", described) == monthly > 0


@pytest.mark.parametrize(
    ("other", "is_known"), [({}, True), ({"StorageType": "io1"}, False), ({"MultiAZ": True}, False)], ids=str
)
def test_a_database_has_the_price_of_its_estimate_or_none_that_is_known(other: dict[str, Any], is_known: bool) -> None:
    settings = load(CONFIG / "team.yaml")
    assert settings.accounting
    spec = settings.accounting.database
    described = {
        "DBInstanceIdentifier": "db-1",
        "DBInstanceStatus": "available",
        "DBInstanceClass": spec.instance_class,
        "Engine": "mysql",
        "StorageType": "gp3",
        "MultiAZ": False,
        "AllocatedStorage": spec.storage_gib,
        **other,
    }
    expected = of_estimate(settings)["AWS::RDS::DBInstance"] if is_known else None
    assert of_inventory(settings, "AWS::RDS::DBInstance", "db-1", described) == expected != 0


def of_inventory(settings: Settings, kind: str, name: str, described: Mapping[str, Any]) -> Decimal | None:
    """Return what a resource costs a month, as its service describes it."""
    deployment = Deployment(settings.name, settings)
    deployment.account = Mock(list=Mock(return_value=[described]))
    return facts([deployment], [(kind, name)], [])[kind, name].monthly


def of_estimate(settings: Settings) -> Mapping[str, Decimal]:
    """Return what a deployment costs a month by types of resources, without the nodes that jobs start."""
    estimated = defaultdict[str, Decimal](Decimal)
    for part in costs(settings, Prices(settings.region)).parts:
        if not part.of_nodes and part.product not in NO_RESOURCE:
            assert part.at_min_count.month is not None, part.name
            estimated[type_of(part)] += part.at_min_count.month
    return estimated


@pytest.mark.slow
@pytest.mark.parametrize("name", ["team", "ultracluster"])
def test_each_line_of_an_estimate_is_in_the_inventory_at_its_price(
    name: str, deployed: Callable[[str], DeployedAccount], monkeypatch: pytest.MonkeyPatch
) -> None:
    account = deployed(name)
    settings = account.synthesized.settings
    for variable, value in {**account.aws.settings, **accounts.variables(settings.region)}.items():
        monkeypatch.setenv(variable, value)
    estimated = of_estimate(settings)
    listed = defaultdict[str, Decimal](Decimal)
    for each in inventory(Deployment(name, settings)).resources:
        listed[ONE.get(each.type, each.type)] += each.dollars_per_month or 0
    both = {**estimated, **listed}
    compared = {kind: (round(estimated.get(kind, Decimal(0)), 2), round(listed[kind], 2)) for kind in both}
    assert {kind: pair for kind, pair in compared.items() if pair[0] != pair[1]} == {}
