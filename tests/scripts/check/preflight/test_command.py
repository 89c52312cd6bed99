"""The output and exit codes of `./ultracluster preflight`, whatever the checks find."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from emulator.aws import ACCOUNT
from scripts.account.deployment import Account, Deployment
from scripts.check.preflight.catalog import policy, select
from scripts.check.preflight.check import Check, Permission, check
from scripts.core.errors import UnusableError
from scripts.core.findings import FAIL, PASS, SKIP, UNKNOWN, WARN, Finding
from tests.command_line import Call


def finding(check_id: str, *answers: Finding, calls: tuple[str | Permission, ...] = ()) -> Check:
    return check(check_id, f"Title of {check_id}", calls=calls)(lambda _: answers)


@check("credentials", "Title of credentials", calls=["sts:GetCallerIdentity"])
def credentials(deployment: Deployment) -> Iterator[Finding]:
    yield Finding(PASS, deployment.account.ask("sts", "get_caller_identity")["Account"])


LOCAL = finding("local", Finding(PASS, "found"))
BROKEN = finding(
    "quota-nodes",
    Finding(FAIL, "0 of 0 vCPUs are left; 2,048 needed", "ask for more", f"aws {'x' * 100} --region us-west-2"),
    calls=("servicequotas:GetServiceQuota",),
)
DOUBTFUL = finding("quota-others", Finding(WARN, "nearly used up", "have a look"), calls=("ec2:DescribeVpcs",))
UNJUDGED = finding("unknown", Finding(UNKNOWN, "a permission is missing", "ask for it"))
TWOFOLD = finding(
    "reservation",
    Finding(PASS, "active", subject="cr-1"),
    Finding(SKIP, "not started", subject="cr-2"),
    calls=("ec2:DescribeCapacityReservations", Permission("ssm:GetParameter", "arn:aws:ssm:*:*:parameter/a")),
)


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that makes checks the catalog; the account answers who the caller is."""
    monkeypatch.setattr(Account, "ask", lambda *_: {"Account": ACCOUNT})
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    return lambda *checks: monkeypatch.setattr("scripts.check.preflight.catalog.CATALOG", (credentials, *checks))


@pytest.fixture
def run(call: Call) -> Call:
    return partial(call, "preflight")


def test_the_table(run: Call, catalog: Callable[..., None]) -> None:
    later = finding("later", Finding(SKIP, "there is no subnet yet", "ask again"))
    catalog(TWOFOLD, LOCAL, BROKEN, later)
    code, output, error = run("trn1-16")
    assert (code, error) == (1, "")
    assert output.splitlines()[:9] == [
        "PASS     credentials: 123456789012",
        "PASS     reservation[cr-1]: active",
        "PASS     local: found",
        "FAIL     quota-nodes: 0 of 0 vCPUs are left; 2,048 needed",
        "         ask for more",
        f"         $ aws {'x' * 100} --region us-west-2",
        "SKIP     later: there is no subnet yet",
        "         ask again",
        "SKIP     not started: reservation[cr-2]",
    ]
    assert re.search(r"trn1-16: 6 answers in \d+\.\d s: 3 PASS, 1 FAIL, 2 SKIP\. Not ready to deploy\.\n$", output)


@pytest.mark.parametrize(
    ("checks", "fail_on", "code", "verdict"),
    [
        ((DOUBTFUL,), "unknown", 0, "Ready to deploy."),
        ((DOUBTFUL,), "warn", 1, "Not ready to deploy."),
        ((DOUBTFUL, UNJUDGED), "fail", 0, "Ready, but 1 could not be judged."),
        ((UNJUDGED,), "unknown", 1, "Not ready to deploy."),
        ((BROKEN,), "fail", 1, "Not ready to deploy."),
    ],
)
def test_what_is_not_ready(
    checks: tuple[Check, ...], fail_on: str, code: int, verdict: str, *, run: Call, catalog: Callable[..., None]
) -> None:
    catalog(*checks)
    printed = run("trn1-16", "--fail-on", fail_on)
    assert (printed.code, printed.output.endswith(f"{verdict}\n")) == (code, True)


