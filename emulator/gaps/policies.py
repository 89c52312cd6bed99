"""Policies of resources: whether they are any, and what they allow."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Any

_EFFECTS = ("Allow", "Deny")


class PolicySyntaxError(ValueError):
    """A document is no policy."""


def statements(document: str) -> list[dict[str, Any]]:
    """Return the statements of a policy in JSON.

    Raises:
        PolicySyntaxError: It is no object with statements that allow or deny.
    """
    policy = json.loads(document)
    found = policy.get("Statement") if isinstance(policy, dict) else None
    listed = [found] if isinstance(found, dict) else found
    if not isinstance(listed, list) or not all(
        isinstance(each, dict) and each.get("Effect") in _EFFECTS for each in listed
    ):
        raise PolicySyntaxError
    return listed


def allows(statement: dict[str, Any], action: str) -> bool:
    """Tell whether a statement allows an action to somebody; conditions are taken for met."""
    patterns = _listed(statement.get("Action", []))
    return statement["Effect"] == "Allow" and any(fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns)


def names_service(statement: dict[str, Any], service: str) -> bool:
    """Tell whether a service is among the principals of a statement."""
    principal = statement.get("Principal", {})
    if isinstance(principal, str):
        return principal == "*"
    return service in _listed(principal.get("Service", [])) or "*" in _listed(principal.get("AWS", []))


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
