"""Faults on demand: what goes wrong in AWS, made to go wrong here, with the words that AWS has for it.

`FAULTS` says what there is, for people. `Faults` lives in the server's process; the parts that a fault is about ask it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final, Literal

from emulator.keys import KEYS, access_key
from emulator.resources.model import ResourceError


@dataclass(frozen=True)
class OnNode:
    """What goes wrong on one node of a cluster, and how it ends. It needs machines.

    Attributes:
        kind: Of the node, as its tag parallelcluster:node-type has it.
        boot: Commands that each node of the kind that starts meanwhile runs before its system; what they export is in
            the environment of all its processes.
        commands: Shell commands that a running node runs, as root: at the beginning, and at the end.
        events: Of `emulator.moto_patches.lives.afflict`: at the beginning, and at the end.
        is_played: Whether nodes that are no machines have it, too.
    """

    kind: Literal["Compute", "HeadNode"] = "Compute"
    boot: str = ""
    commands: tuple[str, str] = ("", "")
    events: tuple[str, str] = ("", "")
    is_played: bool = False


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        what: What happens, in one line.
        source: Where AWS says so.
        target: What the fault needs to be told beside its name; None: nothing.
        is_target_optional: Whether the fault can do without.
        node: What it does on a node; None: it is none of nodes.
    """

    what: str
    source: str
    target: str | None = None
    is_target_optional: bool = False
    node: OnNode | None = None


