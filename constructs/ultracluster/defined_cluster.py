"""What all clusters have that an app makes: AWS's custom resource, its provider, tags, and a removal policy."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jsii
from aws_cdk import (
    Aspects,
    CfnResource,
    CustomResource,
    IAspect,
    IStableAnyProducer,
    ITaggable,
    Lazy,
    RemovalPolicy,
    TagManager,
    Tags,
    TagType,
    Token,
)
from aws_cdk import aws_iam as iam
from constructs import IConstruct, IValidation

from ultracluster import cluster_names
from ultracluster.arguments import wrong_types
from ultracluster.cluster_base import IParallelCluster
from ultracluster.cluster_provider import ClusterProvider
from ultracluster.domain import metrics
from ultracluster.domain.overrides import at, mappings
from ultracluster.domain.parallelcluster_schema import truth
from ultracluster.domain.roles import RolesSpec
from ultracluster.domain.types import BOUNDARY_ALLOWED, BOUNDARY_NAME
from ultracluster.domain.violations import InvalidArguments, Violation
from ultracluster.roles import BoundaryProbe, apply_roles

_OF_METRICS = (("Logs", "CloudWatch", "Enabled"), ("Dashboards", "CloudWatch", "Enabled"), ("Alarms", "Enabled"))
RESOURCE_TYPE = "Custom::PclusterCluster"


@jsii.implements(ITaggable)
class DefinedCluster(IParallelCluster):
    """A cluster that is made, changed and deleted with its stack."""

    _construct: str
    _roles: RolesSpec | None = None

    @property
    def cluster_name(self) -> str:
        """ParallelCluster's name of the cluster; known once the cluster exists."""
        return self._resource.ref

    @property
    def head_node_instance_id(self) -> str:
        """EC2's id of the head node."""
        return self._resource.get_att_string("headNode.instanceId")

    @property
    def head_node_private_ip(self) -> str:
        """Address of the head node in the VPC."""
        return self._resource.get_att_string("headNode.privateIpAddress")

    def _instance_of_head_node(self) -> str:
        return self.head_node_instance_id

    @property
    def status(self) -> str:
        """Status of the cluster, such as ``CREATE_COMPLETE``."""
        return self._resource.get_att_string("clusterStatus")

    @property
    def validation_messages(self) -> str:
        """What the validators said, as JSON, cut after 2,048 characters."""
        return self._resource.get_att_string("validationMessages")

    @property
    def tags(self) -> TagManager:
        """Tags of everything that ParallelCluster makes: those given, and those of ``cdk.Tags`` for what it is in."""
        return self._tags

    def apply_removal_policy(self, policy: RemovalPolicy) -> None:
        """Say what happens to the cluster when it leaves its stack, or that is deleted.

        Retained, it stays with all that it needs: head node, nodes and their storage cost until you delete the stack
        of the cluster's name and then what is left of this one; no app can take it up again, because ParallelCluster's
        resource adopts none.

        Args:
            policy: Retained or deleted.

        Raises:
            InvalidArguments: It is no policy of the CDK's, which texts are not.
            ValueError: It is neither: there are no snapshots of clusters.
        """
        if broken := wrong_types(DefinedCluster.apply_removal_policy, locals()):
            raise InvalidArguments(f"apply_removal_policy of {self._construct}", broken)
        if policy == RemovalPolicy.SNAPSHOT:
            raise ValueError(f"policy: {self._construct} cannot be deleted with a snapshot; allowed: RETAIN or DESTROY")
        Aspects.of(self).add(_Kept(policy))

    def _carry_tags(self, tags: Mapping[str, str]) -> None:
        """Take tags of the app; those given are for what is in the cluster's scope, too."""
        for key, value in tags.items():
            Tags.of(self).add(key, value)
        self._tags = TagManager(TagType.STANDARD, RESOURCE_TYPE)

    def _define(
        self,
        version: str,
        *,
        configuration: Callable[[], Mapping[str, Any]],
        suppressed: Callable[[], list[str]],
        level: str,
        secrets: iam.ManagedPolicy | None,
    ) -> CustomResource:
        """Define the resource and its provider.

        Args:
            version: Of ParallelCluster.
            configuration: Is asked for the configuration when the app is synthesized.
            suppressed: Likewise for the validators that are left out.
            level: Of messages of validators, from which on they stop a deployment.
            secrets: What lets the provider see the secrets of the configuration.
        """
        self._probe = BoundaryProbe(self, "Boundary", self._bound)
        self._provider = ClusterProvider(self, name=self._name, version=version, secrets=secrets)
        if self._roles is not None:
            self._provider.set_roles(self._roles)
            apply_roles(self, self._roles)
        self._resource = CustomResource(
            self,
            "Resource",
            service_token=self._provider.stack.get_att("Outputs.ServiceToken").to_string(),
            resource_type=RESOURCE_TYPE,
            properties={
                "ClusterName": self._name,
                "ClusterConfiguration": Lazy.any(_Later(configuration)),
                "SuppressValidators": Lazy.any(_Later(suppressed)),
                "ValidationFailureLevel": level,
            },
        )
        return self._resource

    def _rendered(self) -> Mapping[str, Any]:
        """Return the configuration as it is by now."""
        raise NotImplementedError

    def _not_made(self, metric_name: str) -> str | None:
        configuration = self._rendered()
        monitoring = at(configuration, ("Monitoring",))
        logs, dashboard, alarms = (at(monitoring, path) for path in _OF_METRICS)
        scheduling = at(configuration, ("Scheduling",))
        queues = mappings(at(scheduling, ("SlurmQueues",)))
        if truth(logs) is False and (metric_name in metrics.OF_PARALLELCLUSTER or metric_name == metrics.HEARTBEAT):
            return "ParallelCluster makes it of logs in CloudWatch, which the cluster does not have"
        if truth(dashboard) is False and metric_name in metrics.OF_PARALLELCLUSTER:
            return "ParallelCluster makes it with a dashboard, which the cluster does not have"
        if truth(alarms) is False and metric_name == metrics.HEARTBEAT:
            return "ParallelCluster makes it with alarms, which the cluster does not have"
        if metric_name in metrics.SCRIPT_FAILURES and not any(each.get("CustomActions") for each in queues):
            return "no queue runs scripts by now"
        nodes = [*queues, *(each for queue in queues for each in mappings(queue.get("ComputeResources")))]
        checked = [truth(at(each, ("HealthChecks", "Gpu", "Enabled"))) for each in nodes]
        if metric_name == metrics.GPU_FAILURES and True not in checked:
            return "no queue has HealthChecks/Gpu/Enabled by now"
        return None

    def _wrong_boundary(self) -> Iterator[str]:
        """Yield why the template of ParallelCluster's provider would refuse the boundary of the app."""
        name = (self._probe.boundary or "").partition(":policy/")[2]
        if name and not Token.is_unresolved(name) and not BOUNDARY_NAME.fullmatch(name):
            wrong = Violation(
                (), self._probe.boundary, BOUNDARY_ALLOWED, "AWS's template of the provider takes no other"
            )
            yield f"permissions boundary: {wrong}"

    def _bound(self, boundary: str | None) -> None:
        """Let the provider's role have the boundary of all roles here, of which the CDK tells when it synthesizes."""
        if boundary is not None or self._provider.has_role:
            roles = self._roles or RolesSpec()
            self._provider.set_roles(roles.model_copy(update={"permissions_boundary_arn": boundary}))

    def _check_when_whole(self, check: Callable[[], list[str]]) -> None:
        """Let the CDK ask, when it synthesizes, what is wrong with the cluster then."""
        self.node.add_validation(_Whole(check))
        cluster_names.register(self, self._name)


@jsii.implements(IAspect)
class _Kept:
    """Gives all that a cluster needs its removal policy, what is added later, too."""

    def __init__(self, policy: RemovalPolicy) -> None:
        self._policy = policy

    def visit(self, node: IConstruct) -> None:
        if isinstance(node, CfnResource):
            node.apply_removal_policy(self._policy)


@jsii.implements(IStableAnyProducer)
class _Later:
    """A value that the CDK asks for when it synthesizes."""

    def __init__(self, produce: Callable[[], Any]) -> None:
        self._produce = produce

    def produce(self) -> Any:
        return self._produce()


@jsii.implements(IValidation)
class _Whole:
    """What is wrong with a cluster when its app is whole."""

    def __init__(self, check: Callable[[], list[str]]) -> None:
        self._check = check

    def validate(self) -> list[str]:
        return self._check()
