"""What `costs` adds up, with a real Slurm, slurmdbd and database, against Slurm's own log of jobs that had nodes."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import OUTPUT_LIMIT, Answer, HeadNode
from scripts.core.errors import OperationError
from scripts.use.costs import costs
from scripts.use.costs.costs import Summary
from tests.end_to_end.slurm.accounting import AccountingCluster
from tests.end_to_end.slurm.base import ENVIRONMENT
from tests.end_to_end.slurm.cluster import SlurmCluster
from tests.end_to_end.slurm.conftest import new_directory

pytestmark = [pytest.mark.slow, pytest.mark.system]

SETTINGS = {
    "AccountingStorageEnforce": "associations,limits,qos",
    "PreemptType": "preempt/qos",
    "PreemptMode": "REQUEUE",
    "JobCompType": "jobcomp/filetxt",
    "JobCompLoc": "/var/log/slurm/jobs.log",
}
USERS = ("ada", "bob", "eve")
DEPLOYMENT = cast(Deployment, SimpleNamespace(settings=SimpleNamespace(accounting=object())))


class Head:
    """Runs scripts as Systems Manager does, but outside of the cluster, where Python is."""

    def __init__(self, cluster: SlurmCluster, commands: Path) -> None:
        inside = shlex.join(["nsenter", "--target", cluster.init, "--all", "chroot"])
        for name in ("sacct", "scontrol", "sinfo"):
            path = commands / name
            path.write_text(f'#!/bin/bash\nexec {inside} {cluster.directory}/machines/head/root {name} "$@"\n')
            path.chmod(0o755)
        self._environment = {**ENVIRONMENT, "PATH": f"{commands}:{ENVIRONMENT['PATH']}"}
        self.answers: list[Answer] = []

    def run(self, script: str, *, seconds: int = 60) -> Answer:
        done = subprocess.run(
            ["sh", "-c", script], capture_output=True, text=True, env=self._environment, timeout=600, check=False
        )
        self.answers.append(Answer(done.returncode, done.stdout[:OUTPUT_LIMIT], done.stderr))
        return self.answers[-1]


@pytest.fixture(scope="module")
def cluster(slurm_workspace: Path) -> Iterator[AccountingCluster]:
    with AccountingCluster(slurm_workspace / "base", new_directory(slurm_workspace), settings=SETTINGS) as cluster:
        cluster.add_users(*USERS)
        for command in (
            "add account research",
            "add account ops",
            "add qos urgent",
            "modify qos urgent set preempt=normal priority=100",
            "add user ada account=research qos=normal defaultqos=normal",
            "add user bob account=research qos=normal defaultqos=normal",
            "add user eve account=ops qos=normal,urgent defaultqos=normal",
        ):
            cluster.run(f"sacctmgr --immediate {command}")
        cluster.run("scontrol update PartitionName=trn1 OverSubscribe=EXCLUSIVE")
        yield cluster


@pytest.fixture
def head(cluster: AccountingCluster, tmp_path: Path) -> Head:
    return Head(cluster, tmp_path)


def summarize(head: Head, by: str, since: datetime, until: datetime | None = None) -> Summary:
    until = until or datetime.now(UTC) + timedelta(seconds=1)
    return costs.summarize(DEPLOYMENT, cast(HeadNode, head), since, until, cast(Any, by))


def seconds(summary: Summary) -> Counter[str]:
    sums: Counter[str] = Counter()
    for names, _, amount in summary.sums:
        sums["|".join(names)] += amount  # type: ignore[assignment]
    return sums


def submit(cluster: AccountingCluster, user: str, script: str, options: str = "") -> int:
    command = f"sbatch --parsable --output=/dev/null {options} --wrap={shlex.quote(script)}"
    return int(cluster.run(f"cd /tmp; {command}", user=user))


def log(cluster: AccountingCluster, jobs: Collection[int]) -> list[dict[str, Any]]:
    """Return what Slurm's controller itself wrote of each run that had nodes (jobcomp/filetxt)."""
    lines = cluster.run("cat /var/log/slurm/jobs.log").splitlines()
    runs: list[dict[str, Any]] = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in lines]
    for run in runs:
        start, end = (datetime.fromisoformat(run[f"{each}Time"]) for each in ("Start", "End"))
        run["seconds"] = int((end - start).total_seconds())
        run["user"] = run["UserId"].partition("(")[0]
    return [run for run in runs if int(run["JobId"]) in jobs and run["NodeCnt"] != "0"]


