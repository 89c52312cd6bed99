"""What EC2, Systems Manager and CloudWatch Logs answer about nodes: each row a fact of AWS's documentation."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws
from tests.emulator.account import REGION, Account

PROJECT = Path(__file__).parents[2]
EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_"
GUIDE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/"
SSM = "https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_"
LOGS = "https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_"
ERRORS = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html"
TYPE = "trn1.32xlarge"
GROUP = "/aws/parallelcluster/c"
NOW = int(time.time() * 1000) - 60_000
"""Milliseconds; events of more than 14 days ago are not taken."""


class Region:
    """One Region of an emulated account, as a client that this project did not write sees it."""

    def __init__(self, aws: EmulatedAws) -> None:
        self.aws = aws
        self.account = Account(aws)
        self.ec2, self.ssm, self.logs = (aws.client(each, REGION) for each in ("ec2", "ssm", "logs"))

    def launch(self, least: int = 1, most: int = 1, **request: Any) -> list[str]:
        return self.account.launch(InstanceType=TYPE, **{"MinCount": least, "MaxCount": most, **request})

    def node(self, **request: Any) -> str:
        [instance_id] = self.launch(**request)
        return instance_id

    def state(self, instance_id: str) -> tuple[str, str]:
        [instance] = self.account.instances(instance_id)
        return instance["State"]["Name"], instance.get("StateReason", {}).get("Code", "")

    def status(self, name: str = "", *values: str, everything: bool = False) -> list[str]:
        filters = [{"Name": name, "Values": list(values)}] if name else []
        answer = self.ec2.describe_instance_status(Filters=filters, IncludeAllInstances=everything)
        return sorted(each["InstanceId"] for each in answer["InstanceStatuses"])

    def template(self) -> dict[str, Any]:
        subnet = self.account.subnet(self.account.vpc()).ref
        image = self.ec2.register_image(Name="image", RootDeviceName="/dev/sda1")["ImageId"]
        interfaces = [{"DeviceIndex": 0, "SubnetId": subnet}]
        data = {"ImageId": image, "InstanceType": TYPE, "NetworkInterfaces": interfaces}
        self.ec2.create_launch_template(LaunchTemplateName="c-q-r", LaunchTemplateData=data)
        return {"LaunchTemplateName": "c-q-r", "Version": "$Latest"}

    def fleet(self, template: dict[str, Any], total: int, least: int) -> tuple[int, list[str]]:
        """Ask as ParallelCluster's node daemon does; return how many instances there are, and the errors."""
        answer = self.ec2.create_fleet(
            Type="instant",
            LaunchTemplateConfigs=[{"LaunchTemplateSpecification": template, "Overrides": [{"InstanceType": TYPE}]}],
            TargetCapacitySpecification={"TotalTargetCapacity": total, "DefaultTargetCapacityType": "on-demand"},
            OnDemandOptions={"SingleInstanceType": True, "SingleAvailabilityZone": True, "MinTargetCapacity": least},
        )
        ids = [each for group in answer["Instances"] for each in group["InstanceIds"]]
        assert len(self.status()) == len(ids)
        return len(ids), [each["ErrorCode"] for each in answer["Errors"]]

    def send(self, *instance_ids: str, script: str = "true", **request: Any) -> str:
        """Run a command to its end, and return its id."""
        sent = self.ssm.send_command(
            **({"InstanceIds": list(instance_ids)} if instance_ids else {}),
            DocumentName="AWS-RunShellScript",
            Parameters={"commands": [script]},
            **request,
        )
        command_id = str(sent["Command"]["CommandId"])
        while self.command(command_id)["Status"] in ("Pending", "InProgress"):
            time.sleep(0.02)
        return command_id

    def command(self, command_id: str) -> dict[str, Any]:
        command: dict[str, Any] = self.ssm.list_commands(CommandId=command_id)["Commands"][0]
        return command

    def invocation(self, command_id: str) -> dict[str, Any]:
        [invocation] = self.ssm.list_command_invocations(CommandId=command_id, Details=True)["CommandInvocations"]
        return dict(invocation)

    def log(self, stream: str, *messages: str, start: int = 0) -> None:
        events = [{"timestamp": NOW + start + n, "message": each} for n, each in enumerate(messages)]
        self.logs.create_log_stream(logGroupName=GROUP, logStreamName=stream)
        self.logs.put_log_events(logGroupName=GROUP, logStreamName=stream, logEvents=events)

    def found(self, **request: Any) -> list[str]:
        pages = self.logs.get_paginator("filter_log_events").paginate(logGroupName=GROUP, **request)
        return [event["message"] for page in pages for event in page["events"]]


