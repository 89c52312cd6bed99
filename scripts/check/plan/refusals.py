"""What AWS refuses to change in a resource that exists: settings declare it (`Growth`), and rules beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.exceptions import ClientError

from scripts.account import databases
from scripts.account.deployment import Account
from scripts.check.plan.comparison import Comparison
from scripts.check.plan.findings import named
from scripts.check.plan.model import Effect, StackPlan
from scripts.core.aws_errors import is_denied
from scripts.core.findings import FAIL, UNKNOWN, Finding
from ultracluster.domain.accounting import DatabaseSpec
from ultracluster.domain.homes import OpenZfsSpec
from ultracluster.domain.lustre import LustreSpec, growth_blocker
from ultracluster.domain.spec import Spec

Properties = Mapping[str, Any]
_IOPS: Final = "LustreConfiguration.MetadataConfiguration.Iops"


@dataclass(frozen=True)
class Refusal:
    """A change that AWS refuses.

    Attributes:
        sentence: What it is, after the name of the resource.
        hint: What to do.
    """

    sentence: str
    hint: str


def _together(before: Properties, after: Properties) -> Refusal | None:
    """Return why capacity and metadata IOPS of Lustre cannot change at once."""
    capacity = int(before["StorageCapacity"]), int(after["StorageCapacity"])
    blocker = growth_blocker(capacity, (at(before, _IOPS), at(after, _IOPS)))
    if blocker is None:
        return None
    hint = "two deployments: first storage.file_system.metadata_iops, then capacity_gib"
    return Refusal(f"cannot grow at once: {blocker}", hint)


@dataclass(frozen=True)
class Row:
    """The resources whose properties the settings of a section are.

    Attributes:
        place: The section.
        model: What declares its settings.
        properties: What tells its resources from others of their type.
        together: Returns why several of its settings cannot change at once; None: they can.
    """

    place: str
    model: type[Spec]
    properties: Properties = field(default_factory=dict)
    together: Callable[[Properties, Properties], Refusal | None] = lambda *_: None


ROWS: Final = (
    Row("storage.file_system", LustreSpec, {"FileSystemType": "LUSTRE"}, _together),
    Row("homes.openzfs", OpenZfsSpec, {"FileSystemType": "OPENZFS"}),
    Row("accounting.database", DatabaseSpec),
)
"""The sections that have settings which only grow."""


def of_stack(stack: StackPlan, comparison: Comparison, account: Account | None = None) -> Iterator[Finding]:
    """Yield what AWS refuses of the changes of a stack; what is replaced has other values from the start.

    An account is asked what it has raised by itself.
    """
    for change in stack.changes:
        if change.effect is not Effect.CHANGED:
            continue
        subject, before_and_after = (
            f"{stack.name}/{change.logical_id}",
            comparison.properties(stack.name, change.logical_id),
        )
        raised: Properties = {}
        if account is not None and change.physical_id and change.type == databases.DATABASE:
            try:
                raised = _raised(databases.find(account, change.physical_id))
            except ClientError as error:
                if not is_denied(error):
                    raise
                sentence = f"{named(change)}: whether RDS has raised its storage or version by itself could not be read"
                yield Finding(UNKNOWN, sentence, "grant rds:DescribeDBInstances", subject=subject)
        for each in of_resource(change.type, *before_and_after, raised):
            yield Finding(FAIL, f"{named(change)} {each.sentence}", each.hint, subject=subject)


def _raised(database: databases.Database | None) -> Properties:
    """Return what RDS raises by itself: the storage as it fills, the version in maintenance windows."""
    if database is None:
        return {}
    return {"AllocatedStorage": database.storage_gib, "EngineVersion": database.engine_version or None}


def of_resource(
    resource_type: str, before: Properties, after: Properties, raised: Properties | None = None
) -> Iterator[Refusal]:
    """Yield what AWS refuses of a change of a resource's properties, all at once.

    Args:
        resource_type: Such as ``AWS::RDS::DBInstance``.
        before: Its properties in CloudFormation.
        after: Those that it will get there.
        raised: What the resource itself has, where that may be more. CloudFormation hands on only values that change
            (https://github.com/aws-cloudformation/aws-cloudformation-resource-providers-rds, modifyDbInstanceRequest).
    """
    for row in ROWS:
        growing = [(name, each) for name, each in row.model.declared() if each.growth]
        keys = [(name, each, (each.key(row.model) or "").partition(".")) for name, each in growing]
        if keys[0][2][0] != resource_type or not row.properties.items() <= before.items():
            continue
        for name, setting, (_, _, path) in keys:
            old, new = at(before, path), at(after, path)
            if old != new:
                old = at(raised or {}, path) or old
            allowed = setting.growth and setting.growth.refused(old, new, before)
            if setting.growth and allowed:
                sentence = f"cannot change {path} from {_shown(old)} to {_shown(new)}; allowed: {allowed}"
                yield Refusal(sentence, f"set {row.place}.{name} to that ({setting.growth.page})")
        together = row.together(before, after)
        if together:
            yield together


def at(properties: Properties, path: str) -> Any:
    """Return what stands at a path such as ``LustreConfiguration.DeploymentType``; None: nothing."""
    value: Any = properties
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _shown(value: object) -> object:
    return "automatic" if value is None else value
