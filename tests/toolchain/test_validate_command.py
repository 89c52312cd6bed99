"""`./ultracluster validate` prints the problems of deployments, and has an exit code for the worst."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from emulator.aws import EmulatedAws
from scripts.check.validation import Validation, ValidationOutcome
from scripts.core import options
from tests.command_line import ultracluster
from toolchain.parallelcluster import Message
from ultracluster.domain.validator_warnings import Verdict

KEY_PAIR = Message("WARNING", "KeyPairValidator", "no key pair")
SIZE = "ERROR ComputeResourceSizeValidator: Max count must be greater than or equal to min count."
ACCEPTED = Validation(
    cluster_name="c",
    queues=2,
    messages=(KEY_PAIR,),
    verdicts={"KeyPairValidator": Verdict(False, "accepted: no SSH key")},
    problems=(),
)
REJECTED = Validation(cluster_name="c", queues=1, messages=(), verdicts={}, problems=(SIZE,))


@pytest.mark.slow
@pytest.mark.validation
def test_a_valid_deployment(capsys: pytest.CaptureFixture[str]) -> None:
    assert ultracluster("validate", "trn1-16", "--output", "json") == 0
    [line] = capsys.readouterr().out.splitlines()
    outcome = json.loads(line)
    assert (outcome["deployment"], outcome["code"], outcome["error"]) == ("trn1-16", 0, "")
    assert outcome["report"]["problems"] == []


@pytest.mark.slow
@pytest.mark.validation
def test_settings_that_cannot_be_read(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    rehearsed_aws: EmulatedAws,
) -> None:
    monkeypatch.setattr("scripts.check.validation.EmulatedAws", lambda: nullcontext(rehearsed_aws))
    (tmp_path / "broken.yaml").write_text("name: [")
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    assert ultracluster("validate") == 2
    assert "broken: NOT EXAMINED" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("report", "code", "lines"),
    [
        (ACCEPTED, 0, ["e: accepted", "WARNING KeyPairValidator: no key pair", "accepted: no SSH key", "2 queues"]),
        (REJECTED, 1, ["e: REJECTED", f"FAIL    {SIZE}", "cluster c, 1 queue;"]),
        (None, 2, ["e: NOT EXAMINED", "  two\n  lines"]),
    ],
    ids=["accepted", "rejected", "not examined"],
)
def test_the_worst_outcome_is_the_exit_code(
    report: Validation | None,
    code: int,
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = ValidationOutcome(deployment="e", report=report, error="" if report else "two\nlines")
    accepted = ValidationOutcome(deployment="a", report=ACCEPTED)
    monkeypatch.setattr("scripts.check.validation.outcomes", lambda _: [outcome, accepted])

    assert ultracluster("validate") == code
    out = capsys.readouterr().out
    assert [line for line in lines if line not in out] == []
