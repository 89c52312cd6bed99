"""Faults on demand: what goes wrong in AWS, made to go wrong here, with the words that AWS has for it.

`FAULTS` says what there is, for people. `Faults` lives in the server's process; the parts that a fault is about ask it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

from emulator.calls import NODE_KEY, access_key
from emulator.resources.model import ResourceError


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        what: What happens, in one line.
        source: Where AWS says so.
        target: What the fault needs to be told beside its name; None: nothing.
        is_target_optional: Whether the fault can do without.
    """

    what: str
    source: str
    target: str | None = None
    is_target_optional: bool = False


FAULTS: Mapping[str, Fault] = {
    "resource": Fault(
        "the creation of one resource fails, and its stack rolls back",
        "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/stack-failure-options.html",
        target="a logical id or a resource type",
    ),
    "throttling": Fault(
        "EC2 and CloudFormation refuse the first call of every action as one too many; callers try again",
        "https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html",
    ),
    "capacity": Fault(
        "EC2 has no instances left: of no type, or of one only so many",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html",
        target="an instance type and how many can be launched, such as trn1.32xlarge/1; without: no type has any",
        is_target_optional=True,
    ),
    "offering": Fault(
        "a zone does not offer an instance type",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html",
        target="a zone id and a type, such as usw2-az4/c6i.4xlarge",
    ),
    "quota": Fault(
        "the account has no Elastic IP address left to allocate",
        "https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html",
    ),
    "head-node": Fault(
        "the custom action of the head node fails, and the node reports it",
        "https://docs.aws.amazon.com/parallelcluster/latest/ug/troubleshooting-v3-cluster-deployment.html",
    ),
    "provider": Fault(
        "the provider's Lambda function runs out of its 60 seconds",
        "https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html",
    ),
    "warning": Fault(
        "a validator of ParallelCluster warns of every cluster",
        "https://docs.aws.amazon.com/parallelcluster/latest/ug/pcluster.create-cluster-v3.html",
        target="the validator's type, such as CustomAmiTagValidator",
    ),
    "stopping": Fault(
        "compute nodes that are terminated keep shutting down, when their placement group is to go",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/delete-placement-group.html",
    ),
    "killed": Fault(
        "the CDK command line is killed in the middle of a deployment; CloudFormation continues",
        "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html",
    ),
}


class Faults:
    """The faults that are in force."""

    def __init__(self) -> None:
        self._targets: dict[str, str] = {}
        self._throttled: set[str] = set()
        self._launched = 0
        self._lock = Lock()

    def inject(self, name: str, target: str = "") -> None:
        """Put a fault of `FAULTS` in force.

        Raises:
            ValueError: The target says nothing to the fault.
        """
        if name == "capacity" and target and not re.fullmatch(r"[^/]+/\d+", target):
            raise ValueError(
                f"fault capacity: got {target}; allowed: an instance type and a number, as in trn1.32xlarge/1"
            )
        self._targets[name] = target

    def clear(self) -> None:
        """Clear all faults."""
        self._targets.clear()
        self._throttled.clear()
        self._launched = 0

    def __contains__(self, name: str) -> bool:
        return name in self._targets

    def target(self, name: str) -> str:
        """Return what a fault was told beside its name; empty: nothing, or it is not in force."""
        return self._targets.get(name, "")

    def check_creation(self, logical_id: str, resource_type: str) -> None:
        """Let the creation of a resource fail, if it is to fail.

        Raises:
            ResourceError: It is.
        """
        if self._targets.get("resource") in (logical_id, resource_type):
            message = "Internal Failure, as injected"
            raise ResourceError(f'Resource handler returned message: "{message}" (HandlerErrorCode: InternalFailure)')

    def offers(self, zone_id: str, instance_type: str) -> bool:
        """Tell whether nothing keeps a zone from offering an instance type."""
        return self._targets.get("offering") != f"{zone_id}/{instance_type}"

    def take_capacity(self, instance_type: str, least: int, most: int) -> int:
        """Return how many instances of a type a launch gets; 0 instead of fewer than the least that it takes."""
        with self._lock:
            if "capacity" not in self._targets:
                return most
            short_type, _, number = self._targets["capacity"].partition("/")
            if short_type not in ("", instance_type):
                return most
            count = min(most, int(number or 0) - self._launched)
            if count < least:
                return 0
            self._launched += count
            return count

    def give_back(self, instance_type: str, count: int) -> None:
        """Take back instances of a type that a launch got and does not use."""
        with self._lock:
            if instance_type == self._targets.get("capacity", "").partition("/")[0]:
                self._launched -= count

    def throttles(self, action: str, authorization: str) -> bool:
        """Tell whether this call of an API action is one too many: the first one is, unless a node makes it.

        Args:
            action: Such as ``ec2:DescribeInstances``.
            authorization: The request's header of that name.
        """
        if access_key(authorization) == NODE_KEY:
            return False
        with self._lock:
            if "throttling" not in self._targets or action in self._throttled:
                return False
            self._throttled.add(action)
            return True


FAULTS_IN_FORCE = Faults()
"""The one of the server's process: moto's response classes are made per request and have nowhere to be told."""
