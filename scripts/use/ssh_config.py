"""A block for OpenSSH that reaches the nodes of a deployment through Session Manager, with no open port.

ssh, scp, rsync and editors then take ``NAME`` for the head node and ``NODE.NAME`` for others. The default user's key is
sent to the instance by EC2 Instance Connect at each connection, where it is valid for a minute; nodes have those of
users.
https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-getting-started-enable-ssh-connections.html,
https://docs.aws.amazon.com/ec2-instance-connect/latest/APIReference/API_SendSSHPublicKey.html
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from scripts.account.deployment import Deployment
from scripts.account.remote.nodes import HEAD_NODE, Node
from scripts.core.errors import OperationError, UnusableError
from scripts.core.options import ROOT
from ultracluster.domain import ssh_keys

DIRECTORY = Path("~/.ssh").expanduser()
FILE = "ultracluster.conf"
KNOWN_HOSTS = "ultracluster.known_hosts"
"""Host keys apart from the user's: another cluster, and each new node, has another one under the same name."""
KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
"""Private keys that are looked for: OpenSSH's names, of the kinds that EC2 Instance Connect takes."""


def identity(given: Path | None) -> Path:
    """Return the private key to use, which has its public half beside it.

    Raises:
        UnusableError: There is none.
    """
    candidates = [given.expanduser()] if given else [DIRECTORY / name for name in KEYS]
    for candidate in candidates:
        if candidate.with_name(f"{candidate.name}.pub").is_file():
            return candidate.absolute()
    names = ", ".join(f"{each}.pub" for each in candidates)
    raise UnusableError(f"There is no public key {names}", "ssh-keygen -t ed25519")


def block(deployment: Deployment, user: str, key: Path) -> str:
    """Return the lines for a deployment. ``%n`` is the name that was given to ssh, ``%p`` the port."""
    name = deployment.name
    words = [str(ROOT / "ultracluster"), "ssh", name, "--identity", str(key)]
    if deployment.settings.users:
        words += ["--user", user]
    if profile := os.environ.get("AWS_PROFILE"):
        words += ["--profile", profile]
    return f"""\
# {name}: written by `ultracluster ssh {name} --write-config`
Host {name} *.{name}
  User {user}
  IdentityFile "{key}"
  IdentitiesOnly yes
  ProxyCommand {shlex.join(words).replace("%", "%%")} --proxy %n %p
  UserKnownHostsFile ~/.ssh/{KNOWN_HOSTS}
  StrictHostKeyChecking accept-new
# end of {name}
"""


def user_of(deployment: Deployment, given: str | None, key: Path) -> str:
    """Return whose login it is: the default user's, or, where there are users, the one given, or whose key it is.

    Raises:
        UnusableError: The settings have no such user, or nobody with this key.
    """
    users = deployment.settings.users
    if not users:
        default = deployment.system_user
        if given not in (None, default):
            raise UnusableError(f"got --user {given}; allowed: {default}, as the settings have no users")
        return default
    if given is not None:
        if given not in [each.name for each in users]:
            names = ", ".join(each.name for each in users)
            raise UnusableError(f"got --user {given}; allowed: users of the settings, {names}")
        return given
    public = ssh_keys.blob(key.with_name(f"{key.name}.pub").read_text(encoding="utf-8"))
    owner = next((each.name for each in users if public in map(ssh_keys.blob, each.ssh_keys)), None)
    if owner is None:
        raise UnusableError(f"No user of the settings has the key {key}.pub", "name the user: --user NAME")
    return owner


def write(deployment: Deployment, text: str, directory: Path = DIRECTORY) -> str:
    """Put a deployment's block into a file of ours, and return what is left to do; empty: nothing is.

    ~/.ssh/config itself is the user's, and is only read.
    """
    directory.mkdir(mode=0o700, exist_ok=True)
    path, name = directory / FILE, re.escape(deployment.name)
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    rest = re.sub(rf"^# {name}: written .*?^# end of {name}\n", "", before, flags=re.MULTILINE | re.DOTALL)
    temporary = path.with_suffix(".new")
    temporary.write_text(rest + text, encoding="utf-8")
    temporary.chmod(0o600)
    temporary.replace(path)
    config = directory / "config"
    included = config.exists() and re.search(
        rf"^\s*include\s+.*{re.escape(FILE)}", config.read_text(encoding="utf-8"), re.MULTILINE | re.IGNORECASE
    )
    return "" if included else f"Add this line at the top of {config}:\n\nInclude {FILE}"


def node_name(deployment: Deployment, host: str) -> str:
    """Return the node that a host name of the block stands for."""
    name = deployment.name
    if host == name:
        return HEAD_NODE
    if not host.endswith(f".{name}"):
        raise UnusableError(f"got {host}; allowed: {name} for the head node, NODE.{name} for another")
    return host.removesuffix(f".{name}")


def check_port(port: str) -> None:
    """Refuse another port than sshd's, to which alone a session leads.

    Raises:
        UnusableError: ssh was given one.
    """
    if port != "22":
        raise UnusableError(f"got port {port}; allowed: 22")


def send_key(deployment: Deployment, node: Node, user: str, key: Path) -> None:
    """Let a public key into a user's account on a node, for a minute. Needs ec2-instance-connect:SendSSHPublicKey.

    Raises:
        OperationError: EC2 did not take it.
    """
    public = key.with_name(f"{key.name}.pub").read_text(encoding="utf-8").strip()
    answer = deployment.account.client("ec2-instance-connect").send_ssh_public_key(
        InstanceId=node.instance_id, InstanceOSUser=user, SSHPublicKey=public
    )
    if not answer["Success"]:
        raise OperationError(f"EC2 Instance Connect did not take the key for {node.name}")
