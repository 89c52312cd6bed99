"""Nobody is answered who lacks an access key: neither another user of this computer, nor a web page, nor a machine.

A function of the account runs as the user who started the emulated AWS: a way past this runs anything as that user.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import ZipFile

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError
from moto.backends import list_of_moto_modules

from emulator import gate, server
from emulator.aws import EmulatedAws
from tests.emulator.account import Account
from tests.emulator.stacks import REGION, Stacks

pytestmark = pytest.mark.slow

NOBODY = 65534
FOREIGN = {"Host": "evil.example", "Origin": "http://evil.example"}
GUESSES = (None, "testing", "test", "node", "own", "operator", "AKIAIOSFODNN7EXAMPLE", "ASIA" + "A" * 16, "a" * 35)
"""What somebody might take for a key; None: no signature."""
REFUSED = {400, 401, 403}
CODES = {
    "AccessDenied", "AccessDeniedException", "AuthFailure", "InvalidAccessKeyId", "InvalidClientTokenId",
    "MissingAuthenticationToken", "MissingAuthenticationTokenException", "UnrecognizedClientException",
}  # fmt: skip
CONTROLS = sorted(set(re.findall(r'"(/emulator/[a-z-]+)"', Path(server.__file__).read_text(encoding="utf-8"))))
PROBE = "def handler(event, context):\n    import os\n    return dict(os.environ)\n"

Answer = tuple[int, dict[str, str], str]


def ask(
    aws: EmulatedAws, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None, **signed: Any
) -> Answer:
    """Return status, headers and body of an answer; `key` and `service` go into a signature."""
    sent = {"Host": aws.endpoint.removeprefix("http://"), **(headers or {})}
    if key := signed.get("key"):
        scope = f"{key}/20260101/{REGION}/{signed.get('service', 's3')}/aws4_request"
        sent["Authorization"] = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"
    connection = http.client.HTTPConnection(aws.endpoint.removeprefix("http://"), timeout=60)
    try:
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read().decode()
    finally:
        connection.close()


def is_refused(answer: Answer) -> bool:
    status, headers, _ = answer
    return status in REFUSED and headers.get("x-amzn-errortype") in CODES


def as_another_user(work: Callable[[], object]) -> Any:
    """Return what a function returns, as JSON, in a process of another user; without root of this user."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        status = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
            with os.fdopen(writer, "w") as file:
                json.dump(work(), file)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    assert os.waitpid(child, 0)[1] == 0
    return json.loads(text)


def archive() -> bytes:
    content = io.BytesIO()
    with ZipFile(content, "w") as file:
        file.writestr("index.py", PROBE)
    return content.getvalue()


def run_a_function(aws: EmulatedAws, key: str | None, headers: dict[str, str]) -> list[Answer]:
    """Do what runs any code: the answers to CreateRole, CreateFunction, Invoke and a control that does it, too."""
    form = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    trust = '{"Version":"2012-10-17","Statement":[]}'
    role = urllib.parse.urlencode({
        "Action": "CreateRole", "Version": "2010-05-08", "RoleName": "r", "AssumeRolePolicyDocument": trust
    })  # fmt: skip
    function = {
        "FunctionName": "f", "Runtime": "python3.12", "Handler": "index.handler",
        "Role": "arn:aws:iam::123456789012:role/r", "Code": {"ZipFile": base64.b64encode(archive()).decode()},
    }  # fmt: skip
    path = "/2015-03-31/functions"
    return [
        ask(aws, "POST", "/", role.encode(), form, key=key, service="iam"),
        ask(aws, "POST", path, json.dumps(function).encode(), headers, key=key, service="lambda"),
        ask(aws, "POST", f"{path}/f/invocations", b"{}", headers, key=key, service="lambda"),
        ask(aws, "POST", "/emulator/shell", b"id >/tmp/taken", {"Content-Type": "text/plain", **headers}, key=key),
    ]


