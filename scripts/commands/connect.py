"""Open a shell on the head node, or another node, as the cluster's user. No SSH, no key, no open port.

Session Manager opens it, and needs its plugin on PATH, not the AWS CLI. With --json nothing is opened: it prints the
instance, and the AWS CLI's command that would open the shell.

Exit code: the plugin's own once it was started; before that 1: no such node is running, 2: arguments, settings
or credentials cannot be used, or there is no plugin; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from scripts import command

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment

EXAMPLES = """\
  python -m scripts connect trn1-16                               the head node
  python -m scripts connect trn1-16 --node trn1-dy-trn1-32xl-3    a compute node, by Slurm's name
  python -m scripts connect trn1-16 --node ip-10-0-65-2           or by its address or instance id
  python -m scripts connect trn1-16 --json                        for another program to open it
"""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    connect = command.parser("connect", __doc__, EXAMPLES)
    connect.add_argument("--node", default="head-node", metavar="NAME", help="any node (default: head-node)")
    return connect


def main() -> int:
    """Do what the command line asks for, and return the exit code."""
    return command.run(parser().parse_args(), program)


def program(deployment: Deployment, parsed: argparse.Namespace, _: Console) -> int:
    """Open the shell, which does not return, or print how to open it."""
    from scripts.remote import nodes, sessions
    from ultracluster.domain import neuron

    user = neuron.SYSTEMS[deployment.settings.cluster_spec.os].user
    node = nodes.running(deployment, parsed.node)
    if not parsed.json:
        sessions.open_shell(deployment, node.instance_id, user)
    connection = sessions.Connection(
        node=node.name,
        instance_id=node.instance_id,
        region=deployment.settings.region,
        user=user,
        command=sessions.cli_command(deployment, node.instance_id, user),
    )
    print(connection.to_json())
    return command.DONE
