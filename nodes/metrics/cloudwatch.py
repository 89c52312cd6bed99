"""Sending metrics with the AWS command line, which ParallelCluster's image has."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NAMESPACE = "UltraCluster"
_TIME_LIMIT = 30
"""Seconds for one call, which counts no metric of the next minute."""


@dataclass(frozen=True)
class Metric:
    """A value of a metric.

    Attributes:
        name: Its name.
        value: Its value.
        unit: CloudWatch's name of the unit.
        dimensions: What it is of, by name of the dimension.
    """

    name: str
    value: float
    unit: str
    dimensions: Mapping[str, str]


class CloudWatch:
    """CloudWatch of a Region."""

    def __init__(self, region: str) -> None:
        self._region = region

    def send(self, metrics: Sequence[Metric], timestamp: float) -> bool:
        """Send metrics in one call, which takes 1,000 of them, and return whether they arrived.

        Whatever fails, throttling too, is not tried again: the next minute has newer values
        (https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html).

        Args:
            metrics: Values.
            timestamp: What time they are of, in seconds since 1970.
        """
        command = [
            "aws", "cloudwatch", "put-metric-data", "--region", self._region,
            "--cli-input-json", json.dumps(request(metrics, timestamp)),
            "--cli-connect-timeout", "5", "--cli-read-timeout", "10",
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                timeout=_TIME_LIMIT, check=False, env={**os.environ, "AWS_MAX_ATTEMPTS": "1"},
            )  # fmt: skip
            error = (done.stderr.strip() or f"aws: exit code {done.returncode}") if done.returncode else ""
        except (OSError, subprocess.TimeoutExpired) as failure:
            error = f"{type(failure).__name__}: aws cloudwatch put-metric-data"
        if error:
            print(error)
        return not error


def request(metrics: Sequence[Metric], timestamp: float) -> dict[str, object]:
    """Return the input of PutMetricData."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(timestamp))
    return {
        "Namespace": NAMESPACE,
        "MetricData": [
            {
                "MetricName": metric.name,
                "Dimensions": [{"Name": name, "Value": value} for name, value in metric.dimensions.items()],
                "Timestamp": at,
                "Value": metric.value,
                "Unit": metric.unit,
            }
            for metric in metrics
        ],
    }
