"""Templates that this project's stacks have nothing to do with: deployed, changed, and gone without a trace."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.aws import ACCOUNT, EmulatedAws
from emulator.cdk import CommandLine
from emulator.inventory import inventory
from tests.emulator.stacks import REGION, Stacks

SAMPLES = Path(__file__).with_name("samples")

Deploy = Callable[..., None]


@pytest.fixture
def stacks(aws: EmulatedAws) -> Stacks:
    return Stacks(aws)


@pytest.fixture
def deploy(stacks: Stacks) -> Deploy:
    """Return a function that creates the stack of a sample, or updates it when it is there."""

    def deployed(name: str, **parameters: str) -> None:
        exists = any(stack["StackName"] == name for stack in stacks.client.describe_stacks()["Stacks"])
        action = stacks.client.update_stack if exists else stacks.client.create_stack
        action(
            StackName=name,
            TemplateBody=(SAMPLES / f"{name}.yaml").read_text(encoding="utf-8"),
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
            Capabilities=["CAPABILITY_IAM"],
        )
        assert stacks.status(name) == ("UPDATE_COMPLETE" if exists else "CREATE_COMPLETE"), stacks.events(name)

    return deployed


def messages(aws: EmulatedAws, queue_url: str) -> list[Any]:
    sqs = aws.client("sqs", REGION)
    received = sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10).get("Messages", [])
    for message in received:
        sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
    return [json.loads(message["Body"]) for message in received]


def test_a_network_of_two_zones_with_a_bastion(aws: EmulatedAws, stacks: Stacks, deploy: Deploy) -> None:
    ec2 = aws.client("ec2", REGION)
    before = inventory(aws, REGION)
    deploy("bastion", AllowedCidr="203.0.113.0/24")
    found = stacks.resources("bastion")

    subnets = ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [found["Vpc"]]}])["Subnets"]
    assert {subnet["CidrBlock"]: subnet["AvailabilityZone"] for subnet in subnets} == {
        "10.20.0.0/24": "us-east-1a",
        "10.20.1.0/24": "us-east-1b",
        "10.20.128.0/24": "us-east-1a",
        "10.20.129.0/24": "us-east-1b",
    }
    assert stacks.output("bastion", "PrivateSubnetIds") == f"{found['PrivateSubnet1']},{found['PrivateSubnet2']}"

    def bastion() -> Any:
        return ec2.describe_instances(InstanceIds=[found["Bastion"]])["Reservations"][0]["Instances"][0]

    def open_to(group: str) -> Any:
        [described] = ec2.describe_security_groups(GroupIds=[found[group]])["SecurityGroups"]
        [rule] = described["IpPermissions"]
        return [each["CidrIp"] for each in rule["IpRanges"]] or [each["GroupId"] for each in rule["UserIdGroupPairs"]]

    assert (bastion()["State"]["Name"], bastion()["SubnetId"]) == ("running", found["PublicSubnet1"])
    assert bastion()["PublicIpAddress"] == stacks.output("bastion", "BastionAddress")
    assert open_to("BastionSecurityGroup") == ["203.0.113.0/24"]
    assert open_to("InsideSecurityGroup") == [found["BastionSecurityGroup"]]
    assert "NatGateway" not in found

    deploy("bastion", AllowedCidr="198.51.100.0/24", NatGateways="yes", BastionType="t3.small")
    updated = stacks.resources("bastion")
    assert {key: updated[key] for key in found} == found
    assert open_to("BastionSecurityGroup") == ["198.51.100.0/24"]
    assert bastion()["InstanceType"] == "t3.small"
    [table] = ec2.describe_route_tables(RouteTableIds=[found["PrivateRoutes"]])["RouteTables"]
    assert updated["NatGateway"] in [route.get("NatGatewayId") for route in table["Routes"]]

    stacks.delete("bastion")
    assert inventory(aws, REGION) == before


def test_a_network_that_its_own_rules_refuse(stacks: Stacks, deploy: Deploy) -> None:
    with pytest.raises(stacks.client.exceptions.ClientError, match="SSH must not be open to the world"):
        deploy("bastion", AllowedCidr="0.0.0.0/0")
    with pytest.raises(stacks.client.exceptions.ClientError, match="must be a range of addresses such as"):
        deploy("bastion", AllowedCidr="anywhere")


def test_a_bucket_that_tells_a_queue_of_uploads(aws: EmulatedAws, stacks: Stacks, deploy: Deploy) -> None:
    s3 = aws.client("s3", REGION)
    before = inventory(aws, REGION)
    deploy("upload")
    bucket, queue = stacks.output("upload", "Bucket"), stacks.output("upload", "QueueUrl")
    messages(aws, queue)  # S3 tests a notification when it is set.

    def told_of(*keys: str) -> list[str]:
        for key in keys:
            s3.put_object(Bucket=bucket, Key=key, Body=b"")
        records = [record for message in messages(aws, queue) for record in message["Records"]]
        return [record["s3"]["object"]["key"] for record in records]

    assert told_of("a.csv", "a.txt") == ["a.csv"]
    deploy("upload", Suffix=".txt", KeepDays="7")
    messages(aws, queue)
    assert told_of("b.csv", "b.txt") == ["b.txt"]
    [rule] = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    assert rule["Expiration"] == {"Days": 7}

    stacks.delete("upload")
    assert inventory(aws, REGION) - before == {("AWS::S3::Bucket", bucket)}


@pytest.mark.slow
def test_the_cdk_s_own_sample(
    aws: EmulatedAws, stacks: Stacks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With the home that `CommandLine` gives it, the app would unpack the CDK anew, which takes longer than all else.
    monkeypatch.setenv("JSII_RUNTIME_PACKAGE_CACHE_ROOT", str(Path.home() / ".cache/aws/jsii/package-cache"))
    directory = tmp_path / "sample"
    directory.mkdir()
    cdk = CommandLine(aws)

    def run(*arguments: str) -> str:
        lines: list[str] = []
        code = cdk.run(*arguments, report=lines.append, directory=directory)
        assert code == 0, "\n".join(lines)
        return "\n".join(lines)

    run("init", "sample-app", "--language", "python", "--generate-only")
    said: list[str] = []
    assert cdk.bootstrap(REGION, said.append) == 0, said
    before = inventory(aws, REGION)

    assert "SampleStack" in run("deploy", "--require-approval", "never")
    queue = next(each for key, each in stacks.resources("SampleStack").items() if key.startswith("SampleQueue"))
    topic = next(each for key, each in stacks.resources("SampleStack").items() if key.startswith("SampleTopic"))
    aws.client("sns", REGION).publish(TopicArn=topic, Message="hello")
    [message] = messages(aws, queue)
    assert message["Message"] == "hello"

    source = directory / "sample/sample_stack.py"
    source.write_text(source.read_text().replace("Duration.seconds(300)", "Duration.seconds(60)"))
    assert "UPDATE_COMPLETE" in run("deploy", "--require-approval", "never")
    attributes = aws.client("sqs", REGION).get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    assert attributes["VisibilityTimeout"] == "60"
    assert attributes["QueueArn"].split(":")[4] == ACCOUNT
    assert "(no changes)" in run("deploy", "--app", "cdk.out")

    run("destroy", "--app", "cdk.out", "--force")
    assert inventory(aws, REGION) == before
