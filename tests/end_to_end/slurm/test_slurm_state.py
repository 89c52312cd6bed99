"""What a real Slurm says of nodes and jobs, as the programs that look at a cluster read it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from scripts.account.remote.head_node import OUTPUT_LIMIT
from scripts.account.remote.programs.state import JOBS_LISTED, PROBLEMS_LISTED
from scripts.account.slurm import COMMAND, SlurmState, parse
from tests.end_to_end.slurm.base import ClusterError
from tests.end_to_end.slurm.cluster import SlurmCluster
from tests.end_to_end.slurm.conftest import new_directory
from tests.end_to_end.slurm.controller import NODES, SETTINGS, Controller
from tests.scripts.slurm_samples import RECORDED

pytestmark = [pytest.mark.slow, pytest.mark.system]

CLOUD = {
    "SlurmctldParameters": "idle_on_node_suspend,power_save_min_interval=0,cloud_dns",
    "PrivateData": "cloud",
    "ResumeProgram": "/bin/true",
    "SuspendProgram": "/bin/true",
    "SuspendTime": "300",
    "ResumeTimeout": "600",
    "SuspendTimeout": "600",  # a node that is powered down stays so, however slow this machine is
    "NodeName": "cpu-dy-c6i-[1-8] CPUs=4 State=CLOUD",
    "PartitionName": "cpu Nodes=cpu-dy-c6i-[1-8]",
}
AWKWARD = 'a|b ~ # 5|drained "quoted" \\n \\c é'
"""Characters that mean something to who prints or reads them."""
TWO_LINES = "two\n# end"


class CloudCluster(SlurmCluster):
    """A cluster that also has a queue of nodes that are off until they are asked for."""

    def __init__(self, workspace: Path) -> None:
        super().__init__(workspace / "base", new_directory(workspace), 5, CLOUD)
        path = self.directory / "shared/opt/slurm/etc/slurm.conf"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("Nodes=ALL", "Nodes=trn1-st-trn1-32xl-[1-5]"), encoding="utf-8")

    def is_up(self) -> bool:
        try:
            return self.run("sinfo --noheader --format='%D %T' --partition=trn1").split() == ["5", "idle"]
        except ClusterError:
            return False

    def ask(self) -> tuple[str, SlurmState]:
        """Return what the program prints, and what that says."""
        text = self.run(shlex.join(COMMAND))
        return text, parse(text)

    def update(self, *changes: tuple[str, str, str]) -> None:
        """Set the states of nodes: name, state and reason of each."""
        command = "scontrol update nodename={} state={} reason={}\n"
        lines = [command.format(node, state, shlex.quote(reason)) for node, state, reason in changes]
        self.run(f"set -e\n{''.join(lines)}")

    def is_busy(self) -> bool:
        """Return whether both jobs have nodes, and all nodes are in the states that they were set to."""
        text, state = self.ask()
        changing = (state.nodes["cpu"].get("powering up"), state.nodes["trn1"].get("powering down"))
        # They count as such from when it is wanted; Slurm's own words change when it calls the program for it.
        wanted = any(word in text for word in ("power_up", "power_down", "mixed+powered_down"))
        return state.active_jobs == 2 and changing == (2, 1) and not wanted


def recorded(text: str) -> str:
    """Return what was printed without what is different each time."""
    same = {
        r'"\d:\d\d"': '"0:00"',
        r"\d{4}-\d\d-\d\dT[\d:]{8}": "2026-11-21T12:00:00",
        r'"seconds":[\d.]+': '"seconds":0.1',
    }
    for pattern, value in same.items():
        text = re.sub(pattern, value, text)
    return text


def test_all_states_of_nodes_and_jobs(slurm_workspace: Path) -> None:
    with CloudCluster(slurm_workspace) as cluster:
        _, before = cluster.ask()
        cluster.submit("sleep 600", f"--partition=trn1 --exclusive --nodelist={cluster.nodes[0].name} --job-name=train")
        cluster.submit("sleep 600", f"--partition=cpu --nodelist=cpu-dy-c6i-1 --job-name={shlex.quote(TWO_LINES)}")
        cluster.submit("true", "--partition=trn1,cpu --hold --array=1-30 --job-name=sweep")
        cluster.update(
            (cluster.nodes[1].name, "drain", AWKWARD),
            (cluster.nodes[2].name, "down", TWO_LINES),
            (cluster.nodes[3].name, "power_down_asap", "to be replaced"),
            ("cpu-dy-c6i-3", "drain", "drained while off"),
            ("cpu-dy-c6i-5", "power_up", "wanted"),
        )
        cluster.run("scontrol update nodename=cpu-dy-c6i-7 state=noresp")
        cluster.wait_until(cluster.is_busy)
        cluster.run("scontrol update partitionname=cpu state=inactive")
        text, state = cluster.ask()
    assert before.nodes == {"cpu": {"power saving": 8}, "trn1": {"idle": 5}}
    assert (before.problems, before.counts, before.jobs) == ((), {}, ())
    assert state.nodes["cpu"] == {"drained": 1, "power saving": 4, "powering up": 2, "stuck off": 1}
    assert state.nodes["trn1"] == {"allocated": 1, "drained": 1, "down": 1, "powering down": 1, "idle": 1}
    assert state.availability == {"cpu": "inactive", "trn1": "up"}
    reasons = {each.nodes: (each.count, each.state, each.reason) for each in state.problems}
    assert reasons == {
        "cpu-dy-c6i-3": (1, "drained~", "drained while off"),
        "trn1-st-trn1-32xl-2": (1, "drained", AWKWARD),
        "trn1-st-trn1-32xl-3": (1, "down", "two # end"),
        "cpu-dy-c6i-7": (1, "stuck off", "none"),
    }
    assert (state.active_jobs, state.waiting_jobs, state.waiting_in("cpu"), state.active_in("trn1")) == (2, 30, 30, 1)
    assert [each.name for each in state.jobs] == ["train", "two # end", "sweep"]
    assert recorded(text) == RECORDED


def test_1875_nodes_and_500_jobs_fit_into_an_answer(slurm_workspace: Path, tmp_path: Path) -> None:
    """The longest reasons and names, and nodes that cannot be folded."""
    with Controller(slurm_workspace / "base", tmp_path, SETTINGS["this stack's"]) as controller:
        reason = "r" * 200
        for first in range(1, 2 * PROBLEMS_LISTED):
            nodes = ",".join(f"trn1-dy-trn1-32xl-{number}" for number in range(first, NODES, 100))
            controller.run(f"scontrol update nodename={nodes} state=drain reason={first}{reason}")
        controller.run(f"for i in $(seq 500); do sbatch --job-name={'j' * 100} --nodes=2 --wrap=true; done")
        text = controller.run(shlex.join(COMMAND))
    state = parse(text)
    assert sum(state.nodes["trn1"].values()) == NODES
    assert sum(state.counts.values()) == 500
    assert (len(state.jobs), len(state.problems)) == (JOBS_LISTED, PROBLEMS_LISTED)
    assert len(text) < OUTPUT_LIMIT - 4_000, "room for the 15 lines of 200 that `./ultracluster status` asks for beside"
