from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stacks.network_stack import NetworkStack
from tests.stacks.deployments import PARTS, Deployment, Raw, deploy, edited
from tests.stacks.small_app import Template, flat, new_app, read_template

Synth = Callable[[str], Deployment]

VPC = {
    "vpc_id": "vpc-0123456789abcdef0",
    "public_subnet_id": "subnet-0123456789abcdef0",
    "private_subnet_id": "subnet-0123456789abcdef1",
}


def use_existing_vpc(raw: Raw) -> None:
    raw["network"] = {**{key: raw["network"][key] for key in raw["network"] if key.endswith("cidr")}, "existing": VPC}


@pytest.fixture(scope="module")
def second_generation(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    settings = edited("two-queues", lambda raw: raw["cluster"].update(generation=2))
    return deploy(settings, tmp_path_factory.mktemp("generation"))


@pytest.fixture(scope="module")
def in_existing_vpc(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    return deploy(edited("trn1-16", use_existing_vpc), tmp_path_factory.mktemp("existing"))


def parts_of(value: Any, function: str) -> Iterator[Any]:
    """Yield the argument of each use of a CloudFormation function."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == function:
                yield item
            yield from parts_of(item, function)
    elif isinstance(value, list):
        for item in value:
            yield from parts_of(item, function)


def test_synth_asks_the_account_nothing(deployment: Deployment) -> None:
    assert [template.missing_context for template in deployment.templates.values()] == [None] * 4


def test_with_an_account_the_stacks_go_nowhere_else(tmp_path: Path) -> None:
    deployment = deploy(edited("trn1-16", lambda raw: raw.update(account="210987654321")), tmp_path)

    environments = {deployment.artifacts[deployment.stack_name(part)]["environment"] for part in PARTS}

    assert environments == {"aws://210987654321/us-west-2"}
    access = deployment.configuration["HeadNode"]["Iam"]["S3Access"]
    assert {entry["BucketName"] for entry in access} == {"cdk-hnb659fds-assets-210987654321-us-west-2"}


def test_the_cluster_stack_has_no_tags_because_they_would_reach_its_placement_group(synth: Synth) -> None:
    deployment = synth("trn1-16")
    resources = deployment.cluster.body["Resources"].values()
    tag = {"Key": "project", "Value": "trn1-ultracluster"}

    tagged = {item["Type"] for item in resources if "Tags" in item.get("Properties", {})}

    assert "tags" not in deployment.stack_properties("cluster")
    assert tagged == {"AWS::CloudFormation::Stack", "AWS::SSM::Parameter"}
    assert deployment.cluster.properties("AWS::CloudFormation::Stack")["Tags"] == [tag]
    assert deployment.cluster.properties("AWS::SSM::Parameter")["Tags"] == {"project": "trn1-ultracluster"}
    assert deployment.configuration["Tags"] == [tag]


@pytest.mark.parametrize("protected", [[], ["storage", "cluster"], ["monitoring"]])
def test_the_stacks_of_the_list_are_protected_and_no_others(protected: list[str], tmp_path: Path) -> None:
    deployment = deploy(edited("dev", lambda raw: raw.update(termination_protection=protected)), tmp_path)

    found = [part for part in PARTS if deployment.stack_properties(part).get("terminationProtection")]

    assert found == protected


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


def test_only_what_may_be_replaced_is_referred_to_weakly(deployment: Deployment) -> None:
    weak, strong = (
        [each for template in deployment.templates.values() for each in parts_of(template.body, function)]
        for function in ("Fn::GetStackOutput", "Fn::ImportValue")
    )
    outputs = {name: template.body["Outputs"] for name, template in deployment.templates.items()}
    read = [outputs[each["StackName"]][each["OutputName"]]["Value"] for each in weak]

    system, _ = deployment.storage.one("AWS::FSx::FileSystem")
    assert {flat(each).partition("|")[0] for each in read} == {system}
    exports = {each["Name"] for each in parts_of(list(outputs.values()), "Export")}
    assert set(strong) == exports
    assert len(exports) == len(["VPC", "public subnet", "private subnet", "NAT gateway", "security group"])


def test_what_is_exported_does_not_hang_on_who_imports_it(synth: Synth, tmp_path: Path) -> None:
    app = new_app(tmp_path)
    NetworkStack(app, synth("trn1-16").settings)
    app.synth()

    exported = len(list(parts_of(read_template(tmp_path, "trn1-16-network").body, "Export")))

    assert exported == len(["VPC", "public subnet", "private subnet", "NAT gateway"])


def test_in_an_existing_vpc_everything_stands_in_its_subnets(in_existing_vpc: Deployment) -> None:
    public, private = VPC["public_subnet_id"], VPC["private_subnet_id"]
    types = {item["Type"] for item in in_existing_vpc.network.body["Resources"].values()}

    assert types == {"AWS::CloudFormation::WaitConditionHandle"}
    assert [template.missing_context for template in in_existing_vpc.templates.values()] == [None] * 4
    assert in_existing_vpc.storage.properties("AWS::FSx::FileSystem")["SubnetIds"] == [private]
    assert in_existing_vpc.storage.properties("AWS::EC2::SecurityGroup")["VpcId"] == VPC["vpc_id"]
    assert in_existing_vpc.configuration["HeadNode"]["Networking"]["SubnetId"] == public
    assert [queue["Networking"]["SubnetIds"] for queue in in_existing_vpc.queues] == [[private]]
    assert VPC.items() <= in_existing_vpc.cluster.summary().items()


def test_a_bucket_of_the_deployment_is_in_the_outputs(tmp_path: Path) -> None:
    def link(raw: Raw) -> None:
        raw["storage"]["file_system"]["backup_retention_days"] = 0
        raw["storage"]["data_repositories"] = [{"path": "/data"}]

    deployment = deploy(edited("trn1-16", link), tmp_path)
    bucket, _ = deployment.storage.one("AWS::S3::Bucket")

    assert deployment.storage.summary()["bucket"] == bucket
    assert deployment.cluster.summary()["bucket"].startswith("trn1-16-storage|")


def test_clusters_of_two_generations_stand_on_one_network_and_file_system(
    synth: Synth, second_generation: Deployment
) -> None:
    first = synth("two-queues")

    assert second_generation.network.body == first.network.body
    assert second_generation.storage.body == first.storage.body
    assert list(second_generation.templates) == [
        *("two-queues-network", "two-queues-storage", "two-queues-cluster-2", "two-queues-monitoring"),
    ]
    assert second_generation.configuration["SharedStorage"] == first.configuration["SharedStorage"]


def test_clusters_of_two_generations_share_no_name(synth: Synth, second_generation: Deployment) -> None:
    def names(template: Template) -> set[str]:
        """Return what a template names that AWS would name otherwise; what is in a cluster has the cluster's name."""
        resources = template.body["Resources"].values()
        named = {
            value
            for resource in resources
            for key, value in resource.get("Properties", {}).items()
            if key.endswith("Name") and isinstance(value, str)
        }
        return named | {template.summary()["log_group_prefix"]}

    first, second = names(synth("two-queues").cluster), names(second_generation.cluster)

    assert second == {"two-queues-2", "/aws/parallelcluster/two-queues-2-", "/ultracluster/two-queues-2/HeadNode"}
    assert not first & second
