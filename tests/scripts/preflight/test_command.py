"""What `make preflight` prints and returns, whatever the checks find."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import ANY

import pytest
from rich.console import Console
from rich.live import Live

from emulator.aws import ACCOUNT, EmulatedAws
from scripts.commands import preflight
from scripts.deployment import Deployment
from scripts.preflight.check import Check, Finding, Permission, Status, check
from scripts.preflight.runner import Result
from scripts.preflight.screen import watch
from scripts.preflight.selection import SelectionError, policy, select


class Printed(NamedTuple):
    """What a command left behind."""

    code: int
    output: str
    error: str


Run = Callable[..., Printed]


def finding(check_id: str, *found: Finding, calls: tuple[str | Permission, ...] = ()) -> Check:
    return check(check_id, f"Title of {check_id}", prevents="nothing", calls=calls)(lambda _: found)


@check("credentials", "Title of credentials", prevents="nothing", calls=["sts:GetCallerIdentity"])
def credentials(deployment: Deployment) -> Iterator[Finding]:
    yield Finding(Status.PASS, deployment.account.ask("sts", "get_caller_identity")["Arn"])


LOCAL = finding("local", Finding(Status.PASS, "found"))
BROKEN = finding(
    "quota-nodes",
    Finding(Status.FAIL, "0 of 0 vCPUs are left; 2,048 needed", "ask for more", f"aws {'x' * 100} --region us-west-2"),
    calls=("servicequotas:GetServiceQuota",),
)
DOUBTFUL = finding("quota-others", Finding(Status.WARN, "nearly used up", "have a look"), calls=("ec2:DescribeVpcs",))
UNSEEN = finding("unseen", Finding(Status.UNKNOWN, "the right to look is missing", "ask for it"))
TWOFOLD = finding(
    "reservation",
    Finding(Status.PASS, "active", subject="cr-1"),
    Finding(Status.SKIP, "not begun", subject="cr-2"),
    calls=("ec2:DescribeCapacityReservations", Permission("ssm:GetParameter", "arn:aws:ssm:*:*:parameter/a")),
)


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch, rehearsed_aws: EmulatedAws) -> Callable[..., None]:
    """A function that makes checks the catalog; this process's credentials are for an emulated account."""
    for name, value in rehearsed_aws.settings.items():
        monkeypatch.setenv(name, value)
    return lambda *checks: monkeypatch.setattr("scripts.preflight.catalog.CATALOG", (credentials, *checks))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs the command."""

    def called(*arguments: str) -> Printed:
        monkeypatch.setattr(sys, "argv", ["preflight", *arguments])
        try:
            code = preflight.main()
        except SystemExit as end:
            code = int(str(end.code))
        return Printed(code, *capsys.readouterr())

    return called


def test_all_is_well(run: Run, catalog: Callable[..., None]) -> None:
    catalog(TWOFOLD, LOCAL)
    code, output, error = run("trn1-16")
    assert (code, error) == (0, "")
    assert [line.split() for line in output.splitlines() if line.startswith(("PASS", "SKIP"))][1:] == [
        ["PASS", "reservation", "cr-1:", "active"],
        ["PASS", "local", "found"],
        ["SKIP", "not", "begun:", "reservation[cr-2]"],
    ]
    assert re.search(r"trn1-16 .*: 4 answers in \d+\.\d s: 3 PASS, 1 SKIP\. Ready to deploy\.", output)
    assert "\x1b" not in output


def test_a_fault_comes_with_what_mends_it_and_with_a_command_on_one_line(
    run: Run, catalog: Callable[..., None]
) -> None:
    catalog(LOCAL, BROKEN)
    code, output, _ = run("trn1-16")
    assert code == 1
    assert f"\nFAIL  quota-nodes\n  ask for more\n  $ aws {'x' * 100} --region us-west-2\n" in output
    assert "1 FAIL. Not ready to deploy." in " ".join(output.split())
    table = output.partition("\n\n")[0]
    assert max(map(len, table.splitlines())) <= 120


@pytest.mark.parametrize(
    ("checks", "fail_on", "code"),
    [
        ((DOUBTFUL, UNSEEN), "fail", 0),
        ((DOUBTFUL,), "unknown", 0),
        ((UNSEEN,), "unknown", 1),
        ((BROKEN,), "unknown", 1),
        ((DOUBTFUL,), "warn", 1),
        ((UNSEEN,), "warn", 1),
        ((TWOFOLD,), "warn", 0),
        ((BROKEN,), "fail", 1),
    ],
)
def test_what_counts_as_a_fault(
    checks: tuple[Check, ...], fail_on: str, code: int, run: Run, catalog: Callable[..., None]
) -> None:
    catalog(*checks)
    assert run("trn1-16", "--fail-on", fail_on).code == code


def test_what_nobody_could_see_is_a_fault_unless_it_is_let_pass(run: Run, catalog: Callable[..., None]) -> None:
    catalog(UNSEEN)
    code, output, _ = run("trn1-16")
    assert (code, output.splitlines()[-1].endswith("1 UNKNOWN. Not ready to deploy.")) == (1, True)
    assert run("trn1-16", "--fail-on", "fail").output.endswith("1 UNKNOWN. Ready, but 1 could not be judged.\n")


def test_what_is_skipped_for_now_says_what_to_do(run: Run, catalog: Callable[..., None]) -> None:
    catalog(finding("later", Finding(Status.SKIP, "there is no subnet yet", "ask again")))
    output = run("trn1-16").output
    assert re.search(r"^SKIP +later +there is no subnet yet *$", output, re.MULTILINE)
    assert "\nSKIP  later\n  ask again\n" in output


@pytest.mark.parametrize("length", [60, 200])
def test_without_a_terminal_nothing_is_broken_within_a_word(
    length: int, run: Run, catalog: Callable[..., None]
) -> None:
    arn = f"arn:aws:{'x' * length}"
    catalog(finding("role", Finding(Status.PASS, f"the role that is assumed by the nodes of this cluster is {arn}")))
    lines = run("trn1-16").output.splitlines()
    assert any(arn in line for line in lines)
    assert max(map(len, lines)) == max(120, 30 + length)


def test_who_was_asked_instead_of_aws_is_said(
    run: Run, catalog: Callable[..., None], rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog(LOCAL)
    endpoint = rehearsed_aws.settings["AWS_ENDPOINT_URL"]
    assert run("trn1-16").output.splitlines()[-1].startswith(f"trn1-16 (endpoint {endpoint}): ")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    assert run("trn1-16", "--only", "local").output.splitlines()[-1].startswith("trn1-16: ")


def test_json(run: Run, catalog: Callable[..., None]) -> None:
    catalog(BROKEN, TWOFOLD)
    code, output, _ = run("trn1-16", "--json")
    document = json.loads(output)
    assert code == 1
    assert {key: document[key] for key in ("environment", "account", "ok", "counts")} == {
        "environment": "trn1-16",
        "account": ACCOUNT,
        "ok": False,
        "counts": {"PASS": 2, "WARN": 0, "FAIL": 1, "SKIP": 1, "UNKNOWN": 0},
    }
    assert [result["id"] for result in document["results"]] == [
        "credentials",
        "quota-nodes",
        "reservation[cr-1]",
        "reservation[cr-2]",
    ]
    [found] = BROKEN.look(ANY)
    broken = document["results"][1]
    assert broken.pop("seconds") >= 0
    assert broken == {
        "id": "quota-nodes",
        "check": "quota-nodes",
        "subject": "",
        "status": "FAIL",
        "sentence": found.sentence,
        "hint": found.hint,
        "command": found.command,
    }
    assert (document["results"][2]["check"], document["results"][2]["subject"]) == ("reservation", "cr-1")


def test_json_without_an_account(run: Run, catalog: Callable[..., None]) -> None:
    catalog(LOCAL)
    assert json.loads(run("trn1-16", "--json", "--only", "local").output)["account"] is None


def test_the_policy_is_grouped_and_sorted(run: Run, catalog: Callable[..., None]) -> None:
    catalog(BROKEN, DOUBTFUL, TWOFOLD)
    code, output, _ = run("trn1-16", "--print-policy", "--skip", "quota-others")
    assert code == 0
    everything = ["ec2:DescribeCapacityReservations", "servicequotas:GetServiceQuota", "sts:GetCallerIdentity"]
    assert json.loads(output) == {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": everything, "Resource": "*"},
            {"Effect": "Allow", "Action": ["ssm:GetParameter"], "Resource": "arn:aws:ssm:*:*:parameter/a"},
        ],
    }
    assert policy([LOCAL]) == {"Version": "2012-10-17", "Statement": []}


def test_the_list(run: Run, catalog: Callable[..., None]) -> None:
    catalog(LOCAL, BROKEN)
    assert run("trn1-16", "--list").output.splitlines() == [
        "credentials  Title of credentials",
        "local        Title of local",
        "quota-nodes  Title of quota-nodes",
    ]


@pytest.mark.parametrize(
    ("only", "skip", "ids"),
    [
        ([], [], ["credentials", "local", "quota-nodes", "quota-others"]),
        (["local"], [], ["local"]),
        (["quota-"], [], ["credentials", "quota-nodes", "quota-others"]),
        (["quota-others", "local"], [], ["credentials", "local", "quota-others"]),
        (["quota-"], ["quota-nodes"], ["credentials", "quota-others"]),
        (["quota-"], ["credentials"], ["quota-nodes", "quota-others"]),
        ([], ["quota-"], ["credentials", "local"]),
    ],
)
def test_selection(only: list[str], skip: list[str], ids: list[str]) -> None:
    assert [each.id for each in select((credentials, LOCAL, BROKEN, DOUBTFUL), only, skip)] == ids


@pytest.mark.parametrize(
    ("only", "skip", "complaint"),
    [
        (["quota-node"], [], "no check 'quota-node'; there is quota-nodes"),
        ([], ["quota"], "no check 'quota'; there is quota-"),
        (["-"], [], "no check '-'; there is credentials, local, quota-nodes"),
        (["local"], ["local"], "leave nothing to check"),
    ],
)
def test_a_selection_that_cannot_be_used(only: list[str], skip: list[str], complaint: str) -> None:
    with pytest.raises(SelectionError, match=complaint):
        select((credentials, LOCAL, BROKEN), only, skip)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nope"], "no such file in config/: nope; there is "),
        (["trn1-16", "--only", "locl"], "no check 'locl'; there is local"),
        (["trn1-16", "--json", "--list"], "not allowed with"),
        (["trn1-16", "--fail-on", "skip"], "invalid choice: 'skip'"),
    ],
)
def test_arguments_that_cannot_be_used(
    arguments: list[str], complaint: str, run: Run, catalog: Callable[..., None]
) -> None:
    catalog(LOCAL)
    code, output, error = run(*arguments)
    assert (code, output) == (2, "")
    assert complaint in error


def test_settings_that_cannot_be_used(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (preflight.CONFIG / "dev.yaml").read_text(encoding="utf-8").replace("usw2-az4", "us-west-2d")
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(preflight, "CONFIG", tmp_path)
    code, _, error = run("mine")
    assert code == 2
    assert "zone_id: got 'us-west-2d'" in error


def test_ctrl_c(run: Run, catalog: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    catalog(LOCAL)
    monkeypatch.setattr("scripts.preflight.runner.run", interrupt)
    assert run("trn1-16").code == 130


def test_on_a_terminal_it_shows_what_is_awaited_and_what_is_wrong_and_has_colours(
    run: Run, catalog: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog(BROKEN)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes what it writes to for a terminal then
    output = run("trn1-16").output
    awaited, _, wrong = output.partition("2 of 2 checks have answered")
    assert "1 of 2 checks have answered" in awaited
    assert re.search("quota-nodes.*Title of quota-nodes", awaited)
    assert "credentials" not in awaited
    assert re.search(r"\x1b\[1;31mFAIL *\x1b\[0m +quota-nodes +0 of 0 vCPUs", wrong)
    assert re.search(r"\x1b\[32mPASS *\x1b\[0m +credentials", wrong)


@pytest.mark.parametrize(("height", "lines"), [(50, 22), (10, 9)])
def test_what_is_shown_meanwhile_fits_on_the_terminal(height: int, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(Live, "update", lambda _, table, **__: shown.append(table))
    titled = [check(f"check-{number}", "a long title " * 10, prevents="nothing") for number in range(20)]
    awaited = [make(lambda _: [Finding(Status.FAIL, "no")]) for make in titled]
    console = Console(file=StringIO(), force_terminal=True, width=80, height=height)
    answers = [[Result(each, found, 0) for found in each.look(ANY)] for each in (LOCAL, *awaited)]
    watch([LOCAL, *awaited], answers, console)
    assert len(console.render_lines(shown[0])) == lines


def test_json_is_nothing_but_json_on_a_terminal_too(
    run: Run, catalog: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog(LOCAL)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert json.loads(run("trn1-16", "--json").output)["ok"]
