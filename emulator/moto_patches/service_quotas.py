"""Service Quotas: those that a cluster can run into, with AWS's defaults, and increases that are granted at once."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json
from typing import Any, NamedTuple
from uuid import uuid4

from moto.core.exceptions import JsonRESTError
from moto.servicequotas.exceptions import NoSuchResource
from moto.servicequotas.resources.default_quotas.vpc import VPC_DEFAULT_QUOTAS
from moto.servicequotas.responses import ServiceQuotasResponse


class _Default(NamedTuple):
    service: str
    code: str
    name: str
    value: float


_DEFAULTS = (
    # https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html, in vCPUs
    _Default("ec2", "L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 5),
    _Default("ec2", "L-2C3B7624", "Running On-Demand Trn instances", 0),
    _Default("ec2", "L-34B43A08", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 5),
    _Default("ec2", "L-6B0D517C", "All Trn Spot Instance Requests", 0),
    _Default("ec2", "L-2E30FD7D", "Concurrent Trn1 Capacity Blocks per account", 0),
    _Default("ec2", "L-64569A79", "Concurrent Trn2 Capacity Blocks per account", 0),
    # https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
    _Default("ec2", "L-0263D0A3", "EC2-VPC Elastic IPs", 5),
    _Default("vpc", "L-5F53652F", "Elastic IP addresses per public NAT gateway", 2),
    # https://docs.aws.amazon.com/fsx/latest/LustreGuide/limits.html, storage in GiB
    _Default("fsx", "L-C48231E5", "Lustre Scratch file systems", 100),
    _Default("fsx", "L-9AFA1F09", "Lustre Persistent_1 file systems", 100),
    _Default("fsx", "L-FD6F2F22", "Lustre Persistent_2 file systems", 100),
    _Default("fsx", "L-AD2FC696", "Lustre Scratch storage capacity", 100_800),
    _Default("fsx", "L-C8640C82", "Lustre Persistent_1 storage capacity", 100_800),
    _Default("fsx", "L-8F1B9C74", "Lustre Persistent_2 storage capacity", 100_800),
    # https://docs.aws.amazon.com/fsx/latest/OpenZFSGuide/limits.html, storage in GiB, throughput in MB/s
    _Default("fsx", "L-59D0763F", "OpenZFS file systems", 100),
    _Default("fsx", "L-88479C21", "OpenZFS SSD storage capacity", 65_536),
    _Default("fsx", "L-4EDE4065", "OpenZFS throughput capacity", 10_240),
    # https://docs.aws.amazon.com/general/latest/gr/elasticfilesystem.html
    _Default("elasticfilesystem", "L-848C634D", "File systems per account", 1000),
    # https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/CHAP_Limits.html
    _Default("rds", "L-7B6409FD", "DB instances", 40),
    # https://docs.aws.amazon.com/general/latest/gr/ebs-service.html
    _Default("ebs", "L-7A658B76", "Storage for General Purpose SSD (gp3) volumes, in TiB", 50),
)


class ServiceQuotas(ServiceQuotasResponse):
    """Service Quotas of a new account: only quotas that were raised have an applied value.

    Of some quotas AWS, too, has the default alone, but does not say of which
    (https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html).
    """

    def get_service_quota(self) -> str:
        quota = self._default()
        if quota["QuotaCode"] not in self._raised:
            raise _no_such_quota(quota["ServiceCode"], quota["QuotaCode"])
        return json.dumps({"Quota": self._applied(quota)})

    def list_service_quotas(self) -> str:
        raised = [self._applied(quota) for quota in self._defaults() if quota["QuotaCode"] in self._raised]
        return json.dumps({"Quotas": raised})

    def get_aws_default_service_quota(self) -> str:
        return json.dumps({"Quota": self._default()})

    def request_service_quota_increase(self) -> str:
        """Raise a quota at once, which takes AWS up to some days.

        The words for too small a value are AWS's: https://github.com/cloud-custodian/cloud-custodian/pull/8939.
        """
        quota, desired = self._default(), float(self._get_param("DesiredValue"))
        if desired <= self._applied(quota)["Value"]:
            raise JsonRESTError(
                "IllegalArgumentException", "You must provide a quota value greater than the current quota value"
            )
        self._raised[quota["QuotaCode"]] = desired
        request = {"QuotaCode": quota["QuotaCode"], "QuotaName": quota["QuotaName"], "DesiredValue": desired}
        return json.dumps({"RequestedQuota": {**request, "Id": uuid4().hex, "Status": "APPROVED"}})

    # Helpers

    def _defaults(self) -> list[dict[str, Any]]:
        """Return all quotas of the service asked for."""
        service = self._get_param("ServiceCode")
        quotas = [self._described(default) for default in _DEFAULTS if default.service == service]
        if service == "vpc":
            quotas += VPC_DEFAULT_QUOTAS
        if not quotas:
            raise NoSuchResource
        return quotas

    def _default(self) -> dict[str, Any]:
        """Return the quota asked for, as a new account has it."""
        code = self._get_param("QuotaCode")
        for quota in self._defaults():
            if quota["QuotaCode"] == code:
                return quota
        raise _no_such_quota(self._get_param("ServiceCode"), code)

    def _described(self, default: _Default) -> dict[str, Any]:
        return {
            "ServiceCode": default.service,
            "QuotaArn": f"arn:{self.partition}:servicequotas:{self.region}::{default.service}/{default.code}",
            "QuotaCode": default.code,
            "QuotaName": default.name,
            "Value": float(default.value),
        }

    def _applied(self, quota: dict[str, Any]) -> dict[str, Any]:
        return {**quota, "Value": self._raised.get(quota["QuotaCode"], quota["Value"])}

    @property
    def _raised(self) -> dict[str, float]:
        raised: dict[str, float] = vars(self.backend).setdefault("raised", {})
        return raised


def _no_such_quota(service: str, code: str) -> JsonRESTError:
    message = f"The request failed because the specified quota {code} does not exist for service {service}."
    return JsonRESTError("NoSuchResourceException", message)
