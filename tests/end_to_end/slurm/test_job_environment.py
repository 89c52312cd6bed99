"""What the steps of jobs share, on nodes of a real Slurm: environment.sh and compile_cache.sh."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from tests.end_to_end.slurm.base import USER, USER_ID
from tests.end_to_end.slurm.cluster import Node, SlurmCluster
from tests.end_to_end.slurm.training import PYTHON

pytestmark = [pytest.mark.slow, pytest.mark.system]

UNWANTED = {
    # Of AWS's scripts for BERT, and of no concern to other programs.
    "ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB",
    # https://github.com/pytorch/xla/releases/tag/v2.6.0
    "XLA_USE_BF16",
    "XLA_DOWNCAST_BF16",
    # aws-neuron-samples, dp_bert_hf_pretrain: ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB since torch-xla 2.5
    "BUCKET_CAP_MB",
    # https://awsdocs-neuron.readthedocs-hosted.com/en/latest/release-notes/components/runtime.html, Neuron 2.32
    "NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS",
}
CACHE = f"/scratch/compile-cache-{USER_ID}/cpu"
VERSION = "neuronxcc-2.23.6484.0+3b612583"
"""As in https://huggingface.co/aws-neuron/optimum-neuron-cache."""

ENVIRONMENT = {
    "CCOM_SOCKET_IFNAME": "eth0",
    "FI_EFA_USE_DEVICE_RDMA": "1",
    "FI_PROVIDER": "efa",
    "GLOO_SOCKET_IFNAME": "eth0",
    "MALLOC_ARENA_MAX": "64",
    "MASTER_ADDR": "10.99.1.1",
    "MASTER_PORT": "41000",
    "NEURON_CC_FLAGS": "--retry_failed_compilation",
    "NEURON_COMPILE_CACHE_URL": CACHE,
    "NEURON_RT_EXEC_TIMEOUT": "600",
    "NEURON_RT_ROOT_COMM_ID": "10.99.1.1:48620",
    "ULTRACLUSTER_COMPILE_CACHE": "/fsx/ultracluster/compile-cache/cpu",
    "ULTRACLUSTER_PYTHON": "/opt/cpu",
}
SCRIPTS = "/fsx/ultracluster/jobs/current"
FSX = "/fsx/ultracluster/python"
SOURCE = f"export ULTRACLUSTER_PYTHON={PYTHON}; source {SCRIPTS}/environment.sh"


@pytest.fixture
def cluster(training_cluster: SlurmCluster) -> Iterator[SlurmCluster]:
    yield training_cluster
    for node in training_cluster.nodes:
        node.sh("rm -rf /scratch/* /var/lib/ultracluster /etc/profile.d/ultracluster.sh")


@pytest.fixture
def shared(cluster: SlurmCluster) -> Iterator[Path]:
    """The cache of all nodes."""
    shared = cluster.directory / "shared/fsx/ultracluster/compile-cache/cpu"
    yield shared
    shutil.rmtree(shared)


def on_nodes(cluster: SlurmCluster, script: str, nodes: int = 4) -> str:
    """Run a script as a step of a job on each of the first nodes, in the environment, and return what it prints."""
    (cluster.directory / "shared/fsx/step.sh").write_text(
        f"set -euo pipefail\n{SOURCE}\n{dedent(script)}", encoding="utf-8"
    )
    number = cluster.submit("srun --kill-on-bad-exit=1 bash /fsx/step.sh", f"--nodes={nodes} --exclusive")
    job = cluster.wait(number)
    assert job["JobState"] == "COMPLETED", cluster.output(number)
    return cluster.output(number)


def test_the_environment_is_the_same_on_all_nodes_and_up_to_date(cluster: SlurmCluster) -> None:
    printed = on_nodes(
        cluster,
        """
        mkdir -p /fsx/env
        env >"/fsx/env/$SLURM_NODEID"
        { ulimit -S -n; ulimit -H -n; } | uniq | wc -l
        """,
    )
    assert printed.split() == ["1"] * 4  # the soft limit is the hard one
    for node in range(4):
        text = (cluster.directory / f"shared/fsx/env/{node}").read_text(encoding="utf-8")
        found = dict(line.split("=", 1) for line in text.splitlines())
        assert {name: found[name] for name in ENVIRONMENT} == ENVIRONMENT
        assert found["PATH"].startswith("/opt/cpu/bin:/opt/aws/neuron/bin:")
        assert not UNWANTED & found.keys()


def test_what_is_set_already_stays_and_scratch_is_where_the_node_says(cluster: SlurmCluster) -> None:
    for node in cluster.nodes:
        node.write({"/var/lib/ultracluster/node.env": "queue=trn1\nscratch_dir=/local\n"})
    script = f"{SOURCE}; echo $FI_PROVIDER $MASTER_PORT $NEURON_COMPILE_CACHE_URL"
    number = cluster.submit(f"export FI_PROVIDER=tcp MASTER_PORT=2022; {script}")
    cluster.wait(number)
    assert cluster.output(number) == f"tcp 2022 /local/compile-cache-{USER_ID}/cpu\n"


