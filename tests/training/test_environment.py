"""environment.sh, which each step of a job sources, and the job in docs/guides/own-program.md that does so."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.training.step import NODE, PROJECT, RELEASE, Step

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
PROGRAM = """\
import os, pathlib, sys
graph = pathlib.Path(os.environ["NEURON_COMPILE_CACHE_URL"], "neuronxcc-2.23/MODULE_1")
graph.mkdir(parents=True)
for name in ("model.neff", "model.done"):
    (graph / name).write_text("compiled")
sys.exit(int(os.environ["CODE"]))
"""


def test_the_environment_is_complete_and_up_to_date(step: Step) -> None:
    *lines, soft, hard = step.source("env && ulimit -S -n && ulimit -H -n").splitlines()
    made = f"{step.environments}/{RELEASE}.build-abc123"
    exported = dict(line.split("=", 1) for line in lines if "=" in line)
    assert {name: value for name, value in exported.items() if name not in {*step.variables, "PWD", "SHLVL", "_"}} == {
        "CCOM_SOCKET_IFNAME": "eth0",
        "FI_EFA_USE_DEVICE_RDMA": "1",
        "FI_PROVIDER": "efa",
        "GLOO_SOCKET_IFNAME": "eth0",
        "MALLOC_ARENA_MAX": "64",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "41000",
        "NEURON_CC_FLAGS": "--retry_failed_compilation",
        "NEURON_COMPILE_CACHE_URL": f"/local/compile-cache-{os.getuid()}/{RELEASE}",
        "NEURON_RT_EXEC_TIMEOUT": "600",
        "NEURON_RT_ROOT_COMM_ID": "10.0.0.1:48620",
        "ULTRACLUSTER_COMPILE_CACHE": f"{PROJECT.parent}/compile-cache/{RELEASE}",
    }
    assert exported["ULTRACLUSTER_PYTHON"] == made, "one environment, even if the link moves on"
    assert exported["PATH"].startswith(f"{made}/bin:/opt/aws/neuron/bin:")
    assert not UNWANTED & exported.keys()
    assert soft == hard


def test_what_is_set_already_stays(step: Step) -> None:
    assert step.source("echo $FI_PROVIDER $MASTER_PORT", FI_PROVIDER="tcp", MASTER_PORT="2022") == "tcp 2022\n"


def test_an_environment_of_another_release_than_the_nodes_is_refused(step: Step) -> None:
    Path(step.variables["NODE_ENV"]).write_text("sdk=2.27.1\n", encoding="utf-8")
    assert step.source("echo never") == (
        f"environment.sh: {NODE} has Neuron SDK 2.27.1, the Python environment is {RELEASE}: submit again "
        "from a new login shell; while an update is in progress, once it has replaced the nodes\n"
    )
    (step.environments / "mine").mkdir()
    mine = f"{step.environments}/mine"
    assert step.source("echo $ULTRACLUSTER_PYTHON", ULTRACLUSTER_PYTHON=mine) == f"{mine}\n"


@pytest.mark.parametrize("before", [True, False])
def test_a_job_waits_for_the_environment_that_the_head_node_builds(step: Step, before: bool) -> None:
    """Whether there is that of another release, or none: the node has the new release already."""
    Path(step.variables["NODE_ENV"]).write_text("sdk=2.29.0\n", encoding="utf-8")
    Path(f"{step.current}.state").write_text("state=building\n", encoding="utf-8")
    made = step.environments / "2.29.0-pytorch2.9.0-ubuntu24.04.build-def456"
    made.mkdir()
    if not before:
        step.current.unlink()
    assert step.source("echo $ULTRACLUSTER_PYTHON", READY=str(made)) == (
        f"environment.sh: waiting for {step.current}, which the head node is building\n{made}\n"
    )


@pytest.mark.parametrize(
    ("state", "reason"),
    [("failed", "failed (10): the Python packages cannot be downloaded. To do: see."), ("building", "")],
)
def test_a_job_is_refused_with_the_reason_when_there_is_nothing_to_wait_for(
    step: Step, state: str, reason: str
) -> None:
    """The build failed, or takes longer than a job may wait, which is no time at all here."""
    step.current.unlink()
    told = f"state={state}\nenvironment=2.28.1-x\nreason={reason}\nsince=2026-11-22T20:00:00Z\n"
    Path(f"{step.current}.state").write_text(told, encoding="utf-8")
    assert step.source("echo never", ULTRACLUSTER_WAIT="0") == (
        f"environment.sh: there is no {step.current} on {NODE}: see whether the head node has made it\n"
        f"environment.sh: 2.28.1-x is {state} since 2026-11-22T20:00:00Z {reason}\n"
    )


def run_job_of_the_page(step: Step, directory: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it with a program that compiles a graph and ends with $CODE."""
    page = (PROJECT / "docs/guides/own-program.md").read_text(encoding="utf-8")
    [job] = re.findall(r"^It is submitted as it is.*?^```$(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert job.count("/fsx/me/train.py") == 1
    program = directory / "train.py"
    program.write_text(PROGRAM, encoding="utf-8")
    caches = {
        "NEURON_COMPILE_CACHE_URL": str(directory / "local"),
        "ULTRACLUSTER_COMPILE_CACHE": str(directory / "shared"),
    }
    return step.run(job.replace("/fsx/me/train.py", str(program)), **caches, **variables)


def test_the_job_ends_as_its_program_and_keeps_what_was_compiled(tmp_path: Path, step: Step) -> None:
    done = run_job_of_the_page(step, tmp_path, CODE="7")
    assert done.returncode == 7, done.stderr
    assert "--nnodes 1 --node-rank 0 --nproc-per-node 32 --master-addr 10.0.0.1 --master-port 41000 " in done.stdout
    assert (tmp_path / "shared/neuronxcc-2.23/MODULE_1/model.done").exists()


def test_a_cache_that_cannot_be_used_changes_nothing(tmp_path: Path, step: Step) -> None:
    (tmp_path / "shared").touch()
    done = run_job_of_the_page(step, tmp_path, CODE="0")
    assert done.returncode == 0
    assert f"compile_cache.sh: mkdir: cannot create directory '{tmp_path}/shared': File exists" in done.stdout
    assert "not all compiled graphs were kept" in done.stdout


def test_without_an_address_no_program_starts(tmp_path: Path, step: Step) -> None:
    done = run_job_of_the_page(step, tmp_path, CODE="0", ADDRESS="")
    assert done.returncode == 1
    assert f"environment.sh: the first of the nodes {NODE} has no address" in done.stdout
    assert "--nnodes" not in done.stdout
