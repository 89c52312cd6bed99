"""Whether machines can be made on this computer."""

from __future__ import annotations


class MachineError(RuntimeError):
    """A machine, or what it is made of, could not be made; the message says why."""
