"""The accounting of a real Slurm: what nodes/team/accounting.py makes of documents, and what limits do to jobs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scripts.account.slurm import COMMAND, parse
from tests.end_to_end.slurm.accounting import DATABASE, AccountingCluster
from tests.end_to_end.slurm.base import USER, ClusterError
from tests.end_to_end.slurm.conftest import new_directory
from ultracluster.domain.team import AccountSpec, QosSpec, TeamSpec, UserSpec

pytestmark = [pytest.mark.slow, pytest.mark.system]

ACCOUNTS = [
    *(AccountSpec(name=f"dept{number}", share=number + 1) for number in range(8)),
    *(
        AccountSpec(name=f"group{i}", parent=f"dept{i % 8}", max_nodes=4, node_hours_per_month=100, max_hours=30)
        for i in range(32)
    ),
]  # fmt: skip
USERS = [
    UserSpec(name=f"user{number}", uid=3000 + number, account=f"group{number % 32}", admin=number == 7)
    for number in range(200)
]
QOS = [
    QosSpec(name="high", priority=10, preempts=["normal"], max_nodes=2, max_hours=1),
    QosSpec(name="group1-only", accounts=["group1"]),
]
NO_CHANGE = "accounting: no changes, 0 failed\n"


def apply(
    cluster: AccountingCluster,
    accounts: Sequence[AccountSpec] = (),
    users: Sequence[UserSpec] = (),
    qos: Sequence[QosSpec] = (),
) -> str:
    """Apply a document as the head node does, and return what it prints."""
    document = cluster.directory / "shared/opt/slurm/etc/ultracluster/team.json"
    document.parent.mkdir(exist_ok=True)
    document.write_text(TeamSpec(accounts=[*accounts], users=[*users], qos=[*qos]).document(), encoding="utf-8")
    program, path = "/opt/ultracluster/current/team/accounting.py", "/opt/slurm/etc/ultracluster/team.json"
    return cluster.run(f"python3 {program} {path}")


def associations(cluster: AccountingCluster) -> dict[str, str]:
    """Return parent, share, limits and QoS of accounts, and of users, by ACCOUNT or ACCOUNT/USER."""
    columns = "account,user,parentname,share,grptres,grptresmins,maxwall,qos"
    lines = cluster.run(f"sacctmgr --noheader --parsable2 list assoc format={columns}").splitlines()
    split = [line.split("|", 2) for line in lines]
    return {f"{account}/{user}".rstrip("/"): rest for account, user, rest in split}


def test_40_accounts_and_200_users_are_made_changed_and_removed_and_a_second_run_changes_nothing(
    accounting_cluster: AccountingCluster,
) -> None:
    cluster = accounting_cluster
    first = apply(cluster, ACCOUNTS, USERS, QOS)
    made = associations(cluster)

    assert first.endswith("changes, 0 failed\n")
    assert made["dept3"] == "root|4||||high,normal"
    assert made["group1"] == "dept1|1|node=4|node=6000|1-06:00:00|group1-only,high,normal"
    assert made["group2"] == "dept2|1|node=4|node=6000|1-06:00:00|high,normal"
    assert len(made) == 2 + 40 + 200
    assert "user7|group7|Administrator" in users(cluster)
    assert "high|10|normal|node=2|01:00:00" in qualities(cluster)
    assert apply(cluster, ACCOUNTS, USERS, QOS) == NO_CHANGE

    update = {"parent": "dept1", "max_nodes": None, "node_hours_per_month": None, "share": 9}
    accounts = [*ACCOUNTS[:8], ACCOUNTS[8].model_copy(update=update), *ACCOUNTS[9:-1]]
    moved = USERS[7].model_copy(update={"account": "group0", "admin": False})
    second = apply(cluster, accounts, [moved, *(user for user in USERS[8:] if user.account != "group31")], QOS[:1])
    changed = associations(cluster)

    assert "accounting: account group0: parent dept1 (was dept0), fairshare 9 (was 1), " in second
    assert "accounting: user user7: default account group0 (was group7)\n" in second
    assert changed["group0"] == "dept1|9|||1-06:00:00|high,normal"
    assert "user7|group0|None" in users(cluster)
    assert "group7/user7" not in changed
    assert "group31" not in changed
    assert "group1-only" not in "".join(qualities(cluster))
    assert not [each for each in changed if re.search(r"/user[0-6]$", each)]

    assert apply(cluster).endswith(", 0 failed\n")
    assert list(associations(cluster)) == ["root", "root/root"]
    assert qualities(cluster) == ["normal|0|||"]


def test_what_was_made_by_hand_is_named_and_stays_and_the_default_user_is_no_administrator_beside_others(
    accounting_cluster: AccountingCluster,
) -> None:
    cluster = accounting_cluster
    by_hand = (
        "add account own organization=us",
        "add account below parent=lab organization=us",
        "add account adopted organization=us",
        "add qos mine; add qos taken",
        f"add account pcdefault; add user {USER} account=pcdefault; modify user {USER} set adminlevel=Admin",
        "add user guest account=lab; modify user guest set adminlevel=Operator",
        "add user bea account=lab",
        "add user cai account=lab; modify user cai set adminlevel=Operator",
    )
    lab = AccountSpec(name="lab", parent="dept", share=5, max_nodes=3, node_hours_per_month=9, max_hours=2)
    accounts = [AccountSpec(name="dept"), lab, AccountSpec(name="lab2"), AccountSpec(name="pcdefault", max_nodes=1)]
    accounts.append(AccountSpec(name="adopted", parent="dept", max_nodes=1))
    qos = [QosSpec(name="taken", priority=3)]
    apply(cluster, accounts[:2])
    commands = "; ".join(by_hand).replace("; ", "; sacctmgr -iQ ")
    cluster.run(f"set -e; sacctmgr -iQ {commands}")

    people = [
        UserSpec(name=name, uid=3000, account=account, admin=name != "cai")
        for name, account in (("ann", "lab2"), ("bea", "lab"), ("cai", "lab"))
    ]
    printed = apply(cluster, accounts, people, qos)
    cluster.run("sacctmgr -iQ add user ann account=below")
    assert {"ann|lab2|Administrator", "bea|lab|Administrator", "cai|lab|None"} <= {*users(cluster)}
    assert "no changes" in apply(cluster, accounts, people, qos)
    without = apply(cluster)

    assert f"accounting: user {USER}: admin level None (was Administrator)\n" in printed
    kept = ("qos mine", "account below", "account own", "user guest of account lab")
    assert re.findall("made by hand, kept: (.*)", printed) == [*kept]
    left = {f"{each}, which has left the settings" for each in ("account lab", "account adopted", "qos taken")}
    others = {*left, *(f"user {each}" for each in ("bea of account lab", "cai of account lab", "ann of account below"))}
    again = apply(cluster)
    assert {*re.findall("made by hand, kept: (.*)", again)} == {*kept, *others}
    told = cluster.directory / "shared/opt/slurm/etc/ultracluster/team.by-hand"
    assert {*told.read_text(encoding="utf-8").splitlines()} == {*kept, *others}
    assert "no changes" in again
    assert "accounting: account lab: parent root (was dept), fairshare 1 (was 5), " in without
    stays = associations(cluster)
    assert {stays[each] for each in ("lab", "pcdefault", "adopted")} == {"root|1||||normal"}
    assert {"own", "lab", "lab/guest", "lab/bea", "below"} <= stays.keys()
    assert not {"dept", "lab2", "lab2/ann", f"lab/{USER}"} & stays.keys()
    assert {"ann|below|None", "bea|lab|None", "guest|lab|Operator"} <= {*users(cluster)}
    delete = "sacctmgr -iQ delete"
    cluster.run(f"{delete} user ann,bea,cai; {delete} user guest; {delete} account below,own,adopted")
    cluster.run(f"{delete} qos mine,taken")
    assert "accounting: account lab: removed\n" in apply(cluster)


def reason(cluster: AccountingCluster, job: int) -> str:
    """Wait until the scheduler has looked at a job, and return why it waits."""
    cluster.wait_until(lambda: cluster.job(job)["Reason"] not in {"None", "Priority"})
    return cluster.job(job)["Reason"]


def test_limits_stop_jobs_with_their_reasons_and_a_user_who_leaves_keeps_the_jobs_that_run(
    accounting_cluster: AccountingCluster,
) -> None:
    """With a limit of node hours, jobs need a time limit, which a limit of hours gives them."""
    cluster = accounting_cluster
    cluster.add_users("eve")
    accounts = [
        AccountSpec(name="narrow", max_nodes=1),
        AccountSpec(name="poor", node_hours_per_month=1),
        AccountSpec(name="short", max_hours=2, node_hours_per_month=4),
    ]
    eve = [UserSpec(name="eve", uid=2001, account="narrow")]
    apply(cluster, accounts, qos=[QosSpec(name="single", max_nodes=1)])

    options = (
        "--account=narrow --nodes=2",
        "--account=poor --time=120",
        "--account=poor",
        "--account=short",
        "--account=narrow --qos=single --nodes=2",
    )
    wide, long, endless, bounded, single = (cluster.submit("sleep 1", each) for each in options)
    assert reason(cluster, wide) == "AssocGrpNodeLimit"
    assert reason(cluster, long) == "AssocGrpNodeMinutes"
    assert reason(cluster, endless) == "AssocGrpNodeMinutes"
    assert reason(cluster, single) in {"QOSGrpNodeLimit", "AssocGrpNodeLimit"}
    assert cluster.wait(bounded)["TimeLimit"] == "02:00:00"
    with pytest.raises(ClusterError, match="Invalid account or account/partition combination"):
        cluster.submit("true", "--account=nowhere")
    cluster.run(f"scancel --user={USER}")

    apply(cluster, accounts, eve)
    until_told = "until [ -e /fsx/told ]; do sleep 0.1; done"
    job = int(cluster.run(f"sbatch --parsable --output=/dev/null --wrap='{until_told}'", user="eve"))
    cluster.wait_until(lambda: "RUNNING" in cluster.run(f"sacct --noheader --format=state --jobs={job}"))
    assert "accounting: user eve: has jobs in account narrow, is given no more" in apply(cluster, accounts)
    with pytest.raises(ClusterError, match="accounting/QOS policy"):
        cluster.run("sbatch --wrap=true", user="eve")
    cluster.run("touch /fsx/told")
    assert cluster.wait(job)["JobState"] == "COMPLETED"
    cluster.wait_until(lambda: "accounting: user eve: removed from account narrow\n" in apply(cluster, accounts))


def test_fair_share_orders_waiting_jobs_and_a_qos_requeues_what_it_preempts(
    accounting_cluster: AccountingCluster,
) -> None:
    """Both accounts have used the same; one has ten times the shares of the other."""
    cluster = accounting_cluster
    accounts = [AccountSpec(name="few", share=1), AccountSpec(name="many", share=10), AccountSpec(name="other")]
    apply(cluster, accounts, qos=[QosSpec(name="urgent", priority=10, preempts=["normal"])])
    full = "--exclusive --nodes=2 --time=10"
    for account in ("few", "many"):
        cluster.wait(cluster.submit("sleep 2", f"{full} --account={account}"))
    running = cluster.submit("sleep 300", f"{full} --account=other")
    cluster.run("scontrol reconfigure")  # which counts use at once
    cluster.wait_until(lambda: cluster.job(running)["JobState"] == "RUNNING")
    jobs = [cluster.submit("sleep 1", f"{full} --account={account}") for account in ("few", "many", "few", "many")]

    def in_order() -> bool:
        first, second, third, fourth = (int(cluster.job(job)["Priority"]) for job in jobs)
        return second == fourth > first == third

    cluster.wait_until(in_order)
    urgent = cluster.submit("sleep 1", f"{full} --account=few --qos=urgent")
    assert cluster.wait(urgent)["JobState"] == "COMPLETED"
    assert cluster.job(running)["Restarts"] == "1"
    cluster.run(f"scancel --user={USER}")


BURST = """
for number in $(seq $jobs); do
    until ((number <= jobs / 4)) || [[ -e killing ]]; do sleep 0.1; done
    until sbatch --parsable --output=/dev/null --account=lab --wrap='echo $SLURM_JOB_ID >>ran' 2>>errors; do
        sleep 0.1
    done