_INSTANCE: Final = "the id of an instance; without: that of the first node that runs"
_FILE_SYSTEMS: Final = "grep ^/run/emulator/filesystems/ /etc/fstab"
_EFA: Final = "/sys/class/infiniband"
_STATE: Final = "/var/spool/slurm.state"
_MUNGED: Final = "/usr/sbin/munged --force"
_SHARED: Final = "/opt/parallelcluster/shared"
_PACE: Final = "/run/emulator/pace.json"
_STOP_MUNGED: Final = "kill $(cat /run/munge/munged.pid); while [ -e /run/munge/munged.pid ]; do sleep 0.05; done"


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
        "the head node cannot mount the file system, and reports that its start-up, or an update, failed",
        "https://docs.aws.amazon.com/parallelcluster/latest/ug/troubleshooting-v3-cluster-deployment.html",
        node=OnNode(
            kind="HeadNode",
            boot="mount -t tmpfs -o ro tmpfs /run/emulator/filesystems",
            is_played=True,
        ),
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
    "node-script": Fault(
        "the start-up script of compute nodes fails, as the driver of Neuron cannot be loaded",
        "https://docs.aws.amazon.com/parallelcluster/latest/ug/slurm-protected-mode-v3.html",
        node=OnNode(
            boot="""\
cat >/usr/sbin/modprobe <<'FAILING'
#!/bin/sh
echo "modprobe: ERROR: could not insert 'neuron': Exec format error" >&2
exit 1
FAILING
""",
        ),
    ),
    "node-names": Fault(
        "compute nodes that start do not reach DynamoDB, which has their names in Slurm",
        "https://docs.aws.amazon.com/parallelcluster/latest/ug/network-configuration-v3.html",
        node=OnNode(boot="export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:9"),
    ),
    "unhealthy": Fault(
        "EC2's status check of a compute node's instance fails",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-system-instance-status-check.html",
        target=_INSTANCE,
        is_target_optional=True,
        node=OnNode(events=("impaired:instance:600", "ok")),
    ),
    "lustre": Fault(
        "a compute node loses its file systems",
        "https://docs.aws.amazon.com/fsx/latest/LustreGuide/mount-troubleshooting.html",
        target=_INSTANCE,
        is_target_optional=True,
        node=OnNode(
            commands=(
                f"{_FILE_SYSTEMS} | while read -r source target rest; do umount --lazy $target; done",
                f"{_FILE_SYSTEMS} | while read -r source target rest; do mount --bind $source $target; done",
            )
        ),
    ),
    "efa": Fault(
        "the last EFA device of a compute node disappears",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html",
        target=_INSTANCE,
        is_target_optional=True,
        node=OnNode(
            commands=(
                f"mkdir /run/efa && mv $(ls -d {_EFA}/* | tail --lines=1) /run/efa",
                f"mv /run/efa/* {_EFA}",
            )
        ),
    ),
    "network": Fault(
        "the network between a compute node and all other nodes is cut; AWS still answers it",
        "https://slurm.schedmd.com/slurm.conf.html#OPT_SlurmdTimeout",
        target=_INSTANCE,
        is_target_optional=True,
        node=OnNode(
            commands=(
                "ip route show dev eth0 >/run/routes && ip link set eth0 down",
                "ip link set eth0 up && while read -r route; do ip route replace $route dev eth0; done </run/routes",
            )
        ),
    ),
    "clock": Fault(
        "the clock by which a compute node signs Slurm's messages goes 10 minutes wrong",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/set-time.html",
        target=_INSTANCE,
        is_target_optional=True,
        node=OnNode(
            commands=(
                f"{_STOP_MUNGED}; faketime -f +10m {_MUNGED}",
                f"{_STOP_MUNGED}; {_MUNGED}",
            )
        ),
    ),
    "disk": Fault(
        "the disk of the head node is full, where Slurm keeps its state",
        "https://slurm.schedmd.com/slurm.conf.html#OPT_StateSaveLocation",
        node=OnNode(
            kind="HeadNode",
            commands=(
                f"mkdir /run/full && mount -t tmpfs -o size=1m,mode=777 tmpfs /run/full && "
                f"cp --archive {_STATE}/. /run/full && mount --bind /run/full {_STATE} && "
                f"{{ dd if=/dev/zero of={_STATE}/full bs=4k status=none; true; }}",
                f"umount {_STATE} && umount /run/full && rmdir /run/full",
            ),
        ),
    ),
    "stale-node": Fault(
        "a compute node loses the directory in which the head node announces updates, and takes none over",
        "https://github.com/aws/aws-parallelcluster/issues/7203",
        target=_INSTANCE,
        is_target_optional=True,
        node=OnNode(
            commands=(
                f"umount --lazy {_SHARED}",
                f"mount --bind /run/emulator/exports/opt_parallelcluster_shared {_SHARED}",
            )
        ),
    ),
    "launch-templates": Fault(
        "in an update the head node does not read all launch templates within 30 seconds",
        "https://github.com/aws/aws-parallelcluster/issues/7519",
        node=OnNode(
            kind="HeadNode",
            commands=(
                f"""sed -i.before 's/}}$/, "template_seconds": 31}}/' {_PACE}""",
                f"mv {_PACE}.before {_PACE}",
            ),
        ),
    ),
    "head-node-reboot": Fault(
        "the head node is rebooted",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-reboot.html",
        node=OnNode(kind="HeadNode", events=("reboot", "")),
    ),
    "head-node-lost": Fault(
        "EC2 stops the head node, whose hardware it retires",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/schedevents_actions_retire.html",
        node=OnNode(kind="HeadNode", events=("retire", "")),
    ),
    "head-node-terminated": Fault(
        "the head node is terminated",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/terminating-instances.html",
        node=OnNode(kind="HeadNode", events=("terminate", "")),
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

    def at_boot(self, kind: str) -> str:
        """Return the commands that a node of a kind runs before its system."""
        nodes = (FAULTS[name].node for name in tuple(self._targets))
        return "\n".join(node.boot for node in nodes if node and node.kind == kind)

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
        if KEYS.are_of_node(access_key(authorization) or ""):
            return False
        with self._lock:
            if "throttling" not in self._targets or action in self._throttled:
                return False
            self._throttled.add(action)
            return True


FAULTS_IN_FORCE = Faults()
"""The one of the server's process: moto's response classes are made per request and have nowhere to be told."""
