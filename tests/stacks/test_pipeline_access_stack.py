"""Who gets into the account from GitHub, and what they may do there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from config.sections import BootstrapSettings
from tests.stacks.deployments import PARTS
from tests.stacks.pipelines import ACCESS_STACK, ACCOUNT, Job, deployments, pipeline, pull_request, synthesize
from tests.stacks.small_app import Template, read_template
from tests.stacks.trust import trusts

READ, DEV, PROD = "ultracluster-ci-read", "ultracluster-ci-deploy-dev", "ultracluster-ci-deploy-prod"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return read_template(synthesize(pipeline(), tmp_path_factory.mktemp("access")), ACCESS_STACK)


def role(template: Template, name: str) -> dict[str, Any]:
    return template.one("AWS::IAM::Role", RoleName=name)[1]


def statements(template: Template, name: str) -> Iterator[dict[str, Any]]:
    """Yield what a role may do, with lists of actions and resources."""
    for policy in role(template, name)["Properties"]["Policies"]:
        for each in policy["PolicyDocument"]["Statement"]:
            assert each["Effect"] == "Allow"
            listed = {key: each[key] if isinstance(each[key], list) else [each[key]] for key in ("Action", "Resource")}
            yield {**each, **listed}


def entered(template: Template, job: Job) -> set[str]:
    """Return the names of the roles that let a job in."""
    roles = template.of_type("AWS::IAM::Role").values()
    return {each["Properties"]["RoleName"] for each in roles if trusts(each, job.claims)}


@pytest.mark.parametrize("immutable", [True, False], ids=["with ids", "without ids"])
@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (Job(environment="dev"), {DEV}),
        (Job(environment="prod"), {PROD}),
        (pull_request(), {READ}),
        (Job(event="schedule"), {READ}),
        (Job(environment="dev", ref="refs/heads/feature"), set()),
        (Job(environment="prod", ref="refs/heads/main-2"), set()),
        (Job(environment="prod", ref="refs/tags/main"), set()),
        (Job(environment="Prod"), set()),
        (Job(environment="dev:prod"), set()),
        (Job(ref="refs/heads/feature"), set()),
        (pull_request(environment="prod"), set()),
    ],
    ids=str,
)
def test_a_job_gets_into_its_own_role_alone(template: Template, job: Job, expected: set[str], immutable: bool) -> None:
    assert entered(template, replace(job, immutable=immutable)) == expected


STRANGERS: list[dict[str, Any]] = [
    {"repository": "Mallory/trn1"},
    {"repository": "Acme/trn1-evil"},
    {"repository": "Acme-evil/trn1"},
    {"repository": "Not-Acme/trn1"},
    {"repository": "acme/trn1"},
    {"audience": "https://github.com/Acme"},
]


@pytest.mark.parametrize("immutable", [True, False], ids=["with ids", "without ids"])
@pytest.mark.parametrize("stranger", STRANGERS, ids=str)
def test_strangers_get_in_nowhere(template: Template, stranger: dict[str, Any], immutable: bool) -> None:
    jobs = [Job(), Job(environment="dev"), Job(environment="prod"), pull_request()]

    assert [entered(template, replace(job, immutable=immutable, **stranger)) for job in jobs] == [set()] * len(jobs)


@pytest.mark.parametrize("claim", ["aud", "sub", "repository", "ref", "environment"])
def test_a_token_without_a_claim_deploys_nothing(template: Template, claim: str) -> None:
    claims = Job(environment="dev").claims
    del claims[claim]

    assert not trusts(role(template, DEV), claims)


def test_pull_requests_can_only_look(template: Template) -> None:
    verbs = {action.partition(":")[2] for each in statements(template, READ) for action in each["Action"]}

    assert {verb for verb in verbs if not verb.startswith(("Describe", "Detect", "Get", "List"))} == set()


def test_pull_requests_read_no_data(template: Template) -> None:
    """No object in S3, no secret, no log; of tables and parameters only those of this project."""
    granted = {
        (action, resource)
        for each in statements(template, READ)
        for action in each["Action"]
        for resource in each["Resource"]
    }
    reading = {"s3:GetObject", "secretsmanager:GetSecretValue", "logs:FilterLogEvents", "ec2:GetConsoleOutput"}

    assert not reading & {action for action, _ in granted}
    assert {each for each in granted if each[0] in ("dynamodb:GetItem", "ssm:GetParameter", "ssm:GetParameters")} == {
        ("dynamodb:GetItem", "arn:aws:dynamodb:*:*:table/parallelcluster-*"),
        ("ssm:GetParameter", "arn:aws:ssm:*:*:parameter/cdk-bootstrap/*/version"),
        ("ssm:GetParameters", "arn:aws:ssm:*:*:parameter/ultracluster/*"),
    }


def test_a_stage_with_a_bootstrap_of_its_own_assumes_the_roles_of_that(tmp_path: Path) -> None:
    stages = deployments(pipeline())
    stages["dev"] = stages["dev"].model_copy(update={"bootstrap": BootstrapSettings(qualifier="ml-team")})
    made = read_template(synthesize(pipeline(), tmp_path, stages), ACCESS_STACK)

    for name, qualifier in ((DEV, "ml-team"), (PROD, "hnb659fds")):
        [assumed] = [each["Resource"] for each in statements(made, name) if "sts:AssumeRole" in each["Action"]]
        assert all(f":role/cdk-{qualifier}-" in each for each in assumed)
    assert made.body["Parameters"]["BootstrapVersion"]["Default"] == "/cdk-bootstrap/ml-team/version"


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        *((f"dev-{part}", True) for part in PARTS),
        ("dev", True),
        ("dev-2", True),
        ("dev-12", True),
        ("dev-cluster-2", True),
        ("dev-cluster-ClusterProvider1A2B-3C4D", True),
        ("dev-website", False),
        ("dev-other-network", False),
        ("devices-network", False),
        ("trn1-16-network", False),
    ],
)
def test_deletes_stacks_of_its_own_deployment_alone(template: Template, stack: str, expected: bool) -> None:
    [resources] = [
        each["Resource"] for each in statements(template, DEV) if "cloudformation:DeleteStack" in each["Action"]
    ]
    arn = f"arn:aws:cloudformation:us-west-2:{ACCOUNT}:stack/{stack}/01234567-89ab"

    assert any(fnmatchcase(arn, each) for each in resources) == expected


def test_another_branch_deploys_if_the_settings_say_so(tmp_path: Path) -> None:
    template = read_template(synthesize(pipeline(branch="release/1"), tmp_path), ACCESS_STACK)

    assert entered(template, Job(environment="dev", ref="refs/heads/release/1")) == {DEV}
    assert entered(template, Job(environment="dev")) == set()


def test_policies_fit_into_their_roles(template: Template) -> None:
    """10,240 characters for a role's own policies, 2,048 for whom it trusts, without white space.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
    """
    for each in template.of_type("AWS::IAM::Role").values():
        properties = each["Properties"]
        assert len("".join(str(properties["Policies"]).split())) < 10_240
        assert len("".join(str(properties["AssumeRolePolicyDocument"]).split())) < 2_048
