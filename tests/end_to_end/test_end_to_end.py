"""Every configuration in config/, from its stacks to the launch templates of the nodes, and gone again.

One of them with the command lines of the CDK, AWS and ParallelCluster; the others without, for these take the time.
"""

import io
import json
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import Settings
from emulator.aws import ACCOUNT, EmulatedAws
from emulator.cdk import CommandLine
from emulator.inventory import inventory
from scripts import emulated
from scripts.commands.validate import environments
from scripts.deployment import PARTS
from scripts.emulated import reason_to_stay
from scripts.rehearse.rehearsal import Assemblies, Edit, raise_max_count, remove_protection
from tests.deployed import DeployedAccount, create_stacks, planned, update_stack
from tests.stacks.deployments import Deployment as Synthesized
from tests.stacks.deployments import deploy, edited
from toolchain.assembly import Assembly
from toolchain.cluster import CLUSTER_TYPE, as_strings
from toolchain.parallelcluster import PYTHON
from toolchain.values import Evaluator, Scope

pytestmark = pytest.mark.validation

ROOT = Path(__file__).parents[2]
NODE_SCRIPTS = ROOT / "nodes"
RUNNER = ROOT / "constructs" / "ultracluster" / "run_bundle.sh"
QUICK = "dev"
ELSEWHERE = "trn1-16"
"""Lives in test_life.py, and is what most tests of commands have."""
TOOL = "parallelcluster:custom_resource"
"""The tag that the provider gives to its clusters."""


