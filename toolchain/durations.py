"""How long AWS takes to create, update and delete resources, and head nodes to follow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

DEFAULT: Final = 2.0
"""Seconds of a type that the table does not name: one call of an API and a look whether it is done."""

SECONDS: Final[Mapping[str, float]] = {
    # Between five and ten minutes.
    "AWS::FSx::FileSystem": 420.0,
    "AWS::FSx::DataRepositoryAssociation": 120.0,
    # botocore's waiter nat_gateway_available looks every 15 s; about two minutes.
    "AWS::EC2::NatGateway": 105.0,
    "AWS::EC2::EIP": 16.0,
    "AWS::EC2::Instance": 30.0,
    "AWS::EC2::InternetGateway": 17.0,
    "AWS::EC2::VPC": 13.0,
    "AWS::EC2::VPCEndpoint": 60.0,
    # IAM is eventually consistent: CloudFormation lets an instance profile settle.
    "AWS::IAM::InstanceProfile": 120.0,
    "AWS::IAM::ManagedPolicy": 17.0,
    "AWS::IAM::Policy": 16.0,
    "AWS::IAM::Role": 18.0,
    "AWS::KMS::Key": 120.0,
    "AWS::Lambda::Function": 8.0,
    "AWS::RDS::DBInstance": 420.0,
    "AWS::Route53::HostedZone": 40.0,
    "AWS::Route53::RecordSet": 32.0,
    "AWS::DynamoDB::Table": 16.0,
    "AWS::AutoScaling::AutoScalingGroup": 60.0,
    "AWS::ElasticLoadBalancingV2::LoadBalancer": 150.0,
    # They take the time of what they wait for.
    "AWS::CloudFormation::CustomResource": 0.0,
    "AWS::CloudFormation::Stack": 0.0,
    "AWS::CloudFormation::WaitConditionHandle": 0.0,
    # What it waits for may be any other resource's doing: at speed `fast` everything else continues first.
    "AWS::CloudFormation::WaitCondition": math.inf,
}
"""Seconds by resource type. Orders of magnitude, for the order of events and for progress displays: not measured."""

BOOT_SECONDS: Final = 300.0
"""From the launch of a head node until it reports; AWS gives it 35 minutes. An order of magnitude, not measured."""
UPDATE_SECONDS: Final = 60.0
"""From a change of a head node's metadata until the node has followed it. An order of magnitude, too."""


def seconds(resource_type: str) -> float:
    """Return how long an operation on a resource of this type takes."""
    return SECONDS.get(resource_type, 0.0 if resource_type.startswith("Custom::") else DEFAULT)
