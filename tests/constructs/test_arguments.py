"""Each field that the domain declares is an argument of a construct, with the same default."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import aws_cdk as cdk
import pytest

from ultracluster import ClusterMonitoring, HeadNodeSnapshots, InvalidArguments, LustreFileSystem, UltraClusterNetwork
from ultracluster.domain.lustre import DataRepository, LustreSpec
from ultracluster.domain.monitoring import ClusterMonitoringSpec
from ultracluster.domain.network import NetworkSpec
from ultracluster.domain.snapshots import SnapshotSpec
from ultracluster.domain.spec import Spec
from ultracluster.retention import RETENTION

CDK_TYPES = {
    "kms_key_arn": "kms_key",
    "log_retention_days": "log_retention",
    "flow_log_retention_days": "flow_log_retention",
}
ELSEWHERE = {"mount_dir", "node_metrics", "path"}
"""An argument of `SharedStorage.lustre`: clusters may mount one file system in different places; what the nodes of
the cluster do by `NeuronSoftware`; and what has no default."""


@pytest.mark.parametrize(
    ("construct", "spec"),
    [
        (LustreFileSystem.__init__, LustreSpec()),
        (LustreFileSystem.add_data_repository, DataRepository(path="/")),
        (UltraClusterNetwork.__init__, NetworkSpec()),
        (ClusterMonitoring.__init__, ClusterMonitoringSpec()),
        (HeadNodeSnapshots.__init__, SnapshotSpec()),
    ],
    ids=lambda each: each.__qualname__ if callable(each) else "",
)
def test_fields_are_arguments(construct: Callable[..., object], spec: Spec) -> None:
    parameters = inspect.signature(construct).parameters
    for field, value in spec:
        if field not in ELSEWHERE:
            default = parameters[CDK_TYPES.get(field, field)].default
            expected = RETENTION[value] if field.endswith("log_retention_days") else value
            assert (list(default) if isinstance(default, tuple) else default) == expected, field


def test_snapshots_out_of_range_are_refused() -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "Training")
    with pytest.raises(InvalidArguments) as refused:
        HeadNodeSnapshots(stack, "Snapshots", deployment="research", interval_hours=5, retained=0)
    assert [each.path for each in refused.value.violations] == [("interval_hours",), ("retained",)]
