"""Sessions on a node by Session Manager, which needs no open port: a shell, SSH, a forwarded port.

As the AWS CLI does it, which is not needed:
https://github.com/aws/aws-cli/blob/v2/awscli/customizations/sessionmanager.py.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from pydantic import Field

from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import reaching
from scripts.account.remote.streamed_command import login_command
from scripts.core.document import Document
from scripts.core.errors import UnusableError
from scripts.core.text import echo
from ultracluster.domain import names

PLUGIN = "session-manager-plugin"
_INSTALL = (
    "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"
)
_RESPONSE = "AWS_SSM_START_SESSION_RESPONSE"
"""The variable that has the session's token, as later versions than 1.2.497 of the plugin take it."""


class Connection(Document):
    """What ``ssh --output json`` prints."""

    node: str = Field(description="The node's name.")
    instance_id: str = Field(description="Its EC2 instance.")
    region: str = Field(description="AWS Region.")
    user: str | None = Field(description="Whose login shell it is; null: the user of the IAM tag SSMSessionRunAs.")
    command: list[str] = Field(description="The AWS CLI's command that opens the shell.")


@dataclass(frozen=True)
class Session:
    """What a session does.

    Attributes:
        document: The document of Systems Manager that it runs.
        parameters: The document's parameters.

    https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-sessions-start.html
    """

    document: str
    parameters: Mapping[str, Sequence[str]] = field(default_factory=dict)


def shell(user: str | None, cluster: str) -> Session:
    """Return the session of a user's login shell; None: of whom the IAM tag SSMSessionRunAs names.

    Without a document the shell would be that of ssm-user, who is no user of the cluster.
    """
    if user is None:
        return Session(names.session_document(cluster))
    return Session("AWS-StartInteractiveCommand", {"command": [f"sudo su - {user}"]})


def job(queue: str | None, time: str) -> list[str]:
    """Return the command of a shell on a whole compute node, by Slurm: a job that ends with it, or after a time.

    https://slurm.schedmd.com/srun.html#OPT_pty
    """
    return [
        *("srun", "--job-name=shell", "--nodes=1", "--ntasks=1", "--exclusive", "--cpu-bind=none", f"--time={time}"),
        *([f"--partition={queue}"] if queue else []),
        *("--pty", "bash", "--login"),
    ]


def job_of(user: str, words: Sequence[str]) -> Session:
    """Return the session that runs words in a user's login shell, in which Ctrl-C and the window's size arrive."""
    return Session("AWS-StartInteractiveCommand", {"command": [shlex.join(["sudo", *login_command(user, words)])]})


def become(words: Sequence[str]) -> NoReturn:
    """Become a command that is on PATH."""
    os.execvp(words[0], [*words])  # noqa: S606 - no shell is wanted


def ssh(cluster: str) -> Session:
    """Return the session that carries SSH on its standard streams, to the port that the cluster's document names."""
    return Session(names.ssh_document(cluster))


def forwarding(port: int, local_port: int) -> Session:
    """Return the session that forwards a port of this machine to one of the instance, where root connects to it."""
    return Session("AWS-StartPortForwardingSession", {"portNumber": [str(port)], "localPortNumber": [str(local_port)]})


def cli_command(deployment: Deployment, instance_id: str, session: Session) -> list[str]:
    """Return the AWS CLI's command that opens the same session."""
    return [
        *("aws", "ssm", "start-session", "--region", deployment.settings.region, "--target", instance_id),
        *("--document-name", session.document),
        *(("--parameters", json.dumps(session.parameters)) if session.parameters else ()),
    ]


def open_session(deployment: Deployment, instance_id: str, session: Session, remark: str = "") -> NoReturn:
    """Become the plugin, with a session on an instance, after a remark to people. Needs ssm:StartSession.

    Raises:
        UnusableError: The plugin is not installed, or the cluster has not got the document yet.
        HeadNodeError: Session Manager does not reach the instance.
    """
    plugin = shutil.which(PLUGIN)
    if plugin is None:
        raise UnusableError(f"There is no {PLUGIN} on PATH", f"install it: {_INSTALL}")
    client = deployment.account.client("ssm")
    parameters = {
        "Target": instance_id,
        "DocumentName": session.document,
        "Parameters": session.parameters,
        "Reason": "ultracluster",
    }
    try:
        with reaching(deployment, instance_id):
            answer = client.start_session(**parameters)
    except client.exceptions.InvalidDocument as error:
        raise UnusableError(
            f"There is no session document {session.document}, which clusters get when they are deployed",
            f"./ultracluster deploy {deployment.name}",
        ) from error
    response = json.dumps({key: answer[key] for key in ("SessionId", "TokenValue", "StreamUrl")})
    environment = {**os.environ, _RESPONSE: response}
    destination = (client.meta.region_name, "StartSession", os.environ.get("AWS_PROFILE", ""))
    arguments = [PLUGIN, _RESPONSE, *destination, json.dumps(parameters), client.meta.endpoint_url]
    if remark:
        echo(remark, err=True)
    os.execve(plugin, arguments, environment)  # noqa: S606 - no shell is wanted
