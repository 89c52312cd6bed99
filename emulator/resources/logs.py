"""Amazon CloudWatch Logs."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.resources.common import as_dictionary, lowered, removed_tags, taken_tags, undone_on_failure, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties


class LogGroup(Model):
    """AWS::Logs::LogGroup."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the log group."""
        logs = context.client("logs")
        name = properties.pop("LogGroupName", context.name)
        logs.create_log_group(
            logGroupName=name, tags=taken_tags(properties), **lowered(properties, ("KmsKeyId", "LogGroupClass"))
        )
        with undone_on_failure(lambda: logs.delete_log_group(logGroupName=name)):
            if "RetentionInDays" in properties:
                logs.put_retention_policy(logGroupName=name, retentionInDays=properties.pop("RetentionInDays"))
        return Physical(name, {"Arn": f"{_arn(context, name)}:*"})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change retention, key and tags."""
        logs = context.client("logs")
        name = physical.ref
        if "RetentionInDays" in changed:
            if "RetentionInDays" in properties:
                logs.put_retention_policy(logGroupName=name, retentionInDays=properties["RetentionInDays"])
            else:
                logs.delete_retention_policy(logGroupName=name)
        if "KmsKeyId" in changed:
            if "KmsKeyId" in properties:
                logs.associate_kms_key(logGroupName=name, kmsKeyId=properties["KmsKeyId"])
            else:
                logs.disassociate_kms_key(logGroupName=name)
        if "Tags" in changed:
            arn = _arn(context, name)
            if gone := removed_tags(context, properties):
                logs.untag_resource(resourceArn=arn, tagKeys=gone)
            logs.tag_resource(resourceArn=arn, tags=as_dictionary(properties.get("Tags", [])))
        changed -= {"RetentionInDays", "KmsKeyId", "Tags"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the log group."""
        with unless_gone("ResourceNotFoundException"):
            context.client("logs").delete_log_group(logGroupName=physical.ref)


class MetricFilter(Model):
    """AWS::Logs::MetricFilter."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the filter."""
        name = properties.pop("FilterName", context.name)
        self._put(context, name, properties)
        return Physical(name)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Put another filter under the same name."""
        self._put(context, physical.ref, properties)
        changed -= {"FilterPattern", "MetricTransformations"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the filter."""
        with unless_gone("ResourceNotFoundException"):
            context.client("logs").delete_metric_filter(
                logGroupName=properties["LogGroupName"], filterName=physical.ref
            )

    def _put(self, context: Context, name: str, properties: Properties) -> None:
        transformations = [_transformation(each) for each in properties.pop("MetricTransformations")]
        context.client("logs").put_metric_filter(
            filterName=name,
            metricTransformations=transformations,
            **lowered(properties, ("FilterPattern", "LogGroupName")),
        )


def _transformation(properties: Properties) -> Properties:
    if "Dimensions" in properties:
        properties["Dimensions"] = {each["Key"]: each["Value"] for each in properties["Dimensions"]}
    return lowered(properties, list(properties))


def _arn(context: Context, name: str) -> str:
    return f"arn:{context.partition}:logs:{context.region}:{context.account}:log-group:{name}"


MODELS: Mapping[str, Model] = {
    "AWS::Logs::LogGroup": LogGroup(),
    "AWS::Logs::MetricFilter": MetricFilter(),
}
