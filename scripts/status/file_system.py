"""The file system of a deployment, from FSx and CloudWatch."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from scripts.estimate.sizes import SCRATCH_MBPS_PER_TIB
from scripts.status.model import FileSystem, Unavailable, Usage, try_fetch

if TYPE_CHECKING:
    from scripts.deployment import Deployment

_LOOK_BACK = timedelta(minutes=10)
_PERIOD_SECONDS = 60
_METRICS = {"free": "FreeDataStorageCapacity", "read": "DataReadBytes", "written": "DataWriteBytes"}
"""By id of the query. Their Sum over a minute is that of all storage targets.

https://docs.aws.amazon.com/fsx/latest/LustreGuide/fs-metrics.html
"""
_NONE = Unavailable(reason="its stack names no file system", is_problem=False)


def fetch_file_system(deployment: Deployment) -> FileSystem | Unavailable:
    """Return the file system that the storage stack names.

    Two calls, one of them for the stack. Needs cloudformation:DescribeStacks and fsx:DescribeFileSystems.
    """

    def fetch() -> FileSystem | Unavailable:
        file_system_id = _id(deployment)
        if not file_system_id:
            return _NONE
        [described] = deployment.account.ask("fsx", "describe_file_systems", FileSystemIds=[file_system_id])[
            "FileSystems"
        ]
        capacity = described["StorageCapacity"]
        per_tib = described["LustreConfiguration"].get("PerUnitStorageThroughput") or SCRATCH_MBPS_PER_TIB
        return FileSystem(file_system_id, described["Lifecycle"], capacity, capacity * per_tib / 1000)

    return try_fetch(fetch, "cloudformation:DescribeStacks", "fsx:DescribeFileSystems")


def fetch_usage(deployment: Deployment, now: datetime) -> Usage | Unavailable:
    """Return what CloudWatch has of the file system's last minutes, which arrive some minutes late.

    Two calls, one of them for the stack. Needs cloudformation:DescribeStacks and cloudwatch:GetMetricData.
    """

    def fetch() -> Usage | Unavailable:
        file_system_id = _id(deployment)
        if not file_system_id:
            return _NONE
        answer = deployment.account.ask(
            "cloudwatch",
            "get_metric_data",
            MetricDataQueries=[_query(key, name, file_system_id) for key, name in _METRICS.items()],
            StartTime=now - _LOOK_BACK,
            EndTime=now,
        )
        newest = {each["Id"]: _newest(each) for each in answer["MetricDataResults"]}
        moved = [value for key in ("read", "written") if (value := newest[key]) is not None]
        return Usage(newest["free"], sum(moved) / _PERIOD_SECONDS / 1e6 if moved else None)

    return try_fetch(fetch, "cloudformation:DescribeStacks", "cloudwatch:GetMetricData")


def _id(deployment: Deployment) -> str:
    return deployment.outputs(deployment.stack_name("storage")).get("FileSystemId", "")


def _query(key: str, name: str, file_system_id: str) -> Mapping[str, Any]:
    dimensions = [{"Name": "FileSystemId", "Value": file_system_id}]
    metric = {"Namespace": "AWS/FSx", "MetricName": name, "Dimensions": dimensions}
    return {"Id": key, "MetricStat": {"Metric": metric, "Period": _PERIOD_SECONDS, "Stat": "Sum"}}


def _newest(result: Mapping[str, Any]) -> float | None:
    values: dict[datetime, float] = dict(zip(result["Timestamps"], result["Values"], strict=True))
    return values[max(values)] if values else None
