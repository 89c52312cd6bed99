"""The argument DEPLOYMENT of commands that work on an account."""

from __future__ import annotations

from functools import wraps
from typing import Any

from scripts.core.errors import UnusableError
from scripts.core.options import Function, account, deployment_name, settings_of


def deployment(function: Function) -> Function:
    """Add DEPLOYMENT and the options of its account; the function gets a `Deployment` as ``deployment``.

    Raises:
        SettingsError: The settings cannot be used.
        UnusableError: --region is not the settings' Region.
    """

    @wraps(function)
    def with_deployment(name: str, region: str | None, **parameters: Any) -> Any:
        from scripts.account.deployment import Deployment  # it imports the settings' models

        settings = settings_of(name)
        if region not in (None, settings.region):
            raise UnusableError(f"--region: got {region}; allowed: {settings.region}, the region of config/{name}.yaml")
        return function(deployment=Deployment(name, settings), **parameters)

    return deployment_name(account(with_deployment))
