"""The commands of jobs, from the command line to a real Slurm that forgets ended jobs at once, and its accounting."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from scripts.account.job_reasons import explain_reason
from scripts.account.jobs import find
from scripts.account.remote import program
from scripts.account.remote.head_node import Answer, HeadNode
from scripts.use import jobs
from tests.command_line import Printed, ultracluster
from tests.end_to_end.slurm.accounting import AccountingCluster
from tests.end_to_end.slurm.base import USER, ClusterError
from tests.end_to_end.slurm.conftest import new_directory

pytestmark = [pytest.mark.slow, pytest.mark.system]

REASONS = """
import ctypes, glob
library = ctypes.CDLL(glob.glob("/usr/lib/*/slurm*/libslurmfull.so")[0])
library.slurm_job_state_reason_string.restype = ctypes.c_char_p
names = [library.slurm_job_state_reason_string(number).decode() for number in range(1000)]
print(*set(names) - {names[-1]})
"""
"""Prints each reason that Slurm's library has, but what it says of numbers that are none."""


class ClusterHeadNode:
    """The head node of a cluster of this machine."""

    instance_id = "i-1"

    def __init__(self, cluster: AccountingCluster) -> None:
        self._cluster = cluster

    def run(self, script: str, **_: int) -> Answer:
        try:
            return Answer(0, self._cluster.run(script), "")
        except ClusterError as error:
            return Answer(1, "", str(error))


def test_arrays_are_cancelled_row_by_row_and_ended_jobs_are_found(
    slurm_workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = new_directory(slurm_workspace)
    with AccountingCluster(slurm_workspace / "base", directory, settings={"MinJobAge": "2"}) as cluster:
        head_node = ClusterHeadNode(cluster)
        monkeypatch.setattr(jobs, "HeadNode", lambda _: head_node)

        def run(command: str, *words: str) -> Printed:
            code = ultracluster("jobs", command, "trn1-16", *words)
            return Printed(code, *capsys.readouterr())

        def ids() -> list[str]:
            return [each["id"] for each in json.loads(run("list", "-o", "json").output)["jobs"]]

        array = cluster.submit("sleep 600", "--array=1-9%2 --time=20")
        failed = cluster.submit("echo its last words; exit 3")
        held = cluster.submit("true", "--hold")
        nowhere = cluster.submit("true", "--output=/nowhere/out")
        cluster.wait_until(lambda: ids() == [f"{array}_1", f"{array}_2", f"{array}_[3-9%2]", f"{held}"])

        # a row is that row, and no more
        assert run("cancel", f"{array}", "--yes").code == 2
        assert run("cancel", "99999", f"{array}_1", "--yes").code == 1
        assert ids()[:3] == [f"{array}_1", f"{array}_2", f"{array}_[3-9%2]"]
        assert run("cancel", f"{array}_[3-9%2]", "--yes").output == f"Cancelled: {array}_[3-9]\n"
        assert ids() == [f"{array}_1", f"{array}_2", f"{held}"]
        assert run("cancel", f"{array}_2", "--yes").output == f"Cancelled: {array}_2\n"
        assert ids() == [f"{array}_1", f"{held}"]
        assert run("cancel", f"{array}", "--array", "--yes").output == f"Cancelled: {array}\n"
        assert ids() == [f"{held}"]
        assert "JobHeldUser: Its user held it" in run("show", f"{held}").output

        # of a heterogeneous job a component while it runs, or all of it
        assert run("cancel", f"{held}", "--yes").code == 0
        pair = int(cluster.run("sbatch --parsable --wrap='sleep 600' : --nodes=1", user=USER))
        components = [f"{pair}+0", f"{pair}+1"]
        cluster.wait_until(lambda: ids() == components)
        cluster.wait_until(
            lambda: {each["state"] for each in json.loads(run("list", "-o", "json").output)["jobs"]} == {"RUNNING"}
        )
        assert run("cancel", components[1], "--yes").output == f"Cancelled: {components[1]}\n"
        assert ids() == components[:1]
        assert run("cancel", f"{pair}", "--yes").output == f"Cancelled: {pair}\n"
        assert ids() == []

        # what Slurm has forgotten, accounting knows
        cluster.wait_until(lambda: "Invalid job id" in cluster.run(f"scontrol show job {failed} 2>&1 || true"))
        ended = f"scontrol show job {array} 2>&1 || true"
        cluster.wait_until(lambda: "Invalid job id" in cluster.run(ended))
        rows = {each["id"]: each for each in json.loads(run("list", "--since", "1h", "-o", "json").output)["ended"]}
        assert (rows[f"{failed}"]["state"], rows[f"{failed}"]["exit_code"]) == ("FAILED", "3:0")
        assert rows[f"{failed}"]["node_list"] in {each.name for each in cluster.nodes}
        assert (rows[f"{array}_1"]["state"], rows[f"{array}_1"]["time_limit"]) == ("CANCELLED", "20:00")
        assert "could not open its output file" in run("show", f"{nowhere}").output
        shown = json.loads(run("show", f"{array}", "-o", "json").output)["job"]
        assert (shown["source"], shown["of_array"]["CANCELLED"]) == ("accounting", "1-9")
        known = find(_as_head_node(head_node), f"{failed}")
        assert known is not None
        assert known.said == "FAILED, exit code 3:0"
        tail = program.as_user(known.user, program.words("files", "tail", known.output, "10"))
        assert cluster.run(shlex.join(tail)) == "its last words\n"
        assert run("show", "99999").code == 1

        # each reason of this Slurm has a sentence
        reasons = cluster.run(f"python3 -c {shlex.quote(REASONS)}").split()
        assert len(reasons) > 200
        assert [each for each in reasons if explain_reason(each, "12", {"deployment": "x", "file": "x"}) is None] == []


def _as_head_node(head_node: ClusterHeadNode) -> HeadNode:
    return head_node  # type: ignore[return-value]
