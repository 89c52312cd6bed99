"""The templates that ParallelCluster would create have what a Trn1 node needs."""

import base64
import copy
import json
import re
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from typing import Any

import pytest
from moto.iam.aws_managed_policies import aws_managed_policies_data

from scripts.core.options import deployments
from toolchain.cluster import as_strings
from toolchain.parallelcluster import ParallelCluster, Templates
from toolchain.values import Evaluator, Scope
from ultracluster.domain.names import CLUSTER_NAME_MAX

pytestmark = [pytest.mark.slow, pytest.mark.validation]

TEMPLATE_BYTES = 1_048_576
"""Size of a template in S3 (CloudFormation user guide, "Understand CloudFormation quotas")."""
TEMPLATE_RESOURCES = 500
EVENT_BYTES = 1_048_576
"""Payload of an asynchronous invocation (https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html), which is how
CloudFormation hands the provider an update: with the configuration that was and the one that shall be."""
USER_DATA_BYTES = 16_384
"""Before it is base64-encoded (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-add-user-data.html)."""
EFA_TYPES = ("efa", "efa-only")


class LongestValues(Scope):
    """What only AWS knows, each with as many characters as ParallelCluster's longest, the ARN of a nested stack.

    A stack's name has 128 at most (https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_Stack.html).
    """

    _VALUE = f"arn:aws-us-gov:cloudformation:us-gov-west-1:123456789012:stack/{'n' * 128}/{'i' * 36}"

    def ref(self, name: str) -> str:
        return self._VALUE


def resources(templates: Templates, resource_type: str) -> Iterator[dict[str, Any]]:
    for template in (templates.root, *templates.nested.values()):
        for resource in template["Resources"].values():
            if resource["Type"] == resource_type:
                yield resource["Properties"]


def trn1_launches(templates: Templates) -> dict[str, dict[str, Any]]:
    """Return the launch template data of the trn1.32xlarge nodes by template name."""
    return {
        template["LaunchTemplateName"]: template["LaunchTemplateData"]
        for template in resources(templates, "AWS::EC2::LaunchTemplate")
        if template["LaunchTemplateData"].get("InstanceType") == "trn1.32xlarge"
    }


