"""People on a real Slurm: their jobs find them on nodes that never heard of them, and reach nothing of others."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.account.remote import program
from tests.end_to_end.slurm.base import ClusterError
from tests.end_to_end.slurm.cluster import SlurmCluster
from tests.end_to_end.slurm.conftest import new_directory

pytestmark = [pytest.mark.slow, pytest.mark.system]

PEOPLE = [
    {"name": "alice", "uid": 2001, "groups": ["nlp"]},
    {"name": "bob", "uid": 2002},
    {"name": "root2", "uid": 2003, "admin": True},
]
DOCUMENT = {"groups": {"nlp": 3000}, "users": PEOPLE}
SECRETS = {
    "/opt/slurm/etc/slurmdbd.conf": "StoragePass=secret\n",
    "/opt/slurm/etc/slurm_parallelcluster_slurmdbd.conf": "StoragePass=secret\n",
}
"""Of the mode and owner that ParallelCluster gives them (its cookbook, config_slurm_accounting.rb)."""


@pytest.fixture(scope="module")
def team(slurm_workspace: Path) -> Iterator[SlurmCluster]:
    """A cluster whose head node has people, and whose other nodes have only mounted what it shares."""
    with SlurmCluster(slurm_workspace / "base", new_directory(slurm_workspace), 2) as cluster:
        for path, text in SECRETS.items():
            cluster.run(f"install --owner=slurm --group=slurm --mode=600 /dev/null {path}; echo {text!r} >{path}")
        cluster.run(
            f"cat >/fetched.json <<'END'\n{json.dumps(DOCUMENT)}\nEND\n"
            "aws=/usr/local/bin/aws; printf '#!/bin/bash\\ncp /fetched.json \"${@: -1}\"\\n' >$aws; chmod 755 $aws\n"
            "here=/opt/ultracluster/current region=us-west-2 team=s3://bucket/team.json; set -e\n"
            "source $here/lib/common.sh; source $here/install/head_node.sh; source $here/install/team.sh; set_team"
        )
        yield cluster


def run_job(cluster: SlurmCluster, user: str, script: str) -> str:
    """Run a batch job on a node, and return what it printed."""
    command = f"cd /home/{user}; sbatch --wait --output=out --wrap={shlex.quote(script)} >/dev/null; cat out"
    return cluster.run(command, user=user)


def test_a_job_finds_its_user_home_and_groups_on_a_node_that_did_not_know_them(team: SlurmCluster) -> None:
    with pytest.raises(ClusterError):
        team.nodes[0].sh("id alice")
    said = run_job(team, "alice", "hostname; id; pwd; touch made; stat --format=%U:%G made")
    assert said.splitlines() == [
        team.nodes[0].name,
        "uid=2001(alice) gid=2001(alice) groups=2001(alice),3000(nlp)",
        "/home/alice",
        "alice:alice",
    ]


END = "---"
METADATA = "timeout 0.5 bash -c 'exec 3<>/dev/tcp/169.254.169.254/80'; echo $?"


def test_a_job_reaches_nothing_of_others(team: SlurmCluster) -> None:
    """Also as alice on the head node: homes, jobs, keys, passwords, the node's credentials, and root."""
    held = team.run("cd ~; sbatch --parsable --hold --wrap=true", user="bob").strip()
    attacks = {
        "ls /home/bob": "Permission denied",
        "cat /etc/munge/munge.key": "Permission denied",
        **{f"cat {path}": "Permission denied" for path in SECRETS},
        "cat /var/lib/ultracluster/team.json": "Permission denied",
        f"scancel {held}": "Access/permission denied",
        f"scontrol update jobid={held} priority=1": "Invalid user id for job",
        "scontrol update nodename=ALL state=drain reason=x": "Invalid user id",
        "echo x >>/opt/slurm/etc/ultracluster/team.json": "Permission denied",
        "python3 /opt/ultracluster/current/team/users.py head /tmp/mine.json": "Permission denied",
    }
    script = "\n".join(f"{attack} 2>&1; echo {END}" for attack in attacks)
    for said in (run_job(team, "alice", script), team.run(script, user="alice")):
        for (attack, answer), answered in zip(attacks.items(), said.split(f"{END}\n")[:-1], strict=True):
            assert answer in answered, attack
    node = team.nodes[0]
    node.sh("ip address add 169.254.169.254/32 dev lo")
    node.sh("setsid python3 -m http.server 80 --bind 169.254.169.254 </dev/null &>/dev/null &")
    team.wait_until(lambda: node.sh(METADATA).strip() == "0")
    assert run_job(team, "alice", METADATA).splitlines()[-1] == "124"


WRITABLE = (
    "find / -xdev \\( -path /proc -o -path /tmp -o -path /fsx -o -path /home/alice \\) -prune -o "
    "-writable ! -type l -print 2>/dev/null; for top in /opt/slurm /opt/ultracluster/current /home; do "
    "find $top \\( -path /home/alice \\) -prune -o -writable ! -type l -print 2>/dev/null; done; true"
)
PUBLIC = ("/dev/", "/scratch", "/run/lock", "/var/tmp", "/run/munge/munge.socket")  # noqa: S108 - found, not used
OWN = ("/var/spool/slurmd/", "/opt/parallelcluster/python/.lock")
"""What everybody may write on any Linux, and Munge's socket; the job's own, and a lock of the emulator's installer."""


def test_nothing_that_root_runs_or_reads_can_be_written_by_people(team: SlurmCluster) -> None:
    """Neither programs nor the directories that they are in, on the head node and in a job."""
    for said in (team.run(WRITABLE, user="alice"), run_job(team, "alice", WRITABLE)):
        written = [path for path in said.splitlines() if not path.startswith((*PUBLIC, *OWN))]
        assert written == [], "\n".join(written)


def test_jobs_of_somebody_who_leaves_do_not_start_and_what_runs_continues(team: SlurmCluster) -> None:
    """Here the head node sees the processes of compute nodes, which it would kill: it is shown none but its own."""
    submit = "cd ~; sbatch --parsable --output=/dev/null"
    waits = int(team.run(f"{submit} --hold --wrap=true", user="root2"))
    runs = int(team.run(f"{submit} --wrap='sleep 300'", user="root2"))
    team.wait_until(lambda: team.job(runs)["JobState"] == "RUNNING")
    asked = team.run(shlex.join(program.words("jobs", "of", "root2", "nobody")))
    assert json.loads(asked) == {"of": {"root2": [1, 1, [str(waits)], [str(runs)]]}}, "as the plan asks for it"
    left = json.dumps({**DOCUMENT, "users": PEOPLE[:-1]})
    users = "unshare --pid --fork --mount-proc python3 -B /opt/ultracluster/current/team/users.py head"
    said = team.run(f"echo '{left}' >/left.json; {users} /left.json; {users} /fetched.json")
    assert "users.py: locked: root2" in said
    assert (team.job(waits)["JobState"], team.job(runs)["JobState"]) == ("CANCELLED", "RUNNING")
    team.run(f"scancel {runs}")
