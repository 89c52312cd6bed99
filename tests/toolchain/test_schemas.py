"""Properties are checked as CloudFormation checks them, and replace a resource where the documentation says so."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolchain import schemas
from toolchain.schemas import SchemaError

ROOT = Path(__file__).parents[2]
VPC = "AWS::EC2::VPC"
FILE_SYSTEM = "AWS::FSx::FileSystem"
LUSTRE: dict[str, Any] = {"FileSystemType": "LUSTRE", "SubnetIds": ["subnet-1"]}


def check(resource_type: str, properties: dict[str, Any], region: str = "us-west-2") -> None:
    schemas.check(resource_type, region, properties, "L")


@pytest.mark.parametrize(
    ("resource_type", "properties", "message"),
    [
        (VPC, {"CidrBlok": "10.0.0.0/16"}, "#/CidrBlok: Additional properties are not allowed"),
        (VPC, {"EnableDnsSupport": "perhaps"}, "#/EnableDnsSupport: 'perhaps' is not of type 'boolean'"),
        (FILE_SYSTEM, {**LUSTRE, "Tags": [{"Key": "k"}]}, "#/Tags/0: 'Value' is a required property"),
    ],
)
def test_wrong_properties(resource_type: str, properties: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as raised:
        check(resource_type, properties)
    assert str(raised.value).startswith(f"Properties validation failed for resource L with message: [{message}")


@pytest.mark.parametrize(
    ("resource_type", "given", "expected"),
    [
        (VPC, {"EnableDnsSupport": "true"}, {"EnableDnsSupport": True}),
        (
            FILE_SYSTEM,
            {"StorageCapacity": "1200", "Tags": [{"Key": "n", "Value": 1}]},
            {"StorageCapacity": 1200, "Tags": [{"Key": "n", "Value": "1"}]},
        ),
        ("AWS::CloudWatch::Alarm", {"Threshold": "0.5", "Period": "x"}, {"Threshold": 0.5, "Period": "x"}),
        ("AWS::SSM::Parameter", {"Tags": {"a": True}}, {"Tags": {"a": "true"}}),
    ],
)
def test_scalars_get_the_type_of_the_schema(
    resource_type: str, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert schemas.coerced(resource_type, given) == expected


@pytest.mark.parametrize(
    ("resource_type", "old", "new", "expected"),
    [
        (VPC, {"CidrBlock": "10.0.0.0/16"}, {"CidrBlock": "10.1.0.0/16"}, {"CidrBlock"}),
        (FILE_SYSTEM, {"StorageCapacity": 1200}, {"StorageCapacity": 2400}, set()),
        (
            FILE_SYSTEM,
            {"LustreConfiguration": {"DeploymentType": "SCRATCH_2", "DataCompressionType": "NONE"}},
            {"LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "DataCompressionType": "LZ4"}},
            {"LustreConfiguration/DeploymentType"},
        ),
        ("AWS::EC2::PlacementGroup", {}, {"Tags": []}, {"Tags"}),
        ("Custom::Thing", {"a": 1}, {"a": 2}, set()),
    ],
)
def test_what_replaces_a_resource(
    resource_type: str, old: dict[str, Any], new: dict[str, Any], expected: set[str]
) -> None:
    assert schemas.needs_replacement(resource_type, old, new) == expected


def test_what_the_cdk_says_replaces_a_file_system_or_a_database_replaces_it() -> None:
    """The CLI has AWS's documentation, as `cdk diff` shows it. File systems of other kinds are not ours."""
    spec = json.loads(gzip.decompress((ROOT / "node_modules/aws-cdk/db.json.gz").read_bytes()))["schema"]
    types = {each["$id"]: each["properties"] for each in spec["typeDefinition"]["entities"]}
    resources = {each["cloudFormationType"]: each["properties"] for each in spec["resource"]["entities"]}
    for resource_type in (FILE_SYSTEM, "AWS::FSx::Volume", "AWS::EFS::FileSystem", "AWS::RDS::DBInstance"):
        replacing = set[tuple[str, ...]]()
        for name, each in resources[resource_type].items():
            members = types.get(each["type"].get("reference", {}).get("$ref"), {})
            replacing |= {(name,)} if each.get("causesReplacement") == "yes" else set()
            replacing |= {(name, key) for key, at in members.items() if at.get("causesReplacement") == "yes"}
        assert replacing
        for path in replacing:
            name, key = path[0], path[1:]
            if name in ("OntapConfiguration", "WindowsConfiguration") or key == ("EndpointIpAddressRange",):
                continue
            old, new = ({name: {key[0]: value} if key else value} for value in (1, 2))
            assert schemas.needs_replacement(resource_type, old, new), (resource_type, name, key)


def test_cfn_lint_is_loaded_only_when_a_schema_is_asked_for() -> None:
    code = "import sys, toolchain.schemas; print('cfnlint' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
