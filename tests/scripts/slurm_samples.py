"""What a real Slurm printed for the script of `scripts.slurm`; tests/end_to_end/slurm/test_slurm_state.py compares."""

from __future__ import annotations

from pathlib import Path

RECORDED = Path(__file__).with_name("slurm_state.txt").read_text(encoding="utf-8")
"""All states of nodes and jobs: reasons and names with awkward characters, a queue that is closed."""
IDLE = """\
# queues
 trn1|up
# nodes
 1873 trn1|trn1-dy-trn1-32xl|idle~
 2 trn1|trn1-st-trn1-32xl|idle
# problems
# counts
# jobs
# end
"""
"""An idle cluster of 1,875 nodes, two of them static."""


def shell(printed: str) -> str:
    """Return a shell program for the emulated head node that prints this, whatever it is asked to run."""
    return f"cat >/dev/null; cat <<'END-OF-OUTPUT'\n{printed}END-OF-OUTPUT\n"
