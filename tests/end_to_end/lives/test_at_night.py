"""An operator who is called at night: from the first `status` to a command that helps, by what screens say alone.

One cluster with two nodes and accounting suffers one thing after the other, and is healthy after each. What happens to
nodes is in the other lives; test_roll_back.py has updates that fail for other reasons.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.lives.life import Deployed, deployed
from tests.stacks.deployments import Raw

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.system, pytest.mark.validation]

SECONDS = 600
"""How long a screen may take to show what is so: machines are busy."""
SLURM = "/opt/slurm/bin"
STATE = "/var/spool/slurm.state"
FILL = (
    f"mkdir /run/full && mount -t tmpfs -o size=160m,mode=777 tmpfs /run/full && cp --archive {STATE}/. /run/full && "
    f"mount --bind /run/full {STATE} && {{ dd if=/dev/zero of={STATE}/core.4711 bs=1M status=none 2>&1; true; }}"
)
"""Lets a file take all the space where Slurm keeps its state."""


def two_nodes(raw: Raw) -> None:
    """Keep two nodes up, and let an account have one of them."""
    [resource] = raw["cluster"]["queues"][0]["compute_resources"]
    resource.update(min_count=2, max_count=2)
    limit_language(raw, 1)


def limit_language(raw: Raw, nodes: int) -> None:
    [language] = [each for each in raw["accounting"]["accounts"] if each["name"] == "language"]
    language["max_nodes"] = nodes


def set_plugin(raw: Raw) -> None:
    """Name a plugin that is on no head node, with a name and a value that all checks accept."""
    raw["cluster"]["slurm"] = {"custom_settings": {"JobSubmitPlugins": "acme"}}


def printed(screen: str) -> list[str]:
    """Return the commands on a screen: at the end of lines, in brackets or in backticks."""
    return [
        *re.findall(r"^(?:\w+ +| +)?(\./ultracluster .*?) *$", screen, re.MULTILINE),
        *re.findall(r"\((\./ultracluster [^()]+)\)", screen),
        *re.findall(r"`(\./ultracluster [^`]+)`", screen),
    ]


class Operator:
    """Types `status`, and then what is printed.

    Attributes:
        life: The cluster.
        screen: What the last command printed.
    """

    def __init__(self, life: Deployed) -> None:
        self.life, self.screen = life, ""

    def types(self, *words: str, code: int = 0) -> str:
        ran = self.life.stage.run(*words, codes=range(256))
        self.screen = ran.text
        assert ran.code == code, f"exit code {ran.code} of {words}\n{ran.text}"
        return ran.text

    def sees(self, *patterns: str) -> None:
        """Find patterns on the screen, in this order."""
        rest = self.screen
        for each in patterns:
            found = re.search(each, rest, re.DOTALL)
            assert found, f"not on the screen: {each}\n{self.screen}"
            rest = rest[found.end() :]

    def awaits(self, *words: str, shows: str, code: int = 0) -> None:
        """Type a command until it shows a pattern, as one who looks again after a moment."""
        end = time.monotonic() + SECONDS
        ran = self.life.stage.run(*words, codes=range(256))
        while not (re.search(shows, ran.text, re.DOTALL) and ran.code == code):
            assert time.monotonic() < end, f"never on the screen of {words}: {shows}\n{ran.text}"
            time.sleep(1)
            ran = self.life.stage.run(*words, codes=range(256))
        self.screen = ran.text

    def is_called(self, problem: str) -> None:
        """Type the first command, which shows what is wrong, and the command that it names."""
        self.awaits("status", self.life.name, shows=rf"Unhealthy:\n[^\n]*{problem}", code=1)

    def follows(self, command: str, *more: str, code: int = 0) -> str:
        """Type the command on the screen that matches a pattern, and more words."""
        found = {each for each in printed(self.screen) if re.fullmatch(rf"\./ultracluster {command}", each)}
        assert len(found) == 1, f"{len(found)} commands match {command}: {printed(self.screen)}\n{self.screen}"
        return self.types(*shlex.split(found.pop())[1:], *more, code=code)

    def is_well(self) -> None:
        self.awaits("status", self.life.name, shows=r"\nHealthy\.")

    def submits(self, script: str, *options: str, user: str = "ubuntu") -> str:
        """Submit a job as its user does, and return its number."""
        words = ("exec", self.life.name, "--user", user, "--", "sbatch", "--parsable", *options, "--wrap", script)
        return self.life.run(*words).strip()

    def sees_job(self, job: str, state: str) -> None:
        """Show a job until it has a state, such as ``COMPLETED, exit code 0:0``."""
        self.awaits("jobs", "show", self.life.name, job, shows=rf"\nState +{state}")

    def is_saved(self, job: str) -> None:
        """Wait until the controller has saved a job as it is, which takes five seconds: it is killed without notice."""
        change = f"touch /run/before && {SLURM}/scontrol update jobid={job} comment=saved"
        self.breaks(f"{change} && until [ {STATE}/job_state -nt /run/before ]; do sleep 1; done")

    def breaks(self, script: str) -> None:
        """Do harm on the head node, as root."""
        self.life.on_head_node(script)


def until(name: str) -> str:
    """Return a script that ends once there is a file of this name."""
    return f"until [ -e /fsx/{name} ]; do sleep 1; done"


def all_nodes_are_drained_with_jobs_on_them(operator: Operator) -> None:
    running = operator.submits(until("drained"), "--nodes=2", "--exclusive")
    operator.sees_job(running, "RUNNING")
    waiting = operator.submits("true")
    operator.breaks(f"{SLURM}/scontrol update nodename=ALL state=drain reason=burn-in")

    operator.is_called(r"no node of queue trn1 takes jobs, and 1 job waits: 2 draining \(burn-in\)")
    operator.follows("diagnose team", code=1)
    operator.sees(r"^Nodes take no jobs\n", "burn-in", "What to do")
    operator.follows(r"exec team --user root -- \S+/scontrol update nodename=\S+ state=resume")
    operator.breaks("touch /fsx/drained")
    operator.sees_job(running, "COMPLETED")
    operator.sees_job(waiting, "COMPLETED")


def tasks_of_an_array_fail(operator: Operator) -> None:
    script = f'case $SLURM_ARRAY_TASK_ID in 1) true;; 2) echo "no such shard"; exit 3;; *) {until("never")};; esac'
    array = operator.submits(script, "--array=1-6%2")
    operator.awaits("jobs", "show", "team", array, shows=r"FAILED +\S+_2\n.*RUNNING +\S+_\[3-4\]")

    operator.types("status", "team")
    operator.follows("jobs list team --all")
    operator.sees(
        rf" {array}_\[5-6%2\]|{array}_\[5-6%2\] ", rf"{array}_2 ubuntu +trn1 +FAILED +3:0", f"failed is {array}_2"
    )
    operator.follows(rf"jobs show team {array}_2")
    operator.sees(r"FAILED, exit code 3:0")
    operator.follows(rf"jobs logs team {array}_2")
    operator.sees("no such shard")
    operator.types("jobs", "show", "team", array)
    operator.sees(r"COMPLETED +\S+_1\n", rf"FAILED {array}_2: These tasks have failed")
    operator.follows(rf"jobs cancel team {array} --array", "--yes")
    operator.awaits("jobs", "show", "team", array, shows=r"CANCELLED +\S+_\[3-6\]\nCOMPLETED +\S+_1\nFAILED +\S+_2\n")


def jobs_wait_for_ever(operator: Operator) -> None:
    """For what no free node helps against, each for another reason."""
    failed = operator.submits("exit 1")
    operator.sees_job(failed, "FAILED")
    follower = operator.submits("true", f"--dependency=afterok:{failed}")
    held = operator.submits("true", "--hold")
    limited = operator.submits("true", "--nodes=2", user="alan")
    partition = f"{SLURM}/scontrol update partitionname=trn1"
    long = operator.submits("true", "--time=60", "--hold")
    operator.breaks(f"{partition} maxtime=30 && {SLURM}/scontrol release {long}")
    reasons = {
        follower: "DependencyNeverSatisfied", held: "JobHeldUser", limited: "AssocGrpNodeLimit",
        long: "PartitionTimeLimit",
    }  # fmt: skip
    for job, reason in reasons.items():
        operator.sees_job(job, f"PENDING, {reason}")

    operator.awaits("status", "team", shows="Healthy.*Note: 4 jobs wait for more than free nodes: ")
    for job, reason in reasons.items():
        assert f"{reason} ({job})" in operator.screen
    listed = operator.follows("jobs list team")

    def again(command: str, *more: str) -> None:
        operator.screen = listed
        operator.follows(command, *more)

    again(rf"exec team --user root -- \S+/scontrol release {held}")
    operator.sees_job(held, "COMPLETED")
    again(rf"jobs cancel team {follower}", "--yes")
    operator.sees_job(follower, "CANCELLED")
    again(r"exec team -- \S+/sinfo -o .*")
    operator.sees(r"trn1\*? 30:00")
    again(rf"jobs cancel team {long}", "--yes")
    operator.sees_job(operator.submits("true", "--time=20"), "COMPLETED")
    operator.breaks(f"{partition} maxtime=INFINITE")
    operator.screen = listed
    operator.sees(r"\nAssocGrpNodeLimit: ", r"raise `max_nodes` of the account")
    operator.life.change(lambda raw: limit_language(raw, 2))
    again("deploy team", "--yes")
    operator.sees_job(limited, "COMPLETED")


def a_queue_is_closed(operator: Operator) -> None:
    operator.breaks(f"{SLURM}/scontrol update partitionname=trn1 state=down")
    waiting = operator.submits("true")
    operator.sees_job(waiting, "PENDING, PartitionDown")

    operator.is_called("the queue trn1 takes no jobs: Slurm has it down, and 1 job waits")
    operator.follows("diagnose team", code=1)
    operator.sees("^A queue takes no jobs\n")
    operator.follows(r"exec team --user root -- \S+/scontrol update partitionname=trn1 state=up")
    operator.sees_job(waiting, "COMPLETED")


def nodes_are_reserved(operator: Operator) -> None:
    reserve = "create reservation reservationname=bench users=root starttime=now duration=600 nodes=ALL"
    operator.breaks(f"{SLURM}/scontrol {reserve}")
    waiting = operator.submits("true")

    operator.is_called("2 of 2 nodes of queue trn1 are reserved, and a job that wants 1 waits")
    operator.follows("diagnose team", code=1)
    operator.sees("^A reservation of Slurm's keeps nodes", "scontrol delete reservationname=NAME")
    operator.follows(r"exec team -- \S+/scontrol show reservation")
    operator.sees("ReservationName=bench")
    operator.breaks(f"{SLURM}/scontrol delete reservationname=bench")
    operator.sees_job(waiting, "COMPLETED")


def daemons_are_killed(operator: Operator) -> None:
    """Their units start them again; nobody is called."""
    job = operator.submits(until("killed"))
    operator.sees_job(job, "RUNNING")
    operator.is_saved(job)
    daemons = ("slurmctld", "slurmdbd", "clustermgtd")
    before = [operator.life.on_head_node(f"pgrep --exact {each}").split()[-1] for each in daemons]
    operator.breaks(f"kill -KILL {' '.join(before)}")
    for daemon, process in zip(daemons, before, strict=True):
        operator.breaks(f"until pgrep --exact {daemon} | grep --invert-match --line-regexp {process}; do sleep 1; done")
    operator.is_well()
    operator.sees_job(job, "RUNNING")
    operator.breaks("touch /fsx/killed")
    operator.sees_job(job, "COMPLETED")


def accounting_is_gone(operator: Operator, harm: str, words: str) -> None:
    operator.breaks(harm)
    job = operator.submits("true")

    operator.is_called(f"Slurm's accounting does not answer: .*{words}")
    operator.types("jobs", "list", "team")
    operator.sees("^Slurm's accounting does not answer")
    operator.follows("diagnose team", code=1)
    operator.sees("^Slurm's accounting does not answer\n", "It holds now")
    operator.follows("exec team --user root -- systemctl restart slurmdbd")
    operator.is_well()
    recorded = rf"\n +{job} ubuntu +trn1 +COMPLETED"
    operator.awaits("jobs", "list", "team", "--all", shows=recorded)
    assert "There is no accounting" not in operator.screen


def the_controller_hangs(operator: Operator) -> None:
    job = operator.submits(until("hung"))
    operator.sees_job(job, "RUNNING")
    operator.is_saved(job)
    operator.breaks("pkill -STOP --exact slurmctld")

    operator.is_called("Slurm on the head node does not answer: slurmctld runs, and gave no answer within 8 s")
    status = operator.screen
    operator.types("jobs", "cancel", "team", job, "--yes", code=1)
    operator.sees(r"\nhint: ./ultracluster diagnose team")
    operator.screen = status
    operator.follows("diagnose team", code=1)
    operator.sees("^Slurm does not answer ParallelCluster\n")
    operator.follows("exec team --user root -- systemctl restart slurmctld")
    operator.is_well()
    operator.sees_job(job, "RUNNING")
    operator.breaks("touch /fsx/hung")
    operator.sees_job(job, "COMPLETED")


def the_disk_of_the_head_node_is_full(operator: Operator) -> None:
    operator.breaks(FILL)

    operator.is_called(f"the disk of {STATE} on the head node is 100 % full")
    operator.follows("diagnose team", code=1)
    operator.sees("^A disk is full\n")
    operator.follows(rf"exec team --user root -- du .* {STATE}")
    [file] = re.findall(rf"\S+\t({STATE}/\S+)", operator.screen)
    operator.breaks(f"rm {file}")
    operator.is_well()
    operator.sees_job(operator.submits("true"), "COMPLETED")
    kept = "/var/spool/kept"
    operator.breaks(
        f"cp --archive /run/full {kept} && umount {STATE} && cp --archive {kept}/. {STATE} && umount /run/full"
    )


def an_update_kills_slurm(operator: Operator) -> None:
    """The head node goes back to the configuration from before, and jobs run on."""
    job = operator.submits(until("updated"))
    operator.sees_job(job, "RUNNING")
    before = operator.life.file.read_text(encoding="utf-8")
    operator.life.change(set_plugin)
    operator.life.run("deploy", "team", "--yes", code=1)

    operator.is_called("stack team-cluster is UPDATE_ROLLBACK_FAILED: .* the configuration from before")
    operator.types("diagnose", "team", code=1)
    operator.sees(
        "\nSlurm's controller did not start with this configuration\n",
        r"\| .*error: cannot create job_submit context for job_submit/acme\n",
        r"\| .*fatal: failed to initialize job_submit plugin\n",
        "take the change back, then deploy",
    )
    operator.life.file.write_text(before, encoding="utf-8")
    operator.follows("deploy team", "--yes")
    operator.is_well()
    operator.sees_job(job, "RUNNING")
    operator.breaks("touch /fsx/updated")
    operator.sees_job(job, "COMPLETED")


def a_setting_is_written_on_the_head_node(operator: Operator) -> None:
    """After the update that failed, whose lines in the logs are not those of now."""
    operator.breaks("echo JobSubmitPlugins=acme2 >>/opt/slurm/etc/slurm.conf; systemctl --no-block restart slurmctld")

    operator.is_called("slurmctld does not run. Its last words: .*job_submit/acme2; fatal: ")
    operator.follows("diagnose team", code=1)
    operator.sees("^Slurm's controller does not start\n", "it was written on the head node")
    diagnosis = operator.screen
    operator.follows("exec team --user root -- grep .* acme2 .*")
    [(file, line)] = re.findall(r"^(/\S+):(\d+):JobSubmitPlugins=acme2$", operator.screen, re.MULTILINE)
    operator.breaks(f"sed --in-place {line}d {file}")
    operator.screen = diagnosis
    operator.follows("exec team --user root -- systemctl restart slurmctld")
    operator.is_well()
    operator.sees_job(operator.submits("true"), "COMPLETED")


NIGHTS: tuple[Callable[[Operator], None], ...] = (
    all_nodes_are_drained_with_jobs_on_them,
    tasks_of_an_array_fail,
    jobs_wait_for_ever,
    a_queue_is_closed,
    nodes_are_reserved,
    daemons_are_killed,
    lambda operator: accounting_is_gone(operator, "pkill -STOP --exact slurmdbd", "no answer within"),
    lambda operator: accounting_is_gone(operator, "systemctl stop slurmdbd", "Connection refused"),
    the_controller_hangs,
    the_disk_of_the_head_node_is_full,
    an_update_kills_slurm,
    a_setting_is_written_on_the_head_node,
)


def test_from_the_first_screen_to_the_command_that_helps(tmp_path: Path) -> None:
    with deployed(tmp_path, "team", two_nodes) as life:
        life.run("bootstrap", "team")
        life.run("deploy", "team", "--yes")
        operator = Operator(life)
        for night in NIGHTS:
            operator.is_well()
            night(operator)
        operator.is_well()