@pytest.fixture(scope="module")
def guarded() -> Iterator[EmulatedAws]:
    """A server of its own, whose environment has something that is none of a function's business."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME_OF_SECRETS", "secret")
        with EmulatedAws() as aws:
            yield aws


@pytest.fixture
def account(guarded: EmulatedAws) -> Account:
    guarded.reset()
    return Account(guarded)


def test_another_user_runs_nothing(guarded: EmulatedAws) -> None:
    for key in GUESSES:
        for headers in ({}, FOREIGN):
            answers = as_another_user(partial(run_a_function, guarded, key, headers))
            assert all(map(is_refused, answers)), (key, headers, answers)
    assert guarded.client("iam", REGION).list_roles()["Roles"] == []
    assert guarded.client("lambda", REGION).list_functions()["Functions"] == []


def test_no_web_page_is_answered_whatever_key_it_has(guarded: EmulatedAws) -> None:
    own = guarded.endpoint.removeprefix("http://")
    for name in ("evil.example", f"evil.example:{guarded.port}", "127.0.0.1", f"b.{own}", f"{own}.evil.example", ""):
        assert is_refused(ask(guarded, "GET", "/", headers={"Host": name}, key=guarded.key)), name
    for origin in ("http://evil.example", "null", guarded.endpoint):
        for method in ("GET", "OPTIONS", "POST"):
            assert is_refused(ask(guarded, method, "/", headers={"Origin": origin}, key=guarded.key)), (origin, method)
    for name in (own, f"localhost:{guarded.port}"):
        status, headers, _ = ask(guarded, "GET", "/", headers={"Host": name}, key=guarded.key)
        assert status == 200
        assert not [each for each in headers if each.startswith("access-control-")]


def test_no_kind_of_request_is_answered_without_a_key(guarded: EmulatedAws) -> None:
    """Walk over all services of moto, each in the ways in which it can be asked, S3's and the controls."""
    s3 = guarded.client("s3", REGION)
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="key", Body=b"private")
    services = sorted({*list_of_moto_modules(), "monitoring", "tagging", "elasticfilesystem", "states"})
    assert len(services) > 100
    assert len(CONTROLS) > 5
    form, target = (
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"X-Amz-Target": "DynamoDB_20120810.ListTables"},
    )
    unsigned = [
        *[(method, path, b"", {}) for path in CONTROLS for method in ("GET", "POST", "OPTIONS")],
        *[("POST", f"/moto-api{path}", b"", {}) for path in ("", "/reset", "/reset-auth", "/seed", "/config")],
        *[("GET", path, b"", {}) for path in ("/moto-api/data.json", "/latest/meta-data/iam/security-credentials/")],
        *[("POST", "/", f"Action={name}&RoleArn=a&RoleSessionName=ab&WebIdentityToken=t".encode(), form)
          for name in ("AssumeRoleWithWebIdentity", "AssumeRoleWithSAML", "AssumeRole", "CreateRole")],
        *[(method, path, b"", {}) for method in ("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS")
          for path in ("/", "/bucket", "/bucket/key", "/bucket?acl", "/bucket/key?versionId=null", "/lambda_x/")],
        ("GET", "/?Action=CreateRole&Version=2010-05-08", b"", {}),
        ("POST", "/", b"{}", target),
        ("POST", "/", b"{}", {"X-Amz-Target": "AWSCognitoIdentityProviderService.SignUp"}),
        ("POST", "/bucket", b"--b\r\n", {"Content-Type": "multipart/form-data; boundary=b"}),
        ("GET", "/", b"", {"Authorization": "AWS testing:signature"}),
        ("GET", "/", b"", {"Authorization": f"Bearer {guarded.key}"}),
    ]  # fmt: skip
    for key in filter(None, GUESSES):
        presigned = f"X-Amz-Credential={key}%2F20260101%2F{REGION}%2Fs3%2Faws4_request&X-Amz-Signature=0"
        for query in (presigned, f"AWSAccessKeyId={key}&Signature=0&Expires=99999999999"):
            unsigned += [(method, f"/bucket/key?{query}", b"", {}) for method in ("GET", "PUT", "DELETE")]
    refused: list[tuple[Any, Answer]] = [(each, ask(guarded, *each)) for each in unsigned]
    for service in services:
        for body, headers in ((b"Action=x", form), (b"{}", target), (b"", {})):
            kind = (service, headers)
            refused.append((kind, ask(guarded, "POST", "/", body, headers, key=GUESSES[-1], service=service)))
    assert [each for each, answer in refused if not is_refused(answer)] == []
    assert s3.get_object(Bucket="bucket", Key="key")["Body"].read() == b"private"


