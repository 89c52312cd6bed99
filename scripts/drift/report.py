"""What drift detection found: as JSON, for a terminal, and as Markdown."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import Field, computed_field

from scripts.document import Document
from scripts.markdown import escaped, table

if TYPE_CHECKING:
    from rich.console import Console


class Kind(StrEnum):
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

    kind: Kind
    subject: str = Field(description="The stack, with the resource after a slash; or the cluster.")
    sentence: str = Field(description="How it differs.")


class DriftReport(Document):
    """What of a deployment differs from its template or its settings."""

    environment: str = Field(description="File name in config/ without .yaml.")
    region: str = Field(description="Region of the stacks.")
    deployed: bool = Field(description="Whether any of its stacks exists; if not, nothing is compared.")
    drifts: tuple[Drift, ...] = Field((), description="What differs.")
    checked: int = Field(0, description="How many resources CloudFormation compared.")
    unchecked: tuple[str, ...] = Field(
        (), description="Resources that CloudFormation does not compare: stack, slash, logical id, type."
    )
    unseen: tuple[str, ...] = Field((), description="What could not be compared, and why.")
    busy: tuple[str, ...] = Field(
        (), description="Stacks with an operation in progress, with their status: then nothing is compared."
    )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ok(self) -> bool:
        """Whether everything could be compared and nothing differs: exit code 0."""
        return not self.drifts and not self.unseen

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
        return "No drift, but not everything could be compared." if self.unseen else "No drift."

    @property
    def coverage(self) -> str:
        """How much CloudFormation compared, in a sentence."""
        return f"{self.checked} resources compared, {len(self.unchecked)} cannot be."


def show(report: DriftReport, console: Console) -> None:
    """Print a report, for a terminal of 80 columns or more."""

    def line(text: str, style: str = "") -> None:
        console.print(text, style=style, markup=False, overflow="fold")

    for each in report.drifts:
        line(f"{each.subject} ({each.kind})", "bold")
        line(f"  {each.sentence}")
    for reason in report.unseen:
        line(f"Not compared: {reason}", "yellow")
    line(report.verdict, "green" if report.ok else "bold red")
    line(report.coverage, "dim")


def as_markdown(report: DriftReport) -> str:
    """Return a report as GitHub's Markdown, the verdict first."""
    lines = [f"### Drift of `{report.environment}`", "", f"**{report.verdict}** {report.coverage}"]
    if report.drifts:
        rows = [(escaped(each.subject), each.kind, escaped(each.sentence)) for each in report.drifts]
        lines += ["", *table(("What", "Kind", "How it differs"), rows)]
    if report.unseen:
        lines += ["", "Not compared:", "", *(f"- {' '.join(reason.split())}" for reason in report.unseen)]
    if report.unchecked:
        summary = f"Not compared by CloudFormation: {len(report.unchecked)}"
        lines += ["", f"<details><summary>{summary}</summary>", "", *(f"- `{each}`" for each in report.unchecked)]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"
