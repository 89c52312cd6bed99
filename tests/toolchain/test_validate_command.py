"""`./ultracluster validate` prints the problems of deployments, and has an exit code for the worst."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from config.edit import set_values
from config.settings import load
from emulator.aws import EmulatedAws
from scripts.check.validation import Validation, ValidationOutcome, outcomes
from scripts.core import options
from tests.command_line import ultracluster
from tests.parallelcluster_versions import OTHER, another_version
from tests.stacks.deployments import deploy
from toolchain.assembly import Assembly
from toolchain.parallelcluster import Message
from ultracluster.domain import cluster_rules
from ultracluster.domain.parallelcluster_versions import not_asked
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
def test_a_version_whose_package_is_not_here_is_answered_for_with_its_images_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A root volume that the pinned version takes is too small for images of the other one."""
    file, small = tmp_path / "trn1-16.yaml", tmp_path / "small.yaml"
    text = (options.CONFIG / file.name).read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    small.write_text(text.replace("name: trn1-16", "name: small"), encoding="utf-8")
    monkeypatch.setattr(options, "CONFIG", tmp_path)
    monkeypatch.setattr(cluster_rules, "_version_violations", lambda _: ())

    def synthesized(settings: Path, directory: Path) -> Assembly:
        return Assembly(deploy(load(settings.with_suffix(".yaml")), directory).directory)

    with another_version() as other:
        for path in (file, small):
            set_values(path, {("cluster", "parallelcluster_version"): OTHER})
        set_values(small, {("cluster", "head_node", "root_volume_gib"): other.root_volume_gib - 1})
        right, wrong = outcomes(["trn1-16", "small"], synthesized)
    assert right.report
    assert (right.code, right.report.not_asked) == (0, not_asked(OTHER))
    assert any(not_asked(OTHER) in str(block) for block in right.blocks())
    assert wrong.report
    said = f"ERROR RootVolumeSizeValidator: Root volume size {other.root_volume_gib - 1} GiB"
    assert any(said in each for each in wrong.report.problems)


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
    assert ultracluster("validate", "--output", "json") == code
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["deployment"], first["code"], first["error"]) == ("e", code, outcome.error)
    assert (first["report"] or {}).get("problems") == (list(report.problems) if report else None)
    assert (second["deployment"], second["code"]) == ("a", 0)
