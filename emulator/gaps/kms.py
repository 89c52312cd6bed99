"""AWS Key Management Service."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json

from moto.core.exceptions import JsonRESTError
from moto.kms import models
from moto.kms.responses import KmsResponse

from emulator.gaps.policies import PolicySyntaxError, allows, statements
from emulator.gaps.tags import chosen_id


class Kms(KmsResponse):
    """KMS that refuses a key policy which nobody could change any more, and knows what a key is for by default.

    https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateKey.html, BypassPolicyLockoutSafetyCheck and KeyUsage
    """

    def create_key(self) -> str:
        if self._get_param("Policy"):
            self._check_policy()
        self.body = json.dumps({"KeyUsage": "ENCRYPT_DECRYPT", **json.loads(self.body)})
        tags = {each["TagKey"]: each["TagValue"] for each in self._get_param("Tags") or []}
        with chosen_id(models, "generate_key_id", tags):
            return super().create_key()

    def put_key_policy(self) -> str:
        self._check_policy()
        return super().put_key_policy()

    def _check_policy(self) -> None:
        try:
            changeable = any(allows(each, "kms:PutKeyPolicy") for each in statements(self._get_param("Policy")))
        except PolicySyntaxError:
            changeable = False
        if not changeable and not self._get_param("BypassPolicyLockoutSafetyCheck"):
            raise JsonRESTError(
                "MalformedPolicyDocumentException",
                "The new key policy will not allow you to update the key policy in the future.",
            )
