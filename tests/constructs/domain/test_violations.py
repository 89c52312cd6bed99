"""What a construct says of arguments that break rules."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import ValidationError

from ultracluster.domain import lustre, network
from ultracluster.domain.lustre import DataRepository, LustreSpec
from ultracluster.domain.network import NetworkSpec
from ultracluster.domain.violations import InvalidArguments, Violation, Waiting, below, shape_violations, shown


def test_a_construct_names_every_invalid_argument_with_its_place() -> None:
    with pytest.raises(ValidationError) as refused:
        LustreSpec.model_validate({"deployment_type": "SCRATCH", "capacity_gib": "1200", "backup_retention_days": 91})
    rule = Violation(("queues", 0, "name"), "A", "lower case", "part of node names")
    error = InvalidArguments("Stack/Cluster", [*below(("storage",), shape_violations(refused.value)), rule])
    assert str(error).splitlines() == [
        "invalid arguments of Stack/Cluster:",
        "  storage.deployment_type: got 'SCRATCH'; allowed: 'SCRATCH_2', 'PERSISTENT_1' or 'PERSISTENT_2'",
        "  storage.capacity_gib: got '1200'; allowed: a whole number",
        "  storage.backup_retention_days: got 91; allowed: at most 90",
        "  queues[0].name: got 'A'; allowed: lower case (part of node names)",
    ]


@pytest.mark.parametrize(
    ("checked", "fields"),
    [
        (NetworkSpec.checked({"cidr": "x", "nat_addresses": 9}, network.violations), ["nat_addresses", "cidr"]),
        (
            LustreSpec.checked(
                {"capacity_gib": 1300, "throughput_mbps_per_tib": 3, "backup_retention_days": 91}, lustre.violations
            ),
            ["backup_retention_days", "capacity_gib", "throughput_mbps_per_tib", "waiting"],
        ),
        # The default of 7 days, in place of the value, would break a rule.
        (
            LustreSpec.checked(
                {"deployment_type": "SCRATCH_2", "throughput_mbps_per_tib": None, "backup_retention_days": "7"},
                lustre.violations,
            ),
            ["backup_retention_days", "waiting"],
        ),
        (
            DataRepository.checked(
                {"path": 3, "prefix": "/a"}, lambda link: lustre.repository_violations(LustreSpec(), [link])
            ),
            ["path", "file_system", "waiting", "data_repositories"],
        ),
    ],
    ids=["network", "file system", "default", "required"],
)
def test_wrong_shapes_hide_no_broken_rules(checked: tuple[Any, list[Violation]], fields: list[str]) -> None:
    spec, violations = checked
    assert spec is None
    assert ["waiting" if isinstance(each, Waiting) else each.path[0] for each in violations] == fields


@dataclass
class Holder:
    """What has an object."""

    held: object


def test_objects_are_shown_by_their_class_at_any_depth() -> None:
    deep: Any = object()
    for _ in range(100):
        deep = [deep]
    values = [
        object(),
        [object()],
        {"a": (object(),)},
        Holder(5),
        Holder(object()),
        [Holder(object())],
        Holder,
        deep,
    ]
    told = ", ".join(map(shown, values[:7]))
    assert told == ("an object, [an object], {'a': (an object,)}, Holder(held=5), a Holder, a list, the class Holder")
    assert [" at 0x" in shown(each) for each in values] == [False] * len(values)
