"""AWS ParallelCluster as a construct: a Slurm cluster made, changed and deleted with its stack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from aws_cdk import Acknowledgment, CfnStack, CustomResource, Stack, Tags, Token, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from ultracluster.domain.cluster import ClusterSpec
from ultracluster.domain.cluster_configuration import (
    Action,
    Bindings,
    LustreMount,
    NodeActions,
    render,
    understood_warnings,
)
from ultracluster.network import Network

_LAUNCHER = Path(__file__).with_name("node_launcher.sh")


@dataclass(frozen=True)
class NodeScript:
    """A local file that nodes run as root while they start.

    Attributes:
        path: The file; it becomes a CDK asset.
        arguments: Its command line.

    Raises:
        ValueError: The file's name does not end in ``.sh``, by which the provider is let to see it.
    """

    path: Path
    arguments: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.path.suffix != ".sh":
            raise ValueError(f"node script: got {str(self.path)!r}; allowed: a file whose name ends in .sh")


class ParallelCluster(Construct):
    """Define a cluster by AWS's own custom resource, with a provider of its own.

    One provider per cluster, because the provider may mix up the attributes of two, and because both have the same
    version for life (https://docs.aws.amazon.com/parallelcluster/latest/ug/cloudformation-v3.html).

    What can carry tags carries the cluster's, but for the placement groups: CloudFormation replaces a placement group
    to change its tags, and running nodes hold the old one. So give the stack itself no tags, either, because
    CloudFormation would hand them down.

    A warning of ParallelCluster's validators stops the deployment, except those of ``understood_warnings``.

    Attributes:
        cluster_name: ParallelCluster's name of the cluster; known once the cluster exists.
        head_node_instance_id: EC2 instance id of the head node.
        head_node_private_ip: Private IPv4 address of the head node.
        status: Status of the cluster, such as ``CREATE_COMPLETE``.
        validation_messages: What the validators said, as JSON, cut after 2,048 characters.
        placement_groups: The placement groups that were made, by label.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        spec: ClusterSpec,
        network: Network,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        shared_storage: Sequence[LustreMount] = (),
        head_node_script: NodeScript | None = None,
        queue_scripts: Mapping[str, NodeScript] | None = None,
        login_script: NodeScript | None = None,
    ) -> None:
        """Define the cluster.

        Args:
            scope: Parent.
            construct_id: Name in the tree.
            spec: A cluster without faults (``ultracluster.domain.cluster_rules``).
            network: Where the nodes stand.
            security_groups: Groups that all nodes carry beside ParallelCluster's own.
            shared_storage: File systems that all nodes mount.
            head_node_script: Runs on the head node when it is created and at each update of the cluster.
            queue_scripts: Script of the compute nodes, by queue.
            login_script: Script of the login nodes; a changed one reaches new nodes.

        Raises:
            ValueError: The cluster has the name of its stack, or a script is for a queue that is not there.
        """
        super().__init__(scope, construct_id)
        for key, value in spec.tags.items():
            Tags.of(self).add(key, value, exclude_resource_types=["AWS::EC2::PlacementGroup"])
        stack = Stack.of(self)
        if not Token.is_unresolved(stack.stack_name) and spec.name == stack.stack_name:
            raise ValueError(f"cluster name {spec.name!r}: ParallelCluster makes a stack of that name; use another one")
        queue_scripts = queue_scripts or {}
        unknown = queue_scripts.keys() - {queue.name for queue in spec.queues}
        if unknown:
            raise ValueError(f"queue_scripts: got {sorted(unknown)}; allowed: {[queue.name for queue in spec.queues]}")

        self._scripts = Construct(self, "Scripts")
        self._assets: dict[Path, assets.Asset] = {}
        groups = Construct(self, "PlacementGroups")
        self.placement_groups = {
            label: ec2.CfnPlacementGroup(groups, label, strategy="cluster") for label in spec.placement_group_labels
        }
        head_node = self._launched("HeadNode", head_node_script, spec)
        login = self._launched("LoginNodes", login_script if spec.login_pools else None, spec)
        bindings = Bindings(
            public_subnet_id=network.public_subnet.subnet_id,
            private_subnet_id=network.private_subnet.subnet_id,
            security_group_ids=[group.security_group_id for group in security_groups],
            placement_groups={label: group.attr_group_name for label, group in self.placement_groups.items()},
            shared_storage=shared_storage,
            head_node_actions=head_node.actions,
            queue_actions={
                name: NodeActions(on_configured=self._action(script.path, script.arguments))
                for name, script in queue_scripts.items()
            },
            login_actions=login.actions,
            head_node_policy_arns=head_node.policy_arns,
            login_policy_arns=login.policy_arns,
        )
        cluster = CustomResource(
            self,
            "Resource",
            service_token=self._provider(spec.version).get_att("Outputs.ServiceToken").to_string(),
            resource_type="Custom::PclusterCluster",
            properties={
                "ClusterName": spec.name,
                "ClusterConfiguration": render(spec, bindings),
                "SuppressValidators": understood_warnings(spec),
                "ValidationFailureLevel": "WARNING",
            },
        )
        cluster.node.add_dependency(network.vpc)
        cluster.node.add_dependency(self._scripts)
        self.cluster_name = cluster.ref
        self.head_node_instance_id = cluster.get_att_string("headNode.instanceId")
        self.head_node_private_ip = cluster.get_att_string("headNode.privateIpAddress")
        self.status = cluster.get_att_string("clusterStatus")
        self.validation_messages = cluster.get_att_string("validationMessages")

    def _action(self, path: Path, arguments: Sequence[str]) -> Action:
        if path not in self._assets:
            self._assets[path] = assets.Asset(self._scripts, f"Script{len(self._assets)}", path=str(path))
        asset = self._assets[path]
        return Action(asset.s3_object_url, asset.s3_bucket_name, asset.s3_object_key, arguments)

    def _launched(self, node_kind: str, script: NodeScript | None, spec: ClusterSpec) -> "_Launched":
        """Name a script in a parameter: ParallelCluster refuses any change of these nodes' OnNodeConfigured itself."""
        if script is None:
            return _Launched()
        current = self._action(script.path, script.arguments)
        scope = Construct(self._scripts, node_kind)
        parameter_name = f"/ultracluster/{spec.name}/{node_kind}"
        ssm.StringParameter(
            scope,
            "Parameter",
            parameter_name=parameter_name,
            string_value=Stack.of(self).to_json_string({"script": current.uri, "arguments": list(current.arguments)}),
            description=f"What {node_kind} of {spec.name} runs when it is created",
        )
        launcher = self._action(_LAUNCHER, [parameter_name, spec.region])
        # The provider attaches policies of this path. S3Access has room for one object of a bucket, and login nodes
        # have none; a name of our own would stand in the way of a replacement.
        policy = iam.ManagedPolicy(
            scope, "Policy", path="/parallelcluster/", statements=[self._read_assets(launcher.key, current.key)]
        )
        return _Launched(
            NodeActions(on_configured=launcher, on_updated=current if node_kind == "HeadNode" else None),
            [policy.managed_policy_arn],
        )

    def _provider(self, version: str) -> CfnStack:
        stack = Stack.of(self)
        host = f"{stack.region}-aws-parallelcluster.s3.{stack.region}.{stack.url_suffix}"
        provider = CfnStack(
            self,
            # Another version gets another provider, which CloudFormation refuses to put in the place of the first.
            f"Provider{version.replace('.', '')}",
            template_url=f"https://{host}/parallelcluster/{version}/templates/custom_resource/cluster.yaml",
        )
        if self._assets:
            # It looks for every script before it makes or changes a cluster; what it cannot read it calls missing. By
            # a name that stays: a changed script is looked for before a change of this policy has spread in IAM.
            statement = self._read_assets("*.sh")
            policy = iam.ManagedPolicy(self, "ProviderPolicy", statements=[statement])
            [scripts] = map(_as_cdk_nag_writes, stack.resolve(statement.resources))
            Validations.of(policy).acknowledge(
                Acknowledgment(
                    id=f"AwsSolutions::AwsSolutions-IAM5[Resource::{scripts}]",
                    reason="scripts among the account's CDK assets, by a name that stays when their contents change",
                )
            )
            provider.parameters = {"AdditionalIamPolicies": policy.managed_policy_arn}
        return provider

    def _read_assets(self, *keys: str) -> iam.PolicyStatement:
        bucket = next(iter(self._assets.values())).bucket
        return iam.PolicyStatement(actions=["s3:GetObject"], resources=[bucket.arn_for_objects(key) for key in keys])


class _Launched(NamedTuple):
    actions: NodeActions = NodeActions()
    policy_arns: Sequence[str] = ()


def _as_cdk_nag_writes(value: Any) -> str:
    """Return a resolved ARN as cdk-nag 3 has it in the id of a finding."""
    if isinstance(value, str):
        return value.replace("${", "<").replace("}", ">")
    [(function, argument)] = value.items()
    if function == "Fn::Join":
        return "".join(map(_as_cdk_nag_writes, argument[1]))
    return f"<{argument}>" if function == "Ref" else _as_cdk_nag_writes(argument)
