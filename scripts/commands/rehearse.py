"""Rehearse a deployment on this machine, without an AWS account: create it, change it, destroy it.

The real CDK command line deploys the unchanged templates into an emulated AWS; the cluster is made by the real
ParallelCluster. Exit code 0: everything went as it should; 1: something did not.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

import yaml

from emulator.faults import FAULTS
from scripts import environments
from ultracluster.domain.validator_warnings import accepted, judge
from ultracluster.domain.validators import VALIDATORS

if TYPE_CHECKING:
    from rich.console import Console

    from config.settings import Settings
    from emulator.aws import EmulatedAws
    from emulator.cdk import CommandLine

CONFIG = Path(__file__).parents[2] / "config"
LOG = Path("build/rehearsal.log")
EVENT_COLUMNS = 5
PLAIN_WIDTH = 120
OTHER_HEAD_NODE = ("c6i.8xlarge", "c6i.4xlarge")
HARMLESS_FAULTS = ("throttling",)
"""A deployment succeeds despite them."""
Edit = Callable[[dict[str, Any]], object]


class RehearsalError(RuntimeError):
    """Something did not go as it should; the message says what."""


def raise_max_count(settings: dict[str, Any]) -> None:
    """Let the first compute resource grow by one node."""
    settings["cluster"]["queues"][0]["compute_resources"][0]["max_count"] += 1


def change_head_node(settings: dict[str, Any]) -> None:
    """Give the head node another instance type, which ParallelCluster refuses."""
    head_node = settings["cluster"]["head_node"]
    head_node["instance_type"] = next(each for each in OTHER_HEAD_NODE if each != head_node["instance_type"])


def give_up(settings: dict[str, Any]) -> None:
    """Take all protection off, as README tells who wants to destroy everything."""
    settings["termination_protection"] = []
    settings["storage"]["retain"] = False


class Deployment:
    """The settings of one deployment, and its assemblies after changes of them, synthesized in the background."""

    def __init__(self, environment: str, directory: Path) -> None:
        from config.settings import load

        self._directory = directory
        self._raw = yaml.safe_load((CONFIG / f"{environment}.yaml").read_text(encoding="utf-8"))
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._assemblies: dict[str, Future[Path]] = {}
        self.settings: Settings = load(CONFIG / f"{environment}.yaml")

    def add(self, name: str, *edits: Edit) -> Settings:
        """Start to synthesize the deployment with edited settings, under a name, and return the settings."""
        from config.settings import load

        raw = deepcopy(self._raw)
        for edit in edits:
            edit(raw)
        path = self._directory / f"{name}.yaml"
        path.write_text(yaml.safe_dump(raw), encoding="utf-8")
        settings = load(path)
        self._assemblies[name] = self._pool.submit(self._synthesize, path)
        return settings

    def assembly(self, name: str) -> str:
        """Return the directory of an assembly, once it is there."""
        return str(self._assemblies[name].result())

    def close(self) -> None:
        """Forget what has not been begun."""
        self._pool.shutdown(cancel_futures=True)

    def _synthesize(self, path: Path) -> Path:
        from toolchain.synthesis import synthesize

        directory = path.with_suffix(".out")
        synthesize(str(path.with_suffix("")), directory)
        return directory


class Rehearsal:
    """One run, step by step, told to a person."""

    def __init__(
        self, deployment: Deployment, aws: EmulatedAws, cdk: CommandLine, console: Console, log: IO[str], *, step: bool
    ) -> None:
        self._deployment = deployment
        self._settings = deployment.settings
        self._cluster_name = self._settings.cluster_spec.name
        self._aws = aws
        self._cdk = cdk
        self._console = console
        self._log = log
        self._failing = False
        self._step = step

    def prepare(self, largest: Settings) -> None:
        """Bring the account into the state that README asks for.

        Args:
            largest: The settings with the most nodes, for which reservations must have room.
        """
        from emulator import stand_ins
        from toolchain import bootstrap

        with self._told("An account that has what the settings name, and the CDK's bootstrap stack"):
            stand_ins.create(self._aws, largest)
            arguments = bootstrap.arguments(self._settings.bootstrap)
            self._succeed(self._cdk.bootstrap(self._settings.region, self._relay, arguments))

    def deploy(self) -> None:
        """Create all stacks."""
        with self._told("cdk deploy --all"):
            self._succeed(self._run_cdk("created", "deploy", "--all"))

    def deploy_in_spite_of(self, fault: str, target: str) -> None:
        """Deploy while something goes wrong, look at what AWS says, mend it, and deploy again."""
        with self._told(f"cdk deploy --all, while {FAULTS[fault].what}"):
            began = datetime.now(UTC)
            self._aws.inject(fault, target)
            code = self._kill_midway() if fault == "killed" else self._run_cdk("created", "deploy", "--all")
            self._say(f"The CDK's exit code is {code}. AWS describes this at {FAULTS[fault].source}")
            if fault == "warning":
                verdict = judge(target, accepted(self._settings.cluster_spec))
                self._say(f"A warning of {target}: {verdict.explanation}")
                harmless = not verdict.stops
            else:
                harmless = fault in HARMLESS_FAULTS
            if code == 0 and not harmless:
                named = f"{fault}:{target}" if target else fault
                raise RehearsalError(f"nothing failed: this deployment has nothing that the fault {named} strikes")
            self._explain(began)
            self._aws.mend()
        with self._told("The same once more, after the cause is mended"):
            self._wait_for_stacks()
            self._unprotect_failed()
            self._succeed(self._run_cdk("created", "deploy", "--all"))

    def show(self) -> None:
        """Show what was created, as the APIs tell it."""
        from emulator.tables import tables

        with self._told("What exists now, as AWS's APIs tell it"):
            for table in tables(self._aws, self._settings):
                self._console.print(table)

    def change(self) -> None:
        """Update the cluster in place."""
        with self._told("A change: one node more (max_count), cdk deploy"):
            self._succeed(self._run_cdk("raised", "deploy", "--all"))

    def change_in_vain(self) -> None:
        """Update the cluster in a way that ParallelCluster refuses."""
        with self._told("A change that is refused: another instance type for the head node, cdk deploy"):
            code = self._run_cdk("refused", "deploy", "--all")
            if code == 0:
                raise RehearsalError("a change of the head node's instance type was not refused")
            self._say("Refused by ParallelCluster's own update check, and rolled back; the cluster runs on unchanged.")

    def destroy(self, *, stopping: bool = False) -> None:
        """Destroy everything in the way that README describes, and look for leftovers."""
        with self._told("Give it all up: protection off, as README says, then cdk destroy --all"):
            protected = [self._settings.stack_name(part) for part in ("network", "storage")]
            self._succeed(self._run_cdk("given up", "deploy", *protected))
            if stopping:
                self._aws.inject("stopping")
                if self._run_cdk("given up", "destroy", "--all", "--force") == 0:
                    raise RehearsalError("the cluster stack was deleted although its instances were not gone")
                self._say("Instances have stopped by now. Once more:")
                self._aws.mend()
            self._succeed(self._run_cdk("given up", "destroy", "--all", "--force"))

    def look_for_leftovers(self, before: set[tuple[str, str]]) -> None:
        """Tell what exists that did not exist before, and whether it is AWS's custom to leave it."""
        from emulator.inventory import inventory, reason_to_stay

        with self._told("What is left, of all services"):
            left = sorted(inventory(self._aws, self._settings.region) - before)
            unexpected = []
            for resource_type, name in left:
                reason = reason_to_stay(self._settings, resource_type, name)
                self._say(f"{resource_type} {name}: {reason or 'LEFT BEHIND'}")
                if not reason:
                    unexpected.append(name)
            if unexpected:
                raise RehearsalError(f"destroyed, but left behind: {', '.join(unexpected)}")
            self._say("Nothing else." if left else "Nothing.")

    def keep(self) -> None:
        """Tell how to talk to the emulated AWS, and wait until the person has had enough."""
        from emulator.shell import exports, wait_for_ctrl_c

        self._console.print("\nThe emulated AWS runs on. In another shell:\n")
        for line in exports(self._aws.settings, self._settings.region):
            self._say(line)
        self._console.print("\nCtrl-C here ends it, and all that is in it.")
        wait_for_ctrl_c()

    # Helpers

    def _run_cdk(self, assembly: str, *arguments: str) -> int:
        directory = self._deployment.assembly(assembly)
        self._failing = False
        return self._cdk.run(*arguments, "--app", directory, *self._consent(arguments[0]), report=self._relay)

    def _relay(self, line: str) -> None:
        """Log what the CDK says; tell the person what came of stacks and resources, and all about a failure."""
        self._log.write(f"{line}\n")
        event = [part.strip() for part in line.split("|")]
        if line.startswith("❌"):
            self._failing = True
        if len(event) > EVENT_COLUMNS:
            status, resource_type, what = event[3:6]
            if status.endswith(("COMPLETE", "COMPLET", "FAILED")):  # the CDK cuts long ones
                self._say(f"{status:15}  {resource_type:37}  {what}")
        elif self._failing or line.startswith("✅"):
            self._say(line)

    def _consent(self, command: str) -> list[str]:
        return ["--require-approval", "never"] if command == "deploy" else []

    def _kill_midway(self) -> int:
        """Start to deploy, and kill the CDK once the cluster is being created."""
        cloudformation = self._aws.client("cloudformation", self._settings.region)

        def cluster_has_begun() -> bool:
            return any(each["StackName"] == self._cluster_name for each in cloudformation.describe_stacks()["Stacks"])

        directory = self._deployment.assembly("created")
        code = self._cdk.run_until(cluster_has_begun, "deploy", "--all", "--app", directory, *self._consent("deploy"))
        self._say(f"killed while the stack {self._cluster_name} was being created")
        return code

    def _explain(self, since: datetime) -> None:
        """List what failed, in all stacks: the CDK knows its own, and what its provider says of the cluster is cut."""
        from emulator.failures import failures

        for failure in failures(self._aws.client("cloudformation", self._settings.region), since):
            self._say(f"{failure.stack_name}: {failure.status} {failure.logical_id}: {failure.reason}")

    def _wait_for_stacks(self) -> None:
        """Wait until nothing is in progress: CloudFormation refuses to change a stack until then."""
        cloudformation = self._aws.client("cloudformation", self._settings.region)
        while any(_is_busy(each["StackStatus"]) for each in cloudformation.describe_stacks()["Stacks"]):
            time.sleep(0.5)

    def _unprotect_failed(self) -> None:
        """Do what README says of a first deployment that failed: the CDK cannot delete a protected stack."""
        cloudformation = self._aws.client("cloudformation", self._settings.region)
        for stack in cloudformation.describe_stacks()["Stacks"]:
            if stack["StackStatus"] == "ROLLBACK_COMPLETE" and stack["EnableTerminationProtection"]:
                name = stack["StackName"]
                self._say(f"aws cloudformation update-termination-protection --no-enable-... --stack-name {name}")
                cloudformation.update_termination_protection(StackName=name, EnableTerminationProtection=False)

    def _succeed(self, code: int) -> None:
        if code != 0:
            raise RehearsalError(f"the CDK failed, with exit code {code}")

    def _say(self, line: str) -> None:
        self._console.print(f"  {line}", style="dim", markup=False, soft_wrap=True)

    @contextmanager
    def _told(self, title: str) -> Iterator[None]:
        """Announce a step, and tell how long it took."""
        if self._step:
            self._console.input(f"\n[bold]{title}[/bold]  (Enter) ")
        else:
            self._console.print(f"\n[bold]{title}[/bold]")
        began = time.monotonic()
        yield
        self._console.print(f"[green]done[/green] in {time.monotonic() - began:.1f} s")


