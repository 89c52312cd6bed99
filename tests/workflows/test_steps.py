"""What steps with some logic do: the script that writes comments, and others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fake_commands import write_commands
from tests.workflows.workflows import ROOT, Scripted, run, run_script, steps

BOT = "github-actions[bot]"
MARKER = "<!-- ultracluster:dev -->"
OTHER = "<!-- ultracluster:dev-2 -->"
QUIET = "<!-- nothing changes -->"
CONTEXT = {"repo": {"owner": "o", "repo": "r"}, "issue": {"number": 7}, "ref": "refs/heads/main", "sha": "1234"}


def body_of(name: str) -> dict[str, Any]:
    [body] = [each.body for each in steps() if each.body.get("name") == name]
    return dict(body)


def scripted(name: str, directory: Path, method: str, **answer: Any) -> Scripted:
    """Run the script of a step where GitHub answers a method with data, or refuses with a status."""
    body = body_of(name)
    environment = dict.fromkeys(body.get("env", {}), "prod")
    return run_script(body["with"]["script"], directory, CONTEXT, {method: answer}, **environment)


def made(name: str, directory: Path, *there: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the script of a step where these comments exist, and return its calls but for the first, a list."""
    done = scripted(name, directory, "listComments", data=there)
    if done.error:
        raise RuntimeError(done.error)
    [listing, *changes] = done.calls
    assert listing["name"].startswith("list")
    return changes


def comment(directory: Path, body: str, *there: dict[str, Any], name: str = "dev") -> list[dict[str, Any]]:
    (directory / "review").mkdir()
    (directory / "review" / f"{name}.md").write_text(body, encoding="utf-8")
    return made("Write or update a comment for each configuration", directory, *there)


def written(number: int, body: str, login: str = BOT) -> dict[str, Any]:
    return {"id": number, "number": number, "body": body, "user": {"login": login}}


def of_nobody(body: str) -> dict[str, Any]:
    """Return a comment of somebody whose account is deleted."""
    return {**written(1, body), "user": None}


@pytest.mark.parametrize(
    ("body", "there", "expected"),
    [
        (f"{MARKER}\nnew", [written(1, f"{OTHER}\nold")], [("createComment", None)]),
        (f"{MARKER}\nnew", [written(1, f"{MARKER}\nold", "somebody")], [("createComment", None)]),
        (f"{MARKER}\nnew", [of_nobody(f"{MARKER}\nold")], [("createComment", None)]),
        (f"{MARKER}\n{QUIET}", [written(1, f"{MARKER}\nold")], [("updateComment", 1)]),
        (f"{MARKER}\n{QUIET}", [], []),
    ],
)
def test_one_comment_for_each_configuration(
    tmp_path: Path, body: str, there: list[dict[str, Any]], expected: list[tuple[str, int | None]]
) -> None:
    changes = comment(tmp_path, body, *there)
    assert [(call["name"], call.get("comment_id")) for call in changes] == expected
    assert all(call["body"] == body for call in changes)


def test_a_text_that_is_no_comment_of_its_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="other\\.md does not begin with its marker"):
        comment(tmp_path, f"{MARKER}\nnew", name="other")


def test_only_the_newest_commit_is_deployed(tmp_path: Path) -> None:
    newest, name = {"object": {"sha": "1234"}}, "Is it the newest commit?"
    [asked] = scripted(name, tmp_path, "getRef", data=newest).calls
    assert (asked["name"], asked["ref"]) == ("getRef", "heads/main")
    [_, notice, summary, output] = scripted(name, tmp_path, "getRef", data={"object": {"sha": "5678"}}).calls
    assert notice["text"].startswith("heads/main has moved on to 5678")
    assert summary == {"name": "summary", "text": notice["text"]}
    assert (output["key"], output["value"]) == ("stale", "true")


@pytest.mark.parametrize(
    ("rules", "status"),
    [
        (None, 0),
        ([{"type": "branch_policy"}, {"type": "wait_timer"}], 0),
        ([{"type": "required_reviewers"}], 404),
        ([{"type": "required_reviewers"}], 403),
    ],
)
def test_a_stage_that_wants_approval_is_refused_without_reviewers(
    tmp_path: Path, rules: list[dict[str, str]] | None, status: int
) -> None:
    answer = {"data": {"protection_rules": rules}, "status": status}
    done = scripted("Does somebody have to agree?", tmp_path, "getEnvironment", **answer)
    complaint = "refused" if status == 403 else "pipeline.yaml wants an approval for prod"
    assert complaint in done.error
    assert [each["text"][: len(complaint)] for each in done.calls[1:]] == ([] if status == 403 else [complaint])


def test_a_stage_that_wants_approval_and_has_reviewers(tmp_path: Path) -> None:
    rules = [{"type": "branch_policy"}, {"type": "required_reviewers"}]
    answer = {"protection_rules": rules}
    [asked] = scripted("Does somebody have to agree?", tmp_path, "getEnvironment", data=answer).calls
    assert asked["environment_name"] == "prod"
    condition = body_of("Does somebody have to agree?")["if"]
    assert condition == "steps.target.outputs.ready == 'true' && steps.target.outputs.approval == 'true'"


def test_the_summary_of_a_destruction_has_the_result_and_not_the_log(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "destroy.log").write_text("inventory\n\nprogress\n\nDeleted in 8 s: a.\n", encoding="utf-8")
    [script] = [each.body["run"] for each in steps() if (each.file, each.body.get("name")) == ("destroy", "Summary")]
    run(script, tmp_path, DEPLOYMENT="dev", RESULT="success")
    lines = (tmp_path / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8").splitlines()
    assert lines == ["### Destroying `dev`: success", "```", "", "Deleted in 8 s: a.", "```"]


def test_a_job_that_failed_names_the_table_that_helps(tmp_path: Path) -> None:
    advice = [each for each in steps() if each.body.get("name") == "What to do"]
    assert [(each.file, each.job) for each in advice] == [
        ("deploy-stage", "target"),
        ("deploy-stage", "deploy"),
        ("destroy", "confirm"),
        ("destroy", "destroy"),
        ("pull-request", "check"),
        ("pull-request", "test"),
        ("pull-request", "review"),
        ("scheduled", "drift"),
    ]
    [script] = {each.body["run"] for each in advice}
    assert {each.body["if"] for each in advice} == {"failure()"}
    run(script, tmp_path, GITHUB_SERVER_URL="https://github.com", GITHUB_REPOSITORY="o/r", GITHUB_SHA="1234")
    text = (tmp_path / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8")
    assert ": https://github.com/o/r/blob/1234/docs/reference/pipeline.md#when-a-job-fails\n" in text
    assert "\n### When a job fails\n" in (ROOT / "docs/reference/pipeline.md").read_text(encoding="utf-8")


def test_the_summary_of_a_deployment_that_failed_has_the_end_of_its_log_and_the_diagnosis(tmp_path: Path) -> None:
    write_commands(tmp_path, {"ultracluster": 'echo "$*"'})
    (tmp_path / "build").mkdir()
    log = [f"line {number}" for number in range(100)]
    (tmp_path / "build" / "deploy.log").write_text("\n".join([*log, "refused"]) + "\n", encoding="utf-8")
    run(body_of("Diagnosis")["run"], tmp_path, DEPLOYMENT="dev")
    lines = (tmp_path / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8").splitlines()
    assert lines == ["```", *log[-19:], "refused", "diagnose dev", "```"]
    assert "steps.deploy.outcome == 'failure'" in body_of("Diagnosis")["if"]
