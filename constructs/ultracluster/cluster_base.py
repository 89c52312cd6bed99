"""What clusters have that are made in this app, and those that are imported: connections and metrics."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import jsii
from aws_cdk import Annotations, Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct, DependencyGroup

from ultracluster.arguments import construct_name, wrong_types
from ultracluster.domain import metrics
from ultracluster.domain.violations import InvalidArguments, Path
from ultracluster.metric import metric_of
from ultracluster.node_policies import NodePolicies
from ultracluster.signatures import readable

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
        self, cluster_name: str, policies: Callable[[], Iterable[NodePolicies]], scope: Construct | None = None
    ) -> None:
        super().__init__()
        self._cluster_name, self._policies, self._scope = cluster_name, policies, scope

    @property
    def policy_fragment(self) -> iam.PrincipalPolicyFragment:
        """The roles of the cluster, in the policy of a resource."""
        roles = self._stack.format_arn(
            service="iam", region="", resource="role", resource_name=f"parallelcluster/{self._cluster_name}/*"
        )
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
        if self._scope is not None:
            return Stack.of(self._scope)
        [first, *_] = self._policies()
        return Stack.of(first.first)

    def dedupe_string(self) -> str:
        """Return what tells these roles from others in the policy of a resource."""
        return self._cluster_name

    def add_to_principal_policy(self, statement: iam.PolicyStatement) -> iam.AddToPrincipalPolicyResult:
        """Add a statement to the nodes' policies."""
        added = [each.add(statement) for each in self._policies()]
        if self._scope is not None:
            Annotations.of(self._scope).add_warning_v2(
                "ultracluster:importedGrant",
                f"nodes of {self._cluster_name} get no policy, because the cluster is not of this app: only what has "
                "a policy of its own in this app, such as a bucket or a key, lets them in",
            )
            return iam.AddToPrincipalPolicyResult(statement_added=False)
        policies = DependencyGroup(*(each.policy_dependable for each in added if each.policy_dependable is not None))
        return iam.AddToPrincipalPolicyResult(statement_added=True, policy_dependable=policies)


@readable
@jsii.implements(ec2.IConnectable, iam.IGrantable)
class IParallelCluster(Construct):
    """A cluster of this app or of another."""

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, security_groups: Sequence[ec2.ISecurityGroup] | None
    ) -> None:
        imported = type(self) is IParallelCluster
        maker = "ParallelCluster.from_cluster_attributes" if imported else type(self).__name__
        place = construct_name(maker, scope, construct_id)
        if broken := wrong_types(IParallelCluster.__init__, locals()):
            raise InvalidArguments(place, [replace(each, path=_ARGUMENTS.get(each.path, each.path)) for each in broken])
        super().__init__(scope, construct_id)
        self._name = name
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
        return NodeGroup(self._name, tuple, self)

    @property
    def connections(self) -> ec2.Connections:  # on the class: the jsii kernel sees no instance attributes
        """The security groups that all nodes carry beside ParallelCluster's own."""
        return self._connections

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
        if metric_name not in metrics.ALL:
            raise ValueError(f"metric_name: got {metric_name!r}; allowed: {', '.join(metrics.ALL)}")
        if queue is not None and (unknown := self._unknown_queue(queue)) is not None:
            raise ValueError(f"queue: {unknown}")
        dimensions = {"Cluster": self._name} | ({"Queue": queue} if queue else {})
        return metric_of(metrics.NAMESPACE, dimensions, metric_name, statistic=statistic, period=period, label=label)

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
