"""Each fault leads where it leads on AWS, and what failed succeeds once the cause is mended."""

import re
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws
from emulator.cdk import CommandLine
from emulator.failures import Failure, failures
from emulator.faults import FAULTS
from scripts import emulated
from scripts.commands.rehearse import Deployment
from tests.emulator.stacks import REGION, Stacks, code_and_message, parameter

ADDRESS = {"Type": "AWS::EC2::EIP", "Properties": {"Domain": "vpc"}}
GROUP = {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}}


@pytest.fixture
def stacks(aws: EmulatedAws) -> Stacks:
    return Stacks(aws)


@pytest.fixture
def impatient(aws: EmulatedAws) -> Callable[[str], Any]:
    """Return a function that makes a client which never tries again."""

    def client(service: str) -> Any:
        session = boto3.Session("testing", "testing")
        once = Config(retries={"total_max_attempts": 1})
        return session.client(service, REGION, endpoint_url=aws.endpoint, config=once)

    return client


@pytest.mark.parametrize("target", ["A", "AWS::SSM::Parameter"])
def test_the_creation_of_a_resource_fails(target: str, aws: EmulatedAws, stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/stack-failure-options.html
    template = {"Group": GROUP, "A": parameter(DependsOn="Group")}
    aws.inject("resource", target)
    stacks.create("s", template)
    assert stacks.status("s") == "ROLLBACK_COMPLETE"
    [reason] = stacks.reasons("s", "CREATE_FAILED")
    assert "HandlerErrorCode: InternalFailure" in reason
    assert "The following resource(s) failed to create: [A]. Rollback requested by user." in (
        stacks.reasons("s", "ROLLBACK_IN_PROGRESS")
    )
    assert aws.client("ec2", REGION).describe_placement_groups()["PlacementGroups"] == []
    aws.clear_faults()
    stacks.delete("s")
    stacks.create("s", template)
    assert stacks.status("s") == "CREATE_COMPLETE"


def test_the_quota_of_addresses_is_used_up(aws: EmulatedAws, stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
    aws.inject("quota")
    stacks.create("s", {"Address": ADDRESS})
    assert stacks.status("s") == "ROLLBACK_COMPLETE"
    [reason] = stacks.reasons("s", "CREATE_FAILED")
    assert "The maximum number of addresses has been reached." in reason
    assert "HandlerErrorCode: ServiceLimitExceeded" in reason
    aws.clear_faults()
    stacks.delete("s")
    stacks.create("s", {"Address": ADDRESS})
    assert stacks.status("s") == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    ("service", "action", "refusal"),
    [
        # https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
        ("ec2", "describe_vpcs", ("RequestLimitExceeded", "Request limit exceeded.")),
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/CommonErrors.html
        ("cloudformation", "describe_stacks", ("Throttling", "Rate exceeded")),
    ],
)
def test_the_first_call_is_throttled(
    service: str, action: str, refusal: tuple[str, str], aws: EmulatedAws, impatient: Callable[[str], Any]
) -> None:
    client = impatient(service)
    aws.inject("throttling")
    with pytest.raises(ClientError) as refused:
        getattr(client, action)()
    assert code_and_message(refused.value) == refusal
    getattr(client, action)()


def test_who_tries_again_gets_by_throttling(aws: EmulatedAws, stacks: Stacks) -> None:
    aws.inject("throttling")
    stacks.create("s", {"Address": ADDRESS, "Group": GROUP})
    assert stacks.status("s") == "CREATE_COMPLETE"


def test_a_zone_does_not_offer_a_type(aws: EmulatedAws) -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html
    ec2 = aws.client("ec2", REGION)

    def offering(location_type: str) -> set[str]:
        wanted = [{"Name": "instance-type", "Values": ["c6i.xlarge"]}]
        offers = ec2.describe_instance_type_offerings(LocationType=location_type, Filters=wanted)
        return {offer["Location"] for offer in offers["InstanceTypeOfferings"]}

    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    names = {zone["ZoneId"]: zone["ZoneName"] for zone in zones}
    image_id = ec2.register_image(Name="image", RootDeviceName="/dev/xvda")["ImageId"]
    vpc_id = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc_id, CidrBlock="10.0.0.0/24", AvailabilityZoneId="use1-az4")["Subnet"]
    once = {"MinCount": 1, "MaxCount": 1}
    launch = {"ImageId": image_id, "InstanceType": "c6i.xlarge", "SubnetId": subnet["SubnetId"], **once}
    ids, by_name = offering("availability-zone-id"), offering("availability-zone")
    aws.inject("offering", "use1-az4/c6i.xlarge")
    assert ids - offering("availability-zone-id") == {"use1-az4"}
    assert by_name - offering("availability-zone") == {names["use1-az4"]}
    with pytest.raises(ClientError) as refused:
        ec2.run_instances(**launch)
    assert refused.value.response["Error"]["Code"] == "Unsupported"
    aws.clear_faults()
    ec2.run_instances(**launch)


