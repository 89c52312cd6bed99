"""Open a shell on the head node, or another node, as the cluster's user. No key, no open port.

Where the settings have `users`, the shell is that of the one whom the tag SSMSessionRunAs of your IAM user or role
names.

Session Manager opens it, and needs its plugin on PATH, not the AWS CLI. With --write-config plain ssh, scp, rsync and
editors reach the nodes the same way: `ssh research` is the head node, `ssh NODE.research` another. It writes a block to
~/.ssh/ultracluster.conf, and says which line ~/.ssh/config needs; EC2 Instance Connect sends your public key at each
connection, unless the settings have `users`: nodes have their keys. Such sessions lead to port 22 alone, by a document
of the cluster, which an older cluster gets at its next `deploy`. The path from an AWS account has not been tried
yet: docs/reference/assumptions.md#sessions-of-people says what would be looked at.

Exit code: the plugin's own once it was started; before that 1: no such node is running, 2: arguments, settings or
credentials cannot be used, or there is no plugin or document; 130: Ctrl-C.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from scripts.account import argument
from scripts.core import options
from scripts.core.errors import ExitCode
from scripts.core.text import echo

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


@options.command(
    __doc__,
    ("ssh research", "the head node"),
    ("ssh research --node trn1-dy-trn1-32xl-3", "a compute node, by Slurm's name"),
    ("ssh research --node ip-10-0-65-2", "or by its address or instance id"),
    ("ssh research --write-config", "for ssh, scp, rsync, editors"),
    ("ssh research -o json", "for another program to open it"),
    name="ssh",
)
@argument.deployed
@click.option("--node", default="head-node", show_default=True, metavar="NAME", help="Any node.")
@click.option("--write-config", is_flag=True, help="Write the block for OpenSSH to ~/.ssh/ultracluster.conf.")
@click.option("--print-config", is_flag=True, help="Print that block, as for `ssh -F`.")
@click.option(
    "--identity", type=click.Path(path_type=Path), metavar="FILE", help="Private key; default: ~/.ssh/id_ed25519 etc."
)
@click.option("--user", metavar="NAME", help="For the block: which of the `users`; default: whose key it is.")
@click.option("--proxy", nargs=2, metavar="HOST PORT", hidden=True)
@options.output("json")
def command(
    *,
    deployment: Deployment,
    node: str,
    write_config: bool,
    print_config: bool,
    identity: Path | None,
    user: str | None,
    proxy: tuple[str, str] | None,
    output: str,
) -> int:
    """Open the shell, which does not return, or print how to open it."""
    options.exclusive(write_config=write_config, print_config=print_config, proxy=proxy)

    if user and not (write_config or print_config or proxy):
        raise click.UsageError("--user is for --write-config and --print-config; a shell is of who the IAM tag names")

    from scripts.account.remote import nodes
    from scripts.use import sessions, ssh_config

    settings = deployment.settings
    if write_config or print_config:
        key = ssh_config.identity(identity)
        text = ssh_config.block(deployment, ssh_config.user_of(deployment, user, key), key)
        if print_config:
            echo(text, end="")
        else:
            echo(ssh_config.write(deployment, text) or f"Ready: ssh {deployment.name}")
        return ExitCode.DONE
    if proxy:
        host, port = proxy
        ssh_config.check_port(port)
        target = nodes.running(deployment, ssh_config.node_name(deployment, host))
        if not settings.users:
            key = ssh_config.identity(identity)
            ssh_config.send_key(deployment, target, ssh_config.user_of(deployment, user, key), key)
        sessions.open_session(deployment, target.instance_id, sessions.ssh(settings.cluster_spec.name))
    running = nodes.running(deployment, node)
    default = None if settings.users else deployment.system_user
    shell = sessions.shell(default, settings.cluster_spec.name)
    if output == "text":
        sessions.open_session(deployment, running.instance_id, shell)
    connection = sessions.Connection(
        node=running.name,
        instance_id=running.instance_id,
        region=settings.region,
        user=default,
        command=sessions.cli_command(deployment, running.instance_id, shell),
    )
    print(connection.to_json())
    return ExitCode.DONE
