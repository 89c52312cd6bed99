"""pipeline.yaml: what is accepted, what is reported about the rest, and what workflows get of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from config.pipeline import PATH, PLACEHOLDER, SCHEMA_PATH, Pipeline, json_schema, load
from config.settings import SettingsError
from scripts.change.pipeline import outputs_of
from tests.command_line import ultracluster

ACCOUNT = "123456789012"
PROVIDER = "arn:aws:iam::{}:oidc-provider/token.actions.githubusercontent.com"
FORK = Path(__file__).parents[1] / "fork"
FILLED = (FORK / "pipeline.yaml").read_text(encoding="utf-8")
EMPTY = FILLED.replace("Acme/trn1", PLACEHOLDER).replace(f'"{ACCOUNT}"', "null")

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the good file with parts replaced beside the settings of its stages."""
    shutil.copytree(FORK / "config", tmp_path / "config")

    def writer(*edits: tuple[str, str], text: str = FILLED) -> Path:
        for old, new in edits:
            assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in the good file"
            text = text.replace(old, new)
        path = tmp_path / "pipeline.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return writer


def reported(path: Path) -> list[str]:
    with pytest.raises(SettingsError) as error:
        load(path)
    return [line.removeprefix(f"{path}:") for line in str(error.value).splitlines()]


def test_the_file_leaves_no_default_unsaid() -> None:
    pipeline = load()

    assert pipeline.model_fields_set == Pipeline.model_fields.keys()
    assert all(stage.model_fields_set == type(stage).model_fields.keys() for stage in pipeline.stages)


def test_the_schema_is_current_and_the_file_follows_it() -> None:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))

    assert SCHEMA_PATH.read_text(encoding="utf-8") == json_schema(), "run `make snapshots`"
    text = PATH.read_text(encoding="utf-8")
    assert text.splitlines()[0] == f"# yaml-language-server: $schema=config/{SCHEMA_PATH.name}"
    assert list(Draft202012Validator(schema).iter_errors(yaml.safe_load(text))) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("repository: Acme/trn1", "repository: Acme/*", "repository: got 'Acme/*'"),
        ("- name: prod", "- name: dev", "stages: got 'dev'; allowed: another name for each stage"),
        ("- name: prod", "- name: read", "stages: got 'read'; allowed: any other name"),
        ("deployment: trn1-16", "deployment: dev", "stages: got 'dev'; allowed: another deployment for each stage"),
        ("deployment: trn1-16", "deployment: nowhere", "stages[1].deployment: got 'nowhere'; allowed: dev, "),
        (
            "region: us-west-2",
            "region: eu-north-1",
            "stages[0].deployment: got 'us-west-2'; allowed: region eu-north-1",
        ),
        (
            "oidc_provider_arn: null",
            f"oidc_provider_arn: {PROVIDER.format('210987654321')}",
            "oidc_provider_arn: got 'arn:aws:iam::210987654321",
        ),
        ("region: us-west-2", "regoin: us-west-2", "regoin: unknown key; did you mean region?"),
    ],
)
def test_violations(write: Write, old: str, new: str, expected: str) -> None:
    lines = reported(write((old, new)))

    assert any(line.partition(": ")[2].startswith(expected) for line in lines), lines


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("account: null ", 'account: "210987654321" ', "got '210987654321'; allowed: account null or 123456789012"),
        ("name: trn1-16 ", "name: dev ", "config/trn1-16.yaml:5: name: got 'dev'; allowed: another name"),
    ],
)
def test_settings_of_a_stage_that_do_not_fit_the_others_are_refused(
    write: Write, old: str, new: str, expected: str
) -> None:
    path = write()
    prod = path.parent / "config" / "trn1-16.yaml"
    prod.write_text(prod.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    [line] = reported(path)

    assert expected in line


def test_each_stage_has_a_role_and_pull_requests_have_one_of_their_own(write: Write) -> None:
    prod, read = (outputs_of(load(write()), stage) for stage in ("prod", "read"))

    assert prod == {
        "role": f"arn:aws:iam::{ACCOUNT}:role/ultracluster-ci-deploy-prod",
        "region": "us-west-2",
        "deployment": "trn1-16",
        "approval": "true",
        "ready": "true",
    }
    assert (read["role"], read["deployment"]) == (f"arn:aws:iam::{ACCOUNT}:role/ultracluster-ci-read", "")


def test_the_program_prints_outputs_and_notices_about_what_is_missing(
    write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline = load(write(text=EMPTY))
    monkeypatch.setattr("config.pipeline.load", lambda **_: pipeline)

    assert ultracluster("pipeline", "outputs", "dev") == 0
    assert capsys.readouterr() == (
        "role=\nregion=us-west-2\ndeployment=dev\napproval=false\nready=false\n",
        "::notice file=pipeline.yaml::repository is still your-org/your-fork: give your own\n"
        "::notice file=pipeline.yaml::account is null: give the AWS account to deploy to, in quotes\n",
    )

    assert ultracluster("pipeline", "outputs", "staging") == 2
    assert "STAGE: got staging; allowed: read, or a stage of pipeline.yaml: dev, prod" in capsys.readouterr().err
