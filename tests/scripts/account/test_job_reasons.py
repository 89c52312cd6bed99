"""Each reason that Slurm may give for a job that waits has a sentence, and what it says to type can be typed.

`slurm_reasons.txt` has those of src/common/job_state_reason.c in Slurm 24.11.5 (the emulated cluster's) and 25.11.7,
and what https://slurm.schedmd.com/job_reason_codes.html has beside; tests/end_to_end/slurm/test_jobs.py asks a Slurm.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.account.causes import COMMAND
from scripts.account.job_reasons import explain_end, explain_reason, table
from scripts.account.jobs import KnownJob
from scripts.account.remote.programs.asking import ENDED
from scripts.main import cli

REASONS = Path(__file__).with_name("slurm_reasons.txt").read_text(encoding="utf-8").split()
WRITTEN = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
    "Nodes required for job are DOWN, DRAINED or reserved for job",  # as much of it as squeue is asked for
    "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions",
    "launch failed requeued held",
    "job requeued in held state",
    "ReqNodeNotAvail, UnavailableNodes:trn1-dy-trn1-32xl-[1-3]",
    "ReqNodeNotAvail, May be reserved for other job",
    "ReqNodeNotAvail, Reserved for maintenance",
    "Reservation maintenance was deleted",
    "uid 1000 not in group permitted to use this partition (trn1). groups allowed: research",
    "Job is at or exceeds QOS x's group wall limit of 3 with 4",
    "RaisedSignal:53(Real-time signal 19)",
    "burst_buffer/lua: stage-in: failed",
)
"""What slurmctld writes in its place (src/slurmctld/job_mgr.c, job_scheduler.c, node_scheduler.c, acct_policy.c)."""
NAMES = {"deployment": "research", "file": "config/research.yaml"}


@pytest.mark.parametrize("reason", [*REASONS, *WRITTEN])
def test_every_reason_has_a_sentence_and_what_helps_can_be_typed(reason: str) -> None:
    found = explain_reason(reason, "17_[2-9]", NAMES)
    assert found is not None
    assert found.why.endswith(".")
    assert "{" not in found.why + " ".join(found.to_do)
    for line in found.to_do:
        words = line.removeprefix(COMMAND).split()
        assert (line.startswith(COMMAND)) == (words[0] == "./ultracluster")
        assert words[0] != "./ultracluster" or words[1] in cli.list_commands(None)  # type: ignore[arg-type]
        assert "17_[2-9]" not in line or "'17_[2-9]'" in line, "a shell would look for files of that name"


def test_every_row_is_the_first_for_something() -> None:
    used = {found.why for reason in (*REASONS, *WRITTEN) if (found := explain_reason(reason, "12", NAMES))}
    codes = [(state, "0:0") for state in ENDED]
    codes += [("FAILED", code) for code in ("1:0", "0:53", "127:0", "126:0", "0:9", "0:11")]
    used |= {found.why for state, code in codes if (found := explain_end(state, code, "12", NAMES))}
    refused = explain_end("FAILED", "0:1", "12", NAMES, "BadConstraints")
    assert refused is not None
    assert refused != explain_end("FAILED", "0:1", "12", NAMES, "NonZeroExitCode")
    used.add(refused.why)
    assert {row.why for row in table()} <= used


@pytest.mark.parametrize("state", ENDED)
def test_every_end_has_a_sentence(state: str) -> None:
    for code in ("0:0", "1:0", "0:9"):
        assert explain_end(state, code, "12", NAMES) is not None


def test_reasons_of_which_nobody_has_heard_are_not_guessed() -> None:
    for reason in ("AssociationX", "Resource", "x Priority", "NewReason2030"):
        assert explain_reason(reason, "12", NAMES) is None


def test_what_an_array_waits_for_is_explained_while_some_of_it_runs() -> None:
    array = KnownJob(
        number="17", id="17", state="RUNNING", user="ann", output="", reason="JobHeldUser",
        of_array={"RUNNING": "1", "PENDING": "2-9"},
    )  # fmt: skip
    [found] = array.explanations(NAMES)
    assert re.search(r"scontrol release 17$", found.to_do[0])