def _is_busy(status: str) -> bool:
    return status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS"  # that one waits for a change set


def rehearse(arguments: argparse.Namespace, console: Console) -> None:
    """Run all steps.

    Raises:
        RehearsalError: Something did not go as it should.
    """
    from emulator.aws import EmulatedAws
    from emulator.cdk import CommandLine
    from emulator.inventory import inventory

    fault, target = arguments.fault or ("", "")
    with (
        TemporaryDirectory() as directory,
        closing(Deployment(arguments.environment, Path(directory))) as deployment,
        EmulatedAws(speed=arguments.speed) as aws,
        closing(CommandLine(aws)) as cdk,
        LOG.open("w", encoding="utf-8") as log,
    ):
        deployment.add("created")
        largest = deployment.add("raised", raise_max_count)
        deployment.add("refused", raise_max_count, change_head_node)
        deployment.add("given up", raise_max_count, give_up)
        rehearsal = Rehearsal(deployment, aws, cdk, console, log, step=arguments.step)
        rehearsal.prepare(largest)
        before = inventory(aws, deployment.settings.region)
        if fault and fault != "stopping":
            rehearsal.deploy_in_spite_of(fault, target)
        else:
            rehearsal.deploy()
        rehearsal.show()
        rehearsal.change()
        rehearsal.change_in_vain()
        if arguments.keep:
            rehearsal.keep()
        rehearsal.destroy(stopping=fault == "stopping")
        rehearsal.look_for_leftovers(before)


