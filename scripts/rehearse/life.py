"""What nodes do in a rehearsal: they start for a job, one is lost and replaced, a training run survives that."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import ClientError

from config.settings import Settings
from scripts.core.errors import ExitCode
from scripts.core.figures import counted
from scripts.core.options import ROOT
from scripts.emulated import FAULTS, EmulatedAws
from scripts.emulated.accounts import TRAINING
from scripts.rehearse.emulate import TINY
from scripts.rehearse.faults import RUNNING, STARTING, UPDATING
from scripts.rehearse.stage import RehearsalError, Stage

MOST_NODES: Final = 8
"""Nodes at once that two processors carry; --nodes may ask for more."""
_SECONDS: Final = 300.0
_ANSWER: Final = 20_000
"""Characters that are asked for at once; GetCommandInvocation answers with the first 24,000."""
_HEAD: Final = {"Name": "tag:parallelcluster:node-type", "Values": ["HeadNode"]}
_RUNNING: Final = {"Name": "instance-state-name", "Values": ["running"]}
_PROGRAM: Final = "srun --label hostname; srun --label neuron-ls | grep --max-count=4 trn1; sleep 900"
_WAITING: Final = "sleep 900"
Faults = Sequence[tuple[str, str]]
"""Names and targets."""
_LOST_AT: Final = 80
"""The step after which the training run loses a node."""
_SAME: Final = 1e-5
"""Relative difference of losses whose additions are made in another order, by another number of workers."""


def too_many(settings: Settings, nodes: int) -> str:
    """Return why the nodes of a deployment, or so many for a job, are more than run here; empty: they are not."""
    resources = [each for queue in settings.cluster.queues for each in queue.compute_resources]
    limit = max(MOST_NODES, nodes)
    static = sum(each.min_count for each in resources)
    if static > limit:
        return (
            f"the settings keep {counted(static, 'nodes')} running (min_count), and {limit} run on this computer at "
            f"once; pass --nodes {static}, or settings with fewer"
        )
    if nodes > resources[0].max_count:
        return f"--nodes: got {nodes}; allowed: 1 to {resources[0].max_count}, max_count of {resources[0].name}"
    return ""


@dataclass
class Life:
    """What happens to the nodes of one deployment.

    Attributes:
        name: Of the deployment.
        settings: Its settings.
        aws: The account.
        stage: Where it is shown.
        nodes: How many the first job takes.
    """

    name: str
    settings: Settings
    aws: EmulatedAws
    stage: Stage
    nodes: int
    _job: str = ""

    def start(self, faults: Faults) -> None:
        """Show the cluster, what keeps nodes from starting, and that they start for a job."""
        self.show_health()
        for name, target in faults:
            if name in STARTING:
                self.fail_to_start(name, target)
        self.submit()

    def suffer(self, faults: Faults) -> None:
        """Show what the job does, and how it survives faults."""
        self.follow_job()
        for name, target in of_running(faults):
            self.strike(name, target)

    def end(self) -> None:
        """End the job, and show what it cost if there is accounting."""
        self.end_job()
        if self.settings.accounting:
            self.show_costs()

    def fail_to_start(self, name: str, target: str) -> None:
        """Submit a job whose nodes do not start while a fault lasts, and show why."""
        lived = STARTING[name]
        with self._fault_step(name):
            self.aws.inject(name, target)
            job = self._submit(_WAITING)
            self._show_cause(lived.seen)
            self._slurm(f"scancel {job}")
            self.aws.clear_faults()
            if lived.ending:
                self.stage.run(*lived.ending, self.name)

    def strike(self, name: str, target: str) -> None:
        """Let a fault strike a node of the job, show what it does, and that the job runs after it."""
        lived, node = RUNNING[name], FAULTS[name].node
        is_head_node = node is not None and node.kind == "HeadNode"
        with self._fault_step(name):
            last, instance_id = ("the head node", "") if is_head_node else self._nodes_of(self._job)[-1]
            started = self._boot_time()
            struck = self.aws.inject(name, target or instance_id)
            self.stage.say(f"{name}: {struck}{'' if target else f', {last}'}")
            if lived.showing:
                self._slurm(lived.showing.format(job=self._job))
            self._show_cause(lived.seen)
            self.aws.clear_faults()
            if lived.requeued:
                self._slurm(f"scontrol requeue {self._job}")
            if lived.ending:
                self.stage.run(*lived.ending, self.name, "--confirm", self.settings.name)
            elif node and is_head_node and node.events[0]:
                self._until(lambda: self._boot_time() not in ("", started), "the head node is back")
            if lived.is_job_lost:
                self._job = self._submit(_PROGRAM)
            self._until(self._is_running, "the job runs")
            self.stage.run("jobs", "list", self.name)
            if lived.requeued and "-st-" in last:
                self._until(lambda: self._instance_of(last) not in ("", instance_id), f"{last} is replaced")
                self.stage.say(f"{last} is static: {self._instance_of(last)} has taken its place")

    def show_health(self) -> None:
        """Show the state of everything."""
        with self.stage.step(
            "Is it healthy?", "One screen for everything; exit code 0 means healthy, for programs, too."
        ):
            self.stage.run("status", self.name)

    def submit(self) -> None:
        """Submit a job, for which nodes start."""
        starting = (
            "No node runs yet: Slurm asks ParallelCluster's daemon for them, which launches them in the placement "
            "group, all or none. State CF: the job has nodes, which boot."
        )
        running = "Its nodes run since the cluster was made (min_count): it starts at once."
        with self.stage.step(
            f"A first job, on {counted(self.nodes, 'nodes')}", running if self._is_static else starting
        ):
            self._job = self._submit(_PROGRAM)
            self.stage.run("jobs", "list", self.name)

    def follow_job(self) -> None:
        """Show what the job does, once it runs."""
        with self.stage.step(
            "The job runs", "Nodes, job and logs as you would see them on AWS: nothing here needs SSH or an open port."
        ):
            self._wait_for_job("R")
            self.stage.run("status", self.name)
            self.stage.run("jobs", "logs", self.name, self._job, "--lines", "12")
            self.stage.run("logs", self.name, "clustermgtd" if self._is_static else "slurm_resume", "--lines", "8")

    def lose_node(self) -> None:
        """Show what the job does, and terminate a node under it."""
        self.follow_job()
        with self.stage.step(
            "A node is lost under the job",
            "EC2 takes an instance away. clustermgtd sees it in its next loop, Slurm requeues the job, and a new "
            "instance takes the node's place.",
        ):
            lost = self._lose_node_of(self._job)
            self._until(lambda: self._restarts(self._job) > 0, "the job is requeued")
            self.stage.run("jobs", "list", self.name)
            self.stage.run("diagnose", self.name, codes=(ExitCode.DONE, ExitCode.FAILED))
            self.stage.say(f"{lost} is gone; the job waits until Slurm has given up the node.")

    def see_job_again(self, root_volume_gib: int | None) -> None:
        """Show that the job runs on new nodes, which have the root volumes that the settings say by now."""
        with self.stage.step(
            "The job runs again",
            "Nobody had to do anything. The node that was not lost ended with the job, as the change asked: all nodes "
            "are new.",
        ):
            self._wait_for_job("R")
            self.stage.run("jobs", "list", self.name)
            sizes = {name: self._root_volume(instance_id) for name, instance_id in self._nodes_of(self._job)}
            self.stage.say(", ".join(f"{name}: a root volume of {size} GiB" for name, size in sizes.items()))
            if set(sizes.values()) != {root_volume_gib}:
                raise RehearsalError(f"nodes of the job are not as the settings say: root volumes of {root_volume_gib}")

    def end_job(self) -> None:
        """End the job, which would keep its nodes."""
        nodes = "Static nodes stay." if self._is_static else "Its nodes go when they have been idle for a while."
        with self.stage.step("The job is cancelled", nodes):
            self._exec("scancel", self._job)
            self._until(lambda: self._state(self._job) == "", "the job has ended")

    def show_costs(self) -> None:
        """Show what jobs have cost, by Slurm's accounting."""
        with self.stage.step(
            "Who spent what",
            "From Slurm's accounting, with the runs that lost a node; the rest of the nodes' time is idle.",
        ):
            self.stage.run("costs", self.name, "--by", "user")

    def train(self) -> None:
        """Train a tiny BERT, lose a node in the middle, and compare the loss with that of a run that lost none."""
        with self._undisturbed() as (reference, undisturbed):
            self._train(reference, undisturbed)

    def _train(self, reference: subprocess.Popen[bytes], undisturbed: Path) -> None:
        with self.stage.step(
            "BERT on 2 nodes",
            "The real training program, a tiny model, processors for Trainium. The same data, steps and seed run "
            "undisturbed beside it, in one process.",
        ):
            output = f"{self._mount}/runs/rehearsal"
            words = ("submit", self.name, "--nodes", "2", "--output", output, "--no-compile", "--", *TINY.split())
            printed = self.stage.run(*words).text
            job = re.findall(r"^train +job (\d+)", printed, re.MULTILINE)[0]
            self._until(lambda: self._steps(output) >= _LOST_AT or not self._state(job), f"step {_LOST_AT}")
            self.stage.run("jobs", "logs", self.name, job, "--lines", "12")
            if not self._state(job):
                raise RehearsalError("the training job ended before it lost a node")
        with self.stage.step(
            "A node is lost in the middle",
            "Slurm requeues the job; it starts again from its newest checkpoint, by itself, on a new node.",
        ):
            at = self._steps(output)
            lost = self._lose_node_of(job)
            self._until(lambda: self._state(job) == "", "the training job ends")
            self.stage.say(f"{lost} was lost after step {at}.")
            self.stage.run("jobs", "logs", self.name, job, "--lines", "25")
            self.stage.run("runs", "list", self.name)
            self._compare(output, reference, undisturbed)

    def _compare(self, output: str, reference: subprocess.Popen[bytes], undisturbed: Path) -> None:
        """Compare the losses of the run with those of the undisturbed one, and show both."""
        if reference.wait(_SECONDS):
            raise RehearsalError("the undisturbed run failed")
        own = undisturbed.with_name("rehearsal")
        own.mkdir(exist_ok=True)
        for name in ("metrics.jsonl", "run.json", "summary.json"):
            (own / name).write_bytes(self._read(f"{output}/{name}"))
        last = [_losses(directory / "metrics.jsonl") for directory in (own, undisturbed)]
        self.stage.run("runs", "show", str(own), str(undisturbed))
        step = max(last[1])
        here, there = (losses[step] for losses in last)
        self.stage.say(f"Loss of step {step}: {here:.6f}, of the undisturbed run {there:.6f}")
        if abs(here - there) > _SAME * abs(there):
            raise RehearsalError("the run that lost a node ended with another loss")

    @contextmanager
    def _fault_step(self, name: str) -> Iterator[None]:
        fault = FAULTS[name]
        with self.stage.step(
            f"While {fault.what}", f"docs/guides/faults.md says what AWS and ParallelCluster do; see {fault.source}"
        ):
            yield

    def _show_cause(self, seen: str) -> None:
        """Wait until diagnose tells of something, and show what it says; nothing for an empty text."""
        if seen:
            self._until(lambda: seen in self.stage.ask("diagnose", self.name, "--output", "json"), seen, every=4)
            self.stage.run("diagnose", self.name, codes=(ExitCode.DONE, ExitCode.FAILED))

    def _submit(self, program: str) -> str:
        """Submit a job for all nodes that jobs here get, and return its id."""
        options = (f"--nodes={self.nodes}", "--exclusive", "--job-name=first")
        printed = self._exec("sbatch", *options, "--wrap", program)
        return str(re.findall(r"Submitted batch job (\d+)", printed)[0])

    def _boot_time(self) -> str:
        """Return when the head node's system started; empty: it does not answer."""
        try:
            return self._ask("ps --format lstart= --pid 1")
        except (RehearsalError, ClientError, ValueError):
            return ""

    def _is_running(self) -> bool:
        """Tell whether the job runs; also while the head node does not answer."""
        try:
            return self._state(self._job) == "R"
        except (RehearsalError, ClientError, ValueError):
            return False

    def _exec(self, *words: str) -> str:
        return self.stage.run("exec", self.name, "--", *words).text

    def _ask(self, script: str) -> str:
        """Run a script on the head node, as root, and return what it prints; nothing of it is shown.

        Raises:
            RehearsalError: It failed.
        """
        ssm = self.aws.client("ssm", self.settings.region)
        sent = ssm.send_command(
            InstanceIds=[self._head_node()], DocumentName="AWS-RunShellScript", Parameters={"commands": [script]}
        )
        ids = {"CommandId": sent["Command"]["CommandId"], "InstanceId": self._head_node()}
        answer = {"Status": "Pending"}
        while answer["Status"] in ("Pending", "InProgress", "Delayed"):
            time.sleep(0.1)
            with suppress(ssm.exceptions.InvocationDoesNotExist):  # the answer to SendCommand comes first
                answer = ssm.get_command_invocation(**ids)
        if answer["Status"] != "Success":
            raise RehearsalError(f"the head node did not run {script}: {answer['StandardErrorContent']}")
        return str(answer["StandardOutputContent"])

    def _read(self, file: str) -> bytes:
        """Return the content of a file of the head node, whose size a command's answer does not limit."""
        packed, part = "", "-"
        while part:
            window = f"tail --bytes=+{len(packed) + 1} | head --bytes={_ANSWER}"
            part = self._ask(f"gzip --stdout {file} | base64 --wrap=0 | {window}")
            packed += part
        return gzip.decompress(base64.b64decode(packed))

    def _head_node(self) -> str:
        [instance] = self._instances(_HEAD)
        return str(instance["InstanceId"])

    def _instances(self, *filters: dict[str, Any]) -> list[dict[str, Any]]:
        ec2 = self.aws.client("ec2", self.settings.region)
        found = ec2.describe_instances(Filters=[_RUNNING, *filters])["Reservations"]
        return [instance for reservation in found for instance in reservation["Instances"]]

    def _slurm(self, command: str) -> str:
        return self._ask(f"export PATH=/opt/slurm/bin:$PATH\n{command}").strip()

    def _state(self, job: str) -> str:
        """Return the state of a job as one letter or two, such as R; empty: it has ended."""
        return self._slurm(f"squeue --noheader --jobs={job} --format=%t 2>/dev/null || true")

    def _restarts(self, job: str) -> int:
        return int(self._slurm(f"scontrol show job {job} | sed -n 's/.*Restarts=\\([0-9]*\\).*/\\1/p'"))

    def _wait_for_job(self, state: str) -> None:
        self._until(lambda: self._state(self._job) == state, "the job runs")

    def _lose_node_of(self, job: str) -> str:
        """Let EC2 terminate the last node of a job, and return its name in Slurm and its instance."""
        name, instance_id = self._nodes_of(job)[-1]
        self.stage.say(f"EC2 terminates {instance_id}, which is {name}")
        self.aws.client("ec2", self.settings.region).terminate_instances(InstanceIds=[instance_id])
        return f"{instance_id} ({name})"

    def _nodes_of(self, job: str) -> list[tuple[str, str]]:
        """Return names and instances of the nodes of a job."""
        names = self._slurm(f"scontrol show hostnames $(squeue --noheader --jobs={job} --format=%N)").split()
        return [(name, self._instance_of(name)) for name in names]

    def _root_volume(self, instance_id: str) -> int:
        """Return the size of an instance's root volume in GiB."""
        ec2 = self.aws.client("ec2", self.settings.region)
        attached = [{"Name": "attachment.instance-id", "Values": [instance_id]}]
        return max(int(each["Size"]) for each in ec2.describe_volumes(Filters=attached)["Volumes"])

    def _instance_of(self, node: str) -> str:
        """Return the instance that a node is; empty: it has none that runs."""
        address = self._slurm(f"scontrol show node {node} | sed -n 's/.*NodeAddr=\\([0-9.]*\\).*/\\1/p'")
        found = self._instances({"Name": "private-ip-address", "Values": [address]}) if address else []
        return str(found[0]["InstanceId"]) if found else ""

    def _until(self, condition: Callable[[], bool], what: str, every: float = 0.5) -> None:
        end = time.monotonic() + _SECONDS
        while not condition():
            if time.monotonic() > end:
                raise RehearsalError(f"waited {_SECONDS:.0f} s in vain: {what}")
            time.sleep(every)

    @property
    def _is_static(self) -> bool:
        """Whether nodes run that are enough for the first job; it goes to the first queue, and there to them."""
        return sum(each.min_count for each in self.settings.cluster.queues[0].compute_resources) >= self.nodes

    @property
    def _mount(self) -> str:
        return self.settings.storage.file_system.mount_dir

    def _steps(self, output: str) -> int:
        return int(self._ask(f"grep --count . {output}/metrics.jsonl 2>/dev/null || true") or 0)

    @contextmanager
    def _undisturbed(self) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """Start a run that loses no node; give its process, which ends with the block, and its directory."""
        directory = Path(self.stage.environment["ULTRACLUSTER_CONFIG"]) / "runs" / "undisturbed"
        process = subprocess.Popen(
            ["nice", TRAINING / "bin/python", "-m", "bert", "train", *TINY.split(), "--output", directory],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}/training:{ROOT}/training/programs", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield process, directory
        finally:
            process.kill()
            process.wait()


def of_running(faults: Faults) -> Faults:
    """Return the faults that nodes have when they run."""
    return [each for each in faults if each[0] in RUNNING]


def of_updating(faults: Faults) -> Faults:
    """Return the faults that let an update fail."""
    return [each for each in faults if each[0] in UPDATING]


def _losses(file: Path) -> dict[int, float]:
    lines = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    return {line["step"]: line["loss"] for line in lines}
