"""How every rule reports a value that breaks it."""

import re
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

MAX_SHOWN = 200
"""Characters of a value that a message shows."""
MAX_KEY = 100
"""Characters of a key that a message shows."""
MAX_LINE = 2000
"""Characters of a line of a message."""
MAX_REPORTED = 100
"""Lines of a message; it says how many more there are."""
MAX_LISTED = 30
"""Names of a list that a message shows."""
_MAX_BYTES = 16_000
_IN_MEMORY = " object at 0x"
_ABBREVIATION = 3
"""Letters at most of the modules of the CDK whose names are spelled, such as kms."""

NO_SUCH_NAME = "no argument of this name"
"""What is allowed instead of an unknown name."""

_TOKEN_TEXT = re.compile(r"[$#]\{Token\[[^\]]*\]\}")
_TOKEN_NUMBER = b"\xfb\xff"
"""The first two bytes of a double that stands for a token."""
_TOKENS = re.compile(rf"(['\"]?){_TOKEN_TEXT.pattern}\1|-1\.88815\d*e\+289")
"""Tokens within messages."""

WORDS: dict[str, str] = {}
"""What each pattern of a text allows, in words."""

Path = tuple[str | int, ...]
"""Keys and indices that lead to a value."""


@dataclass(frozen=True)
class Violation:
    """A value that breaks a rule, what would be accepted and why, in words. Paths start at what was checked.

    There is no reason where a value has a wrong type.
    """

    path: Path
    got: object
    allowed: str
    reason: str

    def __str__(self) -> str:
        allowed = f"a value that is known at synthesis: {self.allowed}" if is_token(self.got) else self.allowed
        text = f"got {shown(self.got)}; allowed: {allowed}" + (f" ({self.reason})" if self.reason else "")
        return printable(_TOKENS.sub("a token", text))


@dataclass(frozen=True)
class Waiting(Violation):
    """A rule of what has this path, which reads a value of a wrong shape and is checked once that is right."""

    got: object = None
    allowed: str = ""
    reason: str = ""


class WaitsError(Exception):
    """A rule has read a value of a wrong shape."""


class InvalidArguments(ValueError):
    """Arguments of a construct that break rules; the message has a line for each violation.

    Attributes:
        violations: All of them; paths start at the construct's arguments.
    """

    def __init__(self, construct: str, violations: Sequence[Violation]) -> None:
        self.violations, waiting = divided(violations)
        # Rules speak of settings files, where null is what None is here.
        words = {"null": "None", "true": "True", "false": "False"}
        lines = [
            re.sub(r"\b(null|true|false)\b", lambda word: words[word[0]], f"\n  {dotted(each.path)}: {each}")
            for each in self.violations
        ]
        message = capped(f"invalid arguments of {construct}:{''.join(lines)}", last=waiting and f"  {waiting}")
        super().__init__(_TOKENS.sub("a token", message))


def shape_violations(error: "ValidationError") -> list[Violation]:
    """Return what has a wrong type or lies outside its range, of the values that a model was made of."""
    return [
        Violation(each["loc"], None, "a value", "required")
        if each["type"] == "missing"
        else Violation(each["loc"], each["input"], _allowed(each["type"], each["msg"], each.get("ctx", {})), "")
        for each in error.errors(include_url=False)
    ]


def _allowed(kind: str, message: str, context: Mapping[str, Any]) -> str:
    """Return what pydantic accepts, by the type, the message and the context of its error."""
    if kind in _ALLOWED:
        return _ALLOWED[kind]
    if kind == "string_pattern_mismatch":
        return WORDS[context["pattern"]]
    text = re.sub(r"^(Input|String|List|Dictionary|Value) should (be )?", "", message)
    return text.replace("greater than or equal to", "at least").replace("less than or equal to", "at most")


_ALLOWED = {
    "bool_type": "True or False",
    "dict_type": "a mapping",
    "extra_forbidden": NO_SUCH_NAME,
    "float_type": "a number",
    "finite_number": "a finite number",
    "int_parsing_size": "an integer of fewer digits",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "an object of the library, or a mapping",
    "string_type": "a text",
}


