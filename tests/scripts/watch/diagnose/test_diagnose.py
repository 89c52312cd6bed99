"""The cause of a failed operation: which evidence counts."""

from datetime import timedelta

import pytest

from scripts.watch.diagnose.diagnose import LINES_OF_UNKNOWN, diagnose
from tests.scripts.watch.diagnose.causes.recorded import (
    HEAD_NODE,
    NOW,
    PROVIDER_GROUP,
    QUOTA,
    deployment,
    failed,
    ids,
    shown,
    stack_id,
    stream,
)

TIMEOUT = "CREATE_FAILED AWS::CloudFormation::WaitCondition Wait: WaitCondition timed out. Received 0 conditions"
NO_ROUTE = 'Connect timeout on endpoint URL: "https://dynamodb.us-west-2.amazonaws.com/"  # an error'


def test_the_earliest_failure_of_the_newest_operation_counts() -> None:
    made, account, stack = failed(noise=True)
    account.event(stack, 5, "CREATE_FAILED AWS::EC2::VPC Vpc: The maximum number of VPCs has been reached.")
    account.event(stack, 4, "CREATE_FAILED AWS::EC2::EIP A: The maximum number of addresses has been reached.")
    account.event(stack, 3, "CREATE_FAILED AWS::SSM::Parameter B: Resource creation cancelled")
    diagnosis = diagnose(made)
    assert (ids(diagnosis), diagnosis.unknown) == (["address-quota", "vpc-quota"], ())


def test_of_several_stacks_that_failed_the_newest_operation_counts() -> None:
    made, account = deployment(network="UPDATE_ROLLBACK_COMPLETE", cluster="ROLLBACK_COMPLETE")
    for part, minute in (("network", 20), ("cluster", 10)):
        stack = made.stack_name(part)
        account.event(stack, minute, f"CREATE_IN_PROGRESS AWS::CloudFormation::Stack {stack}: ")
        account.event(stack, minute + 1, QUOTA if part == "network" else TIMEOUT)
    diagnosis = diagnose(made)
    assert diagnosis.operation is not None
    assert (diagnosis.operation.stack, ids(diagnosis)) == (made.stack_name("network"), ["address-quota"])


def test_nested_stacks_are_gone_through_to_what_failed_first() -> None:
    made, account, stack = failed()
    account.event("inner", 2, QUOTA)
    account.event("middle", 3, "CREATE_FAILED AWS::CloudFormation::Stack Inner: ", stack_id("inner"))
    account.event(
        stack,
        4,
        "CREATE_FAILED AWS::CloudFormation::Stack Middle: Embedded stack arn:x was not successfully created: The "
        "following resource(s) failed to create: [Inner].",
        stack_id("middle"),
    )
    diagnosis = diagnose(made)
    assert ids(diagnosis) == ["address-quota"]
    assert diagnosis.causes[0].evidence[0].source == "inner"


@pytest.mark.parametrize("is_deleted", [False, True])
def test_the_clusters_own_stack_is_found_even_if_it_is_deleted(is_deleted: bool) -> None:
    made, account, stack = failed()
    name = made.settings.cluster_spec.name
    account.event(name, 2, "CREATE_FAILED AWS::EC2::Instance HeadNode: We currently do not have sufficient c6i.4xlarge "
                           "capacity in the Availability Zone you requested (us-west-2d).")  # fmt: skip
    account.event(stack, 3, f"CREATE_FAILED Custom::PclusterCluster Cluster: {name}: ClusterCreationFailure")
    if is_deleted:
        early = {"StackName": name, "StackId": stack_id("other"), "DeletionTime": NOW - timedelta(days=1)}
        account.event("other", 1, QUOTA)
        account.deleted = [early, {"StackName": name, "StackId": stack_id(name), "DeletionTime": NOW}]
    else:
        account.stacks[name] = "ROLLBACK_IN_PROGRESS"
    diagnosis = diagnose(made)
    assert ids(diagnosis) == ["insufficient-capacity", "cluster-failed"]
    assert diagnosis.causes[0].why.startswith("EC2 has not enough instances of c6i.4xlarge left in us-west-2d.")


def test_the_cause_behind_a_symptom_is_found_in_the_logs_and_both_are_shown() -> None:
    made, account, stack = failed()
    account.line(stream("boot"), 1, NO_ROUTE)
    account.line(stream("daemon"), 0.5, "ERROR something else")
    account.event(stack, 35, TIMEOUT)
    diagnosis = diagnose(made)
    assert ids(diagnosis) == ["no-route", "head-node-timeout"]
    assert [each.kind for each in diagnosis.causes[0].evidence] == ["event", "boot"]


