"""Amazon Route 53: hosted zones and records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from emulator.resources.common import taken, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties

_RECORD = ("AliasTarget", "Failover", "Name", "Region", "SetIdentifier", "Type", "Weight")


class HostedZone(Model):
    """AWS::Route53::HostedZone. A zone with VPCs is private."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the zone."""
        route53 = context.client("route53")
        config = properties.pop("HostedZoneConfig", {})
        vpcs = [_vpc(vpc) for vpc in properties.pop("VPCs", [])]
        request: dict[str, Any] = {"HostedZoneConfig": {**config, "PrivateZone": bool(vpcs)}}
        if vpcs:
            request["VPC"] = vpcs[0]
        made = route53.create_hosted_zone(Name=properties.pop("Name"), CallerReference=str(uuid4()), **request)
        zone_id = made["HostedZone"]["Id"].rpartition("/")[2]
        for vpc in vpcs[1:]:
            route53.associate_vpc_with_hosted_zone(HostedZoneId=zone_id, VPC=vpc)
        if tags := properties.pop("HostedZoneTags", []):
            route53.change_tags_for_resource(ResourceType="hostedzone", ResourceId=zone_id, AddTags=tags)
        return Physical(zone_id, {"Id": zone_id, "NameServers": made.get("DelegationSet", {}).get("NameServers", [])})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the comment, the VPCs and the tags."""
        route53 = context.client("route53")
        if "HostedZoneConfig" in changed:
            comment = properties.get("HostedZoneConfig", {}).get("Comment", "")
            route53.update_hosted_zone_comment(Id=physical.ref, Comment=comment)
        if "VPCs" in changed:
            before, after = ([_vpc(vpc) for vpc in each.get("VPCs", [])] for each in (context.previous, properties))
            for vpc in after:
                if vpc not in before:
                    route53.associate_vpc_with_hosted_zone(HostedZoneId=physical.ref, VPC=vpc)
            for vpc in before:
                if vpc not in after:
                    route53.disassociate_vpc_from_hosted_zone(HostedZoneId=physical.ref, VPC=vpc)
        if "HostedZoneTags" in changed:
            tags = properties.get("HostedZoneTags", [])
            kept = {tag["Key"] for tag in tags}
            gone = [tag["Key"] for tag in context.previous.get("HostedZoneTags", []) if tag["Key"] not in kept]
            request = {"AddTags": tags, "RemoveTagKeys": gone}
            route53.change_tags_for_resource(
                ResourceType="hostedzone",
                ResourceId=physical.ref,
                **{key: value for key, value in request.items() if value},
            )
        changed -= {"HostedZoneConfig", "VPCs", "HostedZoneTags"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the zone, which may have no records of its own any more."""
        with unless_gone("NoSuchHostedZone"):
            context.client("route53").delete_hosted_zone(Id=physical.ref)


class RecordSet(Model):
    """AWS::Route53::RecordSet. Ref gives the domain name."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the record."""
        self._change(context, "CREATE", properties)
        return Physical(properties.pop("Name"))

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the record."""
        self._change(context, "UPSERT", properties)
        changed -= {"AliasTarget", "Comment", "Failover", "Region", "ResourceRecords", "TTL", "Type", "Weight"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the record."""
        with unless_gone("NoSuchHostedZone", "InvalidChangeBatch"):
            self._change(context, "DELETE", properties)

    def _change(self, context: Context, action: str, properties: Properties) -> None:
        zone_id, name = properties.pop("HostedZoneId"), properties["Name"]
        properties.pop("Comment", None)
        record = taken(properties, _RECORD)
        if "ResourceRecords" in properties:
            record["ResourceRecords"] = [{"Value": value} for value in properties.pop("ResourceRecords")]
            record["TTL"] = int(properties.pop("TTL"))
        context.client("route53").change_resource_record_sets(
            HostedZoneId=zone_id, ChangeBatch={"Changes": [{"Action": action, "ResourceRecordSet": record}]}
        )
        properties["Name"] = name


def _vpc(properties: Mapping[str, str]) -> dict[str, str]:
    return {"VPCId": properties["VPCId"], "VPCRegion": properties["VPCRegion"]}


MODELS: Mapping[str, Model] = {"AWS::Route53::HostedZone": HostedZone(), "AWS::Route53::RecordSet": RecordSet()}
