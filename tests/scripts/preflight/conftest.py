"""A good account for a deployment, and what checks find in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from config.settings import Settings, load
from emulator.aws import EmulatedAws
from scripts import emulated
from scripts.commands.validate import CONFIG
from scripts.deployment import Deployment
from scripts.preflight.check import Check, Finding, Status
from scripts.preflight.runner import findings

REGION = "us-west-2"


class GoodAccount:
    """An emulated account that has what the settings name. Spoil it, then look.

    Attributes:
        aws: The emulated AWS.
        settings: Those of the deployment.
    """

    def __init__(self, aws: EmulatedAws, settings: Settings, environment: str) -> None:
        self.aws = aws
        self.settings = settings
        self._environment = environment
        emulated.create_prerequisites(aws, settings)
        emulated.bootstrap(aws, settings)

    def client(self, service: str) -> Any:
        return self.aws.client(service, self.settings.region)

    def look(self, check: Check) -> Sequence[Finding]:
        """Return what a check finds now."""
        return findings(check, Deployment(self._environment, self.settings))

    def statuses(self, check: Check) -> list[Status]:
        """Return the statuses of what a check finds now."""
        return [finding.status for finding in self.look(check)]


@pytest.fixture
def good_account(rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> Callable[..., GoodAccount]:
    """Make the account of a configuration, given by name or as settings; this process's credentials are for it."""
    for name, value in rehearsed_aws.settings.items():
        monkeypatch.setenv(name, value)

    def make(environment: str = "trn1-16", settings: Settings | None = None) -> GoodAccount:
        return GoodAccount(rehearsed_aws, settings or load(CONFIG / f"{environment}.yaml"), environment)

    return make
