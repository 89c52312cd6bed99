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
from emulator.moto_patches.policies import Caller, Request, Verdict, holds, judge
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


ROLE = f"arn:aws:iam::{ACCOUNT}:role/parallelcluster/research/RoleOfNodes"
SESSION = f"arn:aws:sts::{ACCOUNT}:assumed-role/RoleOfNodes/i-0123456789abcdef0"
NODE = Caller(SESSION, ROLE)
OF_CLUSTER = {
    "ArnLike": {"aws:PrincipalArn": f"arn:aws:iam::{ACCOUNT}:role/parallelcluster/research/*"},
    "StringEquals": {"aws:PrincipalAccount": ACCOUNT},
}
ALLOWING, NOTHING = policy("*"), policy("sqs:*")
DENYING = {"Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"}}


def known_of(caller: Caller, **more: str) -> Any:
    """Return what is known of conditions in a request of somebody."""
    values: dict[str, str | None] = {**caller.keys, "aws:absent": None, **more}
    return lambda key: (key.lower() in values, values.get(key.lower()))


def for_whom(principal: Any, effect: str = "Allow", **more: Any) -> dict[str, Any]:
    """Return the policy of a resource that names somebody."""
    named = {} if "NotPrincipal" in more else {"Principal": principal}
    return {"Statement": {"Effect": effect, "Action": "s3:*", "Resource": "arn:aws:s3:::b/*", **named, **more}}


@pytest.mark.parametrize(
    ("of_resource", "bare", "allowed", "outside"),
    [
        # Of whom policies and boundary: nothing and none, allowing and none, nothing and another, which allows nothing.
        (None, Verdict.DENIED, Verdict.ALLOWED, Verdict.DENIED),
        (for_whom({"AWS": "*"}, Condition=OF_CLUSTER), Verdict.ALLOWED, Verdict.ALLOWED, Verdict.ALLOWED),
        (for_whom("*"), Verdict.ALLOWED, Verdict.ALLOWED, Verdict.ALLOWED),
        (for_whom({"AWS": [SESSION]}), Verdict.ALLOWED, Verdict.ALLOWED, Verdict.ALLOWED),
        (for_whom({"AWS": ROLE}), Verdict.ALLOWED, Verdict.ALLOWED, Verdict.OUTSIDE_BOUNDARY),
        (for_whom({"AWS": ACCOUNT}), Verdict.DENIED, Verdict.ALLOWED, Verdict.DENIED),
        (for_whom({"AWS": f"{ROLE}2"}), Verdict.DENIED, Verdict.ALLOWED, Verdict.DENIED),
        (for_whom({"Service": "*"}), Verdict.DENIED, Verdict.ALLOWED, Verdict.DENIED),
        (for_whom({"AWS": "*"}, "Deny", Condition=OF_CLUSTER), Verdict.DENIED, Verdict.DENIED, Verdict.DENIED),
        (for_whom({"AWS": ACCOUNT}, "Deny"), Verdict.DENIED, Verdict.DENIED, Verdict.DENIED),
        (for_whom("", "Deny", NotPrincipal={"AWS": "x"}), Verdict.DENIED, Verdict.DENIED, Verdict.DENIED),
        (for_whom("", "Deny", NotPrincipal={"AWS": ROLE}), Verdict.DENIED, Verdict.ALLOWED, Verdict.DENIED),
        (for_whom("*", Condition={"IpAddress": {"aws:SourceIp": "::/0"}}),
         Verdict.DENIED, Verdict.ALLOWED, Verdict.DENIED),
        (for_whom("*", "Deny", Condition={"Bool": {"aws:SecureTransport": "false"}}),
         Verdict.DENIED, Verdict.ALLOWED, Verdict.DENIED),
        (for_whom("*", Resource="arn:aws:s3:::b"), Verdict.DENIED, Verdict.ALLOWED, Verdict.DENIED),
    ],
)  # fmt: skip
def test_the_policy_of_a_resource_adds_to_those_of_an_identity(
    of_resource: Any, bare: Verdict, allowed: Verdict, outside: Verdict
) -> None:
    """As what it names somebody decides whether a boundary counts.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic_policy-eval-denyallow.html
    """
    request = Request("s3:GetObject", "arn:aws:s3:::b/key", known_of(NODE), NODE)
    assert judge(request, [], of_resource=of_resource) is bare
    assert judge(request, [ALLOWING], of_resource=of_resource) is allowed
    assert judge(request, [NOTHING], boundary=[NOTHING], of_resource=of_resource) is outside
    assert judge(request, [DENYING], of_resource=of_resource) is Verdict.DENIED, "what is denied, nothing allows"
    by_boundary = judge(request, [ALLOWING], boundary=[DENYING], of_resource=of_resource)
    assert by_boundary is (Verdict.DENIED if allowed is Verdict.DENIED else Verdict.DENIED_BY_BOUNDARY)


