"""The commands of the workflows and of the pipeline inside AWS, in their order, in an emulated account.

Each job of GitHub and each action of CodePipeline has the permissions of its role and no others, as far as the emulated
IAM judges them: emulator/README.md, "Who may do what". `make lint`, `type`, `docs` and `test` are not run: this is one
of those tests. What GitHub and AWS themselves do is in tests/workflows/runner.py and code_pipeline.py.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from config.edit import set_values
from config.settings import load
from emulator.aws import ACCOUNT, EmulatedAws
from emulator.machines import image
from scripts.emulated import accounts
from tests.configurations import CONFIG
from tests.fake_commands import write_commands
from tests.stacks.pipelines import lets_in
from tests.workflows.code_pipeline import Execution
from tests.workflows.runner import LIMIT, Repository, Run
from tests.workflows.sessions import assume

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.system, pytest.mark.validation]

ROOT = Path(__file__).parents[3]
NAME = "Acme/trn1"
REGION = "us-west-2"
DEV, PROD = "team-dev", "prod"
DEPLOYING = (
    f"arn:aws:iam::{ACCOUNT}:role/ultracluster-ci-deploy-dev",
    f"arn:aws:iam::{ACCOUNT}:role/cdk-hnb659fds-deploy-role-{ACCOUNT}-{REGION}",
)
"""Of dev's jobs, and of the CDK, which assumes it by the first."""
CONNECTION = f"arn:aws:codeconnections:{REGION}:{ACCOUNT}:connection/0123"
OWN = {DEV: "dev", PROD: "trn1-16"}
"""Settings of the team, and the shipped ones that they are copies of: docs/guides/github.md."""
TYPO = ("use_system\n", "use_system\nsystemctl reload-settings\n")
"""Of a head node's script: bash, shellcheck and the templates have nothing against it."""
SIGN = "/var/tmp/go-on"  # noqa: S108 - of a machine of its own
PATIENCE = ("use_system\n", f"use_system\nuntil [[ $cluster != {DEV} || -e {SIGN} ]]; do sleep 1; done\n")
FOLLOWED = "Yours is in progress, and is followed first:"