def test_instances_are_still_stopping(aws: EmulatedAws, stacks: Stacks) -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/delete-placement-group.html
    stack_id = stacks.create("s", {"Group": GROUP, "A": parameter()})
    aws.inject("stopping")
    stacks.delete("s")
    assert stacks.status("s") == "DELETE_FAILED"
    group, stack = stacks.reasons("s", "DELETE_FAILED")
    assert "is in use and may not be deleted." in group
    assert stack == "The following resource(s) failed to delete: [Group]. "
    assert stacks.values() == {}, "the rest is gone"
    aws.clear_faults()
    stacks.delete("s")
    assert stacks.status(stack_id) == "DELETE_COMPLETE"


def test_what_failed_is_found_in_all_stacks_and_nothing_else(aws: EmulatedAws, stacks: Stacks) -> None:
    stacks.create("old", {"Bad": parameter(Name="aws/refused")})
    aws.inject("resource", "A")
    since = datetime.now(UTC)
    stacks.create("new", {"A": parameter(), "B": parameter(DependsOn="A")})
    stacks.delete("new")
    found = failures(stacks.client, since)
    assert [(each.stack_name, each.logical_id, each.status) for each in found] == [("new", "A", "CREATE_FAILED")]


# Faults that need a cluster: one deployment, which fails in one way after the other before it succeeds.


@dataclass(frozen=True)
class Attempt:
    """What came of one deployment of the cluster's stack.

    Attributes:
        code: The CDK's exit code.
        said: What the CDK said.
        failed: What failed, in all stacks.
        statuses: Statuses of the stacks that are there afterwards, by name.
        seconds: How long it took.
    """

    code: int
    said: str
    failed: list[Failure]
    statuses: dict[str, str]
    seconds: float

    def reason(self, stack_name: str, logical_id: str) -> str:
        """Return why a resource failed; its logical id may be a pattern."""
        [reason] = [
            each.reason
            for each in self.failed
            if each.stack_name == stack_name and re.fullmatch(logical_id, each.logical_id)
        ]
        return reason