def test_a_job_without_the_environment_of_its_submitter_takes_the_nodes(cluster: SlurmCluster) -> None:
    for node in cluster.nodes:
        node.write({"/etc/profile.d/ultracluster.sh": f"export ULTRACLUSTER_PYTHON={PYTHON}\n"})
    number = cluster.submit(f"source {SCRIPTS}/environment.sh; echo $ULTRACLUSTER_PYTHON", "--export=NONE")
    assert cluster.wait(number)["JobState"] == "COMPLETED"
    assert cluster.output(number) == "/opt/cpu\n"


@pytest.fixture
def release(cluster: SlurmCluster) -> Iterator[str]:
    """An environment as the head node makes it, and the link of the cluster."""
    environments = cluster.directory / "shared/fsx/ultracluster/python"
    name = "2.28.1-pytorch2.9.0-ubuntu24.04"
    (environments / f"{name}.build-abc123").mkdir()
    (environments / name).symlink_to(f"{name}.build-abc123")
    (environments / "current-trn1-16").symlink_to(name)
    yield name
    for path in (environments / "current-trn1-16", environments / name):
        path.unlink()
    (environments / f"{name}.build-abc123").rmdir()


def sourced(node: Node, sdk: str, environment: str, first: str = "true") -> str:
    """Return what a step on a node with a release of the SDK prints, and the environment that it runs in."""
    node.write({"/var/lib/ultracluster/node.env": f"queue=trn1\nsdk={sdk}\n"})
    settings = f"SLURM_JOB_NODELIST={node.name} ULTRACLUSTER_PYTHON={FSX}/{environment}"
    return node.sh(f"{first}; export {settings}; source {SCRIPTS}/environment.sh && echo $ULTRACLUSTER_PYTHON; true")


def test_a_job_keeps_the_environment_that_the_link_of_the_cluster_led_to(cluster: SlurmCluster, release: str) -> None:
    made = f"/fsx/ultracluster/python/{release}.build-abc123\n"
    assert sourced(cluster.nodes[0], "2.28.1", "current-trn1-16") == made
    assert sourced(cluster.nodes[0], "2.28.1", release) == made


def test_an_environment_of_another_release_than_the_nodes_is_refused(cluster: SlurmCluster, release: str) -> None:
    node = cluster.nodes[0]
    assert sourced(node, "2.27.1", "current-trn1-16") == (
        f"environment.sh: {node.name} has Neuron SDK 2.27.1, the Python environment is {release}: submit again "
        "from a new login shell; while an update is in progress, once it has replaced the nodes\n"
    )
    assert sourced(node, "2.27.1", "cpu") == "/opt/cpu\n", "an environment of one's own"


@pytest.fixture
def told(cluster: SlurmCluster) -> Iterator[Path]:
    """What the head node writes of the environment that it builds for the cluster."""
    path = cluster.directory / "shared/fsx/ultracluster/python/current-trn1-16.state"
    yield path
    path.unlink()


def test_a_job_waits_for_the_environment_that_the_head_node_builds(
    cluster: SlurmCluster, release: str, told: Path
) -> None:
    """Whether there is none yet, or that of another release: the node has the new one already."""
    link = told.with_name("current-trn1-16")
    told.write_text("state=building\n", encoding="utf-8")
    node = cluster.nodes[0]
    ready = f"ln -sfn 2.29.0-pytorch2.9.0-ubuntu24.04.build-def456 {FSX}/current-trn1-16"
    node.write({"/usr/local/bin/sleep": f"#!/bin/bash\n[[ $1 == 10 ]] && {ready}\n"})
    made = link.with_name("2.29.0-pytorch2.9.0-ubuntu24.04.build-def456")
    made.mkdir()
    for before in (release, None):
        link.unlink()
        if before:
            link.symlink_to(before)
        assert sourced(node, "2.29.0", "current-trn1-16") == (
            f"environment.sh: waiting for {FSX}/current-trn1-16, which the head node is building\n{FSX}/{made.name}\n"
        )
    node.sh("rm /usr/local/bin/sleep")
    made.rmdir()


@pytest.mark.parametrize(
    ("state", "reason"),
    [("failed", "failed (10): the Python packages cannot be downloaded. To do: see."), ("building", "")],
)
def test_a_job_is_refused_with_the_reason_when_there_is_nothing_to_wait_for(
    cluster: SlurmCluster, told: Path, state: str, reason: str
) -> None:
    """The build failed, or takes longer than a job may wait, which is no time at all here."""
    told.write_text(f"state={state}\nenvironment=2.28.1-x\nreason={reason}\nsince=2026-11-22T20:00:00Z\n", "utf-8")
    node = cluster.nodes[0]
    assert sourced(node, "2.28.1", "current-trn1-16", "export ULTRACLUSTER_WAIT=0") == (
        f"environment.sh: there is no {FSX}/current-trn1-16 on {node.name}: see whether the head node has made it\n"
        f"environment.sh: 2.28.1-x is {state} since 2026-11-22T20:00:00Z {reason}\n"
    )