def test_json(run: Call, catalog: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    catalog(BROKEN, TWOFOLD, LOCAL)
    monkeypatch.setenv("FORCE_COLOR", "1")
    code, output, _ = run("trn1-16", "--output", "json")
    document = json.loads(output)
    assert code == 1
    assert {key: document[key] for key in ("deployment", "account", "ok", "counts")} == {
        "deployment": "trn1-16",
        "account": ACCOUNT,
        "ok": False,
        "counts": {"PASS": 3, "WARN": 0, "FAIL": 1, "SKIP": 1, "UNKNOWN": 0},
    }
    ids = [result["id"] for result in document["results"]]
    assert ids == ["credentials", "quota-nodes", "reservation[cr-1]", "reservation[cr-2]", "local"]
    broken, reservation = document["results"][1:3]
    assert broken.pop("seconds") >= 0
    assert broken == {
        "id": "quota-nodes",
        "check": "quota-nodes",
        "subject": "",
        "status": "FAIL",
        "sentence": "0 of 0 vCPUs are left; 2,048 needed",
        "hint": "ask for more",
        "command": f"aws {'x' * 100} --region us-west-2",
    }
    assert (reservation["check"], reservation["subject"]) == ("reservation", "cr-1")
    assert json.loads(run("trn1-16", "--output", "json", "--only", "local").output)["account"] is None


def test_policy_and_list(run: Call, catalog: Callable[..., None]) -> None:
    catalog(BROKEN, DOUBTFUL, TWOFOLD)
    printed = run("trn1-16", "--print-policy", "--skip", "quota-others")
    everything = ["ec2:DescribeCapacityReservations", "servicequotas:GetServiceQuota", "sts:GetCallerIdentity"]
    assert (printed.code, json.loads(printed.output)) == (
        0,
        {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Action": everything, "Resource": "*"},
                {"Effect": "Allow", "Action": ["ssm:GetParameter"], "Resource": "arn:aws:ssm:*:*:parameter/a"},
            ],
        },
    )
    assert policy([LOCAL]) == {"Version": "2012-10-17", "Statement": []}
    lines = run("trn1-16", "--list", "--only", "quota-").output.splitlines()
    assert [line.rstrip() for line in lines] == [
        "credentials  Title of credentials",
        "quota-nodes  Title of quota-nodes",
        "quota-others Title of quota-others",
    ]
    listed = json.loads(run("trn1-16", "--list", "--only", "quota-nodes", "--output", "json").output)
    assert listed["checks"][1:] == [{"id": "quota-nodes", "title": "Title of quota-nodes"}]


def test_on_a_terminal_it_counts_the_answers(
    run: Call, catalog: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog(BROKEN)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes what it writes to for a terminal then
    output = run("trn1-16").output
    assert "2 of 2 checks have answered" in output
    assert re.search(r"\x1b\[1;31mFAIL *\x1b\[0m  quota-nodes: 0 of 0 vCPUs", output)


@pytest.mark.parametrize(
    ("only", "skip", "ids"),
    [
        ([], ["quota-"], ["credentials", "local"]),
        (["local"], [], ["local"]),
        (["quota-"], ["credentials"], ["quota-nodes", "quota-others"]),
        (["quota-node"], [], "got quota-node; allowed: credentials, local, quota-nodes"),
        (["local"], ["local"], "leave nothing to check"),
    ],
)
def test_selection(only: list[str], skip: list[str], ids: list[str] | str) -> None:
    checks = (credentials, LOCAL, BROKEN, DOUBTFUL)
    if isinstance(ids, list):
        assert [each.id for each in select(checks, only, skip)] == ids
    else:
        with pytest.raises(UnusableError, match=ids):
            select(checks, only, skip)
