"""A dated table of what an hour of an instance costs on demand: for estimates, and for guards on what nodes cost.

The prices hold in the three Regions where Trn1 is sold on demand; elsewhere the table has none. Their source is
`SOURCE`; ``scripts/check/estimate`` asks AWS's Price List instead, where it can.
"""

from decimal import Decimal
from typing import Final

from ultracluster.domain.instance_types import BURSTABLE_GIB, TRAINIUM_TYPES, vcpus_of_size

TABLE_REGIONS: Final = ("us-east-1", "us-east-2", "us-west-2")
DATE: Final = "2026-01-19"
SOURCE: Final = (
    "AWS Price List API, us-east-1, as kept in github.com/aws/karpenter-provider-aws "
    "(pkg/providers/pricing/zz_generated.pricing_aws.go); us-east-2 and us-west-2 the same by "
    "github.com/skypilot-org/skypilot-catalog (catalogs/v8/aws/vms.csv)"
)
_TABLE = {name: kind.usd_per_hour for name, kind in TRAINIUM_TYPES.items() if kind.usd_per_hour is not None}
_PER_VCPU = {
    **{"c5": "0.0425", "c5a": "0.0385", "c6i": "0.0425", "c6a": "0.03825", "c7i": "0.044625", "c7a": "0.05132"},
    **{"m5": "0.048", "m5a": "0.043", "m6i": "0.048", "m6a": "0.0432", "m7i": "0.0504", "m7a": "0.05796"},
    **{"r5": "0.063", "r5a": "0.0565", "r6i": "0.063", "r6a": "0.0567", "r7i": "0.06615", "r7a": "0.076075"},
}
_PER_GIB = {"t3": "0.0104", "t3a": "0.0094"}
"""Prices of families whose types differ in size alone, per vCPU or per GiB of memory."""


def examples() -> list[str]:
    """Return an instance type for each price of the table."""
    per_size = [
        f"{family}.{size}" for families, size in ((_PER_VCPU, "xlarge"), (_PER_GIB, "medium")) for family in families
    ]
    return [*_TABLE, *per_size]


def usd_per_hour(instance_type: str) -> Decimal | None:
    """Return the price of a Linux instance in `TABLE_REGIONS`, before tax and discounts; None: it is not known."""
    if instance_type in _TABLE:
        return Decimal(_TABLE[instance_type])
    family, _, size = instance_type.partition(".")
    if family in _PER_VCPU:
        vcpus = vcpus_of_size(size)
        return None if vcpus is None else Decimal(_PER_VCPU[family]) * vcpus
    if family in _PER_GIB and size in BURSTABLE_GIB:
        return Decimal(_PER_GIB[family]) * Decimal(str(BURSTABLE_GIB[size]))
    return None
