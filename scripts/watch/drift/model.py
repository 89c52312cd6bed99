"""The result of drift detection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

from pydantic import Field, computed_field

from scripts.core.document import DeploymentName, Document, Result
from scripts.core.figures import counted
from scripts.core.report import Block, Conclusion, Folded, Line, Toned


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


class DriftReport(Result):
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
        return f"{counted(self.checked, 'resources')} compared; CloudFormation does not compare {len(self.unchecked)}."

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        for each in self.drifts:
            yield Line(Toned(f"{each.subject} ({each.kind})", "strong"))
            yield Line(each.sentence, level=1)
        yield from (Line(Toned(f"Not compared: {reason}", "warn")) for reason in self.not_compared)
        verdict = Toned(self.verdict, "good" if self.ok else "bad")
        yield Conclusion([Line(verdict), Line(Toned(self.coverage, "dim"))])

    def page(self) -> Iterator[Block]:
        """Yield it with what CloudFormation does not compare."""
        yield from self.blocks()
        if self.unchecked:
            summary = f"Not compared by CloudFormation: {len(self.unchecked)}"
            yield Folded(summary, [Line(each, item=True) for each in self.unchecked])
