"""Tags of EC2 requests, and ids that are chosen by a tag."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from moto.core.responses import BaseResponse
from moto.utilities.id_generator import TAG_KEY_CUSTOM_ID


def requested_tags(request: BaseResponse, resource_type: str) -> dict[str, str]:
    """Return the tags in the parameter TagSpecifications of an EC2 request, for one type of resource."""
    return {
        tag["Key"]: tag["Value"]
        for specification in request._get_param("TagSpecifications", [])
        if specification["ResourceType"] == resource_type
        for tag in specification["Tags"]
    }


def listed(tags: dict[str, str]) -> list[dict[str, str]]:
    """Return tags as EC2 lists them, without the one that chooses the id."""
    return [{"Key": key, "Value": value} for key, value in tags.items() if key != TAG_KEY_CUSTOM_ID]


@contextmanager
def chosen_id(module: Any, generator: str, tags: dict[str, str]) -> Iterator[None]:
    """Let moto give the id in the tag `_custom_id_`, if there is one, to the resource that it makes meanwhile."""
    if TAG_KEY_CUSTOM_ID not in tags:
        yield
        return
    with mock.patch.object(module, generator, return_value=tags[TAG_KEY_CUSTOM_ID]):
        yield
