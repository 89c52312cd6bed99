"""How long AWS takes to create, update and delete resources, and a clock that lets that time pass or not."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Final, Literal

Speed = Literal["fast", "real"]

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
    "AWS::Route53::HostedZone": 40.0,
    "AWS::Route53::RecordSet": 32.0,
    "AWS::DynamoDB::Table": 16.0,
    "AWS::AutoScaling::AutoScalingGroup": 60.0,
    "AWS::ElasticLoadBalancingV2::LoadBalancer": 150.0,
    # They take the time of what they wait for.
    "AWS::CloudFormation::CustomResource": 0.0,
    "AWS::CloudFormation::Stack": 0.0,
    "AWS::CloudFormation::WaitConditionHandle": 0.0,
    # What it waits for may be any other resource's doing: at speed `fast` all that can go on goes on first.
    "AWS::CloudFormation::WaitCondition": math.inf,
}
"""Seconds by resource type. Orders of magnitude, for the order of events and for progress displays: not measured."""


def seconds(resource_type: str) -> float:
    """Return how long an operation on a resource of this type takes."""
    return SECONDS.get(resource_type, 0.0 if resource_type.startswith("Custom::") else DEFAULT)


class Clock:
    """Time as stacks see it: at speed `real` it passes, at speed `fast` nothing is waited for."""

    _FAST_LIMIT: Final = 30.0
    _FAST_PATIENCE: Final = 4.0

    def __init__(self, speed: Speed) -> None:
        self._real = speed == "real"

    @property
    def is_real(self) -> bool:
        """Tell whether time passes."""
        return self._real

    def sleep(self, duration: float) -> None:
        """Let so many seconds pass."""
        if self._real:
            time.sleep(duration)

    def limit(self, duration: float) -> float:
        """Return how many seconds to wait for an answer that AWS would wait `duration` for."""
        return duration if self._real else min(duration, self._FAST_LIMIT)

    @property
    def patience(self) -> float:
        """Return how many seconds a request may wait for the operation that it starts.

        The tools look at a stack every five seconds. An operation that takes less is done when they look first.
        """
        return 0.0 if self._real else self._FAST_PATIENCE