done
"""
"""Submits jobs one after the other, most of them from when the controller is killed; while it does not answer, the same
job again."""


@pytest.mark.parametrize("jobs", [100, pytest.param(1000, marks=pytest.mark.scenario)])
def test_a_burst_of_jobs_while_slurmdbd_and_controller_are_killed_and_the_database_is_down(
    accounting_cluster: AccountingCluster, jobs: int
) -> None:
    """Database and slurmdbd by SIGKILL. The controller by SIGTERM, at which it saves its state: see accounting.md."""
    cluster = accounting_cluster
    apply(cluster, [AccountSpec(name="lab")])
    cluster.run("rm -f go killing ran")
    running = cluster.submit("until [[ -e go ]]; do sleep 0.1; done", "--account=lab")
    cluster.wait_until(lambda: cluster.job(running)["JobState"] == "RUNNING")
    before = _next_job(cluster)
    cluster.run("pkill -KILL mariadbd; pkill -KILL slurmdbd")
    with ThreadPoolExecutor() as pool:
        bursts = [pool.submit(cluster.run, f"jobs={jobs // 4}{BURST}", user=USER) for _ in range(4)]
        cluster.wait_until(lambda: _next_job(cluster) >= before + jobs // 10)
        cluster.run("touch killing", user=USER)
        cluster.run("pkill slurmctld; while pgrep slurmctld; do sleep 0.1; done; slurmctld")
        submitted = [job for burst in bursts for job in burst.result().split()]
    assert cluster.job(running)["JobState"] == "RUNNING"
    cluster.start_accounting()
    cluster.run("touch go", user=USER)

    sacct = "sacct --allusers -nPX --duplicates --starttime=2020-01-01 --account=lab --format=jobid,state"
    wanted = {f"{job}|COMPLETED" for job in [running, *submitted]}
    assert len(wanted) == jobs + 1
    cluster.wait_until(lambda: wanted <= {*cluster.run(sacct).split()})
    ran = cluster.run("cat ran").split()
    assert sorted(ran) == sorted(submitted), "each once"


def _next_job(cluster: AccountingCluster) -> int:
    [number] = re.findall(r"NEXT_JOB_ID += (\d+)", cluster.run("scontrol show config"))
    return int(number)


def test_the_next_generation_continues_the_history_with_numbers_of_its_own(slurm_workspace: Path) -> None:
    directory = new_directory(slurm_workspace)
    with AccountingCluster(slurm_workspace / "base", directory, nodes=1) as first:
        apply(first, [AccountSpec(name="lab", max_nodes=3)])
        first.wait(first.submit("true", "--account=lab"))
        first.stop_accounting()
    settings = {"FirstJobId": "1000001"}
    second = AccountingCluster(
        slurm_workspace / "base", new_directory(slurm_workspace), 1, settings, directory / DATABASE
    )
    with second:
        kept = associations(second)
        assert apply(second, [AccountSpec(name="lab", max_nodes=3)]) == NO_CHANGE
        second.wait(second.submit("true", "--account=lab"))
        jobs = "sacct --allusers -nPX --duplicates --starttime=2020-01-01 --format=jobid,account,state"
        second.wait_until(lambda: "1000001|lab|COMPLETED" in second.run(jobs))
        assert "1|lab|COMPLETED" in second.run(jobs).splitlines()
    assert kept["lab"] == "root|1|node=3|||normal"


def users(cluster: AccountingCluster) -> list[str]:
    return cluster.run("sacctmgr --noheader --parsable2 list user format=user,defaultaccount,admin").splitlines()


def qualities(cluster: AccountingCluster) -> list[str]:
    columns = "name,priority,preempt,grptres,maxwall"
    return cluster.run(f"sacctmgr --noheader --parsable2 list qos format={columns}").splitlines()


@pytest.mark.parametrize("gone", ["slurmdbd", "mariadbd"])
def test_a_dead_slurmdbd_and_a_dead_database_are_seen_and_hide_nothing_else(
    accounting_cluster: AccountingCluster, gone: str
) -> None:
    """Whichever of the two stopped: slurmdbd without its database still answers a ping."""
    cluster = accounting_cluster
    before = parse(cluster.run(shlex.join(COMMAND)))
    cluster.run(f"pkill -STOP {gone}")
    silent = parse(cluster.run(shlex.join(COMMAND)))
    cluster.run(f"pkill -CONT {gone}")
    cluster.wait_until(lambda: parse(cluster.run(shlex.join(COMMAND))).accounting == "")
    assert (before.accounting, silent.accounting) == ("", "sacctmgr had no answer within 3 s")
    assert silent.nodes == before.nodes