def code(call: Callable[..., object], *arguments: Any, **options: Any) -> str:
    """Return the code of the error that a call ends with."""
    with pytest.raises(ClientError) as refusal:
        call(*arguments, **options)
    return str(refusal.value.response["Error"]["Code"])


# EC2


def launch_what_there_is(region: Region) -> object:
    region.aws.inject("capacity", f"{TYPE}/2")
    return len(region.launch(1, 4)), code(region.launch, 1, 1), len(region.account.launch(InstanceType="c6i.large"))


def launch_all_or_none(region: Region) -> object:
    region.aws.inject("capacity", f"{TYPE}/1")
    return code(region.launch, 2, 2), region.status(), len(region.launch(1, 1))


def launch_a_whole_fleet(region: Region) -> object:
    return region.fleet(region.template(), 3, 3)


def launch_no_part_of_a_fleet(region: Region) -> object:
    template = region.template()
    region.aws.inject("capacity", f"{TYPE}/1")
    return [region.fleet(template, 2, 2), region.fleet(template, 2, 1)]


def terminate_twice(region: Region) -> object:
    node = region.node()
    states = [
        (each["PreviousState"]["Name"], each["CurrentState"]["Name"])
        for _ in range(2)
        for each in region.ec2.terminate_instances(InstanceIds=[node])["TerminatingInstances"]
    ]
    return [*states, region.state(node)]


def terminate_none_of_a_wrong_list(region: Region) -> object:
    node = region.node()
    refusal = code(region.ec2.terminate_instances, InstanceIds=[node, "i-0123456789abcdef0"])
    return refusal, region.state(node)[0]


def reboot_what_is_gone(region: Region) -> object:
    node = region.node()
    region.ec2.terminate_instances(InstanceIds=[node])
    region.ec2.reboot_instances(InstanceIds=[node])
    return region.state(node)[0]


def start_what_is_gone(region: Region) -> object:
    node = region.node()
    region.ec2.terminate_instances(InstanceIds=[node])
    return code(region.ec2.start_instances, InstanceIds=[node]), code(region.ec2.stop_instances, InstanceIds=[node])


def stop_and_start(region: Region) -> object:
    node = region.node()
    before = region.account.instances(node)[0]["PrivateIpAddress"]
    region.ec2.stop_instances(InstanceIds=[node])
    stopped = region.state(node)
    region.ec2.start_instances(InstanceIds=[node])
    return stopped, region.state(node), region.account.instances(node)[0]["PrivateIpAddress"] == before


def shut_down_inside(region: Region) -> object:
    nodes = [region.node(InstanceInitiatedShutdownBehavior=each) for each in ("terminate", "stop")]
    for node in nodes:
        region.aws.afflict(REGION, node, "shutdown")
    return [region.state(node) for node in nodes]


def describe_what_runs(region: Region) -> object:
    running, gone = region.node(), region.node()
    region.ec2.terminate_instances(InstanceIds=[gone])
    return region.status() == [running], region.status(everything=True) == sorted([running, gone])


