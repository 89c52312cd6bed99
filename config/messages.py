"""What is reported about violations in a settings file."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic_core import PydanticCustomError

from config.sections import EMAIL
from ultracluster.domain import names
from ultracluster.domain.violations import Path, Violation, shown

RULE = "rule"
"""Type of the errors that rules raise; their message is complete."""

_EXPECTED = {
    "dict_type": "should be a mapping",
    "invalid_key": "keys should be text",
    "list_type": "should be a list",
    "model_type": "should be a mapping",
}


_NAMES = "{} of a-z, 0-9 and -, a letter first"
PATTERNS = {
    r"^[a-z][a-z0-9-]{1,39}$": _NAMES.format("2 to 40"),
    r"^\d{12}$": "the 12 digits of an AWS account, in quotes",
    r"^[a-z]{2}(-[a-z]+)+-\d$": "an AWS Region such as us-west-2",
    r"^[a-z]+\d-az\d$": "an availability zone id such as usw2-az4, not a zone name such as us-west-2a",
    r"^[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?$": "up to 10 of a-z, 0-9 and -, which is neither first nor last",
    r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+$": "the ARN of a KMS key: "
    "arn:aws:kms:REGION:ACCOUNT:key/ID",
    r"^vpc-[0-9a-f]{8,17}$": "the id of a VPC such as vpc-0123456789abcdef0",
    r"^subnet-[0-9a-f]{8,17}$": "the id of a subnet such as subnet-0123456789abcdef0",
    r"^[a-z][a-z0-9.-]+$": "the name of an AWS service in its endpoint, such as ec2 or ecr.dkr",
    rf"^{names.CLUSTER_NAME_PATTERN}$": "2 to 60 letters, digits and -, a letter first",
    EMAIL: "an email address such as ops@example.com",
    r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$": "an EC2 instance type such as trn1.32xlarge",
    r"^cr-[0-9a-f]{17}$": "the id of a capacity reservation such as cr-0123456789abcdef0",
    r"^arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:\d{12}:group/.+$": "the ARN of a resource group: "
    "arn:aws:resource-groups:REGION:ACCOUNT:group/NAME",
    r"^[a-z][a-z0-9-]{0,24}$": _NAMES.format("1 to 25"),
    r"^ami-(?:[0-9a-f]{8}|[0-9a-f]{17})$": "the id of an image such as ami-0123456789abcdef0",
    r"^[a-z][a-z0-9-]{0,39}$": _NAMES.format("1 to 40"),
    r"^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$": "OWNER/NAME of a repository on GitHub",
    r"^[A-Za-z0-9_][A-Za-z0-9._/-]*$": "the name of a branch such as main",
    r"^arn:aws:iam::\d{12}:oidc-provider/token\.actions\.githubusercontent\.com$": "the ARN of GitHub's OIDC provider: "
    "arn:aws:iam::ACCOUNT:oidc-provider/token.actions.githubusercontent.com",
    r"^arn:aws:code(connections|star-connections):[a-z0-9-]+:\d{12}:connection/.+$": "the ARN of a connection: "
    "arn:aws:codeconnections:REGION:ACCOUNT:connection/ID",
}
"""What the patterns of the models allow, in words."""


class SettingsError(ValueError):
    """A settings file that cannot be used; the message names every violation, with its place."""


def broken_rule(violation: Violation) -> PydanticCustomError:
    """Return pydantic's error for a rule that is broken."""
    return PydanticCustomError(RULE, "{text}", {"text": str(violation)})


def error_path(error: Mapping[str, Any]) -> Path:
    """Return the path of one of pydantic's ``errors()``; of a key that is wrong itself, that of its value."""
    loc: Path = error["loc"]
    return loc[:-1] if loc[-1:] == ("[key]",) else loc


def dotted(place: Path) -> str:
    """Return a place as people write it: ``cluster.queues[0].name``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.removeprefix(".") or "(file)"


def text_of(error: Mapping[str, Any], schema: dict[str, Any]) -> str:
    """Return what is wrong, what was got, what is allowed and what the key means.

    Args:
        error: One of pydantic's ``errors()``.
        schema: JSON Schema of the whole file.
    """
    kind, got, place = error["type"], error["input"], error_path(error)
    if kind == RULE:
        return str(error["msg"])
    if kind == "extra_forbidden":
        allowed = sorted(_with_fields(_node(place[:-1], schema), schema)["properties"])
        close = get_close_matches(str(place[-1]), allowed, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        return f"unknown key; {hint}allowed: {', '.join(allowed)}"
    if kind == "missing":
        text = "missing; this key is required"
    elif kind == "string_pattern_mismatch" and error["ctx"]["pattern"] in PATTERNS:
        text = f"got {shown(got)}; allowed: {PATTERNS[error['ctx']['pattern']]}"
    else:
        expected = _EXPECTED.get(kind) or re.sub(r"^(Input|String|List|Value) should ", "should ", error["msg"])
        quotes = ", put it in quotes" if kind == "string_type" and isinstance(got, int | float) else ""
        text = f"got {shown(got)}; {expected}{quotes}"
    meaning = " ".join(_node(place, schema).get("description", "").split()).removesuffix(".")
    return f"{text} ({meaning})" if place and meaning else text


def _node(place: Iterable[str | int], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the part of the schema for a place, empty where the schema says nothing."""
    node = schema
    for part in place:
        holder = _with_fields(node, schema)
        node = holder.get("items", {}) if isinstance(part, int) else holder.get("properties", {}).get(part, {})
    return node


def _with_fields(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that is not null, references followed."""
    for option in (node, *node.get("anyOf", ())):
        if "$ref" in option:
            return dict(schema["$defs"][option["$ref"].rpartition("/")[2]])
    return node
