"""The acceptance job, run by a real Slurm on nodes with a fake of nccom-test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.machines.hardware.files import NODE_FACTS, node_facts
from tests.end_to_end.slurm.base import USER
from tests.end_to_end.slurm.cluster import SlurmCluster
from tests.end_to_end.slurm.conftest import new_directory

pytestmark = [pytest.mark.slow, pytest.mark.system]

NCCOM_TEST = """\
#!/bin/bash
# nccom-test: prints what the real one prints. A line "NODE BANDWIDTH" in /fsx/slow is a node that slows all down, one
# "NODE broken" one that ends the run, and one "NODE hang" one that never ends. Its options are those of
# https://github.com/aws-neuron/aws-neuron-sdk/blob/v2.28.1/tools/neuron-sys-tools/nccom-test.rst; "old" in
# /fsx/slurm-mode is a release without the Slurm mode, "broken" one whose mode does not work.
if [[ $1 == --help ]]; then
    grep -q old /fsx/slurm-mode || echo '  -S, --slurm-mode'
    seq 100000 # a long help: whoever stops to read in the middle of it ends this program
    exit
fi
echo "$NEURON_RT_ROOT_COMM_ID nccom-test $*" >>/fsx/calls
hosts=${*#*--hosts}
if [[ $* == *" --slurm-mode --slurm-job-id $SLURM_JOB_ID" ]]; then
    grep -q broken /fsx/slurm-mode && exit 1
    hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
    srun --jobid="$SLURM_JOB_ID" --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 true || exit 1
elif [[ $SLURM_TASKS_PER_NODE != *"(x$SLURM_JOB_NUM_NODES)" ]]; then
    echo "All nodes which are allocated for this job are already filled." # what Open MPI says in a step of one task
    exit 213
elif [[ ${NEURON_RT_ROOT_COMM_ID%:*} != "$(getent ahostsv4 "$SLURMD_NODENAME" | awk '{ print $1; exit }')" ]]; then
    echo "$SLURMD_NODENAME is not the root"
    exit 1
fi
bandwidth=47.0901
while read -r host result; do
    case $result in
        broken) exit 1 ;;
        hang)
            srun --overlap --nodes=1 --ntasks=1 --nodelist="$host" \\
                bash -c 'setsid --fork neuron-bench 4715 </dev/null >/dev/null 2>&1'
            sleep 4716
            ;;
        *) bandwidth=$result ;;
    esac
done < <(tr ' ' '\\n' <<<"$hosts" | awk 'NR == FNR { is[$1]; next } NF && $1 in is' - /fsx/slow)
echo '       size(B)    count(elems)    type    time:avg(us)    algbw(GB/s)    busbw(GB/s)'
echo "    1073741824       268435456    fp32           41806          23.92    $bandwidth"
echo "Avg bus bandwidth:	${bandwidth}GB/s"
"""

FAKES = {
    "/opt/without-slurm/bin/srun": """\
