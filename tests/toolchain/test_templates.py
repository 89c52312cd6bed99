"""Template values are computed as CloudFormation does; what is unknown here fails by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.aws import EmulatedAws
from emulator.templates import Resolver
from toolchain.assembly import Assembly
from toolchain.cluster import as_strings, cluster_request
from toolchain.values import UnsupportedError

pytestmark = [pytest.mark.slow, pytest.mark.validation]

VPC = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.7.0.0/16"}}


@pytest.fixture
def assembly(tmp_path: Path) -> Callable[..., Assembly]:
    """Return a function that writes a cloud assembly of the templates given by stack name."""

    def write(environment: str = "aws://unknown-account/us-west-2", **templates: dict[str, Any]) -> Assembly:
        artifacts = {}
        for name, template in templates.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(template))
            artifacts[name] = {
                "type": "aws:cloudformation:stack",
                "environment": environment,
                "properties": {"templateFile": f"{name}.json", "stackName": f"{name}-stack", "tags": {"a": "b"}},
            }
        (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
        return Assembly(tmp_path)

    return write


@pytest.fixture
def resolve(aws: EmulatedAws, assembly: Callable[..., Assembly]) -> Callable[..., Any]:
    """Return a function that computes a value in a stack of the given resources."""

    def resolved(value: Any, resources: dict[str, Any] | None = None) -> Any:
        written = assembly(one={"Resources": resources or {}})
        return Resolver(written, aws).resolve(written.stacks["one-stack"], value)

    return resolved


def test_a_reference_makes_the_resource_once(resolve: Callable[..., Any]) -> None:
    references = [{"Ref": "V"}, {"Fn::Sub": "${V}"}, {"Fn::GetAtt": ["V", "DefaultSecurityGroup"]}]
    first, again, group = resolve(references, {"V": VPC})
    assert first == again
    assert (first[:4], group[:3]) == ("vpc-", "sg-")


def test_an_output_of_another_stack_is_followed(aws: EmulatedAws, assembly: Callable[..., Assembly]) -> None:
    written = assembly(
        one={"Resources": {"V": VPC}, "Outputs": {"Vpc": {"Value": {"Ref": "V"}}}},
        two={"Resources": {}},
    )
    reference = {"Fn::GetStackOutput": {"StackName": "one-stack", "OutputName": "Vpc", "Region": "us-west-2"}}
    vpc_id = Resolver(written, aws).resolve(written.stacks["two-stack"], reference)
    assert aws.client("ec2", "us-west-2").describe_vpcs(VpcIds=[vpc_id])["Vpcs"][0]["CidrBlock"] == "10.7.0.0/16"


def test_rules_of_a_security_group_come_with_it_from_any_stack(
    aws: EmulatedAws, assembly: Callable[..., Assembly]
) -> None:
    group = {"VpcId": {"Ref": "V"}, "GroupDescription": "g"}
    rule = {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988, "CidrIp": "10.7.0.0/16", "Description": "d"}
    output = {"Fn::GetStackOutput": {"StackName": "one-stack", "OutputName": "Group"}}
    written = assembly(
        one={
            "Resources": {"V": VPC, "G": {"Type": "AWS::EC2::SecurityGroup", "Properties": group}},
            "Outputs": {"Group": {"Value": {"Fn::GetAtt": ["G", "GroupId"]}}},
        },
        two={"Resources": {"R": {"Type": "AWS::EC2::SecurityGroupIngress", "Properties": {**rule, "GroupId": output}}}},
    )
    group_id = Resolver(written, aws).resolve(written.stacks["one-stack"], {"Ref": "G"})
    [made] = aws.client("ec2", "us-west-2").describe_security_groups(GroupIds=[group_id])["SecurityGroups"]
    assert [permission["FromPort"] for permission in made["IpPermissions"]] == [988]


def test_the_unknown_fails_by_name(resolve: Callable[..., Any]) -> None:
    unknown = {"Fn::GetStackOutput": {"StackName": "elsewhere", "OutputName": "O"}}
    for value, resources, message in (
        ({"Ref": "X"}, {"X": {"Type": "AWS::X::Y"}}, "one-stack: X: resource type AWS::X::Y"),
        ({"Fn::GetAtt": ["V", "X"]}, {"V": VPC}, "one-stack: attribute X of V"),
        ({"Ref": "V"}, {"V": {**VPC, "Condition": "C"}}, "one-stack: V has a condition"),
        (unknown, {}, "one-stack: output O of stack elsewhere"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            resolve(value, resources)


def test_a_stack_without_a_region_is_refused(assembly: Callable[..., Assembly]) -> None:
    with pytest.raises(UnsupportedError, match="one-stack: a stack without a region"):
        assembly("aws://unknown-account/unknown-region", one={})


def test_an_assembly_without_a_cluster_is_refused(aws: EmulatedAws, assembly: Callable[..., Assembly]) -> None:
    written = assembly(one={"Resources": {"V": VPC}})
    with pytest.raises(LookupError, match="0 resources of type Custom::PclusterCluster"):
        cluster_request(written, Resolver(written, aws))


def test_scalars_become_cloudformations_strings() -> None:
    value = {"a": True, "b": [16, None, 0.5, "x"], "c": None, "d": {"e": False}}
    assert as_strings(value) == {"a": "true", "b": ["16", "0.5", "x"], "d": {"e": "false"}}
