from ultracluster.domain import slurm


def test_reserved_settings_are_in_lower_case_in_which_they_are_compared() -> None:
    reserved = slurm.RESERVED_CLUSTER_SETTINGS | slurm.RESERVED_ACCOUNTING_SETTINGS | slurm.RESERVED_QUEUE_SETTINGS
    assert [name for name in reserved if name != name.lower()] == []
