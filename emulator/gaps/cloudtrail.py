"""AWS CloudTrail, which the CDK asks why a deployment failed."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from moto.cloudtrail.responses import CloudTrailResponse
from moto.core.responses import ActionResult


class CloudTrail(CloudTrailResponse):
    """CloudTrail that knows of no event yet: it delivers about five minutes after a call.

    https://docs.aws.amazon.com/awscloudtrail/latest/userguide/how-cloudtrail-works.html
    """

    def lookup_events(self) -> ActionResult:
        return ActionResult({"Events": []})
