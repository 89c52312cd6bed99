"""A rehearsal, step by step: what the real CDK and ParallelCluster make of a configuration in an emulated AWS."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Literal

import yaml
from rich.console import Console
from rich.table import Table

from config.settings import Settings, load
from emulator.aws import EmulatedAws
from emulator.cdk import CommandLine
from emulator.faults import FAULTS
from emulator.inventory import inventory
from scripts import options, screen
from scripts.emulate import create_prerequisites, exports, reason_to_stay, wait_for_ctrl_c
from toolchain import bootstrap
from toolchain.synthesis import synthesize
from ultracluster.domain.validator_warnings import accepted, judge

EVENT_COLUMNS = 5
OTHER_HEAD_NODE = ("c6i.8xlarge", "c6i.4xlarge")
HARMLESS_FAULTS = ("throttling",)
"""A deployment succeeds despite them."""
REASON = "ResourceStatusReason"
Edit = Callable[[dict[str, Any]], object]
Speed = Literal["fast", "real"]


class RehearsalError(RuntimeError):
    """A step did not succeed; the message says what."""


def raise_max_count(settings: dict[str, Any]) -> None:
    """Let the first compute resource grow by one node."""
    settings["cluster"]["queues"][0]["compute_resources"][0]["max_count"] += 1


def change_head_node(settings: dict[str, Any]) -> None:
    """Give the head node another instance type, which ParallelCluster refuses."""
    head_node = settings["cluster"]["head_node"]
    head_node["instance_type"] = next(each for each in OTHER_HEAD_NODE if each != head_node["instance_type"])


def remove_protection(settings: dict[str, Any]) -> None:
    """Remove all protection, as `destroy --all --unprotect` does."""
    settings["termination_protection"] = []
    settings["storage"]["retain"] = False


EDITS: Mapping[str, Sequence[Edit]] = {
    "created": (),
    "raised": (raise_max_count,),
    "refused": (raise_max_count, change_head_node),
    "unprotected": (raise_max_count, remove_protection),
}
"""What is changed in the settings for each assembly."""


def edit(environment: str, directory: Path) -> dict[str, Path]:
    """Write the edited settings, and return the files by the names of their assemblies."""
    raw = options.settings_of(environment).model_dump(mode="json")
    paths = {}
    for name, edits in EDITS.items():
        edited = deepcopy(raw)
        for change in edits:
            change(edited)
        paths[name] = directory / f"{name}.yaml"
        paths[name].write_text(yaml.safe_dump(edited), encoding="utf-8")
    return paths


def _synthesize(path: Path) -> Path:
    directory = path.with_suffix(".out")
    synthesize(str(path.with_suffix("")), directory)
    return directory


@dataclass
class Rehearsal:
    """One run, step by step, shown to a person.

    `waits`: for Enter before each step.
    """

    settings: Settings
    assemblies: Mapping[str, Future[Path]]
    aws: EmulatedAws
    cdk: CommandLine
    console: Console
    log: IO[str]
    waits: bool
    _failing: bool = False

    def prepare(self, largest: Settings) -> None:
        """Prepare the account as a person does; reservations have room for the largest settings."""
        with self._step("An account that has what the settings name, and the CDK's bootstrap stack"):
            create_prerequisites(self.aws, largest)
            arguments = bootstrap.arguments(self.settings.bootstrap)
            self._succeed(self.cdk.bootstrap(self.settings.region, self._relay, arguments))

    def deploy(self) -> None:
        """Create all stacks."""
        with self._step("cdk deploy --all"):
            self._succeed(self._run_cdk("created", "deploy", "--all"))

    def deploy_despite(self, fault: str, target: str) -> None:
        """Deploy with an injected fault, show what AWS says, clear the fault, and deploy again."""
        with self._step(f"cdk deploy --all, while {FAULTS[fault].what}"):
            started = datetime.now(UTC)
            self.aws.inject(fault, target)
            code = self._kill_midway() if fault == "killed" else self._run_cdk("created", "deploy", "--all")
            self._say(f"The CDK's exit code is {code}. AWS describes this at {FAULTS[fault].source}")
            if fault == "warning":
                verdict = judge(target, accepted(self.settings.cluster_spec))
                self._say(f"A warning of {target}: {verdict.explanation}")
                harmless = not verdict.stops
            else:
                harmless = fault in HARMLESS_FAULTS
            if code == 0 and not harmless:
                named = f"{fault}:{target}" if target else fault
                raise RehearsalError(f"nothing failed: the fault {named} concerns nothing in this deployment")
            self._explain(started)
            self.aws.clear_faults()
        with self._step("The same once more, without the fault"):
            self._wait_for_stacks()
            self._unprotect_failed()
            self._succeed(self._run_cdk("created", "deploy", "--all"))

    def show(self) -> None:
        """Show what was created, as the APIs describe it."""
        with self._step("What exists now, as AWS's APIs describe it"):
            stacks = self.aws.client("cloudformation", self.settings.region).describe_stacks()["Stacks"]
            ec2 = self.aws.client("ec2", self.settings.region)
            self.console.print(_launch_templates(ec2, self.settings.cluster_spec.name))
            self.console.print()
            self.console.print(_outputs(sorted(stacks, key=lambda stack: stack["CreationTime"])))

    def change(self) -> None:
        """Update the cluster in place."""
        with self._step("A change: one node more (max_count), cdk deploy"):
            self._succeed(self._run_cdk("raised", "deploy", "--all"))

    def change_rejected(self) -> None:
        """Update the cluster in a way that ParallelCluster rejects."""
        with self._step("A change that is rejected: another instance type for the head node, cdk deploy"):
            code = self._run_cdk("refused", "deploy", "--all")
            if code == 0:
                raise RehearsalError("a change of the head node's instance type was not rejected")
            self._say("Rejected by ParallelCluster's own update check, and rolled back; the cluster is unchanged.")

    def destroy(self, *, stopping: bool = False) -> None:
        """Destroy everything."""
        with self._step("Destroy everything: protection off, then cdk destroy --all"):
            protected = [self.settings.stack_name(part) for part in ("network", "storage")]
            self._succeed(self._run_cdk("unprotected", "deploy", *protected))
            if stopping:
                self.aws.inject("stopping")
                if self._run_cdk("unprotected", "destroy", "--all", "--force") == 0:
                    raise RehearsalError("the cluster stack was deleted although its instances were not gone")
                self._say("Instances have stopped by now. Once more:")
                self.aws.clear_faults()
            self._succeed(self._run_cdk("unprotected", "destroy", "--all", "--force"))

    def check_leftovers(self, before: set[tuple[str, str]]) -> None:
        """Show what exists that did not exist before, and fail if AWS would not keep it."""
        with self._step("What is left, of all services"):
            left = sorted(inventory(self.aws, self.settings.region) - before)
            unexpected = []
            for resource_type, name in left:
                reason = reason_to_stay(self.settings, resource_type, name)
                self._say(f"{resource_type} {name}: {reason or 'LEFT BEHIND'}")
                if not reason:
                    unexpected.append(name)
            if unexpected:
                raise RehearsalError(f"destroyed, but left behind: {', '.join(unexpected)}")
            self._say("Nothing else." if left else "Nothing.")

    def keep(self) -> None:
        """Show how to use the emulated AWS from another shell, and wait for Ctrl-C."""
        self.console.print("\nThe emulated AWS keeps running. In another shell:\n")
        for line in exports(self.aws.settings, self.settings.region):
            self._say(line)
        self.console.print("\nCtrl-C here stops it and discards everything in it.")
        wait_for_ctrl_c()

    def _run_cdk(self, assembly: str, *arguments: str) -> int:
        directory = str(self.assemblies[assembly].result())
        self._failing = False
        consent = ["--require-approval", "never"] if arguments[0] == "deploy" else []
        return self.cdk.run(*arguments, "--app", directory, *consent, report=self._relay)

    def _relay(self, line: str) -> None:
        """Log what the CDK says; show the results of stacks and resources, and all about a failure."""
        self.log.write(f"{line}\n")
        event = [part.strip() for part in line.split("|")]
        if line.startswith("❌"):
            self._failing = True
        if len(event) > EVENT_COLUMNS:
            status, resource_type, what = event[3:6]
            if status.endswith("COMPLET"):  # the CDK cuts long ones
                status += "E"
            if status.endswith(("COMPLETE", "FAILED")):
                self._say(f"{status:24}  {resource_type:37}  {what}")
        elif self._failing or line.startswith("✅"):
            self._say(line)

    def _kill_midway(self) -> int:
        """Start to deploy, and kill the CDK once the cluster is being created."""
        cloudformation = self.aws.client("cloudformation", self.settings.region)

        def cluster_has_started() -> bool:
            return any(
                each["StackName"] == self.settings.cluster_spec.name
                for each in cloudformation.describe_stacks()["Stacks"]
            )

        directory = str(self.assemblies["created"].result())
        arguments = ("deploy", "--all", "--app", directory, "--require-approval", "never")
        code = self.cdk.run_until(cluster_has_started, *arguments)
        self._say(f"killed while the stack {self.settings.cluster_spec.name} was being created")
        return code

    def _explain(self, since: datetime) -> None:
        """Show what failed, in all stacks: the CDK shows its own only, and cuts the provider's message."""
        for event in failures(self.aws.client("cloudformation", self.settings.region), since):
            status, logical_id, reason = (event.get(key, "") for key in ("ResourceStatus", "LogicalResourceId", REASON))
            self._say(f"{event['StackName']}: {status} {logical_id}: {reason}")

    def _wait_for_stacks(self) -> None:
        """Wait until nothing is in progress: CloudFormation refuses to change a stack until then."""
        cloudformation = self.aws.client("cloudformation", self.settings.region)
        while any(_is_busy(each["StackStatus"]) for each in cloudformation.describe_stacks()["Stacks"]):
            time.sleep(0.5)

    def _unprotect_failed(self) -> None:
        """Do what docs/guides/status.md says of a first deployment that failed: the CDK deletes no protected stack."""
        cloudformation = self.aws.client("cloudformation", self.settings.region)
        for stack in cloudformation.describe_stacks()["Stacks"]:
            if stack["StackStatus"] == "ROLLBACK_COMPLETE" and stack["EnableTerminationProtection"]:
                name = stack["StackName"]
                self._say(f"aws cloudformation update-termination-protection --no-enable-... --stack-name {name}")
                cloudformation.update_termination_protection(StackName=name, EnableTerminationProtection=False)

    def _succeed(self, code: int) -> None:
        if code != 0:
            raise RehearsalError(f"the CDK failed, with exit code {code}")

    def _say(self, line: str) -> None:
        self.console.print(f"  {line}", style="dim", markup=False, soft_wrap=True)

    @contextmanager
    def _step(self, title: str) -> Iterator[None]:
        if self.waits:
            self.console.input(f"\n[bold]{title}[/bold]  (Enter) ")
        else:
            self.console.print(f"\n[bold]{title}[/bold]")
        started = time.monotonic()
        yield
        self.console.print(f"[green]done[/green] in {time.monotonic() - started:.1f} s")


