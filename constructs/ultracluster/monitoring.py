"""Alarms and a dashboard for an UltraCluster: its nodes, its file system and its NAT gateway."""

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from ultracluster.dashboard import Dashboard
from ultracluster.domain import metrics
from ultracluster.metric_sources import ClusterMetrics, FileSystemMetrics, NatGatewayMetrics

_BYTES_PER_GIB = 1024**3
_CLOUDWATCH = "cloudwatch.amazonaws.com"
_HELD_IDLE_SECONDS = 3600
"""Longer than a compilation just in time, which takes about 40 minutes for BERT-Large
(https://awsdocs-neuron.readthedocs-hosted.com/en/latest/archive/nxd-training/bert.html)."""


class Monitoring(Construct):
    """Define an SNS topic, the alarms that notify it, and a dashboard.

    Metrics are found by the name of their cluster, which need not exist. There is no NAT gateway in an existing VPC.

    Attributes:
        topic: Notified of every alarm that is raised.
        alarms: All alarms.
        dashboard_name: Name of the dashboard, None without one.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: ClusterMetrics,
        file_system: FileSystemMetrics,
        nat_gateway: NatGatewayMetrics | None,
        file_system_full_percent: int,
        emails: Sequence[str],
        dashboard: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        self._alarm_prefix = stack.stack_name
        self.topic = self._add_topic(emails)
        self.alarms: list[cloudwatch.Alarm] = []
        if cluster.node_metrics:
            self._add_compute_node_alarms(cluster, stack.region)
            self._add_head_node_alarms(cluster, stack.region)
        self._add_file_system_alarm(file_system, file_system_full_percent)
        if nat_gateway is not None:
            self._add_nat_gateway_alarm(nat_gateway)
        self.dashboard_name = None
        if dashboard:
            self.dashboard_name = Dashboard(
                self, "Dashboard", cluster=cluster, file_system=file_system, nat_gateway=nat_gateway, alarms=self.alarms
            ).name

    def _add_topic(self, emails: Sequence[str]) -> sns.Topic:
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
        for address in emails:
            topic.add_subscription(subscriptions.EmailSubscription(address))
        return topic

    def _add_compute_node_alarms(self, cluster: ClusterMetrics, region: str) -> None:
        for queue in cluster.queues:
            self._add_alarm(
                f"UncorrectableErrors-{queue}",
                cluster.metric(metrics.UNCORRECTABLE_ERRORS, "Sum", queue=queue, minutes=5),
                f"A Neuron device in queue {queue} of {cluster.name} has uncorrectable errors: what was computed since "
                "may be wrong. When its job ends, the node is drained and replaced, or its driver reloaded if that "
                "repairs it. Restart the job from an earlier checkpoint. Which node: see the dashboard, or "
                f"`sinfo --list-reasons --partition={queue}`.",
            )

        hours = _HELD_IDLE_SECONDS // 3600
        self._add_alarm(
            "NodesHeldIdle",
            cluster.metric(metrics.HELD_IDLE, "Maximum", minutes=5),
            f"A job has held a node of {cluster.name} for {hours} h and used none of its NeuronCores: it hangs, it "
            "compiles, or it needs no such node. Which nodes: `aws cloudwatch list-metrics --recently-active PT3H "
            f"--namespace {metrics.NAMESPACE} --metric-name {metrics.HELD_IDLE} --region {region}`; which job: `squeue "
            "--nodelist=NODE`. If it hangs: `scancel JOB`, or `scontrol requeue JOB` if it has checkpoints.",
            threshold=_HELD_IDLE_SECONDS,
        )

    def _add_head_node_alarms(self, cluster: ClusterMetrics, region: str) -> None:
        # While the head node is silent nobody knows, which is an alarm of its own: these two stay as they are.
        unknown = cloudwatch.TreatMissingData.IGNORE
        self._add_alarm(
            "NodesDrained",
            cluster.metric(metrics.NODES_DRAINED, "Maximum", minutes=5),
            f"Health checks took nodes of {cluster.name} out of service. ParallelCluster replaces them, and jobs are "
            "requeued. Which and why: `sinfo --list-reasons` on the head node; later, `reason set to: ultracluster` in "
            "/var/log/slurmctld.log. Many nodes with one reason: `scontrol update partition=QUEUE state=down` first.",
            missing=unknown,
        )
        self._add_alarm(
            "QueuesProtected",
            cluster.metric(metrics.QUEUES_PROTECTED, "Maximum", minutes=5),
            f"ParallelCluster closed a queue of {cluster.name}, because nodes kept failing to start. Why: "
            "/var/log/parallelcluster/clustermgtd on the head node, and the nodes' own logs, cloud-init-output, in the "
            "cluster's log group. Then: `pcluster update-compute-fleet --status START_REQUESTED "
            f"--cluster-name {cluster.name} --region {region}`.",
            missing=unknown,
        )
        # It alarms on the way into INSUFFICIENT_DATA, its first state: silence before the first cluster alarms nobody.
        silent = self._add_alarm(
            "HeadNodeSilent",
            cluster.metric(metrics.QUEUES_PROTECTED, "SampleCount", minutes=5),
            f"INSUFFICIENT_DATA: the head node of {cluster.name} sends no metrics any more. If the cluster was "
            "destroyed, that is why. Else open a shell on it (output Connect of the cluster's stack): `journalctl "
            "--unit=ultracluster-metrics`. If it cannot be reached, its logs are in the newest log group of the output "
            f"LogGroupPrefix: `aws logs tail --region {region} ...`.",
            below=True,
            missing=cloudwatch.TreatMissingData.MISSING,
        )
        silent.add_insufficient_data_action(actions.SnsAction(self.topic))

    def _add_file_system_alarm(self, file_system: FileSystemMetrics, full_percent: int) -> None:
        self._add_alarm(
            "FileSystemNearlyFull",
            file_system.metric("FreeDataStorageCapacity", "Sum"),
            # With its name: another file system makes another template, so that its id is read again.
            f"The file system {file_system.name} is more than {full_percent} % full, of its nominal capacity; jobs "
            "fail when it is full. Delete what is not needed, or raise `storage.file_system.capacity_gib` and deploy. "
            "What is full: `lfs df -h` on any node.",
            threshold=file_system.capacity_gib * _BYTES_PER_GIB * (100 - full_percent) / 100,
            below=True,
            periods=5,
            # A file system that is being changed reports nothing for a while, and is as full as it was.
            missing=cloudwatch.TreatMissingData.IGNORE,
        )

    def _add_nat_gateway_alarm(self, nat_gateway: NatGatewayMetrics) -> None:
        self._add_alarm(
            "NatPortsExhausted",
            nat_gateway.metric("ErrorPortAllocation", "Sum", minutes=5),
            # With its subnet's block: another subnet makes another gateway, and another template.
            f"The NAT gateway in {nat_gateway.subnet_cidr} had no port left for a new connection: nodes fail to fetch "
            "packages when many start at once. Raise `network.nat_addresses` and deploy.",
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
            alarm_description=description,
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=(
                operators.LESS_THAN_THRESHOLD if below else operators.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            treat_missing_data=missing,
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))
        self.alarms.append(alarm)
        return alarm
