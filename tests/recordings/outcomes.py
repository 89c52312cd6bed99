"""What tests of others say of the emulated AWS, beside what is expected of it."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

EXPECTED: Final = Path(__file__).with_name("expected.toml")

SECTIONS: Final = ("differs", "unfit")
"""Sections of the file that name tests: the emulated AWS answers otherwise, or the test itself is unfit."""

_REFUSAL: Final = re.compile(r"Not emulated: ([^\n]+?)(?= Rollback requested by user\.|$)", re.MULTILINE)
"""How the emulated AWS refuses by name."""

_FAULT: Final = re.compile(
    r"The emulator cannot answer this request: .*|Internal failure of the emulator: .*"
    r"|Resource handler returned message: .*HandlerErrorCode: InternalFailure\)|: 500 .*"
)
"""What it says where it should have had an answer."""


@dataclass(frozen=True)
class Result:
    """How a test ended.

    Attributes:
        test: Its id, below the folder with the checkouts.
        outcome: As pytest has it.
        answers: Errors that it was told, and why stacks failed.
        outside: Hosts that it wanted to reach.
    """

    test: str
    outcome: str
    answers: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    failure: str = ""

    @property
    def faults(self) -> list[str]:
        """Return what the emulator had no answer to."""
        return [match[0] for each in self.answers for match in _FAULT.finditer(each)]

    @property
    def refused(self) -> list[str]:
        """Return what it refused by name."""
        return list(dict.fromkeys(match[1] for each in self.answers for match in _REFUSAL.finditer(each)))

    @property
    def kind(self) -> str:
        """Return ``passed``, ``skipped``, ``fault``, ``refused``, ``outside`` or ``differs``."""
        if self.faults:
            return "fault"
        if self.outcome != "failed":
            return self.outcome
        return "refused" if self.refused else "outside" if self.outside else "differs"


@dataclass(frozen=True)
class Expectation:
    """Tests, or what is refused by name, and why that is so; a star stands for any text."""

    section: str
    reason: str
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class Expected:
    """What the tests are expected to say.

    Attributes:
        commits: By repository, the commit that the expectations are of.
    """

    commits: Mapping[str, str]
    expectations: tuple[Expectation, ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Expected:
        """Return what a document says.

        Raises:
            ValueError: It has something else, says nothing, or says something twice.
        """
        expectations = []
        for section, entries in document.items():
            if section == "commits":
                continue
            names = {"refused": "names", **dict.fromkeys((*SECTIONS, "outside"), "tests")}.get(section)
            if names is None:
                raise ValueError(f"unknown section {section}")
            for entry in entries:
                if entry.keys() != {"reason", names} or not entry["reason"] or not entry[names]:
                    raise ValueError(f"{section}: got {sorted(entry)}; allowed: reason and {names}")
                expectations.append(Expectation(section, entry["reason"], tuple(entry[names])))
        twice = [each for each, times in Counter(p for e in expectations for p in e.patterns).items() if times > 1]
        if twice:
            raise ValueError(f"twice: {', '.join(twice)}")
        return cls(document["commits"], tuple(expectations))

    @classmethod
    def read(cls) -> Expected:
        """Return what the file says."""
        return cls.of(tomllib.loads(EXPECTED.read_text(encoding="utf-8")))


def surprises(results: Sequence[Result], expected: Expected, *, complete: bool = True) -> list[str]:
    """Return what is not as expected, a line for each.

    Args:
        results: How the tests ended.
        expected: What is expected of them.
        complete: Whether these are all tests, so that what none of them shows is expected no more.
    """
    found = []
    shown: set[str] = set()
    for result in results:
        if result.kind in ("passed", "skipped"):
            continue
        if result.kind == "fault":
            found.append(f"fault: {result.test}: {result.faults[0]}")
        elif result.kind == "refused":
            for name in result.refused:
                patterns = _matching(expected, ("refused",), name)
                shown.update(patterns)
                if not patterns:
                    found.append(f"refused: {result.test}: {name}")
        else:
            sections = ("outside",) if result.kind == "outside" else SECTIONS
            patterns = _matching(expected, sections, result.test)
            shown.update(patterns)
            if not patterns:
                found.append(f"{result.kind}: {result.test}: {_last_line(result.failure)}")
    if complete:
        found.extend(
            f"no more: {each.section}: {pattern}"
            for each in expected.expectations
            for pattern in each.patterns
            if pattern not in shown
        )
    return found


def summary(results: Iterable[Result], expected: Expected) -> list[str]:
    """Return how many tests passed, failed and were refused, by repository."""
    lines = []
    by_repository: dict[str, Counter[str]] = {}
    for each in results:
        kind = each.kind
        if kind == "differs":
            patterns = _matching(expected, ("unfit",), each.test)
            kind = "unfit" if patterns else kind
        by_repository.setdefault(each.test.partition("/")[0], Counter())[kind] += 1
    kinds = ("passed", "refused", "differs", "unfit", "outside", "fault", "skipped")
    lines.append(f"{'':12}{''.join(f'{kind:>10}' for kind in kinds)}{'all':>10}")
    for repository, counts in sorted(by_repository.items()):
        numbers = "".join(f"{counts[kind]:10}" for kind in kinds)
        lines.append(f"{repository:12}{numbers}{counts.total():10}")
    return lines


def _matching(expected: Expected, sections: Sequence[str], name: str) -> list[str]:
    return [
        pattern
        for each in expected.expectations
        if each.section in sections
        for pattern in each.patterns
        if re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name)
    ]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
