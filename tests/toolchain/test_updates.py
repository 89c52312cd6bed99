"""ParallelCluster's update check on changes of the trn1-16 cluster: what passes while the fleet runs, what is refused.

Configurations travel as CloudFormation's strings, because the check compares what it is given. "Running" means that the
fleet was not stopped; it may be without an instance.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from toolchain.cluster import as_strings
from toolchain.parallelcluster import ParallelCluster, Update

pytestmark = [pytest.mark.slow, pytest.mark.validation]

Configuration = dict[str, Any]
Edit = Callable[[Configuration], object]
Check = Callable[..., Update]

OTHER = "s3://bucket/other.sh"


def queue(configuration: Configuration) -> Configuration:
    first: Configuration = configuration["Scheduling"]["SlurmQueues"][0]
    return first


def resource(configuration: Configuration) -> Configuration:
    first: Configuration = queue(configuration)["ComputeResources"][0]
    return first


def actions(node: Configuration) -> Configuration:
    found: Configuration = node["CustomActions"]
    return found


def add_queue(configuration: Configuration) -> None:
    configuration["Scheduling"]["SlurmQueues"].append({**copy.deepcopy(queue(configuration)), "Name": "second"})


def add_resource(configuration: Configuration) -> None:
    queue(configuration)["ComputeResources"].append({**copy.deepcopy(resource(configuration)), "Name": "second"})


def another_file_system(configuration: Configuration) -> None:
    [storage] = configuration["SharedStorage"]
    storage["FsxLustreSettings"] = {"FileSystemId": "fs-0123456789abcdef0"}


def another_file_system_of_another_name(configuration: Configuration) -> None:
    another_file_system(configuration)
    configuration["SharedStorage"][0]["Name"] += "2"


ALLOWED: dict[str, Edit] = {
    "MaxCount up": lambda c: resource(c).update(MaxCount=20),
    "MinCount and MaxCount up together": lambda c: resource(c).update(MinCount=4, MaxCount=20),
    "another queue": add_queue,
    "another compute resource": add_resource,
    "a tag": lambda c: c["Tags"].append({"Key": "team", "Value": "blue"}),
    "who may use SSH": lambda c: c["HeadNode"]["Ssh"].update(AllowedIps="203.0.113.0/24"),
    "log retention": lambda c: c["Monitoring"]["Logs"]["CloudWatch"].update(RetentionInDays=30),
    "how Slurm schedules": lambda c: c["Scheduling"]["SlurmSettings"].update(
        CustomSlurmSettings=[{"SchedulerParameters": "defer"}]
    ),
    "exclusive jobs": lambda c: queue(c).update(JobExclusiveAllocation=False),
    "another file system under another name": another_file_system_of_another_name,
    "what the head node runs when it is updated": lambda c: actions(c["HeadNode"])["OnNodeUpdated"].update(
        Script=OTHER
    ),
    # These wait for the jobs on the nodes that they concern.
    "script of nodes": lambda c: actions(queue(c))["OnNodeConfigured"].update(Script=OTHER),
    "root volume of nodes": lambda c: queue(c)["ComputeSettings"]["LocalStorage"]["RootVolume"].update(Size=300),
    "subnet of nodes": lambda c: queue(c)["Networking"].update(SubnetIds=["subnet-0123456789abcdef0"]),
    "capacity reservation": lambda c: resource(c).update(
        CapacityReservationTarget={"CapacityReservationId": "cr-0123456789abcdef0"}
    ),
}

REFUSED_WHILE_RUNNING: dict[str, Edit] = {
    "MaxCount down": lambda c: resource(c).update(MaxCount=8),
    "MinCount up alone": lambda c: resource(c).update(MinCount=4),
    "instance type": lambda c: resource(c).update(InstanceType="trn1n.32xlarge"),
    "idle time": lambda c: c["Scheduling"]["SlurmSettings"].update(ScaledownIdletime=30),
    "name of a compute resource": lambda c: resource(c).update(Name="renamed"),
    "name of a queue": lambda c: queue(c).update(Name="renamed"),
    "EFA interface type": lambda c: c["DevSettings"].update(EfaInterfaceType="efa"),
}

REFUSED_ALWAYS: dict[str, Edit] = {
    "operating system": lambda c: c["Image"].update(Os="ubuntu2204"),
    "head node type": lambda c: c["HeadNode"].update(InstanceType="c6i.8xlarge"),
    "head node subnet": lambda c: c["HeadNode"]["Networking"].update(SubnetId="subnet-0123456789abcdef0"),
    "head node root volume": lambda c: c["HeadNode"]["LocalStorage"]["RootVolume"].update(Size=400),
    "where /home is": lambda c: c["HeadNode"].update(SharedStorageType="Efs"),
    "SSH key": lambda c: c["HeadNode"]["Ssh"].update(KeyName="key"),
    "what the head node runs when it is created": lambda c: actions(c["HeadNode"])["OnNodeConfigured"].update(
        Script=OTHER
    ),
    "another file system under the same name": another_file_system,
}


@pytest.fixture
def check(deployment: Callable[[str], Any], parallelcluster: ParallelCluster) -> Check:
    """Return the answer to an edit of the trn1-16 cluster."""
    configuration = deployment("trn1-16").request.configuration

    def checked(edit: Edit, **state: bool) -> Update:
        changed = copy.deepcopy(configuration)
        edit(changed)
        assert changed != configuration
        return parallelcluster.check_update(as_strings(configuration), as_strings(changed), **state)

    return checked


@pytest.mark.parametrize("edit", ALLOWED.values(), ids=ALLOWED)
def test_passes_on_a_running_fleet(edit: Edit, check: Check) -> None:
    update = check(edit, fleet_running=True)
    assert update.allowed, [change for change in update.changes if not change.allowed]


@pytest.mark.parametrize("edit", REFUSED_WHILE_RUNNING.values(), ids=REFUSED_WHILE_RUNNING)
def test_needs_a_stopped_fleet(edit: Edit, check: Check) -> None:
    running = check(edit, fleet_running=True)
    assert not running.allowed
    assert all("Stop the compute fleet" in change.action_needed for change in running.changes if not change.allowed)
    assert check(edit, fleet_running=False).allowed


@pytest.mark.parametrize("edit", REFUSED_ALWAYS.values(), ids=REFUSED_ALWAYS)
def test_needs_a_new_cluster_or_another_way(edit: Edit, check: Check) -> None:
    assert not check(edit, fleet_running=True).allowed
    assert not check(edit, fleet_running=False).allowed


def test_a_refusal_names_the_parameter_and_the_reason(check: Check) -> None:
    changes = check(lambda c: c["HeadNode"].update(InstanceType="c6i.8xlarge")).changes
    [refused] = [change for change in changes if not change.allowed]
    assert (refused.path, refused.old, refused.new) == ("HeadNode.InstanceType", "c6i.4xlarge", "c6i.8xlarge")
    assert "InstanceType" in refused.reason


def test_the_same_configuration_is_no_change(
    deployment: Callable[[str], Any], parallelcluster: ParallelCluster
) -> None:
    # Otherwise a refused update makes a real one: CloudFormation sends the old configuration to roll back.
    configuration = as_strings(deployment("trn1-16").request.configuration)
    assert parallelcluster.check_update(configuration, configuration).changes == ()


def test_removing_a_queue_needs_terminate(deployment: Callable[[str], Any], parallelcluster: ParallelCluster) -> None:
    one = deployment("trn1-16").request.configuration
    two = copy.deepcopy(one)
    add_queue(two)
    assert not parallelcluster.check_update(as_strings(two), as_strings(one)).allowed
    one = copy.deepcopy(one)
    one["Scheduling"]["SlurmSettings"]["QueueUpdateStrategy"] = "TERMINATE"
    assert parallelcluster.check_update(as_strings(two), as_strings(one)).allowed
