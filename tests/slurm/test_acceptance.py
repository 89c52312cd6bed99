"""The acceptance job, run by a real Slurm on nodes with a stand-in for nccom-test."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.nodes.hardware_files import NODE_FACTS, node_facts
from tests.slurm.base import USER
from tests.slurm.cluster import SlurmCluster

pytestmark = [pytest.mark.slow, pytest.mark.system]

NCCOM_TEST = """\
#!/bin/bash
# nccom-test: prints what the real one prints. A line "NODE BANDWIDTH" in /fsx/slow is a node that slows all down, and
# one "NODE hang" one that never ends.
echo "$NEURON_RT_ROOT_COMM_ID nccom-test $*" >>/fsx/calls
bandwidth=47.0901
for host in ${*#*--hosts}; do
    found=$(sed -n "s/^$host //p" /fsx/slow)
    if [[ $found == hang ]]; then
        srun --overlap --nodes=1 --ntasks=1 --nodelist="$host" \\
            bash -c 'setsid --fork neuron-bench 4715 </dev/null >/dev/null 2>&1'
        sleep 600
    fi
    bandwidth=${found:-$bandwidth}
done
echo '       size(B)    count(elems)    type    time:avg(us)    algbw(GB/s)    busbw(GB/s)'
echo "    1073741824       268435456    fp32           41806          23.92    $bandwidth"
echo "Avg bus bandwidth:	${bandwidth}GB/s"
"""


class Acceptance:
    """A cluster, and the job on it."""

    def __init__(self, cluster: SlurmCluster, slow: str, instance_type: str) -> None:
        self.cluster = cluster
        self.names = [node.name for node in cluster.nodes]
        for node in cluster.nodes:
            node.write({"/usr/local/bin/nccom-test": NCCOM_TEST, NODE_FACTS: node_facts(instance_type)})
            node.sh("cp /usr/bin/sleep /usr/local/bin/neuron-bench")
        shared = cluster.directory / "shared/fsx"
        (shared / "slow").write_text(slow.format(*self.names) + "\n", encoding="utf-8")
        (shared / "calls").touch(mode=0o666)
        (shared / "calls").chmod(0o666)

    def run(self, nodes: int, environment: str = "") -> tuple[str, str]:
        """Return the exit code and what the job printed."""
        number = int(
            self.cluster.run(
                f"sbatch --parsable --nodes={nodes} --export=ALL,{environment} "
                "/opt/ultracluster/current/health/acceptance.sh",
                user=USER,
            )
        )
        self.number = number
        return self.cluster.wait(number)["ExitCode"], self.cluster.output(number)

    @property
    def report(self) -> Any:
        file = self.cluster.directory / f"shared/home/{USER}/acceptance-{self.number}.json"
        return json.loads(file.read_text(encoding="utf-8"))

    @property
    def calls(self) -> list[str]:
        return (self.cluster.directory / "shared/fsx/calls").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def accept(start_cluster: Callable[..., SlurmCluster]) -> Callable[..., Acceptance]:
    def make(slow: str = "", instance_type: str = "trn1.32xlarge") -> Acceptance:
        return Acceptance(start_cluster(4), slow, instance_type)

    return make


def test_good_nodes_take_one_run(accept: Callable[..., Acceptance]) -> None:
    job = accept()
    code, output = job.run(4)
    assert code == "0:0", output
    assert job.report == {
        "job": job.number,
        "instance_type": "trn1.32xlarge",
        "floor": 28,
        "verdict": "good",
        "bad": [],
        "runs": [{"nodes": job.names, "bandwidth": 47.0901, "passed": True}],
    }
    assert job.calls == [
        "10.99.1.1:48620 nccom-test --nworkers 128 --nnodes 4 --minbytes 1GB --maxbytes 1GB --datatype fp32 "
        f"--non-interactive all_reduce --hosts {' '.join(job.names)}"
    ]


@pytest.mark.parametrize("bad", range(4))
def test_one_slow_node_of_four_is_found(accept: Callable[..., Acceptance], bad: int) -> None:
    job = accept(f"{{{bad}}} 11.5")
    code, output = job.run(4)
    assert code == "1:0", output
    assert (job.report["verdict"], job.report["bad"]) == ("bad-nodes", [job.names[bad]])
    assert f"Bad nodes: {job.names[bad]}." in output
    assert len(job.calls) == 5


def test_a_node_that_hangs_is_found_and_left_clean(accept: Callable[..., Acceptance]) -> None:
    job = accept("{2} hang")
    code, output = job.run(4, "ACCEPTANCE_TIMEOUT=2")
    assert code == "1:0", output
    assert job.report["bad"] == [job.names[2]]
    assert job.report["runs"][0]["bandwidth"] is None
    assert job.cluster.nodes[2].sh("pgrep neuron-bench || echo none") == "none\n"


@pytest.mark.parametrize(
    ("nodes", "slow", "environment"), [(2, "{1} 11.5", ""), (4, "", "ACCEPTANCE_FLOOR=47.1")], ids=["pair", "all"]
)
def test_where_it_cannot_tell_it_names_nobody(
    accept: Callable[..., Acceptance], nodes: int, slow: str, environment: str
) -> None:
    job = accept(slow)
    code, output = job.run(nodes, environment)
    assert code == "3:0", output
    assert (job.report["verdict"], job.report["bad"]) == ("unknown", [])


def test_it_refuses_what_it_cannot_measure(accept: Callable[..., Acceptance]) -> None:
    job = accept(instance_type="trn2.48xlarge")
    assert job.run(1) == (
        "2:0",
        "acceptance.sh: got 1 node; it takes 2 to measure between, and 4 to tell which one is bad\n",
    )
    assert job.run(2) == (
        "2:0", "acceptance.sh: got the floor '' for trn2.48xlarge; set ACCEPTANCE_FLOOR to a number of GB/s\n"
    )  # fmt: skip
    assert job.run(2, "ACCEPTANCE_FLOOR=fast")[0] == "2:0"
    assert job.run(2, "ACCEPTANCE_FLOOR=40.5")[0] == "0:0"
    job.cluster.nodes[0].sh("rm /usr/local/bin/nccom-test")
    assert job.run(2, "ACCEPTANCE_FLOOR=40.5")[0] == "2:0"
