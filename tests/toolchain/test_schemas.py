"""Properties are checked as CloudFormation checks them, and replace a resource where the documentation says so."""

import subprocess
import sys
from typing import Any

import pytest

from toolchain import schemas
from toolchain.schemas import SchemaError

VPC = "AWS::EC2::VPC"
FILE_SYSTEM = "AWS::FSx::FileSystem"
LUSTRE: dict[str, Any] = {"FileSystemType": "LUSTRE", "SubnetIds": ["subnet-1"]}
REFERENCE = "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference"


def check(resource_type: str, properties: dict[str, Any], region: str = "us-west-2") -> None:
    schemas.check(resource_type, region, properties, "L")


@pytest.mark.parametrize(
    ("resource_type", "expected"),
    [(VPC, True), ("AWS::EC2::Vpc", False), ("Custom::Anything", True), ("AWS::CloudFormation::CustomResource", True)],
)
def test_known_types(resource_type: str, expected: bool) -> None:
    assert schemas.known(resource_type) is expected


@pytest.mark.parametrize(
    ("resource_type", "properties", "messages"),
    [
        (VPC, {"CidrBlok": "10.0.0.0/16"}, ["#: extraneous key [CidrBlok] is not permitted"]),
        ("AWS::EC2::Subnet", {"CidrBlock": "10.0.0.0/24"}, ["#: required key [VpcId] not found"]),
        (VPC, {"EnableDnsSupport": "perhaps"}, ["#/EnableDnsSupport: expected type: Boolean, found: String"]),
        (
            "AWS::Lambda::Function",
            {"Code": {}, "Role": "x"},
            ["#/Role: failed validation constraint for keyword [pattern]"],
        ),
        ("AWS::Logs::LogGroup", {"RetentionInDays": 2}, ["#/RetentionInDays: 2 is not a valid enum value"]),
    ],
)
def test_wrong_properties(resource_type: str, properties: dict[str, Any], messages: list[str]) -> None:
    """https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/1005 has such words of AWS."""
    with pytest.raises(SchemaError) as raised:
        check(resource_type, properties)
    expected = f"Properties validation failed for resource L with message: [{', '.join(messages)}]"
    assert str(raised.value) == expected


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({**LUSTRE, "Size": 1200}, "Encountered unsupported property Size"),
        ({"FileSystemType": "LUSTRE"}, "Property SubnetIds cannot be empty."),
        ({**LUSTRE, "SubnetIds": "subnet-1"}, "Value of property SubnetIds must be of type List"),
        ({**LUSTRE, "Tags": [{"Key": "k"}] * 2}, "Property Value cannot be empty."),
    ],
)
def test_wrong_properties_of_a_type_older_than_the_registry(properties: dict[str, Any], message: str) -> None:
    """https://repost.aws/knowledge-center/cloudformation-template-validation."""
    with pytest.raises(SchemaError) as raised:
        check(FILE_SYSTEM, properties)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("resource_type", "given", "expected"),
    [
        (
            VPC,
            {"EnableDnsSupport": "true", "EnableDnsHostnames": "false"},
            {"EnableDnsSupport": True, "EnableDnsHostnames": False},
        ),
        (
            FILE_SYSTEM,
            {"StorageCapacity": "1200", "Tags": [{"Key": "n", "Value": 1}]},
            {"StorageCapacity": 1200, "Tags": [{"Key": "n", "Value": "1"}]},
        ),
        ("AWS::CloudWatch::Alarm", {"Threshold": "0.5", "Period": "x"}, {"Threshold": 0.5, "Period": "x"}),
        ("AWS::SSM::Parameter", {"Tags": {"a": True}}, {"Tags": {"a": "true"}}),
        ("Custom::Thing", {"Number": "16"}, {"Number": "16"}),
    ],
)
def test_scalars_get_the_type_of_the_schema(
    resource_type: str, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert schemas.coerced(resource_type, given) == expected


@pytest.mark.parametrize(
    ("resource_type", "old", "new", "expected", "page"),
    [
        (VPC, {"CidrBlock": "10.0.0.0/16"}, {"CidrBlock": "10.1.0.0/16"}, {"CidrBlock"}, "aws-resource-ec2-vpc"),
        (VPC, {"EnableDnsSupport": True}, {"EnableDnsSupport": False}, set(), "aws-resource-ec2-vpc"),
        (FILE_SYSTEM, {"StorageCapacity": 1200}, {"StorageCapacity": 2400}, set(), "aws-resource-fsx-filesystem"),
        (
            FILE_SYSTEM,
            {"LustreConfiguration": {"DeploymentType": "SCRATCH_2", "DataCompressionType": "NONE"}},
            {"LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "DataCompressionType": "LZ4"}},
            {"LustreConfiguration/DeploymentType"},
            "aws-properties-fsx-filesystem-lustreconfiguration",
        ),
        ("AWS::EC2::Instance", {"SubnetId": "a"}, {"SubnetId": "b"}, {"SubnetId"}, "aws-resource-ec2-instance"),
        ("AWS::EC2::PlacementGroup", {}, {"Tags": []}, {"Tags"}, "aws-resource-ec2-placementgroup"),
        ("Custom::Thing", {"a": 1}, {"a": 2}, set(), "aws-resource-cloudformation-customresource"),
    ],
)
def test_what_replaces_a_resource(
    resource_type: str, old: dict[str, Any], new: dict[str, Any], expected: set[str], page: str
) -> None:
    assert schemas.needs_replacement(resource_type, old, new) == expected, f"{REFERENCE}/{page}.html"


def test_cfn_lint_is_loaded_only_when_a_schema_is_asked_for() -> None:
    code = "import sys, toolchain.schemas; print('cfnlint' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
