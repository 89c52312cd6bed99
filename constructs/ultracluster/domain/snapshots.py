"""What snapshots of head nodes are."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from ultracluster.domain.spec import Change, Setting, Spec
from ultracluster.domain.types import FROM_HOURS, Time, default
from ultracluster.domain.violations import Violation

if TYPE_CHECKING:
    SnapshotHours = Time
else:
    SnapshotHours = Literal[1, 2, 3, 4, 6, 8, 12, 24]
_TAG_KEY = re.compile(r"[a-zA-Z0-9+._:/=-]+")


class SnapshotSpec(Spec):
    """Snapshots of the head node's root volume by Amazon Data Lifecycle Manager; they outlive the cluster."""

    interval_hours: Annotated[
        SnapshotHours, FROM_HOURS, Setting(Change.AT_ONCE, "AWS::DLM::LifecyclePolicy.CreateRule.Interval")
    ] = default(24)
    """Hours between two snapshots."""
    retained: Annotated[
        int, Field(ge=1, le=1000), Setting(Change.AT_ONCE, "AWS::DLM::LifecyclePolicy.RetainRule.Count")
    ] = 7
    """Snapshots that are kept; the oldest is deleted when there is one more. Of a head node that is gone all stay."""


def tag_violations(keys: Iterable[str]) -> Iterator[Violation]:
    """Yield the keys of tags that Data Lifecycle Manager refuses, with paths from the tags on.

    https://docs.aws.amazon.com/dlm/latest/APIReference/API_TagResource.html
    """
    for key in keys:
        if not _TAG_KEY.fullmatch(key):
            allowed = "a key of letters a to z, digits and _ . : / = + - with snapshots of the head node"
            yield Violation((key,), key, allowed, "what Data Lifecycle Manager takes")
