"""How the sequences of an optimizer step are divided among ranks and micro-batches: exactly, or not at all."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import BadInputError


@dataclass(frozen=True)
class Batch:
    """The sequences of one optimizer step.

    Attributes:
        sequences: All of them: the global batch.
        micro: Sequences that a rank takes at once.
        ranks: Workers of all nodes.
    """

    sequences: int
    micro: int
    ranks: int

    @property
    def per_rank(self) -> int:
        """Sequences of one rank."""
        return self.sequences // self.ranks

    @property
    def accumulation(self) -> int:
        """Micro-batches whose gradients a rank adds up."""
        return self.per_rank // self.micro

    def first(self, rank: int, micro_batch: int) -> int:
        """Return the place, in the global batch, of the first sequence of a rank's micro-batch.

        The micro-batches are the same sequences for every number of ranks, and so the sums of their gradients.
        """
        return rank * self.per_rank + micro_batch * self.micro


def divide(global_batch: int, micro_batch: int, *, nodes: int, workers_per_node: int, weak: bool = False) -> Batch:
    """Return the division of an optimizer step's sequences: with weak scaling, the global batch is that of a node.

    The messages name the options --global-batch, --micro-batch, --nodes and --scaling.

    Raises:
        BadInputError: The batch cannot be kept exactly; the message names what would do.
    """
    of_node = micro_batch * workers_per_node
    if global_batch % of_node:
        below, above = global_batch // of_node * of_node, -(-global_batch // of_node) * of_node
        near = f"{below} or {above}" if below else f"{above}"
        problem = (
            f"--global-batch: got {global_batch}; allowed: a multiple of {of_node} (--micro-batch {micro_batch} x "
            f"{workers_per_node} workers per node), such as {near}"
        )
        raise BadInputError([problem])
    if weak:
        global_batch *= nodes
    elif (global_batch // of_node) % nodes:
        problem = (
            f"--nodes: got {nodes}; allowed: {_divisors(global_batch // of_node)} (--global-batch "
            f"{global_batch} = --micro-batch {micro_batch} x {workers_per_node} workers per node x "
            f"{global_batch // of_node}), or any number with --scaling weak"
        )
        raise BadInputError([problem])
    return Batch(global_batch, micro_batch, nodes * workers_per_node)


def _divisors(number: int) -> str:
    *first, last = (str(divisor) for divisor in range(1, number + 1) if number % divisor == 0)
    return f"{', '.join(first)} or {last}" if first else last
