"""What there is to review of a deployment before it exists: drawing, resources, permissions, costs, findings."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scripts.check.estimate.estimate import estimate, wanted_products
from scripts.check.estimate.prices import find_prices
from scripts.check.estimate.products import table_dates
from scripts.check.estimate.tables import Estimate
from scripts.check.estimate.tables import tables as tables_of_estimate
from scripts.check.plan.plan import in_order
from scripts.check.review.drawing import draw
from scripts.check.review.permissions import MARK, permission_table, reach_table
from scripts.check.review.templates import Resource, listed, resources_of
from scripts.check.validation import Validation, outcomes
from scripts.core import options
from scripts.core.errors import UnusableError
from scripts.core.figures import NONE, counted, usd
from scripts.core.report import Column, Table
from scripts.core.temporary import temporary_directory
from toolchain.assembly import Assembly
from toolchain.synthesis import REPORT, synthesize

_NAMES: Final = {
    "EIP": "public address",
    "NatGateway": "NAT gateway",
    "PclusterCluster": "ParallelCluster cluster",
    "S3AutoDeleteObjects": "deletion of a bucket's objects",
    "Stack": "nested stack",
    "VPCEndpoint": "VPC endpoint",
    "VPCGatewayAttachment": "VPC gateway attachment",
    "VpcRestrictDefaultSG": "default security group without rules",
    "WaitConditionHandle": "placeholder",
}
_ACKNOWLEDGED: Final = "acknowledged"


@dataclass(frozen=True)
class Review:
    """A deployment as its reviewers need it.

    Attributes:
        deployment_name: Name of the settings file in config/, without .yaml.
        lead: The results in sentences.
        ok: Whether ParallelCluster accepts it, and cdk-nag has no open error.
        drawing: Its architecture, in Mermaid's language.
        tables: All else.
        notes: Remarks on sizes and costs.
    """

    deployment_name: str
    lead: tuple[str, ...]
    ok: bool
    drawing: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]


def review(deployment_name: str) -> Review:
    """Synthesize a deployment, and return what there is to review. Needs no account; prices are those of the table.

    Raises:
        SettingsError: The settings cannot be used.
        UnusableError: The deployment cannot be synthesized, or ParallelCluster's code broke down.
    """
    settings = options.settings_of(deployment_name)
    with temporary_directory() as temporary:
        directory = temporary / "cdk.out"
        [outcome] = outcomes([deployment_name], lambda file, _: synthesize(file, directory, checks=True))
        if outcome.report is None:
            raise UnusableError(outcome.error)
        stacks = in_order(Assembly(directory, settings.account or "ACCOUNT").stacks)
        nag = json.loads((directory / REPORT).read_text(encoding="utf-8"))
    prices = find_prices(settings.region, wanted_products(settings), "table")
    estimated = estimate(deployment_name, settings, prices)
    resources = list(resources_of(stacks))
    findings, permissions = nag_table(nag), permission_table(resources)
    marked = sum(MARK in " ".join(row) for row in permissions.rows)
    return Review(
        deployment_name=deployment_name,
        lead=(
            f"{settings.region}, {settings.zone_id}; {counted(len(resources), 'resources')} "
            f"in {counted(len(stacks), 'stacks')}",
            _verdict(outcome.report),
            f"cdk-nag: {_levels(row[0] for row in findings.rows)}",
            f"Permissions: {marked} of {len(permissions.rows)} are for more than one resource ({MARK})",
            _costs(estimated),
        ),
        ok=not outcome.report.problems and all(row[0] != "ERROR" for row in findings.rows),
        drawing=draw(stacks),
        tables=(
            resource_table(resources),
            permissions,
            reach_table(resources),
            parallelcluster_table(outcome.report),
            findings,
            *tables_of_estimate(estimated),
        ),
        notes=estimated.remarks,
    )


def _verdict(report: Validation) -> str:
    said = _levels(message.level for message in report.messages)
    return f"ParallelCluster: {'rejects it' if report.problems else 'accepts it'}; {said}"


def _levels(levels: Iterable[str]) -> str:
    return ", ".join(f"{count} {level}" for level, count in sorted(Counter(levels).items())) or "nothing found"


def _costs(estimated: Estimate) -> str:
    at_min, at_max = (each.hour for each in (estimated.costs.at_min_count, estimated.costs.at_max_count))
    shown = ["not known" if each is None else f"${usd(each)}" for each in (at_min, at_max)]
    return f"Costs: {shown[0]} an hour at MinCount, {shown[1]} at MaxCount, on demand, by prices of {table_dates()}"


def resource_table(resources: Iterable[Resource]) -> Table:
    """Return what stacks create, counted."""
    by_stack: dict[str, list[Resource]] = {}
    for each in resources:
        by_stack.setdefault(each.stack, []).append(each)
    rows = [
        (stack, str(len(made)), _counted(made), _counted(each for each in made if each.retained) or NONE)
        for stack, made in by_stack.items()
    ]
    columns = [Column(title, False) for title in ("Stack", "Number", "Resources", "Stays when the stack is deleted")]
    notes = ["ParallelCluster makes the nodes, with launch templates, roles and security groups, in stacks of its own."]
    return Table("What it creates", columns, rows, notes=notes)


def _counted(resources: Iterable[Resource]) -> str:
    counts = Counter(map(_kind, resources))
    return ", ".join(f"{kind} ({count})" if count > 1 else kind for kind, count in counts.items())


def _kind(resource: Resource) -> str:
    name = resource.type.rpartition("::")[2]
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return _NAMES.get(name) or " ".join(each if each.isupper() else each.lower() for each in words.split())


def parallelcluster_table(report: Validation) -> Table:
    """Return what ParallelCluster's schema and validators say."""
    rows = [
        (each.level, each.validator, each.text, verdict.explanation if verdict else "")
        for each in report.messages
        for verdict in [report.verdicts.get(each.validator) if each.level == "WARNING" else None]
    ]
    columns = [Column(title, False) for title in ("Level", "Validator", "Finding", "What it does here")]
    return Table("Findings of ParallelCluster", columns, rows, notes=[f"It fails: {each}" for each in report.problems])


def nag_table(report: Mapping[str, Any]) -> Table:
    """Return what the CDK's validation report has: what is open, by its severity, then what is acknowledged."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for key in ("violations", "suppressedViolations"):
        for each in (violation for plugin in report["pluginReports"] for violation in plugin.get(key, [])):
            state = each["severity"].upper() if key == "violations" else _ACKNOWLEDGED
            where = [construct["constructPath"] for construct in each["violatingConstructs"]]
            rows.setdefault((state, each["ruleName"], each.get("reason") or each["description"]), []).extend(where)
    columns = [Column(title, False) for title in ("Level", "Rule", "Finding, or reason", "Where")]
    notes = ["The CDK's own validation is included: an annotation is a warning of this project about the settings."]
    return Table(
        "Findings of cdk-nag", columns, [(*row, listed([*dict.fromkeys(at)])) for row, at in rows.items()], notes=notes
    )
