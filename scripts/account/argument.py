"""The argument DEPLOYMENT of commands that work on an account."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from scripts.core.errors import UnusableError
from scripts.core.options import Function, account, deployment_name, settings_file, settings_of, shown

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


def deployment(function: Function) -> Function:
    """Add DEPLOYMENT and the options of its account; the function gets a `Deployment` as ``deployment``.

    Raises:
        SettingsError: The settings cannot be used.
        UnusableError: --region is not the settings' Region.
    """
    return _with_deployment(function, reads_all=True)


def deployed(function: Function) -> Function:
    """Do the same for commands that look at what is deployed, or delete or stop it: the file may break rules.

    What cannot be used of it is replaced by what is deployed, and named on standard error.

    Raises:
        UnusableError: Neither the file nor --region names the Region, or they name different ones.
    """
    return _with_deployment(function, reads_all=False)


def _with_deployment(function: Function, *, reads_all: bool) -> Function:
    @wraps(function)
    def with_deployment(name: str, region: str | None, **parameters: Any) -> Any:
        return function(deployment=named(name, region, reads_all=reads_all), **parameters)

    return deployment_name(account(with_deployment))


def named(name: str, region: str | None, *, reads_all: bool = False) -> Deployment:
    """Return the deployment of a name and --region, for commands whose DEPLOYMENT is among other words.

    Raises:
        SettingsError: All of the settings are to be read, and cannot be used.
        UnusableError: --region is not the settings' Region, or there is none.
    """
    made = _deployment(name, region, reads_all=reads_all)
    if region is not None and region != made.settings.region:
        allowed = f"{made.settings.region}, the region of {shown(settings_file(name))}"
        raise UnusableError(f"--region: got {region}; allowed: {allowed}")
    return made


def _deployment(name: str, region: str | None, *, reads_all: bool) -> Deployment:
    from config.settings import CopyError, SettingsError  # the models take their time
    from scripts.account.deployment import Deployment

    try:
        settings = settings_of(name)
    except CopyError:  # it would act on what another file is for
        raise
    except SettingsError as error:
        if reads_all:
            raise
        from scripts.account import as_deployed

        return as_deployed.deployment(name, region, error)
    return Deployment(name, settings)