@pytest.fixture(params=deployments())
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_trn1_nodes_launch_as_the_settings_say(
    environment: str, deployment: Callable[[str], Any], templates: Callable[[str], Templates]
) -> None:
    spec = deployment(environment).settings.cluster_spec
    launches = trn1_launches(templates(environment))
    groups: dict[str, set[str]] = {}
    for queue in spec.queues:
        for resource in queue.compute_resources:
            if resource.instance_type != "trn1.32xlarge":
                continue
            launch = launches.pop(f"{spec.name}-{queue.name}-{resource.name}")
            interfaces = launch["NetworkInterfaces"]
            efa = [each["NetworkCardIndex"] for each in interfaces if each.get("InterfaceType") in EFA_TYPES]
            addressed = [each for each in interfaces if each.get("InterfaceType") != "efa-only"]
            assert sorted(efa) == list(range(8))
            expected = (9, 1) if spec.efa_interface_type == "efa-only" else (8, 8)
            assert (len(interfaces), len(addressed)) == expected

            group = launch.get("Placement", {}).get("GroupName")
            label = queue.placement_group_label or queue.existing_placement_group
            assert bool(group) == bool(label)
            if label:
                groups.setdefault(label, set()).add(group)
            if queue.capacity_type == "CAPACITY_BLOCK":
                assert launch["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
            target = launch.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
            assert target.get("CapacityReservationId") == resource.capacity_reservation_id
    assert not launches
    assert all(len(names) == 1 for names in groups.values()), "queues of one label share one group"


def test_nodes_stand_in_the_subnets_of_the_settings(
    environment: str, deployment: Callable[[str], Any], aws: Any, templates: Callable[[str], Templates]
) -> None:
    settings, built = deployment(environment).settings, templates(environment)
    ec2, network, head = aws.client("ec2", settings.region), settings.network, settings.cluster.head_node

    def subnet(subnet_id: str) -> tuple[str, str, bool]:
        [described] = ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"]
        return described["CidrBlock"], described["AvailabilityZoneId"], described["MapPublicIpOnLaunch"]

    private = (network.private_subnet_cidr, settings.zone_id, False)
    public = (network.public_subnet_cidr, settings.zone_id, True)
    for launch in trn1_launches(built).values():
        [subnet_id] = {each["SubnetId"] for each in launch["NetworkInterfaces"]}
        assert subnet(subnet_id) == private
        assert not any(each.get("AssociatePublicIpAddress") for each in launch["NetworkInterfaces"])
    interface = built.root["Resources"]["HeadNodeENI"]["Properties"]
    assert subnet(interface["SubnetId"]) == (public if head.public else private)


def test_nodes_may_send_metrics_by_a_policy_that_parallelcluster_gives_them(
    templates: Callable[[str], Templates],
) -> None:
    # https://docs.aws.amazon.com/aws-managed-policy/latest/reference/CloudWatchAgentServerPolicy.html
    [statement, *_] = json.loads(aws_managed_policies_data)["CloudWatchAgentServerPolicy"]["Document"]["Statement"]
    assert "cloudwatch:PutMetricData" in statement["Action"]
    assert statement["Resource"] == "*"
    roles = [
        role
        for role in resources(templates("trn1-16"), "AWS::IAM::Role")
        if "ec2." in json.dumps(role["AssumeRolePolicyDocument"])
    ]
    assert len(roles) > 1
    for role in roles:
        assert any("policy/CloudWatchAgentServerPolicy" in json.dumps(arn) for arn in role["ManagedPolicyArns"])


def test_imds_v2_alone_encrypted_root_volumes_and_port_22_closed_to_the_world(
    environment: str, templates: Callable[[str], Templates]
) -> None:
    built = templates(environment)
    launches = [each["LaunchTemplateData"] for each in resources(built, "AWS::EC2::LaunchTemplate")]
    assert len(launches) >= 2, "the head node's and one of the fleet"
    for launch in launches:
        assert launch["MetadataOptions"]["HttpTokens"] == "required"
        volumes = [each["Ebs"] for each in launch["BlockDeviceMappings"] if "Ebs" in each]
        assert volumes
        assert all(volume["Encrypted"] is True for volume in volumes)

    rules = [
        *(
            rule
            for group in resources(built, "AWS::EC2::SecurityGroup")
            for rule in group.get("SecurityGroupIngress", [])
        ),
        *resources(built, "AWS::EC2::SecurityGroupIngress"),
    ]
    reaching_ssh = [rule for rule in rules if rule["IpProtocol"] == "-1" or rule["FromPort"] <= 22 <= rule["ToPort"]]
    assert reaching_ssh
    for rule in reaching_ssh:
        assert "CidrIpv6" not in rule
        assert ip_network(rule.get("CidrIp", "127.0.0.1/32")).prefixlen > 0


def test_strings_lead_to_the_same_fleet_as_real_types(
    deployment: Callable[[str], Any],
    parallelcluster: ParallelCluster,
    templates: Callable[[str], Templates],
) -> None:
    request = deployment("trn1-16").request
    from_strings = parallelcluster.build_templates(as_strings(request.configuration), request.name)

    def comparable(built: Templates) -> list[str]:
        # Names of wait conditions and of the log group hold the time, the latter to the minute. A nested template is
        # stored under its hash, which the time changes, too.
        stored = re.compile(rf"(?:{'|'.join(built.nested)})(?:(S3Bucket|S3VersionKey|ArtifactHash)[0-9A-F]{{8}})?")
        texts = (json.dumps(each) for each in (built.root, *built.nested.values()))
        return [re.sub(r"\d{12,14}", "TIME", stored.sub(r"ASSET\1", text)) for text in texts]

    assert comparable(from_strings) == comparable(templates("trn1-16"))


def test_fifty_queues_and_login_nodes_under_the_longest_names_fit_into_cloudformation_and_ec2(
    deployment: Callable[[str], Any], parallelcluster: ParallelCluster
) -> None:
    configuration = copy.deepcopy(deployment("trn1-16").request.configuration)
    [queue] = configuration["Scheduling"]["SlurmQueues"]
    queues = [copy.deepcopy(queue) for _ in range(50)]
    for number, each in enumerate(queues):
        each["Name"] = f"queue-of-twenty-five-ch{number:02}"
        each["ComputeResources"][0]["Name"] = "resource-of-twenty-five-c"
    configuration["Scheduling"]["SlurmQueues"] = queues
    pool = {"Name": "pool-of-twenty-five-chara", "Count": 1, "InstanceType": "c6i.large"}
    pool["Networking"] = {"SubnetIds": queue["Networking"]["SubnetIds"]}
    configuration["LoginNodes"] = {"Pools": [pool]}
    errors = [message for message in parallelcluster.validate(configuration) if message.level == "ERROR"]
    assert errors == []
    built = parallelcluster.build_templates(configuration, "n" * CLUSTER_NAME_MAX)
    for template in (built.root, *built.nested.values()):
        assert len(template["Resources"]) <= TEMPLATE_RESOURCES
        assert len(json.dumps(template, separators=(",", ":")).encode()) < TEMPLATE_BYTES
    assert 2 * len(json.dumps(as_strings(configuration)).encode()) < EVENT_BYTES
    launches = [each["LaunchTemplateData"] for each in resources(built, "AWS::EC2::LaunchTemplate")]
    assert len(launches) == 1 + 50 + 1
    longest = [Evaluator(LongestValues()).evaluate(each["UserData"]) for each in launches]
    assert max(len(base64.b64decode(each)) for each in longest) <= USER_DATA_BYTES


def test_the_head_node_may_mark_its_root_volume_which_has_the_instances_tags(
    templates: Callable[[str], Templates],
) -> None:
    [head_node] = resources(templates("trn1-16"), "AWS::EC2::Instance")
    assert head_node["PropagateTagsToVolumeOnCreation"]
    assert {"Key": "parallelcluster:node-type", "Value": "HeadNode"} in head_node["Tags"]
    statements = [
        statement
        for policy in resources(templates("trn1-16"), "AWS::IAM::Policy")
        if "RoleHeadNode" in json.dumps(policy["Roles"])
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    for action, resource in (("ec2:DescribeVolumes", "*"), ("ec2:CreateTags", ":volume/*")):
        assert any(action in each["Action"] and resource in json.dumps(each["Resource"]) for each in statements)


def test_a_shared_home_on_efs_is_encrypted_and_within_the_vpc(templates: Callable[[str], Templates]) -> None:
    built = templates("ultracluster")
    [file_system] = resources(built, "AWS::EFS::FileSystem")
    assert (file_system["Encrypted"], file_system["ThroughputMode"]) == (True, "elastic")
    assert len(list(resources(built, "AWS::EFS::MountTarget"))) == 1
