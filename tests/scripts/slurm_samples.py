"""What a real Slurm printed for the script of `scripts.slurm`; tests/end_to_end/slurm/test_slurm_state.py compares."""

from __future__ import annotations

from pathlib import Path

RECORDED = Path(__file__).with_name("slurm_state.txt").read_text(encoding="utf-8")
"""All states of nodes and jobs: reasons and names with awkward characters, a queue that is closed."""
IDLE = """\
# nodes
 trn1|idle~|1873|up
 trn1|idle|2|up
# problems
# counts
# jobs
# end
"""
"""A cluster of 1,875 nodes that does nothing."""


def shell(printed: str) -> str:
    """Return a shell program for the emulated head node that prints this, whatever it is to run."""
    return f"cat >/dev/null; cat <<'END-OF-OUTPUT'\n{printed}END-OF-OUTPUT\n"