def fail_a_status_check(region: Region) -> object:
    sick, _ = region.node(), region.node()
    region.aws.afflict(REGION, sick, "impaired:system:300")
    [found] = region.ec2.describe_instance_status(InstanceIds=[sick])["InstanceStatuses"]
    [detail] = found["SystemStatus"]["Details"]
    age = time.time() - detail["ImpairedSince"].timestamp()
    impaired = [region.status(f"{check}-status.status", "impaired") for check in ("system", "instance")]
    return impaired == [[sick], []], detail["Status"], found["InstanceStatus"]["Status"], round(age, -2)


def schedule_an_event(region: Region) -> object:
    old, _ = region.node(), region.node()
    region.aws.afflict(REGION, old, "instance-retirement")
    [found] = region.ec2.describe_instance_status(Filters=[{"Name": "event.code", "Values": ["instance-retirement"]}])[
        "InstanceStatuses"
    ]
    return found["InstanceId"] == old, found["Events"][0]["Code"], region.status("event.code", "system-reboot")


def refuse_an_unknown_filter(region: Region) -> object:
    return code(region.status, "no-such-filter", "x")


def print_nothing(region: Region) -> object:
    node = region.node()
    return "Output" in region.ec2.get_console_output(InstanceId=node, Latest=True)


# Systems Manager


def run_on_nodes_by_tag(region: Region) -> object:
    region.aws.set_shell("cat")
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "parallelcluster:node-type", "Value": "Compute"}]}]
    nodes = region.launch(2, 2, TagSpecifications=tags)
    region.node()
    command = region.command(region.send(Targets=[{"Key": "tag:parallelcluster:node-type", "Values": ["Compute"]}]))
    return sorted(command["InstanceIds"]) == sorted(nodes), command["Status"], command["CompletedCount"]


def run_what_fails(region: Region) -> object:
    region.aws.set_shell("bash")
    command_id = region.send(region.node(), script="echo out; exit 3")
    command, invocation = region.command(command_id), region.invocation(command_id)
    plugin = invocation["CommandPlugins"][0]
    return command["Status"], command["ErrorCount"], plugin["ResponseCode"], plugin["Output"]


def run_without_an_agent(region: Region) -> object:
    node = region.node()
    command_id = region.send(node)
    return region.invocation(command_id)["Status"], region.invocation(command_id)["StatusDetails"]


def cut_long_output(region: Region) -> object:
    region.aws.set_shell("head -c 30000 /dev/zero | tr '\\0' x")
    return len(region.invocation(region.send(region.node()))["CommandPlugins"][0]["Output"])


def tell_who_is_connected(region: Region) -> object:
    node, gone = region.node(), region.node()
    region.ec2.terminate_instances(InstanceIds=[gone])

    def statuses() -> list[str]:
        return [region.ssm.get_connection_status(Target=each)["Status"] for each in (node, gone)]

    before = statuses()
    region.aws.set_shell("true")
    return before, statuses()


def list_managed_nodes(region: Region) -> object:
    node, _ = region.node(), region.node()
    before = region.ssm.describe_instance_information()["InstanceInformationList"]
    region.aws.set_shell("true")
    wanted = [{"Key": "InstanceIds", "Values": [node]}]
    [listed] = region.ssm.describe_instance_information(Filters=wanted)["InstanceInformationList"]
    [instance] = region.account.instances(node)
    assert (listed["InstanceId"], listed["IPAddress"]) == (node, instance["PrivateIpAddress"])
    assert listed["ComputerName"] == instance["PrivateDnsName"]
    return before, listed["PingStatus"], listed["PlatformType"], listed["ResourceType"]


def start_a_session(region: Region) -> object:
    node = region.node()
    refusal = code(region.ssm.start_session, Target=node)
    region.aws.set_shell("true")
    session = region.ssm.start_session(Target=node)
    ended = region.ssm.terminate_session(SessionId=session["SessionId"])
    return refusal, ended["SessionId"] == session["SessionId"], {"TokenValue", "StreamUrl"} < session.keys()


# CloudWatch Logs


