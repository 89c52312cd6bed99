"""Directories of people in a cluster's configuration."""

from __future__ import annotations

from typing import Any

import pytest

from tests.constructs.domain.specs import CLUSTER, changed
from ultracluster.domain import cluster_rules, override_rules
from ultracluster.domain.cluster_configuration import secret_arns
from ultracluster.domain.directory import DirectorySpec

SECRET = "arn:aws:secretsmanager:us-west-2:123456789012:secret:directory-AbCdEf"  # noqa: S105 - an ARN


def directory(**values: Any) -> DirectorySpec:
    return DirectorySpec(
        domain_name="corp.example.com",
        domain_addr="ldaps://corp.example.com",
        password_secret_arn=SECRET,
        domain_read_only_user="cn=ReadOnly",
        **values,
    )


def test_its_secret_is_one_of_the_cluster() -> None:
    assert list(secret_arns(changed(CLUSTER, directory=directory()))) == [
        (("directory", "password_secret_arn"), SECRET)
    ]


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"additional_sssd_configs": {"id_provider": "ad"}}, ("directory", "additional_sssd_configs", "id_provider")),
        (
            {"ldap_access_filter": "(a=b)", "additional_sssd_configs": {"access_provider": "simple"}},
            ("directory", "additional_sssd_configs", "access_provider"),
        ),
        ({"additional_sssd_configs": {"access_provider": "simple", "id_provider": "ldap"}}, None),
    ],
)
def test_what_parallelcluster_refuses_of_further_settings(
    values: dict[str, Any], place: tuple[str, ...] | None
) -> None:
    broken = cluster_rules.violations(changed(CLUSTER, directory=directory(**values)))
    assert [each.path for each in broken] == ([] if place is None else [place])


def test_an_override_of_it_is_warned_of() -> None:
    spec = changed(CLUSTER, directory=directory(), overrides={"DirectoryService": {"DomainName": "d"}})
    assert cluster_rules.violations(spec) == []
    assert [each.allowed for each in override_rules.warnings(spec)] == ["directory.domain_name sets it"]