@pytest.fixture(scope="module")
def attempts(rehearsal_server: EmulatedAws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Attempt]]:
    """Attempts to deploy dev by the fault that was in force; the last one is called `none`."""
    rehearsal_server.reset()
    deployment = Deployment("dev", tmp_path_factory.mktemp("dev"))
    try:
        deployment.add("created")
        region = deployment.settings.region
        emulated.create_prerequisites(rehearsal_server, deployment.settings)
        cdk = CommandLine(rehearsal_server)
        assert cdk.bootstrap(region) == 0
        cloudformation = rehearsal_server.client("cloudformation", region)
        app = ["--all", "--app", deployment.assembly("created"), "--require-approval", "never"]
        found = {}
        for fault in ("capacity", "head-node", "provider", "warning", "killed", "none"):
            if fault in FAULTS:
                rehearsal_server.inject(fault, "CustomAmiTagValidator" if fault == "warning" else "")
            began = datetime.now(UTC)
            said: list[str] = []
            if fault == "killed":
                code = cdk.run_until(
                    lambda: status(cloudformation, "dev-cluster") == "CREATE_IN_PROGRESS", "deploy", *app
                )
                while status(cloudformation, "dev-cluster") == "CREATE_IN_PROGRESS":
                    time.sleep(0.1)
            else:
                code = cdk.run("deploy", *app, report=said.append)
            seconds = (datetime.now(UTC) - began).total_seconds()
            rehearsal_server.clear_faults()
            stacks = cloudformation.describe_stacks()["Stacks"]
            statuses = {each["StackName"]: each["StackStatus"] for each in stacks}
            found[fault] = Attempt(code, "\n".join(said), failures(cloudformation, began), statuses, seconds)
        yield found
    finally:
        deployment.close()
        rehearsal_server.reset()


def status(cloudformation: Any, name: str) -> str | None:
    return {each["StackName"]: each["StackStatus"] for each in cloudformation.describe_stacks()["Stacks"]}.get(name)


@pytest.mark.slow
@pytest.mark.validation
class TestCluster:
    @pytest.mark.parametrize("fault", ["capacity", "head-node", "provider", "warning"])
    def test_it_is_rolled_back(self, fault: str, attempts: dict[str, Attempt]) -> None:
        attempt = attempts[fault]
        assert attempt.code == 1
        assert attempt.statuses["dev-cluster"] == "ROLLBACK_COMPLETE"
        assert "dev" not in attempt.statuses, "the provider deletes the cluster"
        assert attempt.statuses["dev-network"] == attempt.statuses["dev-storage"] == "CREATE_COMPLETE"

    def test_no_capacity_for_the_head_node(self, attempts: dict[str, Attempt]) -> None:
        # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html
        reason = attempts["capacity"].reason("dev", "HeadNode")
        assert (
            "We currently do not have sufficient c6i.xlarge capacity in the Availability Zone you requested" in reason
        )
        assert "ResourceCreationFailure" in attempts["capacity"].said

    def test_a_script_of_the_head_node_fails(self, attempts: dict[str, Attempt]) -> None:
        # https://docs.aws.amazon.com/parallelcluster/latest/ug/troubleshooting-v3-cluster-deployment.html
        reason = attempts["head-node"].reason("dev", "HeadNodeWaitCondition.*")
        assert reason.startswith("WaitCondition received failed message: ")
        assert "Failed to execute OnNodeConfigured script" in reason
        assert "OnNodeConfiguredExecutionFailure" in attempts["head-node"].said

    def test_the_provider_runs_out_of_time(self, attempts: dict[str, Attempt]) -> None:
        # https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
        attempt = attempts["provider"]
        assert "Message returned: Execution timed out" in attempt.reason("dev-cluster", "Cluster.*")
        assert attempt.seconds < 60, "of which the function would take all on AWS"

    def test_a_warning_that_nobody_accepted(self, attempts: dict[str, Attempt]) -> None:
        # https://docs.aws.amazon.com/parallelcluster/latest/ug/pcluster.create-cluster-v3.html
        assert '"type": "CustomAmiTagValidator"' in attempts["warning"].reason("dev-cluster", "Cluster.*")

    def test_the_cdk_is_killed_and_cloudformation_goes_on(self, attempts: dict[str, Attempt]) -> None:
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
        attempt = attempts["killed"]
        assert (attempt.code, attempt.failed) == (-signal.SIGKILL, [])
        assert attempt.statuses["dev-cluster"] == attempt.statuses["dev"] == "CREATE_COMPLETE"

    def test_the_last_attempt_finds_all_done(self, attempts: dict[str, Attempt]) -> None:
        attempt = attempts["none"]
        assert (attempt.code, attempt.failed) == (0, [])
        assert "dev-cluster (no changes)" in attempt.said
