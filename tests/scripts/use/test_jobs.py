"""`jobs list` and `jobs cancel`, with what Slurm printed once, and `jobs logs`."""

from __future__ import annotations

import json
from unittest.mock import Mock

import pytest

from scripts.account.remote.head_node import Answer
from scripts.use import jobs
from tests.command_line import ultracluster
from tests.scripts.slurm_samples import RECORDED, answer

STATE = RECORDED


class FakeHeadNode:
    """Answers each script in the same way, and keeps them."""

    scripts: list[str]

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.scripts = []

    def run(self, script: str) -> Answer:
        self.scripts.append(script)
        return self.answer


@pytest.fixture
def head_node(monkeypatch: pytest.MonkeyPatch) -> FakeHeadNode:
    fake = FakeHeadNode(Answer(0, STATE, ""))
    monkeypatch.setattr(jobs, "HeadNode", lambda _: fake)
    return fake


def test_the_queue_is_listed(head_node: FakeHeadNode, capsys: pytest.CaptureFixture[str]) -> None:
    assert ultracluster("jobs", "list", "trn1-16", "--output", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert ultracluster("jobs", "list", "trn1-16") == 0
    text = capsys.readouterr().out
    assert document["jobs"]
    assert f"{document['running']} running, {document['waiting']} waiting" in text
    for job in document["jobs"]:
        assert str(job["number"]) in text


def test_why_a_job_waits_for_accounting_is_explained_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = [(number, "ann", "trn1", "PENDING", 4, "0:00", "AssocGrpNodeLimit", "train") for number in (7, 8)]
    state = answer({"trn1": "up"}, jobs=waiting)
    monkeypatch.setattr(jobs, "HeadNode", lambda _: FakeHeadNode(Answer(0, state, "")))
    assert ultracluster("jobs", "list", "trn1-16") == 0
    text = capsys.readouterr().out
    assert text.count("AssocGrpNodeLimit: Jobs of the account") == 1
    assert "raise `max_nodes` of the account" in text
    assert "./ultracluster deploy trn1-16" in text


def test_jobs_are_cancelled(head_node: FakeHeadNode, capsys: pytest.CaptureFixture[str]) -> None:
    head_node.answer = Answer(0, "", "")
    assert ultracluster("jobs", "cancel", "trn1-16", "12", "13_4", "--yes") == 0
    assert head_node.scripts[-1].splitlines()[-1] == "scancel -- 12 13_4"
    assert capsys.readouterr().out == "Cancelled: 12, 13_4\n"
    assert ultracluster("jobs", "cancel", "trn1-16", "12", "13_4", "--yes", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out) == {"jobs": ["12", "13_4"]}


def test_what_slurm_refuses(head_node: FakeHeadNode, capsys: pytest.CaptureFixture[str]) -> None:
    head_node.answer = Answer(1, "", "scancel: error: Kill job error on job id 99: Invalid job id specified\n")
    assert ultracluster("jobs", "cancel", "trn1-16", "99", "--yes") == 1
    assert "Invalid job id specified" in capsys.readouterr().err


def test_nothing_is_cancelled_without_an_answer(head_node: FakeHeadNode) -> None:
    assert ultracluster("jobs", "cancel", "trn1-16", "12") == 2
    assert head_node.scripts == []


@pytest.mark.parametrize("before", [["trn1-16"], []])
def test_logs_of_a_job_are_those_of_the_command_logs(monkeypatch: pytest.MonkeyPatch, before: list[str]) -> None:
    monkeypatch.setenv("ULTRACLUSTER_DEPLOYMENT", "trn1-16")
    view = Mock()
    monkeypatch.setattr("scripts.watch.logs.show.LogView", view)
    selection = ["--follow", "--since", "2h", "--lines", "7", "--output", "json"]
    assert ultracluster("jobs", "logs", *before, "12_3", *selection) == 0
    assert ultracluster("logs", "trn1-16", "--job", "12_3", *selection) == 0
    of_job, of_logs = (call.kwargs for call in view.call_args_list)
    assert of_job == of_logs
    assert of_job["job"] == "12_3"
    assert ultracluster("jobs", "logs", "trn1-16", "1;reboot") == 2
