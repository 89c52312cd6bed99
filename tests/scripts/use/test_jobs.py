"""`jobs list`, `jobs show` and `jobs cancel`, with what the head node answers, and `jobs logs`."""

from __future__ import annotations

import json
import re
import shlex
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
    instance_id = "i-1"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.scripts = []

    def run(self, script: str, **_: int) -> Answer:
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
        assert job["id"] in text


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


def test_a_task_of_an_array_has_its_number_in_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And its own number beside, by which no other command knows it."""
    rows = [
        (18, "ann", "trn1", "RUNNING", 1, "0:10", "None", "sweep", "17", "1", "10:00", "trn1-dy-a-1"),
        (17, "ann", "trn1", "PENDING", 1, "0:00", "JobArrayTaskLimit", "sweep", "17", "2-9%4", "10:00", ""),
        (20, "ann", "trn1", "PENDING", 1, "0:00", "Priority", "one", "20", "N/A", "UNLIMITED", ""),
    ]
    state = answer({"trn1": "up"}, counts=[(1, "trn1", "RUNNING"), (9, "trn1", "PENDING")], jobs=rows)
    monkeypatch.setattr(jobs, "HeadNode", lambda _: FakeHeadNode(Answer(0, state, "")))
    assert ultracluster("jobs", "list", "trn1-16") == 0
    text = capsys.readouterr().out
    assert [line.split()[0] for line in text.splitlines()[3:6]] == ["17_1", "17_[2-9%4]", "20"]
    assert ultracluster("jobs", "list", "trn1-16", "--output", "json") == 0
    listed = json.loads(capsys.readouterr().out)["jobs"]
    assert [(each["id"], each["array"], each["tasks"], each["number"]) for each in listed] == [
        ("17_1", 17, "1", 18),
        ("17_[2-9%4]", 17, "2-9%4", 17),
        ("20", None, "", 20),
    ]
    assert next((each["time_limit"], each["node_list"]) for each in listed) == ("10:00", "trn1-dy-a-1")


ENDED = ["15", "ann", "trn1", "CANCELLED by 1000", "2", "0:10", "train", "12_3", "1:00:00", "trn1-dy-a-[1-2]", "0:15",
         "2026-11-28T16:31:57", "2026-11-28T16:32:07"]  # fmt: skip


@pytest.mark.parametrize(("options", "seconds"), [(["--all"], 86400), (["--since", "2h"], 7200)])
def test_ended_jobs_are_listed(
    head_node: FakeHeadNode, options: list[str], seconds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = {"ended": {"accounting": False, "total": 70, "jobs": [ENDED]}}
    head_node.answer = Answer(0, f"{STATE}{json.dumps(ended)}\n", "")
    assert ultracluster("jobs", "list", "trn1-16", *options) == 0
    text = capsys.readouterr().out
    assert head_node.scripts[-1].split()[-3:] == ["ended", str(seconds), "50"]
    assert "70 ended in the last" in text
    assert re.search(r"12_3 ann +trn1 +CANCELLED by 1000 +0:15 +2 +0:10 +1:00:00 +11-28 16:32 +train", text)
    assert "There is no accounting" in text
    assert ultracluster("jobs", "list", "trn1-16", *options, "--output", "json") == 0
    document = json.loads(capsys.readouterr().out)
    [job] = document["ended"]
    assert (job["id"], job["state"], job["reason"], job["exit_code"]) == ("12_3", "CANCELLED", "by 1000", "0:15")
    assert (job["ended"], document["since_seconds"]) == ("2026-11-28T16:32:07Z", seconds)


def test_accounting_that_does_not_answer_is_said_first_and_not_asked_again(
    head_node: FakeHeadNode, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sacct would wait for it longer than the command may take."""
    ended = {"ended": {"accounting": False, "total": 1, "jobs": [[*ENDED[:3], "FAILED", *ENDED[4:]]]}}
    state = answer({"trn1": "up"}, accounting="sacctmgr had no answer within 3 s")
    head_node.answer = Answer(0, f"{state}{json.dumps(ended)}\n", "")
    assert ultracluster("jobs", "list", "trn1-16", "--all") == 0
    text = capsys.readouterr().out
    assert head_node.scripts[-1].split()[-4:] == ["ended", "86400", "50", "controller"]
    assert text.startswith(
        "Slurm's accounting does not answer: sacctmgr had no answer within 3 s (./ultracluster diagnose"
    )
    assert "The newest that failed is 12_3; how it ended:\n  ./ultracluster jobs show trn1-16 12_3\n" in text


