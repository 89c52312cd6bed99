"""Alarms and a dashboard for an UltraCluster: its nodes, its file system and its NAT gateway."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from aws_cdk import Annotations, Duration, RemovalPolicy, Size, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct
from pydantic import Field

from ultracluster.arguments import construct_name, together, wrong_types
from ultracluster.cluster_base import IParallelCluster
from ultracluster.dashboard import Dashboard, Graph, row_of_file_system, row_of_nat_gateway, rows_of_nodes
from ultracluster.domain import metrics
from ultracluster.domain import monitoring as rules
from ultracluster.domain.budget import BudgetSpec
from ultracluster.domain.cluster import SlurmSpec
from ultracluster.domain.monitoring import ClusterMonitoringSpec
from ultracluster.domain.types import FROM_MINUTES, FROM_SIZE, OptionalGib, OptionalTime, default, listed
from ultracluster.domain.violations import InvalidArguments, Violation, Words, is_token
from ultracluster.domain.violations import listed as some_of
from ultracluster.lustre import ILustreFileSystem, LustreFileSystem
from ultracluster.network import IUltraClusterNetwork
from ultracluster.parallel_cluster import ParallelCluster
from ultracluster.signatures import readable

_DEFAULTS = ClusterMonitoringSpec()
_FIVE_MINUTES = Duration.minutes(5)
_BYTES_PER_GIB = 1024**3
_CLOUDWATCH = "cloudwatch.amazonaws.com"
_HELD_IDLE_SECONDS = 3600
"""Longer than a compilation just in time, which takes about 40 minutes for BERT-Large
(https://awsdocs-neuron.readthedocs-hosted.com/en/latest/archive/nxd-training/bert.html)."""


_ALARM_OF_QUEUE = "UncorrectableErrors-"
ALARMS = (
    "NodesHeldIdle",
    "NodesDrained",
    "QueuesProtected",
    "HeadNodeSilent",
    "BudgetSpent",
    "SpendingRate",
    "NodesIdle",
    "FileSystemNearlyFull",
    "NatPortsExhausted",
)
"""Names of alarms that there may be, beside one for each queue."""


class _Watched(ClusterMonitoringSpec):
    """What is watched, as it is given."""

    file_system_capacity_gib: Annotated[OptionalGib, Field(ge=1, le=2_147_483_647), FROM_SIZE] = default(None)
    idle_minutes: Annotated[OptionalTime, Field(ge=-1, le=525_600), FROM_MINUTES] = default(None)


@readable
class ClusterMonitoring(Construct):
    """Define an SNS topic, the alarms that notify it, and a dashboard.

    What is watched by its name or id need not exist yet, nor continue to exist: alarms outlive a cluster best in a
    stack of their own.

    Args:
        scope: Usually a stack.
        construct_id: Id in the scope.
        cluster: The cluster whose nodes are watched, made here or by ``ParallelCluster.from_cluster_attributes``.
            [change: at once]
        queues: Slurm queues of nodes with Neuron devices. Default: those that a cluster of this app has by now.
            [change: at once]
        node_metrics: Whether there are alarms of nodes, which need ``NeuronSoftware(metrics=True)``. Default: whether
            the nodes of a cluster of this app send metrics; with another one they do. [change: nodes drain]
        file_system: The file system whose free space is watched. Default: none. [change: at once]
        file_system_name: What its alarm calls it. Default: its id. [change: at once]
        file_system_capacity_gib: Its nominal capacity. Default: that of a `LustreFileSystem` of this app. [GiB; 1 to
            2,147,483,647; change: at once]
        file_system_full_percent: The alarm of a nearly full file system is raised from there on. [percent; 50 to 99;
            default 85; change: at once]
        network: The network whose NAT gateway is watched. Default: none. [change: at once]
        emails: Addresses that alarms are sent to; each gets a mail first, with a link to confirm. [default empty;
            change: at once]
        topic: Notified of alarms; CloudWatch must be allowed to publish to it. Default: a new one, encrypted. [change:
            at once]
        dashboard: Whether there is a dashboard. [default True; change: at once]
        budget: By which there are alarms of what nodes cost, which need ``NeuronSoftware(budget=...)``, and of nodes
            that stay idle. Default: none. [change: at once]
        idle_minutes: Minutes without a job after which Slurm terminates a node; -1: never. Default: that of a cluster
            of this app; of another one 10. [minutes; -1 to 525,600; change: at once]
        advice: What the mail of an alarm says at its end, by the name of the alarm, such as where your runbook is:
            ``{"NodesDrained": "See https://wiki.example.com/drained"}``. Names are those of
            `ultracluster.monitoring.ALARMS`, and ``UncorrectableErrors-QUEUE``. Default: nothing. [change: at once]
        alarm_prefix: Names of alarms and dashboard start with it and a hyphen. Default: the name of the stack. [change:
            at once]

    Attributes:
        topic: Notified of every alarm that is raised.
        alarms: All alarms.
        dashboard_name: Name of the dashboard, None without one.

    Raises:
        InvalidArguments: Arguments break rules; all of them are named.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: IParallelCluster,
        queues: Sequence[str] | None = None,
        node_metrics: bool | None = None,
        file_system: ILustreFileSystem | None = None,
        file_system_name: str | None = None,
        file_system_capacity_gib: int | Size | None = None,
        file_system_full_percent: int = _DEFAULTS.file_system_full_percent,
        network: IUltraClusterNetwork | None = None,
        emails: Sequence[str] = tuple(_DEFAULTS.emails),
        topic: sns.ITopic | None = None,
        dashboard: bool = _DEFAULTS.dashboard,
        budget: BudgetSpec | None = None,
        idle_minutes: int | Duration | None = None,
        advice: Mapping[str, str] | None = None,
        alarm_prefix: str | None = None,
    ) -> None:
        construct = construct_name(type(self), scope, construct_id)
        broken = wrong_types(ClusterMonitoring.__init__, locals())
        unknown: tuple[str, list[str], bool] = ("", [], _DEFAULTS.node_metrics)
        monitored = cluster._monitored() if isinstance(cluster, IParallelCluster) else unknown
        name, own_queues, sends_metrics = monitored
        if file_system_capacity_gib is None and isinstance(file_system, LustreFileSystem):
            file_system_capacity_gib = file_system.capacity_gib
        spec, violations = _Watched.checked(
            {
                "emails": listed(emails),
                "node_metrics": sends_metrics if node_metrics is None else node_metrics,
                "dashboard": dashboard,
                "file_system_full_percent": file_system_full_percent,
                "file_system_capacity_gib": file_system_capacity_gib,
                "idle_minutes": idle_minutes,
            },
            rules.violations,
        )
        known = [queue.name for queue in cluster.spec.queues] if isinstance(cluster, ParallelCluster) else None
        violations += _queue_violations(listed(queues), known)
        violations += _advice_violations(advice)
        if budget is not None and spec is not None:
            violations += _budget_violations(cluster, node_metrics=spec.node_metrics)
        if node_metrics is True and not sends_metrics:
            reason = "the cluster's nodes send none without NeuronSoftware(metrics=True)"
            violations.append(Violation(("node_metrics",), True, "False", reason))
        if file_system is not None and file_system_capacity_gib is None:
            reason = "the file system is not made in this app"
            violations.append(Violation(("file_system_capacity_gib",), None, "its capacity in GiB", reason))
        self._alarm_prefix = alarm_prefix or Stack.of(scope).stack_name
        broken = [*together(broken, violations), *_prefix_violations(scope, self._alarm_prefix)]
        if spec is None or broken:
            raise InvalidArguments(construct, broken)

        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        self.topic = topic or self._new_topic()
        for address in emails:
            self.topic.add_subscription(subscriptions.EmailSubscription(address))
        self._notify = actions.SnsAction(self.topic)
        self._advice = advice or {}
        self.alarms: list[cloudwatch.Alarm] = []
        rows: list[list[Graph]] = []
        if spec.node_metrics:
            queues = own_queues if queues is None else queues
            self._add_compute_node_alarms(cluster, name, queues, stack.region)
            self._add_head_node_alarms(cluster, name, stack.region)
            self._add_budget_alarms(cluster, name, budget, spec.idle_minutes)
            rows += rows_of_nodes(name, queues)
        if file_system is not None and spec.file_system_capacity_gib is not None:
            full_below_gib = spec.file_system_capacity_gib * (100 - file_system_full_percent) / 100
            self._add_file_system_alarm(
                file_system, file_system_name or file_system.file_system_id, file_system_full_percent, full_below_gib
            )
            rows.append(row_of_file_system(file_system))
        if network is not None:
            self._add_nat_gateway_alarm(network)
            rows.append(row_of_nat_gateway(network))
        self._warn_of_silence()
        self.dashboard_name = None
        if dashboard:
            self.dashboard_name = Dashboard(
                self, "Dashboard", prefix=self._alarm_prefix, alarms=self.alarms, rows=rows
            ).name

    def _warn_of_silence(self) -> None:
        """Warn where there is nothing to raise an alarm of."""
        if not self.alarms:
            warning = "there are no alarms: give a file_system, a network, or a cluster whose nodes send metrics"
            Annotations.of(self).add_warning_v2("ultracluster:noAlarms", warning)

    def _new_topic(self) -> sns.Topic:
        """Define the topic, with a key of its own: CloudWatch may not use the one that AWS manages for SNS.

        https://repost.aws/knowledge-center/cloudwatch-configure-alarm-sns. The key's policy is that of
        https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html#compatibility-with-aws-services, the topic's
        that of https://docs.aws.amazon.com/sns/latest/dg/sns-access-policy-use-cases.html.
        """
        stack = Stack.of(self)
        own_alarms = stack.format_arn(service="cloudwatch", resource=f"alarm:{self._alarm_prefix}-*")
        from_own_alarms = {
            "StringEquals": {"aws:SourceAccount": stack.account},
            "ArnLike": {"aws:SourceArn": own_alarms},
        }
        cloud_watch = iam.ServicePrincipal(_CLOUDWATCH, conditions=from_own_alarms)
        key = kms.Key(
            self,
            "Key",
            description=f"Notifications of {self._alarm_prefix}",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.DESTROY,
            pending_window=Duration.days(7),
        )
        key.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["kms:Decrypt", "kms:GenerateDataKey*"], principals=[cloud_watch], resources=["*"]
            )
        )
        topic = sns.Topic(self, "Topic", master_key=key, enforce_ssl=True)
        topic.add_to_resource_policy(
            iam.PolicyStatement(actions=["sns:Publish"], principals=[cloud_watch], resources=[topic.topic_arn])
        )
        return topic

    def _add_compute_node_alarms(
        self, cluster: IParallelCluster, name: str, queues: Sequence[str], region: str
    ) -> None:
        for queue in queues:
            self._add_alarm(
                f"{_ALARM_OF_QUEUE}{queue}",
                cluster.metric(metrics.UNCORRECTABLE_ERRORS, statistic="Sum", queue=queue, period=_FIVE_MINUTES),
                f"A Neuron device in queue {queue} of {name} has uncorrectable errors: what was computed since "
                "may be wrong. When its job ends, the node is drained and replaced, or its driver reloaded if that "
                "repairs it. Restart the job from an earlier checkpoint. Which node: see the dashboard, or "
                f"`sinfo --list-reasons --partition={queue}`.",
            )

        hours = _HELD_IDLE_SECONDS // 3600
        self._add_alarm(
            "NodesHeldIdle",
            cluster.metric(metrics.HELD_IDLE, statistic="Maximum", period=_FIVE_MINUTES),
            f"A job has held a node of {name} for {hours} h and used none of its NeuronCores: it hangs, it "
            "compiles, or it needs no such node. Which nodes: `aws cloudwatch list-metrics --recently-active PT3H "
            f"--namespace {metrics.NAMESPACE} --metric-name {metrics.HELD_IDLE} --region {region}`; which job: `squeue "
            "--nodelist=NODE`. If it hangs: `scancel JOB`, or `scontrol requeue JOB` if it has checkpoints.",
            threshold=_HELD_IDLE_SECONDS,
        )

    def _add_head_node_alarms(self, cluster: IParallelCluster, name: str, region: str) -> None:
        # While the head node is silent nobody knows, which is an alarm of its own: these two stay as they are.
        unknown = cloudwatch.TreatMissingData.IGNORE
        self._add_alarm(
            "NodesDrained",
            cluster.metric(metrics.NODES_DRAINED, statistic="Maximum", period=_FIVE_MINUTES),
            f"Nodes of {name} are drained: they take no more jobs. Those that health checks drained ParallelCluster "
            "replaces, and jobs are requeued; those that Slurm or somebody drained too, once no job runs on them. "
            "Which and why: `sinfo --list-reasons` on the head node; later, `reason set "
            "to:` in /var/log/slurmctld.log. Many nodes with one reason: `scontrol update partition=QUEUE state=down` "
            "first.",
            missing=unknown,
        )
        self._add_alarm(
            "QueuesProtected",
            cluster.metric(metrics.QUEUES_PROTECTED, statistic="Maximum", period=_FIVE_MINUTES),
            f"ParallelCluster closed a queue of {name}, because nodes kept failing to start. Why: "
            "/var/log/parallelcluster/clustermgtd on the head node, and the nodes' own logs, cloud-init-output, in the "
            "cluster's log group. Then: `pcluster update-compute-fleet --status START_REQUESTED "
            f"--cluster-name {name} --region {region}`.",
            missing=unknown,
        )
        # It alarms on the way into INSUFFICIENT_DATA, its first state: silence before the first cluster alarms nobody.
        silent = self._add_alarm(
            "HeadNodeSilent",
            cluster.metric(metrics.QUEUES_PROTECTED, statistic="SampleCount", period=_FIVE_MINUTES),
            f"INSUFFICIENT_DATA: the head node of {name} sends no metrics any more. If the cluster was "
            "destroyed, that is why. Else open a shell on it by Session Manager: `journalctl "
            "--unit=ultracluster-metrics`. If it cannot be reached, its logs are in its newest log group in "
            f"CloudWatch: `aws logs tail --region {region} ...`.",
            below=True,
            missing=cloudwatch.TreatMissingData.MISSING,
        )
        silent.add_insufficient_data_action(self._notify)

    def _add_budget_alarms(
        self, cluster: IParallelCluster, name: str, budget: BudgetSpec | None, idle_minutes: int | None
    ) -> None:
        if budget is None:
            return
        if idle_minutes is None:
            slurm = cluster.spec.slurm if isinstance(cluster, ParallelCluster) else SlurmSpec()
            idle_minutes = slurm.idle_minutes
        # No data is not zero: while the head node is silent nodes cost what they did, and its silence is an alarm.
        unknown = cloudwatch.TreatMissingData.IGNORE
        closed = {"none": "Nothing was done", "drain": "Queues are DOWN: no job starts, those that run continue"}
        self._add_alarm(
            "BudgetSpent",
            cluster.metric(metrics.USD_THIS_MONTH, statistic="Maximum", period=_FIVE_MINUTES),
            f"Nodes of {name} have cost ${budget.monthly_usd:,.2f} this month, the limit of the budget. "
            f"{closed.get(budget.action, 'Queues are DOWN, and jobs were cancelled')}. To continue, raise the "
            "limit and deploy.",
            threshold=budget.monthly_usd,
            missing=unknown,
        )
        if budget.max_usd_per_hour is not None:
            self._add_alarm(
                "SpendingRate",
                cluster.metric(metrics.USD_PER_HOUR, statistic="Minimum", period=_FIVE_MINUTES),
                f"Running nodes of {name} cost ${budget.max_usd_per_hour:,.2f} an hour or more, "
                "the limit. Whose they are: `squeue`. Nodes without a job: `sinfo`.",
                threshold=budget.max_usd_per_hour,
                missing=unknown,
            )
        if budget.max_idle_minutes is not None and idle_minutes >= 0:
            minutes = idle_minutes + budget.max_idle_minutes
            self._add_alarm(
                "NodesIdle",
                cluster.metric(metrics.NODE_IDLE, statistic="Maximum", period=_FIVE_MINUTES),
                f"A node of {name} has had no job for {minutes} min, and costs: Slurm should have terminated it after "
                f"{idle_minutes}. Which: `sinfo --states=idle`; why: /var/log/parallelcluster/clustermgtd and "
                "slurm_suspend.log on the head node. To end it: `scontrol update nodename=NODE state=power_down`.",
                threshold=minutes * 60,
                missing=unknown,
            )

    def _add_file_system_alarm(
        self, file_system: ILustreFileSystem, name: str, full_percent: int, full_below_gib: float
    ) -> None:
        self._add_alarm(
            "FileSystemNearlyFull",
            file_system.metric("FreeDataStorageCapacity"),
            # With its name: another file system makes another template, so that its id is read again.
            f"The file system {name} is more than {full_percent} % full, of its nominal capacity; jobs "
            "fail when it is full. Delete what is not needed, or raise its capacity and deploy. "
            "What is full: `lfs df -h` on any node.",
            threshold=full_below_gib * _BYTES_PER_GIB,
            below=True,
            periods=5,
            # A file system that is being changed reports nothing for a while, and is as full as it was.
            missing=cloudwatch.TreatMissingData.IGNORE,
        )

    def _add_nat_gateway_alarm(self, network: IUltraClusterNetwork) -> None:
        self._add_alarm(
            "NatPortsExhausted",
            network.metric_nat_gateway("ErrorPortAllocation", period=_FIVE_MINUTES),
            # With its subnet's block: another subnet makes another gateway, and another template.
            f"The NAT gateway in {network.place_of_nat_gateway} had no port left for a new connection: nodes "
            "fail to fetch packages when many start at once. Give the gateway more addresses and deploy.",
        )

    def _add_alarm(
        self,
        name: str,
        metric: cloudwatch.Metric,
        description: str,
        *,
        threshold: float = 1,
        below: bool = False,
        periods: int = 1,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> cloudwatch.Alarm:
        """Add an alarm that is raised after so many periods in a row at or above the threshold, or below it.

        https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
        """
        operators = cloudwatch.ComparisonOperator
        alarm = metric.create_alarm(
            self,
            name,
            alarm_name=f"{self._alarm_prefix}-{name}",
            alarm_description=" ".join([description, *filter(None, [self._advice.get(name)])]),
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=(
                operators.LESS_THAN_THRESHOLD if below else operators.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            treat_missing_data=missing,
        )
        alarm.add_alarm_action(self._notify)
        self.alarms.append(alarm)
        return alarm


def _queue_violations(queues: object, known: Sequence[str] | None) -> Iterator[Violation]:
    for index, queue in enumerate(queues if isinstance(queues, list) else ()):
        if is_token(queue):
            yield Violation(("queues", index), queue, "the name of a queue", "ids of alarms have it")
        elif isinstance(queue, str) and known is not None and queue not in known:
            yield Violation(("queues", index), queue, some_of(known, "none"), "the cluster has no other queue by now")


def _advice_violations(advice: object) -> Iterator[Violation]:
    for alarm in advice if isinstance(advice, Mapping) else ():
        if isinstance(alarm, str) and alarm not in ALARMS and not alarm.startswith(_ALARM_OF_QUEUE):
            yield Violation(
                ("advice", alarm), alarm, some_of((*ALARMS, f"{_ALARM_OF_QUEUE}QUEUE"), ""), "no such alarm"
            )


def _budget_violations(cluster: object, *, node_metrics: bool) -> Iterator[Violation]:
    if not node_metrics:
        reason = "without node_metrics nothing tells what nodes cost"
        yield Violation(("budget",), Words("a budget"), "None, or nodes that send metrics", reason)
    elif isinstance(cluster, ParallelCluster) and not cluster.counts_costs:
        reason = "the cluster's head node counts no costs without NeuronSoftware(budget=...)"
        yield Violation(("budget",), Words("a budget"), "None, or a cluster that has one, too", reason)


def _prefix_violations(scope: Construct, prefix: str) -> Iterator[Violation]:
    others = [each for each in Stack.of(scope).node.find_all() if isinstance(each, ClusterMonitoring)]
    if prefix in [each._alarm_prefix for each in others]:
        yield Violation(("alarm_prefix",), prefix, "another one", "other alarms of this stack have these names")
