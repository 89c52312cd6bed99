"""Reserved capacity that fits the queues, and reserved capacity that does not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scripts.account.deployment import Account
from scripts.account.reservations import unused_by_type
from scripts.check.preflight.capacity import CHECKS, capacity_block, capacity_reservation, capacity_reservation_group
from scripts.core.findings import FAIL, PASS, SKIP, WARN, CheckStatus
from tests.scripts.check.preflight.accounts import (
    BLOCK,
    RESERVATION,
    AlteredAccount,
    Case,
    Raw,
    case,
    deployment_of,
    everything,
    new_network,
)
from tests.scripts.refusals import refusal

FIRST = "cluster.queues[0].compute_resources[0]"
Alter = Callable[[list[dict[str, Any]]], object]


def from_now(**span: float) -> datetime:
    return datetime.now(UTC) + timedelta(**span)


def reservation(reservation_id: str = RESERVATION, **facts: Any) -> Alter:
    """Return what alters a reservation in the answer of EC2."""

    def alter(listed: list[dict[str, Any]]) -> None:
        [described] = [each for each in listed if each["CapacityReservationId"] == reservation_id]
        if "TotalInstanceCount" in facts:
            facts.setdefault("AvailableInstanceCount", facts["TotalInstanceCount"])
        described.update(facts)

    return alter


def block(**facts: Any) -> Alter:
    return reservation(BLOCK, **facts)


def member(**facts: Any) -> Alter:
    """Return what alters the reservation in the group."""
    return lambda listed: next(filter(_is_member, listed)).update(facts)


def _is_member(each: dict[str, Any]) -> bool:
    return each["CapacityReservationId"] not in (RESERVATION, BLOCK)


def with_second_member(**facts: Any) -> dict[str, Any]:
    """Return answers by which a group has a second reservation, like the first but for these facts."""

    def add(listed: list[dict[str, Any]]) -> None:
        [first] = filter(_is_member, listed)
        listed.append({**first, **facts, "CapacityReservationId": "cr-0000000000000000a"})

    def group(answer: dict[str, Any]) -> None:
        arn = answer["Resources"][0]["Identifier"]["ResourceArn"].rpartition("/")[0]
        answer["Resources"].append({"Identifier": {"ResourceArn": f"{arn}/cr-0000000000000000a"}})

    return {"describe_capacity_reservations": add, "list_group_resources": group}


def launched(count: int, reservation_id: str, cluster: str = "reserved") -> list[dict[str, Any]]:
    """Return instances of a reservation, as EC2 lists them."""
    tags = [{"Key": "parallelcluster:cluster-name", "Value": cluster}]
    node = {"InstanceType": "trn1.32xlarge", "CapacityReservationId": reservation_id, "Tags": tags}
    return [{"Instances": [node] * count}]


def placed(number: int) -> Callable[[Raw], None]:
    """Put a queue into a placement group that exists."""
    return lambda raw: raw["cluster"]["queues"][number].update(placement_group=None, existing_placement_group="near")


def static_node(raw: Raw) -> None:
    raw["cluster"]["queues"][0]["compute_resources"][0]["min_count"] = 1


def altered(check: Any, status: CheckStatus, *says: str, by: Alter, **keywords: Any) -> Any:
    return case(check, status, *says, describe_capacity_reservations=by, **keywords)


R, B, G = capacity_reservation, capacity_block, capacity_reservation_group
CASES = [
    case(R, PASS, "active without end, 8 of 8 trn1.32xlarge free in usw2-az4, 8 more needed", RESERVATION),
    case(R, FAIL, "no reservation that this account can use", FIRST, describe_capacity_reservations=[]),
    altered(R, FAIL, "it is active and ended 20", by=reservation(EndDate=from_now(hours=-1))),
    altered(R, WARN, "it ends 20", "extend it", by=reservation(EndDate=from_now(hours=23))),
    altered(
        R,
        WARN,
        "it is scheduled and starts 20",
        by=reservation(State="scheduled", StartDate=from_now(hours=5), AvailableInstanceCount=0),
    ),
    altered(
        R,
        FAIL,
        "waits for static nodes",
        by=reservation(State="scheduled", StartDate=from_now(hours=5)),
        edit=static_node,
    ),
    altered(
        R,
        FAIL,
        "5 of 5 instances free, 8 more needed",
        by=reservation(State="scheduled", TotalInstanceCount=5, AvailableInstanceCount=0),
    ),
    altered(
        R,
        FAIL,
        f"for trn1n.32xlarge, and {FIRST} has trn1.32xlarge",
        "its AvailabilityZoneId is usw2-az1; needed: usw2-az4",
        "its InstancePlatform is Windows; needed: Linux/UNIX",
        "its Tenancy is dedicated",
        "it is a Capacity Block",
        "1 of 1 instances free, 8 more needed",
        "made in placement group another, and cluster.queues[0] is in near",
        edit=placed(0),
        by=reservation(
            AvailabilityZoneId="usw2-az1",
            InstancePlatform="Windows",
            InstanceType="trn1n.32xlarge",
            PlacementGroupArn="arn:aws:ec2:us-west-2:1:placement-group/another",
            ReservationType="capacity-block",
            Tenancy="dedicated",
            TotalInstanceCount=1,
        ),
    ),
    altered(
        R,
        FAIL,
        "5 of 8 instances free, 8 more needed",
        by=reservation(AvailableInstanceCount=5),
        describe_instances=launched(3, RESERVATION, "somebody-else"),
    ),
    case(B, PASS, "active until 20", "4 of 4 trn1.32xlarge free in usw2-az4, 4 more needed", BLOCK),
    case(G, PASS, "1 of 1 reservations fit, 8 trn1.32xlarge free, 8 more needed"),
    case(G, FAIL, "there is no such group", get_group_configuration=refusal("NotFoundException")),
    case(
        G,
        FAIL,
        "its types are AWS::EC2::HostManagement",
        get_group_configuration={"GroupConfiguration": {"Configuration": [{"Type": "AWS::EC2::HostManagement"}]}},
    ),
    altered(
        G,
        FAIL,
        "0 of 1 reservations fit",
        "its AvailabilityZoneId is usw2-az1",
        by=member(AvailabilityZoneId="usw2-az1"),
    ),
    altered(
        G, WARN, "5 trn1.32xlarge free, 8 more needed; the rest starts on demand", by=member(AvailableInstanceCount=5)
    ),
    altered(G, WARN, "it ends 20", by=member(EndDate=from_now(hours=23))),
    case(
        G,
        FAIL,
        "made outside of placement groups",
        edit=placed(2),
        **with_second_member(PlacementGroupArn="arn:aws:ec2:us-west-2:1:placement-group/near"),
    ),
    *(case(each, SKIP, base=new_network) for each in CHECKS),
]


@pytest.mark.parametrize("each", CASES)
def test_capacity(each: Case, account: Account) -> None:
    each.verify(account)


def test_each_type_must_find_a_reservation_in_a_group(account: Account) -> None:
    def two_types(raw: Raw) -> None:
        resources = raw["cluster"]["queues"][2]["compute_resources"]
        resources.append({**resources[0], "name": "network", "instance_type": "trn1n.32xlarge"})

    results = Case(G, FAIL, edit=two_types).findings(account)
    assert [each.status for each in results] == [PASS, FAIL]
    assert "put a reservation for trn1n.32xlarge in usw2-az4 into it" in results[1].hint


@pytest.mark.parametrize(
    ("alter", "answers", "unused"),
    [
        (reservation(TotalInstanceCount=10), {}, 2),
        (block(TotalInstanceCount=10), {}, 0),
        (member(AvailableInstanceCount=9), {}, 1),
        (reservation(AvailableInstanceCount=5), {"describe_instances": launched(3, RESERVATION)}, 0),
    ],
    ids=["larger", "block", "of-the-group", "in-use"],
)
def test_reservations_count_in_quotas_beyond_what_the_deployment_takes(
    alter: Alter, answers: dict[str, Any], unused: int, account: Account
) -> None:
    deployment = deployment_of(everything())
    deployment.account = AlteredAccount(account, {"describe_capacity_reservations": alter, **answers})
    assert unused_by_type(deployment)["trn1.32xlarge"] == unused
