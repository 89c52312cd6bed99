"""Each resource type is made as its template says, changed in place, and deleted without a trace; boto3 looks."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.inventory import inventory
from emulator.resources import ResourceError
from tests.emulator.account import REGION, Account, Resource, tags
from tests.emulator.lives import CASES
from toolchain.values import UnsupportedError


@pytest.mark.parametrize("resource_type", CASES)
def test_life_of_a_resource(account: Account, resource_type: str) -> None:
    expected = CASES[resource_type](account)
    resource = account.create(resource_type, **expected.properties)
    assert resource.physical.attributes.keys() == expected.attributes
    assert expected.look(resource) == expected.made
    with pytest.raises(UnsupportedError, match="update of properties Foo"):
        account.update(resource, Foo=1)
    if expected.changes:
        resource = account.update(resource, **expected.changes)
        assert resource.physical.attributes.keys() == expected.attributes
        assert expected.look(resource) == expected.changed
    account.delete(resource)
    assert _is_gone(expected.look, resource)


def _is_gone(look: Callable[[Resource], Any], resource: Resource) -> bool:
    try:
        return not look(resource)
    except ClientError:
        return True


@pytest.mark.parametrize("resource_type", sorted(CASES.keys() - {"Custom::VpcRestrictDefaultSG"}))
def test_what_is_gone_already_is_deleted(account: Account, resource_type: str) -> None:
    resource = account.create(resource_type, **CASES[resource_type](account).properties)
    account.delete(resource)
    account.delete(resource)


@pytest.mark.parametrize("resource_type", ["AWS::FSx::FileSystem"])
def test_an_unknown_property_fails_by_name_and_leaves_nothing(account: Account, resource_type: str) -> None:
    properties = CASES[resource_type](account).properties
    before = inventory(account.aws, REGION)
    with pytest.raises(UnsupportedError, match=f"{resource_type}: properties Foo"):
        account.create(resource_type, **properties, Foo=1)
    assert inventory(account.aws, REGION) == before


# Particular resources


@pytest.mark.parametrize(
    ("resource_type", "wrong", "message"),
    [
        ("AWS::IAM::Role", [*tags(a="1"), *tags(a="2")], "Duplicate tag key 'a' specified."),
        ("AWS::EC2::VPC", tags(**{"aws:x": "1"}), "Tag keys starting with 'aws:' are reserved for internal use"),
        ("AWS::SSM::Parameter", {"AWS:x": "1"}, "Tag keys starting with 'aws:' are reserved for internal use"),
    ],
)
def test_tags_that_no_service_takes(account: Account, resource_type: str, wrong: Any, message: str) -> None:
    properties = {key: each for key, each in CASES[resource_type](account).properties.items() if key != "Tags"}
    with pytest.raises(ResourceError, match=message):
        account.create(resource_type, **properties, Tags=wrong)
    resource = account.create(resource_type, **properties)
    with pytest.raises(ResourceError, match=message):
        account.update(resource, Tags=wrong)
    account.delete(resource)


@pytest.mark.parametrize(
    ("resource_type", "name"),
    [
        ("AWS::IAM::Role", "RoleName"),
        ("AWS::S3::Bucket", "BucketName"),
        ("AWS::SSM::Parameter", "Name"),
    ],
)
def test_a_name_in_use_is_refused(account: Account, resource_type: str, name: str) -> None:
    properties = {**CASES[resource_type](account).properties, name: "taken"}
    resource = account.create(resource_type, **properties)
    with pytest.raises((ClientError, ResourceError), match=r"[Aa]lready.?[Ee]xists?"):
        account.create(resource_type, **properties)
    account.delete(resource)


def test_a_gateway_endpoint_is_a_route(account: Account) -> None:
    vpc = account.vpc()
    first, second = (account.create("AWS::EC2::RouteTable", VpcId=vpc.ref).ref for _ in range(2))
    endpoint = account.create(
        "AWS::EC2::VPCEndpoint", VpcId=vpc.ref, ServiceName=f"com.amazonaws.{REGION}.s3", RouteTableIds=[first]
    )

    def tables() -> list[str]:
        found = account.client("ec2").describe_route_tables(RouteTableIds=[first, second])["RouteTables"]
        return [
            each["RouteTableId"] for each in found for route in each["Routes"] if "DestinationPrefixListId" in route
        ]

    assert tables() == [first]
    endpoint = account.update(endpoint, RouteTableIds=[second])
    assert tables() == [second]
    account.delete(endpoint)
    assert tables() == []


def test_a_subnet_is_led_to_another_table_before_the_old_association_is_deleted(account: Account) -> None:
    vpc = account.vpc()
    subnet = account.subnet(vpc).ref
    tables = [account.create("AWS::EC2::RouteTable", VpcId=vpc.ref).ref for _ in range(2)]
    old, new = (
        account.create("AWS::EC2::SubnetRouteTableAssociation", SubnetId=subnet, RouteTableId=each) for each in tables
    )
    assert old.ref != new.ref
    account.delete(old)
    found = account.client("ec2").describe_route_tables(
        Filters=[{"Name": "association.subnet-id", "Values": [subnet]}]
    )["RouteTables"]
    assert [each["RouteTableId"] for each in found] == tables[1:]


def test_a_nat_gateway_without_internet_gateway_fails_as_it_stabilizes(account: Account) -> None:
    vpc = account.vpc()
    subnet, address = account.subnet(vpc), account.address()
    reason = f"is in state failed .*: Network {vpc.ref} has no Internet gateway attached"
    with pytest.raises(ResourceError, match=reason):
        account.nat_gateway(subnet, address)
    for resource in (address, subnet, vpc):
        account.delete(resource)


def test_a_link_to_a_bucket_that_is_not_there_fails(account: Account) -> None:
    vpc = account.vpc()
    file_system = account.file_system(account.subnet(vpc), account.group(vpc))
    with pytest.raises(ResourceError, match="unable to access the S3 bucket nowhere"):
        account.create(
            "AWS::FSx::DataRepositoryAssociation",
            FileSystemId=file_system.ref,
            FileSystemPath="/data",
            DataRepositoryPath="s3://nowhere/data",
        )
    of_file_system = [{"Name": "file-system-id", "Values": [file_system.ref]}]
    found = account.client("fsx").describe_data_repository_associations(Filters=of_file_system)
    assert found["Associations"] == []
