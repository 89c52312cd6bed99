"""Resource types that only the stacks of clusters have: made, changed in place, deleted; boto3 looks."""

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws
from emulator.inventory import inventory
from tests.emulator.account import REGION, Account, Resource, tags, trust

TRN1 = "trn1.32xlarge"


class Network(Account):
    """An account with a network, an image and a group of instances."""

    def __init__(self, aws: EmulatedAws) -> None:
        super().__init__(aws)
        self.ec2 = self.client("ec2")
        self.vpc_ = self.vpc()
        self.subnet_ = self.subnet(self.vpc_)
        self.group_ = self.group(self.vpc_)
        device = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 45}}
        self.image = self.ec2.register_image(
            Name="image", Architecture="x86_64", RootDeviceName="/dev/sda1", BlockDeviceMappings=[device]
        )["ImageId"]

    def interface(self, **properties: Any) -> Resource:
        groups = [self.group_.ref]
        return self.create("AWS::EC2::NetworkInterface", SubnetId=self.subnet_.ref, GroupSet=groups, **properties)

    def launch_template(self, **data: Any) -> Resource:
        data = {"ImageId": self.image, "InstanceType": "c6i.large", **data}
        return self.create("AWS::EC2::LaunchTemplate", LaunchTemplateName="template", LaunchTemplateData=data)

    def instance(self, template: Resource, **properties: Any) -> Resource:
        by = {"LaunchTemplateId": template.ref, "Version": template["LatestVersionNumber"]}
        return self.create("AWS::EC2::Instance", LaunchTemplate=by, **properties)

    def described(self, instance_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][
            0
        ]
        return found

    def cards(self) -> list[dict[str, Any]]:
        """Return the interfaces of a trn1.32xlarge as ParallelCluster asks for them."""
        common = {"SubnetId": self.subnet_.ref, "Groups": [self.group_.ref]}
        first = {"DeviceIndex": 0, "NetworkCardIndex": 0, **common}
        efa = {"DeviceIndex": 1, "InterfaceType": "efa-only", "AssociatePublicIpAddress": False, **common}
        return [first, *({**efa, "NetworkCardIndex": card} for card in range(8))]


@pytest.fixture
def network(rehearsed_aws: EmulatedAws) -> Iterator[Network]:
    before = inventory(rehearsed_aws, REGION)
    network = Network(rehearsed_aws)
    yield network
    # What each test deletes leaves nothing behind.
    network.delete(network.group_)
    network.delete(network.subnet_)
    network.delete(network.vpc_)
    assert inventory(rehearsed_aws, REGION) == before


def test_a_network_interface(network: Network) -> None:
    interface = network.interface(Description="one", SourceDestCheck=False, Tags=tags(a="1"))

    def look() -> tuple[Any, ...]:
        [found] = network.ec2.describe_network_interfaces(NetworkInterfaceIds=[interface.ref])["NetworkInterfaces"]
        groups = [group["GroupId"] for group in found["Groups"]]
        return found["SubnetId"], groups, found["Description"], found["SourceDestCheck"], found["TagSet"]

    assert look() == (network.subnet_.ref, [network.group_.ref], "one", False, tags(a="1"))
    assert interface["PrimaryPrivateIpAddress"].startswith("10.0.0.")
    other = network.group(network.vpc_)
    network.update(interface, Description="two", SourceDestCheck=True, GroupSet=[other.ref], Tags=tags(b="2"))
    assert look() == (network.subnet_.ref, [other.ref], "two", True, tags(b="2"))
    network.delete(interface)
    network.delete(interface)
    network.delete(other)


