"""`make diagnose`: where it looks, and what it holds for the first failure."""

from datetime import timedelta

import pytest
from botocore.exceptions import ClientError

from scripts.operations.diagnosis import LINES_OF_UNKNOWN, Diagnosis, diagnose
from scripts.operations.evidence import LOG_PAGES
from scripts.operations.failures import EVENT_PAGES, STACK_PAGES
from tests.operations.causes.recorded import (
    CLUSTER_GROUP,
    NOW,
    PROVIDER_GROUP,
    Now,
    deployment,
    failed,
    shown,
    stack_id,
    stream,
)

QUOTA = "CREATE_FAILED AWS::EC2::EIP Address: The maximum number of addresses has been reached."
TIMEOUT = "CREATE_FAILED AWS::CloudFormation::WaitCondition Wait: WaitCondition timed out. Received 0 conditions"
NO_ROUTE = 'Connect timeout on endpoint URL: "https://dynamodb.us-west-2.amazonaws.com/"  # an error'
CAPACITY = "ERROR - An error occurred (InsufficientInstanceCapacity) when calling the RunInstances operation"
PROTECTED = "WARNING - Setting cluster into protected mode due to failures detected in node provisioning."


def ids(found: Diagnosis) -> list[str]:
    return [each.cause.id for each in found.findings]


# What is held for the cause


def test_the_earliest_failure_of_the_newest_operation_counts() -> None:
    made, account, stack = failed(noise=True)
    account.event(stack, 5, "CREATE_FAILED AWS::EC2::VPC Vpc: The maximum number of VPCs has been reached.")
    account.event(stack, 4, "CREATE_FAILED AWS::EC2::EIP A: The maximum number of addresses has been reached.")
    account.event(stack, 3, "CREATE_FAILED AWS::SSM::Parameter B: Resource creation cancelled")
    found = diagnose(made)
    assert (ids(found), found.unknown) == (["address-quota", "vpc-quota"], ())


def test_a_failure_of_an_operation_before_the_newest_does_not_count() -> None:
    made, account, stack = failed()
    account.events[stack].clear()
    account.event(stack, 0, f"CREATE_IN_PROGRESS AWS::CloudFormation::Stack {stack}: User Initiated")
    account.event(stack, 1, QUOTA)
    account.event(stack, 2, f"DELETE_IN_PROGRESS AWS::CloudFormation::Stack {stack}: User Initiated")
    account.event(stack, 3, "DELETE_FAILED AWS::S3::Bucket Bucket: The bucket you tried to delete is not empty")
    assert ids(diagnose(made)) == ["bucket-not-empty"]


def test_of_several_stacks_that_failed_the_newest_operation_counts() -> None:
    made, account = deployment(network="UPDATE_ROLLBACK_COMPLETE", cluster="ROLLBACK_COMPLETE")
    for part, minute in (("network", 20), ("cluster", 10)):
        stack = made.stack_name(part)
        account.event(stack, minute, f"CREATE_IN_PROGRESS AWS::CloudFormation::Stack {stack}: ")
        account.event(stack, minute + 1, QUOTA if part == "network" else TIMEOUT)
    found = diagnose(made)
    assert found.operation is not None
    assert (found.operation.stack, ids(found)) == (made.stack_name("network"), ["address-quota"])


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
    found = diagnose(made)
    assert ids(found) == ["address-quota"]
    assert found.findings[0].evidence[0].place == "inner"


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
    found = diagnose(made)
    assert ids(found) == ["insufficient-capacity"]
    assert found.findings[0].why.startswith("EC2 has not enough instances of c6i.4xlarge left in us-west-2d.")


def test_what_is_behind_a_symptom_is_found_in_the_logs_and_both_are_shown() -> None:
    made, account, stack = failed()
    account.line(stream("boot"), 1, NO_ROUTE)
    account.line(stream("daemon"), 0.5, "ERROR something else")
    account.event(stack, 35, TIMEOUT)
    found = diagnose(made)
    assert ids(found) == ["no-route", "head-node-timeout"]
    assert [each.kind for each in found.findings[0].evidence] == ["event", "boot"]


def test_of_the_logs_the_line_nearest_to_the_failure_counts() -> None:
    made, account, stack = failed()
    account.line(stream("boot"), 1, NO_ROUTE)
    account.line(stream("boot"), 20, "head_node.sh: failed (20): pip cannot install the packages. To do: see above.")
    account.event(stack, 21, TIMEOUT)
    account.event(stack, 60, "DELETE_FAILED AWS::SSM::Parameter P: something")
    account.line(stream("boot"), 30, "error: No space left on device")
    assert ids(diagnose(made))[:2] == ["node-script", "no-route"]


