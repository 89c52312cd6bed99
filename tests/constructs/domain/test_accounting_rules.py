"""Rules of accounting, and what Slurm is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from ultracluster.domain.accounting import AccountingSpec, DatabaseSpec, slurm_settings
from ultracluster.domain.accounting_rules import (
    subnet_cidrs,
    subnet_violations,
    user_violations,
    violations,
    zone_ids,
    zone_violations,
)
from ultracluster.domain.network import NetworkSpec
from ultracluster.domain.slurm import with_defaults
from ultracluster.domain.team import UserSpec
from ultracluster.domain.violations import Violation, dotted

EXISTING = {
    "host": "db.example.com",
    "user": "slurm",
    "password_secret_arn": "arn:aws:secretsmanager:us-west-2:123456789012:secret:db-AbCdEf",
    "security_group_id": "sg-01234567",
}


def texts(broken: list[Violation]) -> list[str]:
    return [f"{dotted(each.path)}: {each}" for each in broken]


def accounts(*given: tuple[str, str | None]) -> dict[str, Any]:
    return {"accounts": [{"name": name, "parent": parent} for name, parent in given]}


BROKEN: list[tuple[dict[str, Any], list[str]]] = [
    (
        accounts(("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("e", None)),
        [
            f"accounts[{index}].parent: got '{parent}'; allowed: null, or an account that is not below it "
            f"({name} would be part of itself: {name} -> {parent} -> {other} -> {name})"
            for index, (name, parent, other) in enumerate([("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b")])
        ],
    ),
    (
        accounts(("a", "nobody"), ("b", None)),
        ["accounts[0].parent: got 'nobody'; allowed: b (accounts of accounting; null: the cluster's root)"],
    ),
    (
        accounts(("root", None), ("a", None), ("a", None)),
        [
            "accounts[0].name: got 'root'; allowed: another name than root (Slurm's own)",
            "accounts[1].name: got 'a'; allowed: a name of its own (given twice)",
            "accounts[2].name: got 'a'; allowed: a name of its own (given twice)",
        ],
    ),
    (
        {"qos": [{"name": "normal"}, {"name": "high", "preempts": ["high", "lwo"], "accounts": ["lab"]}]},
        [
            "qos[0].name: got 'normal'; allowed: another name than normal (Slurm's own)",
            "qos[1].preempts[0]: got 'high'; allowed: normal (a QoS does not preempt itself)",
            "qos[1].preempts[1]: got 'lwo'; allowed: normal (QoS of accounting)",
            "qos[1].accounts[0]: got 'lab'; allowed: none, as there are none (accounts of accounting)",
        ],
    ),
    (
        {"qos": [{"name": "a", "preempts": ["b"]}, {"name": "b", "preempts": ["normal", "a"]}]},
        [
            "qos[0].preempts[0]: got 'b'; allowed: a QoS that does not preempt a (a loop: a -> b -> a)",
            "qos[1].preempts[1]: got 'a'; allowed: a QoS that does not preempt b (a loop: b -> a -> b)",
        ],
    ),
    (
        {"existing": EXISTING, "database": {"storage_gib": 40}},
        ["database.storage_gib: got 40; allowed: leave it out (existing names a database, so none is made)"],
    ),
    ({"existing": EXISTING, **accounts(("a", None), ("b", "a"))}, []),
    ({"qos": [{"name": "a", "preempts": ["normal"]}, {"name": "b", "preempts": ["a", "normal"]}]}, []),
]


@pytest.mark.parametrize(("values", "reported"), BROKEN, ids=range(len(BROKEN)))
def test_rules(values: dict[str, Any], reported: list[str]) -> None:
    assert texts(violations(AccountingSpec.model_validate(values))) == reported


def test_users_have_accounts_that_exist_or_that_of_parallelcluster() -> None:
    users = [UserSpec(name=f"u{uid}", uid=uid, account=account) for uid, account in
             ((2001, "lab"), (2002, "pcdefault"), (2003, None), (2004, "lba"))]  # fmt: skip

    [broken] = user_violations(AccountingSpec.model_validate(accounts(("lab", None))), users)

    assert texts([broken]) == ["[3].account: got 'lba'; allowed: lab or pcdefault (accounts of accounting)"]


def placed(existing_vpc: bool = False, cidr: str = "10.0.0.0/16", **values: Any) -> list[str]:
    database = DatabaseSpec(**values)
    blocks = subnet_violations(database, NetworkSpec(cidr=cidr), existing_vpc=existing_vpc)
    return texts([*zone_violations(database, "us-west-2", "usw2-az4"), *blocks])


def test_the_subnets_of_the_database_are_in_two_zones_and_in_blocks_of_the_vpc_that_are_free() -> None:
    assert placed() == placed(second_zone_id="usw2-az3", subnet_cidrs=["10.0.1.0/28", "10.0.1.16/28"]) == []
    assert placed(second_zone_id="usw2-az4") == [
        "second_zone_id: got 'usw2-az4'; allowed: another zone than usw2-az4 (RDS wants subnets in two zones)"
    ]
    [elsewhere] = placed(second_zone_id="use1-az1")
    assert elsewhere.startswith("second_zone_id: got 'use1-az1'; allowed: usw2-az1, usw2-az2")
    outside, overlapping, both = (
        placed(subnet_cidrs=cidrs)
        for cidrs in (["10.1.0.0/28", "10.0.1.0/28"], ["10.0.1.0/28", "10.0.64.0/28"], ["10.0.1.0/28", "10.0.1.0/28"])
    )
    assert outside == [
        "subnet_cidrs[0]: got '10.1.0.0/28'; allowed: a block inside 10.0.0.0/16 (a subnet lies within network.cidr)"
    ]
    assert overlapping == [
        "subnet_cidrs[1]: got '10.0.64.0/28'; allowed: a block apart from network.private_subnet_cidr 10.0.64.0/18 "
        "(subnets overlap)"
    ]
    assert both == [
        "subnet_cidrs[1]: got '10.0.1.0/28'; allowed: a block apart from subnet_cidrs[0] 10.0.1.0/28 (subnets overlap)"
    ]
    [unknown] = placed(existing_vpc=True)
    assert unknown.startswith("subnet_cidrs: got None; allowed: two blocks of the existing VPC")
    full = NetworkSpec(cidr="10.0.0.0/27", public_subnet_cidr="10.0.0.0/28", private_subnet_cidr="10.0.0.16/28")
    [no_room] = subnet_violations(DatabaseSpec(), full, existing_vpc=False)
    assert no_room.allowed == "a larger block than 10.0.0.0/27, or subnet_cidrs of the database"


def test_the_default_blocks_and_zone_are_the_last_that_are_free_and_another_one() -> None:
    taken = NetworkSpec(private_subnet_cidr="10.0.255.240/28")

    assert subnet_cidrs(DatabaseSpec(), NetworkSpec()) == ["10.0.255.224/28", "10.0.255.240/28"]
    assert subnet_cidrs(DatabaseSpec(), taken) == ["10.0.255.208/28", "10.0.255.224/28"]
    assert [zone_ids(DatabaseSpec(), zone)[1] for zone in ("usw2-az4", "usw2-az1")] == ["usw2-az1", "usw2-az2"]
    assert zone_ids(DatabaseSpec(second_zone_id="usw2-az3"), "usw2-az4") == ("usw2-az4", "usw2-az3")


def test_slurm_is_told_no_more_than_what_the_settings_need_and_ones_own_settings_win() -> None:
    def told(generation: int = 1, **values: Any) -> dict[str, str]:
        spec = AccountingSpec.model_validate(values)
        return slurm_settings(spec, cluster_name="trn1", generation=generation)

    plain = {"ClusterName": "trn1", "FirstJobId": "1", "PriorityWeightFairshare": "100000"}
    enforced = {**plain, "AccountingStorageEnforce": "associations,limits,qos,safe"}
    monthly = {"PriorityDecayHalfLife": "0", "PriorityUsageResetPeriod": "MONTHLY"}
    assert told(enforce=False) == plain
    assert told() == told(accounts=[{"name": "a", "max_nodes": 4}]) == enforced
    assert told(accounts=[{"name": "a", "node_hours_per_month": 4}]) == {**enforced, **monthly}
    assert told(qos=[{"name": "a"}]) == {**enforced, "PriorityWeightQOS": "1000000"}
    assert told(qos=[{"name": "a", "preempts": ["normal"]}])["PreemptMode"] == "REQUEUE"
    assert [told(number)["FirstJobId"] for number in (2, 67, 68)] == ["1000001", "66000001", "1"]
    assert with_defaults({"clustername": "old"}, plain)["clustername"] == "old"
    assert "ClusterName" not in with_defaults({"clustername": "old"}, plain)
