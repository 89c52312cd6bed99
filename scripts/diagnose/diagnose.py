"""Why a deployment failed: from the first failure in its stacks, and the logs that belong to it, to a known cause."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scripts.clock import Clock
from scripts.deployment import Deployment
from scripts.diagnose.causes import Finding
from scripts.diagnose.evidence import PROVIDER_GROUP, Evidence, Reader
from scripts.diagnose.failures import Operation, operations
from scripts.diagnose.reasons import of_cluster, of_operation

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 500
_WIDTH = 74


@dataclass(frozen=True)
class Diagnosis:
    """What was found.

    Attributes:
        deployment: Of what.
        operation: The newest operation that failed; None: none did.
        current: Known causes that the cluster shows now, the first of `findings`.
        findings: Known causes, the one to begin with first; if `unknown` is that, those of later failures.
        unknown: If what began the operation's failure is not known: the first failure, and the last lines of the logs.
        read: What was read: stacks and log groups.
        unread: What could not be read, and the action that is not allowed.
        cut_off: Of what only a part was read, as there is too much of it.
    """

    deployment: Deployment
    operation: Operation | None
    current: tuple[Finding, ...]
    findings: tuple[Finding, ...]
    unknown: tuple[Evidence, ...]
    read: tuple[str, ...]
    unread: tuple[str, ...]
    cut_off: tuple[str, ...]

    @property
    def outcome(self) -> str:
        """``cause``, ``unknown``, or ``nothing failed``, which can be said only of what may be read."""
        if self.current or (self.findings and not self.unknown):
            return "cause"
        return "unknown" if self.unknown or self.unread else "nothing failed"

    @property
    def failed(self) -> bool:
        """Whether there is something to mend, or may be."""
        return self.outcome != "nothing failed"

    @property
    def read_on(self) -> tuple[str, ...]:
        """Commands that show more than was read, for an unknown failure."""
        if not self.unknown:
            return ()
        first, environment = self.unknown[0], self.deployment.environment
        is_there = self.operation is not None and self.operation.stack == first.place
        stack = first.place if is_there else first.names["stack_id"]  # those below may be deleted, and go by id then
        has_nodes = any(each.startswith("/aws/parallelcluster/") for each in self.read)
        providers = [each for each in self.read if PROVIDER_GROUP.fullmatch(each)]
        return (
            self.deployment.command("cloudformation", "describe-stack-events", "--stack-name", stack),
            *([f"make logs ENV={environment} ARGS='head-node --since 6h'"] if has_nodes else []),
            *(self.deployment.command("logs", "filter-log-events", "--log-group-name", each) for each in providers),
            f"make preflight ENV={environment}",
        )

    def document(self) -> dict[str, Any]:
        """Return everything, as docs/schemas/diagnose.json describes it."""
        return {
            "environment": self.deployment.environment,
            "region": self.deployment.settings.region,
            "outcome": self.outcome,
            "operation": self.operation
            and {
                "stack": self.operation.stack,
                "status": self.operation.status,
                "began": self.operation.began.isoformat(),
            },
            "causes": [
                {
                    "id": each.cause.id,
                    "title": each.cause.title,
                    "why": each.why,
                    "to_do": list(each.do),
                    "source": each.cause.source,
                    "evidence": [_document(line) for line in each.evidence],
                }
                for each in self.findings
            ],
            "unknown": [_document(each) for each in self.unknown],
            "read_on": list(self.read_on),
            "read": list(self.read),
            "unread": [*self.unread, *self.cut_off],
        }


def diagnose(deployment: Deployment, clock: Clock | None = None) -> Diagnosis:
    """Tell why the newest operation that failed did, and what keeps nodes of a cluster that runs from coming.

    The cluster that runs comes first, unless the operation is one of its own and of the last hours.

    Calls: one for each stack, then for what failed one per 100 events of a stack (5,000 at most) and per 100 deleted
    stacks (2,000 at most). One for the log groups, and per 1,000 instances; at most 20 for the cluster's logs and 10
    for the provider's, and for a cluster that runs 20 for each time of `LOOK_BACK`.

    Raises:
        botocore.exceptions.ClientError: Credentials are not valid; what they do not allow is told in `unread`.
    """
    reader = Reader(deployment)
    failed = operations(reader)
    operation = failed[0] if failed else None
    findings, unknown = of_operation(reader, operation) if operation else ([], [])
    current = of_cluster(reader, operation, (clock or Clock()).now())
    return Diagnosis(
        deployment,
        operation,
        _distinct(current),
        _distinct([*current, *findings]),
        tuple(unknown),
        tuple(dict.fromkeys(reader.read)),
        tuple(dict.fromkeys(reader.unread)),
        tuple(dict.fromkeys(reader.cut_off)),
    )


def _distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the first finding of each cause."""
    found: dict[str, Finding] = {}
    for each in findings:
        found.setdefault(each.cause.id, each)
    return tuple(found.values())


