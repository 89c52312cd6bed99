"""Services of which templates have a type or two: Budgets, Data Lifecycle Manager, DynamoDB, ECR, Route 53, SSM."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from emulator.resources.common import (
    as_dictionary,
    as_list,
    removed_tags,
    retag,
    taken,
    undone_on_failure,
    unless_gone,
    without,
)
from emulator.resources.model import Context, Model, Physical, Properties


class Budget(Model):
    """AWS::Budgets::Budget."""

    mutable = ("Budget",)
    properties = ("NotificationsWithSubscribers", *mutable)

    def create(self, context: Context, properties: Properties) -> Physical:
        name = properties["Budget"].get("BudgetName", context.name)
        notifications = properties.get("NotificationsWithSubscribers", [])
        context.client("budgets").create_budget(
            AccountId=context.account, Budget=_budget(properties, name), NotificationsWithSubscribers=notifications
        )
        return Physical(name)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        budget = _budget(properties, physical.ref)
        context.client("budgets").update_budget(AccountId=context.account, NewBudget=budget)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("budgets").delete_budget(AccountId=context.account, BudgetName=physical.ref)


def _budget(properties: Properties, name: str) -> dict[str, Any]:
    """Return a budget as the API takes it, with amounts as text."""
    budget = {**properties["Budget"], "BudgetName": name}
    if "BudgetLimit" in budget:
        budget["BudgetLimit"] = {**budget["BudgetLimit"], "Amount": str(budget["BudgetLimit"]["Amount"])}
    return budget


class LifecyclePolicy(Model):
    """AWS::DLM::LifecyclePolicy, a custom one."""

    _UPDATABLE = ("Description", "ExecutionRoleArn", "PolicyDetails", "State")
    properties = mutable = ("Tags", *_UPDATABLE)

    def create(self, context: Context, properties: Properties) -> Physical:
        tags = as_dictionary(properties.get("Tags", []))
        return Physical(context.client("dlm").create_lifecycle_policy(**{**properties, "Tags": tags})["PolicyId"])

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        retag(context, "dlm", context.arn("dlm", f"policy/{physical.ref}"), properties, changed)
        request = taken(properties, changed.intersection(self._UPDATABLE))
        context.client("dlm").update_lifecycle_policy(PolicyId=physical.ref, **request)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("dlm").delete_lifecycle_policy(PolicyId=physical.ref)


class Table(Model):
    """AWS::DynamoDB::Table."""

    def create(self, context: Context, properties: Properties) -> Physical:
        made = context.client("dynamodb").create_table(**{"TableName": context.name, **properties})
        return Physical(made["TableDescription"]["TableName"])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("dynamodb").delete_table(TableName=physical.ref)


class Repository(Model):
    """AWS::ECR::Repository."""

    properties = ("ImageTagMutability", "LifecyclePolicy", "RepositoryName", "RepositoryPolicyText", "Tags")

    def create(self, context: Context, properties: Properties) -> Physical:
        ecr = context.client("ecr")
        name = properties.get("RepositoryName", context.name.lower())
        repository = ecr.create_repository(
            repositoryName=name,
            imageTagMutability=properties.get("ImageTagMutability", "MUTABLE"),
            tags=properties.get("Tags", []),
        )["repository"]
        with undone_on_failure(lambda: ecr.delete_repository(repositoryName=name)):
            if "LifecyclePolicy" in properties:
                policy = properties["LifecyclePolicy"]["LifecyclePolicyText"]
                ecr.put_lifecycle_policy(repositoryName=name, lifecyclePolicyText=policy)
            if "RepositoryPolicyText" in properties:
                policy = json.dumps(properties["RepositoryPolicyText"])
                ecr.set_repository_policy(repositoryName=name, policyText=policy)
        return Physical(name, {"Arn": repository["repositoryArn"]})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the repository; ECR refuses one with images."""
        context.client("ecr").delete_repository(repositoryName=physical.ref)


