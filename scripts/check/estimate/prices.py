"""Prices from AWS's Price List API, from its answers of some days ago, or from the dated table."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, Literal

import pydantic

from scripts.check.estimate.products import Product, table_price
from scripts.core.errors import UnusableError
from ultracluster.domain.prices import TABLE_REGIONS

Mode = Literal["auto", "api", "table"]

API_REGION = "us-east-1"
"""The Price List answers for all Regions in few of them (AWS Billing user guide, "Using AWS Price List Query API")."""
CACHED_FOR = timedelta(days=7)
_REGION_IN_USAGE_TYPE = r"(?:[A-Z]+\d*-)?"


class PriceListError(UnusableError):
    """The Price List could not be asked; the message says why."""


@pydantic.dataclasses.dataclass(frozen=True)
class Price:
    """A price in US dollars per unit, before tax and discounts, valid on a day (ISO 8601; empty: of the settings)."""

    dollars: Annotated[Decimal, pydantic.PlainSerializer(float, return_type=float)]
    unit: Annotated[str, pydantic.Field(serialization_alias="per")]
    source: Literal["Price List API", "table", "settings"]
    date: str


@pydantic.dataclasses.dataclass(frozen=True)
class Prices:
    """Prices of a Region.

    Attributes:
        listed: Dollars by product name, as the Price List API answered.
        listed_on: The day of that answer.
        remark: Why the Price List API was not asked, or that its answer is a kept one; empty when neither.
        asked: Names of the products that the Price List API was asked for.
    """

    region: str
    listed: dict[str, Decimal] = pydantic.Field(default_factory=dict)
    listed_on: date | None = None
    remark: str = ""
    asked: frozenset[str] = frozenset()

    def of(self, product: Product) -> Price | None:
        """Return the price of a product: of the Price List if it has one, else of the table, else of the settings."""
        if self.listed_on is not None and product.name in self.listed:
            return Price(self.listed[product.name], product.unit, "Price List API", self.listed_on.isoformat())
        in_table = table_price(product) if self.region in TABLE_REGIONS else None
        if in_table is not None:
            return Price(in_table[0], product.unit, "table", in_table[1].date)
        return None if product.stated is None else Price(product.stated, product.unit, "settings", "")


_JSON = pydantic.TypeAdapter(Prices)
"""Of answers that are kept."""


def find_prices(region: str, products: Iterable[Product], mode: Mode, today: date | None = None) -> Prices:
    """Return prices of products in a Region.

    Args:
        region: AWS Region.
        products: Those without a service code are not asked for.
        mode: ``auto``: the Price List API's kept answer, or a fresh one if there are credentials, else the
            table; ``api``: a fresh answer; ``table``: the table.
        today: The day; None: as the clock says.

    Raises:
        PriceListError: The mode is ``api``, and the API did not answer.
    """
    today = today or datetime.now(UTC).date()
    wanted = {product.name: product for product in products if product.service}
    if mode == "table":
        return Prices(region, remark="as asked for")
    if mode == "auto":
        if kept := kept_prices(region, wanted.values(), today):
            return kept
        if not _have_credentials():
            return Prices(region, remark="no credentials for the Price List API")
    try:
        listed = fetch(client(), region, wanted.values())
    except PriceListError as error:
        if mode == "api":
            raise
        return Prices(region, remark=str(error))
    prices = Prices(region, listed, today, asked=frozenset(wanted))
    if os.environ.get("AWS_ENDPOINT_URL"):
        return prices  # of an emulated AWS, whose list is not kept for AWS
    path = _cache_path(region)
    with suppress(OSError):  # if it cannot be kept, the next call asks again
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_JSON.dump_json(prices))
    return prices


def kept_prices(region: str, products: Iterable[Product], today: date) -> Prices | None:
    """Return the answer that the Price List API gave some days ago; None: it is too old, or lacks a product."""
    path, wanted = _cache_path(region), {product.name for product in products if product.service}
    try:
        kept = _JSON.validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    if kept.listed_on is None or not timedelta() <= today - kept.listed_on <= CACHED_FOR:
        return None
    return replace(kept, remark=f"kept in {path}") if kept.asked.issuperset(wanted) else None


def _cache_path(region: str) -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "ultracluster" / f"prices-{region}.json"


def fetch(client: Any, region: str, products: Collection[Product]) -> dict[str, Decimal]:
    """Ask the Price List API for on-demand prices.

    Each product has a service code. Those that the Price List does not have, or has more than one price of, are not in
    the answer, dollars by product name.

    Raises:
        PriceListError: A call failed.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    searches: dict[tuple[str, tuple[tuple[str, str], ...]], list[Product]] = defaultdict(list)
    for product in products:
        searches[product.service, tuple(sorted(product.filters.items()))].append(product)
    listed: dict[str, Decimal] = {}
    with ThreadPoolExecutor(max_workers=8) as pool:
        try:
            for searched, offers in zip(
                searches.values(), pool.map(lambda each: _search(client, region, *each), searches), strict=True
            ):
                listed |= {each.name: price for each in searched if (price := single_price(offers, each)) is not None}
        except (BotoCoreError, ClientError) as error:
            # What is no JSON is in the message as it came, such as a page of a proxy.
            reason = shorten(str(error), 200, placeholder=" ...")
            raise PriceListError(f"the Price List API did not answer: {reason}") from error
    return listed


def request(region: str, service: str, filters: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the parameters of GetProducts.

    https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
    """
    fields = [("regionCode", region), *filters]
    wanted = [{"Type": "TERM_MATCH", "Field": key, "Value": value} for key, value in fields]
    return {"ServiceCode": service, "FormatVersion": "aws_v1", "Filters": wanted}


def single_price(offers: Iterable[str], product: Product) -> Decimal | None:
    """Return the price of a product among offers, each as JSON; None: there is none, or more than one."""
    prices = {price for offer in offers for price in _dollars(json.loads(offer), product)}
    return next(iter(prices)) if len(prices) == 1 else None


def _search(client: Any, region: str, service: str, filters: tuple[tuple[str, str], ...]) -> list[str]:
    pages = client.get_paginator("get_products").paginate(**request(region, service, filters))
    return [offer for page in pages for offer in page["PriceList"]]


def _dollars(offer: dict[str, Any], product: Product) -> Iterator[Decimal]:
    """Return the price of the first unit, if the offer is one of the product."""
    usage_type = offer["product"]["attributes"].get("usagetype", "")
    if not re.fullmatch(_REGION_IN_USAGE_TYPE + re.escape(product.usage_type), usage_type):
        return
    for term in offer["terms"].get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            if dimension.get("beginRange", "0") == "0" and "USD" in dimension["pricePerUnit"]:
                yield Decimal(dimension["pricePerUnit"]["USD"]).normalize()


def client() -> Any:
    """Return a client of the Price List.

    Raises:
        PriceListError: There is none.
    """
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    config = Config(connect_timeout=1, read_timeout=10, retries={"total_max_attempts": 2})
    try:
        return boto3.client("pricing", region_name=API_REGION, config=config)
    except BotoCoreError as error:
        raise PriceListError(f"no client of the Price List API: {error}") from error


def _have_credentials() -> bool:
    """Look for credentials, but not at an instance's metadata service, for which a laptop would wait."""
    import botocore.session
    from botocore.exceptions import BotoCoreError

    session = botocore.session.Session()
    try:
        session.get_component("credential_provider").remove("iam-role")
        return session.get_credentials() is not None
    except BotoCoreError:
        return False
