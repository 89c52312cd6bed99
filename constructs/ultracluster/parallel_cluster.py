"""AWS ParallelCluster as a construct: a Slurm cluster made, changed and deleted with its stack."""

from collections.abc import Mapping, Sequence

from aws_cdk import CfnStack, CustomResource, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultracluster.domain.cluster import ClusterSpec
from ultracluster.domain.cluster_configuration import (
    Bindings,
    LustreMount,
    render,
    secret_arns,
)
from ultracluster.domain.validator_warnings import suppressed
from ultracluster.network import Network
from ultracluster.node_scripts import NodeScript, NodeScripts


class ParallelCluster(Construct):
    """Define a cluster by AWS's own custom resource, with a provider of its own.

    One provider per cluster, because the provider may mix up the attributes of two, and because both have the same
    version for life (https://docs.aws.amazon.com/parallelcluster/latest/ug/cloudformation-v3.html).

    What can carry tags carries the cluster's, but for the placement groups: CloudFormation replaces a placement group
    to change its tags, and running nodes hold the old one. So give the stack itself no tags, either, because
    CloudFormation would hand them down.

    The specification has no violations (``ultracluster.domain.cluster_rules``); queues have their scripts by name. The
    head node runs its script when it is created and at each update of the cluster; another script of login nodes
    reaches new nodes.

    A warning of ParallelCluster's validators stops the deployment, except those of ``validator_warnings.suppressed``.

    Attributes:
        cluster_name: ParallelCluster's name of the cluster; known once the cluster exists.
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
        security_groups: Sequence[ec2.ISecurityGroup],
        shared_storage: Sequence[LustreMount],
        head_node_script: NodeScript,
        queue_scripts: Mapping[str, NodeScript],
        login_script: NodeScript,
        assets_key_arn: str | None,
    ) -> None:
        super().__init__(scope, construct_id)
        for key, value in spec.tags.items():
            Tags.of(self).add(key, value, exclude_resource_types=["AWS::EC2::PlacementGroup"])
        scripts = NodeScripts(
            self, "Scripts", cluster_name=spec.name, region=spec.region, assets_key_arn=assets_key_arn
        )
        groups = Construct(self, "PlacementGroups")
        self.placement_groups = {
            label: ec2.CfnPlacementGroup(groups, label, strategy="cluster") for label in spec.placement_group_labels
        }
        bindings = Bindings(
            public_subnet_id=network.public_subnet.subnet_id,
            private_subnet_id=network.private_subnet.subnet_id,
            security_group_ids=[group.security_group_id for group in security_groups],
            placement_groups={label: group.attr_group_name for label, group in self.placement_groups.items()},
            shared_storage=shared_storage,
            head_node=scripts.of_head_node(head_node_script),
            queues={queue.name: scripts.of_queue(queue_scripts[queue.name]) for queue in spec.queues},
            login_nodes=scripts.of_login_nodes(login_script) if spec.login_nodes else {},
        )
        cluster = CustomResource(
            self,
            "Resource",
            service_token=self._provider(spec).get_att("Outputs.ServiceToken").to_string(),
            resource_type="Custom::PclusterCluster",
            properties={
                "ClusterName": spec.name,
                "ClusterConfiguration": render(spec, bindings),
                "SuppressValidators": suppressed(spec),
                "ValidationFailureLevel": "WARNING",
            },
        )
        cluster.node.add_dependency(network.vpc)
        cluster.node.add_dependency(scripts)
        self.cluster_name = cluster.ref
        self.head_node_instance_id = cluster.get_att_string("headNode.instanceId")
        self.head_node_private_ip = cluster.get_att_string("headNode.privateIpAddress")
        self.status = cluster.get_att_string("clusterStatus")
        self.validation_messages = cluster.get_att_string("validationMessages")

    def _provider(self, spec: ClusterSpec) -> CfnStack:
        stack = Stack.of(self)
        host = f"{stack.region}-aws-parallelcluster.s3.{stack.region}.{stack.url_suffix}"
        policy = self._provider_policy(spec)
        return CfnStack(
            self,
            # Another version gets another provider, which CloudFormation refuses to put in the place of the first.
            f"Provider{spec.parallelcluster_version.replace('.', '')}",
            template_url=f"https://{host}/parallelcluster/{spec.parallelcluster_version}/templates/custom_resource/cluster.yaml",
            parameters=None if policy is None else {"AdditionalIamPolicies": policy.managed_policy_arn},
        )

    def _provider_policy(self, spec: ClusterSpec) -> iam.ManagedPolicy | None:
        """Return the permission to see the secrets of the configuration, which its validators read; None: it has none.

        They describe a password and read a Munge key (aws-parallelcluster 3.16.1, ``directory_service_validators.py``,
        ``secret_validators.py``).
        """
        arns: dict[str, set[str]] = {}
        for place, arn in secret_arns(spec.overrides):
            action = "GetSecretValue" if place[-1] == "MungeKeySecretArn" else "DescribeSecret"
            arns.setdefault(f"secretsmanager:{action}", set()).add(arn)
        if not arns:
            return None
        statements = [
            iam.PolicyStatement(actions=[action], resources=sorted(named)) for action, named in sorted(arns.items())
        ]
        return iam.ManagedPolicy(self, "ProviderSecrets", statements=statements)
