"""AWS's Price List, which moto does not have: one without any price.

https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
"""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import Any, Final

import moto.backend_index
from moto.core.base_backend import BackendDict, BaseBackend
from moto.core.responses import ActionResult, BaseResponse

_HOST: Final = r"https?://(?:api\.)?pricing\.(.+)\.amazonaws\.com"


class PricingBackend(BaseBackend):
    """Nothing."""

    @property
    def _url_module(self) -> Any:
        return SimpleNamespace(url_bases=[_HOST], url_paths={"{0}/$": Pricing.dispatch})


pricing_backends: BackendDict[PricingBackend] = BackendDict(PricingBackend, "pricing")


class Pricing(BaseResponse):
    """The Price List."""

    def __init__(self) -> None:
        super().__init__(service_name="pricing")

    def get_products(self) -> ActionResult:
        return ActionResult({"FormatVersion": "aws_v1", "PriceList": []})


def add_price_list() -> None:
    """Let moto know the service: it imports the backends of a service from the module of its name."""
    sys.modules["moto.pricing"] = sys.modules[__name__]
    moto.backend_index.backend_url_patterns.append(("pricing", re.compile(_HOST)))