class HostedZone(Model):
    """AWS::Route53::HostedZone, private in one VPC."""

    properties = ("HostedZoneTags", "Name", "VPCs")

    def create(self, context: Context, properties: Properties) -> Physical:
        route53 = context.client("route53")
        [vpc] = properties["VPCs"]
        made = route53.create_hosted_zone(
            Name=properties["Name"], CallerReference=str(uuid4()), HostedZoneConfig={"PrivateZone": True}, VPC=vpc
        )
        zone_id = made["HostedZone"]["Id"].rpartition("/")[2]
        if tags := properties.get("HostedZoneTags"):
            route53.change_tags_for_resource(ResourceType="hostedzone", ResourceId=zone_id, AddTags=tags)
        return Physical(zone_id)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the zone, which may have no records of its own any more."""
        context.client("route53").delete_hosted_zone(Id=physical.ref)


class Document(Model):
    """AWS::SSM::Document, whose content changes in place where UpdateMethod is NewVersion."""

    mutable = ("Content", "Tags", "UpdateMethod")
    properties = ("DocumentFormat", "DocumentType", "Name", "TargetType", *mutable)

    def create(self, context: Context, properties: Properties) -> Physical:
        request = {"Name": context.name, "DocumentType": "Command", **without(properties, "UpdateMethod")}
        context.client("ssm").create_document(**{**request, "Content": _text(properties["Content"])})
        return Physical(request["Name"])

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        ssm = context.client("ssm")
        if "Content" in changed:
            request = {**taken(properties, ("DocumentFormat",)), "Content": _text(properties["Content"])}
            made = ssm.update_document(Name=physical.ref, DocumentVersion="$LATEST", **request)
            version = made["DocumentDescription"]["DocumentVersion"]
            ssm.update_document_default_version(Name=physical.ref, DocumentVersion=version)
        if "Tags" in changed:
            what = {"ResourceType": "Document", "ResourceId": physical.ref}
            if gone := removed_tags(context, properties):
                ssm.remove_tags_from_resource(**what, TagKeys=gone)
            if properties.get("Tags"):
                ssm.add_tags_to_resource(**what, Tags=properties["Tags"])
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        with unless_gone("InvalidDocument"):
            context.client("ssm").delete_document(Name=physical.ref)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content)


class Parameter(Model):
    """AWS::SSM::Parameter of type String or StringList; unlike elsewhere, its tags are a dictionary."""

    _UPDATABLE = ("AllowedPattern", "Description", "Tier", "Type", "Value")
    mutable = ("Tags", *_UPDATABLE)
    properties = ("Name", *mutable)

    def create(self, context: Context, properties: Properties) -> Physical:
        request = {"Name": context.name, **properties, "Tags": as_list(properties.get("Tags", {}))}
        context.client("ssm").put_parameter(**request)
        return _parameter(request["Name"], properties)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        ssm = context.client("ssm")
        if changed.intersection(self._UPDATABLE):
            ssm.put_parameter(Name=physical.ref, Overwrite=True, **taken(properties, self._UPDATABLE))
        tags, old_tags = properties.get("Tags", {}), context.previous.get("Tags", {})
        what = {"ResourceType": "Parameter", "ResourceId": physical.ref}
        if gone := sorted(old_tags.keys() - tags.keys()):
            ssm.remove_tags_from_resource(**what, TagKeys=gone)
        if tags:
            ssm.add_tags_to_resource(**what, Tags=as_list(tags))
        return _parameter(physical.ref, properties)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("ssm").delete_parameter(Name=physical.ref)


def _parameter(name: str, properties: Properties) -> Physical:
    return Physical(name, {"Type": properties["Type"], "Value": properties["Value"]})


MODELS: Mapping[str, Model] = {
    "AWS::Budgets::Budget": Budget(),
    "AWS::DLM::LifecyclePolicy": LifecyclePolicy(),
    "AWS::DynamoDB::Table": Table(),
    "AWS::ECR::Repository": Repository(),
    "AWS::Route53::HostedZone": HostedZone(),
    "AWS::SSM::Document": Document(),
    "AWS::SSM::Parameter": Parameter(),
}