def _document(evidence: Evidence) -> dict[str, str]:
    return {
        "kind": evidence.kind,
        "place": evidence.place,
        "time": evidence.time.isoformat(),
        "text": evidence.text,
    }


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Print what was found, for a terminal of 80 columns or more."""
    operation, others = diagnosis.operation, list(diagnosis.findings)
    if diagnosis.current:
        _show_cause(others.pop(0), console)
        if operation:
            _title(console, "Failed as well")
    if operation:
        _print(console, f"{operation.stack}: {operation.status}, begun {operation.began:%Y-%m-%d %H:%M} UTC")
    if diagnosis.unknown:
        _show_unknown(diagnosis, console)
    elif diagnosis.findings and not diagnosis.current:
        _show_cause(others.pop(0), console)
    elif diagnosis.outcome == "unknown":
        _print(console, "Whether something failed is not known: not everything may be read.", "bold red")
    elif not diagnosis.findings:
        seen = ", ".join(diagnosis.read) or "there are no stacks"
        _print(console, f"Nothing failed, as far as was read: {seen}.")
    if others:
        _title(console, "Also seen")
        for each in others:
            _print(console, f"- {each.cause.title}: {each.why}")
    if not_read := (*diagnosis.unread, *diagnosis.cut_off):
        _title(console, "Not read")
        for line in not_read:
            _print(console, f"- {line}")


def _show_unknown(diagnosis: Diagnosis, console: Console) -> None:
    _print(console, "No known cause. This failed first:", "bold red")
    _show_evidence(diagnosis.unknown, console)
    _title(console, "Read on")
    for command in diagnosis.read_on:
        _show_command(command, console)


def _show_cause(finding: Finding, console: Console) -> None:
    _print(console, finding.cause.title, "bold red")
    _print(console, finding.why)
    _title(console, "Why this is believed")
    _show_evidence(finding.evidence, console)
    _title(console, "What to do")
    for line in finding.do:
        if line.startswith("$ "):
            _show_command(line.removeprefix("$ "), console)
        else:
            _print(console, f"- {line}")
    _print(console, f"See {finding.cause.source}", "dim")


def _show_evidence(evidence: Iterable[Evidence], console: Console) -> None:
    for each in evidence:
        _print(console, f"{each.time:%Y-%m-%d %H:%M:%S} UTC, {each.place}", "cyan")
        _print(console, each.text if len(each.text) <= _SHOWN else f"{each.text[:_SHOWN]} ...")


def _title(console: Console, text: str) -> None:
    _print(console, f"\n{text}", "bold")


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style, markup=False, overflow="fold")


def _show_command(command: str, console: Console) -> None:
    """Print a command so that it can be copied: broken between words, with a backslash; within those that are long."""
    lines = [""]
    for word in re.findall(r"(?:'[^']*'|[^\s'])+", command):
        joined = f"{lines[-1]} {word}".strip()
        lines[-1:] = [joined] if len(joined) <= _WIDTH or not lines[-1] else [lines[-1], word]
    text = "  " + " \\\n    ".join(lines)
    _print(console, re.sub(rf"(.{{{_WIDTH + 5}}})(?=..)", r"\1\\\n", text), "green")