def test_an_address_of_an_interface(network: Network) -> None:
    gateway, attachment = network.attached_gateway(network.vpc_)
    interface, address = network.interface(), network.address()
    ids = {"AllocationId": address["AllocationId"], "NetworkInterfaceId": interface.ref}
    association = network.create("AWS::EC2::EIPAssociation", **ids)

    def owner() -> str | None:
        [found] = network.ec2.describe_addresses(AllocationIds=[address["AllocationId"]])["Addresses"]
        return found.get("NetworkInterfaceId") or None

    assert owner() == interface.ref
    network.delete(association)
    assert owner() is None
    network.delete(association)
    for each in (interface, address, attachment, gateway):
        network.delete(each)


def test_a_launch_template_has_a_version_per_change(network: Network) -> None:
    user_data = base64.b64encode(b"#!/bin/sh").decode()
    twice = [{"ResourceType": "instance", "Tags": [*tags(a="1"), *tags(a="2")]}]
    template = network.launch_template(UserData=user_data, TagSpecifications=twice)
    assert template.physical.attributes == {
        "DefaultVersionNumber": "1",
        "LatestVersionNumber": "1",
        "LaunchTemplateId": template.ref,
    }
    data = {"ImageId": network.image, "InstanceType": TRN1, "UserData": user_data}
    template = network.update(template, LaunchTemplateData=data)
    assert (template["DefaultVersionNumber"], template["LatestVersionNumber"]) == ("1", "2")
    versions = network.ec2.describe_launch_template_versions(LaunchTemplateId=template.ref)["LaunchTemplateVersions"]
    first, second = (each["LaunchTemplateData"] for each in sorted(versions, key=lambda each: each["VersionNumber"]))
    assert first["TagSpecifications"] == [{"ResourceType": "instance", "Tags": tags(a="2")}]
    assert second == data
    with pytest.raises(ClientError, match="AlreadyExists"):
        network.launch_template()
    network.delete(template)
    network.delete(template)


def test_an_instance_is_what_its_launch_template_says(network: Network) -> None:
    profile = network.create("AWS::IAM::InstanceProfile", Roles=[])
    interface = network.interface()
    group = network.create("AWS::EC2::PlacementGroup", Strategy="cluster")
    template = network.launch_template(
        NetworkInterfaces=[{"DeviceIndex": 0, "NetworkInterfaceId": interface.ref}],
        BlockDeviceMappings=[
            {"DeviceName": "/dev/xvdba", "VirtualName": "ephemeral0"},
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 200, "VolumeType": "gp3", "Encrypted": True}},
        ],
        IamInstanceProfile={"Name": profile.ref},
        MetadataOptions={"HttpTokens": "required"},
        Placement={"GroupName": group.ref},
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags(a="template", b="template")}],
        UserData=base64.b64encode(b"#!/bin/sh").decode(),
    )
    instance = network.instance(template, Tags=tags(b="own"), PropagateTagsToVolumeOnCreation=True)
    found = network.described(instance.ref)
    assert found["State"]["Name"] == "running"
    assert (found["ImageId"], found["InstanceType"]) == (network.image, "c6i.large")
    assert found["PrivateIpAddress"] == interface["PrimaryPrivateIpAddress"] == instance["PrivateIp"]
    assert [each["NetworkInterfaceId"] for each in found["NetworkInterfaces"]] == [interface.ref]
    assert [each["GroupId"] for each in found["SecurityGroups"]] == [network.group_.ref]
    assert found["IamInstanceProfile"]["Arn"].endswith(profile.ref)
    assert found["MetadataOptions"]["HttpTokens"] == "required"
    assert found["Placement"]["GroupName"] == group.ref
    assert {tag["Key"]: tag["Value"] for tag in found["Tags"] if ":" not in tag["Key"]} == {"a": "template", "b": "own"}
    [volume] = network.ec2.describe_volumes()["Volumes"]
    assert (volume["Size"], volume["VolumeType"], volume["Encrypted"]) == (200, "gp3", True)
    assert volume["Tags"] == tags(b="own")
    with pytest.raises(ClientError, match=r"InvalidNetworkInterface\.InUse"):
        network.instance(template)
    with pytest.raises(ClientError, match=r"InvalidPlacementGroup\.InUse"):
        network.delete(group)
    instance = network.update(instance, Tags=tags(c="3"))
    assert {"Key": "c", "Value": "3"} in network.described(instance.ref)["Tags"]
    network.delete(instance)
    network.delete(instance)
    for each in (interface, template, group, profile):
        network.delete(each)


