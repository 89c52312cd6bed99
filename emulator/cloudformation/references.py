"""Dynamic references: what a template's properties read from Secrets Manager when a resource is made or changed.

A stack remembers the reference and never the value: another value of the secret is no change of the stack.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/dynamic-references-secretsmanager.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from emulator.resources.model import ResourceError
from toolchain.values import DYNAMIC_REFERENCE, UnsupportedError

_SECRET: Final = re.compile(
    r"secretsmanager:(?P<id>arn(?::[^:]*){5}:[^:]+|[^:]+)"
    r"(?::SecretString(?::(?P<key>[^:]*)(?::(?P<stage>[^:]*)(?::(?P<version>[^:]*))?)?)?)?"
)


def resolve(value: Any, client: Callable[[str], Any]) -> Any:
    """Return a value with what its dynamic references stand for.

    Args:
        value: Of a property, without intrinsic functions.
        client: Gives a boto3 client of a service.

    Raises:
        UnsupportedError: A reference is none to a secret.
        ResourceError: The secret has no such key.
        botocore.exceptions.ClientError: There is no such secret.
    """
    if isinstance(value, dict):
        return {key: resolve(each, client) for key, each in value.items()}
    if isinstance(value, list):
        return [resolve(each, client) for each in value]
    if isinstance(value, str):
        return DYNAMIC_REFERENCE.sub(lambda match: _secret(match[1], client), value)
    return value


def check_none(value: Any) -> None:
    """Check that a value has no dynamic reference.

    Raises:
        UnsupportedError: It has one; the message names it.
    """
    if reference := DYNAMIC_REFERENCE.search(str(value)):
        raise UnsupportedError(f"dynamic reference to {reference[1]}")


def _secret(reference: str, client: Callable[[str], Any]) -> str:
    match = _SECRET.fullmatch(reference)
    if match is None:
        raise UnsupportedError(f"dynamic reference to {reference}")
    which = {"VersionStage": match["stage"], "VersionId": match["version"]}
    request = {name: value for name, value in which.items() if value}
    text: str = client("secretsmanager").get_secret_value(SecretId=match["id"], **request)["SecretString"]
    if not match["key"]:
        return text
    try:
        return str(json.loads(text)[match["key"]])
    except (ValueError, LookupError, TypeError):
        raise ResourceError(f"Could not find a value associated with JSONKey in SecretString: {match['key']}") from None
