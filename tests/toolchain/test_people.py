"""Users and directories, by ParallelCluster's own validators and update check."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from scripts.check.plan.model import Kind
from scripts.check.validation import examine
from tests.config.test_users import ALICE, BOB
from tests.stacks.deployments import deploy, raw_settings
from tests.toolchain.test_changes_of_settings import Changed
from toolchain.assembly import Assembly
from toolchain.parallelcluster import ParallelCluster
from ultracluster.domain.validator_warnings import accepted

pytestmark = [pytest.mark.slow, pytest.mark.validation]

Prepare = Callable[..., Any]


@pytest.fixture
def prepared(deployment: Callable[[str], Any], tmp_path: Path) -> Prepare:
    """Return a function that gives the deployment of 16 nodes and login nodes with other values."""

    def prepare(name: str, directory: dict[str, Any] | None = None, **values: Any) -> Any:
        raw = {**raw_settings("trn1-16"), "name": f"p-{name}", **values}
        raw["cluster"] |= {"directory": directory, "login_nodes": [{"name": "login"}]}
        (tmp_path / f"{name}.yaml").write_text(json.dumps(raw), encoding="utf-8")
        return deployment(str(tmp_path / name))

    return prepare


@pytest.fixture
def directory(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A directory whose password is in a secret of each test's own: they share an account."""
    return {
        "domain_name": "corp.example.com",
        "domain_addr": "ldaps://corp.example.com,ldaps://second.example.com",
        "password_secret_arn": f"arn:aws:secretsmanager:us-west-2:123456789012:secret:{request.node.name}-AbCdEf",
        "domain_read_only_user": "cn=ReadOnly,dc=corp,dc=example,dc=com",
        "ldap_tls_ca_cert": "/opt/ca.pem",
        "ldap_access_filter": "(memberOf=cn=hpc,dc=corp,dc=example,dc=com)",
        "additional_sssd_configs": {"ldap_id_mapping": "False"},
    }


@pytest.fixture
def changes(parallelcluster: ParallelCluster, tmp_path: Path) -> Callable[..., dict[str, Kind]]:
    """Return a function that tells what of the cluster's configuration changes, and how."""

    def assembly(name: str, values: dict[str, Any]) -> Assembly:
        raw = {**raw_settings("trn1-16"), **values}
        raw["cluster"]["login_nodes"] = [{"name": "login"}]
        return Assembly(deploy(Settings.model_validate(raw), tmp_path / name).directory)

    def between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Kind]:
        changed = Changed(parallelcluster, assembly("before", before), assembly("after", after))
        return {each.path: each.kind for each in changed.cluster.changes}

    return between


def test_parallelcluster_accepts_users_and_a_directory(
    prepared: Prepare, directory: dict[str, Any], parallelcluster: ParallelCluster
) -> None:
    made = prepared("valid", directory, users=[ALICE])
    assert examine(parallelcluster, made.request, accepted(made.settings.cluster_spec)).problems == ()
    named = made.request.configuration["DirectoryService"]
    assert (named["LdapTlsReqCert"], named["AdditionalSssdConfigs"]) == ("hard", {"ldap_id_mapping": "False"})


def test_people_who_go_change_only_what_the_head_node_does_at_updates(
    changes: Callable[..., dict[str, Kind]],
) -> None:
    """No node drains."""
    people = {"groups": {"nlp": 3000}, "users": [{**ALICE, "groups": ["nlp"]}, {**BOB, "admin": True}]}
    assert changes(people, {}) == {"HeadNode.CustomActions.OnNodeUpdated.Args": Kind.LIVE}


def test_the_deployment_may_describe_just_the_directorys_secret(prepared: Prepare, directory: dict[str, Any]) -> None:
    made = prepared("secret", directory=directory)
    [policy] = [
        resource["Properties"]["PolicyDocument"]["Statement"]
        for stack in made.assembly.stacks.values()
        for name, resource in stack.template["Resources"].items()
        if "ProviderSecrets" in name
    ]
    allowed = {"Action": "secretsmanager:DescribeSecret", "Effect": "Allow"}
    assert policy == [{**allowed, "Resource": directory["password_secret_arn"]}]
    assert any("turns on passwords in SSH" in each for each in made.settings.warnings)
