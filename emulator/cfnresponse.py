"""What CloudFormation puts beside the inline Python code of a function: how to answer a custom resource's request.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cfn-lambda-function-code-cfnresponsemodule.html
"""

from __future__ import annotations

import json
import urllib.request
from typing import Any

SUCCESS = "SUCCESS"
FAILED = "FAILED"


def send(  # noqa: PLR0917 - the signature is AWS's
    event: dict[str, Any],
    context: Any,
    responseStatus: str,
    responseData: dict[str, Any],
    physicalResourceId: str | None = None,
    noEcho: bool = False,
    reason: str | None = None,
) -> None:
    """Send the response to the URL that the request names."""
    response = {
        "Status": responseStatus,
        "Reason": reason or f"See the details in CloudWatch Log Stream: {context.log_stream_name}",
        "PhysicalResourceId": physicalResourceId or context.log_stream_name,
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "NoEcho": noEcho,
        "Data": responseData,
    }
    print("Response body:", json.dumps(response))
    request = urllib.request.Request(event["ResponseURL"], json.dumps(response).encode(), method="PUT")  # noqa: S310
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        print("Status code:", answer.status)