def test_node_seconds_are_those_of_slurms_own_log(cluster: AccountingCluster, head: Head) -> None:
    since = datetime.now(UTC).replace(microsecond=0)
    low = submit(cluster, "ada", "sleep 6", "--nodes=2 --requeue")
    cluster.wait_until(lambda: cluster.job(low)["JobState"] == "RUNNING")
    time.sleep(2)
    urgent = submit(cluster, "eve", "sleep 3", "--nodes=1 --qos=urgent")  # preempts the first
    again = submit(cluster, "bob", "sleep 3", "--nodes=1 --requeue")
    cluster.wait_until(lambda: cluster.job(again)["JobState"] == "RUNNING")
    time.sleep(2)
    cluster.run(f"scontrol requeue {again}")
    never = submit(cluster, "bob", "true", "--hold")
    cluster.run(f"scancel {never}")
    for job in (low, urgent, again):
        cluster.wait(job)
    wanted: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    for run in (logged := log(cluster, [low, urgent, again, never])):
        wanted[run["user"]] += int(run["NodeCnt"]) * run["seconds"]
        runs[run["user"]] += 1
    assert (runs["ada"], runs["bob"], runs["eve"]) == (2, 2, 1), "one was preempted, one requeued"
    cluster.wait_until(lambda: seconds(summarize(head, "user", since)) == wanted)  # slurmdbd is told a moment later
    by_user = summarize(head, "user", since)
    assert by_user.counts == {(user,): (1, runs[user]) for user in USERS}
    assert {kind for _, kind, _ in by_user.sums} == {"trn1-st-trn1-32xl"}
    assert by_user.first == min(datetime.fromisoformat(run["StartTime"]).replace(tzinfo=UTC) for run in logged)
    assert seconds(summarize(head, "account", since)) == {
        "research": wanted["ada"] + wanted["bob"],
        "ops": wanted["eve"],
    }
    assert seconds(summarize(head, "queue", since)) == {"trn1": wanted.total()}
    of_job = seconds(summarize(head, "job", since))
    assert of_job[f"{urgent}|eve|ops|trn1"] == wanted["eve"]
    assert of_job.total() == wanted.total()
    [first, *_] = [run for run in logged if run["user"] == "ada"]
    cut = datetime.fromisoformat(first["StartTime"]).replace(tzinfo=UTC) + timedelta(seconds=1)
    assert seconds(summarize(head, "user", cut))["ada"] == wanted["ada"] - 2, "both nodes for a second less"
    assert seconds(summarize(head, "user", since, cut)) == {"ada": 2}


def test_jobs_that_share_nodes_have_the_share_of_their_cpus(cluster: AccountingCluster, head: Head) -> None:
    cluster.run("scontrol update PartitionName=trn1 OverSubscribe=NO")
    since = datetime.now(UTC).replace(microsecond=0)
    jobs = [submit(cluster, user, "sleep 3", "--nodes=1 --ntasks=1") for user in ("ada", "bob", "bob")]
    for job in jobs:
        cluster.wait(job)
    wanted: Counter[str] = Counter()
    for run in log(cluster, jobs):
        assert run["ProcCnt"] == "1"
        wanted[run["user"]] += run["seconds"]
    cluster.wait_until(lambda: seconds(summarize(head, "user", since)).total() * 4 == wanted.total())  # of 4 CPUs
    cluster.run("scontrol update PartitionName=trn1 OverSubscribe=EXCLUSIVE")


def execute(cluster: AccountingCluster, statement: str) -> None:
    """Execute a statement of SQL; the database asks for no password."""
    cluster.run(f"mariadb --socket=/run/mysqld/mysqld.sock slurm_acct_db <<'END'\n{statement}\nEND")


def test_ten_thousand_jobs_come_in_parts(cluster: AccountingCluster, head: Head) -> None:
    """Of jobs that slurmdbd finds in its tables; of 1,024 nodes sacct would say 1K.

    Every thousandth has an account as users may choose it where none is required: the record of another job.
    """
    start = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp())
    nodes = "if(seq % 2, 'trn1-dy-trn1-32xl-[1-1023,1025]', concat('trn1-dy-trn1-32xl-', seq))"
    count = "if(seq % 2, 1024, 1)"
    forged = "a|trn1|1|1|1|1|x-1|COMPLETED|\n7|eve|ops|trn1|1|1|1|9|x-1|COMPLETED"
    account, association = f"if(seq % 1000, 'research', '{forged}')", "if(seq % 1000, id_assoc, 0)"
    insert = (
        "insert ignore into rehearsal_job_table (mod_time, account, cpus_req, exit_code, id_assoc, id_job, id_qos, "  # noqa: S608 - constants
        "id_user, id_group, job_name, nodelist, nodes_alloc, `partition`, priority, state, time_submit, time_eligible, "
        f"time_start, time_end, work_dir, tres_alloc, tres_req) select 1, {account}, 4, 0, {association}, 100000 + seq"
        f", 1, 2001, 2001, 'x', {nodes}, {count}, 'trn1', 1, 3, {start} + seq, {start} + seq, {start} + seq, "
        f"{start} + seq + 100, '/', concat('1=4,4=', {count}), '1=4,4=1' "
        "from seq_1_to_10000, rehearsal_assoc_table where user = 'ada' limit 10000"
    )
    execute(cluster, insert)
    until = datetime(2026, 4, 1, tzinfo=UTC)
    since = datetime(2026, 3, 1, tzinfo=UTC)
    wanted = 100 * (5000 * 1024 + 5000)
    assert seconds(summarize(head, "user", since, until)) == {"ada": wanted}
    by_account = {"research": wanted - 1000, " ".join(forged.split()): 1000}  # ten jobs of 100 s on a node
    assert seconds(summarize(head, "account", since, until)) == by_account
    head.answers.clear()
    by_job = summarize(head, "job", since, until)
    assert len(by_job.counts) == 10_000
    assert seconds(by_job).total() == wanted
    path = head.answers[0].output.split()[1]
    assert len(head.answers) > 2, "more than one answer of Systems Manager"
    assert not Path(path).exists()


def test_without_accounting_it_says_so(plain_cluster: SlurmCluster, tmp_path: Path) -> None:
    without = cast(Deployment, SimpleNamespace(settings=SimpleNamespace(accounting=None)))
    now = datetime.now(UTC)
    with pytest.raises(OperationError, match="accounting storage is disabled") as refused:
        costs.summarize(without, cast(HeadNode, Head(plain_cluster, tmp_path)), now - timedelta(hours=1), now, "user")
    assert "`accounting`" in refused.value.hint
