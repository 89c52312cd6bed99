"""Looks at a deployment, with few calls of APIs and side by side."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from scripts.preflight.reservations import CAPACITY_BLOCK, members, size, users
from scripts.status.cost import cost_now
from scripts.status.files import file_system, usage
from scripts.status.model import HeadNode, Instances, Reservation, Status, Unseen, seen, tags
from scripts.status.nodes import SlurmQuestion
from scripts.status.stacks import StackLook

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.clock import Clock
    from scripts.deployment import Deployment

MOST_CALLS = 12
"""Calls of APIs in a look. What is worth least is left out beyond them."""
_INSTANCES_PER_CALL = 1000
_LEFT_OUT = Unseen(f"left out: a look takes at most {MOST_CALLS} calls of APIs", is_fault=False)


@dataclass(frozen=True)
class Budget:
    """What there is to be asked besides what always is, by worth.

    Attributes:
        reservations: Whether to ask for reservations.
        usage: Whether to ask for the use of the file system.
        groups: How many groups of reservations to ask for.
        alarms: Whether to ask for alarms.
        looks: How often to look for the answer of the head node.
    """

    reservations: bool
    usage: bool
    groups: int
    alarms: bool
    looks: int


def budget(settings: Settings, stacks: int) -> Budget:
    """Return what `MOST_CALLS` are good for, when all nodes run.

    Args:
        settings: Those of the deployment.
        stacks: Calls for stacks.
    """
    nodes = settings.cluster_spec.max_nodes + 1 + sum(pool.count for pool in settings.cluster.login_nodes)
    groups = len(users(settings, "capacity_reservation_group_arn"))
    file_system, fleet, slurm = 1, 1, 2
    spare = MOST_CALLS - stacks - ceil(nodes / _INSTANCES_PER_CALL) - file_system - fleet - slurm
    reserved = bool(groups or users(settings, "capacity_reservation_id"))
    reservations = reserved and spare >= 1
    spare -= reservations
    return Budget(
        reservations=reservations or not reserved,
        usage=spare >= 1,
        groups=min(groups, max(spare - 1, 0)),
        alarms=spare >= 2 + groups,
        looks=1 + max(spare - 2 - groups, 0),
    )


class Observer:
    """Looks at a deployment again and again.

    Needs cloudformation:DescribeStacks, cloudwatch:DescribeAlarms, cloudwatch:GetMetricData, dynamodb:GetItem,
    ec2:DescribeCapacityReservations, ec2:DescribeInstances, fsx:DescribeFileSystems, ssm:GetCommandInvocation,
    ssm:SendCommand and, for groups of reservations, resource-groups:ListGroupResources. What needs one that is missing
    is `Unseen`.
    """

    def __init__(self, deployment: Deployment, clock: Clock) -> None:
        self._deployment = deployment
        self._settings = deployment.settings
        self._clock = clock
        self._slurm = SlurmQuestion(deployment, clock)

    def look(self) -> Status:
        """Return the state of the deployment now. At most `MOST_CALLS` calls for 1,999 instances.

        Raises:
            botocore.exceptions.BotoCoreError: There are no credentials that can be used.
            botocore.exceptions.ClientError: They are not, or no longer, valid.
        """
        deployment, settings, now = self._deployment, self._settings, self._clock.now()
        deployment.account.forget()
        with ThreadPoolExecutor(max_workers=MOST_CALLS) as pool:
            slurm = pool.submit(self._slurm.ask)
            instances = pool.submit(seen, self._instances, "ec2:DescribeInstances")
            stacks = pool.submit(StackLook, deployment)
            fleet = pool.submit(seen, self._fleet, "dynamodb:GetItem")
            files = pool.submit(
                seen, lambda: file_system(deployment), "cloudformation:DescribeStacks", "fsx:DescribeFileSystems"
            )
            can = budget(settings, stacks.result().calls)
            reservations = used = alarms = None
            if can.reservations:
                rights = ("ec2:DescribeCapacityReservations", "resource-groups:ListGroupResources")
                reservations = pool.submit(seen, lambda: self._reservations(can.groups), *rights)
            if can.usage:
                rights = ("cloudformation:DescribeStacks", "cloudwatch:GetMetricData")
                used = pool.submit(seen, lambda: usage(deployment, now), *rights)
            if can.alarms:
                alarms = pool.submit(seen, self._alarms, "cloudwatch:DescribeAlarms")
        slurm.result()
        found = instances.result()
        answer = self._slurm.answer(can.looks)
        return Status(
            environment=deployment.environment,
            name=settings.name,
            region=settings.region,
            cluster=settings.cluster_spec.name,
            now=now,
            stacks=tuple(stacks.result().stacks),
            others=stacks.result().others,
            instances=found,
            session_manager=self._slurm.reached,
            fleet=fleet.result(),
            slurm=answer,
            slurm_seen=self._slurm.answered,
            software=self._slurm.software,
            file_system=files.result(),
            usage=used.result() if used else _LEFT_OUT,
            reservations=reservations.result() if reservations else _LEFT_OUT,
            alarms=alarms.result() if alarms else _LEFT_OUT,
            cost=found if isinstance(found, Unseen) else cost_now(settings, found.running, now.date()),
        )

    def _instances(self) -> Instances:
        heads, states, running = [], Counter[str](), Counter[tuple[str, str]]()
        for each in self._deployment.nodes():
            labels, state = tags(each), each["State"]["Name"]
            match labels.get("parallelcluster:node-type"):
                case "HeadNode":
                    heads.append(_head_node(each))
                case "Compute":
                    states[state] += 1
                    place = (
                        labels.get("parallelcluster:queue-name", ""),
                        labels.get("parallelcluster:compute-resource-name", ""),
                    )
                    running[place] += state == "running"
        return Instances(max(heads, key=lambda head: head.launched, default=None), states, running)

    def _fleet(self) -> str:
        from scripts.fleet import control  # it brings more than this

        return control.status(self._deployment)

    def _reservations(self, groups: int) -> tuple[Reservation, ...]:
        """Return those that the settings name. One call, and one for each group, up to so many."""
        named = users(self._settings, "capacity_reservation_id")
        grouped = list(users(self._settings, "capacity_reservation_group_arn"))[:groups]
        if not named and not grouped:
            return ()
        listed = self._deployment.account.list(
            "ec2", "describe_capacity_reservations", PaginationConfig={"PageSize": _INSTANCES_PER_CALL}
        )
        known = {each["CapacityReservationId"]: each for each in listed}
        wanted = dict.fromkeys([*named, *(each for group in grouped for each in members(self._deployment, group))])
        return tuple(_reservation(each, known.get(each)) for each in wanted)

    def _alarms(self) -> tuple[str, ...]:
        """Return the alarms that are raised, of 100 whose names begin with that of the deployment. One call."""
        answer = self._deployment.account.ask(
            "cloudwatch", "describe_alarms", AlarmNamePrefix=f"{self._settings.name}-", MaxRecords=100
        )
        return tuple(sorted(each["AlarmName"] for each in answer["MetricAlarms"] if each["StateValue"] == "ALARM"))


def _head_node(instance: dict[str, Any]) -> HeadNode:
    return HeadNode(
        instance["InstanceId"],
        instance["State"]["Name"],
        instance["InstanceType"],
        instance.get("PrivateIpAddress", ""),
        instance.get("PublicIpAddress", ""),
        instance["LaunchTime"],
    )


def _reservation(reservation_id: str, found: dict[str, Any] | None) -> Reservation:
    if found is None:
        return Reservation(reservation_id, "missing")
    return Reservation(
        reservation_id,
        found["State"],
        found.get("ReservationType") == CAPACITY_BLOCK,
        found["InstanceType"],
        size(found),
        found["AvailableInstanceCount"],
        found.get("StartDate"),
        found.get("EndDate"),
    )
