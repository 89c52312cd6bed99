"""Amazon DynamoDB: tables."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.resources.common import removed_tags, taken, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties


class Table(Model):
    """AWS::DynamoDB::Table."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the table."""
        keys = ("AttributeDefinitions", "BillingMode", "GlobalSecondaryIndexes", "KeySchema", "LocalSecondaryIndexes")
        name = properties.pop("TableName", context.name)
        table = context.client("dynamodb").create_table(
            TableName=name, **taken(properties, (*keys, "ProvisionedThroughput", "Tags"))
        )["TableDescription"]
        return Physical(name, {"Arn": table["TableArn"]})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change billing and tags."""
        dynamodb = context.client("dynamodb")
        if changed & {"BillingMode", "ProvisionedThroughput"}:
            dynamodb.update_table(TableName=physical.ref, **taken(properties, ("BillingMode", "ProvisionedThroughput")))
        if "Tags" in changed:
            arn = physical.attributes["Arn"]
            if gone := removed_tags(context, properties):
                dynamodb.untag_resource(ResourceArn=arn, TagKeys=gone)
            if properties.get("Tags"):
                dynamodb.tag_resource(ResourceArn=arn, Tags=properties["Tags"])
        changed -= {"BillingMode", "ProvisionedThroughput", "Tags"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the table with what is in it."""
        with unless_gone("ResourceNotFoundException"):
            context.client("dynamodb").delete_table(TableName=physical.ref)


MODELS: Mapping[str, Model] = {"AWS::DynamoDB::Table": Table()}
