"""Values that the emulated APIs refuse, as AWS does; the words are cited where they are refused.

AWS's own are unknown for too large advanced parameters, missing capacities and partitions of clusters.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.emulator.account import REGION, Account, refused, statement, trust


def _lustre(capacity: int | None, storage_type: str = "SSD", **configuration: Any) -> Callable[[Account], object]:
    size: dict[str, Any] = {} if capacity is None else {"StorageCapacity": capacity}

    def create(account: Account) -> object:
        vpc = account.vpc()
        return account.create(
            "AWS::FSx::FileSystem",
            FileSystemType="LUSTRE",
            SubnetIds=[account.subnet(vpc).ref],
            StorageType=storage_type,
            LustreConfiguration=configuration,
            **size,
        )

    return create


def _subnet(**properties: str) -> Callable[[Account], object]:
    return lambda account: account.create("AWS::EC2::Subnet", VpcId=account.vpc().ref, **properties)


def _route(**targets: str) -> Callable[[Account], object]:
    def create(account: Account) -> object:
        table = account.create("AWS::EC2::RouteTable", VpcId=account.vpc().ref).ref
        return account.create("AWS::EC2::Route", RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", **targets)

    return create


def _rule(**rule: Any) -> Callable[[Account], object]:
    return lambda account: account.create(
        "AWS::EC2::SecurityGroup", GroupDescription="x", VpcId=account.vpc().ref, SecurityGroupIngress=[rule]
    )


def _parameter(**properties: str) -> Callable[[Account], object]:
    return lambda account: account.create("AWS::SSM::Parameter", Type="String", **properties)


def _bucket_policy(document: Any) -> Callable[[Account], object]:
    return lambda account: account.create(
        "AWS::S3::BucketPolicy", Bucket=account.create("AWS::S3::Bucket").ref, PolicyDocument=document
    )


def _trust(**members: Any) -> Callable[[Account], object]:
    return lambda account: account.create("AWS::IAM::Role", AssumeRolePolicyDocument=members)


def _key(policy: Any) -> Callable[[Account], object]:
    return lambda account: account.create("AWS::KMS::Key", KeyPolicy=policy)


_ZONES = "us-west-2a, us-west-2b, us-west-2c, us-west-2d"
_THROUGHPUT = (
    "Invalid Lustre deployment configuration: the provided throughput is invalid or does not meet the storage "
    "capacity requirement"
)
_TARGETS = "The request must contain exactly one of gatewayId, networkInterfaceId, vpcPeeringConnectionId or instanceId"
_PEERS = "The request must contain exactly one of: cidrIp, cidrIpv6, prefixListId, or referencedGroupId"
_LOCKED_OUT = "The new key policy will not allow you to update the key policy in the future."

WRONG_VALUES: dict[str, tuple[Callable[[Account], object], str, str]] = {
    "capacity between two steps": (
        _lustre(1300, DeploymentType="SCRATCH_2"),
        "BadRequest",
        "Invalid Lustre FS storage capacity: 1300. Must be 1200 or a multiple of 2400.",
    ),
    "capacity of another type": (
        _lustre(4800, DeploymentType="SCRATCH_1"),
        "BadRequest",
        "Invalid Lustre FS storage capacity: 4800. Must be 1200, 2400 or a multiple of 3600.",
    ),
    "capacity of another storage type": (
        _lustre(1200, "HDD", DeploymentType="PERSISTENT_1", PerUnitStorageThroughput=12),
        "BadRequest",
        "Invalid Lustre FS storage capacity: 1200. Must be a multiple of 6000.",
    ),
    "no capacity": (
        _lustre(None, DeploymentType="SCRATCH_2"),
        "BadRequest",
        "Storage capacity must be specified for a Lustre file system.",
    ),
    "scratch with throughput": (
        _lustre(1200, DeploymentType="SCRATCH_2", PerUnitStorageThroughput=125),
        "BadRequest",
        _THROUGHPUT,
    ),
    "persistent without throughput": (_lustre(1200, DeploymentType="PERSISTENT_2"), "BadRequest", _THROUGHPUT),
    "throughput of another type": (
        _lustre(1200, DeploymentType="PERSISTENT_2", PerUnitStorageThroughput=50),
        "BadRequest",
        _THROUGHPUT,
    ),
    "zone of another Region": (
        _subnet(CidrBlock="10.0.0.0/24", AvailabilityZone="eu-west-1a"),
        "InvalidParameterValue",
        "Value (eu-west-1a) for parameter availabilityZone is invalid. Subnets can currently only be created in the "
        f"following availability zones: {_ZONES}.",
    ),
    "zone id of another Region": (
        _subnet(CidrBlock="10.0.0.0/24", AvailabilityZoneId="euw1-az1"),
        "InvalidParameterValue",
        "Value (euw1-az1) for parameter availabilityZoneId is invalid. Subnets can currently only be created in the "
        "following availability zones: usw2-az2, usw2-az1, usw2-az3, usw2-az4.",
    ),
    "subnet that is too small": (
        _subnet(CidrBlock="10.0.0.0/29"),
        "InvalidSubnet.Range",
        "The CIDR '10.0.0.0/29' is invalid.",
    ),
    "subnet without a range": (
        _subnet(),
        "MissingParameter",
        "Either 'cidrBlock' or 'ipv4IpamPoolId' should be provided.",
    ),
    "endpoint of no service": (
        lambda account: account.create(
            "AWS::EC2::VPCEndpoint", VpcId=account.vpc().ref, ServiceName=f"com.amazonaws.{REGION}.nonsense"
        ),
        "InvalidServiceName",
        f"The Vpc Endpoint Service 'com.amazonaws.{REGION}.nonsense' does not exist",
    ),
    "route to nowhere": (_route(), "MissingParameter", _TARGETS),
    "route to two targets": (_route(GatewayId="igw-1", NatGatewayId="nat-1"), "InvalidParameterCombination", _TARGETS),
    "ports in the wrong order": (
        _rule(IpProtocol="tcp", FromPort=9, ToPort=2, CidrIp="10.0.0.0/8"),
        "InvalidParameterValue",
        "Invalid TCP/UDP port range (9:2)",
    ),
    "port that is none": (
        _rule(IpProtocol="udp", FromPort=1, ToPort=65536, CidrIp="10.0.0.0/8"),
        "InvalidParameterValue",
        "TCP/UDP port (65536) out of range",
    ),
    "no ports": (
        _rule(IpProtocol="tcp", CidrIp="10.0.0.0/8"),
        "InvalidParameterValue",
        "Invalid value 'Must specify both from and to ports with TCP/UDP.' for portRange.",
    ),
    "rule for nobody": (_rule(IpProtocol="tcp", FromPort=1, ToPort=2), "MissingParameter", _PEERS),
    "partitions of a cluster": (
        lambda account: account.create("AWS::EC2::PlacementGroup", Strategy="cluster", PartitionCount=2),
        "InvalidParameterCombination",
        "PartitionCount is only valid for placement groups with the partition strategy.",
    ),
    "parameter that is too long": (
        _parameter(Value="x" * 4097),
        "ValidationException",
        "Standard tier parameters support a maximum parameter value of 4096 characters. To create a larger parameter "
        "value, upgrade the parameter to use the advanced-parameter tier. For more information, see "
        "https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html",
    ),
    "parameter that is too long for any tier": (
        _parameter(Value="x" * 8193, Tier="Advanced"),
        "ValidationException",
        "Advanced tier parameters support a maximum parameter value of 8192 characters.",
    ),
    "parameter against its pattern": (
        _parameter(Value="abc", AllowedPattern=r"^\d{1,4}$"),
        "ParameterPatternMismatchException",
        r"Parameter value, cannot be validated against allowedPattern: ^\d{1,4}$",
    ),
    "bucket policy of an unknown effect": (
        _bucket_policy({"Statement": [{"Effect": "Permit"}]}),
        "MalformedPolicy",
        "Invalid policy syntax.",
    ),
    "bucket policy for nobody": (
        _bucket_policy(statement(Action="s3:*", Resource="*")),
        "MalformedPolicy",
        "Missing required field Principal",
    ),
    "trust policy that is none": (_trust(Statement="x"), "MalformedPolicyDocument", "Syntax errors in policy."),
    "trust policy about a resource": (
        _trust(Statement=[{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}]),
        "MalformedPolicyDocument",
        "Has prohibited field Resource.",
    ),
    "key policy that is empty": (_key({}), "MalformedPolicyDocumentException", _LOCKED_OUT),
    "key policy that only reads": (
        _key(statement(Action="kms:Describe*", Principal="*", Resource="*")),
        "MalformedPolicyDocumentException",
        _LOCKED_OUT,
    ),
}


@pytest.mark.parametrize("value", WRONG_VALUES)
def test_a_wrong_value(account: Account, value: str) -> None:
    create, code, message = WRONG_VALUES[value]
    with refused(code, message):
        create(account)


def test_values_at_the_limits(account: Account) -> None:
    for capacity, configuration in (
        (2400, {"DeploymentType": "SCRATCH_2"}),
        (7200, {}),
        (1200, {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 1000}),
    ):
        _lustre(capacity, **configuration)(account)
    _lustre(1800, "HDD", DeploymentType="PERSISTENT_1", PerUnitStorageThroughput=40)(account)
    _subnet(CidrBlock="10.0.0.0/28", AvailabilityZone=f"{REGION}a")(account)
    _rule(IpProtocol="tcp", FromPort=0, ToPort=65535, CidrIp="10.0.0.0/8")(account)
    _parameter(Value="x" * 4096)(account)
    _parameter(Value="x" * 8192, Tier="Advanced")(account)
    _trust(Version="2008-10-17", **_without_version(trust("ec2")))(account)


def _without_version(document: dict[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in document.items() if key != "Version"}
