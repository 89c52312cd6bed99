"""Snapshots of head nodes' root volumes, which outlive the cluster."""

from aws_cdk import ArnFormat, CfnTag, Duration, Stack
from aws_cdk import aws_dlm as dlm
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultracluster.acknowledgements import acknowledge_wildcards
from ultracluster.arguments import construct_name, together, wrong_types
from ultracluster.domain.names import SNAPSHOT_TAG
from ultracluster.domain.snapshots import SnapshotSpec
from ultracluster.domain.violations import InvalidArguments
from ultracluster.signatures import readable

_DEFAULTS = SnapshotSpec()
_WILDCARDS = {
    "Resource::*": "EC2's descriptions know no resources",
    "Resource::arn:": "volumes with the deployment's tag, and snapshots, whose ids AWS makes up",
}


@readable
class HeadNodeSnapshots(Construct):
    """Define a lifecycle policy of Amazon Data Lifecycle Manager and the role in which it makes and deletes snapshots.

    The policy's deletion, and a volume's, leaves the snapshots; then nothing deletes them any more
    (https://docs.aws.amazon.com/ebs/latest/userguide/delete.html).

    Args:
        scope: Usually a stack, which outlives the cluster.
        construct_id: Id in the scope.
        deployment: Value of the tag ``ultracluster:snapshots`` on the volumes: `NeuronSoftware.deployment`, or the
            cluster's name. [change: at once]
        interval_hours: Between two snapshots. [hours; one of 1, 2, 3, 4, 6, 8, 12, 24; default 24; change: at once]
        retained: Snapshots of each volume that are kept. [1 to 1,000; default 7; change: at once]

    Raises:
        InvalidArguments: Arguments are out of range; all of them are named.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        deployment: str,
        interval_hours: int | Duration = _DEFAULTS.interval_hours,
        retained: int = _DEFAULTS.retained,
    ) -> None:
        name = construct_name(type(self), scope, construct_id)
        broken = wrong_types(HeadNodeSnapshots.__init__, locals())
        spec, violations = SnapshotSpec.checked({"interval_hours": interval_hours, "retained": retained})
        broken = together(broken, violations)
        if spec is None or broken:
            raise InvalidArguments(name, broken)
        super().__init__(scope, construct_id)
        policy = dlm.CfnLifecyclePolicy
        policy(
            self,
            "Policy",
            description=f"Head node of {deployment}",
            state="ENABLED",
            execution_role_arn=self._role(deployment).role_arn,
            policy_details=policy.PolicyDetailsProperty(
                resource_types=["VOLUME"],
                target_tags=[CfnTag(key=SNAPSHOT_TAG, value=deployment)],
                schedules=[
                    policy.ScheduleProperty(
                        # Under another name, snapshots that exist would no longer be counted and deleted.
                        name="head-node",
                        copy_tags=True,
                        create_rule=policy.CreateRuleProperty(interval=spec.interval_hours, interval_unit="HOURS"),
                        retain_rule=policy.RetainRuleProperty(count=spec.retained),
                    )
                ],
            ),
        )
        acknowledge_wildcards(self, _WILDCARDS)

    def _role(self, deployment: str) -> iam.Role:
        """Return AWSDataLifecycleManagerServiceRole's permissions on snapshots, only for volumes with the tag.

        https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AWSDataLifecycleManagerServiceRole.html,
        https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
        """
        stack = Stack.of(self)
        volumes = stack.format_arn(service="ec2", resource="volume", resource_name="*")
        snapshots = stack.format_arn(
            service="ec2",
            account="",
            resource="snapshot",
            resource_name="*",
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )
        tagged = {"StringEquals": {f"aws:ResourceTag/{SNAPSHOT_TAG}": deployment}}
        describe = ["AvailabilityZones", "Instances", "Snapshots", "Volumes"]
        return iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "dlm.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": stack.account}}
            ),
            inline_policies={
                "Snapshots": iam.PolicyDocument(
                    statements=[
                        iam.PolicyStatement(actions=[f"ec2:Describe{each}" for each in describe], resources=["*"]),
                        iam.PolicyStatement(actions=["ec2:CreateSnapshot"], resources=[volumes], conditions=tagged),
                        iam.PolicyStatement(actions=["ec2:CreateSnapshot", "ec2:CreateTags"], resources=[snapshots]),
                        iam.PolicyStatement(actions=["ec2:DeleteSnapshot"], resources=[snapshots], conditions=tagged),
                    ]
                )
            },
        )