def read_several_streams(region: Region) -> object:
    region.logs.create_log_group(logGroupName=GROUP)
    region.log("ip-10-0-0-4.i-1.slurmctld", "a1", "a2 ERROR")
    region.log("ip-10-0-0-5.i-2.slurmd", "b1", "b2 ERROR", start=10)
    return [
        region.found(),
        region.found(logStreamNamePrefix="ip-10-0-0-5"),
        region.found(logStreamNames=["ip-10-0-0-4.i-1.slurmctld"], filterPattern="ERROR"),
        region.found(startTime=NOW + 1, endTime=NOW + 12),
    ]


def read_a_stream_to_its_end(region: Region) -> object:
    region.logs.create_log_group(logGroupName=GROUP)
    region.log("s", "one", "two")
    stream = {"logGroupName": GROUP, "logStreamName": "s"}
    first = region.logs.get_log_events(**stream, startFromHead=True)
    again = region.logs.get_log_events(**stream, startFromHead=True, nextToken=first["nextForwardToken"])
    [last] = region.logs.get_log_events(**stream, limit=1)["events"]
    is_same = again["nextForwardToken"] == first["nextForwardToken"]
    return [each["message"] for each in first["events"]], again["events"], is_same, last["message"]


def list_streams_by_their_last_event(region: Region) -> object:
    region.logs.create_log_group(logGroupName=GROUP)
    region.log("late", "x", start=500)
    region.log("early", "x")
    listed = region.logs.describe_log_streams(logGroupName=GROUP, orderBy="LastEventTime", descending=True)
    return [each["logStreamName"] for each in listed["logStreams"]]


def write_where_nothing_is(region: Region) -> object:
    region.logs.create_log_group(logGroupName=GROUP)
    events = [{"timestamp": int(time.time() * 1000), "message": "x"}]
    refusal = code(region.logs.put_log_events, logGroupName=GROUP, logStreamName="none", logEvents=events)
    region.log("s", "x")
    return refusal, code(region.logs.create_log_stream, logGroupName=GROUP, logStreamName="s")


@dataclass(frozen=True)
class Fact:
    """A fact of an API.

    Attributes:
        source: Where AWS documents it.
        calls: What shows it.
        expected: What the calls show.
    """

    source: str
    calls: Callable[[Region], object]
    expected: object


SHORT = "InsufficientInstanceCapacity"
USER, INSIDE = "Client.UserInitiatedShutdown", "Client.InstanceInitiatedShutdown"

