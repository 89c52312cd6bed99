"""Resources of an emulated account, made by their models without a stack."""

import io
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator import resources
from emulator.aws import ACCOUNT, EmulatedAws
from emulator.resources import Context, Physical

REGION = "us-west-2"


@dataclass(frozen=True)
class Resource:
    type: str
    context: Context
    properties: dict[str, Any]
    physical: Physical

    @property
    def ref(self) -> str:
        return self.physical.ref

    def __getitem__(self, attribute: str) -> Any:
        return self.physical.attributes[attribute]


class Account:
    def __init__(self, aws: EmulatedAws) -> None:
        self.aws = aws

    def client(self, service: str) -> Any:
        return self.aws.client(service, REGION)

    def create(self, resource_type: str, **properties: Any) -> Resource:
        logical_id = resource_type.rpartition("::")[2]
        context = Context(
            client=self.client,
            account=ACCOUNT,
            region=REGION,
            partition="aws",
            stack_id=f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/Stack/0",
            logical_id=logical_id,
            name=f"Stack-{logical_id}-{uuid.uuid4().hex[:12].upper()}",
        )
        return Resource(resource_type, context, properties, resources.create(resource_type, context, properties))

    def update(self, resource: Resource, **changes: Any) -> Resource:
        """Change properties; None takes one away."""
        properties = {key: each for key, each in {**resource.properties, **changes}.items() if each is not None}
        context = replace(resource.context, previous=resource.properties)
        physical = resources.update(resource.type, context, resource.physical, properties)
        return replace(resource, properties=properties, physical=physical)

    def delete(self, resource: Resource) -> None:
        resources.delete(resource.type, resource.context, resource.physical, resource.properties)

    # What other resources need

    def vpc(self, cidr: str = "10.0.0.0/16") -> Resource:
        return self.create("AWS::EC2::VPC", CidrBlock=cidr, EnableDnsHostnames=True)

    def subnet(self, vpc: Resource, cidr: str = "10.0.0.0/24") -> Resource:
        return self.create("AWS::EC2::Subnet", VpcId=vpc.ref, CidrBlock=cidr, AvailabilityZoneId="usw2-az4")

    def zonal_subnet(self, vpc: Resource, number: int) -> Resource:
        """Return a subnet in a zone of its own."""
        zones = self.client("ec2").describe_availability_zones()["AvailabilityZones"]
        where = {"CidrBlock": f"10.0.{number}.0/24", "AvailabilityZoneId": zones[number]["ZoneId"]}
        return self.create("AWS::EC2::Subnet", VpcId=vpc.ref, **where)

    def subnet_group(self) -> Resource:
        """Return a group for databases, of two subnets in a VPC of its own."""
        vpc = self.vpc()
        subnets = [self.zonal_subnet(vpc, number).ref for number in range(2)]
        return self.create("AWS::RDS::DBSubnetGroup", DBSubnetGroupDescription="x", SubnetIds=subnets)

    def attached_gateway(self, vpc: Resource) -> tuple[Resource, Resource]:
        gateway = self.create("AWS::EC2::InternetGateway")
        attachment = self.create("AWS::EC2::VPCGatewayAttachment", VpcId=vpc.ref, InternetGatewayId=gateway.ref)
        return gateway, attachment

    def address(self) -> Resource:
        return self.create("AWS::EC2::EIP", Domain="vpc")

    def nat_gateway(self, subnet: Resource, *addresses: Resource) -> Resource:
        first, *others = (address["AllocationId"] for address in addresses)
        return self.create(
            "AWS::EC2::NatGateway", SubnetId=subnet.ref, AllocationId=first, SecondaryAllocationIds=others
        )

    def group(self, vpc: Resource) -> Resource:
        rule = {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988, "CidrIp": "10.0.0.0/16"}
        return self.create(
            "AWS::EC2::SecurityGroup", GroupDescription="Lustre", VpcId=vpc.ref, SecurityGroupIngress=[rule]
        )

    def file_system(self, subnet: Resource, group: Resource, deployment_type: str = "SCRATCH_2") -> Resource:
        persistent = {"PerUnitStorageThroughput": 250} if deployment_type.startswith("PERSISTENT") else {}
        return self.create(
            "AWS::FSx::FileSystem",
            FileSystemType="LUSTRE",
            StorageCapacity=1200,
            SubnetIds=[subnet.ref],
            SecurityGroupIds=[group.ref],
            LustreConfiguration={"DeploymentType": deployment_type, **persistent},
        )

    def launch(self, count: int = 1, **request: Any) -> list[str]:
        """Launch instances and return their ids."""
        ec2 = self.client("ec2")
        image = ec2.register_image(Name=f"image-{uuid.uuid4()}", RootDeviceName="/dev/sda1")["ImageId"]
        usual = {"ImageId": image, "InstanceType": "c6i.large", "MinCount": count, "MaxCount": count}
        return [each["InstanceId"] for each in ec2.run_instances(**{**usual, **request})["Instances"]]

    def instances(self, *ids: str) -> list[dict[str, Any]]:
        reservations = self.client("ec2").describe_instances(InstanceIds=list(ids))["Reservations"]
        return [each for reservation in reservations for each in reservation["Instances"]]

    def role(self, **properties: Any) -> Resource:
        return self.create("AWS::IAM::Role", AssumeRolePolicyDocument=trust("lambda"), **properties)

    def archive(self) -> dict[str, str]:
        """Put an archive into a bucket; return where it is."""
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as file:
            file.writestr("index.py", "def handler(event, context): return 1")
        location = {"S3Bucket": self.create("AWS::S3::Bucket").ref, "S3Key": "code.zip"}
        self.client("s3").put_object(Bucket=location["S3Bucket"], Key=location["S3Key"], Body=content.getvalue())
        return location

    def function(self) -> Resource:
        return self.create(
            "AWS::Lambda::Function",
            Code=self.archive(),
            Handler="index.handler",
            Role=self.role()["Arn"],
            Runtime="python3.12",
        )


def trust(service: str) -> dict[str, Any]:
    principal = {"Service": f"{service}.amazonaws.com"}
    return statement(Action="sts:AssumeRole", Principal=principal)


def statement(**members: Any) -> dict[str, Any]:
    """Return a policy document of one statement."""
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **members}]}


def tags(**values: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in values.items()]


@contextmanager
def refused(code: str, message: str) -> Iterator[None]:
    """Expect that AWS refuses what is done in the `with` block."""
    with pytest.raises(ClientError) as caught:
        yield
    assert caught.value.response["Error"]["Code"] == code
    assert caught.value.response["Error"]["Message"] == message
