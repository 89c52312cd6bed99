"""Answers of an account that is ready for a deployment, and the same answers altered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest

from config.settings import Settings, load
from emulator.aws import ACCOUNT
from scripts.account.deployment import Account, Deployment
from scripts.check.preflight.check import Check
from scripts.check.preflight.runner import findings
from scripts.core.findings import FAIL, PASS, SKIP, UNKNOWN, WARN, CheckStatus, Finding
from tests.configurations import CONFIG
from tests.scripts.refusals import refusal

REGION = "us-west-2"
VPC, PUBLIC, PRIVATE = "vpc-0123456789abcdef0", "subnet-0123456789abcdef0", "subnet-0fedcba9876543210"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
BUCKET = "our-training-data"
RESERVATION, BLOCK = "cr-0123456789abcdef0", "cr-0fedcba9876543210"
"""Those that config/reserved.yaml names: 8 and 4 trn1.32xlarge."""
GROUP = f"arn:aws:resource-groups:{REGION}:{ACCOUNT}:group/pool"
ENVIRONMENT = "mine"
_ORDER = (SKIP, PASS, UNKNOWN, WARN, FAIL)
_ACTIONS = {
    "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:ListBuckets": "s3:ListAllMyBuckets",
}
"""Actions that have another name than the operation that they allow.

https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
"""

_OPTIONAL = {"secretsmanager:GetSecretValue"}
"""What a check asks for, and does without: the policy that is printed shows nobody a password."""

Raw = dict[str, Any]
Edit = Callable[[Raw], object]


def everything() -> Raw:
    """Return settings that have something for every check: those of `reserved`, and more."""
    raw: Raw = load(CONFIG / "reserved.yaml").model_dump(mode="json")
    raw["account"] = ACCOUNT
    raw["network"]["existing"] = {"vpc_id": VPC, "public_subnet_id": PUBLIC, "private_subnet_id": PRIVATE}
    raw["storage"]["file_system"].update(backup_retention_days=0, kms_key_arn=KEY)
    raw["storage"]["data_repositories"] = [{"path": "/data", "bucket": BUCKET}]
    raw["cluster"]["head_node"].update(ssh_key_name="somebody", ssh_cidr="203.0.113.0/24")
    first = raw["cluster"]["queues"][0]
    node = {**first["compute_resources"][0], "capacity_reservation_id": None}
    grouped = [{**node, "capacity_reservation_group_arn": GROUP}]
    placed = {"placement_group": None, "existing_placement_group": "near", "compute_resources": [node]}
    raw["cluster"]["queues"] += [
        {**first, "name": "grouped", "compute_resources": grouped},
        {**first, "name": "placed", **placed},
    ]
    return raw


def new_network() -> Raw:
    """Return settings of a network of its own, those of `trn1-16`."""
    raw: Raw = load(CONFIG / "trn1-16.yaml").model_dump(mode="json")
    return raw


def deployment_of(raw: Raw) -> Deployment:
    return Deployment(ENVIRONMENT, Settings.model_validate(raw))


@dataclass(frozen=True)
class ByParameters:
    """Makes an answer of the parameters of a question."""

    answer: Callable[[dict[str, Any]], Any]


def stacks(**described: Mapping[str, Any]) -> ByParameters:
    """Return the answers of CloudFormation in an account with these stacks, by name."""
    existing = {name: {"StackName": name, "StackStatus": "CREATE_COMPLETE", **each} for name, each in described.items()}

    def answer(parameters: dict[str, Any]) -> Any:
        if "StackName" not in parameters:
            return list(existing.values())
        if parameters["StackName"] not in existing:
            raise refusal("ValidationError", "DescribeStacks", "it does not exist")
        return {"Stacks": [existing[parameters["StackName"]]]}

    return ByParameters(answer)


class AlteredAccount(Account):
    """The answers of another account, some of them altered.

    Attributes:
        actions: The IAM actions of what was asked.
    """

    def __init__(self, account: Account, answers: Mapping[str, Any]) -> None:
        """Alter answers by the name of boto3's method; under an empty name is what all others get.

        In place of an answer stands an exception, what changes a copy of the answer, what makes one of the parameters,
        or the answer itself.
        """
        super().__init__(REGION)
        self._account = account
        self._changes = answers
        self.actions: set[str] = set()

    def client(self, service: str, region: str | None = None) -> Any:
        if "" in self._changes:
            raise self._changes[""]
        return self._account.client(service, region)

    def ask(self, service: str, operation: str, **parameters: Any) -> Any:
        return self._altered(self._account.ask, service, operation, parameters)

    def list(self, service: str, operation: str, **parameters: Any) -> Any:
        return self._altered(self._account.list, service, operation, parameters)

    def _altered(self, ask: Callable[..., Any], service: str, operation: str, parameters: dict[str, Any]) -> Any:
        meta = self._account.client(service).meta
        action = f"{meta.service_model.signing_name}:{meta.method_to_api_mapping[operation]}"
        self.actions.add(_ACTIONS.get(action, action))
        change = self._changes.get(operation, self._changes.get(""))
        if isinstance(change, Exception):
            raise change
        if isinstance(change, ByParameters):
            return change.answer(parameters)
        if change is not None and not callable(change):
            return deepcopy(change)
        answer = ask(service, operation, **parameters)
        if change is None:
            return answer
        answer = deepcopy(answer)
        replaced = change(answer)
        return answer if replaced is None else replaced


@dataclass(frozen=True)
class Case:
    """What a check must find.

    Attributes:
        status: The worst that it finds.
        says: Parts of what it says then: sentence, hint or command.
        edit: What is changed in the settings.
        answers: What the account answers otherwise, see `AlteredAccount`.
    """

    check: Check
    status: CheckStatus
    says: tuple[str, ...] = ()
    edit: Edit = bool
    base: Callable[[], Raw] = everything
    answers: Mapping[str, Any] = field(default_factory=dict)

    def findings(self, account: Account) -> list[Finding]:
        """Return what the check finds, which calls nothing that it has no permission for."""
        raw = self.base()
        self.edit(raw)
        deployment, altered = deployment_of(raw), AlteredAccount(account, self.answers)
        deployment.account = altered
        answers = findings(self.check, deployment)
        assert altered.actions - _OPTIONAL <= {permission.action for permission in self.check.permissions}
        return list(answers)

    def verify(self, account: Account) -> None:
        """Assert what is found."""
        answers = self.findings(account)
        worst = max(answers, key=lambda finding: _ORDER.index(finding.status))
        assert worst.status is self.status, answers
        text = "\n".join(
            f"{each.sentence}\n{each.hint}\n{each.command}" for each in answers if each.status is worst.status
        )
        assert [part for part in self.says if part not in text] == [], text
        assert worst.hint or worst.status not in (FAIL, WARN)


def case(
    check: Check, status: CheckStatus, *says: str, edit: Edit = bool, base: Any = everything, **answers: Any
) -> Any:
    return pytest.param(Case(check, status, says, edit, base, answers), id=f"{check.id}-{status}")
