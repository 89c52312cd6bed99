"""A rehearsal, step by step: what this project's commands do to a deployment in an emulated AWS."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal

from rich.console import Console

from config import files
from config.edit import set_values
from config.settings import Settings, load
from scripts.account.stack_state import StackState
from scripts.core import options
from scripts.core.errors import ExitCode, UnusableError
from scripts.core.report import Table, columns
from scripts.core.temporary import temporary_directory
from scripts.core.view import View
from scripts.emulated import FAULTS, EmulatedAws, accounts, inventory
from scripts.rehearse.emulate import wait_for_ctrl_c
from scripts.rehearse.faults import is_of_nodes
from scripts.rehearse.life import Faults, Life, of_running, of_updating, too_many
from scripts.rehearse.stage import RehearsalError, Stage
from scripts.watch.status.cost import cost_now
from ultracluster.domain.instance_types import architecture
from ultracluster.domain.parallelcluster_versions import not_asked
from ultracluster.domain.validator_warnings import accepted, judge

OTHER_HEAD_NODE = {"x86_64": ("c6i.8xlarge", "c6i.4xlarge"), "arm64": ("c7g.8xlarge", "c7g.4xlarge")}
"""By architecture."""
HARMLESS_FAULTS = ("throttling",)
"""A deployment succeeds despite them."""
Speed = Literal["fast", "real"]


@dataclass
class Rehearsal:
    """One run, step by step, shown to a person.

    Attributes:
        name: Of the deployment.
        file: Its settings, a copy that may be changed.
        aws: The account.
        stage: Where it is shown.
        life: What happens to nodes; None: there are none here.
    """

    name: str
    file: Path
    aws: EmulatedAws
    stage: Stage
    life: Life | None

    @property
    def settings(self) -> Settings:
        """Return the settings as they are now."""
        return load(self.file)

    def prepare(self) -> None:
        """Prepare the account as a person does; reservations have room for the node that is added."""
        with self.stage.step(
            "An AWS account",
            "It has what the settings name, such as reservations; the CDK's bucket and roles come once per Region.",
        ):
            larger = self.file.parent / "larger" / self.file.name
            larger.parent.mkdir()
            files.copy(self.file, larger)
            set_values(larger, _one_node_more(self.settings))
            accounts.create_prerequisites(self.aws, load(larger))
            shutil.rmtree(larger.parent)
            self.stage.run("bootstrap", self.name)

    def deploy(self) -> None:
        """Create all stacks."""
        with self.stage.step(
            "Deploy",
            "A plan, then four stacks, one per lifecycle: network, file system, cluster and alarms. The real CDK and "
            "ParallelCluster make them; on AWS that takes 30 to 45 minutes.",
        ):
            self._deploy()

    def deploy_despite(self, fault: str, target: str) -> None:
        """Deploy with an injected fault, show what AWS says, clear the fault, and deploy again."""
        with self.stage.step(
            f"Deploy, while {FAULTS[fault].what}",
            f"What the CDK shows, and what diagnose makes of it. AWS describes it at {FAULTS[fault].source}",
        ):
            self.aws.inject(fault, target)
            code = self._deploy_and_kill() if fault == "killed" else self._deploy(ExitCode.DONE, ExitCode.FAILED)
            if fault == "warning":
                verdict = judge(target, accepted(self.settings.cluster_spec))
                self.stage.say(f"A warning of {target}: {verdict.explanation}")
                harmless = not verdict.stops
            else:
                harmless = fault in HARMLESS_FAULTS
            if code == ExitCode.DONE and not harmless:
                named = f"{fault}:{target}" if target else fault
                raise RehearsalError(f"nothing failed: the fault {named} concerns nothing in this deployment")
            if code == ExitCode.FAILED:
                self.stage.run("diagnose", self.name, codes=(ExitCode.FAILED,))
            self.aws.clear_faults()
        with self.stage.step("The same once more, without the fault", "The same command is the way out."):
            self._wait_for_stacks()
            self._unprotect_failed()
            self._deploy()

    def show(self) -> None:
        """Show what was created, as EC2 describes it."""
        with self.stage.step(
            "What the nodes will be", "Launch templates that ParallelCluster has made: EFA interfaces, placement group."
        ):
            ec2 = self.aws.client("ec2", self.settings.region)
            View(self.stage.console).show([_launch_templates(ec2, self.settings.cluster_spec.name)])

    def change(self) -> None:
        """Update the cluster in place, under a job whose nodes the change replaces."""
        with self.stage.step(
            "A change: one node more, and larger root volumes",
            "ParallelCluster makes it in place. Nodes that run are to be replaced (queue_update_strategy: DRAIN): a "
            "job keeps its nodes, which end with it.",
        ):
            set_values(self.file, {**_one_node_more(self.settings), **_larger_root_volume(self.settings)})
            self._deploy()

    def change_despite(self, fault: str, target: str) -> None:
        """Update the cluster while a fault lets that fail, show what is in force then, and what leads out."""
        with self.stage.step(
            f"A change, while {FAULTS[fault].what}",
            "ParallelCluster takes the update back, and cannot tell CloudFormation so: what is in force, and the way "
            f"out. See {FAULTS[fault].source}",
        ):
            self.stage.say(f"{fault}: {self.aws.inject(fault, target)}")
            set_values(self.file, _one_node_more(self.settings))
            self._deploy(ExitCode.FAILED)
            for command in ("diagnose", "status"):
                self.stage.run(command, self.name, codes=(ExitCode.FAILED,))
            self.aws.clear_faults()
        with self.stage.step("The same once more, without the fault", "The command that was printed is the way out."):
            self._deploy()

    def change_rejected(self) -> None:
        """Ask for an update that ParallelCluster rejects."""
        with self.stage.step(
            "A change that is rejected: another instance type for the head node",
            "ParallelCluster would refuse it in the middle of an update; the plan knows before anything is touched.",
        ):
            before = self.file.read_bytes()
            now = self.settings.cluster.head_node.instance_type
            other = next(each for each in OTHER_HEAD_NODE[architecture(now)] if each != now)
            set_values(self.file, {("cluster", "head_node", "instance_type"): other})
            self._deploy(ExitCode.FAILED)
            self.file.write_bytes(before)

    def destroy(self, *, stopping: bool = False) -> None:
        """Destroy everything."""
        everything = ("--all", "--unprotect", "--no-final-backup", "--sweep", "--confirm", self.settings.name)
        words = ("destroy", self.name, *everything, *(() if self.life else ("--force",)))
        with self.stage.step("Destroy everything", "Jobs and nodes, stacks and data; then a search for leftovers."):
            if stopping:
                self.aws.inject("stopping")
                self.stage.run(*words, codes=(ExitCode.FAILED,))
                self.stage.say("Instances have stopped by now. Once more:")
                self.aws.clear_faults()
            self.stage.run(*words)

    def check_leftovers(self, before: set[tuple[str, str]]) -> None:
        """Show what exists that did not exist before, and fail if AWS would not keep it."""
        with self.stage.step("What is left", "Everything that exists now, of all services, and did not before."):
            left = sorted(inventory(self.aws, self.settings.region) - before)
            unexpected = []
            for resource_type, name in left:
                reason = accounts.reason_to_stay(self.settings, resource_type, name)
                self.stage.say(f"{resource_type} {name}: {reason or 'LEFT BEHIND'}")
                if not reason:
                    unexpected.append(name)
            if unexpected:
                raise RehearsalError(f"destroyed, but left behind: {', '.join(unexpected)}")
            self.stage.say("Nothing else." if left else "Nothing.")

    def cost(self, nodes: int) -> None:
        """Say what the deployment costs on AWS, without nodes and with some."""
        queue = self.settings.cluster.queues[0]
        resource = queue.compute_resources[0]
        cost = cost_now(self.settings, {(queue.name, resource.name): nodes}, datetime.now(UTC).date())
        with self.stage.step("What it costs on AWS", f"By the {cost.source}; nodes run, and cost, only for jobs."):
            self.stage.say(f"Without nodes: ${cost.standing_usd:,.2f} an hour, ${cost.standing_usd * 24:,.0f} a day")
            self.stage.say(f"{nodes} x {resource.instance_type}: ${cost.nodes_usd:,.2f} an hour more")

    def keep(self) -> None:
        """Show how to use the emulated AWS from another shell, and wait for Ctrl-C."""
        self.stage.console.print("\nThe emulated AWS keeps running. In another shell:\n")
        for line in accounts.exports(self.aws.settings, self.settings.region):
            self.stage.say(line)
        self.stage.say(f"./ultracluster status {self.name}")
        self.stage.console.print("\nCtrl-C here stops it and discards everything in it.")
        wait_for_ctrl_c(self.aws)

    def _deploy(self, *codes: int) -> int:
        """Deploy, and return the exit code; if it is not one of these, or not 0, also say why it failed."""
        code = self.stage.run(*self._deploy_words, codes=(ExitCode.DONE, ExitCode.FAILED)).code
        if code not in (codes or (ExitCode.DONE,)):
            self.stage.run("diagnose", self.name, codes=(ExitCode.DONE, ExitCode.FAILED))
            raise RehearsalError(f"deploy ended with exit code {code}")
        return code

    @property
    def _deploy_words(self) -> tuple[str, ...]:
        return ("deploy", self.name, "--yes", "--", "--progress", "events")

    def _deploy_and_kill(self) -> int:
        """Start to deploy, kill that once the cluster is being created, and return its exit code."""
        cloudformation = self.aws.client("cloudformation", self.settings.region)
        name = self.settings.cluster_spec.name
        with self.stage.start(*self._deploy_words, output=subprocess.DEVNULL) as process:
            while process.poll() is None:
                if any(each["StackName"] == name for each in cloudformation.describe_stacks()["Stacks"]):
                    os.killpg(process.pid, signal.SIGKILL)
                    break
                time.sleep(0.1)
        self.stage.say(f"killed while the stack {name} was being created")
        return process.returncode

    def _wait_for_stacks(self) -> None:
        """Wait until nothing is in progress: CloudFormation refuses to change a stack until then."""
        cloudformation = self.aws.client("cloudformation", self.settings.region)
        while any(StackState.of(each).is_in_progress for each in cloudformation.describe_stacks()["Stacks"]):
            time.sleep(0.5)

    def _unprotect_failed(self) -> None:
        """Do what docs/guides/status.md says of a first deployment that failed: the CDK deletes no protected stack."""
        cloudformation = self.aws.client("cloudformation", self.settings.region)
        for stack in cloudformation.describe_stacks()["Stacks"]:
            if StackState.of(stack).has_nothing and stack["EnableTerminationProtection"]:
                name = stack["StackName"]
                self.stage.say(f"aws cloudformation update-termination-protection --no-enable-... --stack-name {name}")
                cloudformation.update_termination_protection(StackName=name, EnableTerminationProtection=False)


def _change(rehearsal: Rehearsal, life: Life | None, faults: Faults) -> None:
    """Change a deployment, or let faults strike its nodes and its updates."""
    if life and (of_running(faults) or of_updating(faults)):
        life.suffer(faults)
        for fault, target in of_updating(faults):
            rehearsal.change_despite(fault, target)
        return
    rehearsal.change()
    if life:
        life.lose_node()
    rehearsal.change_rejected()
    if life:
        life.see_job_again(rehearsal.settings.cluster.queues[0].root_volume_gib)


def _one_node_more(settings: Settings) -> Mapping[tuple[str | int, ...], int]:
    """Return what to set so that the first compute resource may grow by one node."""
    maximum = settings.cluster.queues[0].compute_resources[0].max_count
    return {("cluster", "queues", 0, "compute_resources", 0, "max_count"): maximum + 1}


def _larger_root_volume(settings: Settings) -> Mapping[tuple[str | int, ...], int]:
    """Return what to set so that the nodes of the first queue are replaced."""
    size = settings.cluster.queues[0].root_volume_gib or 0
    return {("cluster", "queues", 0, "root_volume_gib"): size + 100}


def _launch_templates(ec2: Any, cluster_name: str) -> Table:
    rows = []
    for template in ec2.describe_launch_templates()["LaunchTemplates"]:
        name = template["LaunchTemplateName"]
        if not name.startswith(f"{cluster_name}-"):
            continue
        versions = ec2.describe_launch_template_versions(LaunchTemplateName=name, Versions=["$Latest"])
        data = versions["LaunchTemplateVersions"][0]["LaunchTemplateData"]
        interfaces = data.get("NetworkInterfaces", [])
        kinds = [each.get("InterfaceType", "interface") for each in interfaces]
        details = [
            *sorted({each["SubnetId"] for each in interfaces if "SubnetId" in each}),
            data.get("Placement", {}).get("GroupName", ""),
            data.get("ImageId", ""),
        ]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds), reverse=True))
        rows.append((name, data.get("InstanceType", ""), counts, "\n".join(filter(None, details))))
    return Table("", columns("launch template", "type", "interfaces", "subnet, placement group, image"), rows)


@dataclass(frozen=True)
class Choices:
    """What is asked of a rehearsal.

    Attributes:
        speed: Of the emulated AWS.
        faults: Names and targets of what goes wrong, each in its turn.
        keep: Leave the emulated AWS running until Ctrl-C, and destroy nothing.
        pause: Wait for Enter before each step.
        nodes: How many the first job takes.
        train: Whether a training run follows.
    """

    speed: Speed = "fast"
    faults: tuple[tuple[str, str], ...] = ()
    keep: bool = False
    pause: bool = False
    nodes: int = 2
    train: bool = False


def check(settings: Settings, choices: Choices) -> None:
    """Raise UnusableError for nodes that cannot run here, faults that exclude each other, training without PyTorch."""
    if why := too_many(settings, choices.nodes):
        raise UnusableError(why)
    if choices.train and settings.cluster.neuron_sdk is None:
        raise UnusableError("--train: got a deployment with `cluster.neuron_sdk: null`; allowed: one with a release")
    if choices.train and not accounts.borrowed():
        raise UnusableError(f"--train needs {accounts.TRAINING.name}", "make setup-training")
    others = [name for name, target in choices.faults if not is_of_nodes(settings, name, target) and name != "stopping"]
    if len(others) > 1:
        allowed = "one of the deployment, stopping, and any number of nodes"
        raise UnusableError(f"--fault: got {' and '.join(others)}; allowed: {allowed}")


def rehearse(name: str, console: Console, log: IO[str], choices: Choices) -> None:
    """Run all steps; `log` gets all that commands print.

    Raises:
        RehearsalError: A step did not succeed.
    """
    is_stopping = any(fault == "stopping" for fault, _ in choices.faults)
    with (
        temporary_directory() as directory,
        # ParallelCluster's function would wait for nodes that do not end, up to its 15 minutes.
        accounts.account(console.print, speed=choices.speed, nodes=not is_stopping) as account,
    ):
        aws, file = account.aws, directory / f"{name}.yaml"
        files.copy(options.settings_file(name), file)
        settings = load(file)
        variables = {**aws.environment, **accounts.variables(settings.region), "ULTRACLUSTER_CONFIG": str(directory)}
        stage = Stage(console, log, choices.pause, variables)
        if remark := not_asked(settings.cluster.parallelcluster_version):
            stage.say(remark)
        life = Life(name, settings, aws, stage, choices.nodes) if account.machines else None
        rehearsal = Rehearsal(name, file, aws, stage, life)
        of_nodes = tuple(each for each in choices.faults if is_of_nodes(settings, *each))
        of_deployment = dict(each for each in choices.faults if each not in of_nodes)
        of_deployment.pop("stopping", None)
        if not life and (choices.train or of_nodes):
            asked = ["--train"] * choices.train + [f"--fault {fault}" for fault, _ in of_nodes]
            raise RehearsalError(f"{', '.join(asked)}: needs nodes, which do not run here")
        rehearsal.prepare()
        before = inventory(aws, settings.region)
        if of_deployment:
            rehearsal.deploy_despite(*next(iter(of_deployment.items())))
        else:
            rehearsal.deploy()
        rehearsal.show()
        if life:
            life.start(of_nodes)
        _change(rehearsal, life, of_nodes)
        if life:
            life.end()
            if choices.train:
                life.train()
        if choices.keep:
            rehearsal.keep()
        rehearsal.destroy(stopping=is_stopping)
        rehearsal.check_leftovers(before)
        rehearsal.cost(choices.nodes)
