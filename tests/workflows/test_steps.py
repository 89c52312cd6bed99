"""What steps with some logic do: rounds of a deployment, and the scripts that write comments and issues."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.workflows import run, steps

BOT = "github-actions[bot]"
MARKER = "<!-- ultracluster:dev -->"
OTHER = "<!-- ultracluster:dev-2 -->"
QUIET = "<!-- nothing changes -->"
STAND_IN = """
const calls = [];
const call = (name) => (given) => { calls.push({ name, ...given }); };
const context = { repo: { owner: "o", repo: "r" }, issue: { number: 7 } };
const rest = { issues: {
  listComments: "listComments", listForRepo: "listForRepo",
  createComment: call("createComment"), updateComment: call("updateComment"),
  create: call("create"), update: call("update"),
} };
const github = { rest, paginate: async (name, given) => { calls.push({ name, ...given }); return THERE; } };
(async () => { SCRIPT })().then(() => console.log(JSON.stringify(calls)));
"""
"""What actions/github-script gives a script, recording what it calls."""


def body_of(name: str) -> dict[str, Any]:
    [found] = [each.body for each in steps() if each.body.get("name") == name]
    return dict(found)


def calls(name: str, directory: Path, *there: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the script of a step where these comments or issues exist, and return its calls but for the first, a list."""
    script = body_of(name)["with"]["script"]
    program = STAND_IN.replace("THERE", json.dumps(there)).replace("SCRIPT", script)
    done = subprocess.run(["node", "-e", program], cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    [listing, *found] = json.loads(done.stdout)
    assert listing["name"].startswith("list")
    return list(found)


def comment(directory: Path, body: str, *there: dict[str, Any], name: str = "dev") -> list[dict[str, Any]]:
    (directory / "review").mkdir()
    (directory / "review" / f"{name}.md").write_text(body, encoding="utf-8")
    return calls("Write or update a comment for each configuration", directory, *there)


def written(number: int, body: str, login: str = BOT) -> dict[str, Any]:
    return {"id": number, "number": number, "body": body, "user": {"login": login}}


def test_the_first_comment_is_written(tmp_path: Path) -> None:
    [call] = comment(tmp_path, f"{MARKER}\nnew", written(1, f"{OTHER}\nold"), written(2, f"{MARKER}\nold", "somebody"))
    assert (call["name"], call["issue_number"], call["body"]) == ("createComment", 7, f"{MARKER}\nnew")


def test_a_comment_that_is_there_is_kept_up_to_date(tmp_path: Path) -> None:
    [call] = comment(tmp_path, f"{MARKER}\n{QUIET}", written(1, f"{OTHER}\nold"), written(2, f"{MARKER}\nold"))
    assert (call["name"], call["comment_id"], call["body"]) == ("updateComment", 2, f"{MARKER}\n{QUIET}")


def test_nobody_is_told_of_nothing(tmp_path: Path) -> None:
    assert comment(tmp_path, f"{MARKER}\n{QUIET}") == []


def test_a_text_that_is_no_comment_of_its_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="other\\.md does not begin with its marker"):
        comment(tmp_path, f"{MARKER}\nnew", name="other")


PINS = "<!-- ultracluster:pins -->"


@pytest.mark.parametrize(
    ("body", "there", "expected"),
    [
        (f"{PINS}\nnew", [], [("create", None)]),
        (f"{PINS}\nnew", [written(1, f"{PINS}\nold", "somebody")], [("create", None)]),
        (f"{PINS}\nnew", [written(1, f"{PINS}\nold")], [("update", "open")]),
        (f"{PINS}\n<!-- nothing newer -->", [written(1, f"{PINS}\nold")], [("update", "closed")]),
        (f"{PINS}\n<!-- nothing newer -->", [], []),
    ],
)
def test_one_issue_tells_of_newer_versions(
    tmp_path: Path, body: str, there: list[dict[str, Any]], expected: list[tuple[str, str | None]]
) -> None:
    (tmp_path / "pins.md").write_text(body, encoding="utf-8")
    found = calls("Keep one issue up to date", tmp_path, *there)
    assert [(call["name"], call.get("state")) for call in found] == expected


@pytest.mark.parametrize(("code", "ends_with", "output"), [(0, 0, "true"), (75, 0, "false"), (1, 1, ""), (2, 2, "")])
def test_a_round_says_whether_another_one_is_needed(tmp_path: Path, code: int, ends_with: int, output: str) -> None:
    program = tmp_path / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho "$*" >&2\nexit {code}\n', encoding="utf-8")
    program.chmod(0o755)
    done = run(body_of("Deploy, or follow what is being deployed")["run"], tmp_path, ENVIRONMENT="dev")
    assert done.returncode == ends_with
    assert done.stderr == "-m scripts.deliver dev --minutes 110\n"
    outputs = tmp_path / "GITHUB_OUTPUT"
    assert (outputs.read_text(encoding="utf-8") if outputs.exists() else "") == (f"done={output}\n" if output else "")


def test_each_round_follows_the_one_before() -> None:
    rounds = [each.body for each in steps() if each.body.get("uses") == "./.github/actions/deliver"]
    assert [each["id"] for each in rounds] == ["first", "second", "third"]
    assert [each["if"] for each in rounds] == [
        "steps.target.outputs.ready == 'true'",
        "steps.first.outputs.done == 'false'",
        "steps.second.outputs.done == 'false'",
    ]
    assert body_of("Say what a re-run does")["if"] == "steps.third.outputs.done == 'false'"
