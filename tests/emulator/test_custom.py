"""Custom resources: what a function is asked, and what its answers do to a stack.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref.html has requests and responses;
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-customresource.html
has ServiceTimeout, and what another physical id does.
"""

import json
from typing import Any

import pytest

from emulator.aws import EmulatedAws
from tests.emulator.account import REGION, Account
from tests.emulator.stacks import Stacks

PROVIDER = """
import json

import cfnresponse


def handler(event, context):
    print("REQUEST " + json.dumps(event))
    properties = event["ResourceProperties"]
    behaviour = properties.get("Behaviour", "succeed") if event["RequestType"] != "Delete" else "succeed"
    name = properties.get("Name", "thing")
    if behaviour == "raise":
        raise RuntimeError("nothing is sent")
    if behaviour == "fail":
        cfnresponse.send(event, context, cfnresponse.FAILED, {}, name, reason="no luck")
    else:
        cfnresponse.send(event, context, cfnresponse.SUCCESS, {"Answer": 42}, name)
"""


class Custom:
    """Stacks with one custom resource."""

    def __init__(self, aws: EmulatedAws) -> None:
        self.stacks = Stacks(aws, REGION)
        self._account = Account(aws)
        self.function = self._account.create(
            "AWS::Lambda::Function",
            Code={"ZipFile": PROVIDER},
            Handler="index.handler",
            Role=self._account.role()["Arn"],
            Runtime="python3.12",
            Timeout=5,
        )

    def create(self, **properties: Any) -> None:
        outputs = {"Id": {"Value": {"Ref": "Thing"}}, "Answer": {"Value": {"Fn::GetAtt": ["Thing", "Answer"]}}}
        self.stacks.create("S", self._resources(properties), template={"Outputs": outputs})

    def update(self, **properties: Any) -> None:
        self.stacks.update("S", self._resources(properties))

    def _resources(self, properties: dict[str, Any]) -> dict[str, Any]:
        token = {"ServiceToken": self.function["Arn"]}
        return {"Thing": {"Type": "Custom::Thing", "Properties": {**token, **properties}}}

    def requests(self) -> list[dict[str, Any]]:
        group = f"/aws/lambda/{self.function.ref}"
        events = self._account.client("logs").filter_log_events(logGroupName=group)["events"]
        lines = [event["message"] for event in events]
        return [json.loads(line.removeprefix("REQUEST ")) for line in lines if line.startswith("REQUEST ")]

    def asked(self) -> list[tuple[str, str | None]]:
        return [(each["RequestType"], each.get("PhysicalResourceId")) for each in self.requests()]

    def reason(self, status: str = "CREATE_FAILED") -> str:
        [reason] = self.stacks.reasons("S", status)
        return reason


@pytest.fixture
def custom(rehearsed_aws: EmulatedAws) -> Custom:
    return Custom(rehearsed_aws)


def test_requests_have_the_documented_fields_and_the_answer_gives_id_and_attributes(custom: Custom) -> None:
    custom.create(Count=3, Flag=True, List=[1, {"a": False}])
    assert (custom.stacks.output("S", "Id"), custom.stacks.output("S", "Answer")) == ("thing", "42")
    custom.update(Count=4, Flag=True, List=[])
    custom.stacks.delete("S")
    create, update, delete = custom.requests()
    old = {"ServiceToken": custom.function["Arn"], "Count": "3", "Flag": "true", "List": ["1", {"a": "false"}]}
    new = {"ServiceToken": custom.function["Arn"], "Count": "4", "Flag": "true", "List": []}
    common = {
        "ServiceToken": custom.function["Arn"],
        "StackId": create["StackId"],
        "LogicalResourceId": "Thing",
        "ResourceType": "Custom::Thing",
    }
    assert f":{REGION}:" in create["StackId"]
    for request in (create, update, delete):
        assert request.pop("ResponseURL").startswith("http://127.0.0.1:")
    assert len({request.pop("RequestId") for request in (create, update, delete)}) == 3
    assert create == {**common, "RequestType": "Create", "ResourceProperties": old}
    assert update == {
        **common,
        "RequestType": "Update",
        "PhysicalResourceId": "thing",
        "ResourceProperties": new,
        "OldResourceProperties": old,
    }
    assert delete == {**common, "RequestType": "Delete", "PhysicalResourceId": "thing", "ResourceProperties": new}


def test_another_id_is_a_replacement_and_the_old_one_is_deleted(custom: Custom) -> None:
    custom.create(Name="one")
    custom.update(Name="two")
    assert custom.stacks.status("S") == "UPDATE_COMPLETE"
    assert custom.stacks.resources("S") == {"Thing": "two"}
    assert custom.asked() == [("Create", None), ("Update", "one"), ("Delete", "one")]


def test_a_failure_is_the_reason_and_what_failed_is_deleted(custom: Custom) -> None:
    custom.create(Behaviour="fail", Name="half")
    assert custom.stacks.status("S") == "ROLLBACK_COMPLETE"
    request_id = custom.requests()[0]["RequestId"]
    assert custom.reason() == (
        f"Received response status [FAILED] from custom resource. Message returned: no luck (RequestId: {request_id})"
    )
    assert custom.asked() == [("Create", None), ("Delete", "half")]


def test_a_function_that_fails_without_a_word_is_not_waited_for(custom: Custom) -> None:
    custom.create(Behaviour="raise")
    assert custom.stacks.status("S") == "ROLLBACK_COMPLETE"
    create, delete = custom.requests()
    assert custom.reason() == (
        "CloudFormation did not receive a response from your Custom Resource. Please check your logs for requestId "
        f"[{create['RequestId']}]. If you are using the Python cfn-response module, you may need to update your "
        "Lambda function code so that CloudFormation can attach the updated version."
    )
    assert delete["PhysicalResourceId"].startswith("S-Thing-")