#!/bin/bash
# srun of one task: runs the command here, and says that it is there.
while [[ $1 == --* ]]; do
    [[ $1 != --nodelist=* ]] || export SLURMD_NODENAME=${1#*=}
    shift
done
exec "$@"
""",
    "/opt/without-slurm/bin/scontrol": "#!/bin/bash\nseq -f n%.0f $3\n",
    "/opt/without-slurm/bin/getent": '#!/bin/bash\necho "$2"\n',
}
"""For jobs of any number of nodes, n1 and following, on a single machine."""


class Acceptance:
    """A cluster, and the job on it."""

    def __init__(self, cluster: SlurmCluster, slow: str, instance_type: str, slurm_mode: str) -> None:
        self.cluster = cluster
        self.names = [node.name for node in cluster.nodes]
        for node in cluster.nodes:
            node.write({"/usr/local/bin/nccom-test": NCCOM_TEST, NODE_FACTS: node_facts(instance_type)})
            node.sh("pkill --exact neuron-bench; cp --remove-destination /usr/bin/sleep /usr/local/bin/neuron-bench")
        shared = cluster.directory / "shared/fsx"
        (shared / "slow").write_text(slow.format(*self.names) + "\n", encoding="utf-8")
        (shared / "slurm-mode").write_text(slurm_mode, encoding="utf-8")
        (shared / "calls").write_text("", encoding="utf-8")
        (shared / "calls").chmod(0o666)

    def submit(self, nodes: int, environment: str = "") -> None:
        self.number = int(
            self.cluster.run(
                f"sbatch --parsable --nodes={nodes} --export=ALL,{environment} "
                "/opt/ultracluster/current/health/acceptance.sh",
                user=USER,
            )
        )

    def run(self, nodes: int, environment: str = "") -> tuple[str, str]:
        """Return the exit code and what the job printed."""
        self.submit(nodes, environment)
        return self.cluster.wait(self.number)["ExitCode"], self.cluster.output(self.number)

    def run_without_slurm(self, nodes: int, environment: str = "") -> str:
        """Return what the script prints of a job of any number of nodes, and at the end its exit code."""
        self.number = 0
        first = self.cluster.nodes[0]
        first.write(FAKES)
        return first.sh(
            f"export {environment} PATH=/opt/without-slurm/bin:$PATH SLURM_JOB_ID=0 SLURM_JOB_NUM_NODES={nodes} "
            f"SLURM_JOB_NODELIST={nodes} 'SLURM_TASKS_PER_NODE=4(x{nodes})'; cd /home/{USER}; "
            "bash /opt/ultracluster/current/health/acceptance.sh; echo $?"
        )

    @property
    def report(self) -> Any:
        file = self.cluster.directory / f"shared/home/{USER}/acceptance-{self.number}.json"
        return json.loads(file.read_text(encoding="utf-8"))

    @property
    def calls(self) -> list[str]:
        return (self.cluster.directory / "shared/fsx/calls").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def cluster(slurm_workspace: Path) -> Iterator[SlurmCluster]:
    """Four nodes for all tests of the module."""
    with SlurmCluster(slurm_workspace / "base", new_directory(slurm_workspace), 4) as cluster:
        yield cluster


@pytest.fixture
def accept(cluster: SlurmCluster) -> Callable[..., Acceptance]:
    def make(slow: str = "", instance_type: str = "trn1.32xlarge", slurm_mode: str = "") -> Acceptance:
        return Acceptance(cluster, slow, instance_type, slurm_mode)

    return make


ALL_REDUCE = "--nworkers 128 --nnodes 4 --minbytes 1GB --maxbytes 1GB --datatype fp32 --non-interactive all_reduce"
BY_MPI = "10.99.1.1:48620 nccom-test {ALL_REDUCE} --hosts {hosts}"
BY_SLURM = " nccom-test {ALL_REDUCE} --slurm-mode --slurm-job-id {job}"


@pytest.mark.parametrize(
    ("slurm_mode", "calls", "modes", "said"),
    [
        ("", [BY_SLURM], ["slurm"], "nccom-test starts all nodes in its Slurm mode"),
        ("old", [BY_MPI], ["mpi"], "it has no Slurm mode"),
        ("broken", [BY_SLURM, BY_MPI], ["slurm", "mpi"], "in case the mode is the reason"),
    ],
)
def test_good_nodes_take_one_run_in_the_slurm_mode_if_there_is_one(
    accept: Callable[..., Acceptance], slurm_mode: str, calls: list[str], modes: list[str], said: str
) -> None:
    job = accept(slurm_mode=slurm_mode)
    code, output = job.run(4)
    assert code == "0:0", output
    assert said in output
    hosts = " ".join(job.names)
    assert job.calls == [call.format(ALL_REDUCE=ALL_REDUCE, hosts=hosts, job=job.number) for call in calls]
    report = job.report
    assert [run.pop("mode") for run in report["runs"]] == modes
    report["runs"] = report["runs"][-1:]
    assert report == {
        "job": job.number,
        "instance_type": "trn1.32xlarge",
        "floor": 28,
        "verdict": "good",
        "bad": [],
        "runs": [{"nodes": job.names, "bandwidth": 47.0901, "passed": True}],
    }


def test_one_slow_node_of_four_is_found(accept: Callable[..., Acceptance]) -> None:
    job, bad = accept("{3} 11.5"), 3
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
    for node in job.cluster.nodes:
        assert node.sh("pgrep --full '[n]euron-bench 4715|[s]leep 4716' || echo none") == "none\n"


def test_what_was_measured_outlives_a_job_that_does_not_end(accept: Callable[..., Acceptance]) -> None:
    job = accept("{0} broken\n{1} hang")
    job.submit(4)
    job.cluster.wait_until(lambda: len(job.calls) == 6)
    job.cluster.run(f"scancel {job.number}")
    assert job.cluster.wait(job.number)["JobState"] == "CANCELLED"
    assert job.report["verdict"] == "unfinished"
    assert [len(run["nodes"]) for run in job.report["runs"]] == [4, 4, 2, 2, 2]


@pytest.mark.parametrize(
    ("nodes", "bad", "runs"),
    [
        (3, [1], 6),
        (8, [1, 4, 5, 8], 16),
        (1875, [1], 24),
    ],
)
def test_bad_nodes_are_found_in_any_number(
    accept: Callable[..., Acceptance], nodes: int, bad: list[int], runs: int
) -> None:
    """The number of runs counts: one of a node that hangs takes ten minutes."""
    job = accept("\n".join(f"n{node} broken" for node in bad))
    output = job.run_without_slurm(nodes)
    assert (output.split()[-1], job.report["verdict"]) == ("1", "bad-nodes"), output
    assert set(job.report["bad"]) == {f"n{node}" for node in bad}
    assert len(job.calls) == len(job.report["runs"]) == runs


@pytest.mark.parametrize(
    ("slow", "nodes"), [("\n".join(f"n{node} 27.9" for node in range(1, 9)), 8), ("n2 11.5", 2)], ids=["all", "pair"]
)
def test_where_it_cannot_tell_it_names_nobody(accept: Callable[..., Acceptance], slow: str, nodes: int) -> None:
    job = accept(slow)
    output = job.run_without_slurm(nodes)
    assert output.endswith("so it cannot tell which are bad: see docs/guides/acceptance.md.\n3\n")
    assert (job.report["verdict"], job.report["bad"]) == ("unknown", [])


def test_it_refuses_what_it_cannot_measure(accept: Callable[..., Acceptance]) -> None:
    job = accept(instance_type="trn2.48xlarge")
    refusal = "acceptance.sh: got 1 node; it takes 2 to measure between, and 4 to tell which one is bad\n2\n"
    assert job.run_without_slurm(1) == refusal
    refusal = "acceptance.sh: got the floor '' for trn2.48xlarge; set ACCEPTANCE_FLOOR to a number of GB/s\n2\n"
    assert job.run_without_slurm(2) == refusal
    assert job.run_without_slurm(2, "ACCEPTANCE_FLOOR=fast").endswith("\n2\n")
    assert job.run_without_slurm(2, "ACCEPTANCE_FLOOR=40.5").endswith("\n0\n")
    job.cluster.nodes[0].sh("rm /usr/local/bin/nccom-test")
    assert "nccom-test is not installed" in job.run_without_slurm(2, "ACCEPTANCE_FLOOR=40.5")