def dotted(path: Path) -> str:
    """Return a path as people write it: ``queues[0].name``, keys cut after `MAX_KEY` characters."""
    parts = (f"[{_cut(str(part), MAX_KEY)}]" if isinstance(part, int) else f".{_key(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def _key(part: object) -> str:
    return printable(_cut(str(part), MAX_KEY)) or "''"


def is_token(value: object) -> bool:
    """Return whether the CDK will know a value only when stacks are deployed, or a part of it.

    Such a value is a text, a number or a list of a text that stands for it, or an object
    (https://docs.aws.amazon.com/cdk/v2/guide/tokens.html). aws-cdk-lib, core/lib/private/encoding.ts, has the marks.
    """
    if isinstance(value, str):
        return _TOKEN_TEXT.search(value) is not None
    if isinstance(value, float):
        return struct.pack(">d", value)[:2] == _TOKEN_NUMBER
    if isinstance(value, list | tuple):
        return any(map(is_token, value))
    kinds = kinds_of(value)
    return all(any(hasattr(kind, each) for kind in kinds) for each in ("resolve", "creation_stack"))


def kinds_of(value: object) -> list[type]:
    """Return the types whose properties and methods a value has.

    What the CDK returns as an interface is of a type that says nothing, and answers by others.
    """
    own = vars(value) if hasattr(value, "__dict__") and not isinstance(value, type) else {}
    return [type(value), *map(type, own.get("_delegates", ()))]


def is_list_token(value: object) -> bool:
    """Return whether a text stands for a whole list, in which it is alone."""
    return isinstance(value, str) and "#{Token[" in value


def shown(value: object) -> str:
    """Return a value as messages show it, cut after `MAX_SHOWN` characters."""
    if is_token(value) and not isinstance(value, list | tuple):
        return "a token"
    try:
        text = repr(Words.of(value))
        return _named(value) if _IN_MEMORY in text else _cut(text, MAX_SHOWN)
    except ValueError:  # Python writes no integers of more than some thousand digits
        return "a number that is too long to show"


class Words:
    """What messages show of an object, whose own text would be its class in the inside and its address in memory."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    @classmethod
    def of(cls, value: object, depth: int = 4) -> object:
        """Return words for a value where its own text would be none, and within lists and mappings so deep."""
        if isinstance(value, type):
            return cls(f"the class {called(value)}")
        if type(value) is list or type(value) is tuple:
            shown_of = value[: MAX_SHOWN + 1]
            return type(value)(cls.of(each, depth - 1) for each in shown_of) if depth else value
        if type(value) is dict:
            pairs = islice(value.items(), MAX_SHOWN + 1)
            return {cls.of(key, 0): cls.of(each, depth - 1) for key, each in pairs} if depth else value
        return value if type(value).__repr__ is not object.__repr__ else cls(_named(value))


def _named(value: object) -> str:
    name = called(kinds_of(value)[-1])
    return f"{article(name)} {name}"


def called(kind: type) -> str:
    """Return a type as programs write it, such as ``ec2.IVpc``."""
    package, _, module = kind.__module__.rpartition(".")
    of_cdk = f"{module.removeprefix('aws_')}." if package == "aws_cdk" else "cdk." if module == "aws_cdk" else ""
    name = kind.__name__
    return of_cdk + (name.removeprefix("_").removesuffix("Proxy") if name.endswith("Proxy") else name)


def article(name: str) -> str:
    """Return the article before a name in messages, as people say the name: an s3.IBucket, a secretsmanager.ISecret."""
    module = name.partition(".")[0] if "." in name else ""
    spelled = 0 < len(module) <= _ABBREVIATION
    if spelled:
        return "an" if module[0] in "aefhilmnorsx" else "a"
    return "an" if name[0].lower() in "aeio" or name.startswith("Ul") else "a"


def printable(text: str) -> str:
    """Return a text with control characters, line ends and the like as escapes, cut after `MAX_LINE` characters."""
    cut = _cut(text, MAX_LINE)
    return cut if cut.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in cut)


def capped(message: str, more: int = 0, last: str = "") -> str:
    """Return the first lines of a message, how many ``more`` there are with those left out before, and a last line."""
    kept, size, lines = list[str](), 0, message.split("\n")
    for line in lines[:MAX_REPORTED]:
        size += len(line.encode("utf-8", "replace")) + 1
        if size > _MAX_BYTES:
            break
        kept.append(line)
    more += len(lines) - len(kept)
    return "\n".join([*kept, *([f"... and {more} more"] if more else []), *([last] if last else [])])


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}..."


def listed(names: Collection[str], none: str) -> str:
    """Return names as what is allowed, the first of many: ``a or b``; `none` where there are none."""
    first = " or ".join(islice(names, MAX_LISTED))
    return f"{first} or {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else first or none


def below(prefix: Path, *rules: Iterable[Violation] | Callable[[], Iterable[Violation]]) -> list[Violation]:
    """Return the violations that rules report, with ``prefix`` before each path.

    A rule that reads a value of a wrong shape reports no more, but that it is `Waiting`.
    """
    broken: list[Violation] = []
    for rule in rules:
        try:
            for each in rule() if callable(rule) else rule:
                broken.append(each)
        except WaitsError:
            broken.append(Waiting(()))
    return [replace(each, path=prefix + each.path) for each in broken]


def divided(violations: Iterable[Violation]) -> tuple[tuple[Violation, ...], str]:
    """Return the violations, and a sentence that names the sections whose rules wait; empty: none do."""
    found = list(violations)
    broken = tuple(each for each in found if not isinstance(each, Waiting))
    sections = sorted({dotted(each.path[:1]) or "the rest" for each in found if isinstance(each, Waiting)})
    named = " and ".join(filter(None, [", ".join(sections[:-1]), *sections[-1:]]))
    return broken, f"not all rules of {named} are checked yet; correct the values above first" if sections else ""
