"""Creates what clusters can leave behind."""

import json
from typing import Any

from emulator.aws import EmulatedAws
from emulator.resources import make_bucket
from tests.emulator.account import statement, trust

REGION, ZONE = "us-west-2", "usw2-az4"
VERSIONS = ("3.15.0", "3.16.1")
RANDOM = "0123456789abcdef"


def tagged(cluster: str, kind: str) -> dict[str, Any]:
    """Return the argument that tags what is created as of a cluster."""
    tags = [{"Key": "parallelcluster:cluster-name", "Value": cluster}]
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags}]}


def leave_in_network(ec2: Any, cluster: str, vpc: str, subnet: str) -> set[str]:
    """Leave a security group behind in a network, and a node and an interface in it, and return their ids.

    The interface has no tag, as those of compute nodes.
    """
    created = ec2.create_security_group(
        GroupName=f"{cluster}-compute", Description="-", VpcId=vpc, **tagged(cluster, "security-group")
    )
    group = created["GroupId"]
    interface = ec2.create_network_interface(SubnetId=subnet, Groups=[group])["NetworkInterface"]
    node = launch(ec2, subnet, group, **tagged(cluster, "instance"))
    return {group, interface["NetworkInterfaceId"], node}


def launch(ec2: Any, subnet: str, group: str, **more: Any) -> str:
    image = ec2.register_image(Name="image", RootDeviceName="/dev/sda1")["ImageId"]
    network = {"SubnetId": subnet, "SecurityGroupIds": [group]}
    launched = ec2.run_instances(ImageId=image, InstanceType="c6i.large", MinCount=1, MaxCount=1, **network, **more)
    return str(launched["Instances"][0]["InstanceId"])


class Remains:
    """Creates what clusters can leave behind in one Region."""

    def __init__(self, aws: EmulatedAws, bucket: str, region: str = REGION, zone_id: str = ZONE) -> None:
        self._aws = aws
        self._bucket = bucket
        self._region = region
        ec2 = self._client("ec2")
        self._vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
        self._subnet = ec2.create_subnet(VpcId=self._vpc, CidrBlock="10.9.0.0/24", AvailabilityZoneId=zone_id)[
            "Subnet"
        ]["SubnetId"]
        make_bucket(self._client("s3"), bucket, region)

    def _client(self, service: str) -> Any:
        return self._aws.client(service, self._region)

    def of(self, cluster: str) -> set[str]:
        """Leave behind one of each kind, and return their ids."""
        ec2, s3 = self._client("ec2"), self._client("s3")
        in_network = leave_in_network(ec2, cluster, self._vpc, self._subnet)
        interface = ec2.create_network_interface(SubnetId=self._subnet, **tagged(cluster, "network-interface"))
        zone = f"{self._region}a"
        volume = ec2.create_volume(AvailabilityZone=zone, Size=100, VolumeType="gp3", **tagged(cluster, "volume"))
        template = ec2.create_launch_template(
            LaunchTemplateName=f"{cluster}-queue-resource", LaunchTemplateData=tagged(cluster, "instance")
        )["LaunchTemplate"]["LaunchTemplateId"]
        placement = f"{cluster}-cluster-ClusterPlacementGroupsfleetC895EAAE-{RANDOM[:12]}"
        ec2.create_placement_group(GroupName=placement, Strategy="cluster")
        role, profile = self.kept_by_stack(cluster)
        tables = [f"parallelcluster-{cluster}", f"parallelcluster-slurm-{cluster}"]
        for table in tables:
            self._client("dynamodb").create_table(
                TableName=table,
                KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "Id", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
                Tags=[{"Key": "parallelcluster:cluster-name", "Value": cluster}],
            )
        zone = self._client("route53").create_hosted_zone(
            Name=f"{cluster}.pcluster.",
            CallerReference=cluster + self._region,
            VPC={"VPCRegion": self._region, "VPCId": self._vpc},
            HostedZoneConfig={"PrivateZone": True, "Comment": "-"},
        )["HostedZone"]["Id"]
        address = {"Type": "A", "TTL": 1, "ResourceRecords": [{"Value": "10.9.0.9"}]}
        record = {"Name": f"node.{cluster}.pcluster.", **address}
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
        prefixes = [f"parallelcluster/{version}/clusters/{cluster}-{RANDOM}/" for version in VERSIONS]
        for prefix in prefixes:
            s3.put_object(Bucket=self._bucket, Key=f"{prefix}configs/cluster-config.yaml", Body=b"-")
        return {
            *in_network,
            interface["NetworkInterface"]["NetworkInterfaceId"],
            volume["VolumeId"],
            template,
            placement,
            role,
            profile,
            *tables,
            zone.rpartition("/")[2],
            parameter,
            *groups,
            *(f"s3://{self._bucket}/{prefix}" for prefix in prefixes),
        }

    def user_of_group(self, cluster: str) -> str:
        """Have somebody's instance use the security group that a cluster left behind, and return its id."""
        ec2 = self._client("ec2")
        named = [{"Name": "group-name", "Values": [f"{cluster}-compute"]}]
        [group] = [each["GroupId"] for each in ec2.describe_security_groups(Filters=named)["SecurityGroups"]]
        return launch(ec2, self._subnet, group)

    def kept_by_stack(self, cluster: str) -> tuple[str, str]:
        """Make a cluster's stack, delete it so that role and profile stay, and return their names."""
        path, name = f"/parallelcluster/{cluster}/", f"{cluster}-HeadNode-{self._region}"
        policy = {"PolicyName": "p", "PolicyDocument": statement(Action="*", Resource="*")}
        role = {"RoleName": name, "Path": path, "AssumeRolePolicyDocument": trust("ec2"), "Policies": [policy]}
        profile = {"InstanceProfileName": name, "Path": path, "Roles": [{"Ref": "Role"}]}
        resources = {
            "Role": {"Type": "AWS::IAM::Role", "DeletionPolicy": "Retain", "Properties": role},
            "Profile": {"Type": "AWS::IAM::InstanceProfile", "DeletionPolicy": "Retain", "Properties": profile},
        }
        self.deleted_stack(cluster, {"Resources": resources})
        return name, name

    def deleted_stack(self, name: str, template: dict[str, Any]) -> None:
        cloudformation = self._client("cloudformation")
        cloudformation.create_stack(
            StackName=name, TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_NAMED_IAM"]
        )
        cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 0.1})
        cloudformation.delete_stack(StackName=name)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 0.1})
