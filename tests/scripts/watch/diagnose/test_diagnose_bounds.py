"""Missing permissions, and how much a diagnosis reads."""

import pytest
from botocore.exceptions import ClientError

from scripts.watch.diagnose.diagnose import diagnose
from scripts.watch.diagnose.reader import LOG_PAGES
from tests.scripts.refusals import refusal
from tests.scripts.watch.diagnose.causes.recorded import (
    CLUSTER_GROUP,
    HEAD_NODE,
    PROVIDER_GROUP,
    Now,
    deployment,
    failed,
    ids,
    shown,
    stream,
)


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
def test_a_missing_permission_is_named_and_the_rest_is_read(operation: str, action: str) -> None:
    made, account, stack = failed()
    account.event(stack, 3, f"CREATE_FAILED Custom::PclusterCluster Cluster: Strange (LogGroup: {PROVIDER_GROUP})")
    account.line(stream("boot"), 2, "error: strange")
    account.denied = {operation}
    diagnosis = diagnose(made)
    assert any(f"{action} is not allowed" in line for line in diagnosis.unread)
    assert "What was not read" in shown(diagnosis)
    assert diagnosis.failed, "a stack that failed did so even if its events cannot be read"


def test_credentials_that_are_not_valid_are_an_error() -> None:
    made, account, _ = failed()

    def expired(*_: object, **__: object) -> None:
        raise refusal("ExpiredToken", "DescribeStacks", "expired")

    account.describe_stacks = expired  # type: ignore[method-assign,assignment]
    with pytest.raises(ClientError, match="ExpiredToken"):
        diagnose(made)


def test_there_are_bounds_for_what_is_read() -> None:
    made, account, stack = failed()
    account.event(stack, 1, "CREATE_FAILED Custom::PclusterCluster Cluster: Strange")
    account.lines_in_page = 10
    for _ in range(1_000):
        account.line(stream("boot"), 1, "error: strange")
    diagnosis = diagnose(made)
    assert account.calls["filter_log_events"] == LOG_PAGES
    assert diagnosis.unread == (f"log group {CLUSTER_GROUP}: everything only since 2026-05-01 11:06 UTC",)


def test_without_permissions_it_is_not_known_whether_something_failed() -> None:
    made, account, _ = failed()
    account.denied = {"describe_stacks", "describe_log_groups", "describe_instances"}
    diagnosis = diagnose(made, Now())
    assert (diagnosis.failed, diagnosis.outcome, diagnosis.causes) == (True, "unknown", ())
    text = shown(diagnosis)
    assert "Nothing failed" not in text
    assert "Whether something failed is not known" in text


def test_compute_nodes_that_log_much_do_not_keep_the_head_nodes_lines_out() -> None:
    made, account = deployment(cluster="CREATE_COMPLETE")
    account.lines_in_page = 10
    account.line(stream("daemon"), 45, "ERROR - An error occurred (InsufficientInstanceCapacity)")
    for number in range(2_000):
        account.line(f"ip-10-0-9-{number % 200}.i-0b.slurmd", 40 + number / 100, f"error {number}")
    diagnosis = diagnose(made, Now())
    assert ids(diagnosis) == ["insufficient-capacity"]
    assert all(HEAD_NODE not in line for line in diagnosis.unread)


def test_a_cause_is_found_although_the_head_node_cannot_be_listed() -> None:
    made, account = deployment(cluster="CREATE_COMPLETE")
    account.line(stream("daemon"), 45, "ERROR - An error occurred (InsufficientInstanceCapacity)")
    account.denied = {"describe_instances"}
    diagnosis = diagnose(made, Now())
    assert (ids(diagnosis), diagnosis.outcome) == (["insufficient-capacity"], "cause")
    assert diagnosis.unread == ("instances: ec2:DescribeInstances is not allowed",)
