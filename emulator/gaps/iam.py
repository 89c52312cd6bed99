"""AWS Identity and Access Management."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json

from moto.core.responses import ActionResult
from moto.iam.models import SERVICE_NAME_CONVERSION
from moto.iam.policy_validation import IAMTrustPolicyDocumentValidator
from moto.iam.responses import IamResponse


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
