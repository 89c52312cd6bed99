"""Services of which templates have a type or two: Budgets, Data Lifecycle Manager, DynamoDB, ECR, Route 53, SSM."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from emulator.resources.api import Api
from emulator.resources.common import lowered, taken, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties
from emulator.resources.tags import as_dictionary


def _create_budget(context: Context, request: Properties) -> Properties:
    budget = _budget(request["Budget"], context.name)
    context.client("budgets").create_budget(**{**request, "AccountId": context.account, "Budget": budget})
    return budget


def _change_budget(context: Context, physical: Physical, properties: Properties, _: set[str]) -> None:
    budget = {**_budget(properties["Budget"], physical.ref), "BudgetName": physical.ref}
    context.client("budgets").update_budget(AccountId=context.account, NewBudget=budget)


def _delete_budget(context: Context, budget: Physical, _: Properties) -> None:
    context.client("budgets").delete_budget(AccountId=context.account, BudgetName=budget.ref)


def _budget(properties: Properties, name: str) -> Properties:
    """Return a budget as the API takes it, with amounts as text."""
    budget = {"BudgetName": name, **properties}
    if "BudgetLimit" in budget:
        budget["BudgetLimit"] = {**budget["BudgetLimit"], "Amount": str(budget["BudgetLimit"]["Amount"])}
    return budget


def _repository(properties: Properties) -> Properties:
    """Return the parameters of a repository, whose names start with a small letter, however deep."""
    return {key: lowered(each) if isinstance(each, dict) else each for key, each in lowered(properties).items()}


def _set_repository_policies(context: Context, repository: Physical, _: Properties, properties: Properties) -> None:
    ecr, name = context.client("ecr"), repository.ref
    if policy := properties.get("LifecyclePolicy", {}).get("LifecyclePolicyText"):
        ecr.put_lifecycle_policy(repositoryName=name, lifecyclePolicyText=policy)
    if "RepositoryPolicyText" in properties:
        policy = json.dumps(properties["RepositoryPolicyText"])
        ecr.set_repository_policy(repositoryName=name, policyText=policy)


def _create_zone(context: Context, request: Properties) -> Properties:
    """Make a hosted zone that is private in one VPC."""
    [vpc] = request["VPCs"]
    made = context.client("route53").create_hosted_zone(
        Name=request["Name"], CallerReference=str(uuid4()), HostedZoneConfig={"PrivateZone": True}, VPC=vpc
    )
    return {"Id": made["HostedZone"]["Id"].rpartition("/")[2]}


def _tag_zone(context: Context, zone: Physical, old: Properties, properties: Properties) -> None:
    before, after = (each.get("HostedZoneTags", []) for each in (old, properties))
    gone = sorted(as_dictionary(before).keys() - as_dictionary(after))
    request = {**({"AddTags": after} if after else {}), **({"RemoveTagKeys": gone} if gone else {})}
    if request:
        route53 = context.client("route53")
        route53.change_tags_for_resource(ResourceType="hostedzone", ResourceId=zone.ref, **request)


def _table(properties: Properties) -> Properties:
    """Return the parameters of a table: a template's stream is one that is switched on."""
    if "StreamSpecification" not in properties:
        return properties
    return {**properties, "StreamSpecification": {"StreamEnabled": True, **properties["StreamSpecification"]}}


def _document(properties: Properties) -> Properties:
    """Return the parameters of a document, whose content is text."""
    content = properties["Content"]
    text = content if isinstance(content, str) else json.dumps(content)
    return {"DocumentType": "Command", **properties, "Content": text}


def _change_document(context: Context, document: Physical, properties: Properties, changed: set[str]) -> None:
    ssm = context.client("ssm")
    if "Content" in changed:
        request = taken(_document(properties), ("Content", "DocumentFormat"))
        made = ssm.update_document(Name=document.ref, DocumentVersion="$LATEST", **request)
        version = made["DocumentDescription"]["DocumentVersion"]
        ssm.update_document_default_version(Name=document.ref, DocumentVersion=version)


def _delete_document(context: Context, document: Physical, _: Properties) -> None:
    with unless_gone("InvalidDocument"):
        context.client("ssm").delete_document(Name=document.ref)


def _change_parameter(context: Context, parameter: Physical, properties: Properties, changed: set[str]) -> Any:
    if changed - {"Tags"}:
        request = taken(properties, _PARAMETER)
        context.client("ssm").put_parameter(Name=parameter.ref, Overwrite=True, **request)
    return taken(properties, ("Type", "Value"))


_PARAMETER = ("AllowedPattern", "Description", "Tier", "Type", "Value")

MODELS: Mapping[str, Model] = {
    "AWS::Budgets::Budget": Api(
        "budgets",
        "budget",
        "BudgetName",
        creation=_create_budget,
        modification=_change_budget,
        deletion=_delete_budget,
        properties=("Budget", "NotificationsWithSubscribers"),
        mutable=("Budget",),
    ),
    "AWS::DLM::LifecyclePolicy": Api(
        "dlm",
        "lifecycle_policy",
        "PolicyId",
        modification="update_lifecycle_policy",
        tagged=lambda context, policy: context.arn("dlm", f"policy/{policy.ref}"),
        mutable=("Description", "ExecutionRoleArn", "PolicyDetails", "State", "Tags"),
    ),
    "AWS::DynamoDB::Table": Api(
        "dynamodb",
        "table",
        "TableName",
        {"Arn": "TableArn", "StreamArn": "LatestStreamArn"},
        name=("TableName", 64),
        parameters=_table,
        tagged=lambda context, table: context.arn("dynamodb", f"table/{table.ref}"),
        mutable=("Tags",),
    ),
    "AWS::ECR::Repository": Api(
        "ecr",
        "repository",
        "repositoryName",
        {"Arn": "repositoryArn"},
        name=("RepositoryName", 64),
        parameters=_repository,
        later=("LifecyclePolicy", "RepositoryPolicyText"),
        configuration=_set_repository_policies,
        tagged="Arn",
        mutable=("Tags",),
    ),
    "AWS::Route53::HostedZone": Api(
        "route53",
        "hosted_zone",
        "Id",
        creation=_create_zone,
        configuration=_tag_zone,
        properties=("HostedZoneTags", "Name", "VPCs"),
        mutable=("HostedZoneTags",),
    ),
    "AWS::SSM::Document": Api(  # its content changes in place where UpdateMethod is NewVersion
        "ssm",
        "document",
        "Name",
        name=("Name", 64),
        parameters=_document,
        later=("UpdateMethod",),
        modification=_change_document,
        deletion=_delete_document,
        tag_type="Document",
        mutable=("Content", "Tags", "UpdateMethod"),
    ),
    "AWS::SSM::Parameter": Api(  # of type String or StringList; unlike elsewhere, its tags are a dictionary
        "ssm",
        "parameter",
        "Name",
        {"Type": "Type", "Value": "Value"},
        name=("Name", 64),
        creation="put_parameter",
        modification=_change_parameter,
        tag_type="Parameter",
        mutable=("Tags", *_PARAMETER),
    ),
}