def test_a_node_has_an_interface_per_network_card_and_one_address(network: Network) -> None:
    template = network.launch_template(InstanceType=TRN1, NetworkInterfaces=network.cards())
    free = network.ec2.describe_subnets(SubnetIds=[network.subnet_.ref])["Subnets"][0]["AvailableIpAddressCount"]
    instance = network.instance(template)
    interfaces = network.described(instance.ref)["NetworkInterfaces"]
    places = [(each["Attachment"]["NetworkCardIndex"], each["Attachment"]["DeviceIndex"]) for each in interfaces]
    assert sorted(places) == [(0, 0), *((card, 1) for card in range(8))]
    kinds = [each["InterfaceType"] for each in interfaces]
    assert (kinds.count("interface"), kinds.count("efa-only")) == (1, 8)
    assert sum(len(each["PrivateIpAddresses"]) for each in interfaces) == 1
    left = network.ec2.describe_subnets(SubnetIds=[network.subnet_.ref])["Subnets"][0]["AvailableIpAddressCount"]
    assert free - left == 1
    network.delete(instance)
    network.delete(template)


def test_what_ec2_refuses_is_refused_of_a_real_launch_too(network: Network) -> None:
    foreign = network.vpc("10.1.0.0/16")
    elsewhere = network.create(
        "AWS::EC2::Subnet", VpcId=network.vpc_.ref, CidrBlock="10.0.1.0/24", AvailabilityZoneId="usw2-az3"
    )
    abroad = network.subnet(foreign, "10.1.0.0/24")
    for subnet, groups, code in (
        (elsewhere, [network.group_.ref], "Unsupported"),  # a zone without trn1
        (abroad, [network.group_.ref], "belong to different networks"),
        (network.subnet_, ["sg-00000000000000000"], r"InvalidGroup\.NotFound"),
    ):
        interface = {"DeviceIndex": 0, "SubnetId": subnet.ref, "Groups": groups}
        template = network.launch_template(InstanceType=TRN1, NetworkInterfaces=[interface])
        with pytest.raises(ClientError, match=code):
            network.instance(template)
        network.delete(template)
    for each in (elsewhere, abroad, foreign):
        network.delete(each)


