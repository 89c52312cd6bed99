"""Amazon Data Lifecycle Manager, which moto does not have: policies of EBS snapshots, of which none is ever run.

https://docs.aws.amazon.com/dlm/latest/APIReference/API_Operations.html
"""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final
from uuid import uuid4

import moto.backend_index
from moto.core.base_backend import BackendDict, BaseBackend
from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult, BaseResponse, EmptyResult


class DlmBackend(BaseBackend):
    """The policies of an account and Region, by id."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.policies: dict[str, dict[str, Any]] = {}

    @property
    def _url_module(self) -> Any:
        return SimpleNamespace(url_bases=[_HOST], url_paths={"{0}/.*$": Dlm.dispatch})


_HOST: Final = r"https?://dlm\.(.+)\.amazonaws\.com"
dlm_backends: BackendDict[DlmBackend] = BackendDict(DlmBackend, "dlm")


class Dlm(BaseResponse):
    """Custom policies of snapshots, and their tags."""

    def __init__(self) -> None:
        super().__init__(service_name="dlm")

    def create_lifecycle_policy(self) -> ActionResult:
        details = self._get_param("PolicyDetails", {})
        policy_id, now = f"policy-{uuid4().hex[:17]}", datetime.now(UTC)
        self._policies[policy_id] = {
            "PolicyId": policy_id,
            "PolicyArn": f"arn:aws:dlm:{self.region}:{self.current_account}:policy/{policy_id}",
            **{key: self._get_param(key) for key in ("Description", "ExecutionRoleArn", "State")},
            "PolicyDetails": {"PolicyType": "EBS_SNAPSHOT_MANAGEMENT", **details},
            "Tags": self._get_param("Tags", {}),
            "DateCreated": now,
            "DateModified": now,
        }
        return ActionResult({"PolicyId": policy_id})

    def get_lifecycle_policy(self) -> ActionResult:
        return ActionResult({"Policy": self._policy(self._get_param("policyId"))})

    def get_lifecycle_policies(self) -> ActionResult:
        keys = ("PolicyId", "Description", "State", "Tags")
        return ActionResult(
            {
                "Policies": [
                    {**{key: each[key] for key in keys}, "PolicyType": each["PolicyDetails"]["PolicyType"]}
                    for each in self._policies.values()
                ]
            }
        )

    def update_lifecycle_policy(self) -> EmptyResult:
        policy = self._policy(self._get_param("policyId"))
        given = {key: self._get_param(key) for key in ("Description", "ExecutionRoleArn", "PolicyDetails", "State")}
        changed = {key: value for key, value in given.items() if value is not None}
        if "PolicyDetails" in changed:
            changed["PolicyDetails"] = {**policy["PolicyDetails"], **changed["PolicyDetails"]}
        policy.update(changed, DateModified=datetime.now(UTC))
        return EmptyResult()

    def delete_lifecycle_policy(self) -> EmptyResult:
        """Delete a policy; its snapshots stay (https://docs.aws.amazon.com/ebs/latest/userguide/delete.html)."""
        policy_id = self._get_param("policyId")
        self._policy(policy_id)
        del self._policies[policy_id]
        return EmptyResult()

    def tag_resource(self) -> EmptyResult:
        self._tags().update(self._get_param("Tags", {}))
        return EmptyResult()

    def untag_resource(self) -> EmptyResult:
        for key in self.querystring.get("tagKeys", []):
            self._tags().pop(key, None)
        return EmptyResult()

    def _tags(self) -> dict[str, str]:
        tags: dict[str, str] = self._policy(self._get_param("resourceArn").rpartition("/")[2])["Tags"]
        return tags

    def _policy(self, policy_id: str) -> dict[str, Any]:
        if policy_id not in self._policies:
            raise JsonRESTError("ResourceNotFoundException", f"Policy {policy_id} does not exist.")
        return self._policies[policy_id]

    @property
    def _policies(self) -> dict[str, dict[str, Any]]:
        return dlm_backends[self.current_account][self.region].policies


def add_lifecycle_manager() -> None:
    """Let moto know the service: it imports the backends of a service from the module of its name."""
    sys.modules["moto.dlm"] = sys.modules[__name__]
    moto.backend_index.backend_url_patterns.append(("dlm", re.compile(_HOST)))
