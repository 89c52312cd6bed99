"""Alarms and dashboard have the metrics that nodes send."""

from pathlib import Path

from nodes.metrics import cloudwatch, compute_node, head_node
from ultracluster.domain import metrics


def test_names_are_those_of_the_services_on_nodes(tmp_path: Path) -> None:
    sender = head_node.HeadNode(cloudwatch.CloudWatch("us-west-2"), "trn1", tmp_path / "log")
    sent = sender._metrics({"a": (0, 0)})

    assert cloudwatch.NAMESPACE == metrics.NAMESPACE
    assert compute_node.UNITS.keys() == {*metrics.OF_COMPUTE_NODES, metrics.HELD_IDLE}
    assert {each.name for each in sent} == set(metrics.OF_HEAD_NODE)
    assert {tuple(each.dimensions.items()) for each in sent} == {
        (("Cluster", "trn1"),),
        (("Cluster", "trn1"), ("Queue", "a")),
    }
