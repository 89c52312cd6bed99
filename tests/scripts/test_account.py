"""The deployment that the tests here work with is left as it was found."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from scripts.clock import Clock
from scripts.fleet import control as fleet
from tests.scripts.account import Operated


@pytest.mark.parametrize("turn", ["first", "second"])
def test_what_a_test_adds_is_gone_for_the_next(turn: str, operated: Operated) -> None:
    assert [each["InstanceId"] for each in operated.deployment().nodes()] == [operated.head_node]
    logs = operated.client("logs")
    assert not logs.describe_log_streams(logGroupName=operated.log_group, logStreamNamePrefix="ip-")["logStreams"]
    operated.launch(2)
    operated.log("ip-10-0-0-1.i-0.slurmctld", "one", "two")
    operated.set_fleet("STOPPED")
    assert len(operated.deployment().nodes()) == 3


def is_stopped(operated: Operated) -> bool:
    """Tell whether the head node stops the fleet when that is requested."""
    request = {"Id": {"S": "COMPUTE_FLEET"}, "Data": {"M": {"status": {"S": "STOP_REQUESTED"}}}}
    dynamodb = operated.deployment().account.client("dynamodb")
    dynamodb.put_item(TableName="parallelcluster-trn1-16", Item=request)
    return Clock().until(lambda: fleet.status(operated.deployment()) == "STOPPED", every=0.1, limit=30)


def test_the_head_node_works_whoever_may_do_what(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = {"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*"}
    with operated.aws.restricted({"Version": "2012-10-17", "Statement": [allowed]}) as environment:
        operated.act_as(environment, monkeypatch)
        assert is_stopped(operated)


def test_a_head_node_that_was_off_works_again(operated: Operated) -> None:
    ec2, head_node = operated.client("ec2"), operated.head_node
    ec2.stop_instances(InstanceIds=[head_node])
    time.sleep(2)  # long enough for it to notice, were it to end for that
    ec2.start_instances(InstanceIds=[head_node])
    assert is_stopped(operated)


def test_only_the_calls_of_this_process_are_counted(operated: Operated) -> None:
    operated.calls()
    operated.client("ec2").describe_vpcs()
    operated.deployment().nodes()
    assert operated.calls() == ["ec2:DescribeInstances"]


def test_metrics_that_were_put_are_told(operated: Operated) -> None:
    cloudwatch, now = operated.client("cloudwatch"), datetime.now(UTC)
    dimensions = [{"Name": "FileSystemId", "Value": "fs-0"}]
    data = {"MetricName": "FreeDataStorageCapacity", "Dimensions": dimensions, "Timestamp": now, "Value": 5.0}
    cloudwatch.put_metric_data(Namespace="AWS/FSx", MetricData=[data])
    metric = {"Namespace": "AWS/FSx", "MetricName": "FreeDataStorageCapacity", "Dimensions": dimensions}
    query = {"Id": "free", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}
    [result] = cloudwatch.get_metric_data(
        MetricDataQueries=[query], StartTime=now - timedelta(minutes=5), EndTime=now + timedelta(minutes=1)
    )["MetricDataResults"]
    assert result["Values"] == [5.0]
