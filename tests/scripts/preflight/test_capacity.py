"""Checks of reserved capacity beside a fleet that runs, and where several compute resources share it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from config.settings import Settings, load
from scripts.commands.validate import CONFIG
from scripts.deployment import Deployment
from scripts.preflight.capacity import CHECKS, capacity_block, capacity_reservation, capacity_reservation_group
from scripts.preflight.check import Status
from scripts.preflight.reservations import members, still_to_launch, users
from tests.scripts.preflight.cases_capacity import (
    BLOCK,
    GROUP,
    RESERVATION,
    grouped,
    launch,
    make_reservation,
    member,
    second_member,
)
from tests.scripts.preflight.conftest import GoodAccount

MakeAccount = Callable[..., GoodAccount]
OURS = {"parallelcluster:cluster-name": "reserved"}


def reserved(edit: Callable[[dict[str, Any]], object]) -> Settings:
    raw = load(CONFIG / "reserved.yaml").model_dump(mode="json")
    edit(raw)
    return Settings.model_validate(raw)


def two_compute_resources(raw: dict[str, Any]) -> None:
    [resource] = raw["cluster"]["queues"][0]["compute_resources"]
    raw["cluster"]["queues"][0]["compute_resources"].append({**resource, "name": "more", "max_count": 3})


def two_types(raw: dict[str, Any]) -> None:
    grouped(raw)
    two_compute_resources(raw)
    raw["cluster"]["queues"][0]["compute_resources"][1]["instance_type"] = "trn1n.32xlarge"


@pytest.mark.parametrize("environment", ["dev", "trn1-16", "two-queues", "ultracluster"])
def test_nothing_is_reserved_elsewhere(good_account: MakeAccount, environment: str) -> None:
    account = good_account(environment)
    assert [account.statuses(each) for each in CHECKS] == [[Status.SKIP]] * len(CHECKS)


def test_nodes_that_run_in_their_reservation_need_no_place_in_it(good_account: MakeAccount) -> None:
    account = good_account("reserved")
    launch(account, 3, {"CapacityReservationId": RESERVATION}, **OURS)
    launch(account, 4, {"CapacityReservationId": BLOCK}, **OURS)
    [finding] = account.look(capacity_reservation)
    assert finding.status is Status.PASS
    assert "5 of 8 trn1.32xlarge free in usw2-az4, 5 more needed" in finding.sentence
    [finding] = account.look(capacity_block)
    assert finding.status is Status.PASS
    assert "0 of 4 trn1.32xlarge free in usw2-az4, 0 more needed" in finding.sentence


def test_nodes_that_run_in_a_group_need_no_place_in_it(good_account: MakeAccount) -> None:
    account = good_account("reserved", reserved(grouped))
    launch(account, 3, {"CapacityReservationResourceGroupArn": GROUP}, **OURS)
    [finding] = account.look(capacity_reservation_group)
    assert finding.status is Status.PASS
    assert finding.sentence == "1 of 1 reservations fit, 5 trn1.32xlarge free, 5 more needed"


def test_nodes_of_one_type_leave_no_more_room_for_another(good_account: MakeAccount) -> None:
    account = good_account("reserved", reserved(two_types))
    launch(account, 8, {"CapacityReservationResourceGroupArn": GROUP}, **OURS)
    deployment = Deployment("reserved", reserved(two_types))
    [using] = users(deployment.settings, "capacity_reservation_group_arn").values()
    assert still_to_launch(deployment, using[1:], members(deployment, GROUP)) == 3


def test_compute_resources_share_their_reservation(good_account: MakeAccount) -> None:
    account = good_account("reserved", reserved(two_compute_resources))
    make_reservation(account, RESERVATION, InstanceCount=10)
    [finding] = account.look(capacity_reservation)
    assert finding.status is Status.FAIL
    assert "10 of 10 instances free, 11 more needed" in finding.sentence
    paths = "cluster.queues[0].compute_resources[0], cluster.queues[0].compute_resources[1]"
    assert f"--instance-count 11 --region us-west-2; or max_count of {paths}: 1 less" in finding.hint


def test_each_reservation_has_a_finding_of_its_own(good_account: MakeAccount) -> None:
    def two_reservations(raw: dict[str, Any]) -> None:
        two_compute_resources(raw)
        raw["cluster"]["queues"][0]["compute_resources"][1]["capacity_reservation_id"] = "cr-0000000000000000b"

    account = good_account("reserved", reserved(two_reservations))
    account.client("ec2").cancel_capacity_reservation(CapacityReservationId=RESERVATION)
    found = {finding.subject: finding.status for finding in account.look(capacity_reservation)}
    assert found == {RESERVATION: Status.FAIL, "cr-0000000000000000b": Status.PASS}


def test_all_faults_of_a_reservation_are_told_at_once(good_account: MakeAccount) -> None:
    account = good_account("reserved")
    make_reservation(account, RESERVATION, AvailabilityZoneId="usw2-az1", InstanceCount=1, InstancePlatform="Windows")
    [finding] = account.look(capacity_reservation)
    assert [text in finding.sentence for text in ("usw2-az1", "Windows", "1 of 1 instances free")] == [True] * 3


def test_a_member_that_does_not_fit_does_not_spoil_a_group(good_account: MakeAccount) -> None:
    account = good_account("reserved", reserved(grouped))
    second_member(account)
    make_reservation(account, member(account), InstanceCount=8)
    [finding] = account.look(capacity_reservation_group)
    assert finding.status is Status.PASS
    assert finding.sentence == "1 of 2 reservations fit, 8 trn1.32xlarge free, 8 more needed"


def test_each_type_must_find_a_reservation_in_a_group(good_account: MakeAccount) -> None:
    account = good_account("reserved", reserved(two_types))
    found = account.look(capacity_reservation_group)
    assert [finding.status for finding in found] == [Status.PASS, Status.FAIL]
    assert "put a reservation for trn1n.32xlarge in usw2-az4 into it" in found[1].hint


def test_members_of_a_group_are_read_from_all_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = Deployment("reserved", load(CONFIG / "reserved.yaml"))

    def page(number: int) -> list[dict[str, Any]]:
        return [{"Identifier": {"ResourceArn": f"arn:aws:ec2:us-west-2:123456789012:capacity-reservation/cr-{number}"}}]

    answers = {None: {"Resources": page(1), "NextToken": "two"}, "two": {"Resources": page(2)}}
    monkeypatch.setattr(deployment.account, "ask", lambda *_, Group, NextToken=None: answers[NextToken])
    assert members(deployment, GROUP) == ["cr-1", "cr-2"]
