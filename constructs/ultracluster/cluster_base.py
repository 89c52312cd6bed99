"""What clusters have that are made in this app, and those that are imported: connections and metrics."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jsii
from aws_cdk import Annotations, Duration, Stack, Token
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct, DependencyGroup

from ultracluster.arguments import construct_name, wrong_types
from ultracluster.domain import cluster_rules, metrics
from ultracluster.domain.roles import RolesSpec
from ultracluster.domain.violations import InvalidArguments, Path, Violation
from ultracluster.metric import metric_of
from ultracluster.node_policies import NodePolicies
from ultracluster.signatures import readable

ROLE_PATH = "/parallelcluster/"
"""Path below which ParallelCluster has the roles of a cluster, in one of the cluster's name."""
_ARGUMENTS: dict[Path, Path] = {("name",): ("cluster_name",)}


@readable
class NodeGroup(iam.PrincipalBase):
    """Nodes of a cluster, to be granted permissions: ``bucket.grant_read(cluster.compute_nodes)``.

    A grant is a statement in a managed policy of the nodes' roles, which ParallelCluster makes. It reaches nodes that
    run. IAM takes 6,144 characters in a policy: what is more is in further ones; a further one for login nodes waits
    until there are none. Where a grant changes the policy of a resource as well, such as that of a KMS key for a
    secret, it is there for all roles of the cluster, by the path that ParallelCluster gives them (aws-parallelcluster
    3.16.1, templates/cdk_builder_utils.py, _cluster_scoped_iam_path). S3 may count such a statement as public: let a
    bucket of another account allow this account instead.
    """

    def __init__(
        self,
        cluster: "IParallelCluster",
        policies: Callable[[], Iterable[NodePolicies]] = tuple,
        kinds: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._cluster, self._policies, self._kinds = cluster, policies, kinds

    @property
    def policy_fragment(self) -> iam.PrincipalPolicyFragment:
        """The roles of the cluster, in the policy of a resource."""
        path = f"{self._cluster._role_path}{self._cluster._name}/".removeprefix("/")
        roles = self._stack.format_arn(service="iam", region="", resource="role", resource_name=f"{path}*")
        of_cluster = {
            "ArnLike": {"aws:PrincipalArn": roles},
            "StringEquals": {"aws:PrincipalAccount": self.principal_account},
        }
        return iam.PrincipalPolicyFragment({"AWS": ["*"]}, of_cluster)

    @property
    def principal_account(self) -> str:
        """Account of the cluster."""
        return self._stack.account

    @property
    def _stack(self) -> Stack:
        return Stack.of(self._cluster)

    def dedupe_string(self) -> str:
        """Return what tells these roles from others in the policy of a resource."""
        return self._cluster._name

    def add_to_principal_policy(self, statement: iam.PolicyStatement) -> iam.AddToPrincipalPolicyResult:
        """Add a statement to the nodes' policies."""
        added = [each.add(statement) for each in self._policies()]
        self._cluster._warn_of_unreached(self._kinds)
        self._cluster._granted.add(tuple(self._kinds))
        policies = DependencyGroup(*(each.policy_dependable for each in added if each.policy_dependable is not None))
        return iam.AddToPrincipalPolicyResult(statement_added=bool(added), policy_dependable=policies)


def _refused(name: str, role_path: str, head_node_instance_id: str | None) -> list[Violation]:
    """Return what is wrong about an imported cluster; in a pattern of roles a wrong name would let others in."""
    broken = [] if Token.is_unresolved(name) else [*cluster_rules.name_violations(name)]
    if not Token.is_unresolved(role_path):
        _, wrong = RolesSpec.checked({"path": role_path})
        broken += [replace(each, path=("role_path",)) for each in wrong]
    given = head_node_instance_id
    if given is not None and not Token.is_unresolved(given) and not re.fullmatch("i-[0-9a-f]+", given):
        broken.append(Violation(("head_node_instance_id",), given, "an id such as i-0123456789abcdef0", ""))
    return broken


@readable
@jsii.implements(ec2.IConnectable, iam.IGrantable)
class IParallelCluster(Construct):
    """A cluster of this app or of another."""

    _role_path = ROLE_PATH

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        security_groups: Sequence[ec2.ISecurityGroup] | None,
        head_node_instance_id: str | None = None,
        role_path: str = ROLE_PATH,
    ) -> None:
        imported = type(self) is IParallelCluster
        maker = "ParallelCluster.from_cluster_attributes" if imported else type(self).__name__
        place = construct_name(maker, scope, construct_id)
        broken = wrong_types(IParallelCluster.__init__, locals())
        if imported and not broken:
            broken = _refused(name, role_path, head_node_instance_id)
        if broken:
            raise InvalidArguments(place, [replace(each, path=_ARGUMENTS.get(each.path, each.path)) for each in broken])
        super().__init__(scope, construct_id)
        self._name = name
        self._instance_id, self._role_path = head_node_instance_id, role_path
        self._granted = set[tuple[str, ...]]()
        self._connections = ec2.Connections(security_groups=list(security_groups or ()))

    @property
    def cluster_name(self) -> str:
        """ParallelCluster's name of the cluster."""
        return self._name

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """All nodes, to be granted permissions. Roles of an imported cluster get no policy.

        They are named in the policy of the resource, if it is of this app and has one, as buckets and keys do.
        """
        return NodeGroup(self)

    @property
    def connections(self) -> ec2.Connections:  # on the class: the jsii kernel sees no instance attributes
        """The security groups that all nodes carry beside ParallelCluster's own."""
        return self._connections

    def _warn_of_unreached(self, kinds: Sequence[str]) -> None:
        """Warn of nodes that a grant to these kinds does not reach."""
        if (unreached := self._unreached(kinds)) is not None:
            Annotations.of(self).add_warning_v2(*unreached)

    def _unreached(self, kinds: Sequence[str]) -> tuple[str, str] | None:
        """Return id and text of a warning that a grant does not reach nodes; None: it does."""
        return (
            "ultracluster:importedGrant",
            f"nodes of {self._name} get no policy, because the cluster is not of this app: only what has "
            "a policy of its own in this app, such as a bucket or a key, lets them in",
        )

    def _monitored(self) -> tuple[str, list[str], bool]:
        """Return its name, its queues of Trainium as far as they are known, and whether its nodes send metrics."""
        return self._name, [], True

    def _instance_of_head_node(self) -> str:
        """Return the id of the head node.

        Raises:
            ValueError: It is not known.
        """
        if self._instance_id is None:
            raise ValueError(f"head_node_instance_id: got None of {self.node.path}; allowed: the id of its head node")
        return self._instance_id

    def _refuse(self, method: Callable[..., object], arguments: Mapping[str, Any], known: Collection[str]) -> None:
        """Raise InvalidArguments for a metric that nobody knows, or that the cluster does not make.

        Args:
            method: What is called.
            arguments: Its arguments.
            known: Names of metrics.
        """
        broken, name = wrong_types(method, arguments), arguments["metric_name"]
        if isinstance(name, str):
            missing = self._not_made(name)
            if name not in known:
                broken.append(Violation(("metric_name",), name, ", ".join(known), ""))
            elif missing is not None:
                broken.append(Violation(("metric_name",), name, "another metric", missing))
        queue = arguments.get("queue")
        if isinstance(queue, str) and (unknown := self._unknown_queue(queue)) is not None:
            broken.append(Violation(("queue",), queue, "a queue of the cluster", unknown))
        if broken:
            raise InvalidArguments(f"{method.__name__} of {self.node.path}", broken)

    def _not_made(self, metric_name: str) -> str | None:
        """Return why a cluster of this app does not make a metric of ParallelCluster's; None: it may."""
        return None

    def _unknown_queue(self, name: str) -> str | None:
        """Return that a cluster of this app has no queue of a name; None: it may have one."""
        return None

    def metric(
        self,
        metric_name: str,
        *,
        statistic: str = "Average",
        period: Duration | None = None,
        queue: str | None = None,
        label: str | None = None,
    ) -> cloudwatch.Metric:
        """Return a metric that nodes with `NeuronSoftware` send, one of `ultracluster.domain.metrics`.

        Args:
            metric_name: Such as ``NeuronCoreUtilization``; others are refused with a ValueError.
            statistic: Over nodes and time.
            period: Default: 1 minute, as nodes send them.
            queue: Nodes of one queue, which a cluster of this app has by now. Default: what the head node says of the
                cluster; compute nodes send their own metrics with a queue alone.
            label: Default: CloudWatch's.
        """
        self._refuse(IParallelCluster.metric, locals(), metrics.ALL)
        dimensions = {"Cluster": self._name} | ({"Queue": queue} if queue else {})
        return metric_of(
            self, metrics.NAMESPACE, dimensions, metric_name, statistic=statistic, period=period, label=label
        )

    def metric_nodes_reporting(self, queue: str) -> cloudwatch.Metric:
        """Return how many compute nodes of a queue run and send metrics."""
        return self.metric(metrics.NODES_REPORTING, statistic="Sum", queue=queue)

    def metric_core_utilization(self, queue: str) -> cloudwatch.Metric:
        """Return how much the NeuronCores of a queue's nodes in use do, percent, mean."""
        return self.metric(metrics.CORE_UTILIZATION, queue=queue)

    def metric_device_memory(self, queue: str) -> cloudwatch.Metric:
        """Return the memory of all Neuron devices in use on one node of a queue, bytes, mean over its nodes."""
        return self.metric(metrics.DEVICE_MEMORY, queue=queue)

    def metric_uncorrectable_errors(self, queue: str) -> cloudwatch.Metric:
        """Return the uncorrectable errors of a queue's Neuron devices in a minute."""
        return self.metric(metrics.UNCORRECTABLE_ERRORS, statistic="Sum", queue=queue)

    def metric_nodes_drained(self) -> cloudwatch.Metric:
        """Return how many nodes are drained, by anybody and for any reason, but for an update of the cluster."""
        return self.metric(metrics.NODES_DRAINED, statistic="Maximum")

    def metric_queues_protected(self) -> cloudwatch.Metric:
        """Return how many queues ParallelCluster closed because nodes kept failing to start."""
        return self.metric(metrics.QUEUES_PROTECTED, statistic="Maximum")

    def metric_of_parallelcluster(
        self, metric_name: str, *, statistic: str = "Sum", period: Duration | None = None, label: str | None = None
    ) -> cloudwatch.Metric:
        """Return a metric that ParallelCluster makes of its logs, of any cluster with a dashboard of ParallelCluster's.

        Args:
            metric_name: One of `ultracluster.domain.metrics.OF_PARALLELCLUSTER`, such as
                ``InsufficientCapacityErrors``; others are refused with a ValueError.
            statistic: Over the period. Most come only when there is something to count.
            period: Default: 1 minute.
            label: Default: CloudWatch's.
        """
        self._refuse(IParallelCluster.metric_of_parallelcluster, locals(), metrics.OF_PARALLELCLUSTER)
        dimensions = {"ClusterName": self._name}
        return metric_of(
            self, metrics.PARALLELCLUSTER, dimensions, metric_name, statistic=statistic, period=period, label=label
        )

    def metric_launch_failures(self) -> cloudwatch.MathExpression:
        """Return how many nodes EC2 did not launch, for whatever reason, in a minute."""
        return self._sum_of("nodes not launched", metrics.LAUNCH_FAILURES)

    def metric_node_failures(self) -> cloudwatch.MathExpression:
        """Return how many launched nodes failed in a minute, for whatever reason."""
        return self._sum_of("nodes that failed", metrics.NODE_FAILURES)

    def metric_script_failures(self) -> cloudwatch.MathExpression:
        """Return how many scripts of compute nodes failed in a minute."""
        return self._sum_of("scripts that failed", metrics.SCRIPT_FAILURES)

    def metric_gpu_failures(self) -> cloudwatch.Metric:
        """Return how many nodes failed the health check of their GPUs in a minute, which queues have by overrides."""
        return self.metric_of_parallelcluster(metrics.GPU_FAILURES)

    def metric_longest_idle(self) -> cloudwatch.Metric:
        """Return for how long the dynamic node has been idle that has been so for longest, seconds."""
        return self.metric_of_parallelcluster(metrics.LONGEST_IDLE, statistic="Maximum")

    def metric_head_node(
        self, metric_name: str, *, statistic: str = "Maximum", period: Duration | None = None, label: str | None = None
    ) -> cloudwatch.Metric:
        """Return a metric of the head node.

        Args:
            metric_name: One of `ultracluster.domain.metrics.OF_HEAD_NODE_INSTANCE`, such as ``CPUUtilization``; others
                are refused with a ValueError, and so is each if the head node's id is not known.
            statistic: Over the period.
            period: Default: 1 minute. EC2's own are of 5 minutes without detailed monitoring.
            label: Default: CloudWatch's.
        """
        self._refuse(IParallelCluster.metric_head_node, locals(), metrics.OF_HEAD_NODE_INSTANCE)
        namespace, further = metrics.OF_HEAD_NODE_INSTANCE[metric_name]
        dimensions = {"InstanceId": self._instance_of_head_node(), **further}
        if metric_name == metrics.HEARTBEAT:
            dimensions["ClusterName"] = self._name
        return metric_of(self, namespace, dimensions, metric_name, statistic=statistic, period=period, label=label)

    def metric_head_node_cpu(self) -> cloudwatch.Metric:
        """Return how much the head node's vCPUs do, percent, at most."""
        return self.metric_head_node("CPUUtilization", period=Duration.minutes(5))

    def metric_head_node_memory(self) -> cloudwatch.Metric:
        """Return how much of the head node's memory is used, percent, at most."""
        return self.metric_head_node("mem_used_percent")

    def metric_head_node_disk(self) -> cloudwatch.Metric:
        """Return how much of the head node's root volume is used, percent, at most."""
        return self.metric_head_node("disk_used_percent")

    def _sum_of(self, label: str, names: Sequence[str]) -> cloudwatch.MathExpression:
        """Return the sum of metrics of ParallelCluster's, of those that have a value."""
        each: dict[str, cloudwatch.IMetric] = {
            f"m{index}": self.metric_of_parallelcluster(name) for index, name in enumerate(names)
        }
        return cloudwatch.MathExpression(
            expression=f"SUM([{', '.join(each)}])", using_metrics=each, label=label, period=Duration.minutes(1)
        )
