"""What became of a delivery, as Markdown for the summary of a job and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from scripts.change_plan.markdown import as_markdown as plan_as_markdown
from scripts.change_plan.markdown import escaped, table
from scripts.delivery.rounds import Outcome, Result
from scripts.operations.screen import dollars, duration
from scripts.operations.status.model import Unseen

if TYPE_CHECKING:
    from scripts.delivery.site import Facts
    from scripts.operations.diagnosis.causes import Finding
    from scripts.operations.diagnosis.diagnose import Diagnosis
    from scripts.operations.diagnosis.evidence import Evidence

_MOST_EVIDENCE = 3
_LONGEST_EVIDENCE = 400
_DONE = (Result.DEPLOYED, Result.UNCHANGED)


@dataclass(frozen=True)
class Round:
    """A round that is over.

    Attributes:
        environment: File name in config/ without .yaml.
        region: Region of the stacks.
        outcome: What became of it.
        length: How long it took.
        facts: What is to be said of a complete deployment; None: it is not, or that could not be seen.
        diagnosis: Why it failed; None: it did not.
    """

    environment: str
    region: str
    outcome: Outcome
    length: timedelta
    facts: Facts | None = None
    diagnosis: Diagnosis | Unseen | None = None

    @property
    def connect(self) -> str:
        """The command that opens a shell on the cluster."""
        return f"make connect ENV={self.environment}"


def document(found: Round) -> dict[str, Any]:
    """Return everything, as docs/schemas/deliver.json describes it."""
    outcome, facts, diagnosis = found.outcome, found.facts, found.diagnosis
    cost = facts.cost if facts else None
    return {
        "environment": found.environment,
        "region": found.region,
        "result": outcome.result,
        "note": outcome.note,
        "seconds": round(found.length.total_seconds()),
        "stacks": [
            {"name": each.stack, "status": each.status, "seconds": round(each.seconds(each.newest))}
            for each in (facts.operations if facts else ())
        ],
        "dollars_per_hour": cost and {"nodes": float(cost.nodes), "standing": float(cost.standing)},
        "connect": found.connect if outcome.result in _DONE else None,
        "findings": [
            {"status": each.status, "subject": each.subject, "sentence": each.sentence, "hint": each.hint}
            for each in (outcome.plan.findings if outcome.plan else ())
        ],
        "diagnosis": None if diagnosis is None or isinstance(diagnosis, Unseen) else diagnosis.document(),
    }


def as_markdown(found: Round) -> str:
    """Return what became of it as GitHub's Markdown: short, with what helps, and without logs."""
    return "\n".join(_lines(found)) + "\n"


def not_deployed(environment: str, error: Exception) -> str:
    """Return why a round came to no result as GitHub's Markdown.

    Args:
        environment: File name in config/ without .yaml.
        error: What ended it.
    """
    begun = f"If something was begun, AWS goes on with it: `make status ENV={environment}`"
    return f"### `{environment}` was not deployed\n\n{escaped(str(error))}\n\n{begun}\n"


def _lines(found: Round) -> Iterator[str]:
    outcome, name = found.outcome, f"`{found.environment}`"
    if outcome.result in _DONE:
        yield f"### {name} is deployed"
        yield ""
        yield from _complete(found)
    elif outcome.result is Result.GOES_ON:
        yield f"### {name} is being deployed"
        yield ""
        yield escaped(outcome.note)
    elif outcome.result is Result.REFUSED:
        yield f"### {name} was not deployed"
        yield ""
        yield plan_as_markdown(outcome.plan) if outcome.plan else escaped(outcome.note)
    else:
        yield f"### {name} failed after {duration(found.length)}"
        yield ""
        yield escaped(outcome.note)
        yield from _why(found.diagnosis, found.environment)


def _complete(found: Round) -> Iterator[str]:
    operations = found.facts.operations if found.facts else ()
    if operations:
        rows = [
            (each.stack, each.status, duration(timedelta(seconds=each.seconds(each.newest)))) for each in operations
        ]
        yield from table(("Stack", "Status", "Time"), [list(map(escaped, row)) for row in rows])
        yield ""
    elif found.outcome.result is Result.UNCHANGED:
        yield "Nothing differed from the settings."
        yield ""
    yield f"- This round took {duration(found.length)}."
    yield f"- Connect: `{found.connect}`; look: `make status ENV={found.environment}`"
    if found.facts:
        cost = found.facts.cost
        amounts = f"{dollars(cost.nodes)} for compute nodes that run, {dollars(cost.standing)} for the rest"
        yield f"- Cost: {dollars(cost.nodes + cost.standing)} an hour: {amounts} ({cost.source})"


def _why(diagnosis: Diagnosis | Unseen | None, environment: str) -> Iterator[str]:
    if diagnosis is None or isinstance(diagnosis, Unseen):
        yield ""
        reason = f": {escaped(diagnosis.reason)}" if diagnosis else ""
        yield f"Why was not seen{reason}. Look: `make diagnose ENV={environment}`"
        return
    yield ""
    if diagnosis.unknown:
        yield "**No known cause. This failed first:**"
        yield from _evidence(diagnosis.unknown[:1])
        yield from _steps([f"$ {each}" for each in diagnosis.read_on])
    elif diagnosis.findings:
        yield from _cause(diagnosis.findings[0])
        for each in diagnosis.findings[1:]:
            yield f"- Also seen: {escaped(each.cause.title)}: {escaped(each.why)}"
    else:
        yield "No stack failed, as far as was read: what the CDK said stands in the log of this step."
    yield ""
    yield f"More: `make diagnose ENV={environment}`"


def _cause(finding: Finding) -> Iterator[str]:
    yield f"**{escaped(finding.cause.title)}** {escaped(finding.why)}"
    yield from _evidence(finding.evidence[:_MOST_EVIDENCE])
    yield from _steps(finding.do)
    yield f"See <{finding.cause.source}>"


def _evidence(evidence: tuple[Evidence, ...]) -> Iterator[str]:
    yield ""
    yield "```text"
    for each in evidence:
        text = " ".join(each.text.replace("```", "'''").split())
        short = text if len(text) <= _LONGEST_EVIDENCE else f"{text[:_LONGEST_EVIDENCE]} ..."
        yield f"{each.time:%Y-%m-%d %H:%M:%S} UTC {each.place}: {short}"
    yield "```"
    yield ""


def _steps(steps: tuple[str, ...] | list[str]) -> Iterator[str]:
    yield "What to do:"
    yield ""
    for step in steps:
        yield f"- `{step.removeprefix('$ ')}`" if step.startswith("$ ") else f"- {escaped(step)}"
    yield ""
