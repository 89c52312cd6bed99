"""Collects the state of a deployment, side by side."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from scripts.account import compute_fleet, file_systems, homes, troubles, way_out
from scripts.account.deployment import tags_of
from scripts.account.remote.head_node import HeadNode, NotRunError
from scripts.account.reservations import Reservation, members, reservations, users
from scripts.account.stacks import other_clusters
from scripts.check.estimate.sizes import SCRATCH_MBPS_PER_TIB
from scripts.core.aws_errors import is_unreachable
from scripts.watch.status import software
from scripts.watch.status.cost import cost_now
from scripts.watch.status.model import (
    Cost,
    FileSystem,
    HeadNodeStatus,
    Homes,
    LoginNodes,
    SlurmStatus,
    Spending,
    StackStatus,
    Unavailable,
    Usage,
    try_fetch,
)
from scripts.watch.status.report import Status
from ultracluster.domain import metrics

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment
    from scripts.core.clock import Clock
    from scripts.watch.diagnose.diagnose import Diagnosis

_WORKERS = 10
WAIT_SECONDS = 20.0
"""How long to wait for the answer of the head node: a call each second. That Slurm does not answer takes ten."""
_LONGEST_SECONDS = 60
_LOOK_BACK = timedelta(minutes=10)
_PERIOD_SECONDS = 60
_METRICS = {"free": "FreeDataStorageCapacity", "read": "DataReadBytes", "written": "DataWriteBytes"}
"""By id of the query. Their Sum over a minute is that of all storage targets.

https://docs.aws.amazon.com/fsx/latest/LustreGuide/fs-metrics.html
"""
_NO_FILE_SYSTEM = Unavailable(reason="its stack names no file system", is_problem=False)

Nodes = tuple[HeadNodeStatus | None, dict[str, int], Counter[tuple[str, str]], dict[str, int]]
"""The head node, numbers of compute nodes by state, of running ones by queue and compute resource, of login nodes by
state."""


def collect(deployment: Deployment, clock: Clock) -> Status:
    """Return the state of a deployment now.

    Needs cloudformation:DescribeStacks (for other clusters on all stacks), of stacks that could not be rolled back
    cloudformation:DescribeStackEvents and ListStackResources, cloudwatch:DescribeAlarms,
    cloudwatch:GetMetricData, dynamodb:GetItem, ec2:DescribeCapacityReservations, ec2:DescribeInstances,
    elasticfilesystem:DescribeFileSystems, fsx:DescribeFileSystems, ssm:GetCommandInvocation, ssm:SendCommand and, for
    groups of reservations, resource-groups:ListGroupResources. What needs a missing one is `Unavailable`.

    Raises:
        botocore.exceptions.BotoCoreError: There are no usable credentials.
        botocore.exceptions.ClientError: The credentials are not, or no longer, valid.
    """
    settings, now = deployment.settings, clock.now()
    deployment.account.forget()
    with ThreadPoolExecutor(_WORKERS) as pool:

        def start(fetch: Any, *actions: str) -> Any:
            return pool.submit(try_fetch, lambda: fetch(deployment), *actions)

        answer = start(
            lambda deployment: _ask_head_node(deployment, clock),
            "ec2:DescribeInstances",
            "ssm:SendCommand",
            "ssm:GetCommandInvocation",
        )
        nodes = start(_nodes, "ec2:DescribeInstances")
        stacks = start(_stacks, "cloudformation:DescribeStacks")
        stuck = start(way_out.find, "cloudformation:ListStackResources", "cloudformation:DescribeStackEvents")
        others = start(_other_clusters, "cloudformation:DescribeStacks on all stacks")
        fleet = start(compute_fleet.status, "dynamodb:GetItem")
        file_system = start(_file_system, "cloudformation:DescribeStacks", "fsx:DescribeFileSystems")
        usage = start(
            lambda deployment: _usage(deployment, now), "cloudformation:DescribeStacks", "cloudwatch:GetMetricData"
        )
        of_homes = start(
            lambda deployment: _homes(deployment, now),
            "cloudformation:DescribeStacks",
            "cloudwatch:GetMetricData",
            "elasticfilesystem:DescribeFileSystems",
            "fsx:DescribeFileSystems",
        )
        reserved = start(_reservations, "ec2:DescribeCapacityReservations", "resource-groups:ListGroupResources")
        alarms = start(_alarms, "cloudwatch:DescribeAlarms")
        spending = start(lambda deployment: _spending(deployment, now), "cloudwatch:GetMetricData")
    own_stacks, described, other, asked = stacks.result(), nodes.result(), others.result(), answer.result()
    slurm, disks, of_jobs, is_reachable = (asked, None, None, None) if isinstance(asked, Unavailable) else asked
    head_node: HeadNodeStatus | Unavailable | None
    compute_nodes: dict[str, int] | Unavailable
    login_nodes: LoginNodes | Unavailable | None
    cost: Cost | Unavailable
    wanted = sum(each.count for each in settings.cluster.login_nodes)
    if isinstance(described, Unavailable):
        head_node = compute_nodes = cost = described
        login_nodes = described if wanted else None
    else:
        head, compute_nodes, running, logins = described
        others = {state: count for state, count in logins.items() if state != "running"}
        login_nodes = LoginNodes(wanted, logins.get("running", 0), others) if wanted or logins else None
        head_node = head and replace(head, session_manager=is_reachable)
        cost = cost_now(settings, running, now.date())
    return Status(
        deployment=deployment.name,
        name=settings.name,
        region=settings.region,
        cluster=settings.cluster_spec.name,
        time=now,
        stacks=() if isinstance(own_stacks, Unavailable) else own_stacks,
        unavailable_stacks=own_stacks if isinstance(own_stacks, Unavailable) else None,
        ways_out=() if isinstance(own_stacks, Unavailable) else stuck.result(),
        other_clusters=Unavailable(reason=other.reason, is_problem=False) if isinstance(other, Unavailable) else other,
        head_node=head_node,
        compute_nodes=compute_nodes,
        login_nodes=login_nodes,
        fleet=fleet.result(),
        slurm=slurm,
        disks=disks,
        software=of_jobs,
        file_system=file_system.result(),
        usage=usage.result(),
        homes=of_homes.result(),
        reservations=reserved.result(),
        alarms=alarms.result(),
        cost=cost,
        spending=spending.result(),
    )


def _stacks(deployment: Deployment) -> tuple[StackStatus, ...]:
    """Return the stacks in the order of creation; ParallelCluster's own while the one before it is not ready."""
    stacks = [_stack(deployment, deployment.stack_name(part)) for part in deployment.settings.parts]
    cluster = stacks[-2].state
    if cluster is None or not cluster.has_succeeded:
        stacks.insert(-1, _stack(deployment, deployment.settings.cluster_spec.name))
    return tuple(stacks)


