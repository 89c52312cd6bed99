"""Wait conditions, and the letters that they wait for.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-waitcondition.html has what a signal is. The
words of failures are those that people report: github.com/aws-samples/vpn-gateway-strongswan/issues/28,
github.com/aws-samples/sample-OpenClaw-on-AWS-with-Bedrock/issues/70, and
github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/2088.
"""

import json
import threading
import time
import urllib.request
from typing import Any

import pytest

from emulator.aws import ACCOUNT, EmulatedAws
from tests.emulator.account import REGION
from tests.emulator.stacks import Stacks, parameter

HANDLE = {"Type": "AWS::CloudFormation::WaitConditionHandle"}


def condition(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::CloudFormation::WaitCondition", "Properties": {"Handle": {"Ref": "Handle"}, **properties}}


def put(url: str, body: Any) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, method="PUT")  # noqa: S310 - the emulated AWS
    urllib.request.urlopen(request).close()  # noqa: S310


def signal(number: int = 1, status: str = "SUCCESS", **members: str) -> dict[str, str]:
    return {"Status": status, "UniqueId": f"i-{number}", "Reason": "it said", "Data": "some", **members}


class Waiting:
    """A stack that waits, and whoever signals to it."""

    def __init__(self, aws: EmulatedAws) -> None:
        self.stacks = Stacks(aws, REGION)

    def create(self, *signals: Any, **properties: Any) -> None:
        # The handle's URL can be read elsewhere once a parameter has it, which comes before what waits.
        resources = {
            "Handle": HANDLE,
            "Url": parameter({"Ref": "Handle"}, Name="/url"),
            "Wait": condition(**properties),
        }
        outputs = {"Data": {"Value": {"Fn::GetAtt": ["Wait", "Data"]}}, "Ref": {"Value": {"Ref": "Wait"}}}
        creation = threading.Thread(
            target=self.stacks.create, args=("S", resources), kwargs={"template": {"Outputs": outputs}}
        )
        creation.start()
        url = self.url()
        for each in signals:
            put(url, each)
        creation.join()

    def url(self) -> str:
        while "/url" not in (values := self.stacks.values()):
            time.sleep(0.05)
        return values["/url"]

    def failure(self) -> str:
        [reason] = self.stacks.reasons("S", "CREATE_FAILED")
        return reason


@pytest.fixture
def waiting(rehearsed_aws: EmulatedAws) -> Waiting:
    return Waiting(rehearsed_aws)


def test_enough_successes_end_the_wait(waiting: Waiting) -> None:
    waiting.create(signal(1), signal(1, Data="again"), signal(2), Count=2, Timeout=20)
    assert waiting.stacks.status("S") == "CREATE_COMPLETE"
    assert json.loads(waiting.stacks.output("S", "Data")) == {"i-1": "again", "i-2": "some"}
    # LocalStack's test_waitcondition recorded that Ref names the handle.
    assert waiting.stacks.output("S", "Ref") == f"{waiting.stacks.describe('S')['StackId']}/Handle"


@pytest.mark.parametrize(
    ("signals", "reason"),
    [
        ([signal(1)], "WaitCondition timed out. Received 1 conditions when expecting 2"),
        ([signal(1), signal(2, "FAILURE")], "WaitCondition received failed message: 'it said' for uniqueId: i-2"),
        ([b"no JSON"], "Unparsable WaitCondition data"),
        ([signal(1, "MAYBE")], "Unparsable WaitCondition data"),
    ],
)
def test_anything_else_fails_the_stack(waiting: Waiting, signals: list[Any], reason: str) -> None:
    waiting.create(*signals, Count=2, Timeout=1)
    assert waiting.failure() == reason
    assert waiting.stacks.status("S") == "ROLLBACK_COMPLETE"


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({}, "Property Handle cannot be empty."),
        ({"Handle": "https://somewhere"}, "WaitConditionHandle https://somewhere does not exist"),
        ({"Handle": {"Ref": "Handle"}, "Timeout": "long"}, "Value of property Timeout must be a number of seconds"),
    ],
)
def test_a_condition_that_cannot_wait_fails_the_stack(
    waiting: Waiting, properties: dict[str, Any], reason: str
) -> None:
    wait = {"Type": "AWS::CloudFormation::WaitCondition", "Properties": properties}
    waiting.stacks.create("S", {"Handle": HANDLE, "Wait": wait})
    assert waiting.failure().startswith(reason)


def test_all_that_does_not_wait_goes_on(waiting: Waiting) -> None:
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
        "Action": "kms:*",
        "Resource": "*",
    }
    slow = {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": {"Version": "2012-10-17", "Statement": [statement]}}}
    resources = {"Handle": HANDLE, "Wait": condition(Timeout=1), "Slow": slow}
    waiting.stacks.create("S", resources)
    events = [(logical_id, status) for logical_id, status, _ in waiting.stacks.events("S")]
    assert events.index(("Slow", "CREATE_COMPLETE")) < events.index(("Wait", "CREATE_FAILED"))