def test_a_symptom_alone_is_told_as_such() -> None:
    made, account, stack = failed()
    account.event(stack, 35, TIMEOUT)
    assert ids(diagnose(made)) == ["head-node-timeout"]


def test_logs_of_another_kind_or_time_do_not_explain_a_symptom() -> None:
    made, account, stack = failed()
    account.line(stream("slurm"), 1, "error: No space left on device")
    account.line(stream("boot"), -5, NO_ROUTE)
    account.line(stream("boot"), 45, NO_ROUTE)
    account.event(stack, 35, TIMEOUT)
    assert ids(diagnose(made)) == ["head-node-timeout"]


def test_logs_are_not_read_when_the_event_says_it() -> None:
    made, account, stack = failed()
    account.event(stack, 1, QUOTA)
    account.line(stream("boot"), 1, NO_ROUTE)
    assert ids(diagnose(made)) == ["address-quota"]
    assert account.calls["filter_log_events"] == 0


def test_a_stack_that_cannot_go_back_is_told_beside_the_cause() -> None:
    made, account, stack = failed()
    account.stacks[stack] = "UPDATE_ROLLBACK_FAILED"
    account.event(stack, 1, "UPDATE_FAILED AWS::EC2::EIP A: The maximum number of addresses has been reached.")
    account.event(stack, 2, f"UPDATE_ROLLBACK_FAILED AWS::CloudFormation::Stack {stack}: The following resource(s)")
    found = diagnose(made)
    assert ids(found) == ["address-quota", "rollback-failed"]
    assert f"--stack-name {stack} " in " ".join(found.findings[1].do)


# A cluster that runs


def test_in_a_cluster_that_runs_the_newest_line_counts_and_symptoms_come_last() -> None:
    made, account = deployment(cluster="CREATE_COMPLETE")
    account.line(stream("daemon"), 40, "ERROR - (VcpuLimitExceeded)")
    account.line(stream("daemon"), 50, CAPACITY)
    account.line(stream("daemon"), 55, PROTECTED)
    found = diagnose(made, Now())
    assert (found.operation, ids(found)) == (None, ["insufficient-capacity", "vcpu-quota", "protected-mode"])


def test_what_is_older_counts_only_if_the_last_half_hour_shows_nothing() -> None:
    made, account = deployment(cluster="CREATE_COMPLETE")
    account.line(stream("daemon"), -120, "ERROR - (VcpuLimitExceeded)")
    assert ids(diagnose(made, Now())) == ["vcpu-quota"]
    account.line(stream("daemon"), 50, CAPACITY)
    assert ids(diagnose(made, Now())) == ["insufficient-capacity"]


def test_only_the_newest_log_group_of_this_cluster_is_read() -> None:
    made, account = deployment(cluster="UPDATE_COMPLETE")
    for group in ("/aws/parallelcluster/trn1-16-202604010900", "/aws/parallelcluster/trn1-16-9-202605020900"):
        account.line(stream("daemon"), 50, PROTECTED, group)
    account.line(stream("daemon"), 50, CAPACITY)
    found = diagnose(made, Now())
    assert ids(found) == ["insufficient-capacity"]
    assert CLUSTER_GROUP in found.read


def test_nothing_failed() -> None:
    made, account = deployment(network="CREATE_COMPLETE", cluster="UPDATE_COMPLETE")
    account.line(stream("daemon"), 50, "INFO - all is well, no error")
    found = diagnose(made, Now())
    assert not found.failed
    assert "Nothing failed" in shown(found)
    assert found.document()["outcome"] == "nothing failed"


def test_there_is_nothing() -> None:
    made, account = deployment()
    assert "there are no stacks" in shown(diagnose(made))
    assert set(account.calls) == {"describe_stacks"}


def test_an_operation_under_way_without_a_failure_is_none() -> None:
    made, account, stack = failed()
    account.stacks[stack] = "CREATE_IN_PROGRESS"
    assert not diagnose(made, Now()).failed


# An unknown failure


