"""A cluster as a resource of a stack: the provider, ParallelCluster's own stacks, and the head node that reports.

What AWS's provider does is in aws/aws-parallelcluster, cloudformation/custom_resource/cluster.yaml; what a head node
does in pcluster/resources/head_node/user_data.sh of the package.
"""

import json
import time
from collections.abc import Iterator

import pytest

from emulator.aws import EmulatedAws
from tests.emulator.clusters import REGION, VERSION, Clusters

pytestmark = [pytest.mark.validation, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster(rehearsal_server: EmulatedAws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    cluster = Clusters(rehearsal_server, tmp_path_factory.mktemp("cdk.out"))
    networking = {"SubnetIds": [cluster.configuration["HeadNode"]["Networking"]["SubnetId"]]}
    pool = {"Name": "login", "Count": 2, "InstanceType": "c6i.large", "Networking": networking}
    cluster.configuration["LoginNodes"] = {"Pools": [pool]}
    cluster.create()
    assert cluster.stacks.status("parent") == "CREATE_COMPLETE"
    yield cluster
    cluster.delete()
    assert cluster.left_over() == set()


def test_the_attributes_describe_the_cluster(cluster: Clusters) -> None:
    [head_node] = cluster.instances("HeadNode")
    assert cluster.stacks.output("parent", "clusterStatus") == "CREATE_COMPLETE"
    assert cluster.stacks.output("parent", "headNodeinstanceId") == head_node["InstanceId"]
    assert cluster.stacks.output("parent", "headNodeprivateIpAddress") == head_node["PrivateIpAddress"]
    assert len(cluster.stacks.output("parent", "validationMessages")) <= len("TRUNCATED:") + 2048


def test_the_provider_takes_note_and_tidies_up(cluster: Clusters) -> None:
    provider = cluster.stacks.resources(cluster.stacks.resources("parent")["Provider"])
    s3 = cluster.aws.client("s3", REGION)
    parked = s3.get_object(Bucket=provider["PclusterCustomResourceBucket"], Key=f"{cluster.name}/event.json")
    properties = json.loads(parked["Body"].read())["ResourceProperties"]
    resource = properties["ClusterConfiguration"]["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]
    assert resource["MaxCount"] == str(resource["MaxCount"])
    assert cluster.aws.client("events", REGION).list_rules()["Rules"] == []
    function = cluster.aws.client("lambda", REGION).get_function(FunctionName=provider["PclusterCfnFunction"])
    configuration = function["Configuration"]
    assert (configuration["Timeout"], configuration["MemorySize"]) == (60, 2048)
    assert {"parallelcluster:version": VERSION}.items() <= function["Tags"].items()


def test_the_cluster_is_a_stack_of_its_own_with_tags_of_both(cluster: Clusters) -> None:
    stack = cluster.stacks.describe(cluster.name)
    tags = {tag["Key"]: tag["Value"] for tag in stack["Tags"]}
    own = {tag["Key"]: tag["Value"] for tag in cluster.configuration["Tags"]}
    assert {"team": "ml", "parallelcluster:custom_resource": "cluster", **own}.items() <= tags.items()


def test_the_head_node_is_where_and_what_it_should_be(cluster: Clusters) -> None:
    [head_node] = cluster.instances("HeadNode")
    asked = cluster.configuration["HeadNode"]
    assert head_node["SubnetId"] == asked["Networking"]["SubnetId"]
    assert head_node["InstanceType"] == asked["InstanceType"]
    groups = {group["GroupId"] for group in head_node["SecurityGroups"]}
    assert set(asked["Networking"]["AdditionalSecurityGroups"]) < groups
    assert [each["SourceDestCheck"] for each in head_node["NetworkInterfaces"]] == [False]


def test_a_compute_node_starts_by_its_launch_template(cluster: Clusters) -> None:
    asked = cluster.configuration["Scheduling"]["SlurmQueues"][0]["Networking"]
    template = {"LaunchTemplateName": f"{cluster.name}-trn1-trn1-32xl"}
    [node] = cluster.ec2.run_instances(LaunchTemplate=template, MinCount=1, MaxCount=1)["Instances"]
    try:
        assert node["InstanceType"] == "trn1.32xlarge"
        assert node["Placement"]["GroupName"] == asked["PlacementGroup"]["Name"]
        assert {each["SubnetId"] for each in node["NetworkInterfaces"]} == set(asked["SubnetIds"])
        assert len(node["NetworkInterfaces"]) == 9
    finally:
        cluster.ec2.terminate_instances(InstanceIds=[node["InstanceId"]])


def test_parallelclusters_command_line_sees_it(cluster: Clusters) -> None:
    described = cluster.pcluster("describe-cluster", "-n", cluster.name)
    assert (described["clusterStatus"], described["computeFleetStatus"]) == ("CREATE_COMPLETE", "RUNNING")
    assert described["headNode"]["state"] == "running"
    [pool] = described["loginNodes"]
    assert (pool["status"], pool["healthyNodes"]) == ("active", 2)
    [listed] = cluster.pcluster("list-clusters")["clusters"]
    assert (listed["clusterName"], listed["version"]) == (cluster.name, VERSION)


def test_the_fleet_stops_and_starts(cluster: Clusters) -> None:
    others = {each["InstanceId"] for each in cluster.instances()}
    template = {"LaunchTemplateName": f"{cluster.name}-trn1-trn1-32xl", "Version": "$Latest"}
    cluster.ec2.run_instances(LaunchTemplate=template, MinCount=2, MaxCount=2)
    for request, status in (("STOP_REQUESTED", "STOPPED"), ("START_REQUESTED", "RUNNING")):
        cluster.pcluster("update-compute-fleet", "-n", cluster.name, "--status", request)
        deadline = time.monotonic() + 20
        while cluster.pcluster("describe-compute-fleet", "-n", cluster.name)["status"] != status:
            assert time.monotonic() < deadline
        assert {each["InstanceId"] for each in cluster.instances()} == others, "compute nodes are terminated"


def test_updates(cluster: Clusters) -> None:
    login_nodes = {each["InstanceId"] for each in cluster.instances("LoginNode")}
    cluster.update(cluster.with_max_count(20))
    assert cluster.stacks.status("parent") == "UPDATE_COMPLETE"
    assert cluster.stacks.status(cluster.name) == "UPDATE_COMPLETE"
    assert {each["InstanceId"] for each in cluster.instances("LoginNode")} == login_nodes

    refused = cluster.with_max_count(20)
    refused["HeadNode"]["InstanceType"] = "c6i.8xlarge"
    cluster.update(refused)
    assert cluster.stacks.status("parent") == "UPDATE_ROLLBACK_COMPLETE"
    reason = cluster.failure("Cluster", "UPDATE_FAILED")
    _, _, message = reason.partition("Message returned: ERROR: (truncated) ")
    assert len(message.rpartition(" (RequestId: ")[0]) == 240
    assert '"current_value": "c6i.4xlarge"' in message

    cluster.update(cluster.with_max_count(20), ClusterName="another")
    assert "Cannot update the ClusterName in the properties." in cluster.failure("Cluster", "UPDATE_FAILED")
