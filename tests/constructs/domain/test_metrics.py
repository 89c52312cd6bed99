"""Alarms and dashboard have the metrics that nodes send."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nodes.metrics import cloudwatch, compute_node, head_node
from nodes.metrics.spending import Budget, Spending
from tests.fake_commands import write_commands
from ultracluster.domain import metrics


class Recorder(cloudwatch.CloudWatch):
    """Keeps what it is to send."""

    def send(self, metrics: Sequence[cloudwatch.Metric], timestamp: float) -> bool:
        self.sent = metrics
        return True


def test_names_are_those_of_the_services_on_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = "echo PartitionName=a AllowGroups=ALL State=UP"
    write_commands(tmp_path, {"scontrol": partition, "sinfo": "true"})
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    sender, guard = Recorder("us-west-2"), (Budget(1, "none", {}), Spending(tmp_path, "trn1"))
    head_node.HeadNode(sender, "trn1", guard).report(0)
    sent = sender.sent

    assert cloudwatch.NAMESPACE == metrics.NAMESPACE
    assert compute_node.UNITS.keys() == {*metrics.OF_COMPUTE_NODES, metrics.HELD_IDLE}
    in_queues = {each.name for each in sent if tuple(each.dimensions.items()) == (("Cluster", "trn1"), ("Queue", "a"))}
    alone = {each.name for each in sent if tuple(each.dimensions.items()) == (("Cluster", "trn1"),)}
    assert in_queues == set(metrics.OF_HEAD_NODE)
    assert alone == {*metrics.OF_HEAD_NODE, metrics.NODE_IDLE, *metrics.OF_BUDGET}
