"""The program that sets the state of queues, run as it is; with a real Slurm: tests/end_to_end/slurm/test_drain.py."""

from __future__ import annotations

from pathlib import Path

from scripts.account.remote import program
from scripts.change.fleet import queues
from tests.scripts.head_node_shell import HeadNodeShell, run

SCONTROL = """
[ "$2" != PartitionName=b ] || { echo "slurm_update error: Invalid user id" >&2; exit 4; }
printf '%s|' "$@" "$LC_ALL" >>"$WORLD/commands"
"""


def test_queues_are_set_until_one_is_refused(tmp_path: Path) -> None:
    shell = HeadNodeShell(tmp_path, scontrol=SCONTROL)
    done = run(shell.plain, program.of_file(queues.PROGRAM, "DRAIN", "a $(id)", "b", "c"))
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "slurm_update error: Invalid user id\n")
    assert (tmp_path / "commands").read_text() == "update|PartitionName=a $(id)|State=DRAIN|C|"
