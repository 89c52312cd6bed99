from collections.abc import Callable
from typing import Any

import pytest

from ultracluster.domain import slurm

SETTINGS = [
    slurm.RESERVED_CLUSTER_SETTINGS,
    slurm.RESERVED_ACCOUNTING_SETTINGS,
    slurm.RESERVED_QUEUE_SETTINGS,
]


@pytest.mark.validation
def test_reserved_settings_are_those_that_parallelcluster_denies(
    pcluster_constants: Callable[[str], dict[str, Any]],
) -> None:
    denied = pcluster_constants("validators/slurm_settings_validator.py")["SLURM_SETTINGS_DENY_LIST"]
    assert sorted(slurm.RESERVED_CLUSTER_SETTINGS) == sorted(denied["SlurmConf"]["Global"])
    assert sorted(slurm.RESERVED_ACCOUNTING_SETTINGS) == sorted(denied["SlurmConf"]["Accounting"])
    assert sorted(slurm.RESERVED_QUEUE_SETTINGS) == sorted(denied["Queue"]["Global"])


@pytest.mark.parametrize("settings", SETTINGS, ids=["cluster", "accounting", "queue"])
def test_reserved_settings_are_in_lower_case_in_which_they_are_compared(settings: frozenset[str]) -> None:
    assert {name.lower() for name in settings} == settings
