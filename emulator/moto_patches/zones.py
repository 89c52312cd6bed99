"""Route 53: hosted zones with chosen ids. Their API takes tags only afterwards, so a caller's reference is the id."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from moto.route53 import models
from moto.route53.models import FakeZone, Route53Backend
from moto.utilities.id_generator import TAG_KEY_CUSTOM_ID

from emulator.moto_patches.tags import chosen_id


def choose_zone_ids() -> None:
    """Give a zone whose caller's reference looks like an id, such as Z0123456789ABCDEFGHIJ, this id."""
    Route53Backend.create_hosted_zone = _choosing(Route53Backend.create_hosted_zone)  # type: ignore[method-assign]


def _choosing(create: Callable[..., FakeZone]) -> Callable[..., FakeZone]:
    def create_hosted_zone(*arguments: Any, caller_reference: str | None = None, **options: Any) -> FakeZone:
        is_id = re.fullmatch(r"Z[A-Z0-9]{6,31}", caller_reference or "")
        tags = {TAG_KEY_CUSTOM_ID: str(caller_reference)} if is_id else {}
        with chosen_id(models, "create_route53_zone_id", tags):
            return create(*arguments, caller_reference=caller_reference, **options)

    return create_hosted_zone
