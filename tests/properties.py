"""How properties are tried: the same examples in each run, and as many on a slow machine."""

from hypothesis import HealthCheck, settings

QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)
