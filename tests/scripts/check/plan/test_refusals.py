"""What only grows, and what cannot change at once, is refused before it is deployed."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from botocore.exceptions import ClientError

from config.settings import Settings
from scripts.account.databases import DATABASE
from scripts.check.plan import refusals
from scripts.check.plan.comparison import Comparison
from scripts.check.plan.model import Effect, ResourceChange, Source, StackPlan
from scripts.core.findings import CheckStatus
from scripts.upkeep.settings_reference import settings_page
from tests.toolchain.test_changes_of_settings import SETTINGS
from toolchain.assembly import EXAMPLE_ACCOUNT, Stack
from ultracluster.domain.spec import Growth

LUSTRE = {"FileSystemType": "LUSTRE", "StorageCapacity": 9600}
IOPS = "MetadataConfiguration"


def lustre(capacity: int, iops: int | None) -> dict[str, Any]:
    metadata = {"Mode": "AUTOMATIC"} if iops is None else {"Mode": "USER_PROVISIONED", "Iops": iops}
    return {**LUSTRE, "StorageCapacity": capacity, "LustreConfiguration": {IOPS: metadata}}


def sentences(resource_type: str, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [each.sentence for each in refusals.of_resource(resource_type, before, after)]


def test_every_setting_that_only_grows_is_looked_at_and_says_so_in_the_reference() -> None:
    looked_at = {f"{row.place}.{name}" for row in refusals.ROWS for name, each in row.model.declared() if each.growth}

    assert looked_at == {place for place, node in SETTINGS.items() if "x-growth" in node}
    for place in looked_at:
        facts = settings_page().partition(f"### {place}\n")[2].partition("###")[0]
        assert f"change: **at once**, {SETTINGS[place]['x-growth']};" in facts


@pytest.mark.parametrize("row", refusals.ROWS, ids=lambda row: row.place)
def test_each_of_them_grows_and_does_not_shrink(row: refusals.Row) -> None:
    for name, setting in row.model.declared():
        if setting.growth is None:
            continue
        resource_type, _, path = (setting.key(row.model) or "").partition(".")
        small, large = ("8.4.9", "8.4.10") if "version" in name else (6000, "12000")

        def with_value(value: Any, path: str = path) -> dict[str, Any]:
            for key in reversed(path.split(".")):
                value = {key: value}
            return {"StorageCapacity": 4800, **row.properties, **value}

        assert sentences(resource_type, with_value(small), with_value(large)) == []
        [refused] = sentences(resource_type, with_value(large), with_value(small))
        assert refused.startswith(f"cannot change {path} from {large} to {small}; allowed: {large}")


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [(256, 257, "256, or 282 or more"), (256, 282, None), (256, 256, None), (256, "(known after deployment)", None)],
)
def test_growth_may_have_a_least_step(before: object, after: object, allowed: str | None) -> None:
    assert Growth("page", percent=10).refused(before, after, {}) == allowed


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        ((4800, 12_000), (4800, None), ["allowed: 12000 or more"]),
        ((4800, None), (4800, 6000), []),
        ((12_000, 12_000), (12_000, None), []),
        ((9600, 6000), (12_000, 24_000), ["12000 GiB need 12000 metadata IOPS first"]),
        ((9600, 12_000), (12_000, 24_000), []),
        ((9600, 12_000), (4800, 6000), ["allowed: 9600 or more", "allowed: 12000 or more"]),
    ],
)
def test_metadata_iops_and_capacity_depend_on_each_other(
    before: tuple[int, int | None], after: tuple[int, int | None], refused: list[str]
) -> None:
    found = sentences("AWS::FSx::FileSystem", lustre(*before), lustre(*after))

    assert len(found) == len(refused)
    assert all(words in sentence for words, sentence in zip(refused, found, strict=True))


@pytest.mark.parametrize(
    ("before", "after", "real", "refused"),
    [
        ((20, "8.4.9"), (40, "8.4.10"), (60, "8.4.11"), ["8.4.11 to 8.4.10; allowed", "60 to 40; allowed: 60 or more"]),
        ((20, "8.4.9"), (60, "8.4.11"), (60, "8.4.11"), []),
        ((20, "8.4.9"), (40, "8.4.10"), (20, "8.4.9"), []),
        ((20, "8.4.9"), (20, "8.4.9"), (60, "8.4.11"), []),
        ((20, "8.4.9"), (40, "8.4.10"), None, []),
    ],
    ids=["less than RDS has", "what RDS has", "as deployed", "other properties change", "no account is asked"],
)
def test_what_rds_has_raised_by_itself_counts_where_a_value_changes(
    before: tuple[int, str], after: tuple[int, str], real: tuple[int, str] | None, refused: list[str]
) -> None:
    """CloudFormation hands on what changes in the template, whatever RDS has meanwhile."""
    names = ("AllocatedStorage", "EngineVersion")
    old, new = ({"Type": DATABASE, "Properties": dict(zip(names, each, strict=True))} for each in (before, after))
    stacks = [{"S": Stack("S", "us-west-2", EXAMPLE_ACCOUNT, {"Resources": {"D": each}}, {})} for each in (old, new)]
    comparison = Comparison(stacks[0], stacks[1])
    change = ResourceChange("D", DATABASE, Effect.CHANGED, "database-1")
    account = MagicMock()
    account.ask.return_value = {
        "DBInstances": [
            {"DBInstanceIdentifier": "database-1", "DBInstanceStatus": "available"}
            | (dict(zip(names, real, strict=True)) if real else {})
        ]
    }
    plan = StackPlan("S", Source.FILES, changes=(change,))

    found = list(refusals.of_stack(plan, comparison, account if real else None))

    assert [each.status for each in found] == [CheckStatus.FAIL] * len(refused)
    assert all(words in each.sentence for words, each in zip(refused, found, strict=True))


def test_what_rds_has_may_not_be_read() -> None:
    account = MagicMock()
    account.ask.side_effect = ClientError({"Error": {"Code": "AccessDenied"}}, "DescribeDBInstances")
    resource = {"Type": DATABASE, "Properties": {"AllocatedStorage": 20}}
    stacks = {"S": Stack("S", "us-west-2", EXAMPLE_ACCOUNT, {"Resources": {"D": resource}}, {})}
    plan = StackPlan("S", Source.FILES, changes=(ResourceChange("D", DATABASE, Effect.CHANGED, "database-1"),))

    [finding] = refusals.of_stack(plan, Comparison(stacks, stacks), account)

    assert (finding.status, finding.hint) == (CheckStatus.UNKNOWN, "grant rds:DescribeDBInstances")


def test_a_refusal_blocks_the_plan_and_names_the_setting_unless_the_resource_is_replaced() -> None:
    def planned(capacity: int, subnet: str) -> list[Any]:
        old, new = (
            {"S": Stack("S", "us-west-2", EXAMPLE_ACCOUNT, {"Resources": {"Lustre": resource}}, {})}
            for resource in (
                {"Type": "AWS::FSx::FileSystem", "Properties": {**LUSTRE, "SubnetIds": ["subnet-1"]}},
                {
                    "Type": "AWS::FSx::FileSystem",
                    "Properties": {**LUSTRE, "StorageCapacity": capacity, "SubnetIds": [subnet]},
                },
            )
        )
        comparison = Comparison(old, new)
        stack = StackPlan("S", Source.FILES, changes=comparison.changes["S"])
        return list(refusals.of_stack(stack, comparison))

    [finding] = planned(4800, "subnet-1")
    assert finding.status is CheckStatus.FAIL
    assert finding.subject == "S/Lustre"
    assert finding.sentence == (
        "Lustre (AWS::FSx::FileSystem) cannot change StorageCapacity from 9600 to 4800; allowed: 9600 or more"
    )
    assert finding.hint.startswith("set storage.file_system.capacity_gib to that (https://docs.aws.amazon.com/fsx/")
    assert planned(4800, "subnet-2") == []


def test_the_places_of_the_rows_are_those_of_the_settings() -> None:
    for row in refusals.ROWS:
        model: Any = Settings
        for name in row.place.split("."):
            model = next(
                each
                for each in (
                    model.model_fields[name].annotation,
                    *getattr(model.model_fields[name].annotation, "__args__", ()),
                )
                if hasattr(each, "model_fields")
            )
        assert model is row.model
