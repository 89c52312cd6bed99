"""Credentials, accounts, Regions and bootstrap stacks, good and bad."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from config.settings import load
from emulator.aws import ACCOUNT
from scripts.account.deployment import Account, Deployment
from scripts.check.plan import cdk
from scripts.check.preflight import access
from scripts.check.preflight.runner import findings
from scripts.core import options
from scripts.core.findings import FAIL, PASS, UNKNOWN, WARN
from tests.command_line import ultracluster
from tests.configurations import CONFIG
from tests.scripts.check.preflight.accounts import KEY, REGION, Case, case
from tests.scripts.refusals import refusal
from toolchain import bootstrap

NEWEST = bootstrap.newest_version()


def version(number: int) -> dict[str, Any]:
    return {"Parameter": {"Value": str(number)}}


def encrypted(**by_default: str) -> dict[str, Any]:
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", **by_default}}
    return {"ServerSideEncryptionConfiguration": {"Rules": [rule]}}


def own_bootstrap(raw: dict[str, Any]) -> None:
    raw["bootstrap"] = {"qualifier": "ml-team", "kms_key_arn": KEY}


OWN: dict[str, Any] = {
    "edit": own_bootstrap,
    "get_parameter": version(NEWEST or 0),
    "list_buckets": {"Buckets": [{"Name": f"cdk-ml-team-assets-{ACCOUNT}-{REGION}"}]},
}
CASES = [
    case(access.credentials, PASS, f"::{ACCOUNT}:user/", f", of account {ACCOUNT}"),
    case(access.credentials, FAIL, "new session", get_caller_identity=refusal("ExpiredToken")),
    case(access.credentials, UNKNOWN, get_caller_identity=refusal("Throttling")),
    case(
        access.credentials,
        FAIL,
        f"If it works in us-east-1: enable the Region: `aws account enable-region --region-name {REGION}`",
        get_caller_identity=refusal("InvalidClientTokenId"),
    ),
    case(access.account, PASS, ACCOUNT, "as in the settings"),
    case(access.account, PASS, "the settings name none", edit=lambda raw: raw.update(account=None)),
    case(
        access.account,
        FAIL,
        f"for account {ACCOUNT}; in the settings: 210987654321",
        edit=lambda raw: raw.update(account="210987654321"),
    ),
    case(access.region, PASS, "us-west-2 is enabled (opt-in-not-required)"),
    case(access.cdk_bootstrap, PASS, f"bootstrap version {NEWEST}, bucket cdk-hnb659fds-assets-{ACCOUNT}"),
    case(access.cdk_bootstrap, FAIL, "us-west-2 is not bootstrapped", get_parameter=refusal("ParameterNotFound")),
    case(access.cdk_bootstrap, FAIL, "bootstrap version 5; allowed: 6 or newer", get_parameter=version(5)),
    case(access.cdk_bootstrap, WARN, "bootstrap version 6 is enough", get_parameter=version(6)),
    case(access.cdk_bootstrap, FAIL, "the account has no bucket", list_buckets={"Buckets": []}),
    case(
        access.cdk_bootstrap,
        PASS,
        f"cdk-ml-team-assets-{ACCOUNT}",
        **OWN,
        get_bucket_encryption=encrypted(KMSMasterKeyID="alias/own"),
        describe_key={"KeyMetadata": {"Arn": KEY}},
    ),
    case(
        access.cdk_bootstrap,
        FAIL,
        f"is encrypted by a key of AWS; in the settings: {KEY}",
        **OWN,
        get_bucket_encryption=encrypted(KMSMasterKeyID="alias/aws/s3"),
    ),
]


@pytest.mark.parametrize("each", CASES)
def test_access(each: Case, account: Account) -> None:
    each.verify(account)


@pytest.mark.parametrize(
    ("region", "zone_id", "says"),
    [
        ("ap-southeast-4", "apse4-az1", "ap-southeast-4 is not enabled in this account (not-opted-in)"),
        ("us-west-9", "usw9-az1", "there is no Region us-west-9"),
    ],
)
def test_a_region_that_cannot_be_used(region: str, zone_id: str, says: str, account: Account) -> None:
    settings = load(CONFIG / "trn1-16.yaml").model_copy(update={"region": region, "zone_id": zone_id})
    [finding] = findings(access.region, Deployment("mine", settings))
    assert (finding.status, finding.sentence) == (FAIL, says)


# The bootstrap stack


def test_the_oldest_bootstrap_is_the_one_that_the_templates_ask_for() -> None:
    snapshots = (CONFIG.parent / "tests/snapshots").glob("*/*-*.json")
    texts = [path.read_text(encoding="utf-8") for path in snapshots]
    asked_for = {each for text in texts for each in re.findall(r"bootstrap stack version (\d+) required", text)}
    assert asked_for == {str(bootstrap.OLDEST_VERSION)}


def test_bootstrap_passes_on_what_the_settings_name(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    raw = load(CONFIG / "dev.yaml").model_dump(mode="json")
    own_bootstrap(raw)
    raw["roles"] = {"permissions_boundary_arn": f"arn:aws:iam::{ACCOUNT}:policy/boundary"}
    (tmp_path / "own.yaml").write_text(json.dumps(raw), encoding="utf-8")
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    monkeypatch.setattr(cdk, "command", lambda *words: ["echo", *words])
    monkeypatch.setattr(Account, "ask", Mock(return_value={"Account": ACCOUNT}))
    assert ultracluster("bootstrap", "own") == 0

    stack = "--qualifier ml-team --toolkit-stack-name CDKToolkit-ml-team"
    key = "--bootstrap-kms-key-id 1234abcd-12ab-34cd-56ef-1234567890ab"
    boundary = "--custom-permissions-boundary boundary --apply-permissions-boundary-to-all-roles"
    assert capfd.readouterr().out == f"bootstrap aws://{ACCOUNT}/us-west-2 {stack} {key} {boundary}\n"