FACTS = [
    Fact(f"{EC2}RunInstances.html", launch_what_there_is, (2, SHORT, 1)),
    Fact(f"{EC2}RunInstances.html", launch_all_or_none, (SHORT, [], 1)),
    Fact(f"{EC2}CreateFleet.html", launch_a_whole_fleet, (3, [])),
    Fact(f"{EC2}OnDemandOptionsRequest.html", launch_no_part_of_a_fleet, [(0, [SHORT]), (1, [SHORT])]),
    Fact(
        f"{EC2}TerminateInstances.html",
        terminate_twice,
        [("running", "shutting-down"), ("terminated", "terminated"), ("terminated", USER)],
    ),
    Fact(f"{EC2}TerminateInstances.html", terminate_none_of_a_wrong_list, ("InvalidInstanceID.NotFound", "running")),
    Fact(f"{EC2}RebootInstances.html", reboot_what_is_gone, "terminated"),
    Fact(ERRORS, start_what_is_gone, ("IncorrectInstanceState", "IncorrectInstanceState")),
    Fact(f"{GUIDE}Stop_Start.html", stop_and_start, (("stopped", USER), ("running", ""), True)),
    Fact(f"{EC2}StateReason.html", shut_down_inside, [("terminated", INSIDE), ("stopped", INSIDE)]),
    Fact(f"{EC2}DescribeInstanceStatus.html", describe_what_runs, (True, True)),
    Fact(f"{EC2}InstanceStatusDetails.html", fail_a_status_check, (True, "failed", "ok", 300)),
    Fact(f"{EC2}InstanceStatusEvent.html", schedule_an_event, (True, "instance-retirement", [])),
    Fact(f"{EC2}Filter.html", refuse_an_unknown_filter, "InvalidParameterValue"),
    Fact(f"{EC2}GetConsoleOutput.html", print_nothing, False),
    Fact(f"{SSM}Target.html", run_on_nodes_by_tag, (True, "Success", 2)),
    Fact(f"{SSM}CommandPlugin.html", run_what_fails, ("Failed", 1, 3, "out\n")),
    Fact(f"{SSM}CommandInvocation.html", run_without_an_agent, ("Failed", "Undeliverable")),
    Fact(f"{SSM}GetCommandInvocation.html", cut_long_output, 24_000),
    Fact(
        f"{SSM}GetConnectionStatus.html",
        tell_who_is_connected,
        (["notconnected", "notconnected"], ["connected", "notconnected"]),
    ),
    Fact(f"{SSM}DescribeInstanceInformation.html", list_managed_nodes, ([], "Online", "Linux", "EC2Instance")),
    Fact(f"{SSM}StartSession.html", start_a_session, ("TargetNotConnected", True, True)),
    Fact(
        f"{LOGS}FilterLogEvents.html",
        read_several_streams,
        [["a1", "a2 ERROR", "b1", "b2 ERROR"], ["b1", "b2 ERROR"], ["a2 ERROR"], ["a2 ERROR", "b1", "b2 ERROR"]],
    ),
    Fact(f"{LOGS}GetLogEvents.html", read_a_stream_to_its_end, (["one", "two"], [], True, "two")),
    Fact(f"{LOGS}DescribeLogStreams.html", list_streams_by_their_last_event, ["late", "early"]),
    Fact(
        f"{LOGS}PutLogEvents.html",
        write_where_nothing_is,
        ("ResourceNotFoundException", "ResourceAlreadyExistsException"),
    ),
]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.calls.__name__)
def test_aws_documents_it(fact: Fact, aws: EmulatedAws) -> None:
    assert fact.calls(Region(aws)) == fact.expected, fact.source


@pytest.mark.slow
@pytest.mark.validation
def test_the_aws_cli_sees_the_same(aws: EmulatedAws) -> None:
    region = Region(aws)
    node = region.node()

    def run(*words: str) -> str:
        command = [f"{PROJECT}/.venv-pcluster/bin/aws", *words, "--region", REGION]
        environment = {**aws.environment, "AWS_DEFAULT_OUTPUT": "json"}
        return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout

    aws.set_shell("bash")
    [listed] = json.loads(run("ssm", "describe-instance-information"))["InstanceInformationList"]
    assert (listed["InstanceId"], listed["PingStatus"]) == (node, "Online")
    region.logs.create_log_group(logGroupName=GROUP)
    script = json.dumps({"commands": ["echo from a node"]})
    logged = f"CloudWatchOutputEnabled=true,CloudWatchLogGroupName={GROUP}"
    sent = run(
        *("ssm", "send-command", "--document-name", "AWS-RunShellScript", "--parameters", script),
        *("--targets", f"Key=InstanceIds,Values={node}", "--cloud-watch-output-config", logged),
    )
    command_id = json.loads(sent)["Command"]["CommandId"]
    assert command_id == json.loads(run("ssm", "list-commands"))["Commands"][0]["CommandId"]
    while not (events := json.loads(run("logs", "filter-log-events", "--log-group-name", GROUP))["events"]):
        pass
    assert [each["message"] for each in events] == ["from a node\n"]
    run("ec2", "terminate-instances", "--instance-ids", node)
    run("ec2", "wait", "instance-terminated", "--instance-ids", node)
    assert json.loads(run("ssm", "describe-instance-information"))["InstanceInformationList"] == []
    assert json.loads(run("ec2", "describe-instance-status"))["InstanceStatuses"] == []
