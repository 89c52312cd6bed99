"""Amazon CloudWatch Logs."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from moto.logs.exceptions import ResourceNotFoundException
from moto.logs.responses import LogsResponse


class Logs(LogsResponse):
    """Logs whose metric filters belong to a group: there is one of each name, and it goes with the group."""

    def put_metric_filter(self) -> str:
        group = self._get_param("logGroupName")
        if group not in self.logs_backend.groups:
            raise ResourceNotFoundException
        self.logs_backend.filters.delete_filter(self._get_param("filterName"), group)
        return super().put_metric_filter()

    def delete_log_group(self) -> str:
        answer = super().delete_log_group()
        group = self._get_param("logGroupName")
        for each in self.logs_backend.filters.get_matching_filters(log_group_name=group):
            self.logs_backend.filters.delete_filter(each["filterName"], group)
        return answer
