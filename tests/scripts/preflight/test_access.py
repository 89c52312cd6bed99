"""Why there is no answer to who the caller is, and what helps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, TokenRetrievalError

from config.settings import load
from emulator.aws import ACCOUNT, EmulatedAws
from emulator.cdk import CommandLine
from scripts.commands import bootstrap as scripts_bootstrap
from scripts.commands.validate import CONFIG
from scripts.deployment import Deployment
from scripts.preflight import access
from scripts.preflight.check import Check, Finding, Status
from scripts.preflight.runner import findings
from tests.scripts.preflight.answers import failing
from tests.scripts.preflight.cases_access import KEY
from tests.scripts.preflight.conftest import GoodAccount
from toolchain import bootstrap
from toolchain.golden import read_golden

CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")
SNAPSHOTS = Path(__file__).parents[2] / "snapshots"
SSO_PROFILE = """
[default]
sso_session = company
sso_account_id = 123456789012
sso_role_name = Reader
[sso-session company]
sso_region = us-east-1
sso_start_url = https://company.awsapps.com/start
"""


def looked(check: Check = access.credentials, **settings: Any) -> Finding:
    chosen = load(CONFIG / "trn1-16.yaml").model_copy(update=settings)
    [found] = findings(check, Deployment("trn1-16", chosen))
    return found


def refusal(code: str, operation: str = "GetCallerIdentity") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, operation)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home without credentials, and no network to ask for any."""
    for name in CREDENTIALS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


# What botocore itself finds wrong


@pytest.mark.usefixtures("home")
def test_no_credentials_at_all() -> None:
    found = looked()
    assert found.status is Status.FAIL
    assert "aws configure" in found.hint


@pytest.mark.usefixtures("home")
def test_half_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    found = looked()
    assert found.status is Status.FAIL
    assert "access key and secret access key go together" in found.hint


@pytest.mark.usefixtures("home")
def test_a_profile_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    found = looked()
    assert (found.status, "nobody" in found.sentence) == (Status.FAIL, True)
    assert "aws configure list-profiles" in found.hint


def test_nobody_is_logged_in(home: Path) -> None:
    (home / "config").write_text(SSO_PROFILE, encoding="utf-8")
    found = looked()
    assert found.status is Status.FAIL
    assert "aws sso login" in found.hint


def test_a_file_that_cannot_be_read(home: Path) -> None:
    (home / "config").write_text("[default\n", encoding="utf-8")
    found = looked()
    assert (found.status, found.hint) == (Status.FAIL, "fix the file")


def test_a_login_that_cannot_be_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    failing("get_caller_identity", TokenRetrievalError(provider="sso", error_msg="expired"))(monkeypatch)
    found = looked()
    assert found.status is Status.FAIL
    assert "aws sso login" in found.hint


# What AWS says


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("ExpiredToken", "new session credentials"),
        ("SignatureDoesNotMatch", "clock"),
        ("AccessDenied", "trust policy"),
        ("ForbiddenException", "Identity Center"),
    ],
)
def test_refused_credentials(monkeypatch: pytest.MonkeyPatch, code: str, hint: str) -> None:
    operation = "AssumeRole" if code == "AccessDenied" else "GetCallerIdentity"
    failing("get_caller_identity", refusal(code, operation))(monkeypatch)
    found = looked()
    assert (found.status, code in found.sentence) == (Status.FAIL, True)
    assert hint in found.hint


@pytest.mark.parametrize(
    "error", [refusal("Throttling"), EndpointConnectionError(endpoint_url="https://sts.us-west-2.amazonaws.com")]
)
def test_what_is_not_the_credentials_fault(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    failing("get_caller_identity", error)(monkeypatch)
    assert looked().status is Status.UNKNOWN


def test_a_key_that_is_unknown_everywhere(good_account: Callable[..., GoodAccount]) -> None:
    account = good_account()
    policy = {"Effect": "Allow", "Action": "ec2:DescribeVpcs", "Resource": "*"}
    with account.aws.restricted({"Version": "2012-10-17", "Statement": [policy]}):
        found = looked()
    assert (found.status, "InvalidClientTokenId" in found.sentence) == (Status.FAIL, True)
    assert "deleted, inactive or mistyped" in found.hint


@pytest.mark.usefixtures("good_account")
def test_a_key_that_is_unknown_in_the_region(monkeypatch: pytest.MonkeyPatch) -> None:
    failing("get_caller_identity", refusal("InvalidClientTokenId"))(monkeypatch)
    found = looked(region="ap-southeast-4")
    assert found.status is Status.FAIL
    assert found.sentence == (
        f"the credentials are good in us-east-1 (account {ACCOUNT}), but ap-southeast-4 does not know them"
    )
    assert "aws account enable-region --region-name ap-southeast-4" in found.hint


@pytest.mark.usefixtures("good_account")
def test_a_region_that_there_is_not() -> None:
    found = looked(access.region, region="us-west-9")
    assert (found.status, found.sentence) == (Status.FAIL, "there is no Region us-west-9")


# The bootstrap stack


def test_the_oldest_bootstrap_is_the_one_that_the_templates_ask_for() -> None:
    texts = [json.dumps(read_golden(path)) for path in SNAPSHOTS.iterdir()]
    asked_for = {version for text in texts for version in re.findall(r"bootstrap stack version (\d+) required", text)}
    assert asked_for == {str(bootstrap.OLDEST_VERSION)}


@pytest.mark.slow
def test_what_the_cdk_itself_bootstraps(rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in rehearsed_aws.settings.items():
        monkeypatch.setenv(name, value)
    cdk = CommandLine(rehearsed_aws)
    assert cdk.bootstrap("us-west-2") == 0
    cdk.close()
    found = looked(access.cdk_bootstrap)
    assert found.status is Status.PASS
    assert f"version {bootstrap.newest_version()}," in found.sentence


def test_without_the_cdk_nobody_knows_the_newest_bootstrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bootstrap, "TEMPLATE", tmp_path / "none.yaml")
    assert bootstrap.newest_version() is None


def test_make_bootstrap_hands_on_what_the_settings_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = (CONFIG / "dev.yaml").read_text(encoding="utf-8")
    own = text.replace("hnb659fds", "ml-team").replace("kms_key_arn: null", f"kms_key_arn: {KEY}", 1)
    for name, settings in (("default", text), ("own", own)):
        (tmp_path / f"{name}.yaml").write_text(settings, encoding="utf-8")
        monkeypatch.setattr(scripts_bootstrap, "CONFIG", tmp_path)
        monkeypatch.setattr("sys.argv", ["bootstrap", name])
        assert scripts_bootstrap.main() == 0

    stack = "--qualifier ml-team --toolkit-stack-name CDKToolkit-ml-team"
    key = "--bootstrap-kms-key-id 1234abcd-12ab-34cd-56ef-1234567890ab"
    assert capsys.readouterr().out == f"\n{stack} {key}\n"
