"""What ParallelCluster's login nodes stand behind: Auto Scaling groups and network load balancers."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

from collections.abc import Mapping

from emulator.resources.common import short_name, taken, unless_gone, without
from emulator.resources.compute import template_version
from emulator.resources.model import Context, Model, Physical, Properties

_BALANCER_NAME_LENGTH = 32
_SIZES = ("DesiredCapacity", "MaxSize", "MinSize")


class AutoScalingGroup(Model):
    """AWS::AutoScaling::AutoScalingGroup, of instances by launch template. Deletion terminates them."""

    mutable = ("LaunchTemplate", *_SIZES)

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the group; its instances start with it."""
        name = properties.get("AutoScalingGroupName", context.name)
        tags = [{**tag, "ResourceId": name, "ResourceType": "auto-scaling-group"} for tag in properties.get("Tags", [])]
        request = {
            **properties,
            **_changeable(properties),
            "AutoScalingGroupName": name,
            "VPCZoneIdentifier": ",".join(properties["VPCZoneIdentifier"]),
            "Tags": tags,
        }
        context.client("autoscaling").create_auto_scaling_group(**request)
        return Physical(name)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change sizes and launch template; instances that run keep theirs, as without an update policy."""
        request = _changeable(properties)
        context.client("autoscaling").update_auto_scaling_group(AutoScalingGroupName=physical.ref, **request)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        with unless_gone("ValidationError"):
            context.client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName=physical.ref, ForceDelete=True)


class LoadBalancer(Model):
    """AWS::ElasticLoadBalancingV2::LoadBalancer."""

    def create(self, context: Context, properties: Properties) -> Physical:
        elbv2 = context.client("elbv2")
        request = {"Name": short_name(context, _BALANCER_NAME_LENGTH), **without(properties, "LoadBalancerAttributes")}
        arn = elbv2.create_load_balancer(**request)["LoadBalancers"][0]["LoadBalancerArn"]
        if attributes := properties.get("LoadBalancerAttributes"):
            elbv2.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=attributes)
        return Physical(arn)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("elbv2").delete_load_balancer(LoadBalancerArn=physical.ref)


class TargetGroup(Model):
    """AWS::ElasticLoadBalancingV2::TargetGroup."""

    def create(self, context: Context, properties: Properties) -> Physical:
        request = {"Name": short_name(context, _BALANCER_NAME_LENGTH), **properties}
        return Physical(context.client("elbv2").create_target_group(**request)["TargetGroups"][0]["TargetGroupArn"])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("elbv2").delete_target_group(TargetGroupArn=physical.ref)


class Listener(Model):
    """AWS::ElasticLoadBalancingV2::Listener."""

    def create(self, context: Context, properties: Properties) -> Physical:
        return Physical(context.client("elbv2").create_listener(**properties)["Listeners"][0]["ListenerArn"])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("elbv2").delete_listener(ListenerArn=physical.ref)


def _changeable(properties: Properties) -> Properties:
    sizes = {key: int(value) for key, value in taken(properties, _SIZES).items()}
    return {**sizes, "LaunchTemplate": template_version(properties["LaunchTemplate"])}


MODELS: Mapping[str, Model] = {
    "AWS::AutoScaling::AutoScalingGroup": AutoScalingGroup(),
    "AWS::ElasticLoadBalancingV2::Listener": Listener(),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": LoadBalancer(),
    "AWS::ElasticLoadBalancingV2::TargetGroup": TargetGroup(),
}
