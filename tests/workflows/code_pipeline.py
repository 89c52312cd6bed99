"""Runs the pipeline inside AWS as CodePipeline does, by its template: stage after stage, until an action fails.

Each action has the role that the template gives it, and calls an emulated account in which IAM judges it. Commands of
CodeBuild's projects run in the checkout. The emulated account has no pipeline and no projects, only their roles, which
is what UpdatePipeline deploys. Assets takes the newest cdk-assets from npm, which is not the same each day and not as
new everywhere: in its place the emulator's own program publishes. So nothing of the phase `install` is left to run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import pytest
from botocore.exceptions import ClientError, WaiterError

from emulator.aws import ACCOUNT, EmulatedAws
from emulator.templates import publish_files
from tests.workflows.sessions import Credentials, assume, client, given_to
from tests.workflows.workflows import run
from toolchain.assembly import Assembly
from toolchain.values import Evaluator, Scope

STACK = "ultracluster-ci-pipeline"
PIPELINE, PROJECT = "AWS::CodePipeline::Pipeline", "AWS::CodeBuild::Project"
OFTEN = {"Delay": 0.2, "MaxAttempts": 3000}
Action = dict[str, Any]
Template = dict[str, Any]


class Deployed(Scope):
    """The stack of the pipeline in the emulated account."""

    def __init__(self, aws: EmulatedAws, region: str) -> None:
        described = aws.client("cloudformation", region).describe_stack_resources(StackName=STACK)["StackResources"]
        self._ids = {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in described}
        self._pseudo = {"AWS::AccountId": ACCOUNT, "AWS::Partition": "aws", "AWS::Region": region}

    def ref(self, name: str) -> str:
        """Return the value of a pseudo parameter, or the name of a project."""
        return self._pseudo.get(name, name)

    def attribute(self, logical_id: str, attribute: str) -> str:
        """Return the ARN of a role."""
        assert attribute == "Arn"
        return f"arn:aws:iam::{ACCOUNT}:role/{self._ids[logical_id]}"


@dataclass
class Execution:
    """An execution of the pipeline.

    Attributes:
        aws: The account.
        region: Its Region.
        checkout: The commit, and where commands run.
        variables: Of CodeBuild, without credentials.
        approve: Called for each approval.
        done: The actions that succeeded, as STAGE/ACTION.
        failed: Those of a stage that did not; none: all did.
    """

    aws: EmulatedAws
    region: str
    checkout: Path
    variables: Mapping[str, str]
    approve: Callable[[str], None]
    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    _said: list[str] = field(default_factory=list)

    @property
    def log(self) -> str:
        """What the actions printed."""
        return "".join(self._said)

    def found(self) -> None:
        """Deploy the stack, as a person does once."""
        assert self._run(["./ultracluster pipeline synth"], {}), self.log
        assert self._deploy_roles(self.aws.client("cloudformation", self.region)), self.log

    def run(self) -> Execution:
        """Run from the source to the end, or until actions fail."""
        self._continue("Build", ())
        return self

    def retry(self, mode: Literal["FAILED_ACTIONS", "ALL_ACTIONS"]) -> Execution:
        """Retry the stage that failed, and continue.

        https://docs.aws.amazon.com/codepipeline/latest/userguide/stage-retry.html
        """
        stage = self.failed[0].partition("/")[0]
        self._said.clear()
        self._continue(stage, self.done if mode == "FAILED_ACTIONS" else ())
        return self

    @property
    def _assembly(self) -> Path:
        return self.checkout / "build" / "pipeline"

    @property
    def _template(self) -> Template:
        template: Template = json.loads((self._assembly / f"{STACK}.template.json").read_text(encoding="utf-8"))
        return template

    @property
    def _pipeline(self) -> dict[str, Any]:
        [pipeline] = [each["Properties"] for each in self._template["Resources"].values() if each["Type"] == PIPELINE]
        return dict(pipeline)

    @cached_property
    def _own_role(self) -> Credentials:
        return given_to("codepipeline.amazonaws.com", self.aws, self._value(self._pipeline["RoleArn"]))

    def _value(self, value: Any) -> Any:
        return Evaluator(Deployed(self.aws, self.region)).evaluate(value)

    def _continue(self, first: str, kept: Collection[str]) -> None:
        """Run the stages from one on, but for actions that are kept as they were."""
        kept, self.failed = tuple(kept), []
        stages = [each["Name"] for each in self._pipeline["Stages"]]
        for stage in stages[stages.index(first) :]:
            [actions] = [each["Actions"] for each in self._pipeline["Stages"] if each["Name"] == stage]
            for group in self._in_order(stage, actions):
                self._act_at_once({name: action for name, action in group.items() if name not in kept})
                if self.failed:
                    return

    def _in_order(self, stage: str, actions: list[Action]) -> Iterator[dict[str, Action]]:
        def order(action: Action) -> int:
            return int(action["RunOrder"])

        for _, group in groupby(sorted(actions, key=order), key=order):
            yield {f"{stage}/{each['Name']}": each for each in group}

    def _act_at_once(self, actions: Mapping[str, Action]) -> None:
        """Run actions of one order; if one fails the others are still run to their ends."""
        with ThreadPoolExecutor() as pool:
            results = dict(zip(actions, pool.map(self._act, actions, actions.values()), strict=True))
        self.done += [name for name, is_done in results.items() if is_done]
        self.failed = [name for name, is_done in results.items() if not is_done]

    def _act(self, name: str, action: Action) -> bool:
        role_arn, of = self._value(action["RoleArn"]), self._value(action.get("Configuration", {}))
        session = assume(client(self.aws, "sts", self.region, self._own_role), self.aws, role_arn)
        match action["ActionTypeId"]["Provider"]:
            case "Manual":
                self.approve(name)
                return True
            case "CloudFormation":
                cloudformation = client(self.aws, "cloudformation", self.region, session)
                return self._change_stack(cloudformation, of, self._tags(of), self._text(of))
            case "CodeBuild":
                return self._build(name, of["ProjectName"], session)
            case other:
                raise AssertionError(f"{other} is not known here")

    def _build(self, name: str, project: str, session: Credentials) -> bool:
        """Run the commands of a project in its role, if the action's role may start it."""
        with pytest.raises(ClientError, match="ResourceNotFound"):  # the emulated account has no projects
            client(self.aws, "codebuild", self.region, session).start_build(projectName=project)
        properties = self._template["Resources"][project]["Properties"]
        role = given_to("codebuild.amazonaws.com", self.aws, self._value(properties["ServiceRole"]))
        self._said.append(f"--- {name}\n")
        if name == "UpdatePipeline/SelfMutate":
            return self._deploy_roles(client(self.aws, "cloudformation", self.region, self._of_cdk("deploy", role)))
        if name == "Assets/FileAssets":
            self._of_cdk("file-publishing", role)
            for path in self._assembly.glob("assembly-*"):
                publish_files(Assembly(path), self.aws)
            return True
        phases = json.loads(properties["Source"]["BuildSpec"])["phases"]
        assert "commands" not in phases["install"]
        build = {"CODEBUILD_BUILD_ID": f"{name}:1", "CODEBUILD_INITIATOR": f"codepipeline/{STACK}"}
        return self._run(phases["build"]["commands"], {**build, **role})

    def _of_cdk(self, purpose: str, role: Credentials) -> Credentials:
        """Return a session of a role of `cdk bootstrap`, for a project whose own role may assume it."""
        qualifier = self._template["Parameters"]["BootstrapVersion"]["Default"].split("/")[2]
        role_arn = f"arn:aws:iam::{ACCOUNT}:role/cdk-{qualifier}-{purpose}-role-{ACCOUNT}-{self.region}"
        return assume(client(self.aws, "sts", self.region, role), self.aws, role_arn)

    def _run(self, commands: list[str], variables: Mapping[str, str]) -> bool:
        for command in commands:
            done = run(command, self.checkout, self.checkout.with_name("builder"), **self.variables, **variables)
            self._said.append(done.stdout + done.stderr)
            if done.returncode != 0:
                return False
        return True

    def _deploy_roles(self, cloudformation: Any) -> bool:
        of = {"StackName": STACK, "ChangeSetName": "cdk-deploy-change-set", "Capabilities": "CAPABILITY_NAMED_IAM"}
        text = json.dumps(_without_projects(self._template))
        made = self._change_stack(cloudformation, {**of, "ActionMode": "CHANGE_SET_REPLACE"}, [], text)
        return made and self._change_stack(cloudformation, {**of, "ActionMode": "CHANGE_SET_EXECUTE"}, [], "")

    def _change_stack(self, cloudformation: Any, of: Mapping[str, Any], tags: list[dict[str, str]], text: str) -> bool:
        """Make a change set, or execute it.

        https://docs.aws.amazon.com/codepipeline/latest/userguide/action-reference-CloudFormation.html
        """
        name = of["StackName"]
        change_set = {"StackName": name, "ChangeSetName": of["ChangeSetName"]}
        try:
            status = cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"]
        except ClientError:
            status = ""
        is_new = status in ("", "REVIEW_IN_PROGRESS")
        if of["ActionMode"] == "CHANGE_SET_REPLACE":
            if status:
                cloudformation.delete_change_set(**change_set)
            role = {"RoleARN": of["RoleArn"]} if "RoleArn" in of else {}
            cloudformation.create_change_set(
                **change_set,
                **role,
                ChangeSetType="CREATE" if is_new else "UPDATE",
                TemplateURL=self._uploaded(name, text),
                Tags=tags,
                Capabilities=of["Capabilities"].split(","),
            )
            return True
        try:
            described = cloudformation.describe_change_set(**change_set)
            if described["Status"] == "FAILED":  # it has no changes
                return "didn't contain changes" in described["StatusReason"]
            cloudformation.execute_change_set(**change_set)
            waiter = cloudformation.get_waiter("stack_create_complete" if is_new else "stack_update_complete")
            waiter.wait(StackName=name, WaiterConfig=OFTEN)
        except (ClientError, WaiterError) as error:
            self._said.append(f"{name}: {error}\n")
            return False
        return True

    def _uploaded(self, name: str, text: str) -> str:
        """Return the URL of a template, for which CodePipeline has a bucket of its own."""
        bucket, key = f"cdk-hnb659fds-assets-{ACCOUNT}-{self.region}", f"pipeline/{name}"
        self.aws.client("s3", self.region).put_object(Bucket=bucket, Key=key, Body=text.encode())
        return f"https://s3.{self.region}.amazonaws.com/{bucket}/{key}"

    def _text(self, of: Mapping[str, Any]) -> str:
        """Return the template that an action has; empty: it has none."""
        return self._file(of["TemplatePath"]) if "TemplatePath" in of else ""

    def _tags(self, of: Mapping[str, Any]) -> list[dict[str, str]]:
        if "TemplateConfiguration" not in of:
            return []
        tags = json.loads(self._file(of["TemplateConfiguration"])).get("Tags", {})
        return [{"Key": key, "Value": value} for key, value in tags.items()]

    def _file(self, path: str) -> str:
        """Return the text of a file, which is named as ARTIFACT::PATH."""
        return (self._assembly / path.partition("::")[2]).read_text(encoding="utf-8")


def _without_projects(template: Template) -> Template:
    """Return a template without the pipeline and its projects; what refers to these has their logical ids."""
    resources = template["Resources"]
    projects = {key for key, each in resources.items() if each["Type"] == PROJECT}

    def named(value: Any) -> Any:
        match value:
            case {"Ref": str(name)} if name in projects:
                return name
            case {"Fn::GetAtt": [str(name), "Arn"]} if name in projects:
                return f"arn:aws:codebuild:*:{ACCOUNT}:project/{name}"
            case dict():
                return {key: named(each) for key, each in value.items()}
            case list():
                return [named(each) for each in value]
        return value

    kept = {key: named(each) for key, each in resources.items() if each["Type"] not in (PIPELINE, PROJECT)}
    return {**template, "Resources": kept}
