"""Who gets into the account from GitHub, and what they may do there."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from config.sections import BootstrapSettings
from tests.stacks.deployments import PARTS
from tests.stacks.pipelines import ACCESS_STACK, ACCOUNT, PIPELINE_STACK, deployments, lets_in, pipeline, synthesize
from tests.stacks.small_app import Template, read_template

READ, DEV, PROD = "ultracluster-ci-read", "ultracluster-ci-deploy-dev", "ultracluster-ci-deploy-prod"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return read_template(synthesize(pipeline(), tmp_path_factory.mktemp("access")), ACCESS_STACK)


def statements(template: Template, name: str) -> Iterator[dict[str, Any]]:
    """Yield what a role may do, with lists of actions and resources."""
    roles = [each["Properties"] for each in template.of_type("AWS::IAM::Role").values()]
    [policies] = [each["Policies"] for each in roles if each["RoleName"] == name]
    for policy in policies:
        for each in policy["PolicyDocument"]["Statement"]:
            assert each["Effect"] == "Allow"
            listed = {key: each[key] if isinstance(each[key], list) else [each[key]] for key in ("Action", "Resource")}
            yield {**each, **listed}


def token(context: str, repository: str = "Acme/trn1", *, ids: bool = True, **claims: str) -> dict[str, str]:
    """Return the claims of a job's token (https://docs.github.com/en/actions/reference/security/oidc).

    Args:
        context: End of the subject: that of a job with an environment is ``environment:NAME``.
        repository: Where the workflow runs; that of a fork is the fork.
        ids: Whether the repository was made after 15 July 2026.
        claims: Other claims than those of the branch main.
    """
    owner, _, name = repository.partition("/")
    subject = f"repo:{owner}@123456/{name}@456789:{context}" if ids else f"repo:{repository}:{context}"
    environment = {"environment": context.partition(":")[2]} if context.startswith("environment:") else {}
    known = {"aud": "sts.amazonaws.com", "sub": subject, "ref": "refs/heads/main", "repository": repository}
    return {**known, **environment, **claims}


def entered(template: Template, claims: dict[str, str]) -> set[str]:
    """Return the names of the roles whose trust policies let a token in."""
    roles = [each["Properties"] for each in template.of_type("AWS::IAM::Role").values()]
    [provider] = [{"Ref": key} for key in template.of_type("AWS::IAM::OIDCProvider")]
    return {each["RoleName"] for each in roles if lets_in(each["AssumeRolePolicyDocument"], claims, provider)}


DEV_JOB, PROD_JOB = token("environment:dev"), token("environment:prod")


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        (DEV_JOB, {DEV}),
        (token("environment:dev", ids=False), {DEV}),
        (PROD_JOB, {PROD}),
        (token("pull_request", ref="refs/pull/7/merge"), {READ}),
        (token("ref:refs/heads/main"), {READ}),
        (token("ref:refs/heads/feature", ref="refs/heads/feature"), set()),
        ({**PROD_JOB, "ref": "refs/heads/main-2"}, set()),
        (token("environment:Prod"), set()),
        (token("environment:dev:prod"), set()),
        ({**PROD_JOB, "environment": "dev", "sub": "repo:Acme@1/trn1@2:environment:prod:environment:dev"}, {DEV}),
        *[({key: value for key, value in DEV_JOB.items() if key != claim}, set()) for claim in DEV_JOB],
    ],
    ids=str,
)
def test_a_job_gets_into_its_own_role_alone(template: Template, claims: dict[str, str], expected: set[str]) -> None:
    assert entered(template, claims) == expected


def test_strangers_get_in_nowhere(template: Template) -> None:
    repositories = ["Mallory/trn1", "Acme/trn1-evil", "Acme-evil/trn1", "Not-Acme/trn1", "acme/trn1"]
    contexts = ("ref:refs/heads/main", "environment:dev", "environment:prod", "pull_request")
    for repository, context, ids in product(repositories, contexts, (True, False)):
        assert entered(template, token(context, repository, ids=ids)) == set()
        assert entered(template, token(context, ids=ids, aud="https://github.com/Acme")) == set()


def test_pull_requests_only_look_and_read_no_data(template: Template) -> None:
    """No object in S3, no secret, no log; of tables and parameters only those of this project."""
    granted = {
        (action, resource)
        for each in statements(template, READ)
        for action in each["Action"]
        for resource in each["Resource"]
    }
    actions = {action for action, _ in granted}
    reading = {"s3:GetObject", "secretsmanager:GetSecretValue", "logs:FilterLogEvents", "ec2:GetConsoleOutput"}

    verbs = ("BatchGet", "Describe", "Detect", "Get", "List", "View")
    assert all(each.partition(":")[2].startswith(verbs) for each in actions)
    assert not reading & actions
    of_tables = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "ssm:GetParameter", "ssm:GetParameters")
    assert {each for each in granted if each[0] in of_tables} == {
        ("dynamodb:BatchGetItem", "arn:aws:dynamodb:*:*:table/parallelcluster-*"),
        ("dynamodb:GetItem", "arn:aws:dynamodb:*:*:table/parallelcluster-*"),
        ("ssm:GetParameter", "arn:aws:ssm:*:*:parameter/cdk-bootstrap/*/version"),
        ("ssm:GetParameters", "arn:aws:ssm:*:*:parameter/ultracluster/*"),
    }


def test_the_settings_say_which_branch_deploys_and_which_bootstrap_a_stage_uses(tmp_path: Path) -> None:
    stages = deployments(pipeline())
    stages["dev"] = stages["dev"].model_copy(update={"bootstrap": BootstrapSettings(qualifier="ml-team")})
    made = read_template(synthesize(pipeline(branch="release/1"), tmp_path, stages), ACCESS_STACK)

    assert entered(made, {**DEV_JOB, "ref": "refs/heads/release/1"}) == {DEV}
    assert entered(made, DEV_JOB) == set()
    for name, qualifier in ((DEV, "ml-team"), (PROD, "hnb659fds")):
        [assumed] = [each["Resource"] for each in statements(made, name) if "sts:AssumeRole" in each["Action"]]
        assert all(f":role/cdk-{qualifier}-" in each for each in assumed)
    assert made.body["Parameters"]["BootstrapVersion"]["Default"] == "/cdk-bootstrap/ml-team/version"


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        *((f"dev-{part}", True) for part in PARTS),
        ("dev", True),
        ("dev-12", True),
        ("dev-cluster-2", True),
        ("dev-cluster-ClusterProvider1A2B-3C4D", True),
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


def test_policies_fit_into_their_roles(template: Template) -> None:
    """10,240 characters for a role's own policies, 2,048 for whom it trusts, without white space.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
    """
    for each in template.of_type("AWS::IAM::Role").values():
        properties = each["Properties"]
        assert len("".join(str(properties["Policies"]).split())) < 10_240
        assert len("".join(str(properties["AssumeRolePolicyDocument"]).split())) < 2_048


def test_every_role_of_the_pipeline_has_its_boundary(tmp_path: Path) -> None:
    """A company that demands one lets nobody make a role without it."""
    boundary = f"arn:aws:iam::{ACCOUNT}:policy/boundary"
    directory = synthesize(pipeline(permissions_boundary_arn=boundary), tmp_path)
    roles = {
        name: [each["Properties"] for each in read_template(directory, name).of_type("AWS::IAM::Role").values()]
        for name in (ACCESS_STACK, PIPELINE_STACK)
    }
    assert all(roles.values())
    bounds = [each.get("PermissionsBoundary") for made in roles.values() for each in made]
    assert {*bounds} == {boundary}
