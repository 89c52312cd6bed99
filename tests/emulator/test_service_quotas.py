"""The emulated Service Quotas, and what the good account has of them."""

from typing import Any

import pytest

from config.settings import load
from emulator import prerequisites
from emulator.aws import EmulatedAws
from scripts.check.estimate.quotas import quotas
from scripts.emulated import accounts
from tests.configurations import CONFIG, SHIPPED
from tests.emulator.account import REGION


@pytest.fixture
def client(rehearsed_aws: EmulatedAws) -> Any:
    return rehearsed_aws.client("service-quotas", REGION)


def test_defaults_are_those_of_the_estimate(client: Any) -> None:
    needed = [each for name in SHIPPED for each in quotas(load(CONFIG / f"{name}.yaml")) if each.code]
    for quota in needed:
        default = client.get_aws_default_service_quota(ServiceCode=quota.service, QuotaCode=quota.code)["Quota"]
        assert (default["QuotaName"], default["Value"]) == (quota.name, quota.default or 0)


def test_accounts_have_room_for_every_configuration(client: Any, rehearsed_aws: EmulatedAws) -> None:
    for name in SHIPPED:
        accounts.create_prerequisites(rehearsed_aws, load(CONFIG / f"{name}.yaml"))  # raises each quota once
    raised = {
        each["QuotaCode"]: each["Value"]
        for service in ("ebs", "ec2", "vpc")
        for each in client.list_service_quotas(ServiceCode=service)["Quotas"]
    }
    assert raised == {code: value for (_, code), value in prerequisites.RAISED_QUOTAS.items()}
    for name in SHIPPED:
        for quota in quotas(load(CONFIG / f"{name}.yaml")):
            assert quota.needed <= raised.get(quota.code, quota.default or 0), quota
