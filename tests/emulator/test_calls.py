"""The calls of programs are counted by the server, whatever the protocol."""

from __future__ import annotations

from typing import Any

import boto3

from emulator.aws import EmulatedAws


def test_the_emulators_own_calls_are_left_out(aws: EmulatedAws) -> None:
    aws.calls()
    session = boto3.Session("operator", "secret", region_name="us-west-2")

    def client(service: str) -> Any:
        return session.client(service, endpoint_url=aws.endpoint)

    aws.client("s3", "us-east-1").create_bucket(Bucket="bucket")
    client("ec2").describe_instances()
    client("cloudwatch").list_metrics()
    client("logs").describe_log_groups()
    client("route53").list_hosted_zones()
    client("resourcegroupstaggingapi").get_resources()
    client("s3").list_objects_v2(Bucket="bucket")
    client("lambda").list_functions()
    client("cloudformation").describe_stacks()
    client("sts").get_caller_identity()
    assert aws.calls() == [
        "ec2:DescribeInstances",
        "cloudwatch:ListMetrics",
        "logs:DescribeLogGroups",
        "route53:ListHostedZones",
        "resourcegroupstaggingapi:GetResources",
        "s3:ListObjectsV2",
        "lambda:ListFunctions",
        "cloudformation:DescribeStacks",
        "sts:GetCallerIdentity",
    ]
    assert aws.calls() == []