def test_the_policy_of_a_key_decides_whether_policies_of_identities_count() -> None:
    """https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-default.html."""
    arn = f"arn:aws:kms:us-west-2:{ACCOUNT}:key/k"
    request = Request("kms:Decrypt", arn, known_of(NODE), NODE)

    def of_key(*statements: Any) -> int:
        listed = [{"Effect": "Allow", "Action": "kms:*", "Resource": "*", **each} for each in statements]
        found = [judge(request, own, of_resource={"Statement": listed}, of_key=True) for own in ([], [ALLOWING])]
        assert found[0] is Verdict.DENIED or found[1] is Verdict.ALLOWED
        return [each is Verdict.ALLOWED for each in found].count(True)

    account = {"Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}}
    cluster = {"Principal": {"AWS": "*"}, "Condition": OF_CLUSTER}
    assert [of_key(), of_key(account), of_key(cluster), of_key(account, cluster)] == [0, 1, 2, 2]
    assert of_key({**cluster, "Condition": {"StringEquals": {"kms:CallerAccount": "1"}}}) == 0


@pytest.mark.parametrize(
    ("operator", "key", "expected", "met"),
    [
        ("ArnLike", "aws:principalARN", ROLE, True),
        ("ArnLike", "aws:PrincipalArn", "arn:aws:iam::*:role/parallelcluster/*", True),
        ("ArnEquals", "aws:PrincipalArn", ["x", "arn:*:iam::*:role/*/RoleOfNodes"], True),
        ("ArnLike", "aws:PrincipalArn", "arn:aws:iam:*/RoleOfNodes", False),
        ("ArnLike", "aws:PrincipalArn", SESSION, False),
        ("ArnNotLike", "aws:PrincipalArn", ["x", ROLE], False),
        ("ArnNotEquals", "aws:PrincipalArn", ["x", "y"], True),
        ("StringEquals", "aws:PrincipalArn", "arn:aws:iam::*", False),
        ("StringEqualsIgnoreCase", "aws:PrincipalArn", ROLE.upper(), True),
        ("StringNotEquals", "aws:PrincipalAccount", ["1", ACCOUNT], False),
        ("StringNotEqualsIgnoreCase", "aws:PrincipalAccount", ["1", "2"], True),
        ("StringNotLike", "aws:PrincipalAccount", "12*", False),
        ("Bool", "aws:SecureTransport", "TRUE", True),
        ("Bool", "aws:SecureTransport", "false", False),
        ("Null", "aws:PrincipalArn", "false", True),
        ("Null", "aws:absent", "true", True),
        ("Null", "aws:absent", "false", False),
        ("StringEquals", "aws:absent", "*", False),
        ("StringLikeIfExists", "aws:absent", "x", True),
        ("StringLikeIfExists", "aws:PrincipalAccount", "x", False),
        ("StringNotEquals", "aws:absent", "x", True),
        ("ForAnyValue:StringLike", "aws:absent", "*", False),
        ("ForAnyValue:StringNotLike", "aws:absent", "x", False),
        ("ForAllValues:StringLike", "aws:absent", "x", True),
        ("ForAllValues:StringLike", "aws:PrincipalAccount", "x", False),
        ("StringEquals", "aws:SourceVpc", "x", None),
        ("IpAddress", "aws:PrincipalAccount", "x", None),
        ("StringEquals", "aws:PrincipalAccount", "${aws:ResourceAccount}", None),
    ],
)  # fmt: skip
def test_operators_of_conditions(operator: str, key: str, expected: str | list[str], met: bool | None) -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html."""
    known = known_of(NODE)
    assert holds({operator: {key: expected}}, known) is met
    unmet = {"Bool": {"aws:SecureTransport": "false"}}
    assert holds({operator: {key: expected}, **unmet}, known) is False, "all keys have to fit"


def test_a_bucket_and_its_key_let_the_roles_of_a_cluster_in(aws: EmulatedAws) -> None:
    """A role with a path and without policies reads, writes and copies what the policies of bucket and key grant it."""
    iam, s3, kms = aws.client("iam", REGION), aws.client("s3", REGION), aws.client("kms", REGION)
    role = iam.create_role(RoleName="r", Path="/parallelcluster/research/", AssumeRolePolicyDocument="{}")["Role"][
        "Arn"
    ]
    key = kms.create_key()["KeyMetadata"]
    own = json.loads(kms.get_key_policy(KeyId=key["KeyId"], PolicyName="default")["Policy"])["Statement"]
    for name in (BUCKET, "other"):
        make_bucket(s3, name, REGION)
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key["Arn"]}}
    s3.put_bucket_encryption(Bucket=BUCKET, ServerSideEncryptionConfiguration={"Rules": [rule]})
    for name in (BUCKET, "other"):
        s3.put_object(Bucket=name, Key="k", Body=b"theirs")
    to_cluster = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Condition": OF_CLUSTER, "Resource": "*"}
    to_bucket = {**to_cluster, "Action": ["s3:GetObject*", "s3:PutObject"], "Resource": f"arn:aws:s3:::{BUCKET}/*"}
    to_key = {**to_cluster, "Action": ["kms:Decrypt", "kms:GenerateDataKey*"]}
    here = {"Bucket": BUCKET, "Key": "k"}

    def answers() -> list[str]:
        with aws.in_role(role) as environment:
            session = boto3.Session(
                environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], environment["AWS_SESSION_TOKEN"]
            )
            theirs = session.client("s3", REGION, endpoint_url=environment["AWS_ENDPOINT_URL"])
            calls = [("put_object", {}), ("get_object", {}), ("copy_object", {"CopySource": "other/k"})]
            codes = []
            for operation, more in calls:
                try:
                    getattr(theirs, operation)(**here, **more)
                    codes.append("")
                except ClientError as error:
                    codes.append(error.response["Error"]["Code"])
            return codes

    refused = "AccessDenied"
    assert answers() == [refused] * 3
    s3.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps({"Statement": [to_bucket]}))
    assert answers() == [refused] * 3, "the key lets nobody in yet"
    kms.put_key_policy(KeyId=key["KeyId"], PolicyName="default", Policy=json.dumps({"Statement": [*own, to_key]}))
    assert answers() == ["", "", refused], "of what it copies it has to read the source"
    s3.put_bucket_policy(
        Bucket="other", Policy=json.dumps({"Statement": [{**to_bucket, "Resource": "arn:aws:s3:::other/*"}]})
    )
    assert answers() == ["", "", ""]
    s3.delete_bucket_policy(Bucket=BUCKET)
    assert answers() == [refused] * 3
