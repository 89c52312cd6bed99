"""The result of drift detection."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from pydantic import Field, computed_field

from scripts.core.document import DeploymentName, Document


class DriftKind(StrEnum):
    """What has drifted."""

    DELETED = "deleted"
    """A resource was deleted outside of CloudFormation."""
    MODIFIED = "modified"
    """A resource was changed outside of CloudFormation."""
    SETTINGS = "settings"
    """The settings differ from what is deployed: a deployment would change it."""
    CLUSTER = "cluster"
    """The cluster was updated outside of CloudFormation, or is of another version."""
    FLEET = "fleet"
    """The compute fleet does not run."""


class Drift(Document):
    """One difference from the template or the settings."""

    kind: DriftKind
    subject: str = Field(description="The stack, with the resource after a slash; or the cluster.")
    sentence: str = Field(description="How it differs.")


class DriftReport(Document):
    """What of a deployment differs from its template or its settings."""

    deployment: DeploymentName
    region: str = Field(description="Region of the stacks.")
    deployed: bool = Field(description="Whether any of its stacks exists; if not, nothing is compared.")
    drifts: tuple[Drift, ...] = Field(default=(), description="What differs.")
    checked: int = Field(0, description="How many resources CloudFormation compared.")
    unchecked: tuple[str, ...] = Field(
        default=(), description="Resources that CloudFormation does not compare: stack, slash, logical id, type."
    )
    not_compared: tuple[str, ...] = Field(default=(), description="What could not be compared, and why.")
    busy: tuple[str, ...] = Field(
        default=(), description="Stacks with an operation in progress, with their status: then nothing is compared."
    )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ok(self) -> bool:
        """Whether everything could be compared and nothing differs: exit code 0."""
        return not self.drifts and not self.not_compared

    @property
    def verdict(self) -> str:
        """The result, in a sentence."""
        if not self.deployed:
            return "Nothing is deployed."
        if self.busy:
            return f"Skipped: an operation is in progress ({', '.join(self.busy)})."
        if self.drifts:
            counts = Counter(each.kind for each in self.drifts)
            return f"Drift: {', '.join(f'{count} {kind}' for kind, count in counts.items())}."
        return "No drift, but not everything could be compared." if self.not_compared else "No drift."

    @property
    def coverage(self) -> str:
        """How much CloudFormation compared, in a sentence."""
        return f"{self.checked} resources compared; CloudFormation does not compare {len(self.unchecked)}."
