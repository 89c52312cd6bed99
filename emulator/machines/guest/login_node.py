"""What the cookbook's recipes do on a login node, in their order."""

from __future__ import annotations

from emulator.machines.guest import compute_node
from emulator.machines.guest import node as nodes
from emulator.machines.guest.node import Node


def init(node: Node) -> None:
    """Mount what the head node shares."""
    nodes.mount_exports("opt_parallelcluster_shared")
    nodes.mount_home(node)
    name, _, domain = node.ec2_hostname.partition(".")
    nodes.search_domains(node, domain)
    nodes.set_host_name(node, name, domain)


def config(node: Node) -> None:
    """Mount all file systems, and get ready for Slurm's clients; the head node may be starting, too."""
    nodes.guard_metadata(node)
    nodes.mount_file_systems(node)
    nodes.mount_exports("opt_slurm")
    compute_node.start_munge()
    compute_node.profile()


def finalize(node: Node) -> None:
    """Tell the cluster which configuration the node has."""
    compute_node.record(node, "DEPLOYED_BOOTSTRAP")
