"""A user with the permissions of one policy: what passes, and how each service refuses the rest."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError

import boto3
import pytest
from botocore.exceptions import ClientError

from emulator.aws import ACCOUNT, EmulatedAws, of_session
from emulator.resources import make_bucket
from tests.emulator.stacks import REGION

BUCKET = "a-bucket"
DOCUMENTS, INSTANCES = "arn:aws:ssm:*::document/AWS-*", "arn:aws:ec2:*:*:instance/*"


def policy(*actions: str, resource: str = "*", effect: str = "Allow") -> dict[str, Any]:
    statements = [{"Effect": effect, "Action": list(actions), "Resource": resource}]
    if effect == "Deny":
        statements.append({"Effect": "Allow", "Action": ["*"], "Resource": "*"})
    return {"Version": "2012-10-17", "Statement": statements}


def client(environment: dict[str, str], service: str) -> Any:
    session = boto3.Session(environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"])
    return session.client(service, REGION, endpoint_url=environment["AWS_ENDPOINT_URL"])


@dataclass(frozen=True)
class Call:
    """A call, the permission that it needs, and the code of its refusal."""

    service: str
    operation: str
    action: str
    code: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def make(self, environment: dict[str, str]) -> str:
        """Return the code of its refusal; none: it is allowed."""
        try:
            getattr(client(environment, self.service), self.operation)(**self.parameters)
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return ""


CALLS = (
    Call("ec2", "describe_vpcs", "ec2:DescribeVpcs", "UnauthorizedOperation"),
    Call("ssm", "describe_parameters", "ssm:DescribeParameters", "AccessDeniedException"),
    Call("cloudwatch", "describe_alarms", "cloudwatch:DescribeAlarms", "AccessDeniedException"),
    Call("resourcegroupstaggingapi", "get_resources", "tag:GetResources", "AccessDeniedException"),
    Call("lambda", "list_functions", "lambda:ListFunctions", "AccessDeniedException"),
    Call("route53", "list_hosted_zones", "route53:ListHostedZones", "AccessDenied"),
    Call("sns", "list_topics", "sns:ListTopics", "AccessDenied"),
    Call("s3", "list_objects_v2", "s3:ListBucket", "AccessDenied", {"Bucket": BUCKET}),
    # Their answers have no body, and so no code.
    Call("s3", "head_bucket", "s3:ListBucket", "403", {"Bucket": BUCKET}),
    Call("s3", "head_object", "s3:GetObject", "403", {"Bucket": BUCKET, "Key": "k"}),
)


@pytest.fixture
def bucket(aws: EmulatedAws) -> None:
    s3 = aws.client("s3", REGION)
    make_bucket(s3, BUCKET, REGION)
    s3.put_object(Bucket=BUCKET, Key="k")


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.operation)
def test_a_permission_is_needed_and_enough(aws: EmulatedAws, call: Call) -> None:
    with aws.restricted(policy(call.action)) as environment:
        assert call.make(environment) == ""
    with aws.restricted(policy(call.action, effect="Deny")) as environment:
        assert call.make(environment) == call.code


@pytest.mark.usefixtures("bucket")
def test_a_known_resource_is_itself(aws: EmulatedAws) -> None:
    for key, code in (("other", "403"), ("k", "")):
        with aws.restricted(policy("s3:GetObject", resource=f"arn:aws:s3:::{BUCKET}/{key}")) as environment:
            assert Call("s3", "head_object", "", "", {"Bucket": BUCKET, "Key": "k"}).make(environment) == code


def test_the_owner_of_the_account_is_not_judged(aws: EmulatedAws) -> None:
    """CloudFormation has the owner's rights, so that somebody who is judged can deploy."""
    with aws.restricted(policy("iam:ListRoles")) as environment:
        aws.client("ec2", REGION).describe_vpcs()
        assert Call("ec2", "describe_vpcs", "", "").make(environment) == "UnauthorizedOperation"
    assert Call("ec2", "describe_vpcs", "", "").make(environment) == ""
    with aws.judged():
        with aws.restricted(policy("iam:ListRoles")) as environment:
            pass
        assert Call("ec2", "describe_vpcs", "", "").make(environment) == "UnauthorizedOperation"


def refusal(environment: dict[str, str], service: str, operation: str) -> str:
    """Return the words with which a session of a role is refused; none: it is allowed."""
    token = environment["AWS_SESSION_TOKEN"]
    own = boto3.Session(environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], token)
    try:
        getattr(own.client(service, REGION, endpoint_url=environment["AWS_ENDPOINT_URL"]), operation)()
    except ClientError as error:
        return str(error.response["Error"]["Message"])
    return ""


OUTSIDE, DENIED = (
    "because no permissions boundary allows the {} action",
    "with an explicit deny in a permissions boundary",
)


@pytest.mark.parametrize(
    ("service", "operation", "action"),
    [("ec2", "describe_vpcs", "ec2:DescribeVpcs"), ("ssm", "describe_parameters", "ssm:DescribeParameters"),
     ("sns", "list_topics", "sns:ListTopics"), ("s3", "list_buckets", "s3:ListAllMyBuckets")],
)  # fmt: skip
def test_a_role_may_do_what_both_its_policies_and_its_boundary_allow(
    aws: EmulatedAws, service: str, operation: str, action: str
) -> None:
    iam = aws.client("iam", REGION)
    words = {"": policy(action), OUTSIDE.format(action): policy("sqs:*"), DENIED: policy(action, effect="Deny")}
    for number, (reason, boundary) in enumerate(words.items()):
        name, document = f"bounded{number}", json.dumps(boundary)
        arn = iam.create_policy(PolicyName=name, PolicyDocument=document)["Policy"]["Arn"]
        role = iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}", PermissionsBoundary=arn)["Role"]["Arn"]
        with aws.in_role(role) as environment:
            assert refusal(environment, service, operation), "it has no policies"
        iam.put_role_policy(RoleName=name, PolicyName="p", PolicyDocument=json.dumps(policy("*")))
        with aws.in_role(role) as environment:
            refused = refusal(environment, service, operation)
        assert refused.endswith("Access Denied" if reason and service == "s3" else reason)
        assert bool(refused) == bool(reason)


