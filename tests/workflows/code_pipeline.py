"""Runs the pipeline inside AWS as CodePipeline does, by its template: stage after stage, until an action fails.

Commands of CodeBuild's projects run in the checkout, CloudFormation's actions in an emulated account. Left out is what
needs npm's registry: the pipeline's update of itself, and the program that publishes assets, in whose place the
emulator's own does it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.exceptions import WaiterError

from emulator.aws import ACCOUNT, EmulatedAws
from emulator.templates import CAPABILITIES, publish_files
from tests.workflows.workflows import run
from toolchain.assembly import Assembly

STACK = "ultracluster-ci-pipeline"
OFTEN = {"Delay": 0.2, "MaxAttempts": 3000}
Action = dict[str, Any]


@dataclass
class Execution:
    """An execution of the pipeline.

    Attributes:
        aws: The account.
        region: Its Region.
        checkout: The commit, and where commands run.
        variables: Of CodeBuild.
        approve: Called for each approval.
        done: The actions that succeeded, as STAGE/ACTION.
        failed: The one that did not; empty: all did.
        log: What they printed.
    """

    aws: EmulatedAws
    region: str
    checkout: Path
    variables: Mapping[str, str]
    approve: Callable[[str], None]
    done: list[str] = field(default_factory=list)
    failed: str = ""
    log: str = ""

    def run(self) -> Execution:
        """Run from the source to the end, or until an action fails."""
        if self._commands("Build/Synth", ["./ultracluster pipeline synth"]):
            for name, action in self._actions():
                if not self._act(name, action):
                    self.failed = name
                    break
                self.done.append(name)
        else:
            self.failed = "Build/Synth"
        return self

    @property
    def _assembly(self) -> Path:
        return self.checkout / "build" / "pipeline"

    def _actions(self) -> Iterator[tuple[str, Action]]:
        """Yield the actions after Build, in their order, with the resource of their project in `project`."""
        template = json.loads((self._assembly / f"{STACK}.template.json").read_text(encoding="utf-8"))["Resources"]
        [pipeline] = [each for each in template.values() if each["Type"] == "AWS::CodePipeline::Pipeline"]
        source, build, *stages = pipeline["Properties"]["Stages"]
        assert [source["Name"], build["Name"]] == ["Source", "Build"]
        for stage in stages:
            for action in sorted(stage["Actions"], key=lambda each: int(each["RunOrder"])):
                project = action.get("Configuration", {}).get("ProjectName", {}).get("Ref")
                yield f"{stage['Name']}/{action['Name']}", {**action, "project": template.get(project)}

    def _act(self, name: str, action: Action) -> bool:
        provider, of = action["ActionTypeId"]["Provider"], action.get("Configuration", {})
        if provider == "Manual":
            self.approve(name)
            return True
        if provider == "CloudFormation":
            return self._change_stack(of)
        if name == "UpdatePipeline/SelfMutate":
            return True
        if name == "Assets/FileAssets":
            for path in self._assembly.glob("assembly-*"):
                publish_files(Assembly(path), self.aws)
            return True
        specification = json.loads(action["project"]["Properties"]["Source"]["BuildSpec"])
        return self._commands(name, specification["phases"]["build"]["commands"])

    def _commands(self, name: str, commands: list[str]) -> bool:
        files = self.checkout.with_name("runner")
        build = {"CODEBUILD_BUILD_ID": f"{name}:1", "CODEBUILD_INITIATOR": f"codepipeline/{STACK}"}
        self.log += f"--- {name}\n"
        for command in commands:
            done = run(command, self.checkout, files, **self.variables, **build)
            self.log += done.stdout + done.stderr
            if done.returncode != 0:
                return False
        return True

    def _change_stack(self, of: Mapping[str, Any]) -> bool:
        """Make a change set, or execute it.

        https://docs.aws.amazon.com/codepipeline/latest/userguide/action-reference-CloudFormation.html
        """
        cloudformation, name = self.aws.client("cloudformation", self.region), of["StackName"]
        change_set = {"StackName": name, "ChangeSetName": of["ChangeSetName"]}
        statuses = {each["StackName"]: each["StackStatus"] for each in cloudformation.describe_stacks()["Stacks"]}
        status = statuses.get(name, "REVIEW_IN_PROGRESS")
        if of["ActionMode"] == "CHANGE_SET_REPLACE":
            kind = "CREATE" if status == "REVIEW_IN_PROGRESS" else "UPDATE"
            cloudformation.delete_change_set(**change_set) if name in statuses else None
            request = {**change_set, "ChangeSetType": kind, "TemplateURL": self._uploaded(of["TemplatePath"])}
            cloudformation.create_change_set(**request, Tags=self._tags(of), Capabilities=CAPABILITIES)
            return True
        described = cloudformation.describe_change_set(**change_set)
        if described["Status"] == "FAILED":  # it has no changes
            return "didn't contain changes" in described["StatusReason"]
        cloudformation.execute_change_set(**change_set)
        waiter = "stack_create_complete" if status == "REVIEW_IN_PROGRESS" else "stack_update_complete"
        try:
            cloudformation.get_waiter(waiter).wait(StackName=name, WaiterConfig=OFTEN)
        except WaiterError as error:
            self.log += f"{error}\n"
            return False
        return True

    def _uploaded(self, path: str) -> str:
        """Return the URL of a template, for which CodePipeline has a bucket of its own."""
        bucket, key = f"cdk-hnb659fds-assets-{ACCOUNT}-{self.region}", path.partition("::")[2]
        body = (self._assembly / key).read_bytes()
        self.aws.client("s3", self.region).put_object(Bucket=bucket, Key=f"pipeline/{key}", Body=body)
        return f"https://s3.{self.region}.amazonaws.com/{bucket}/pipeline/{key}"

    def _tags(self, of: Mapping[str, Any]) -> list[dict[str, str]]:
        if "TemplateConfiguration" not in of:
            return []
        path = self._assembly / of["TemplateConfiguration"].partition("::")[2]
        tags = json.loads(path.read_text(encoding="utf-8")).get("Tags", {})
        return [{"Key": key, "Value": value} for key, value in tags.items()]