class Team:
    """A fork of this project on GitHub, an account, and the people who look after both."""

    def __init__(self, directory: Path, aws: EmulatedAws) -> None:
        self.aws = aws
        self.approvals: list[str] = []
        self.meanwhile: Callable[[], None] = lambda: None
        runner = {**aws.environment, **accounts.variables(REGION), "COLUMNS": "200"}
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "VIRTUAL_ENV"):
            runner.pop(name, None)
        self.own = {**runner, **aws.settings}
        del runner["PATH"]
        self.github = Repository(NAME, directory / "checkout", runner, self._sign_in, self.approve, {"prod"})
        write_commands(directory / "commands", {"make": 'echo "make $*"'})

    def _sign_in(self, claims: Mapping[str, str], role_arn: str, seconds: int) -> dict[str, str]:
        role = self.aws.client("iam", REGION).get_role(RoleName=role_arn.rpartition("/")[2])["Role"]
        trusts = lets_in(role["AssumeRolePolicyDocument"], claims, self._provider(claims))
        if not trusts or seconds > role["MaxSessionDuration"]:
            raise PermissionError("Not authorized to perform sts:AssumeRoleWithWebIdentity")
        return assume(self.aws.client("sts", REGION), self.aws, role_arn, seconds)

    def _provider(self, claims: Mapping[str, str]) -> str | None:
        """Return the ARN of the account's provider for a token: it knows its issuer and its audience."""
        iam = self.aws.client("iam", REGION)
        for each in iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]:
            provider = iam.get_open_id_connect_provider(OpenIDConnectProviderArn=each["Arn"])
            issuer = provider["Url"].removeprefix("https://")
            if claims["iss"] == f"https://{issuer}" and claims["aud"] in provider["ClientIDList"]:
                return str(each["Arn"])
        return None

    def approve(self, name: str) -> None:
        self.approvals.append(name)
        then, self.meanwhile = self.meanwhile, lambda: None
        then()

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command with the credentials of somebody who may do everything."""
        done = subprocess.run(
            ["./ultracluster", *words], cwd=self.github.checkout, env=self.own, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def edit(self, nodes: Mapping[str, int] | None = None, *, script: tuple[str, str] | None = None) -> None:
        """Change what is merged: the most nodes of deployments, or words of the head node's script."""
        self.github.git("checkout", "--quiet", "--force", "--detach", "main")
        for name, number in (nodes or {}).items():
            path = self.github.checkout / "config" / f"{name}.yaml"
            set_values(path, {("cluster", "queues", 0, "compute_resources", 0, "max_count"): number})
        if script is not None:
            path = self.github.checkout / "nodes" / "head_node.sh"
            text = path.read_text(encoding="utf-8")
            assert script[0] in text
            path.write_text(text.replace(*script), encoding="utf-8")

    def deploys(self, *, sha: str | None = None, failing: tuple[str, ...] = ()) -> Run:
        """Run the workflow that a merge starts, in which these steps fail and no others."""
        done = self.github.run("deploy", "push", sha=sha or self.github.git("rev-parse", "main"))
        assert tuple(done.failed) == failing, done.text
        return done

    @contextmanager
    def expiring(self) -> Iterator[None]:
        """Let the sessions of a job end, and of the CDK in it, while dev's cluster is updated."""

        def expire() -> None:
            wait_until(lambda: self.statuses(DEV).get(f"{DEV}-cluster") == "UPDATE_IN_PROGRESS")
            for role_arn in DEPLOYING:
                self.aws.expire(role_arn)

        with ThreadPoolExecutor() as pool:
            expired = pool.submit(expire)
            yield
            expired.result(LIMIT)

    def stacks(self, name: str) -> list[dict[str, Any]]:
        stacks = self.aws.client("cloudformation", REGION).describe_stacks()["Stacks"]
        return [each for each in stacks if each["StackName"].startswith(f"{name}-")]

    def statuses(self, name: str) -> dict[str, str]:
        return {each["StackName"]: each["StackStatus"] for each in self.stacks(name)}

    def on_head_node(self, command: str) -> None:
        """Run a command on the head node of dev."""
        tags = {"parallelcluster:cluster-name": DEV, "parallelcluster:node-type": "HeadNode"}
        wanted = {**{f"tag:{key}": value for key, value in tags.items()}, "instance-state-name": "running"}
        filters = [{"Name": key, "Values": [value]} for key, value in wanted.items()]
        [found] = self.aws.client("ec2", REGION).describe_instances(Filters=filters)["Reservations"]
        [instance] = [each["InstanceId"] for each in found["Instances"]]
        asked = {"DocumentName": "AWS-RunShellScript", "Parameters": {"commands": [command]}}
        self.aws.client("ssm", REGION).send_command(InstanceIds=[instance], **asked)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds.

    Raises:
        TimeoutError: It does not for far longer than anything takes here.
    """
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.05)


@contextmanager
def team(directory: Path, connection: str | None = None) -> Iterator[Team]:
    """Do what docs/guides/github.md says up to the first merge, or with a connection docs/guides/codepipeline.md."""
    image.prepare()
    checkout = directory / "checkout"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, checkout / name, follow_symlinks=False)
    for own, shipped in OWN.items():
        shutil.copy(CONFIG / f"{shipped}.yaml", checkout / "config" / f"{own}.yaml")
        set_values(checkout / "config" / f"{own}.yaml", {("name",): own})
    pipeline = (ROOT / "tests/fork/pipeline.yaml").read_text(encoding="utf-8").replace("../../config/", "config/")
    for own, shipped in OWN.items():
        pipeline = pipeline.replace(f"deployment: {shipped}\n", f"deployment: {own}\n")
    pipeline = pipeline.replace("connection_arn: null", f"connection_arn: {connection or 'null'}")
    (checkout / "pipeline.yaml").write_text(pipeline, encoding="utf-8")
    with accounts.account(print, speed="fast", nodes=True) as account:
        made = Team(directory, account.aws)
        made.github.found()
        made.run("version")
        write_golden(made, *OWN)
        made.github.commit("Settings of our own")
        for own in OWN:
            accounts.create_prerequisites(account.aws, load(checkout / "config" / f"{own}.yaml"))
        made.run("bootstrap", DEV)
        if connection is None:
            made.run("pipeline", "deploy", "--yes")
        with account.aws.judged():
            yield made


def write_golden(of: Team, *names: str) -> None:
    """Write the golden templates of deployments, as `make snapshots` does for all."""
    chosen = " or ".join(f"golden_files[{name}]" for name in names)
    python = str(of.github.checkout / ".venv/bin/python")
    words = (python, "-m", "pytest", "-q", "--update-snapshots", "tests/stacks/test_snapshots.py", "-k", chosen)
    done = subprocess.run(words, cwd=of.github.checkout, env=of.own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def pull_request(of: Team, head: str, repository: str = NAME, *, only: tuple[str, ...] = ()) -> Run:
    """Run the workflow of a pull request from a repository; with `only` these of its jobs."""
    sha = of.github.merged(head)
    request = {"number": 7, "head": {"repo": {"full_name": repository}}, "user": {"login": "grace"}}
    event = {"pull_request": request, "repository": {"private": False}}

    def wanted(job: str) -> bool:
        return not only or job in only

    return of.github.run("pull-request", "pull_request", jobs=wanted, sha=sha, ref="refs/pull/7/merge", event=event)


def merge_the_first(of: Team) -> None:
    """Everything is made, and prod waits for its reviewer."""
    first = of.deploys()
    assert of.approvals == ["prod"]
    assert set(of.statuses(DEV).values()) == set(of.statuses(PROD).values()) == {"CREATE_COMPLETE"}
    for stage in ("dev", "prod"):
        assert "Healthy." in first[f"{stage}/deploy"].summary


def review_what_is_refused(of: Team) -> None:
    """A pull request that ParallelCluster refuses, and one for which the account has no room: both say so."""
    before = [of.stacks(name) for name in OWN]
    of.edit()
    path = of.github.checkout / "config" / f"{DEV}.yaml"
    refused = "\n  overrides:\n    HeadNode:\n      Dcv:\n        Enabled: true\n        AllowedIps: 203.0.113.0/24\n"
    path.write_text(path.read_text(encoding="utf-8") + refused, encoding="utf-8")
    write_golden(of, DEV)
    desktops = of.github.commit("Desktops", branch="desktops")
    done = pull_request(of, desktops, only=("check", "review", "comment"))
    assert done.failed == ["check: Ask ParallelCluster about every configuration"], done.text
    assert f"{DEV}: REJECTED" in done["check"].summary
    assert "does not have a GPU" in done["check"].summary
    assert "#when-a-job-fails" in done["check"].summary
    [comment] = of.github.comments
    assert "ParallelCluster was not asked" in comment["body"], comment["body"]
    of.github.comments.clear()

    of.edit()
    set_values(path, {("storage", "file_system", "capacity_gib"): 120_000})
    write_golden(of, DEV)
    done = pull_request(of, of.github.commit("Too large", branch="too-large"), only=("review", "comment"))
    assert done.failed == [], done.text
    [comment] = of.github.comments
    assert "Preflight: not ready to deploy" in comment["body"], comment["body"]
    assert "of 100,800 GiB" in comment["body"], comment["body"]
    of.github.comments.clear()
    assert [of.stacks(name) for name in OWN] == before
    assert of.approvals == ["prod"]


def review_and_merge(of: Team) -> None:
    """ParallelCluster is asked, templates are made, and comments have the plans.

    Nothing changes before the merge, and nothing of prod before its reviewer agrees.
    """
    of.edit({DEV: 3, PROD: 17})
    write_golden(of, *OWN)
    change = of.github.commit("More nodes", branch="more-nodes")
    before = [of.stacks(name) for name in OWN]
    done = pull_request(of, change)
    assert (done.result, done.failed) == ("success", []), done.text
    assert f"{DEV}: accepted" in done["check"].summary
    made = re.findall("^make .*", done["check"].log + done["test"].log, re.MULTILINE)
    assert [*dict.fromkeys(made)] == ["make lint", "make type", "make docs", "make test"]
    for name, comment in zip((PROD, DEV), of.github.comments, strict=True):
        assert comment["body"].startswith(f"<!-- ultracluster:{name} -->\n")
        assert "MaxCount" in comment["body"]
        assert "**Preflight**: ready to deploy" in comment["body"], comment["body"]
    assert [of.stacks(name) for name in OWN] == before
    pull_request(of, change, only=("review", "comment"))
    assert len(of.github.comments) == 2, "they are written again"
    fork = pull_request(of, change, "Mallory/trn1", only=("review", "comment"))
    assert (fork["review"].result, fork["comment"].result) == ("success", "skipped")
    assert fork["review"].steps["Credentials"] == "skipped"
    assert "MaxCount" in fork["review"].summary

    of.github.git("update-ref", "refs/heads/main", of.github.merged(change))
    of.meanwhile = lambda: unchanged.append(of.stacks(PROD) == before[1])
    unchanged: list[bool] = []
    of.deploys()
    assert (of.approvals, unchanged) == (["prod", "prod"], [True])
    for name in OWN:
        assert of.statuses(name)[f"{name}-cluster"] == "UPDATE_COMPLETE"


def merge_a_bad_change(of: Team) -> None:
    """No check before the deployment can see it: it ends at dev, and the summary has the reason."""
    approvals, prod = len(of.approvals), of.stacks(PROD)
    of.edit(script=TYPO)
    of.github.commit("A word wrong")
    done = of.deploys(failing=("dev/deploy: Deploy", "dev/deploy: Diagnosis"))
    said = done["dev/deploy"].summary
    assert "systemctl" in said, said
    assert f"./ultracluster deploy {DEV}" in said, said
    assert "#when-a-job-fails" in said
    assert done["prod"].result == "skipped"
    assert (len(of.approvals), of.stacks(PROD)) == (approvals, prod)


def revert_beside_another_merge(of: Team) -> None:
    """The newer commit is merged while the revert is deployed: its run waits for its turns, and alone gets to prod."""
    approvals, prod, dev = len(of.approvals), of.stacks(PROD), of.statuses(DEV)
    of.edit(script=(TYPO[1], TYPO[0]))
    revert = of.github.commit("The word right")
    of.edit({DEV: 4, PROD: 18})
    newest = of.github.commit("Still more nodes", branch="still-more")
    with ThreadPoolExecutor() as pool:
        older = pool.submit(of.deploys, sha=revert)
        wait_until(lambda: older.done() or of.statuses(DEV) != dev)
        of.github.git("update-ref", "refs/heads/main", newest)
        newer = pool.submit(of.deploys, sha=newest)
        first, second = older.result(LIMIT), newer.result(LIMIT)
    assert "Healthy." in first["dev/deploy"].summary
    assert "has moved on to" in first["prod/deploy"].summary
    assert first["prod/deploy"].steps["Deploy"] == "skipped"
    for stage in ("dev", "prod"):
        assert "Healthy." in second[f"{stage}/deploy"].summary
    assert of.approvals[approvals:] == ["prod", "prod"], (
        "of the older run, which then deploys nothing, and of the newer"
    )
    assert of.stacks(PROD) != prod
    assert of.statuses(PROD)[f"{PROD}-cluster"] == "UPDATE_COMPLETE"


def run_again_after_the_role_has_expired(of: Team) -> None:
    """CloudFormation continues meanwhile, for as long as the head node waits: the second run follows it first."""
    of.edit({DEV: 5}, script=PATIENCE)
    of.github.commit("And more")
    with of.expiring():
        done = of.deploys(failing=("dev/deploy: Deploy", "dev/deploy: Diagnosis"))
    assert "get new session credentials" in done["dev/deploy"].summary, done.text
    with ThreadPoolExecutor() as pool:
        running = pool.submit(of.deploys)
        wait_until(lambda: running.done() or FOLLOWED in of.github.written("build/deploy.log"))
        assert of.statuses(DEV)[f"{DEV}-cluster"] == "UPDATE_IN_PROGRESS"
        of.on_head_node(f"touch {SIGN}")
        again = running.result(LIMIT)
    assert FOLLOWED in again["dev/deploy"].log
    assert "Healthy." in again["dev/deploy"].summary


def look_for_drift_and_destroy(of: Team) -> None:
    """Nothing of dev is left, and all of prod."""
    drift = of.github.run("scheduled", "schedule", jobs=lambda job: job == "drift")
    assert (drift.result, drift.failed) == ("success", []), drift.text

    inputs = {"stage": "dev", "name": DEV, "everything": True, "without_backup": True}
    wrong = of.github.run("destroy", "workflow_dispatch", inputs={**inputs, "name": "dev"})
    assert wrong.failed == ["confirm: Role of the stage, if the name is that of its deployment"]
    done = of.github.run("destroy", "workflow_dispatch", inputs=inputs)
    assert (done.result, done.failed) == ("success", []), done.text
    assert of.statuses(DEV) == {}
    assert of.statuses(PROD) != {}


def test_from_a_pull_request_to_production_and_back(tmp_path: Path) -> None:
    with team(tmp_path) as of:
        merge_the_first(of)
        review_what_is_refused(of)
        review_and_merge(of)
        merge_a_bad_change(of)
        revert_beside_another_merge(of)
        run_again_after_the_role_has_expired(of)
        look_for_drift_and_destroy(of)


class Pipeline:
    """The pipeline inside AWS of a team."""

    def __init__(self, of: Team) -> None:
        self._of = of
        self._execution().found()

    def release(self, *, failing: tuple[str, ...] = ()) -> Execution:
        """Take the newest commit through the pipeline, in which these actions fail and no others."""
        done = self._execution().run()
        assert tuple(done.failed) == failing, done.log
        return done

    def _execution(self) -> Execution:
        of = self._of
        of.github.git("checkout", "--quiet", "--force", "--detach", "main")
        return Execution(of.aws, REGION, of.github.checkout, of.github.variables, of.approve)


def test_the_pipeline_inside_aws(tmp_path: Path) -> None:
    """It has no summary and deploys by CloudFormation alone: what its log says is all that people have."""
    with team(tmp_path, connection=CONNECTION) as of:
        pipeline = Pipeline(of)
        first = pipeline.release()
        assert of.approvals == ["prod/Approve"]
        assert set(of.statuses(DEV).values()) == set(of.statuses(PROD).values()) == {"CREATE_COMPLETE"}
        assert first.log.count("Healthy.") == 2
        protected = of.aws.client("cloudformation", REGION).describe_stacks()["Stacks"]
        assert {each["StackName"] for each in protected if each["EnableTerminationProtection"]} >= {f"{PROD}-storage"}

        cluster = f"dev/{DEV}-cluster.Deploy"
        of.edit(script=TYPO)
        of.github.commit("A word wrong")
        bad = pipeline.release(failing=(cluster,))
        assert f"dev/{DEV}-monitoring.Deploy" in bad.done, "it is of the same order"
        assert "systemctl" in of.run("diagnose", DEV, code=1)
        again = bad.retry("FAILED_ACTIONS")
        assert again.failed == [cluster]
        assert "ChangeSetNotFound" in again.log, again.log
        assert bad.retry("ALL_ACTIONS").failed == ["dev/Changes"], bad.log
        assert of.approvals == ["prod/Approve"]
        assert set(of.statuses(PROD).values()) == {"CREATE_COMPLETE"}

        of.edit({DEV: 3, PROD: 17}, script=(TYPO[1], TYPO[0]))
        of.github.commit("The word right")
        done = pipeline.release(failing=("dev/Changes",))  # CloudFormation cannot update what it could not roll back
        assert f"./ultracluster deploy {DEV}" in done.log, done.log
        of.run("deploy", DEV, "--yes")
        done.retry("ALL_ACTIONS")
        assert (done.failed, done.log.count("Healthy.")) == ([], 2), done.log
        assert of.approvals == ["prod/Approve"] * 2
        assert of.statuses(PROD)[f"{PROD}-cluster"] == "UPDATE_COMPLETE"