def failures(cloudformation: Any, since: datetime) -> list[dict[str, Any]]:
    """Return the events of failures in a Region since a time, oldest first; of deleted and nested stacks, too."""
    events = [
        event
        for stacks in cloudformation.get_paginator("list_stacks").paginate()
        for stack in stacks["StackSummaries"]
        for page in cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack["StackId"])
        for event in page["StackEvents"]
        if event["Timestamp"] >= since and event["ResourceStatus"].endswith("_FAILED")
    ]
    causes = [event for event in events if not event.get(REASON, "").endswith(" cancelled")]
    return sorted(causes, key=lambda event: event["Timestamp"])


def _launch_templates(ec2: Any, cluster_name: str) -> Table:
    table = screen.table("launch template", "type", "interfaces", "subnet, placement group, image")
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
        table.add_row(
            name,
            data.get("InstanceType", ""),
            ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds), reverse=True)),
            "\n".join(filter(None, details)),
        )
    return table


def _outputs(stacks: list[dict[str, Any]]) -> Table:
    table = screen.table("stack", "output", "value")
    for stack in stacks:
        outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
        if "Summary" not in outputs:  # not of this app
            continue
        for key, value in outputs.items():
            if key != "Summary" and not key.startswith(("ExportsOutput", "PublishOutput")):
                table.add_row(stack["StackName"], key, value)
    return table


