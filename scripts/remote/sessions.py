"""A shell on a node, opened by Session Manager: no SSH, no key and no open port.

As the AWS CLI does it, which is not needed:
https://github.com/aws/aws-cli/blob/v2/awscli/customizations/sessionmanager.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import Any, NoReturn

from pydantic import Field

from scripts.command import UnusableError
from scripts.deployment import Deployment
from scripts.document import Document
from scripts.remote.head_node import reaching

PLUGIN = "session-manager-plugin"
_INSTALL = (
    "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"
)
_DOCUMENT = "AWS-StartInteractiveCommand"
"""Runs a command with a terminal. Otherwise the shell would be that of ssm-user, who is no user of the cluster.

https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-sessions-start.html
"""
_RESPONSE = "AWS_SSM_START_SESSION_RESPONSE"
_LAST_WITHOUT_VARIABLE = (1, 2, 497, 0)
"""Later versions of the plugin take the session's token from the environment, where other users do not see it."""


class Connection(Document):
    """What ``connect --json`` prints."""

    node: str = Field(description="The node's name.")
    instance_id: str = Field(description="Its EC2 instance.")
    region: str = Field(description="AWS Region.")
    user: str = Field(description="Whose login shell it is.")
    command: list[str] = Field(description="The AWS CLI's command that opens the shell.")


def request(instance_id: str, user: str) -> dict[str, Any]:
    """Return the parameters of StartSession for a user's login shell on an instance."""
    return {
        "Target": instance_id,
        "DocumentName": _DOCUMENT,
        "Parameters": {"command": [f"sudo su - {user}"]},
        "Reason": "python -m scripts connect",
    }


def cli_command(deployment: Deployment, instance_id: str, user: str) -> list[str]:
    """Return the AWS CLI's command that opens the same shell."""
    parameters = request(instance_id, user)
    return [
        *("aws", "ssm", "start-session", "--region", deployment.settings.region, "--target", instance_id),
        *("--document-name", _DOCUMENT, "--parameters", json.dumps(parameters["Parameters"])),
    ]


def open_shell(deployment: Deployment, instance_id: str, user: str) -> NoReturn:
    """Become the plugin, with a session for a user's login shell on an instance. Needs ssm:StartSession.

    Raises:
        UnusableError: The plugin is not installed.
        HeadNodeError: Session Manager does not reach the instance.
    """
    plugin = shutil.which(PLUGIN)
    if plugin is None:
        raise UnusableError(f"There is no {PLUGIN} on PATH. Install it: {_INSTALL}")
    client = deployment.account.client("ssm")
    parameters = request(instance_id, user)
    with reaching(deployment, instance_id):
        answer = client.start_session(**parameters)
    response = json.dumps({key: answer[key] for key in ("SessionId", "TokenValue", "StreamUrl")})
    environment = dict(os.environ)
    if _version(plugin) > _LAST_WITHOUT_VARIABLE:
        environment[_RESPONSE], response = response, _RESPONSE
    destination = (client.meta.region_name, "StartSession", os.environ.get("AWS_PROFILE", ""))
    arguments = [PLUGIN, response, *destination, json.dumps(parameters), client.meta.endpoint_url]
    os.execve(plugin, arguments, environment)  # noqa: S606 - no shell is wanted


def _version(plugin: str) -> tuple[int, ...]:
    """Return the version of the plugin; empty: it prints none."""
    version = subprocess.run([plugin, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return tuple(map(int, version.split("."))) if re.fullmatch(r"\d+(\.\d+)*", version) else ()
