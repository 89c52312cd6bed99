"""What is left of a deployment, beside what is left of others with similar names."""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from config.settings import load
from rehearsal.aws import EmulatedAws
from rehearsal.inventory import inventory
from rehearsal.resources import make_bucket
from scripts.deployment import Deployment
from scripts.operations import destruction, leftovers
from scripts.operations.clock import Clock
from scripts.operations.command import CONFIG
from scripts.operations.leftovers_by_name import parallelcluster_bucket
from scripts.operations.leftovers_model import PREFIX, Found
from scripts.operations.leftovers_removal import remove
from tests.operations.destroying import FastClock
from tests.rehearsal.account import statement, trust

REGION = "us-west-2"
VERSION = "3.16.1"
RANDOM = "0123456789abcdef"
_TRUST = json.dumps(trust("ec2"))
OURS, OTHERS = "trn1-16", ("trn1-16-2", "trn1-160", "trn1")


class Remains:
    """Makes what clusters can leave behind."""

    def __init__(self, aws: EmulatedAws, bucket: str) -> None:
        self._aws = aws
        self._bucket = bucket
        ec2 = self._client("ec2")
        self._vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
        self._subnet = ec2.create_subnet(VpcId=self._vpc, CidrBlock="10.9.0.0/24", AvailabilityZoneId="usw2-az4")[
            "Subnet"
        ]["SubnetId"]
        make_bucket(self._client("s3"), bucket, REGION)
        self._image = ec2.register_image(Name="image", RootDeviceName="/dev/sda1")["ImageId"]

    def _client(self, service: str) -> Any:
        return self._aws.client(service, REGION)

    def of(self, cluster: str) -> set[str]:
        """Leave behind one of each kind, and return their ids."""
        tags = [{"Key": "parallelcluster:cluster-name", "Value": cluster}]

        def tagged(kind: str) -> dict[str, Any]:
            return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags}]}

        ec2, iam, s3 = self._client("ec2"), self._client("iam"), self._client("s3")
        group = ec2.create_security_group(
            GroupName=f"{cluster}-compute", Description="-", VpcId=self._vpc, **tagged("security-group")
        )["GroupId"]
        interface = ec2.create_network_interface(SubnetId=self._subnet, **tagged("network-interface"))
        volume = ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=1, **tagged("volume"))["VolumeId"]
        instance = ec2.run_instances(
            ImageId=self._image,
            InstanceType="c6i.large",
            MinCount=1,
            MaxCount=1,
            SubnetId=self._subnet,
            **tagged("instance"),
        )["Instances"][0]["InstanceId"]
        template = ec2.create_launch_template(
            LaunchTemplateName=f"{cluster}-queue-resource", LaunchTemplateData=tagged("instance")
        )["LaunchTemplate"]["LaunchTemplateId"]
        placement = f"{cluster}-cluster-ClusterPlacementGroupsfleetC895EAAE-{RANDOM[:12]}"
        ec2.create_placement_group(GroupName=placement, Strategy="cluster")
        role, profile, path = f"{cluster}-RoleHeadNode-x", f"{cluster}-Profile-x", f"/parallelcluster/{cluster}/"
        cleaner = f"{cluster}-CleanupRoute53FunctionExecutionRole-{RANDOM[:12]}"
        iam.create_role(RoleName=role, Path=path, AssumeRolePolicyDocument=_TRUST)
        iam.put_role_policy(
            RoleName=role, PolicyName="p", PolicyDocument=json.dumps(statement(Action="*", Resource="*"))
        )
        iam.create_role(RoleName=cleaner, Path="/parallelcluster/", AssumeRolePolicyDocument=_TRUST)
        iam.create_instance_profile(InstanceProfileName=profile, Path=path)
        iam.add_role_to_instance_profile(InstanceProfileName=profile, RoleName=role)
        tables = [f"parallelcluster-{cluster}", f"parallelcluster-slurm-{cluster}"]
        for table in tables:
            self._client("dynamodb").create_table(
                TableName=table,
                KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "Id", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
                Tags=tags,
            )
        zone = self._client("route53").create_hosted_zone(
            Name=f"{cluster}.pcluster.",
            CallerReference=cluster,
            VPC={"VPCRegion": REGION, "VPCId": self._vpc},
            HostedZoneConfig={"PrivateZone": True, "Comment": "-"},
        )["HostedZone"]["Id"]
        record = {
            "Name": f"node.{cluster}.pcluster.",
            "Type": "A",
            "TTL": 1,
            "ResourceRecords": [{"Value": "10.9.0.9"}],
        }
        change = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]}
        self._client("route53").change_resource_record_sets(HostedZoneId=zone, ChangeBatch=change)
        parameter = f"/ultracluster/{cluster}/HeadNode"
        self._client("ssm").put_parameter(Name=parameter, Value="v", Type="String")
        groups = [
            f"/aws/parallelcluster/{cluster}-202611210730",
            f"/ultracluster/{cluster}/commands",
            f"/aws/lambda/{cluster}-network-CustomVpcRestrictDefault-{RANDOM[:12]}",
        ]
        for name in groups:
            self._client("logs").create_log_group(logGroupName=name)
        prefix = f"parallelcluster/{VERSION}/clusters/{cluster}-{RANDOM}/"
        s3.put_object(Bucket=self._bucket, Key=f"{prefix}configs/cluster-config.yaml", Body=b"-")
        return {
            group,
            interface["NetworkInterface"]["NetworkInterfaceId"],
            volume,
            instance,
            template,
            placement,
            role,
            cleaner,
            profile,
            *tables,
            zone.rpartition("/")[2],
            parameter,
            *groups,
            f"s3://{self._bucket}/{prefix}",
        }