SESSION_CALLS = {
    "s3": ("list_buckets", "ExpiredToken"),
    "ec2": ("describe_vpcs", "RequestExpired"),
    "iam": ("list_roles", "ExpiredToken"),
    "cloudformation": ("list_stacks", "ExpiredToken"),
    "lambda": ("list_functions", "ExpiredTokenException"),
    "ssm": ("describe_parameters", "ExpiredTokenException"),
}


def test_a_session_ends_with_its_time(aws: EmulatedAws) -> None:
    """With the codes of https://docs.aws.amazon.com/awssupport/latest/APIReference/CommonErrors.html."""
    role = aws.client("iam", REGION).create_role(RoleName="r", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    with pytest.raises(HTTPError):
        aws.expire(role)
    sts = aws.client("sts", REGION)
    asked = {"RoleArn": role, "RoleSessionName": "session"}
    sessions = [{**aws.settings, **of_session(sts.assume_role(**asked)["Credentials"])}]
    aws.expire(role)
    sessions.append({**aws.settings, **of_session(sts.assume_role(**asked)["Credentials"])})
    for service, (operation, code) in SESSION_CALLS.items():
        answers = [Call(service, operation, "", "").make(each) for each in sessions]
        assert answers == [code, ""], service


@pytest.mark.parametrize(
    ("trusted", "denied", "code"),
    [
        ("root", None, ""),
        ("role/other", None, "AccessDenied"),
        ("root", "root", "AccessDenied"),
        ("root", "role/other", ""),
    ],
)
def test_a_role_is_assumed_by_those_whom_it_trusts(
    aws: EmulatedAws, trusted: str, denied: str | None, code: str
) -> None:
    """Its trust policy and the policies of the caller both have to allow it."""
    trust = [
        {"Effect": effect, "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:{who}"}, "Action": "sts:AssumeRole"}
        for effect, who in (("Allow", trusted), ("Deny", denied))
        if who
    ]
    document = json.dumps({"Version": "2012-10-17", "Statement": trust})
    role = aws.client("iam", REGION).create_role(RoleName="r", AssumeRolePolicyDocument=document)["Role"]["Arn"]
    call = Call("sts", "assume_role", "", "", {"RoleArn": role, "RoleSessionName": "session"})
    with aws.restricted(policy("sts:AssumeRole", resource=role)) as environment:
        assert call.make(environment) == code
    with aws.restricted(policy("sts:AssumeRole", resource=f"{role}-2")) as environment:
        assert call.make(environment) == "AccessDenied"


def test_a_permission_for_some_stacks_is_for_no_others(aws: EmulatedAws) -> None:
    with aws.restricted(
        policy("CloudFormation:describestacks", resource="arn:aws:cloudformation:*:*:stack/a?/*")
    ) as environment:
        answers = {
            name: Call("cloudformation", "describe_stacks", "", "", {"StackName": name}).make(environment)
            for name in ("ab", "abc", "b")
        }
    assert answers == {"ab": "ValidationError", "abc": "AccessDenied", "b": "AccessDenied"}


def test_a_permission_for_what_has_a_tag_is_for_nothing_else(aws: EmulatedAws) -> None:
    ec2 = aws.client("ec2", REGION)
    specification = {"ResourceType": "volume", "Tags": [{"Key": "Team", "Value": "ours"}]}
    asked = {"AvailabilityZone": f"{REGION}a", "Size": 1}
    ours = ec2.create_volume(**asked, TagSpecifications=[specification])["VolumeId"]
    theirs = ec2.create_volume(**asked)["VolumeId"]
    allowed = policy("ec2:CreateSnapshot", resource="arn:aws:ec2:*:*:volume/*")
    allowed["Statement"][0]["Condition"] = {"StringLike": {"ec2:ResourceTag/team": ["our?"]}}
    allowed["Statement"] += policy("ec2:CreateSnapshot", resource="arn:aws:ec2:*::snapshot/*")["Statement"]
    with aws.restricted(allowed) as environment:
        answers = [
            Call("ec2", "create_snapshot", "", "", {"VolumeId": each}).make(environment) for each in (ours, theirs)
        ]
    assert answers == ["", "UnauthorizedOperation"]


@pytest.mark.parametrize(
    ("resources", "code"),
    [((DOCUMENTS,), "AccessDeniedException"), ((DOCUMENTS, INSTANCES), "InvalidInstanceId")],
)
def test_a_command_needs_permission_for_its_document_and_its_instances(
    aws: EmulatedAws, resources: tuple[str, ...], code: str
) -> None:
    asked = {"DocumentName": "AWS-RunShellScript", "InstanceIds": ["i-0123456789abcdef0"]}
    allowed = policy("ssm:SendCommand")
    allowed["Statement"][0]["Resource"] = list(resources)
    with aws.restricted(allowed) as environment:
        command = Call("ssm", "send_command", "", "", {**asked, "Parameters": {"commands": ["id"]}})
        assert command.make(environment) == code
