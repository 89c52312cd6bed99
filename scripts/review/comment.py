"""The comment on a pull request: one for each configuration, found again by its marker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from scripts.plan.markdown import Block, blocks, joined
from scripts.plan.model import REPLACING, Effect, Plan
from scripts.plan.report import verdict
from scripts.review.costs import costs_block
from scripts.review.difference import plan, remarks
from scripts.review.readiness import readiness_block

if TYPE_CHECKING:
    from scripts.review.checkouts import Configuration

LONGEST = 65_536
"""Characters of a comment that GitHub refuses (https://github.com/mshick/add-pr-comment/issues/93 has its answer)."""
CUT = "**Cut here**: GitHub takes no longer comment. `make plan` tells all of it."
UNCHANGED = "<!-- nothing changes -->"
"""Tells the workflow that nobody need be told, unless there is a comment already."""
_MARKED = (*REPLACING, Effect.REMOVED)
_LIMITS = (
    "Compared are golden templates, which name scripts and other assets without their content: a change of these alone "
    "does not show. What runs in the account was not asked."
)


def comment(
    environment: str, before: Configuration | None, after: Configuration | None, preflight: Mapping[str, Any] | None
) -> str:
    """Return what a change does to a configuration, as GitHub's Markdown of less than `LONGEST` characters.

    Args:
        environment: File name in config/ without .yaml.
        before: As it is; None: it is new.
        after: As it is to be; None: it is removed.
        preflight: What preflight printed; None: it was not asked.
    """
    changes = plan(environment, before, after)
    told = list(remarks(environment, before, after))
    result, parts = _body(before, after, changes, told, preflight)
    return fitted([Block([f"<!-- ultracluster:{environment} -->", f"### `{environment}`: {result}"]), *parts])


def _body(
    before: Configuration | None,
    after: Configuration | None,
    changes: Plan | None,
    told: Sequence[str],
    preflight: Mapping[str, Any] | None,
) -> tuple[str, list[Block]]:
    if changes and changes.empty and not told:
        return "nothing changes", [Block([UNCHANGED]), Block([_LIMITS])]
    parts = [Block([f"- {remark}" for remark in told])] if told else []
    old, new = before.settings if before else None, after.settings if after else None
    if (before is None) == (old is None) and (after is None) == (new is None):
        parts.append(costs_block(old, new))
    if after is None:
        return "removed", parts
    if changes is None:
        return "cannot be used", [Block(["```", *after.fault.splitlines()], ("```",)), *parts]
    result = ("" if before else "a new configuration. ") + verdict(changes)
    if preflight and not preflight["ok"]:
        result += " The account is not ready."
    return result, [Block([_counts(changes)]), *parts, *blocks(changes), readiness_block(preflight), Block([_LIMITS])]


def fitted(parts: Sequence[Block], longest: int = LONGEST) -> str:
    """Return blocks as one text; where it would be as long as `longest` or longer, it is cut, and that is said."""
    if len(joined(parts)) < longest:
        return joined(parts)
    kept: list[Block] = []
    room = longest - _length([CUT])
    for part in parts:
        room -= _length(part.end)
        ends = list(accumulate(len(line) + 1 for line in part.lines))
        count = sum(end <= room for end in ends)
        if count:
            kept.append(Block(part.lines[:count], part.end))
        if count < len(ends):
            break
        room -= ends[-1]
    return joined([*kept, Block([CUT])])


def _length(lines: Sequence[str]) -> int:
    """Return the length of lines that an empty one follows."""
    return sum(len(line) + 1 for line in lines) + 1


def _counts(changes: Plan) -> str:
    found = Counter(each.effect for stack in changes.stacks for each in stack.changes if not each.metadata_only)
    if not found:
        return "No resource changes."
    told = [f"{found[effect]} {effect}" for effect in Effect if found[effect]]
    return f"Resources: {', '.join(f'**{each}**' if each.endswith(_MARKED) else each for each in told)}."