def test_why_slurm_did_not_start_is_shown_with_its_last_words() -> None:
    """Chef tells that it did not, and slurmctld's own log why; another node's tells nothing of it."""
    made, account, stack = failed()
    account.line(stream("slurm", "slurmctld"), 1, "error: of before")
    account.line(stream("slurm", "slurmctld"), 2, "error: Couldn't find the specified plugin name for job_submit/acme")
    account.line(stream("slurm", "slurmctld"), 2.1, "error: cannot create job_submit context for job_submit/acme")
    account.line(stream("slurm", "slurmctld"), 2.2, "fatal: failed to initialize job_submit plugin")
    account.line("ip-10-0-1-9.i-0c.slurmd", 2.3, "error: Unable to contact slurm controller")
    account.line(stream("boot", "chef-client"), 3, "ERROR: check slurmctld status: slurmctld does not answer:")
    account.line(stream("slurm", "slurmctld"), 4, "error: after it")
    failed_by = "WaitCondition received failed message: 'Update failed'"
    account.event(stack, 5, f"CREATE_FAILED AWS::CloudFormation::WaitCondition W: {failed_by}")
    diagnosis = diagnose(made)
    assert ids(diagnosis) == ["slurm-did-not-start", "head-node-failed"]
    evidence = [each.text.partition(":")[0] for each in diagnosis.causes[0].evidence[1:]]
    assert evidence == ["ERROR", "error", "error", "fatal"]
    assert "Couldn't find" in diagnosis.causes[0].evidence[2].text


def test_of_the_logs_the_line_nearest_to_the_failure_counts() -> None:
    made, account, stack = failed()
    account.line(stream("boot"), 1, NO_ROUTE)
    account.line(stream("boot"), 20, "head_node.sh: failed (20): pip cannot install the packages. To do: see above.")
    account.event(stack, 21, TIMEOUT)
    account.event(stack, 60, "DELETE_FAILED AWS::SSM::Parameter P: something")
    account.line(stream("boot"), 30, "error: No space left on device")
    assert ids(diagnose(made))[:2] == ["node-script", "no-route"]


def test_logs_of_another_kind_or_time_do_not_explain_a_symptom() -> None:
    made, account, stack = failed()
    account.line(stream("slurm"), 1, "error: No space left on device")
    account.line(stream("boot"), -5, NO_ROUTE)
    account.line(stream("boot"), 45, NO_ROUTE)
    account.event(stack, 35, TIMEOUT)
    assert ids(diagnose(made)) == ["head-node-timeout"]


@pytest.mark.parametrize(
    ("status", "cause", "command"),
    [
        ("UPDATE_ROLLBACK_FAILED", "rollback-failed", "./ultracluster deploy trn1-16"),
        ("ROLLBACK_FAILED", "creation-rollback-failed", "./ultracluster destroy trn1-16"),
    ],
)
def test_a_stack_that_cannot_roll_back_is_shown_beside_the_cause(status: str, cause: str, command: str) -> None:
    made, account, stack = failed()
    account.stacks[stack] = status
    account.event(stack, 1, "UPDATE_FAILED AWS::EC2::EIP A: The maximum number of addresses has been reached.")
    account.event("inner", 2, f"{status} AWS::CloudFormation::Stack inner: The following resource(s)")
    account.event(stack, 3, "UPDATE_FAILED AWS::CloudFormation::Stack Inner: Embedded stack x", stack_id("inner"))
    account.event(stack, 4, f"{status} AWS::CloudFormation::Stack {stack}: The following resource(s)")
    diagnosis = diagnose(made)
    assert ids(diagnosis) == ["address-quota", cause]
    assert command in " ".join(diagnosis.causes[1].to_do)
    assert stack in diagnosis.causes[1].why


def test_the_rollback_of_the_clusters_own_stack_names_that_stack() -> None:
    made, account, stack = failed()
    name = made.settings.cluster_spec.name
    account.stacks[name] = "UPDATE_ROLLBACK_FAILED"
    account.instances = {HEAD_NODE: "running"}
    account.event(stack, 1, f"UPDATE_FAILED Custom::PclusterCluster Cluster: {name}")
    account.event(name, 2, f"UPDATE_ROLLBACK_FAILED AWS::CloudFormation::Stack {name}: The following resource(s)")
    assert diagnose(made).causes[0].why.startswith(f"{name} is stuck")