@pytest.fixture
def deployment(rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in rehearsed_aws.settings.items():
        monkeypatch.setenv(name, value)
    return Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))


@pytest.fixture
def leave(rehearsed_aws: EmulatedAws, deployment: Deployment) -> Callable[[str], set[str]]:
    remains = Remains(rehearsed_aws, parallelcluster_bucket(deployment))
    return remains.of


def test_finds_what_is_ours_and_nothing_of_others(deployment: Deployment, leave: Callable[[str], set[str]]) -> None:
    for other in OTHERS:
        leave(other)
    assert leftovers.find(deployment) == []
    ours = leave(OURS)
    assert {each.id for each in leftovers.find(deployment)} == ours


def test_finds_of_other_clusters_what_is_asked_for(deployment: Deployment, leave: Callable[[str], set[str]]) -> None:
    leave(OURS)
    second = leave("trn1-16-2")
    found = {each.id for each in leftovers.find(deployment, ["trn1-16-2"])}
    assert {
        each for each in second if "cluster-ClusterPlacementGroups" not in each and "/aws/lambda/" not in each
    } <= found
    assert "/aws/parallelcluster/trn1-16-202611210730" not in found


def test_a_table_with_our_name_but_without_our_tag_is_not_ours(
    deployment: Deployment, leave: Callable[[str], set[str]]
) -> None:
    leave("slurm-trn1-16")  # its first table is named like our second one
    assert leftovers.find(deployment) == []


def test_tells_logs_that_the_settings_keep(deployment: Deployment, leave: Callable[[str], set[str]]) -> None:
    leave(OURS)
    kept = [each.id for each in leftovers.find(deployment) if each.kept]
    assert kept == ["/aws/parallelcluster/trn1-16-202611210730"]


def test_removes_all_of_it(
    rehearsed_aws: EmulatedAws, deployment: Deployment, leave: Callable[[str], set[str]]
) -> None:
    leave("trn1-16-2")
    before = inventory(rehearsed_aws, REGION)
    leave(OURS)
    for each in leftovers.find(deployment):
        remove(deployment, each, FastClock())
    assert leftovers.find(deployment) == []
    assert inventory(rehearsed_aws, REGION) == before


def test_goes_on_without_a_right_and_says_which(
    rehearsed_aws: EmulatedAws,
    deployment: Deployment,
    leave: Callable[[str], set[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = leave(OURS)
    monkeypatch.setattr(
        "scripts.operations.leftovers_by_name._zones", lambda *_: iter(())
    )  # moto refuses them to users
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": "*", "Resource": "*"},
            {"Effect": "Deny", "Action": "dynamodb:ListTables", "Resource": "*"},
        ],
    }
    missing: list[str] = []
    with rehearsed_aws.restricted(policy) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        found = {each.id for each in leftovers.find(Deployment("trn1-16", deployment.settings), missing=missing)}
    [zone] = ours - found - {"parallelcluster-trn1-16", "parallelcluster-slurm-trn1-16"}
    assert zone.isupper()
    assert any("ListTables" in each for each in missing)


def test_a_sweep_goes_on_where_one_thing_may_not_be_removed(
    deployment: Deployment, leave: Callable[[str], set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(OURS)

    def refusing(deployment: Deployment, found: Found, clock: Clock) -> None:
        if found.type == PREFIX:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DeleteObjects")
        remove(deployment, found, clock)

    monkeypatch.setattr("scripts.operations.destruction.remove", refusing)
    outcome = destruction.destroy(deployment, clock=FastClock(), say=lambda _: None, sweep=True)
    assert [each for each in outcome.failures if "DeleteObjects" in each] == outcome.failures != []
    assert {each.type for each in outcome.left} == {PREFIX, "AWS::EC2::Volume", "AWS::Logs::LogGroup"}
    assert all(each.kept or each.data or each.type == PREFIX for each in outcome.left)
