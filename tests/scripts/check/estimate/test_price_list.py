"""Prices from AWS's Price List API: requests, answers, and when the table is used instead.

The answers have the shape of the API reference, GetProducts; names are those of the public price list.
"""

from __future__ import annotations

import json
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from scripts.check.estimate import prices, products
from scripts.check.estimate.prices import PriceListError, Prices, fetch, find_prices
from scripts.check.estimate.products import GP3, NAT_GATEWAY, PUBLIC_ADDRESS, instance

TODAY = date(2026, 11, 20)
TRN1 = instance("trn1.32xlarge")


def offer(usage_type: str, *dollars: str) -> dict[str, Any]:
    """Return an offer with a price for each step of its amount."""
    dimensions = {
        f"term.{step}": {"beginRange": str(step * 10_240), "pricePerUnit": {"USD": each}}
        for step, each in enumerate(dollars)
    }
    return {
        "product": {"attributes": {"usagetype": usage_type, "regionCode": "us-west-2"}},
        "terms": {"OnDemand": {"term": {"priceDimensions": dimensions}}},
    }


class FakeApi:
    """A client of the Price List API; it has a page for each offer of a service, and keeps what it was asked."""

    def __init__(self, *offers: dict[str, Any], error: Exception | None = None) -> None:
        self.offers, self.error = offers, error
        self.asked: list[dict[str, Any]] = []

    def get_paginator(self, operation: str) -> FakeApi:
        assert operation == "get_products"
        return self

    def paginate(self, **asked: Any) -> list[dict[str, Any]]:
        if self.error:
            raise self.error
        self.asked.append(asked)
        offers = self.offers if asked["ServiceCode"] == "AmazonEC2" else ()
        return [{"PriceList": [json.dumps(each)]} for each in offers]


def test_asks_by_region_service_and_attributes() -> None:
    client = FakeApi(offer("USW2-BoxUsage:trn1.32xlarge", "21.5000000000"))
    assert fetch(client, "us-west-2", [TRN1]) == {"trn1.32xlarge": Decimal("21.5")}
    [asked] = client.asked
    assert asked["ServiceCode"] == "AmazonEC2"
    filters = {each["Field"]: each["Value"] for each in asked["Filters"]}
    assert filters["regionCode"] == "us-west-2"
    assert (filters["instanceType"], filters["operatingSystem"], filters["tenancy"]) == (
        "trn1.32xlarge",
        "Linux",
        "Shared",
    )
    assert {each["Type"] for each in asked["Filters"]} == {"TERM_MATCH"}


def test_one_search_serves_all_products_and_finds_the_price_of_the_first_units() -> None:
    offers = [
        offer("USW2-RegionalNatGateway-Hours", "0.1"),
        offer("NatGateway-Hours", "0.045"),
        offer("NatGateway-Bytes", "0.046", "0.02"),
    ]
    client = FakeApi(*offers)
    dollars = fetch(client, "us-west-2", [NAT_GATEWAY, products.NAT_DATA])
    assert dollars == {"NAT gateway": Decimal("0.045"), "NAT gateway data": Decimal("0.046")}
    assert len(client.asked) == 1


@pytest.mark.parametrize(
    "offers",
    [
        [],
        [offer("USW2-EBS:VolumeUsage.gp3", "0.08"), offer("EBS:VolumeUsage.gp3", "0.09")],
        [{"product": {"attributes": {"usagetype": "EBS:VolumeUsage.gp3"}}, "terms": {"Reserved": {}}}],
    ],
    ids=["none", "two", "reserved only"],
)
def test_what_is_not_one_price_is_no_price(offers: list[dict[str, Any]]) -> None:
    assert fetch(FakeApi(*offers), "us-west-2", [GP3]) == {}


def test_a_page_in_place_of_an_answer_is_cut_short() -> None:
    page = {"Error": {"Code": "403", "Message": "<?xml version='1.0'?>\n" + "<p>Forbidden</p>\n" * 99}}

    class Proxy:
        def get_paginator(self, _: str) -> Any:
            raise ClientError(page, "GetProducts")

    with pytest.raises(PriceListError, match=r"^the Price List API did not answer: .{100,200} \.\.\.$"):
        fetch(Proxy(), "us-west-2", [TRN1])


# --- which prices are taken ---


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch, offline: Path) -> FakeApi:
    """Credentials and an API that can be reached; its client is returned."""
    client = FakeApi(offer("BoxUsage:trn1.32xlarge", "20"), offer("EBS:VolumeUsage.gp3", "0.07"))
    monkeypatch.setattr(prices, "client", lambda: client)
    monkeypatch.setattr(prices, "_have_credentials", lambda: True)
    return client


def test_the_answer_is_kept_for_a_week(online: Any, offline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = find_prices("us-west-2", [TRN1, PUBLIC_ADDRESS], "auto", TODAY)
    assert (fresh.listed, fresh.listed_on, fresh.remark) == ({"trn1.32xlarge": Decimal(20)}, TODAY, "")
    calls = len(online.asked)
    monkeypatch.setattr(prices, "_have_credentials", lambda: False)
    kept = find_prices("us-west-2", [TRN1, PUBLIC_ADDRESS], "auto", TODAY + timedelta(days=7))
    assert (kept.listed, kept.listed_on) == (fresh.listed, TODAY)
    assert kept.remark == f"kept in {offline / 'cache/ultracluster/prices-us-west-2.json'}"
    assert len(online.asked) == calls
    assert find_prices("us-west-2", [TRN1, GP3], "auto", TODAY).remark == "no credentials for the Price List API"
    price = kept.of(PUBLIC_ADDRESS)  # the list does not have it
    assert price is not None
    assert price.source == "table"
    for region, day in (("us-east-1", TODAY), ("us-west-2", TODAY + timedelta(days=8))):
        assert find_prices(region, [TRN1], "auto", day) == Prices(
            region, remark="no credentials for the Price List API"
        )


def test_what_an_emulated_aws_answers_is_not_kept_for_aws(
    online: Any, offline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert find_prices("us-west-2", [TRN1], "auto", TODAY).listed_on == TODAY
    assert not (offline / "cache").exists()


@pytest.mark.usefixtures("online")
def test_a_broken_cache_is_ignored(offline: Path) -> None:
    path = offline / "cache/ultracluster/prices-us-west-2.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}", encoding="utf-8")
    assert find_prices("us-west-2", [TRN1], "auto", TODAY).listed == {"trn1.32xlarge": Decimal(20)}


@pytest.mark.usefixtures("online")
def test_an_api_that_refuses_is_an_error_only_if_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PriceListError("the Price List API did not answer: no")

    monkeypatch.setattr(prices, "fetch", refuse)
    taken = find_prices("us-west-2", [TRN1], "auto", TODAY)
    assert taken == Prices("us-west-2", remark="the Price List API did not answer: no")
    with pytest.raises(PriceListError, match="no"):
        find_prices("us-west-2", [TRN1], "api", TODAY)


@pytest.mark.usefixtures("offline")
def test_an_api_that_is_out_of_reach_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    taken = find_prices("us-west-2", [TRN1], "auto", TODAY)
    assert taken.listed_on is None
    assert taken.remark.startswith("the Price List API did not answer: Could not connect")