def _fault_help() -> Iterator[str]:
    for name, fault in FAULTS.items():
        yield f"  {name}{':...' if fault.target else '':4} {fault.what}"
        if fault.target:
            yield f"      ... is {fault.target}"


def _fault(text: str) -> tuple[str, str]:
    name, _, target = text.partition(":")
    if name not in FAULTS:
        raise argparse.ArgumentTypeError(f"got {name!r}; there is {', '.join(FAULTS)}")
    if (FAULTS[name].target is None) != (target == ""):
        raise argparse.ArgumentTypeError(f"{name} takes {FAULTS[name].target or 'nothing'} after a colon")
    if name == "warning" and target not in VALIDATORS:
        raise argparse.ArgumentTypeError(f"got {target!r}; allowed: {', '.join(VALIDATORS)}")
    return name, target


def main() -> int:
    """Rehearse what the command line names, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts rehearse",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="faults:\n" + "\n".join(_fault_help()),
    )
    environments.add_argument(parser, CONFIG)
    parser.add_argument("--speed", choices=("fast", "real"), default="fast", help="real: as slow as AWS")
    parser.add_argument("--fault", type=_fault, metavar="NAME", help="let this go wrong, then mend it; see below")
    parser.add_argument("--keep", action="store_true", help="do not destroy: leave the emulated AWS running")
    parser.add_argument("--step", action="store_true", help="wait for Enter before each step")
    arguments = parser.parse_args()
    if arguments.step and not sys.stdin.isatty():
        parser.error("--step waits for Enter, and there is no terminal")
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    LOG.parent.mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: clean up
    began = time.monotonic()
    try:
        rehearse(arguments, console)
    except KeyboardInterrupt:
        return 130
    except RehearsalError as error:
        console.print(f"\n[bold red]FAILED[/bold red]: {error}. All that the CDK said is in {LOG}")
        return 1
    console.print(f"\nAll in {time.monotonic() - began:.0f} s.")
    return 0
