"""What ParallelCluster's login nodes stand behind: Auto Scaling groups and network load balancers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.resources.common import removed_tags, short_name, taken, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties

_BALANCER_NAME_LENGTH = 32
_HEALTH_CHECK = (
    "HealthCheckEnabled",
    "HealthCheckIntervalSeconds",
    "HealthCheckPath",
    "HealthCheckPort",
    "HealthCheckProtocol",
    "HealthCheckTimeoutSeconds",
    "HealthyThresholdCount",
    "UnhealthyThresholdCount",
)
_GROUP = ("DesiredCapacity", "MaxSize", "MinSize")


class AutoScalingGroup(Model):
    """AWS::AutoScaling::AutoScalingGroup, of instances by launch template. Deletion terminates them."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the group; its instances start with it."""
        name = properties.pop("AutoScalingGroupName", context.name)
        tags = [{**tag, "ResourceId": name, "ResourceType": "auto-scaling-group"} for tag in properties.pop("Tags", [])]
        keys = ("HealthCheckGracePeriod", "HealthCheckType", "LifecycleHookSpecificationList", "TargetGroupARNs")
        context.client("autoscaling").create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchTemplate=_latest(properties.pop("LaunchTemplate")),
            VPCZoneIdentifier=",".join(properties.pop("VPCZoneIdentifier")),
            Tags=tags,
            **_sizes(properties),
            **taken(properties, keys),
        )
        return Physical(name)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change sizes and launch template; instances that run keep theirs, as without an update policy."""
        request: dict[str, Any] = {}
        if changed & {*_GROUP}:
            request |= _sizes(properties)
        if "LaunchTemplate" in changed:
            request["LaunchTemplate"] = _latest(properties["LaunchTemplate"])
        if request:
            context.client("autoscaling").update_auto_scaling_group(AutoScalingGroupName=physical.ref, **request)
        changed -= {*_GROUP, "LaunchTemplate"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the group with its instances."""
        with unless_gone("ValidationError"):
            context.client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName=physical.ref, ForceDelete=True)


class LoadBalancer(Model):
    """AWS::ElasticLoadBalancingV2::LoadBalancer."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the load balancer."""
        elbv2 = context.client("elbv2")
        attributes = properties.pop("LoadBalancerAttributes", [])
        keys = ("IpAddressType", "Scheme", "SecurityGroups", "SubnetMappings", "Subnets", "Tags", "Type")
        made = elbv2.create_load_balancer(
            Name=properties.pop("Name", short_name(context, _BALANCER_NAME_LENGTH)), **taken(properties, keys)
        )["LoadBalancers"][0]
        arn = made["LoadBalancerArn"]
        if attributes:
            elbv2.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=attributes)
        return Physical(
            arn,
            {
                "CanonicalHostedZoneID": made["CanonicalHostedZoneId"],
                "DNSName": made["DNSName"],
                "LoadBalancerArn": arn,
                "LoadBalancerFullName": arn.partition(":loadbalancer/")[2],
                "LoadBalancerName": made["LoadBalancerName"],
                "SecurityGroups": made.get("SecurityGroups", []),
            },
        )

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change attributes, security groups, subnets and tags."""
        elbv2 = context.client("elbv2")
        if "LoadBalancerAttributes" in changed:
            attributes = properties.get("LoadBalancerAttributes", [])
            elbv2.modify_load_balancer_attributes(LoadBalancerArn=physical.ref, Attributes=attributes)
        if "SecurityGroups" in changed:
            elbv2.set_security_groups(LoadBalancerArn=physical.ref, SecurityGroups=properties["SecurityGroups"])
        if "Subnets" in changed:
            elbv2.set_subnets(LoadBalancerArn=physical.ref, Subnets=properties["Subnets"])
        changed -= {"LoadBalancerAttributes", "SecurityGroups", "Subnets"}
        _retag(context, physical.ref, properties, changed)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the load balancer."""
        with unless_gone("LoadBalancerNotFound"):
            context.client("elbv2").delete_load_balancer(LoadBalancerArn=physical.ref)


class TargetGroup(Model):
    """AWS::ElasticLoadBalancingV2::TargetGroup."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the target group."""
        keys = (*_HEALTH_CHECK, "Matcher", "Port", "Protocol", "Tags", "TargetType", "VpcId")
        made = context.client("elbv2").create_target_group(
            Name=properties.pop("Name", short_name(context, _BALANCER_NAME_LENGTH)), **taken(properties, keys)
        )["TargetGroups"][0]
        arn = made["TargetGroupArn"]
        return Physical(
            arn,
            {
                "LoadBalancerArns": made.get("LoadBalancerArns", []),
                "TargetGroupArn": arn,
                "TargetGroupFullName": arn.rpartition(":")[2],
                "TargetGroupName": made["TargetGroupName"],
            },
        )

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the health check and the tags."""
        if changed & {*_HEALTH_CHECK}:
            request = taken(properties, _HEALTH_CHECK)
            context.client("elbv2").modify_target_group(TargetGroupArn=physical.ref, **request)
        changed -= {*_HEALTH_CHECK}
        _retag(context, physical.ref, properties, changed)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the target group."""
        with unless_gone("TargetGroupNotFound"):
            context.client("elbv2").delete_target_group(TargetGroupArn=physical.ref)


class Listener(Model):
    """AWS::ElasticLoadBalancingV2::Listener."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the listener."""
        keys = ("Certificates", "DefaultActions", "LoadBalancerArn", "Port", "Protocol", "SslPolicy", "Tags")
        made = context.client("elbv2").create_listener(**taken(properties, keys))["Listeners"][0]["ListenerArn"]
        return Physical(made, {"ListenerArn": made})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change all but the load balancer."""
        _retag(context, physical.ref, properties, changed)
        keys = ("Certificates", "DefaultActions", "Port", "Protocol", "SslPolicy")
        context.client("elbv2").modify_listener(ListenerArn=physical.ref, **taken(properties, keys))
        changed -= {*keys}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the listener."""
        with unless_gone("ListenerNotFound"):
            context.client("elbv2").delete_listener(ListenerArn=physical.ref)


def _latest(template: Mapping[str, Any]) -> dict[str, Any]:
    return {**template, "Version": str(template["Version"])}


def _sizes(properties: Properties) -> dict[str, int]:
    return {key: int(value) for key, value in taken(properties, _GROUP).items()}


def _retag(context: Context, arn: str, properties: Properties, changed: set[str]) -> None:
    if "Tags" not in changed:
        return
    elbv2 = context.client("elbv2")
    if gone := removed_tags(context, properties):
        elbv2.remove_tags(ResourceArns=[arn], TagKeys=gone)
    if properties.get("Tags"):
        elbv2.add_tags(ResourceArns=[arn], Tags=properties["Tags"])
    changed.remove("Tags")


MODELS: Mapping[str, Model] = {
    "AWS::AutoScaling::AutoScalingGroup": AutoScalingGroup(),
    "AWS::ElasticLoadBalancingV2::Listener": Listener(),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": LoadBalancer(),
    "AWS::ElasticLoadBalancingV2::TargetGroup": TargetGroup(),
}
