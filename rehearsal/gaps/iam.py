"""AWS Identity and Access Management."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json
from typing import Final

from moto.core.responses import ActionResult
from moto.iam.models import SERVICE_NAME_CONVERSION, IAMBackend, ManagedPolicy
from moto.iam.policy_validation import IAMTrustPolicyDocumentValidator
from moto.iam.responses import IamResponse

_read_managed_policies: Final = IAMBackend._init_aws_policies
_managed_policies: Final[dict[tuple[str, str], list[ManagedPolicy]]] = {}


class Iam(IamResponse):
    """IAM that checks the trust policy of a new role; moto checks all other policies, and that of an old role."""

    def create_role(self) -> ActionResult:
        policy = json.loads(self._get_param("AssumeRolePolicyDocument"))
        # In this place IAM takes the old version of the language, too, which is the default.
        current = {**policy, "Version": "2012-10-17"}
        IAMTrustPolicyDocumentValidator(json.dumps(current)).validate()
        return super().create_role()


def name_service_roles() -> None:
    """Give FSx's service-linked role the name that AWS gives it.

    https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-service-linked-roles.html
    """
    SERVICE_NAME_CONVERSION["fsx"] = "AmazonFSx"


def read_managed_policies_once() -> None:
    """Keep AWS's managed policies through a reset: to read all of them again takes moto longer than a small stack."""
    IAMBackend._init_aws_policies = _unattached_policies  # type: ignore[assignment,method-assign]


def _unattached_policies(backend: IAMBackend) -> list[ManagedPolicy]:
    place = (backend.account_id, backend.region_name)
    if place not in _managed_policies:
        _managed_policies[place] = _read_managed_policies(backend)
    for policy in _managed_policies[place]:
        policy.attachment_count = 0  # all else of it is AWS's, and nobody's to change
    return _managed_policies[place]
