"""What a construct says of arguments that break rules."""

import pytest
from pydantic import ValidationError

from ultracluster.domain.lustre import LustreSpec
from ultracluster.domain.violations import InvalidArguments, Violation, below, shape_violations


def test_a_construct_names_every_invalid_argument_with_its_place() -> None:
    with pytest.raises(ValidationError) as refused:
        LustreSpec.model_validate({"deployment_type": "SCRATCH", "capacity_gib": "1200", "backup_retention_days": 91})
    rule = Violation(("queues", 0, "name"), "A", "lower case", "part of node names")
    error = InvalidArguments("Stack/Cluster", [*below(("storage",), shape_violations(refused.value)), rule])
    assert str(error).splitlines() == [
        "invalid arguments of Stack/Cluster:",
        "  storage.deployment_type: got 'SCRATCH'; allowed: 'SCRATCH_2', 'PERSISTENT_1' or 'PERSISTENT_2'",
        "  storage.capacity_gib: got '1200'; allowed: a valid integer",
        "  storage.backup_retention_days: got 91; allowed: at most 90",
        "  queues[0].name: got 'A'; allowed: lower case (part of node names)",
    ]
