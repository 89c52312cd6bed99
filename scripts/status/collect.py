"""Collects the state of a deployment, with few API calls and side by side."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scripts.preflight.reservations import CAPACITY_BLOCK, members, size, users
from scripts.status.cost import cost_now
from scripts.status.file_system import fetch_file_system, fetch_usage
from scripts.status.head_node import HeadNodeQuery
from scripts.status.model import Cost, HeadNodeStatus, Reservation, StackStatus, Status, Unavailable, try_fetch
from scripts.status.stacks import collect_stacks

if TYPE_CHECKING:
    from scripts.clock import Clock
    from scripts.deployment import Deployment

_WORKERS = 10
_RESERVATIONS_PER_CALL = 1000

Nodes = tuple[HeadNodeStatus | None, dict[str, int], Counter[tuple[str, str]]]
"""The head node, numbers of compute nodes by state, and of running ones by queue and compute resource."""


class Collector:
    """Collects the state of a deployment again and again.

    Needs cloudformation:DescribeStacks, cloudwatch:DescribeAlarms, cloudwatch:GetMetricData, dynamodb:GetItem,
    ec2:DescribeCapacityReservations, ec2:DescribeInstances, fsx:DescribeFileSystems, ssm:GetCommandInvocation,
    ssm:SendCommand and, for groups of reservations, resource-groups:ListGroupResources. What needs a missing one is
    `Unavailable`.
    """

    def __init__(self, deployment: Deployment, clock: Clock) -> None:
        self._deployment = deployment
        self._clock = clock
        self._head_node = HeadNodeQuery(deployment, clock)

    def collect(self) -> Status:
        """Return the state of the deployment now.

        Raises:
            botocore.exceptions.BotoCoreError: There are no usable credentials.
            botocore.exceptions.ClientError: The credentials are not, or no longer, valid.
        """
        deployment, settings, now = self._deployment, self._deployment.settings, self._clock.now()
        deployment.account.forget()
        with ThreadPoolExecutor(_WORKERS) as pool:
            sent = pool.submit(self._head_node.send)
            nodes = pool.submit(try_fetch, self._nodes, "ec2:DescribeInstances")
            stacks = pool.submit(collect_stacks, deployment)
            fleet = pool.submit(try_fetch, self._fleet, "dynamodb:GetItem")
            file_system = pool.submit(fetch_file_system, deployment)
            usage = pool.submit(fetch_usage, deployment, now)
            reservations = pool.submit(
                try_fetch,
                self._reservations,
                "ec2:DescribeCapacityReservations",
                "resource-groups:ListGroupResources",
            )
            alarms = pool.submit(try_fetch, self._alarms, "cloudwatch:DescribeAlarms")
        sent.result()
        slurm = self._head_node.receive()
        own_stacks, other_clusters = stacks.result()
        head_node: HeadNodeStatus | Unavailable | None
        compute_nodes: dict[str, int] | Unavailable
        cost: Cost | Unavailable
        if isinstance(described := nodes.result(), Unavailable):
            head_node = compute_nodes = cost = described
        else:
            head, compute_nodes, running = described
            head_node = head and replace(head, session_manager=self._head_node.is_reachable)
            cost = cost_now(settings, running, now.date())
        return Status(
            environment=deployment.environment,
            name=settings.name,
            region=settings.region,
            cluster=settings.cluster_spec.name,
            time=now,
            stacks=tuple(each for each in own_stacks if isinstance(each, StackStatus)),
            unavailable_stacks=next((each for each in own_stacks if isinstance(each, Unavailable)), None),
            other_clusters=other_clusters,
            head_node=head_node,
            compute_nodes=compute_nodes,
            fleet=fleet.result(),
            slurm=slurm,
            software=self._head_node.software,
            file_system=file_system.result(),
            usage=usage.result(),
            reservations=reservations.result(),
            alarms=alarms.result(),
            cost=cost,
        )

    def _nodes(self) -> Nodes:
        heads, states, running = [], Counter[str](), Counter[tuple[str, str]]()
        for each in self._deployment.nodes():
            tags, state = {tag["Key"]: tag["Value"] for tag in each.get("Tags", [])}, each["State"]["Name"]
            match tags.get("parallelcluster:node-type"):
                case "HeadNode":
                    heads.append(_head_node(each))
                case "Compute":
                    states[state] += 1
                    queue = tags.get("parallelcluster:queue-name", "")
                    running[queue, tags.get("parallelcluster:compute-resource-name", "")] += state == "running"
        return max(heads, key=lambda head: head.launched, default=None), dict(states), running

    def _fleet(self) -> str:
        from scripts.fleet import control  # it imports more than the rest of this

        return control.status(self._deployment)

    def _reservations(self) -> tuple[Reservation, ...]:
        """Return those that the settings name. One call for 1,000, and one for each group."""
        named = users(self._deployment.settings, "capacity_reservation_id")
        groups = users(self._deployment.settings, "capacity_reservation_group_arn")
        if not named and not groups:
            return ()
        listed = self._deployment.account.list(
            "ec2", "describe_capacity_reservations", PaginationConfig={"PageSize": _RESERVATIONS_PER_CALL}
        )
        existing = {each["CapacityReservationId"]: each for each in listed}
        ids = dict.fromkeys([*named, *(each for group in groups for each in members(self._deployment, group))])
        return tuple(_reservation(each, existing.get(each)) for each in ids)

    def _alarms(self) -> tuple[str, ...]:
        """Return the alarms in state ALARM, of 100 whose names start with that of the deployment. One call."""
        answer = self._deployment.account.ask(
            "cloudwatch", "describe_alarms", AlarmNamePrefix=f"{self._deployment.settings.name}-", MaxRecords=100
        )
        return tuple(sorted(each["AlarmName"] for each in answer["MetricAlarms"] if each["StateValue"] == "ALARM"))


def _head_node(instance: dict[str, Any]) -> HeadNodeStatus:
    return HeadNodeStatus(
        instance["InstanceId"],
        instance["State"]["Name"],
        instance["InstanceType"],
        instance.get("PrivateIpAddress", ""),
        instance.get("PublicIpAddress", ""),
        instance["LaunchTime"],
    )


def _reservation(reservation_id: str, described: dict[str, Any] | None) -> Reservation:
    if described is None:
        return Reservation(reservation_id, "missing")
    return Reservation(
        reservation_id,
        described["State"],
        described.get("ReservationType") == CAPACITY_BLOCK,
        described["InstanceType"],
        size(described),
        described["AvailableInstanceCount"],
        described.get("StartDate"),
        described.get("EndDate"),
    )
