"""The argument DEPLOYMENT of commands that work on an account."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from scripts.core.errors import UnusableError
from scripts.core.options import Command, Function, account, deployment_name, settings_file, settings_of, shown
from scripts.core.text import echo

if TYPE_CHECKING:
    from config.settings import Settings
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
        made = _deployment(name, region, reads_all=reads_all)
        if region is not None and region != made.settings.region:
            allowed = f"{made.settings.region}, the region of {shown(settings_file(name))}"
            raise UnusableError(f"--region: got {region}; allowed: {allowed}")
        return function(deployment=made, **parameters)

    return deployment_name(account(with_deployment))


def _deployment(name: str, region: str | None, *, reads_all: bool) -> Deployment:
    from config.settings import SettingsError  # the models take their time
    from scripts.account.deployment import Deployment

    try:
        settings = settings_of(name)
    except SettingsError as error:
        if reads_all:
            raise
        from scripts.account import as_deployed

        return as_deployed.deployment(name, region, error)
    _check_namesakes(name, settings, refuses=reads_all)
    return Deployment(name, settings)


def _check_namesakes(name: str, settings: Settings, *, refuses: bool) -> None:
    """Report other files of the same deployment, of which each would undo what the others have changed.

    Raises:
        UnusableError: There are some, and the command would change the deployment to what this one says.
    """
    from config.usable import namesakes

    path = settings_file(name)
    if not (others := namesakes(path, settings)):
        return
    named = " and ".join(shown(each) for each in (path, *others))
    text = f"{named} are the same deployment: each has `name: {settings.name}` in {settings.region}"
    hint = f"give {shown(path)} another `name`, or delete the one that is not used"
    command = click.get_current_context().command
    if refuses and isinstance(command, Command) and command.is_changing:
        raise UnusableError(text, hint)
    echo(f"warning: {text}; {hint}", err=True)