def test_an_unknown_failure_shows_itself_the_logs_and_where_to_read_on() -> None:
    made, account, stack = failed()
    account.event(stack, 3, f"CREATE_FAILED Custom::PclusterCluster Cluster: Strange (LogGroup: {PROVIDER_GROUP})")
    for number in range(10):
        account.line(stream("provider"), 2, f"error: strange thing {number}", PROVIDER_GROUP)
    found = diagnose(made)
    assert found.failed
    assert found.findings == ()
    assert found.unknown[0].text.startswith("CREATE_FAILED Custom::PclusterCluster Cluster: Strange")
    assert [each.text[-1] for each in found.unknown[1:]] == list("56789")
    assert len(found.unknown) == 1 + LINES_OF_UNKNOWN
    text = shown(found)
    assert "No known cause. This failed first:" in text
    assert f"describe-stack-events --stack-name {stack}" in text
    assert f"logs tail {PROVIDER_GROUP}" in text
    assert found.document()["outcome"] == "unknown"


def test_an_unknown_failure_is_not_hidden_by_a_later_one_that_is_known() -> None:
    made, account, stack = failed()
    account.event(stack, 1, "CREATE_FAILED AWS::X::Y Odd: Strange")
    account.event(stack, 2, QUOTA)
    found = diagnose(made)
    assert (found.unknown[0].resource, ids(found)) == ("Odd", ["address-quota"])
    assert found.document()["outcome"] == "unknown"
    text = shown(found)
    assert (
        text.index("Odd: Strange") < text.index("Also seen") < text.index("The account has no Elastic IP address left")
    )


def test_if_all_events_are_consequences_the_first_is_shown() -> None:
    made, account, stack = failed()
    account.event(stack, 3, "CREATE_FAILED AWS::SSM::Parameter A: Resource creation cancelled")
    assert diagnose(made).unknown[0].text.endswith("Resource creation cancelled")


# Rights and bounds


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("describe_stack_events", "cloudformation:DescribeStackEvents"),
        ("list_stacks", "cloudformation:ListStacks"),
        ("describe_log_groups", "logs:DescribeLogGroups"),
        ("filter_log_events", "logs:FilterLogEvents"),
        ("describe_stacks", "cloudformation:DescribeStacks"),
    ],
)
def test_a_right_that_is_missing_is_told_and_the_rest_is_looked_at(operation: str, action: str) -> None:
    made, account, stack = failed()
    account.event(stack, 3, f"CREATE_FAILED Custom::PclusterCluster Cluster: Strange (LogGroup: {PROVIDER_GROUP})")
    account.line(stream("boot"), 2, "error: strange")
    account.denied = {operation}
    found = diagnose(made)
    assert any(f"{action} is not allowed" in line for line in found.unread)
    assert "Not read" in shown(found)
    assert found.failed == (operation != "describe_stacks"), "a stack that failed did so even if its events are secret"


def test_credentials_that_are_not_valid_are_an_error() -> None:
    made, account, _ = failed()

    def expired(*_: object, **__: object) -> None:
        raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, "DescribeStacks")

    account.describe_stacks = expired  # type: ignore[method-assign,assignment]
    with pytest.raises(ClientError, match="ExpiredToken"):
        diagnose(made)


def test_events_are_read_to_the_beginning_of_the_operation_and_no_further() -> None:
    made, account, stack = failed()
    account.events[stack][:0] = [dict(account.events[stack][0], ResourceStatus="UPDATE_COMPLETE")] * 20_000
    for number in range(250):
        account.event(stack, 1, f"CREATE_COMPLETE AWS::SSM::Parameter P{number}: ")
    account.event(stack, 2, QUOTA)
    assert ids(diagnose(made)) == ["address-quota"]
    assert account.calls["describe_stack_events"] == 3


def test_there_are_bounds_for_what_is_read() -> None:
    made, account, stack = failed()
    for _ in range(20_000):
        account.event(stack, 1, "CREATE_FAILED Custom::PclusterCluster Cluster: Strange")
    account.deleted = [{"StackName": "x", "StackId": stack_id("x"), "DeletionTime": NOW}] * 5_000
    account.lines_in_page = 10
    for _ in range(1_000):
        account.line(stream("boot"), 1, "error: strange")
    found = diagnose(made)
    assert account.calls["describe_stack_events"] == EVENT_PAGES
    assert account.calls["list_stacks"] == STACK_PAGES
    assert account.calls["filter_log_events"] == LOG_PAGES
    assert any(f"only the first {LOG_PAGES} pages" in line for line in found.unread)
    assert f"events of {stack}: only the newest 5,000" in found.unread
