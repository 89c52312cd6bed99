"""What ParallelCluster's login nodes stand behind: Auto Scaling groups and network load balancers."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.resources.api import Api
from emulator.resources.common import taken, unless_gone
from emulator.resources.compute import template_version
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError
from emulator.resources.tags import as_dictionary

_SIZES = ("DesiredCapacity", "MaxSize", "MinSize")
_HOOKS = "LifecycleHookSpecificationList"


def _group(properties: Properties) -> Properties:
    """Return the parameters of an Auto Scaling group, of instances by launch template."""
    changeable = _changeable(properties)
    zones = ",".join(properties.get("VPCZoneIdentifier", []))
    return {**properties, **changeable, "VPCZoneIdentifier": zones, _HOOKS: _hooks(properties)}


def _create_group(context: Context, request: Properties) -> Properties:
    """Make a group; its instances start with it."""
    of_group = _of_group(request["AutoScalingGroupName"])
    request["Tags"] = [{**tag, **of_group} for tag in request.get("Tags", [])]
    answer = dict(context.client("autoscaling").create_auto_scaling_group(**request))
    _set_hooks(context, request["AutoScalingGroupName"], request)  # moto makes none with the group
    return answer


def _change_group(context: Context, physical: Physical, properties: Properties, changed: set[str]) -> None:
    """Change sizes, launch template and tags; instances that run keep theirs, as without an update policy."""
    request = _changeable(properties)
    if "Tags" in changed:
        client, of_group = context.client("autoscaling"), _of_group(physical.ref)
        old, new = (each.get("Tags", []) for each in (context.previous, properties))
        if gone := sorted(as_dictionary(old).keys() - as_dictionary(new)):
            client.delete_tags(Tags=[{"Key": key, **of_group} for key in gone])
        if new:
            client.create_or_update_tags(Tags=[{**tag, **of_group} for tag in new])
    _set_hooks(context, physical.ref, properties)
    context.client("autoscaling").update_auto_scaling_group(AutoScalingGroupName=physical.ref, **request)


def _set_hooks(context: Context, group: str, properties: Properties) -> None:
    for hook in _hooks(properties):
        context.client("autoscaling").put_lifecycle_hook(AutoScalingGroupName=group, **hook)


def _hooks(properties: Properties) -> list[Properties]:
    """Return lifecycle hooks as the API takes them, with seconds as numbers."""
    seconds = "HeartbeatTimeout"
    return [
        {**each, **({seconds: int(each[seconds])} if seconds in each else {})} for each in properties.get(_HOOKS, [])
    ]


def _delete_group(context: Context, physical: Physical, _: Properties) -> None:
    """Delete a group, which terminates its instances."""
    with unless_gone("ValidationError"):
        context.client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName=physical.ref, ForceDelete=True)


def _of_group(name: str) -> dict[str, str]:
    """Return which resource a tag is of."""
    return {"ResourceId": name, "ResourceType": "auto-scaling-group"}


def _changeable(properties: Properties) -> Properties:
    sizes = {key: int(value) for key, value in taken(properties, _SIZES).items()}
    if "LaunchTemplate" not in properties:
        return sizes
    return {**sizes, "LaunchTemplate": template_version(properties["LaunchTemplate"])}


def _set_attributes(context: Context, balancer: Physical, _: Properties, properties: Properties) -> None:
    if attributes := properties.get("LoadBalancerAttributes"):
        if not all({"Key", "Value"} <= each.keys() for each in attributes):
            raise ResourceError("Each of LoadBalancerAttributes needs a Key and a Value.")
        client = context.client("elbv2")
        client.modify_load_balancer_attributes(LoadBalancerArn=balancer.ref, Attributes=attributes)


MODELS: Mapping[str, Model] = {
    "AWS::AutoScaling::AutoScalingGroup": Api(
        "autoscaling",
        "auto_scaling_group",
        "AutoScalingGroupName",
        name=("AutoScalingGroupName", 64),
        parameters=_group,
        creation=_create_group,
        modification=_change_group,
        deletion=_delete_group,
        tags="",
        mutable=("LaunchTemplate", "Tags", _HOOKS, *_SIZES),
    ),
    "AWS::ElasticLoadBalancingV2::Listener": Api("elbv2", "listener", "ListenerArn", mutable=("Tags",)),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": Api(
        "elbv2",
        "load_balancer",
        "LoadBalancerArn",
        name=("Name", 32),
        later=("LoadBalancerAttributes",),
        configuration=_set_attributes,
        mutable=("Tags",),
    ),
    "AWS::ElasticLoadBalancingV2::TargetGroup": Api(
        "elbv2", "target_group", "TargetGroupArn", name=("Name", 32), mutable=("Tags",)
    ),
}
