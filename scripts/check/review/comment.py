"""The comment on a pull request: one for each configuration, which a workflow finds by its marker."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.check.estimate.costs import Costs, costs, wanted
from scripts.check.estimate.prices import find_prices
from scripts.check.estimate.products import HOURS_PER_MONTH, table_dates
from scripts.check.plan.model import REPLACING, Effect
from scripts.check.plan.plan import read_stacks
from scripts.check.plan.report import Plan
from scripts.check.review.checkouts import plan, remarks
from scripts.check.review.drawing import draw
from scripts.check.review.page import as_block
from scripts.core.errors import UnusableError
from scripts.core.figures import NONE, usd
from scripts.core.findings import CheckStatus, Finding
from scripts.core.markdown import folded, of_blocks, of_table
from scripts.core.report import Folded, Table, columns

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.check.review.checkouts import Configuration

LONGEST = 65_536
"""Characters of a comment that GitHub refuses (https://github.com/mshick/add-pr-comment/issues/93 has its answer)."""
CUT = "**Cut here**: GitHub takes no longer comment. `./ultracluster plan` shows everything."
UNCHANGED = "<!-- nothing changes -->"
"""Lets the workflow post nothing, unless there is a comment already."""
NO_PREFLIGHT = "**Preflight**: not run, because there were no credentials."
_MARKED = (*REPLACING, Effect.REMOVED)
_SHOWN = (CheckStatus.FAIL, CheckStatus.UNKNOWN, CheckStatus.WARN)
_LIMITS = (
    "Golden templates are compared, which name scripts and other assets without their content: a change of these alone "
    "does not show. What runs in the account was not read, and ParallelCluster was not asked, as "
    "`./ultracluster validate` does."
)


def comment(
    deployment_name: str, before: Configuration | None, after: Configuration | None, preflight: Mapping[str, Any] | None
) -> str:
    """Return what a change does to a configuration, as GitHub's Markdown of less than `LONGEST` characters.

    Args:
        deployment_name: File name in config/ without .yaml.
        before: The old one; None: it is new.
        after: The new one; None: it is removed.
        preflight: What preflight printed; None: it was not run.
    """
    changes = plan(deployment_name, before, after)
    result, parts = _body(before, after, changes, list(remarks(deployment_name, before, after)), preflight)
    return fitted([f"<!-- ultracluster:{deployment_name} -->\n### `{deployment_name}`: {result}", *parts])


def _body(
    before: Configuration | None,
    after: Configuration | None,
    changes: Plan | None,
    noted: Sequence[str],
    preflight: Mapping[str, Any] | None,
) -> tuple[str, list[str]]:
    if changes and changes.empty and not noted:
        return "nothing changes", [UNCHANGED, _LIMITS]
    parts = ["\n".join(f"- {remark}" for remark in noted)] if noted else []
    old, new = before.settings if before else None, after.settings if after else None
    if (before is None) == (old is None) and (after is None) == (new is None):
        parts.append(costs_table(old, new))
    if after is None:
        return "removed", parts
    if changes is None:
        return "cannot be used", [f"```\n{after.problem}\n```", *parts]
    result = ("" if before else "a new configuration. ") + changes.verdict
    if preflight and not preflight["ok"]:
        result += " The account is not ready."
    old_drawing, drawing = (_drawing(each, changes.region) for each in (before, after))
    shown = of_blocks([*changes.findings, *changes.changed()])
    architecture = [folded("Architecture", as_block(drawing))] if drawing != old_drawing else []
    return result, [_counts(changes), *parts, *shown, readiness(preflight), *architecture, _LIMITS]


def _drawing(configuration: Configuration | None, region: str) -> str:
    if configuration is None or configuration.templates is None:
        return ""
    return draw(read_stacks(configuration.templates, region))


def fitted(parts: Sequence[str], longest: int = LONGEST) -> str:
    """Return parts as one text; of one that would be too long the first parts, and that it is cut."""
    text = "\n\n".join(parts) + "\n"
    count = len(parts)
    while len(text) >= longest:
        count -= 1
        text = "\n\n".join([*parts[:count], CUT]) + "\n"
    return text


def _counts(changes: Plan) -> str:
    counts = Counter(each.effect for stack in changes.stacks for each in stack.changes if not each.metadata_only)
    if not counts:
        return "No resource changes."
    shown = [f"{counts[effect]} {effect}" for effect in Effect if counts[effect]]
    return f"Resources: {', '.join(f'**{each}**' if each.endswith(_MARKED) else each for each in shown)}."


# --- costs: the sums of `./ultracluster estimate`, by the table of prices ---


def costs_table(before: Settings | None, after: Settings | None) -> str:
    """Return the costs per hour and month at MinCount and MaxCount as a table.

    Args:
        before: The old settings; None: there are none yet.
        after: The new settings; None: there are none any more.
    """
    known = [None if settings is None else _costs(settings) for settings in (before, after)]
    at_min = [None if each is None else each.at_min_count.hour for each in known]
    at_max = [None if each is None else each.at_max_count.hour for each in known]
    rows = [
        _row("an hour at MinCount", 1, *at_min),
        _row("a month at MinCount", HOURS_PER_MONTH, *at_min),
        _row("an hour at MaxCount", 1, *at_max),
        _row("a month at MaxCount", HOURS_PER_MONTH, *at_max),
    ]
    notes = [
        f"On demand, by the table of prices ({table_dates()}); a month is {HOURS_PER_MONTH} hours. What is "
        "paid by use is in no sum."
    ]
    if unpriced := sorted({name for each in known if each for name in each.not_in_the_sums}):
        notes.append(f"Not in the sums: {'; '.join(unpriced)}.")
    return of_table(Table("", columns("US dollars", "before", "after", "difference"), rows, notes=notes))


def _costs(settings: Settings) -> Costs:
    return costs(settings, find_prices(settings.region, wanted(settings), "table"))


def _row(label: str, hours: int, before: Decimal | None, after: Decimal | None) -> list[str]:
    shown = [NONE if hourly is None else usd(hourly * hours) for hourly in (before, after)]
    amount = ((after or Decimal(0)) - (before or Decimal(0))) * hours
    difference = "none" if amount == 0 else f"{'+' if amount > 0 else '-'}{usd(abs(amount))}"
    return [label, *shown, difference]


# --- preflight: the document that `./ultracluster preflight --output json` prints, in short ---


def read_preflight(path: Path) -> Mapping[str, Any] | None:
    """Return what preflight printed, None where it printed nothing: there is no such file, or it is empty.

    Raises:
        UnusableError: It is something else.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if not text.strip():
        return None
    try:
        document = json.loads(text)
        if {"results", "counts", "ok", "account"} <= document.keys():
            return dict(document)
    except (ValueError, AttributeError):
        pass
    raise UnusableError(f"got {path}; allowed: what `./ultracluster preflight DEPLOYMENT --output json` prints")


def readiness(document: Mapping[str, Any] | None) -> str:
    """Return the verdict of preflight and its findings; the number of the account does not show."""
    if document is None:
        return NO_PREFLIGHT
    counts = ", ".join(f"{count} {status}" for status, count in document["counts"].items() if count)
    result = f"{'ready' if document['ok'] else 'not ready'} to deploy: {counts}"
    account = document["account"]
    findings = [_finding(result, account) for result in document["results"] if result["status"] in _SHOWN]
    if not findings:
        return f"**Preflight**: {result}."
    return "".join(of_blocks([Folded(f"Preflight: {result}", findings)]))


def _finding(result: Mapping[str, Any], account: str | None) -> Finding:
    texts = (result[key] for key in ("sentence", "hint", "command", "id"))
    sentence, hint, command, subject = (text.replace(account, "ACCOUNT") if account else text for text in texts)
    return Finding(CheckStatus(result["status"]), sentence, hint, command, subject)