@pytest.mark.parametrize("cluster", ["", "CREATE_COMPLETE"])
def test_the_clusters_own_stack_counts_also_when_the_one_above_is_gone_or_fine(cluster: str) -> None:
    made, account = deployment(**({"cluster": cluster} if cluster else {}))
    name = made.settings.cluster_spec.name
    account.stacks[name] = "DELETE_FAILED"
    account.event(name, 1, f"DELETE_IN_PROGRESS AWS::CloudFormation::Stack {name}: User Initiated")
    account.event(name, 2, "DELETE_FAILED AWS::S3::Bucket Bucket: The bucket you tried to delete is not empty")
    diagnosis = diagnose(made)
    assert (diagnosis.operation and diagnosis.operation.stack, ids(diagnosis)) == (name, ["bucket-not-empty"])


def test_the_command_that_lists_users_of_a_network_names_its_vpc() -> None:
    made, account, stack = failed()
    text = "DELETE_FAILED AWS::EC2::Subnet A: The subnet 'subnet-0a1b' has dependencies and cannot be deleted."
    account.event(stack, 1, text, "subnet-0a1b", ResourceProperties='{"VpcId": "vpc-0a1b2c3d"}')
    [cause] = diagnose(made).causes
    assert "Name=vpc-id,Values=vpc-0a1b2c3d " in " ".join(cause.to_do)


def test_a_provider_that_no_event_names_is_found_by_its_stack() -> None:
    made, account, stack = failed()
    account.event(stack, 2, 'CREATE_FAILED Custom::PclusterCluster Cluster: Message returned: ... "message": "x"}]}')
    nested = {"ResourceType": "AWS::CloudFormation::Stack", "ResourceStatus": "DELETE_COMPLETE"}
    log = {"ResourceType": "AWS::Logs::LogGroup", "ResourceStatus": "DELETE_SKIPPED"}
    account.resources = {
        stack: [
            {**nested, "LogicalResourceId": "Other", "PhysicalResourceId": stack_id("gone")},
            {**nested, "LogicalResourceId": "Provider", "PhysicalResourceId": stack_id("provider")},
        ],
        "provider": [{**log, "LogicalResourceId": "Log", "PhysicalResourceId": PROVIDER_GROUP}],
    }
    account.line(stream("provider"), 1, '[ERROR] "message": "Invalid cluster configuration."', PROVIDER_GROUP)
    assert ids(diagnose(made)) == ["configuration-refused"]


def test_an_unknown_failure_shows_itself_the_logs_and_where_to_read_on() -> None:
    made, account, stack = failed()
    account.event(stack, 3, f"CREATE_FAILED Custom::PclusterCluster Cluster: Strange (LogGroup: {PROVIDER_GROUP})")
    for number in range(10):
        account.line(stream("provider"), 2, f"error: strange thing {number}", PROVIDER_GROUP)
    diagnosis = diagnose(made)
    assert diagnosis.failed
    assert diagnosis.causes == ()
    assert diagnosis.unknown[0].text.startswith("CREATE_FAILED Custom::PclusterCluster Cluster: Strange")
    assert [each.text[-1] for each in diagnosis.unknown[1:]] == list("56789")
    assert len(diagnosis.unknown) == 1 + LINES_OF_UNKNOWN
    text = shown(diagnosis)
    assert "No known cause. This failed first:" in text
    assert f"describe-stack-events --stack-name {stack} " in " ".join(text.split())
    assert f"logs filter-log-events --log-group-name {PROVIDER_GROUP}" in text
    assert "./ultracluster logs" not in text, "there are no logs of nodes"
    assert diagnosis.outcome == "unknown"


def test_commands_to_read_on_have_the_id_of_a_nested_stack_and_the_logs_of_the_head_node() -> None:
    made, account, stack = failed()
    account.event("inner", 2, "CREATE_FAILED AWS::X::Y Odd: Strange")
    account.event(stack, 3, "CREATE_FAILED AWS::CloudFormation::Stack Inner: Embedded stack", stack_id("inner"))
    account.line(stream("boot"), 1, "error: strange")
    diagnosis = diagnose(made)
    assert diagnosis.read_on[0].endswith(f" --stack-name {stack_id('inner')} --region us-west-2")
    assert diagnosis.read_on[1] == "./ultracluster logs trn1-16 head-node --since 6h"
