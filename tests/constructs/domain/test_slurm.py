from ultracluster.domain import slurm

OWN = ",".join(f"{name}={value}" if value else name for name, value in slurm.SCHEDULER_PARAMETERS.items())


def test_the_scheduler_has_parallelclusters_parameter_and_the_stacks_own() -> None:
    assert slurm.custom_settings({}) == {"SchedulerParameters": OWN}
    assert OWN.startswith("nohold_on_prolog_fail,default_queue_depth=2000,")


def test_a_parameter_of_the_scheduler_that_is_given_wins_and_the_others_stay() -> None:
    given = {"schedulerparameters": "defer, Default_Queue_Depth=50,"}
    expected = OWN.replace("default_queue_depth=2000", "default_queue_depth=50")
    assert slurm.custom_settings(given) == {"SchedulerParameters": f"{expected},defer"}