def test_slurm_that_does_not_answer_leads_to_its_diagnosis(
    head_node: FakeHeadNode, capsys: pytest.CaptureFixture[str]
) -> None:
    head_node.answer = Answer(124, "", "slurmctld runs, and gave no answer within 8 s")
    for words in (["list"], ["show", "12"], ["cancel", "12", "--yes"]):
        assert ultracluster("jobs", words[0], "trn1-16", *words[1:]) == 1
        said = capsys.readouterr().err
        assert "slurmctld runs, and gave no answer" in said
        assert said.endswith("hint: ./ultracluster diagnose trn1-16\n")


def known(**more: object) -> str:
    return json.dumps({"job": {"number": "12", "id": "12", "state": "RUNNING", "user": "ann", "output": "", **more}})


@pytest.mark.parametrize(
    ("job", "shown", "meaning"),
    [
        ({"state": "PENDING", "reason": "JobHeldUser"}, "PENDING, JobHeldUser", "scontrol release 12"),
        ({"state": "FAILED", "exit_code": "3:0", "output": "/o"}, "FAILED, exit code 3:0", "jobs logs trn1-16 12"),
        ({"of_array": {"FAILED": "2-3", "COMPLETED": "1"}}, "FAILED    12_[2-3]", "jobs show trn1-16 12_2"),
        ({"of_array": {"FAILED": "2", "PENDING": "3-9"}}, "PENDING 12_[3-9]", "jobs cancel trn1-16 12 --array"),
        ({"state": "FAILED", "exit_code": "0:1", "reason": "BadConstraints"}, "BadConstraints", "it has never run"),
    ],
)
def test_a_job_is_shown_with_what_its_state_means(
    head_node: FakeHeadNode, job: dict[str, object], shown: str, meaning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    head_node.answer = Answer(0, known(**job), "")
    assert ultracluster("jobs", "show", "trn1-16", "12") == 0
    text = capsys.readouterr().out
    assert shown in text
    assert meaning in text


def test_a_job_that_nobody_knows(head_node: FakeHeadNode, capsys: pytest.CaptureFixture[str]) -> None:
    head_node.answer = Answer(0, '{"job": null}', "")
    assert ultracluster("jobs", "show", "trn1-16", "12") == 1
    assert "hint: ./ultracluster jobs list trn1-16 --all" in capsys.readouterr().err


# --- cancel ---


def chosen(asked: str, problem: str = "", left: int = 0, **more: object) -> dict[str, object]:
    row = {
        "asked": asked, "problem": problem, "words": [asked], "live": 1, "left": {"RUNNING": left} if left else {},
        "said": "", "before": {"RUNNING": 1}, "tasks": {}, "user": "ann", "name": "train",
    }  # fmt: skip
    return {**row, **more}


def answers(*found: dict[str, object]) -> Answer:
    return Answer(0, json.dumps({"cancel": found}) + "\n" + json.dumps({"chosen": found}), "")


def test_jobs_are_cancelled_as_slurm_says_afterwards(
    head_node: FakeHeadNode, capsys: pytest.CaptureFixture[str]
) -> None:
    head_node.answer = answers(chosen("12"), chosen("13_[4-9]"))
    words = ["jobs", "cancel", "trn1-16", "12", "13_[4-9]", "--yes"]
    assert ultracluster(*words) == 0
    assert shlex.split(head_node.scripts[-1])[-4:] == ["cancel", "tasks", "12", "13_[4-9]"]
    assert capsys.readouterr().out == "Cancelled: 12, 13_[4-9]\n"
    assert ultracluster(*words, "--array", "--output", "json") == 0
    assert shlex.split(head_node.scripts[-1])[-3] == "arrays"
    assert json.loads(capsys.readouterr().out) == {"jobs": ["12", "13_[4-9]"], "not_cancelled": []}


def test_what_slurm_still_has_is_not_cancelled(head_node: FakeHeadNode, capsys: pytest.CaptureFixture[str]) -> None:
    head_node.answer = answers(chosen("12", left=1, said="error: x"), chosen("6", words=[], before={"COMPLETED": 1}))
    assert ultracluster("jobs", "cancel", "trn1-16", "12", "6", "--yes") == 1
    assert capsys.readouterr().out == (
        "Not cancelled: 12: Slurm still has RUNNING; scancel: error: x\nNot cancelled: 6: it has ended: COMPLETED\n"
    )


def test_a_job_that_does_not_exist_is_not_cancelled(
    head_node: FakeHeadNode, capsys: pytest.CaptureFixture[str]
) -> None:
    head_node.answer = answers(chosen("12"), chosen("999", "unknown", words=[]))
    assert ultracluster("jobs", "cancel", "trn1-16", "12", "999", "--yes") == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert "Slurm knows no job 999, or no longer knows it: nothing was cancelled" in errors


def test_an_array_is_cancelled_when_it_is_asked_for(
    head_node: FakeHeadNode, capsys: pytest.CaptureFixture[str]
) -> None:
    head_node.answer = answers(chosen("17", "array", tasks={"RUNNING": "1", "PENDING": "2-9"}))
    assert ultracluster("jobs", "cancel", "trn1-16", "17", "--yes") == 2
    assert "17 is an array of jobs: RUNNING 17_1, PENDING 17_[2-9]\nallowed: some of" in capsys.readouterr().err


def test_the_question_says_what_is_cancelled(head_node: FakeHeadNode, monkeypatch: pytest.MonkeyPatch) -> None:
    head_node.answer = answers(chosen("17_[2-9]", before={"PENDING": 8}))
    asked: list[str] = []
    monkeypatch.setattr("scripts.core.terminal.require_answers", lambda **_: None)
    monkeypatch.setattr("scripts.core.terminal.confirm", asked.append)
    assert ultracluster("jobs", "cancel", "trn1-16", "17_[2-9]") == 0
    assert asked == ["Jobs to cancel:\n  17_[2-9]  ann  8 PENDING  train"]
    assert [shlex.split(each)[-3] for each in head_node.scripts] == ["chosen", "cancel"]


@pytest.mark.parametrize("job", ["x", "12_", "12_[3", "1;reboot", "12_[3-]", "12_[3-4]x", "0", "--all", "12_3_4"])
def test_what_is_no_job_is_rejected(head_node: FakeHeadNode, job: str) -> None:
    assert ultracluster("jobs", "cancel", "trn1-16", "--yes", "--", job) == 2
    assert head_node.scripts == []


def test_nothing_is_cancelled_without_an_answer(head_node: FakeHeadNode) -> None:
    assert ultracluster("jobs", "cancel", "trn1-16", "12") == 2
    assert head_node.scripts == []


@pytest.mark.parametrize("before", [["trn1-16"], []])
def test_logs_of_a_job_are_those_of_the_command_logs(monkeypatch: pytest.MonkeyPatch, before: list[str]) -> None:
    monkeypatch.setenv("ULTRACLUSTER_DEPLOYMENT", "trn1-16")
    view = Mock()
    monkeypatch.setattr("scripts.watch.logs.show.LogView", view)
    selection = ["--follow", "--nodes", "--since", "2h", "--lines", "7", "--output", "json"]
    assert ultracluster("jobs", "logs", *before, "12_3", *selection) == 0
    assert ultracluster("logs", "trn1-16", "--job", "12_3", *selection) == 0
    of_job, of_logs = (call.kwargs for call in view.call_args_list)
    assert of_job == of_logs
    assert of_job["job"] == "12_3"
    assert ultracluster("jobs", "logs", "trn1-16", "1;reboot") == 2