def _stack(deployment: Deployment, name: str) -> StackStatus:
    described = deployment.stack(name)
    if described is None:
        return StackStatus(name)
    times = [described[key] for key in ("CreationTime", "LastUpdatedTime", "DeletionTime") if key in described]
    return StackStatus(name, described["StackStatus"], max(times), described.get("StackStatusReason", ""))


def _other_clusters(deployment: Deployment) -> tuple[StackStatus, ...]:
    others = other_clusters(deployment.settings, deployment.stacks())
    return tuple(StackStatus(name, status) for name, status in others.items())


def _nodes(deployment: Deployment) -> Nodes:
    heads, states, running, logins = [], Counter[str](), Counter[tuple[str, str]](), Counter[str]()
    for each in deployment.nodes():
        tags, state = tags_of(each), each["State"]["Name"]
        match tags.get("parallelcluster:node-type"):
            case "HeadNode":
                heads.append(_head_node(each))
            case "Compute":
                states[state] += 1
                queue = tags.get("parallelcluster:queue-name", "")
                running[queue, tags.get("parallelcluster:compute-resource-name", "")] += state == "running"
            case "LoginNode":
                logins[state] += 1
    return max(heads, key=lambda head: head.launched, default=None), dict(states), running, dict(logins)


def _head_node(instance: dict[str, Any]) -> HeadNodeStatus:
    return HeadNodeStatus(
        instance["InstanceId"],
        instance["State"]["Name"],
        instance["InstanceType"],
        instance.get("PrivateIpAddress", ""),
        instance.get("PublicIpAddress", ""),
        instance["LaunchTime"],
    )


def _reservations(deployment: Deployment) -> tuple[Reservation, ...]:
    """Return those that the settings name. One call for 1,000, and one for each group."""
    named = users(deployment.settings, "capacity_reservation_id")
    groups = users(deployment.settings, "capacity_reservation_group_arn")
    if not named and not groups:
        return ()
    existing = reservations(deployment)
    ids = dict.fromkeys([*named, *(each for group in groups for each in members(deployment, group))])
    return tuple(existing.get(each, Reservation(each, "missing")) for each in ids)


def _alarms(deployment: Deployment) -> tuple[str, ...]:
    """Return the alarms in state ALARM, of 100 whose names start with that of the deployment. One call."""
    answer = deployment.account.ask(
        "cloudwatch", "describe_alarms", AlarmNamePrefix=f"{deployment.settings.name}-", MaxRecords=100
    )
    return tuple(sorted(each["AlarmName"] for each in answer["MetricAlarms"] if each["StateValue"] == "ALARM"))


def _spending(deployment: Deployment, now: datetime) -> Spending | Unavailable | None:
    """Return what nodes have cost since the month began, by the head node. One call, if there is a budget."""
    settings = deployment.settings
    if settings.budget is None:
        return None
    if not settings.monitoring.node_metrics:
        return Unavailable(reason="monitoring.node_metrics is false: nothing tells what nodes cost", is_problem=False)
    dimensions = [{"Name": "Cluster", "Value": settings.cluster_spec.name}]
    metric = {"Namespace": metrics.NAMESPACE, "MetricName": metrics.USD_THIS_MONTH, "Dimensions": dimensions}
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    stat = {"Metric": metric, "Period": _PERIOD_SECONDS, "Stat": "Maximum"}
    answer = deployment.account.ask(
        "cloudwatch",
        "get_metric_data",
        MetricDataQueries=[{"Id": "spent", "MetricStat": stat}],
        StartTime=max(month, now - _LOOK_BACK),
        EndTime=now,
    )
    return Spending(settings.budget.monthly_usd, _newest(answer["MetricDataResults"][0]))


