"""What snapshots of head nodes are."""

from typing import Annotated, Literal

from pydantic import Field

from ultracluster.domain.spec import Change, Setting, Spec


class SnapshotSpec(Spec):
    """Snapshots of the head node's root volume by Amazon Data Lifecycle Manager; they outlive the cluster."""

    interval_hours: Annotated[
        Literal[1, 2, 3, 4, 6, 8, 12, 24], Setting(Change.AT_ONCE, "AWS::DLM::LifecyclePolicy.CreateRule.Interval")
    ] = 24
    """Hours between two snapshots."""
    retained: Annotated[
        int, Field(ge=1, le=1000), Setting(Change.AT_ONCE, "AWS::DLM::LifecyclePolicy.RetainRule.Count")
    ] = 7
    """Snapshots that are kept; the oldest is deleted when there is one more. Of a head node that is gone all stay."""
