"""Amazon S3."""

from __future__ import annotations

import json
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket


class Bucket(FakeBucket):
    """A bucket whose policy does not lock everybody out.

    moto takes a condition that it cannot judge for met and a principal that it does not know for anybody, so that the
    usual "deny unless TLS" denies everything. Statements with a condition, and denials of particular principals, are
    passed over here; the rehearsal judges no permissions.
    """

    def get_permission(self, action: str, resource: str) -> Any:
        """Return what the policy says of an action."""
        if self.policy is None:
            return PermissionResult.NEUTRAL
        policy = json.loads(self.policy)
        statements = policy["Statement"] if isinstance(policy["Statement"], list) else [policy["Statement"]]
        judged = [each for each in statements if "Condition" not in each and self._is_for_all(each)]
        return IAMPolicy(json.dumps({**policy, "Statement": judged})).is_action_permitted(action, resource)

    @staticmethod
    def _is_for_all(statement: dict[str, Any]) -> bool:
        return statement["Effect"] == "Allow" or statement.get("Principal") in ("*", {"AWS": "*"})
