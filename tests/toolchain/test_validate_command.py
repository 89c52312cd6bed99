"""`./ultracluster validate` prints what was found, and returns it as an exit code."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from emulator.aws import EmulatedAws
from scripts import options
from scripts.commands import validate
from scripts.validation import Validation, ValidationOutcome
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


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return a function that runs the command and gives its exit code."""

    def main(*arguments: str) -> int:
        return ultracluster("validate", *arguments)

    return main


@pytest.mark.slow
@pytest.mark.validation
def test_a_valid_deployment(run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("trn1-16", "--output", "json") == 0
    [line] = capsys.readouterr().out.splitlines()
    outcome = json.loads(line)
    assert (outcome["environment"], outcome["code"], outcome["error"]) == ("trn1-16", 0, "")
    assert outcome["report"]["problems"] == []


@pytest.mark.slow
@pytest.mark.validation
def test_settings_that_cannot_be_read(
    run: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    rehearsed_aws: EmulatedAws,
) -> None:
    monkeypatch.setattr("scripts.validation.EmulatedAws", lambda: nullcontext(rehearsed_aws))
    (tmp_path / "broken.yaml").write_text("name: [")
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    assert run() == 2
    assert "broken: NOT EXAMINED" in capsys.readouterr().out


def test_a_name_that_is_not_in_config(run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("nowhere") == 2
    assert "got nowhere; allowed: files in config/" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("report", "code", "lines"),
    [
        (
            ACCEPTED,
            0,
            ["e: accepted", "WARNING KeyPairValidator: no key pair", "accepted: no SSH key", "cluster c, 2 queues"],
        ),
        (REJECTED, 1, ["e: REJECTED", f"FAIL    {SIZE}", "cluster c, 1 queue;"]),
        (None, 2, ["e: NOT EXAMINED", "  two\n  lines"]),
    ],
    ids=["accepted", "rejected", "not examined"],
)
def test_the_outcome_in_words_and_as_a_code(report: Validation | None, code: int, lines: list[str]) -> None:
    outcome = ValidationOutcome(environment="e", report=report, error="" if report else "two\nlines")
    assert outcome.code == code
    assert [line for line in lines if line not in validate.as_text(outcome)] == []


def test_the_worst_outcome_is_the_exit_code(run: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    examined = [ValidationOutcome(environment="e", report=report) for report in (REJECTED, ACCEPTED)]
    monkeypatch.setattr("scripts.validation.outcomes", lambda _: examined)
    assert run() == 1
