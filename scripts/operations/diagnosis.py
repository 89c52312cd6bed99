"""Why a deployment failed: from the first failure in its stacks, and the logs that belong to it, to a known cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from scripts.deployment import Deployment
from scripts.operations.causes import Finding, find
from scripts.operations.clock import Clock
from scripts.operations.evidence import Evidence, Reader
from scripts.operations.failures import Operation, operations, window

if TYPE_CHECKING:
    from rich.console import Console

LOOK_BACK = (timedelta(minutes=30), timedelta(hours=6))
"""Of which time the logs of a cluster that runs are read: the longer one if the shorter one shows nothing."""
LINES_OF_UNKNOWN = 5
"""The lines before the end of an unknown failure that are shown."""
_SHOWN = 500
_WIDTH = 74


@dataclass(frozen=True)
class Diagnosis:
    """What was found.

    Attributes:
        deployment: Of what.
        operation: The operation that failed; None: none did.
        findings: Known causes, the one that began it first; if that is not known, those of later failures.
        unknown: If what began it is not known: the first failure, and the last lines of the logs.
        read: What was read: stacks and log groups.
        unread: What could not be read, and why.
    """

    deployment: Deployment
    operation: Operation | None
    findings: tuple[Finding, ...]
    unknown: tuple[Evidence, ...]
    read: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Whether there is something to mend."""
        return bool(self.findings or self.unknown)

    @property
    def read_on(self) -> tuple[str, ...]:
        """Commands that show more than was read, for an unknown failure."""
        if not self.unknown:
            return ()
        groups = [each for each in self.read if each.startswith("/")]
        return (
            self.deployment.command("cloudformation", "describe-stack-events", "--stack-name", self.unknown[0].place),
            *(self.deployment.command("logs", "tail", group, "--since", "6h") for group in groups),
            f"make preflight ENV={self.deployment.environment}",
        )

    def document(self) -> dict[str, Any]:
        """Return everything, as docs/schemas/diagnose.json describes it."""
        return {
            "environment": self.deployment.environment,
            "region": self.deployment.settings.region,
            "outcome": "unknown" if self.unknown else "cause" if self.findings else "nothing failed",
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
            "unread": list(self.unread),
        }


def diagnose(deployment: Deployment, clock: Clock | None = None) -> Diagnosis:
    """Tell why the newest operation that failed did; if none did, what keeps nodes of the cluster from coming.

    Calls: one for each stack, then for what failed one per 100 events of a stack (5,000 at most) and per 100 deleted
    stacks (2,000 at most). One for the log groups; at most 10 for each of the cluster's and the provider's, and for a
    cluster that runs 10 for each time of `LOOK_BACK`.

    Raises:
        botocore.exceptions.ClientError: Credentials are not valid; what they do not allow is told in `unread`.
    """
    reader = Reader(deployment)
    failed = operations(reader)
    unknown: Sequence[Evidence] = ()
    if failed:
        findings, unknown = _of_operation(reader, failed[0])
    else:
        findings = list(_of_running(reader, clock or Clock()))
    return Diagnosis(
        deployment,
        failed[0] if failed else None,
        _distinct(findings),
        tuple(unknown),
        tuple(dict.fromkeys(reader.read)),
        tuple(reader.unread),
    )


def _of_operation(reader: Reader, operation: Operation) -> tuple[list[Finding], list[Evidence]]:
    """Return causes, that of the first failure or what is behind it first; or else what is known without a cause.

    Of what logs tell, the line nearest to the failure counts: what was before may have been tried again with success.
    """
    events = operation.events
    first, others = _find(reader, events[0]), list(_known(reader, events[1:]))
    if first and first.cause.logs is None:
        return [first, *others], []
    lines = _logs(reader, operation)
    kinds = first.cause.logs if first else None
    causes, symptoms = _parted(each for each in _known(reader, reversed(lines)) if _is_of(each, kinds))
    behind = [replace(each, evidence=(events[0], *each.evidence)) for each in causes]
    explained = [*behind, *([first] if first else []), *symptoms]
    return [*explained, *others], [] if explained else [events[0], *lines[-LINES_OF_UNKNOWN:]]


def _of_running(reader: Reader, clock: Clock) -> Iterator[Finding]:
    """Yield what the logs of a cluster that runs tell, the newest first, symptoms last."""
    stack = reader.deployment.stack_name("cluster")
    if stack not in reader.read or not (group := reader.cluster_group()):
        return
    now = clock.now()
    for length in LOOK_BACK:
        found = list(_known(reader, reversed(reader.lines(group, now - length, now))))
        if found:
            causes, symptoms = _parted(found)
            yield from (*causes, *symptoms)
            return


def _logs(reader: Reader, operation: Operation) -> list[Evidence]:
    """Return what the logs of the cluster and of the provider tell, if the operation was about the cluster."""
    if operation.stack != reader.deployment.stack_name("cluster"):
        return []
    groups = [group for group in (reader.cluster_group(), operation.provider_group) if group]
    lines = [line for group in groups for line in reader.lines(group, *window(operation))]
    return sorted(lines, key=lambda line: line.time)


def _known(reader: Reader, evidence: Iterable[Evidence]) -> Iterator[Finding]:
    return (found for each in evidence if (found := _find(reader, each)))


def _find(reader: Reader, evidence: Evidence) -> Finding | None:
    deployment = reader.deployment
    cluster_stack = deployment.stack_name("cluster")
    return find(
        evidence,
        {
            "env": deployment.environment,
            "cluster": deployment.settings.cluster_spec.name,
            "region": deployment.settings.region,
            "stack": evidence.place if evidence.kind == "event" else cluster_stack,
            "resource": evidence.resource or cluster_stack,
            "type": "the type",
            "zone": "the zone",
        },
    )


def _is_of(finding: Finding, kinds: Sequence[str] | None) -> bool:
    return kinds is None or finding.evidence[0].kind in kinds


def _parted(findings: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Return causes, and symptoms."""
    found = list(findings)
    return [each for each in found if each.cause.logs is None], [each for each in found if each.cause.logs is not None]


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
    operation = diagnosis.operation
    if operation:
        _print(console, f"{operation.stack}: {operation.status}, begun {operation.began:%Y-%m-%d %H:%M} UTC")
    others = diagnosis.findings
    if diagnosis.unknown:
        _print(console, "No known cause. This failed first:", "bold red")
        _show_evidence(diagnosis.unknown, console)
        _title(console, "Read on")
        for command in diagnosis.read_on:
            _show_command(command, console)
    elif diagnosis.findings:
        _show_cause(diagnosis.findings[0], console)
        others = diagnosis.findings[1:]
    else:
        seen = ", ".join(diagnosis.read) or ("nothing" if diagnosis.unread else "there are no stacks")
        _print(console, f"Nothing failed, as far as was read: {seen}.")
    if others:
        _title(console, "Also seen")
        for each in others:
            _print(console, f"- {each.cause.title}: {each.why}")
    if diagnosis.unread:
        _title(console, "Not read")
        for line in diagnosis.unread:
            _print(console, f"- {line}")


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
    """Print a command so that it can be copied: broken between words, with a backslash."""
    lines = [""]
    for word in re.findall(r"(?:'[^']*'|[^\s'])+", command):
        joined = f"{lines[-1]} {word}".strip()
        lines[-1:] = [joined] if len(joined) <= _WIDTH or not lines[-1] else [lines[-1], word]
    _print(console, "  " + " \\\n    ".join(lines), "green")
