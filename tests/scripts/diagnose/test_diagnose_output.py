"""`make diagnose`: what it prints, for people and for programs."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from scripts.commands import diagnose as program
from scripts.deployment import Deployment
from scripts.diagnose.diagnose import diagnose
from tests.scripts.account import Operated
from tests.scripts.diagnose.causes.recorded import SAMPLES, Now, deployment, failed, record, shown

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "docs/schemas/diagnose.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("sample", SAMPLES, ids=[f"{each['cause']}-{n}" for n, each in enumerate(SAMPLES)])
def test_the_document_is_as_its_schema_says_and_the_screen_fits(sample: dict[str, str]) -> None:
    found = diagnose(record(sample), Now())
    Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(found.document())
    text = shown(found)
    assert max(map(len, text.splitlines())) <= 80
    assert found.findings[0].cause.title in text
    joined = " ".join(text.replace("\\\n", " ").split())
    for line in found.findings[0].do:
        if line.startswith("$ "):
            assert " ".join(line.removeprefix("$ ").split()) in joined, "the command can be copied"


def test_the_schema_has_no_loose_ends() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    objects = list(_objects(SCHEMA))
    assert len(objects) == 4
    for each in objects:
        assert each["additionalProperties"] is False
        assert set(each["required"]) == set(each["properties"])
        assert all("description" in found or "$ref" in found for found in each["properties"].values())


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield what a schema says of objects, at any depth."""
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for each in schema.values():
            yield from _objects(each)


@pytest.mark.parametrize("found", [deployment()[0], record(SAMPLES[0])], ids=["nothing", "a cause"])
def test_the_schema_refuses_what_it_does_not_know(found: Deployment) -> None:
    document = diagnose(found, Now()).document()
    Draft202012Validator(SCHEMA).validate(document)
    assert not Draft202012Validator(SCHEMA).is_valid({**document, "more": 1})


def test_no_rights_are_an_unknown_outcome_for_programs() -> None:
    made, account = deployment(cluster="CREATE_COMPLETE")
    account.denied = {"describe_stacks"}
    document = diagnose(made, Now()).document()
    Draft202012Validator(SCHEMA).validate(document)
    assert (document["outcome"], document["causes"], document["unknown"]) == ("unknown", [], [])


def test_what_is_long_is_cut_on_the_screen_only() -> None:
    made, account, stack = failed()
    account.event(
        stack, 1, f"CREATE_FAILED AWS::EC2::EIP A: The maximum number of addresses has been reached. {'x' * 5_000}"
    )
    found = diagnose(made)
    assert len(shown(found)) < 3_000
    assert len(found.document()["causes"][0]["evidence"][0]["text"]) > 5_000


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["diagnose", *arguments])
    return program.main()


def test_a_deployment_without_fault_and_one_with(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "trn1-16") == 0
    assert "Nothing failed" in capsys.readouterr().out
    operated.log("ip-10-0-1-2.i-0123.slurm_resume", "INFO - hello", "ERROR - (InsufficientInstanceCapacity)")
    assert run(monkeypatch, "trn1-16", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(document)
    assert [each["id"] for each in document["causes"]] == ["insufficient-capacity"]


def test_who_may_not_read_logs_is_told_so(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    allowed = {"Effect": "Allow", "Action": "cloudformation:DescribeStacks", "Resource": "*"}
    with operated.aws.restricted({"Version": "2012-10-17", "Statement": [allowed]}) as environment:
        operated.act_as(environment, monkeypatch)
        assert run(monkeypatch, "trn1-16") == 1
    text = capsys.readouterr().out
    assert "logs:DescribeLogGroups is not allowed" in text
    assert "ec2:DescribeInstances is not allowed" in text
    assert "Nothing failed" not in text


def test_what_aws_says_is_shown_as_it_is(
    operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    operated.log("ip-10-0-1-2.i-0123.slurm_resume", "ERROR - (InsufficientInstanceCapacity) trn1:free:[b]")
    assert run(monkeypatch, "trn1-16") == 1
    assert "trn1:free:[b]" in capsys.readouterr().out