class Deployed:
    """A deployment, as its APIs and tools show it."""

    def __init__(self, assemblies: Assemblies, aws: EmulatedAws, *edits: Edit) -> None:
        self._assemblies = assemblies
        self._edits = (remove_protection, *edits)
        self.settings: Settings = self.add("created")
        self.name = self.settings.name
        self._aws = aws
        self._cdk = CommandLine(aws)
        self.before: set[tuple[str, str]] = set()

    def prepare(self, *edits: Edit) -> None:
        """Bring an account into the state that README asks for, and synthesize a change."""
        emulated.create_prerequisites(self._aws, self.add("changed", *edits))
        assert self._cdk.bootstrap(self.settings.region) == 0
        self.before = self.inventory()

    def create(self) -> None:
        """Make the stacks without the CDK's command line."""
        emulated.create_prerequisites(self._aws, self.settings)
        emulated.bootstrap(self._aws, self.settings)
        self.before = self.inventory()
        create_stacks(self._aws, Synthesized(self.settings, Path(self._assemblies.directory("created"))))

    def planned(self, assembly: str, settings: Settings) -> dict[str, list[dict[str, Any]]]:
        """Return what change sets for an assembly say, by part."""
        synthesized = Synthesized(settings, Path(self._assemblies.directory(assembly)))
        return {part: planned(self._aws, synthesized, part) for part in PARTS}

    def add(self, assembly: str, *edits: Edit) -> Settings:
        """Synthesize changed settings under a name."""
        return self._assemblies.add(assembly, *self._edits, *edits)

    def delete(self) -> None:
        """Delete the stacks without the CDK's command line."""
        cloudformation = self.client("cloudformation")
        for part in reversed(PARTS):
            cloudformation.delete_stack(StackName=f"{self.name}-{part}")
            cloudformation.get_waiter("stack_delete_complete").wait(
                StackName=f"{self.name}-{part}", WaiterConfig={"Delay": 0.2, "MaxAttempts": 3000}
            )

    def cdk(self, assembly: str, command: str, *arguments: str) -> list[str]:
        """Run a command of the CDK, which has to succeed, and return what it says."""
        said: list[str] = []
        directory = self._assemblies.directory(assembly)
        code = self._cdk.run(command, *arguments, "--app", directory, report=said.append)
        assert code == 0, "\n".join(said)
        return said

    def run(self, tool: str, *arguments: str) -> Any:
        """Run a command line tool of AWS in ParallelCluster's environment, and return its answer."""
        done = subprocess.run(
            [PYTHON.parent / tool, *arguments, "--region", self.settings.region],
            env=self._aws.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def client(self, service: str) -> Any:
        return self._aws.client(service, self.settings.region)

    def inventory(self) -> set[tuple[str, str]]:
        return inventory(self._aws, self.settings.region)

    def stacks(self) -> dict[str, dict[str, Any]]:
        return {stack["StackName"]: stack for stack in self.client("cloudformation").describe_stacks()["Stacks"]}

    def outputs(self, stack_name: str) -> dict[str, str]:
        return {each["OutputKey"]: each["OutputValue"] for each in self.stacks()[stack_name]["Outputs"]}

    def summary(self, part: str) -> dict[str, Any]:
        """Return what a stack tells scripts: network, storage or cluster."""
        found: dict[str, Any] = json.loads(self.outputs(f"{self.name}-{part}")["Summary"])
        return found

    def events(self) -> set[str]:
        """Return the ids of all events of all stacks that there are."""
        cloudformation = self.client("cloudformation")
        pages = [
            page
            for name in self.stacks()
            for page in cloudformation.get_paginator("describe_stack_events").paginate(StackName=name)
        ]
        return {event["EventId"] for page in pages for event in page["StackEvents"]}

    def rendered(self, assembly: str) -> dict[str, Any]:
        """Return the cluster's configuration in the template, with the values that its references have by now."""
        template = Assembly(Path(self._assemblies.directory(assembly))).stacks[f"{self.name}-cluster"].template
        [resource] = [each for each in template["Resources"].values() if each["Type"] == CLUSTER_TYPE]
        scope = Described(self.client("cloudformation"), f"{self.name}-cluster")
        configuration: dict[str, Any] = Evaluator(scope).evaluate(resource["Properties"]["ClusterConfiguration"])
        return configuration

    def stored(self) -> dict[str, Any]:
        """Return the configuration that ParallelCluster keeps of the cluster."""
        stack = self.stacks()[self.cluster_name]
        place = {each["ParameterKey"]: each["ParameterValue"] for each in stack["Parameters"]}
        key = f"{place['ArtifactS3RootDirectory']}/configs/cluster-config.yaml"
        answer = self.client("s3").get_object(Bucket=place["ResourcesS3Bucket"], Key=key)
        found: dict[str, Any] = yaml.safe_load(answer["Body"].read())
        return found

    def content(self, address: str) -> bytes:
        """Return the object at an S3 address."""
        bucket, _, key = address.removeprefix("s3://").partition("/")
        content: bytes = self.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        return content

    @property
    def cluster_name(self) -> str:
        return self.settings.cluster.name or self.name


class Described(Scope):
    """What the references of a deployed stack stand for, as CloudFormation describes its stacks."""

    def __init__(self, cloudformation: Any, stack_name: str) -> None:
        self._cloudformation = cloudformation
        self._stack_name = stack_name

    def ref(self, name: str) -> str:
        if name == "AWS::AccountId":
            return ACCOUNT
        answer = self._cloudformation.describe_stack_resource(StackName=self._stack_name, LogicalResourceId=name)
        physical: str = answer["StackResourceDetail"]["PhysicalResourceId"]
        return physical

    def attribute(self, logical_id: str, attribute: str) -> str:
        assert attribute == "GroupName", "of a placement group, whose physical id is its name"
        return self.ref(logical_id)

    def stack_output(self, region: str | None, stack_name: str, output: str) -> str:
        [stack] = self._cloudformation.describe_stacks(StackName=stack_name)["Stacks"]
        return {each["OutputKey"]: str(each["OutputValue"]) for each in stack["Outputs"]}[output]

    def import_value(self, name: str) -> str:
        return {each["Name"]: str(each["Value"]) for each in self._cloudformation.list_exports()["Exports"]}[name]


def grow_and_tag(settings: dict[str, Any]) -> None:
    file_system = settings["storage"]["file_system"]
    file_system["capacity_gib"] = file_system["capacity_gib"] // 2400 * 2400 + 2400
    settings["tags"]["project"] = "another"


def link_to_a_bucket(settings: dict[str, Any]) -> None:
    settings["storage"]["data_repositories"] = [{"path": "/data"}]


def without_links(settings: dict[str, Any]) -> None:
    settings["storage"]["data_repositories"] = []


def persistent(settings: dict[str, Any]) -> None:
    settings["storage"]["file_system"] |= {"deployment_type": "PERSISTENT_2", "throughput_mbps_per_tib": 125}


def tell_somebody(settings: dict[str, Any]) -> None:
    settings["monitoring"]["emails"] = ["me@example.com"]


@pytest.fixture
def deployment(tmp_path: Path, aws: EmulatedAws) -> Iterator[Callable[..., Deployed]]:
    """Return a function that synthesizes a configuration so that its deployment can go again."""
    with ExitStack() as made:

        def synthesize(environment: str, *edits: Edit) -> Deployed:
            found = Assemblies(environment, tmp_path)
            made.callback(found.close)
            return Deployed(found, aws, *edits)

        yield synthesize


@pytest.mark.slow
@pytest.mark.parametrize("environment", [name for name in environments() if name not in (QUICK, ELSEWHERE)])
def test_it_deploys_and_goes(environment: str, deployment: Callable[..., Deployed]) -> None:
    found = deployment(environment)
    found.create()
    check_deployment(found)
    check_growth(found.planned("grown", found.add("grown", grow_and_tag)))
    found.delete()
    assert left_behind(found) == []


@pytest.mark.slow
def test_a_larger_file_system_replaces_nothing(deployed: Callable[[str], DeployedAccount], tmp_path: Path) -> None:
    grown = deploy(edited(ELSEWHERE, grow_and_tag), tmp_path)
    with deployed(ELSEWHERE).clone() as aws:
        check_growth({part: planned(aws, grown, part) for part in PARTS})


@pytest.mark.slow
def test_another_tag_changes_everything_in_place(deployed: Callable[[str], DeployedAccount], tmp_path: Path) -> None:
    changed = deploy(edited("trn1-16", lambda raw: raw["tags"].update(project="another")), tmp_path)
    region, parts = changed.settings.region, ("network", "storage", "monitoring")
    with deployed("trn1-16").clone() as aws:
        ec2, pages = aws.client("ec2", region), aws.client("cloudformation", region).get_paginator
        own = {
            resource["PhysicalResourceId"]
            for part in parts
            for page in pages("list_stack_resources").paginate(StackName=changed.stack_name(part))
            for resource in page["StackResourceSummaries"]
        }

        def tagged(project: str) -> set[str]:
            tags = ec2.describe_tags(Filters=[{"Name": "tag:project", "Values": [project]}])["Tags"]
            return {each["ResourceId"] for each in tags} & own

        before, resources = tagged("trn1-ultracluster"), inventory(aws, region)
        for part in parts:
            update_stack(aws, changed, part)
        assert inventory(aws, region) == resources
        assert tagged("another") == before != set()
        [system] = aws.client("fsx", region).describe_file_systems()["FileSystems"]
        assert {"Key": "project", "Value": "another"} in system["Tags"]


@pytest.mark.slow
def test_by_the_command_lines(
    deployment: Callable[..., Deployed], tmp_path: Path, wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    """One life after another: a deployment takes longer than all else here."""
    dev = deployment(QUICK, link_to_a_bucket)
    dev.prepare(raise_max_count, tell_somebody)
    dev.cdk("created", "deploy", "--all", "--require-approval", "never")
    check_deployment(dev)
    check_aws_and_parallelcluster(dev)

    events, resources = dev.events(), dev.inventory()
    said = dev.cdk("created", "deploy", "--all", "--require-approval", "never")
    assert {line.split()[1] for line in said if line.endswith("(no changes)")} == stack_names(dev)
    assert dev.events() == events

    check_growth(dev.planned("grown", dev.add("grown", grow_and_tag)))

    dev.cdk("changed", "deploy", "--all", "--require-approval", "never")
    check_configuration(dev, "changed")
    check_monitoring(dev, ["me@example.com"])
    assert dev.stacks()[dev.cluster_name]["StackStatus"] == "UPDATE_COMPLETE"
    assert dev.inventory() == resources, "nothing is replaced by a change of max_count"

    # What other stacks refer to goes, or is replaced, in one deployment each (docs/adr/0003).
    bucket, first = dev.summary("storage")["bucket"], dev.summary("storage")["file_system_id"]
    dev.add("unlinked", raise_max_count, tell_somebody, without_links)
    dev.cdk("unlinked", "deploy", "--all", "--require-approval", "never")
    assert ("AWS::S3::Bucket", bucket) not in dev.inventory()
    assert "bucket" not in dev.summary("cluster")
    dev.add("replaced", raise_max_count, tell_somebody, without_links, persistent)
    dev.cdk("replaced", "deploy", "--all", "--require-approval", "never")
    [system] = dev.client("fsx").describe_file_systems()["FileSystems"]
    assert system["FileSystemId"] != first
    assert dev.summary("cluster")["file_system_id"] == system["FileSystemId"]
    assert dev.stored()["SharedStorage"][0]["FsxLustreSettings"]["FileSystemId"] == system["FileSystemId"]
    check_configuration(dev, "replaced")
    check_monitoring(dev, ["me@example.com"])

    updated = dev.stacks()["dev"]["LastUpdatedTime"]
    change_by_parallelcluster(dev, tmp_path / "cluster.yaml")
    wait_for(lambda: dev.stacks()["dev"]["LastUpdatedTime"] != updated)
    wait_for(lambda: dev.stacks()["dev"]["StackStatus"] == "UPDATE_COMPLETE")
    # The cluster goes behind CloudFormation's back; its stack is destroyed all the same.
    dev.run("pcluster", "delete-cluster", "--cluster-name", "dev")
    wait_for(lambda: "dev" not in dev.stacks())
    dev.cdk("replaced", "destroy", "--all", "--force")
    assert left_behind(dev) == []


def check_deployment(deployment: Deployed) -> None:
    names = stack_names(deployment)
    own = {name: stack for name, stack in deployment.stacks().items() if name in names}
    assert {name: stack["StackStatus"] for name, stack in own.items()} == dict.fromkeys(names, "CREATE_COMPLETE")
    check_configuration(deployment, "created")
    check_network(deployment)
    check_file_system(deployment)
    check_head_node(deployment)
    check_nodes(deployment)
    check_scripts(deployment)
    check_monitoring(deployment, [])


def check_growth(said: Mapping[str, list[dict[str, Any]]]) -> None:
    """No change set for a larger file system and another tag replaces anything, or may.

    https://github.com/aws/aws-cdk/issues/38829
    """
    for changes in said.values():
        assert {(each["Action"], each["Replacement"]) for each in changes} == {("Modify", "False")}
    [system] = [each for each in said["storage"] if each["ResourceType"] == "AWS::FSx::FileSystem"]
    assert {each["Target"].get("Name") for each in system["Details"]} == {"StorageCapacity", None}


def left_behind(deployment: Deployed) -> list[tuple[str, str]]:
    left = deployment.inventory() - deployment.before
    return [each for each in left if not reason_to_stay(deployment.settings, *each)]


def stack_names(deployment: Deployed) -> set[str]:
    return {f"{deployment.name}-{part}" for part in ("network", "storage", "cluster", "monitoring")}


def check_configuration(deployment: Deployed, assembly: str) -> None:
    """What ParallelCluster was given is what the template says, with the tags that the provider adds."""
    stored, rendered = deployment.stored(), deployment.rendered(assembly)
    tags = {tag["Key"]: tag["Value"] for tag in rendered.pop("Tags")}
    assert {tag["Key"]: tag["Value"] for tag in stored.pop("Tags")} == {**tags, TOOL: "cluster"}
    assert as_strings(stored) == as_strings(rendered)


def check_network(deployment: Deployed) -> None:
    ec2, settings, summary = deployment.client("ec2"), deployment.settings.network, deployment.summary("cluster")
    inside = [{"Name": "vpc-id", "Values": [summary["vpc_id"]]}]
    [vpc] = ec2.describe_vpcs(VpcIds=[summary["vpc_id"]])["Vpcs"]
    assert vpc["CidrBlock"] == settings.cidr
    subnets = {each["SubnetId"]: each for each in ec2.describe_subnets(Filters=inside)["Subnets"]}
    assert {name: (each["CidrBlock"], each["AvailabilityZoneId"]) for name, each in subnets.items()} == {
        summary["public_subnet_id"]: (settings.public_subnet_cidr, deployment.settings.zone_id),
        summary["private_subnet_id"]: (settings.private_subnet_cidr, deployment.settings.zone_id),
    }
    [gateway] = ec2.describe_nat_gateways(Filters=inside)["NatGateways"]
    assert (gateway["State"], gateway["SubnetId"]) == ("available", summary["public_subnet_id"])
    assert len(gateway["NatGatewayAddresses"]) == settings.nat_addresses
    endpoints = ec2.describe_vpc_endpoints(Filters=inside)["VpcEndpoints"]
    region = deployment.settings.region
    assert sorted((each["VpcEndpointType"], each["ServiceName"]) for each in endpoints) == [
        ("Gateway", f"com.amazonaws.{region}.dynamodb"),
        ("Gateway", f"com.amazonaws.{region}.s3"),
        *(("Interface", f"com.amazonaws.{region}.{name}") for name in sorted(settings.endpoint_services)),
    ]


def check_file_system(deployment: Deployed) -> None:
    settings, summary = deployment.settings.storage.file_system, deployment.summary("cluster")
    [found] = deployment.client("fsx").describe_file_systems()["FileSystems"]
    assert (found["FileSystemId"], found["Lifecycle"]) == (summary["file_system_id"], "AVAILABLE")
    assert found["SubnetIds"] == [summary["private_subnet_id"]]
    assert found["StorageCapacity"] == settings.capacity_gib
    lustre = found["LustreConfiguration"]
    assert lustre["DeploymentType"] == settings.deployment_type
    assert lustre["MountName"] == summary["mount_name"]
    assert lustre.get("PerUnitStorageThroughput") == settings.throughput_mbps_per_tib


def check_monitoring(deployment: Deployed, emails: list[str]) -> None:
    summary, sns = deployment.summary("monitoring"), deployment.client("sns")
    cloudwatch = deployment.client("cloudwatch")
    alarms = cloudwatch.describe_alarms(AlarmNamePrefix=summary["alarm_prefix"])["MetricAlarms"]
    assert all(alarm["AlarmActions"] == [summary["topic_arn"]] for alarm in alarms)
    watched = {each["Name"]: each["Value"] for alarm in alarms for each in alarm["Dimensions"]}
    [gateway] = deployment.client("ec2").describe_nat_gateways()["NatGateways"]
    assert watched["Cluster"] == deployment.cluster_name
    assert watched["FileSystemId"] == deployment.summary("storage")["file_system_id"]
    assert watched["NatGatewayId"] == gateway["NatGatewayId"]
    body = cloudwatch.get_dashboard(DashboardName=summary["dashboard"])["DashboardBody"]
    assert watched["FileSystemId"] in json.dumps(json.loads(body))
    subscriptions = sns.list_subscriptions_by_topic(TopicArn=summary["topic_arn"])["Subscriptions"]
    assert [each["Endpoint"] for each in subscriptions] == emails


def check_head_node(deployment: Deployed) -> None:
    ec2, settings, summary = deployment.client("ec2"), deployment.settings.cluster, deployment.summary("cluster")
    [reservation] = ec2.describe_instances(InstanceIds=[summary["head_node_instance_id"]])["Reservations"]
    [head_node] = reservation["Instances"]
    assert (head_node["State"]["Name"], head_node["InstanceType"]) == ("running", settings.head_node.instance_type)
    assert head_node["PrivateIpAddress"] == summary["head_node_private_ip"]
    subnet = "public_subnet_id" if settings.head_node.public else "private_subnet_id"
    assert head_node["SubnetId"] == summary[subnet]
    assert bool(head_node.get("PublicIpAddress")) == settings.head_node.public
    [image] = ec2.describe_images(ImageIds=[head_node["ImageId"]])["Images"]
    assert image["Name"].startswith(f"aws-parallelcluster-{settings.parallelcluster_version}-ubuntu-2404-")


def check_nodes(deployment: Deployed) -> None:
    """Each compute resource has its launch template: interfaces, placement group, subnet, image, reservation."""
    ec2, cluster, summary = deployment.client("ec2"), deployment.settings.cluster_spec, deployment.summary("cluster")
    groups = {group["GroupName"]: group for group in ec2.describe_placement_groups()["PlacementGroups"]}
    assert groups.keys() == set(summary["placement_groups"].values())
    assert {group["Strategy"] for group in groups.values()} <= {"cluster"}
    for queue in cluster.queues:
        for resource in queue.compute_resources:
            data = launch_template(ec2, f"{deployment.cluster_name}-{queue.name}-{resource.name}")
            assert data["InstanceType"] == resource.instance_type == "trn1.32xlarge"
            interfaces = data["NetworkInterfaces"]
            kinds = [each.get("InterfaceType", "interface") for each in interfaces]
            assert sorted(kinds) == ["efa-only"] * 8 + ["interface"]
            assert {each["SubnetId"] for each in interfaces} == {summary["private_subnet_id"]}
            group = data.get("Placement", {}).get("GroupName")
            label = queue.placement_group_label
            assert group == (summary["placement_groups"][label] if label else None)
            target = data.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
            assert target.get("CapacityReservationId") == resource.capacity_reservation_id
            [image] = ec2.describe_images(ImageIds=[data["ImageId"]])["Images"]
            assert image["Name"].startswith(f"aws-parallelcluster-{cluster.parallelcluster_version}-ubuntu-2404-")


def check_scripts(deployment: Deployed) -> None:
    """What the CDK's command line uploaded is what nodes fetch: the runner, and the scripts of this project."""
    configuration = deployment.stored()
    for node in (configuration["HeadNode"], *configuration["Scheduling"]["SlurmQueues"]):
        action = node["CustomActions"].get("OnNodeUpdated") or node["CustomActions"]["OnNodeConfigured"]
        address, _, entry, *_ = action["Args"]
        assert deployment.content(action["Script"]) == RUNNER.read_bytes()
        with zipfile.ZipFile(io.BytesIO(deployment.content(address))) as bundle:
            assert {name: bundle.read(name) for name in bundle.namelist()} == {
                str(path.relative_to(NODE_SCRIPTS)): path.read_bytes()
                for path in NODE_SCRIPTS.rglob("*")
                if path.is_file() and "__pycache__" not in path.parts
            }
            assert entry in bundle.namelist()


def launch_template(ec2: Any, name: str) -> dict[str, Any]:
    [version] = ec2.describe_launch_template_versions(LaunchTemplateName=name, Versions=["$Latest"])[
        "LaunchTemplateVersions"
    ]
    data: dict[str, Any] = version["LaunchTemplateData"]
    return data


def check_aws_and_parallelcluster(dev: Deployed) -> None:
    """What AWS's and ParallelCluster's command lines say of a deployment."""
    summary = dev.summary("cluster")
    for asked, ids in (
        (["fsx", "describe-file-systems", "--query", "FileSystems[].FileSystemId"], [summary["file_system_id"]]),
        (["ec2", "describe-vpcs", "--query", "Vpcs[?!IsDefault].VpcId"], [summary["vpc_id"]]),
        (["ec2", "describe-nat-gateways", "--query", "NatGateways[].SubnetId"], [summary["public_subnet_id"]]),
        (
            ["ec2", "describe-placement-groups", "--query", "PlacementGroups[].GroupName"],
            list(summary["placement_groups"].values()),
        ),
        (
            ["ec2", "describe-instances", "--query", "Reservations[].Instances[].InstanceId"],
            [summary["head_node_instance_id"]],
        ),
        (["cloudformation", "describe-stacks", "--stack-name", "dev", "--query", "Stacks[].StackName"], ["dev"]),
    ):
        assert dev.run("aws", *asked) == ids

    cluster = dev.run("pcluster", "describe-cluster", "--cluster-name", "dev")
    assert cluster["clusterStatus"] == "CREATE_COMPLETE"
    assert cluster["computeFleetStatus"] == "RUNNING"
    assert cluster["headNode"]["instanceId"] == summary["head_node_instance_id"]
    listed = dev.run("pcluster", "list-clusters")["clusters"]
    assert [(each["clusterName"], each["clusterStatus"]) for each in listed] == [("dev", "CREATE_COMPLETE")]


def change_by_parallelcluster(dev: Deployed, path: Path) -> None:
    """Raise MaxCount with ParallelCluster's own command line."""
    configuration = dev.stored()
    configuration["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]["MaxCount"] = 4
    path.write_text(yaml.safe_dump(configuration), encoding="utf-8")
    arguments = ["--cluster-name", "dev", "--cluster-configuration", str(path)]
    suppressed = ["--suppress-validators", "type:KeyPairValidator"]
    [change] = dev.run("pcluster", "update-cluster", *arguments, *suppressed)["changeSet"]
    assert (change["parameter"].rpartition(".")[2], change["requestedValue"]) == ("MaxCount", "4")
