"""Reach a port of a node from this machine, such as TensorBoard's or a notebook's, until Ctrl-C.

Session Manager forwards it, and needs its plugin on PATH. The program on the node may listen on the node's own
loopback address. It is for administrators: root connects to the port on the node. Others forward by
`ssh -L` through the block of `./ultracluster ssh --write-config`.

Exit code: the plugin's own once it was started; before that 1: no such node is running, 2: arguments, settings or
credentials cannot be used, or there is no plugin; 130: Ctrl-C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from scripts.account import argument
from scripts.core import options

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment

_PORT = click.IntRange(1, 65535)


@options.command(
    __doc__,
    ("port-forward research 6006", "TensorBoard on the head node, at http://localhost:6006"),
    ("port-forward research 8888 --local-port 9999 --node trn1-dy-trn1-32xl-3", "a notebook on a compute node"),
    name="port-forward",
)
@argument.deployed
@click.argument("port", type=_PORT)
@click.option("--local-port", type=_PORT, metavar="PORT", help="Port of this machine; default: the same.")
@click.option("--node", default="head-node", show_default=True, metavar="NAME", help="Any node.")
def command(*, deployment: Deployment, port: int, local_port: int | None, node: str) -> int:
    """Forward the port; it does not return."""
    from scripts.account.remote import nodes
    from scripts.use import sessions

    local_port = local_port or port
    target = nodes.running(deployment, node)
    remark = f"http://localhost:{local_port} is port {port} of {target.name}, until Ctrl-C"
    sessions.open_session(deployment, target.instance_id, sessions.forwarding(port, local_port), remark)
