import pytest

from ultracluster.domain import slurm

SETTINGS = [
    slurm.RESERVED_CLUSTER_SETTINGS,
    slurm.RESERVED_ACCOUNTING_SETTINGS,
    slurm.RESERVED_QUEUE_SETTINGS,
]


@pytest.mark.parametrize("settings", SETTINGS, ids=["cluster", "accounting", "queue"])
def test_reserved_settings_are_in_lower_case_in_which_they_are_compared(settings: frozenset[str]) -> None:
    assert {name.lower() for name in settings} == settings