COMPILE = f"""
    # compile NAME: makes what a compilation leaves.
    compile() {{
        mkdir -p {CACHE}/{VERSION}/$1
        cd {CACHE}/{VERSION}/$1
        head -c 20000000 /dev/zero >model.neff
        uname -n >>model.neff
        uname -n >compile_flags.json
        touch model.done model.neff.lock
    }}
"""
FILES = ["compile_flags.json", "model.done", "model.neff"]


def files(cache: Path) -> dict[str, list[str]]:
    """Return the names of what graphs consist of, by graph; what has a hidden name is there, too."""
    return {path.name: sorted(file.name for file in path.iterdir()) for path in cache.glob("*/*")}


def test_of_nodes_that_publish_at_once_the_first_wins_and_all_fetch_the_same(
    cluster: SlurmCluster, shared: Path
) -> None:
    publish = f"""{COMPILE}
        compile MODULE_common+1
        compile "MODULE_own$SLURM_NODEID+1"
        mkdir ../MODULE_unfinished+1
        touch ../MODULE_unfinished+1/model.neff
        touch "/fsx/compiled.$SLURM_NODEID"
        until [[ $(echo /fsx/compiled.*) == *0*1*2*3 ]]; do sleep 0.02; done
        bash {SCRIPTS}/compile_cache.sh publish
    """
    on_nodes(cluster, publish)
    assert files(shared) == dict.fromkeys(("MODULE_common+1", *(f"MODULE_own{node}+1" for node in range(4))), FILES)
    module = shared / VERSION / "MODULE_common+1"
    [winner] = {(module / name).read_text(encoding="utf-8").lstrip("\0") for name in FILES if name != "model.done"}
    assert winner.strip() in {node.name for node in cluster.nodes}

    for node in cluster.nodes:
        node.sh("rm -r /scratch/*")
    printed = on_nodes(
        cluster, f"bash {SCRIPTS}/compile_cache.sh fetch >/dev/null; cd {CACHE}; sha256sum */*/* | sha256sum"
    )
    assert printed.splitlines() == [cluster.nodes[0].sh(f"cd {CACHE}; sha256sum */*/* | sha256sum").strip()] * 4
    assert cluster.nodes[0].sh(f"ls {CACHE}/{VERSION}/*") != ""


def test_a_node_that_dies_while_it_publishes_leaves_nothing_that_others_see(
    cluster: SlurmCluster, shared: Path
) -> None:
    node = cluster.nodes[0]
    node.write({"/usr/local/bin/cp": "#!/bin/bash\n/usr/bin/cp $2/model.done $3; touch /fsx/half; sleep 600\n"})
    publish = f"{SOURCE}\n{COMPILE}\ncompile MODULE_graph+1\nbash {SCRIPTS}/compile_cache.sh publish"
    number = cluster.submit(publish, f"--nodelist={node.name}")
    cluster.wait_until((cluster.directory / "shared/fsx/half").exists)
    node.sh(f"rm /usr/local/bin/cp; pkill -KILL -u {USER}")
    cluster.wait(number)
    [left] = files(shared)
    assert left.startswith(".MODULE_graph+1.")

    other = cluster.submit(publish, f"--nodelist={cluster.nodes[1].name}")
    assert cluster.wait(other)["JobState"] == "COMPLETED"
    assert files(shared) == {left: ["model.done"], "MODULE_graph+1": FILES}
    yesterday = time.time() - 2 * 86_400
    os.utime(shared / VERSION / left, (yesterday, yesterday))
    cluster.wait(cluster.submit(publish, f"--nodelist={node.name}"))
    assert files(shared) == {"MODULE_graph+1": FILES}
    assert (shared / VERSION / "MODULE_graph+1/compile_flags.json").read_text(
        encoding="utf-8"
    ) == f"{cluster.nodes[1].name}\n"


def test_what_a_killed_job_left_on_a_node_gives_way_to_what_is_complete(cluster: SlurmCluster, shared: Path) -> None:
    module = shared / VERSION / "MODULE_graph+1"
    module.mkdir(parents=True)
    for name in FILES:
        (module / name).write_text("complete", encoding="utf-8")
    printed = on_nodes(
        cluster,
        f"""
        mkdir -p {CACHE}/{VERSION}/MODULE_graph+1
        echo half >{CACHE}/{VERSION}/MODULE_graph+1/model.neff
        bash {SCRIPTS}/compile_cache.sh fetch
        cat {CACHE}/{VERSION}/MODULE_graph+1/model.neff
        """,
        nodes=1,
    )
    assert "fetch: 1 of 1 graphs copied" in printed
    assert printed.endswith("\ncomplete")