def test_login_nodes(network: Network) -> None:
    template = network.launch_template()
    elbv2, autoscaling = network.client("elbv2"), network.client("autoscaling")
    targets = network.create(
        "AWS::ElasticLoadBalancingV2::TargetGroup",
        Port=22,
        Protocol="TCP",
        VpcId=network.vpc_.ref,
        TargetType="instance",
        HealthCheckPort="22",
        HealthCheckProtocol="TCP",
        Tags=tags(a="1"),
    )
    balancer = network.create(
        "AWS::ElasticLoadBalancingV2::LoadBalancer",
        Scheme="internal",
        Subnets=[network.subnet_.ref],
        Type="network",
        LoadBalancerAttributes=[{"Key": "deletion_protection.enabled", "Value": "false"}],
    )
    action = {"Type": "forward", "TargetGroupArn": targets.ref}
    listener = network.create(
        "AWS::ElasticLoadBalancingV2::Listener",
        LoadBalancerArn=balancer.ref,
        Port=22,
        Protocol="TCP",
        DefaultActions=[action],
    )
    by = {"LaunchTemplateId": template.ref, "Version": template["LatestVersionNumber"]}
    group = network.create(
        "AWS::AutoScaling::AutoScalingGroup",
        AutoScalingGroupName="login",
        MinSize="2",
        MaxSize="2",
        DesiredCapacity="2",
        LaunchTemplate=by,
        TargetGroupARNs=[targets.ref],
        VPCZoneIdentifier=[network.subnet_.ref],
        Tags=[{"Key": "pool", "Value": "login", "PropagateAtLaunch": True}],
    )
    [found] = elbv2.describe_load_balancers(LoadBalancerArns=[balancer.ref])["LoadBalancers"]
    assert (found["Type"], found["Scheme"], found["DNSName"]) == ("network", "internal", balancer["DNSName"])
    [found] = elbv2.describe_listeners(ListenerArns=[listener.ref])["Listeners"]
    assert found["DefaultActions"][0]["TargetGroupArn"] == targets.ref
    [found] = autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert (found["DesiredCapacity"], len(found["Instances"])) == (2, 2)
    network.update(targets, HealthCheckPort="23", Tags=tags(b="2"))
    assert elbv2.describe_target_groups(TargetGroupArns=[targets.ref])["TargetGroups"][0]["HealthCheckPort"] == "23"
    assert elbv2.describe_tags(ResourceArns=[targets.ref])["TagDescriptions"][0]["Tags"] == tags(b="2")
    network.update(listener, Port=2222)
    assert elbv2.describe_listeners(ListenerArns=[listener.ref])["Listeners"][0]["Port"] == 2222
    network.update(balancer, Tags=tags(c="3"))
    assert elbv2.describe_tags(ResourceArns=[balancer.ref])["TagDescriptions"][0]["Tags"] == tags(c="3")
    group = network.update(group, MinSize="1", DesiredCapacity="1", MaxSize="3")
    [found] = autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert (found["MinSize"], found["DesiredCapacity"], found["MaxSize"]) == (1, 1, 3)
    for each in (group, listener, balancer, targets, template):
        network.delete(each)
        network.delete(each)


def test_a_table(network: Network) -> None:
    key = {"AttributeName": "Id", "AttributeType": "S"}
    table = network.create(
        "AWS::DynamoDB::Table",
        TableName="table",
        KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
        AttributeDefinitions=[key],
        BillingMode="PAY_PER_REQUEST",
        Tags=tags(a="1"),
    )
    dynamodb = network.client("dynamodb")
    found = dynamodb.describe_table(TableName="table")["Table"]
    assert (found["TableArn"], found["AttributeDefinitions"]) == (table["Arn"], [key])
    network.update(table, Tags=tags(b="2"))
    assert dynamodb.list_tags_of_resource(ResourceArn=table["Arn"])["Tags"] == tags(b="2")
    network.delete(table)
    network.delete(table)


def test_a_private_zone_and_a_record(network: Network) -> None:
    vpc = {"VPCId": network.vpc_.ref, "VPCRegion": REGION}
    zone = network.create("AWS::Route53::HostedZone", Name="c.pcluster.", VPCs=[vpc], HostedZoneTags=tags(a="1"))
    route53 = network.client("route53")
    found = route53.get_hosted_zone(Id=zone.ref)
    assert (found["HostedZone"]["Name"], found["HostedZone"]["Config"]["PrivateZone"]) == ("c.pcluster.", True)
    assert found["VPCs"] == [vpc]
    other = network.vpc("10.1.0.0/16")
    zone = network.update(zone, VPCs=[{**vpc, "VPCId": other.ref}], HostedZoneTags=tags(b="2"))
    assert [each["VPCId"] for each in route53.get_hosted_zone(Id=zone.ref)["VPCs"]] == [other.ref]
    found = route53.list_tags_for_resource(ResourceType="hostedzone", ResourceId=zone.ref)["ResourceTagSet"]
    assert found["Tags"] == tags(b="2")
    record = network.create(
        "AWS::Route53::RecordSet",
        HostedZoneId=zone.ref,
        Name="head.c.pcluster.",
        Type="A",
        TTL="60",
        ResourceRecords=["10.0.0.1"],
    )

    def addresses() -> list[str]:
        records = route53.list_resource_record_sets(HostedZoneId=zone.ref)["ResourceRecordSets"]
        return [each["Value"] for record in records if record["Type"] == "A" for each in record["ResourceRecords"]]

    assert (record.ref, addresses()) == ("head.c.pcluster.", ["10.0.0.1"])
    record = network.update(record, ResourceRecords=["10.0.0.2"])
    assert addresses() == ["10.0.0.2"]
    with pytest.raises(ClientError, match="HostedZoneNotEmpty"):
        network.delete(zone)
    for each in (record, zone, other):
        network.delete(each)
        network.delete(each)