@pytest.mark.parametrize(
    ("service", "call", "code"),
    [
        ("s3", "list_buckets", "InvalidAccessKeyId"),
        ("ec2", "describe_vpcs", "AuthFailure"),
        ("iam", "list_roles", "InvalidClientTokenId"),
        ("route53", "list_hosted_zones", "InvalidClientTokenId"),
        ("dynamodb", "list_tables", "UnrecognizedClientException"),
        ("lambda", "list_functions", "UnrecognizedClientException"),
    ],
)
def test_aws_own_tools_understand_the_refusal(guarded: EmulatedAws, service: str, call: str, code: str) -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html."""
    client = boto3.Session("AKIAIOSFODNN7EXAMPLE", "secret").client(service, REGION, endpoint_url=guarded.endpoint)
    with pytest.raises(ClientError) as refusal:
        getattr(client, call)()
    assert refusal.value.response["Error"]["Code"] == code


def test_keys_of_the_account_are_answered_until_they_are_deleted_but_not_by_controls(account: Account) -> None:
    aws, iam = account.aws, account.client("iam")
    iam.create_user(UserName="u")
    key = iam.create_access_key(UserName="u")["AccessKey"]["AccessKeyId"]
    role = account.role()["Arn"]
    session = account.client("sts").assume_role(RoleArn=role, RoleSessionName="session")["Credentials"]
    keys = [key, session["AccessKeyId"]]
    for each in keys:
        assert re.fullmatch(r"(AKIA|ASIA)[A-Z2-7]{16}", each)
        assert ask(aws, "GET", "/", key=each)[0] == 200
        assert all(is_refused(ask(aws, "POST", path, key=each)) for path in (*CONTROLS, "/moto-api/reset"))
    iam.delete_access_key(UserName="u", AccessKeyId=key)
    assert is_refused(ask(aws, "GET", "/", key=key))
    aws.reset()
    assert is_refused(ask(aws, "GET", "/", key=keys[1]))


def test_a_callback_is_known_to_who_was_given_its_url(guarded: EmulatedAws) -> None:
    guarded.reset()
    for key in ("", "0", uuid4().hex, "%2e%2e/shell", "../shell"):
        for method in ("GET", "PUT", "POST"):
            assert ask(guarded, method, f"/emulator/callbacks/{key}")[0] in {403, 404}
    stacks = Stacks(guarded)
    stacks.create("s", {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}})
    url = urllib.parse.urlsplit(stacks.resources("s")["Handle"])
    assert is_refused(ask(guarded, "PUT", url.path, b"{}", FOREIGN))
    assert ask(guarded, "PUT", url.path, b"{}")[0] == 200


def test_a_public_object_is_all_that_anybody_reads(account: Account) -> None:
    aws, s3 = account.aws, account.aws.client("s3", REGION)
    s3.create_bucket(Bucket="public")
    s3.put_object(Bucket="public", Key="a/b c", Body=b"template", ACL="public-read")
    anybody = boto3.client("s3", REGION, endpoint_url=aws.endpoint, config=Config(signature_version=UNSIGNED))
    assert anybody.get_object(Bucket="public", Key="a/b c")["Body"].read() == b"template"
    assert anybody.head_object(Bucket="public", Key="a/b c")["ContentLength"] == len(b"template")
    path = "/public/a/b%20c"
    for method, more in (("GET", "?acl"), ("GET", "?Action=ListRoles"), ("PUT", ""), ("DELETE", ""), ("OPTIONS", "")):
        assert is_refused(ask(aws, method, f"{path}{more}")), (method, more)
    assert is_refused(ask(aws, "GET", path, key="testing", service="iam"))
    assert is_refused(ask(aws, "GET", path, headers=FOREIGN))


def test_the_key_is_in_no_argument_and_no_file_that_another_user_can_read(aws: EmulatedAws) -> None:
    """It is looked for while a function, a clone and the file by which test runs share a server have it."""
    account = Account(aws)
    roles, functions = account.role()["Arn"], account.client("lambda")
    functions.create_function(
        FunctionName="f", Runtime="python3.12", Handler="index.handler", Role=roles, Code={"ZipFile": archive()}
    )
    environment = json.loads(functions.invoke(FunctionName="f")["Payload"].read())
    assert environment["AWS_ACCESS_KEY_ID"] == aws.key
    with aws.clone() as clone:
        clone.client("s3", REGION).list_buckets()
        is_root, key = os.geteuid() == 0, aws.key.encode()
        read, found = as_another_user(lambda: search(key, own=not is_root))
    assert read > 10
    assert found == []


def search(key: bytes, *, own: bool) -> tuple[int, list[str]]:
    """Return how many files were read, and which have the key: arguments of processes, and what this user may read.

    Args:
        key: What is looked for.
        own: Whether this is the user who started the emulated AWS, whose processes' environments are theirs to read.
    """
    names = ("cmdline",) if own else ("cmdline", "environ", "mem")
    files = [process / name for process in Path("/proc").glob("[0-9]*") for name in names]
    for directory in {tempfile.gettempdir(), "/dev/shm"}:  # noqa: S108
        for pattern in ("ultracluster-*", "function-*"):
            for top in Path(directory).glob(pattern):
                below = [Path(place, name) for place, _, all_names in os.walk(top) for name in all_names]
                files += [top, *below]  # some of other tests that are deleted meanwhile
    read, found = 0, []
    for file in files:
        try:
            if own and not str(file).startswith("/proc/") and file.stat().st_mode & 0o077 == 0:
                continue
            if not file.is_file():
                continue
            with file.open("rb") as content:
                read += 1
                if key in content.read(1_000_000):
                    found.append(str(file))
        except OSError:
            pass
    return read, found


def test_a_function_gets_what_lambda_documents_and_its_own_variables(account: Account) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html."""
    functions = account.client("lambda")
    functions.create_function(
        FunctionName="f", Runtime="python3.12", Handler="index.handler", Role=account.role()["Arn"],
        Code={"ZipFile": archive()}, Environment={"Variables": {"OWN": "value"}},
    )  # fmt: skip
    environment = json.loads(functions.invoke(FunctionName="f")["Payload"].read())
    documented = {
        "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_EXECUTION_ENV", "AWS_LAMBDA_FUNCTION_NAME",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_VERSION", "AWS_LAMBDA_LOG_GROUP_NAME",
        "AWS_LAMBDA_LOG_STREAM_NAME", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "LAMBDA_TASK_ROOT", "LANG", "PATH",
        "TZ", "_HANDLER",
    }  # fmt: skip
    leads_here = {"AWS_ENDPOINT_URL", "AWS_EC2_METADATA_DISABLED", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"}
    leads_here |= {"TMPDIR"}
    of_the_interpreter = {"LC_CTYPE"}
    assert set(environment) - of_the_interpreter == {*documented, *leads_here, "OWN"}
    assert "secret" not in environment.values()


@pytest.mark.parametrize("service", ["lambda", "awslambda", "events", "iam", "moto_api"])
def test_a_machine_calls_no_service_that_runs_code_on_this_computer(service: str) -> None:
    environ = {"QUERY_STRING": "", "PATH_INFO": "/", "REQUEST_METHOD": "POST"}
    assert gate.refusal_of_machine(environ, service) is not None
    for service_of_nodes in ("ec2", "cloudformation"):
        assert gate.refusal_of_machine(environ, service_of_nodes) is None


_OF_MACHINE = """
import gzip, json, sys
from urllib.parse import urlencode
from werkzeug.test import EnvironBuilder, run_wsgi_app
from emulator.keys import KEYS
from emulator.server import Emulator

emulator = Emulator("fast")
port = emulator.serve()
answers = {}

def ask(name, service, path="/", **more):
    signed = [("Authorization", f"AWS4-HMAC-SHA256 Credential={KEYS.node}/20260101/us-west-2/{service}/aws4_request")]
    headers = signed + more.pop("headers", [])
    made = EnvironBuilder(base_url=f"http://127.0.0.1:{port}", path=path, headers=headers, **more)
    body, status, _ = run_wsgi_app(emulator._front.serve_machine, made.get_environ(), buffered=True)
    answers[name] = [status, b"".join(body).decode()]

TEMPLATE = json.dumps({"Resources": {"A": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}})
stack = {"Action": "CreateStack", "StackName": "x", "TemplateBody": TEMPLATE, "Version": "2010-05-15"}
harmless = {"Action": "DescribeStacks"}
text = urlencode(stack).encode()
kind = "application/x-www-form-urlencoded"
cloudformation = "cloudformation"
ask("plain", cloudformation, method="POST", data=text, content_type=kind)
ask("query", cloudformation, method="POST", query_string=stack)
ask("both", cloudformation, method="POST", query_string=harmless, data=text, content_type=kind)
ask("multipart", cloudformation, method="POST", query_string=harmless, data=stack, content_type="multipart/form-data")
ask("gzip", cloudformation, method="POST", query_string=harmless, data=gzip.compress(text), content_type=kind,
    headers=[("Content-Encoding", "gzip")])
ask("twice", cloudformation, method="POST", data=urlencode(harmless).encode() + b"&" + text, content_type=kind)
ask("target", cloudformation, method="POST", data=json.dumps(stack).encode(), content_type="application/x-amz-json-1.1",
    headers=[("X-Amz-Target", "CloudFormation.CreateStack")])
ask("bucket", "s3", path="/bucket", method="PUT")
ask("object", "s3", path="/bucket/key", method="PUT", data=b"x")
ask("delete", "s3", path="/bucket", method="POST", query_string={"delete": ""}, data=b"<Delete/>")
ask("stacks", cloudformation, method="POST", data=urlencode(harmless).encode(), content_type=kind)
ask("read", "s3", path="/", method="GET")
print(json.dumps(answers), flush=True)
import os
os._exit(0)
"""


def test_a_machine_changes_no_stack_and_no_object_however_it_asks() -> None:
    """By the real moto, which reads requests in more ways than one: what decides is what it has read."""
    done = subprocess.run([sys.executable, "-c", _OF_MACHINE], capture_output=True, text=True, check=True)
    answers = json.loads(done.stdout)
    assert answers.pop("read")[0] == "200 OK"
    status, listed = answers.pop("stacks")
    assert (status, "<member>" in listed) == ("200 OK", False)
    assert {name: answer for name, answer in answers.items() if answer[0].startswith("2")} == {}
