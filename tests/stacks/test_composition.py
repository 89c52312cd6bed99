from collections.abc import Callable
from pathlib import Path

from stacks.network_stack import NetworkStack
from tests.stacks.deployments import PARTS, Deployment, Raw, deploy, edited
from tests.stacks.small_app import new_app, read_template

Synth = Callable[[str], Deployment]

VPC = {
    "vpc_id": "vpc-0123456789abcdef0",
    "public_subnet_id": "subnet-0123456789abcdef0",
    "private_subnet_id": "subnet-0123456789abcdef1",
}


def use_existing_vpc(raw: Raw) -> None:
    raw["network"] = {**{key: raw["network"][key] for key in raw["network"] if key.endswith("cidr")}, "existing": VPC}


def test_synth_asks_the_account_nothing(deployment: Deployment) -> None:
    assert "missing" not in deployment.manifest


def test_with_an_account_the_stacks_go_nowhere_else(tmp_path: Path) -> None:
    deployment = deploy(edited("trn1-16", lambda raw: raw.update(account="210987654321")), tmp_path)

    environments = {deployment.artifacts[deployment.stack_name(part)]["environment"] for part in PARTS}

    assert environments == {"aws://210987654321/us-west-2"}
    access = deployment.configuration["HeadNode"]["Iam"]["S3Access"]
    assert {entry["BucketName"] for entry in access} == {"cdk-hnb659fds-assets-210987654321-us-west-2"}


def test_all_stacks_but_the_clusters_are_tagged_because_its_tags_would_reach_its_placement_group(synth: Synth) -> None:
    deployment = synth("trn1-16")
    tags = {"project": "trn1-ultracluster"}

    assert [deployment.stack_properties(part).get("tags") for part in PARTS] == [tags, tags, None, tags]
    assert "Tags" not in deployment.cluster.properties("AWS::EC2::PlacementGroup")


def test_the_stacks_of_the_list_are_protected_and_no_others(tmp_path: Path) -> None:
    protected = ["storage", "cluster"]
    deployment = deploy(edited("dev", lambda raw: raw.update(termination_protection=protected)), tmp_path)

    assert [part for part in PARTS if deployment.stack_properties(part).get("terminationProtection")] == protected


def test_stacks_come_after_what_they_need_and_the_alarms_do_without_a_cluster(deployment: Deployment) -> None:
    stacks = {deployment.stack_name(part): part for part in PARTS}

    dependencies = {
        part: {stacks[name] for name in deployment.artifacts[stack]["dependencies"] if name in stacks}
        for stack, part in stacks.items()
    }

    assert dependencies == {
        "network": set(),
        "storage": {"network"},
        "cluster": {"network", "storage"},
        "monitoring": {"network", "storage"},
    }


def test_what_is_exported_does_not_hang_on_who_imports_it(synth: Synth, tmp_path: Path) -> None:
    app = new_app(tmp_path)
    NetworkStack(app, synth("trn1-16").settings)
    app.synth()

    outputs = read_template(tmp_path, "trn1-16-network").body["Outputs"].values()

    exported = [each for each in outputs if "Export" in each]

    assert len(exported) == len(["VPC", "public subnet", "private subnet", "NAT gateway"])


def test_in_an_existing_vpc_everything_stands_in_its_subnets(tmp_path: Path) -> None:
    deployment = deploy(edited("trn1-16", use_existing_vpc), tmp_path)
    public, private = VPC["public_subnet_id"], VPC["private_subnet_id"]

    assert list(deployment.network.of_type("AWS::CloudFormation::WaitConditionHandle")) == ["NothingToMake"]
    assert len(deployment.network.body["Resources"]) == 1
    assert "missing" not in deployment.manifest
    assert deployment.storage.properties("AWS::FSx::FileSystem")["SubnetIds"] == [private]
    assert deployment.storage.properties("AWS::EC2::SecurityGroup")["VpcId"] == VPC["vpc_id"]
    assert deployment.configuration["HeadNode"]["Networking"]["SubnetId"] == public
    assert [queue["Networking"]["SubnetIds"] for queue in deployment.queues] == [[private]]
    assert VPC.items() <= deployment.cluster.summary().items()


def test_interface_endpoints_are_in_the_private_subnet_and_take_https_from_the_vpc_alone(tmp_path: Path) -> None:
    def add(raw: Raw) -> None:
        raw["network"]["interface_endpoints"] = ["ssm", "ecr.api"]

    network = deploy(edited("trn1-16", add), tmp_path).network
    private, _ = network.one("AWS::EC2::Subnet", CidrBlock="10.0.64.0/18")
    group, properties = network.one("AWS::EC2::SecurityGroup")
    [rule] = properties["Properties"]["SecurityGroupIngress"]
    endpoints = [item["Properties"] for item in network.of_type("AWS::EC2::VPCEndpoint").values()]
    interfaces = [each for each in endpoints if each["VpcEndpointType"] == "Interface"]

    assert [each["ServiceName"].removeprefix("com.amazonaws.us-west-2.") for each in interfaces] == ["ssm", "ecr.api"]
    for each in interfaces:
        assert (each["SubnetIds"], each["PrivateDnsEnabled"]) == ([{"Ref": private}], True)
        assert each["SecurityGroupIds"] == [{"Fn::GetAtt": [group, "GroupId"]}]
    assert (rule["CidrIp"], rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) == ("10.0.0.0/16", "tcp", 443, 443)


def test_queues_of_one_label_share_a_placement_group_and_others_have_their_own(tmp_path: Path) -> None:
    def label(raw: Raw) -> None:
        [queue] = raw["cluster"]["queues"]
        labels = ("left-wing", "right-wing", "left-wing", "leftwing")
        raw["cluster"]["queues"] = [
            {**queue, "name": f"q{index}", "placement_group": each} for index, each in enumerate(labels)
        ]

    deployment = deploy(edited("trn1-16", label), tmp_path)
    groups = [queue["Networking"]["PlacementGroup"]["Name"]["Fn::GetAtt"][0] for queue in deployment.queues]

    assert groups[0] == groups[2]
    assert set(groups) == deployment.cluster.of_type("AWS::EC2::PlacementGroup").keys()
    assert len(set(groups)) == 3, "labels may differ by a hyphen"


def test_another_version_has_another_provider(synth: Synth) -> None:
    deployment = synth("trn1-16")
    name, _ = deployment.cluster.one("AWS::CloudFormation::Stack")

    assert name.startswith(f"ClusterProvider{deployment.settings.cluster.parallelcluster_version.replace('.', '')}")


def test_clusters_of_two_generations_share_network_and_file_system_and_no_name(synth: Synth, tmp_path: Path) -> None:
    first = synth("two-queues")
    second = deploy(edited("two-queues", lambda raw: raw["cluster"].update(generation=2)), tmp_path)

    assert (second.network.body, second.storage.body) == (first.network.body, first.storage.body)
    assert second.configuration["SharedStorage"] == first.configuration["SharedStorage"]
    assert second.request["ClusterName"] == "two-queues-2"
    assert second.cluster.properties("AWS::SSM::Parameter")["Name"] == "/ultracluster/two-queues-2/HeadNode"
    assert second.cluster.summary()["log_group_prefix"] == "/aws/parallelcluster/two-queues-2-"