def test_alarms_and_a_dashboard(network: Network) -> None:
    cloudwatch = network.client("cloudwatch")
    metric: dict[str, Any] = {
        "Namespace": "AWS/EC2",
        "MetricName": "CPUUtilization",
        "Period": 60,
        "Statistic": "Maximum",
    }
    rule: dict[str, Any] = {"ComparisonOperator": "GreaterThanThreshold", "EvaluationPeriods": 1, "Threshold": 90}
    alarm = network.create("AWS::CloudWatch::Alarm", AlarmName="cpu", **metric, **rule, Tags=tags(a="1"))
    [found] = cloudwatch.describe_alarms(AlarmNames=["cpu"])["MetricAlarms"]
    assert (found["AlarmArn"], found["Threshold"]) == (alarm["Arn"], 90)
    alarm = network.update(alarm, Threshold=80, Tags=tags(b="2"))
    [found] = cloudwatch.describe_alarms(AlarmNames=["cpu"])["MetricAlarms"]
    assert found["Threshold"] == 80
    assert cloudwatch.list_tags_for_resource(ResourceARN=alarm["Arn"])["Tags"] == tags(b="2")

    with pytest.raises(ClientError, match="do not exist"):
        network.create("AWS::CloudWatch::CompositeAlarm", AlarmRule='ALARM("gone")')
    composite = network.create(
        "AWS::CloudWatch::CompositeAlarm", AlarmName="all", AlarmRule=f'(ALARM("{alarm["Arn"]}"))'
    )

    def composites() -> list[str]:
        found = cloudwatch.describe_alarms(AlarmTypes=["CompositeAlarm"])["CompositeAlarms"]
        return [each["AlarmName"] for each in found]

    assert composites() == ["all"]
    assert [each["AlarmName"] for each in cloudwatch.describe_alarms()["MetricAlarms"]] == ["cpu"]

    body = '{"widgets":[]}'
    dashboard = network.create("AWS::CloudWatch::Dashboard", DashboardName="d", DashboardBody=body, Tags=tags(a="1"))
    arn = "arn:aws:cloudwatch::123456789012:dashboard/d"
    assert cloudwatch.get_dashboard(DashboardName="d")["DashboardBody"] == body
    assert cloudwatch.list_tags_for_resource(ResourceARN=arn)["Tags"] == tags(a="1")
    dashboard = network.update(dashboard, DashboardBody='{"widgets":[1]}', Tags=tags(b="2"))
    assert cloudwatch.get_dashboard(DashboardName="d")["DashboardBody"] == '{"widgets":[1]}'
    assert cloudwatch.list_tags_for_resource(ResourceARN=arn)["Tags"] == tags(b="2")
    for each in (dashboard, composite, alarm):
        network.delete(each)
        network.delete(each)
    assert composites() == []


def test_a_role_for_nodes(network: Network) -> None:
    role = network.create("AWS::IAM::Role", AssumeRolePolicyDocument=trust("ec2"))
    profile = network.create("AWS::IAM::InstanceProfile", Roles=[role.ref])
    template = network.launch_template(IamInstanceProfile={"Name": "nowhere"})
    with pytest.raises(ClientError, match="nowhere"):
        network.instance(template)
    for each in (template, profile, role):
        network.delete(each)