def _file_system(deployment: Deployment) -> FileSystem | Unavailable:
    name = file_systems.lustre_id(deployment)
    if not name:
        return _NO_FILE_SYSTEM
    lustre = file_systems.get(deployment.account, file_systems.FSX, name)
    throughput = lustre.capacity_gib * (lustre.mbps_per_tib or SCRATCH_MBPS_PER_TIB) / 1000
    return FileSystem(name, lustre.state, lustre.capacity_gib, throughput)


def _homes(deployment: Deployment, now: datetime) -> Homes | Unavailable | None:
    """Return the file system of /home. One or two calls, and of an existing OpenZFS volume one more."""
    if deployment.settings.homes is None:
        return None
    name = homes.file_system_id(deployment)
    if name is None:
        return _NO_FILE_SYSTEM
    if deployment.settings.homes.type == "efs":
        elastic = file_systems.get(deployment.account, file_systems.EFS, name)
        return Homes(name, elastic.state, elastic.used_bytes)
    openzfs = file_systems.get(deployment.account, file_systems.FSX, name)
    answer = deployment.account.ask(
        "cloudwatch",
        "get_metric_data",
        MetricDataQueries=[_query("used", "UsedStorageCapacity", name)],
        StartTime=now - _LOOK_BACK,
        EndTime=now,
    )
    used = _newest(answer["MetricDataResults"][0])
    return Homes(name, openzfs.state, used, openzfs.capacity_gib)


def _usage(deployment: Deployment, now: datetime) -> Usage | Unavailable:
    """Return what CloudWatch has of the file system's last minutes, which arrive some minutes late."""
    file_system_id = file_systems.lustre_id(deployment)
    if not file_system_id:
        return _NO_FILE_SYSTEM
    answer = deployment.account.ask(
        "cloudwatch",
        "get_metric_data",
        MetricDataQueries=[_query(key, name, file_system_id) for key, name in _METRICS.items()],
        StartTime=now - _LOOK_BACK,
        EndTime=now,
    )
    newest = {each["Id"]: _newest(each) for each in answer["MetricDataResults"]}
    moved = [value for key in ("read", "written") if (value := newest[key]) is not None]
    return Usage(newest["free"], sum(moved) / _PERIOD_SECONDS / 1e6 if moved else None)


def _query(key: str, name: str, file_system_id: str) -> Mapping[str, Any]:
    dimensions = [{"Name": "FileSystemId", "Value": file_system_id}]
    metric = {"Namespace": "AWS/FSx", "MetricName": name, "Dimensions": dimensions}
    return {"Id": key, "MetricStat": {"Metric": metric, "Period": _PERIOD_SECONDS, "Stat": "Sum"}}


def _newest(result: Mapping[str, Any]) -> float | None:
    values: dict[datetime, float] = dict(zip(result["Timestamps"], result["Values"], strict=True))
    return values[max(values)] if values else None


def _ask_head_node(
    deployment: Deployment, clock: Clock
) -> tuple[SlurmStatus | Unavailable, dict[str, int] | None, software.Software | None, bool | None]:
    """Return nodes and jobs, how full disks are, the software of jobs, and whether Session Manager reaches it.

    None: that is not known.

    Raises:
        HeadNodeError: None is running.
    """
    from botocore.exceptions import ClientError

    head_node = HeadNode(deployment, clock)
    try:
        script = f"{shlex.join(software.command(deployment.system_user))} 2>/dev/null\n{troubles.SCRIPT}"
        answer = head_node.answer_within(script, seconds=_LONGEST_SECONDS, limit=WAIT_SECONDS)
    except NotRunError as error:
        return Unavailable(reason=str(error)), None, None, False
    except ClientError as error:
        if not is_unreachable(error):
            raise
        reason = f"Session Manager does not reach the head node {head_node.instance_id}"
        return Unavailable(reason=reason), None, None, False
    if answer is None:
        return Unavailable(reason=f"the head node did not answer within {WAIT_SECONDS:.0f} s"), None, None, None
    of_jobs, told = software.parse(answer.output), troubles.read(answer)
    disks = dict(told.disks) or None
    if isinstance(told.slurm, str):
        reason = f"Slurm on the head node does not answer: {told.slurm.splitlines()[0]}"
        return Unavailable(reason=reason), disks, of_jobs, True
    return SlurmStatus.of(told.slurm, clock.now()), disks, of_jobs, True


def explain(deployment: Deployment, clock: Clock) -> Diagnosis | Unavailable:
    """Return why something failed, or why that is not available."""
    from scripts.watch.diagnose.diagnose import diagnose

    return try_fetch(lambda: diagnose(deployment, clock=clock), "what `ultracluster diagnose` needs")