def _is_busy(status: str) -> bool:
    return status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS"  # that one waits for a change set


@contextmanager
def _background() -> Iterator[ThreadPoolExecutor]:
    """Yield a thread; at the end what it has not started is cancelled."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        try:
            yield pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def rehearse(
    environment: str,
    console: Console,
    log: IO[str],
    *,
    speed: Speed,
    fault: tuple[str, str] | None,
    keep: bool,
    step: bool,
) -> None:
    """Run all steps.

    `log` gets all that the CDK says; `fault` is name and target of what goes wrong at first. With `keep` the emulated
    AWS runs until Ctrl-C, and nothing is destroyed; with `step` each step waits for Enter.

    Raises:
        RehearsalError: A step did not succeed.
    """
    name, target = fault or ("", "")
    with (
        TemporaryDirectory() as directory,
        _background() as pool,
        EmulatedAws(speed=speed) as aws,
        closing(CommandLine(aws)) as cdk,
    ):
        paths = edit(environment, Path(directory))
        edited = {each: load(path) for each, path in paths.items()}  # now: all must keep the rules
        settings = edited["created"]
        assemblies = {each: pool.submit(_synthesize, path) for each, path in paths.items()}
        rehearsal = Rehearsal(settings, assemblies, aws, cdk, console, log, waits=step)
        rehearsal.prepare(edited["raised"])
        before = inventory(aws, settings.region)
        if name and name != "stopping":
            rehearsal.deploy_despite(name, target)
        else:
            rehearsal.deploy()
        rehearsal.show()
        rehearsal.change()
        rehearsal.change_rejected()
        if keep:
            rehearsal.keep()
        rehearsal.destroy(stopping=name == "stopping")
        rehearsal.check_leftovers(before)
