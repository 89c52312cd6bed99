"""Reasons for what cdk-nag finds, wildcards in policies above all."""

from collections.abc import Iterator, Mapping
from typing import Any

import aws_cdk
from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct


def acknowledge(scope: IConstruct, rule: str, reason: str) -> None:
    """Give the reason for a finding of AwsSolutions, such as ``S1`` or ``IAM5[Resource::*]``, in a construct.

    Versions of the CDK without ``Validations`` have no place for it, nor does cdk-nag 3 work with them.
    """
    if hasattr(aws_cdk, "Validations"):
        reasoned = aws_cdk.Acknowledgment(id=f"AwsSolutions::AwsSolutions-{rule}", reason=reason)
        aws_cdk.Validations.of(scope).acknowledge(reasoned)


def acknowledge_wildcards(scope: Construct, reasons: Mapping[str, str]) -> None:
    """Give the reasons for wildcards in roles' inline policies and in policies below a construct.

    What no reason is given for stays a finding of cdk-nag.

    Args:
        scope: A construct with all of its policies.
        reasons: Reasons by beginnings of cdk-nag's findings, such as ``Action::s3:Get`` or ``Resource::arn:aws:logs:``.
    """
    for construct in scope.node.find_all():
        for finding in dict.fromkeys(_findings(construct)):
            reason = next((text for beginning, text in reasons.items() if finding.startswith(beginning)), None)
            if reason is not None:
                acknowledge(construct, f"IAM5[{finding}]", reason)


def acknowledge_managed_policy(scope: Construct, arn: str, reason: str) -> None:
    """Give the reason for a managed policy of AWS that a role has."""
    acknowledge(scope, f"IAM4[Policy::{_as_cdk_nag_writes(Stack.of(scope).resolve(arn))}]", reason)


def _as_cdk_nag_writes(value: Any) -> str:
    """Return a resolved ARN as cdk-nag 3 has it in the id of a finding."""
    if isinstance(value, str):
        return value.replace("${", "<").replace("}", ">")
    [(function, argument)] = value.items()
    if function == "Fn::Join":
        return "".join(map(_as_cdk_nag_writes, argument[1]))
    if function == "Fn::GetAtt":
        return f"<{'.'.join(argument)}>"
    return f"<{argument}>" if function == "Ref" else _as_cdk_nag_writes(argument)


def _findings(construct: IConstruct) -> Iterator[str]:
    for document in _documents(construct):
        for statement in document["Statement"]:
            yield from (f"Action::{each}" for each in _listed(statement["Action"]) if "*" in each)
            resources = map(_as_cdk_nag_writes, _listed(statement["Resource"]))
            yield from (f"Resource::{each}" for each in resources if "*" in each)


def _documents(construct: IConstruct) -> list[Any]:
    if isinstance(construct, iam.CfnPolicy):
        return [Stack.of(construct).resolve(construct.policy_document)]
    if isinstance(construct, iam.CfnRole):
        return [each["policyDocument"] for each in Stack.of(construct).resolve(construct.policies) or []]
    return []


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
